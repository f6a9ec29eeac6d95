//! Rows sorted by key: first moved to parts that fit the cache, then counted into place there.

use std::ops::Range;

use crate::keys::{BATCH, Key};
use crate::parallel::each;

/// Rows in the order of their keys.
pub struct Sorted {
    /// Where the rows of each key start; the last is the number of rows.
    pub bounds: Vec<u32>,
    pub planes: Vec<Vec<u64>>,
    /// The row that stands at each place.
    pub order: Vec<u32>,
}

/// A row on its way, with the number it had.
#[derive(Clone, Copy)]
pub struct Moved<const W: usize> {
    row: [u64; W],
    number: u32,
}

const LINE: usize = 8;
const PART: usize = 256 << 10;
const MAX_PARTS: usize = 2048;

/// The part of one chunk's rows in the moved rows.
struct Piece {
    start: usize,
    bounds: Vec<usize>,
}

/// Where the results of a run of parts go.
struct Target<'a> {
    parts: Range<usize>,
    bounds: &'a mut [u32],
    planes: Vec<&'a mut [u64]>,
    order: &'a mut [u32],
    first: usize,
}

/// Sort rows by key; rows with equal keys stay in their order. `moved` is room that can be used again.
pub fn by_key<const W: usize>(key: &Key, rows: &[[u64; W]], threads: usize, moved: &mut Vec<Moved<W>>) -> Sorted {
    let wanted = (size_of_val(rows) / PART).next_power_of_two().clamp(1, MAX_PARTS);
    let upper = wanted.trailing_zeros().min(key.width);
    let (parts, low) = (1usize << upper, key.width - upper);
    let size = rows.len().div_ceil(threads.max(1)).max(4096);
    let chunks: Vec<(usize, &[[u64; W]])> =
        rows.chunks(size).enumerate().map(|(chunk, rows)| (chunk * size, rows)).collect();
    let part_of = |key: u32| (key >> low) as usize & (parts - 1);
    let pieces: Vec<Piece> = each(chunks.clone(), |(start, rows)| {
        let mut bounds = vec![0; parts + 1];
        let mut keys = [0; BATCH];
        for rows in rows.chunks(BATCH) {
            key.extract(rows, &mut keys);
            for &key in &keys[..rows.len()] {
                bounds[part_of(key) + 1] += 1;
            }
        }
        for part in 0..parts {
            bounds[part + 1] += bounds[part];
        }
        Piece { start, bounds }
    });
    moved.resize(rows.len(), Moved { row: [0; W], number: 0 });
    let inputs: Vec<_> = chunks
        .into_iter()
        .zip(moved.chunks_mut(size))
        .zip(&pieces)
        .map(|((chunk, own), piece)| (chunk, own, piece))
        .collect();
    each(inputs, |((start, rows), own, piece)| {
        let mut places = piece.bounds.clone();
        let mut keys = [0; BATCH];
        // Write-combining, as in the join: a row waits at its place in the target, modulo the line.
        let mut lines = vec![Moved { row: [0; W], number: 0 }; parts * LINE];
        let mut number = start as u32;
        for rows in rows.chunks(BATCH) {
            key.extract(rows, &mut keys);
            for (row, &key) in rows.iter().zip(&keys) {
                let part = part_of(key);
                let place = places[part];
                let slot = place % LINE;
                let line = &mut lines[part * LINE..][..LINE];
                line[slot] = Moved { row: *row, number };
                number = number.wrapping_add(1);
                places[part] = place.wrapping_add(1);
                if slot == LINE - 1 {
                    let first = (place - slot).max(piece.bounds[part]);
                    match (own[first..=place].first_chunk_mut::<LINE>(), line.first_chunk::<LINE>()) {
                        (Some(target), Some(line)) => *target = *line,
                        _ => own[first..=place].copy_from_slice(&line[first % LINE..]),
                    }
                }
            }
        }
        for part in 0..parts {
            let place = places[part];
            let first = (place - place % LINE).max(piece.bounds[part]);
            let line = &lines[part * LINE..][..LINE];
            own[first..place].copy_from_slice(&line[first % LINE..][..place - first]);
        }
    });
    let mut sorted = Sorted {
        bounds: vec![0; (1usize << key.width) + 1],
        planes: vec![vec![0; rows.len()]; W],
        order: vec![0; rows.len()],
    };
    let moved = &moved[..];
    for target in each(targets(&mut sorted, &pieces, parts, low, threads), |mut target| {
        finish(&mut target, moved, &pieces, key, low);
        target.parts
    }) {
        debug_assert!(target.end <= parts);
    }
    sorted.bounds[1usize << key.width] = rows.len() as u32;
    sorted
}

/// The results cut into runs of parts, about as many rows in each, one for each thread.
fn targets<'a>(sorted: &'a mut Sorted, pieces: &[Piece], parts: usize, low: u32, threads: usize) -> Vec<Target<'a>> {
    let size_of = |part: usize| pieces.iter().map(|piece| piece.bounds[part + 1] - piece.bounds[part]).sum::<usize>();
    let share = sorted.order.len().div_ceil(threads.max(1)).max(1);
    let mut bounds = &mut sorted.bounds[..];
    let mut planes: Vec<&mut [u64]> = sorted.planes.iter_mut().map(|plane| &mut plane[..]).collect();
    let mut order = &mut sorted.order[..];
    let (mut targets, mut start, mut first) = (Vec::new(), 0, 0);
    while start < parts {
        let (mut end, mut rows) = (start, 0);
        while end < parts && (rows < share || end == start) {
            rows += size_of(end);
            end += 1;
        }
        let (own_bounds, more_bounds) = std::mem::take(&mut bounds).split_at_mut((end - start) << low);
        let (own_order, more_order) = std::mem::take(&mut order).split_at_mut(rows);
        let mut own_planes = Vec::with_capacity(planes.len());
        for plane in &mut planes {
            let (own, more) = std::mem::take(plane).split_at_mut(rows);
            own_planes.push(own);
            *plane = more;
        }
        (bounds, order) = (more_bounds, more_order);
        targets.push(Target { parts: start..end, bounds: own_bounds, planes: own_planes, order: own_order, first });
        first += rows;
        start = end;
    }
    targets
}

/// Count the rows of each part into place.
fn finish<const W: usize>(target: &mut Target<'_>, moved: &[Moved<W>], pieces: &[Piece], key: &Key, low: u32) {
    let keys_of = |part: usize| -> Vec<&[Moved<W>]> {
        pieces
            .iter()
            .map(|piece| &moved[piece.start + piece.bounds[part]..piece.start + piece.bounds[part + 1]])
            .collect()
    };
    let mut next: Vec<usize> = Vec::new();
    let mut start = 0;
    for (number, part) in target.parts.clone().enumerate() {
        let own = keys_of(part);
        let bounds = &mut target.bounds[number << low..(number + 1) << low];
        let mask = bounds.len() - 1;
        for moved in own.iter().flat_map(|piece| piece.iter()) {
            bounds[key.of(&moved.row) as usize & mask] += 1;
        }
        next.clear();
        for bound in bounds {
            let count = *bound as usize;
            *bound = (target.first + start) as u32;
            next.push(start);
            start += count;
        }
        for moved in own.iter().flat_map(|piece| piece.iter()) {
            let place = &mut next[key.of(&moved.row) as usize & mask];
            for (plane, word) in target.planes.iter_mut().zip(moved.row) {
                plane[*place] = word;
            }
            target.order[*place] = moved.number;
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::split_mix;

    #[test]
    fn rows_are_sorted_by_key_and_stay_in_order_within_one() {
        let mut state = 9;
        for count in [0, 1, 50, 20_000, 200_000] {
            let rows: Vec<[u64; 2]> = (0..count).map(|_| [split_mix(&mut state), split_mix(&mut state)]).collect();
            for mask in [[0xff, 0], [0xf0f0, 0x1111], [0, 0xffff << 20]] {
                let key = Key::new(&mask);
                let mut expected: Vec<u32> = (0..count as u32).collect();
                expected.sort_by_key(|&row| key.of(&rows[row as usize]));
                for threads in [1, 3] {
                    let sorted = by_key(&key, &rows, threads, &mut Vec::new());
                    assert_eq!(sorted.order, expected);
                    for (place, &row) in expected.iter().enumerate() {
                        assert_eq!([sorted.planes[0][place], sorted.planes[1][place]], rows[row as usize]);
                    }
                    for value in 0..1usize << key.width {
                        let (start, end) = (sorted.bounds[value] as usize, sorted.bounds[value + 1] as usize);
                        assert!(expected[start..end].iter().all(|&row| key.of(&rows[row as usize]) as usize == value));
                    }
                }
            }
        }
    }
}
