//! Rows sorted by key: first moved to parts that fit the cache, then counted into place there.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::hamming::keys::{BATCH, Key};
use crate::join::family::MAX_PARTS;
use crate::join::scatter::LINE;
use crate::system::memory::{filled, in_large_pages, room_for, zeros};
use crate::system::parallel::each;

/// Rows in the order of their keys.
pub struct Sorted {
    /// Where the rows of each key start; the last is the number of rows.
    pub bounds: Vec<u32>,
    pub planes: Vec<Vec<u64>>,
    /// The row at each place.
    pub order: Vec<u32>,
}

/// A row on its way, with the number it had and its key.
#[derive(Clone, Copy)]
struct Moved<const W: usize> {
    row: [u64; W],
    number: u32,
    key: u32,
}

/// Room for rows on their way, which can be used again.
#[derive(Default)]
pub struct Way<const W: usize>(Vec<MaybeUninit<Moved<W>>>);

const PART: usize = if cfg!(miri) { 4 << 10 } else { 256 << 10 };
/// Fewer rows are no work for a thread of their own. Miri sees parts and chunks among few rows.
const CHUNK: usize = if cfg!(miri) { 256 } else { 4096 };

/// The part of one chunk's rows in the moved rows.
struct MovedChunk {
    start: usize,
    bounds: Vec<usize>,
}

/// About how many bytes sorting this many rows by a key takes, and how many of them are freed afterwards.
pub fn needed<const W: usize>(key: &Key, rows: usize) -> (usize, usize) {
    let sorted = rows * (W * 8 + 4) + (4usize << key.width);
    (sorted, rows * size_of::<Moved<W>>())
}

/// Where the results of a run of parts go.
struct Target<'a> {
    parts: Range<usize>,
    bounds: &'a mut [u32],
    planes: Vec<&'a mut [MaybeUninit<u64>]>,
    order: &'a mut [MaybeUninit<u32>],
    first: usize,
}

/// Room for *count* values that are all written before any is read: the threads that write them are
/// the first to touch its memory.
fn room<T: Copy>(count: usize) -> Vec<MaybeUninit<T>> {
    let mut room = room_for(count);
    // SAFETY: there is room for this many, and what may be uninitialised needs no value.
    unsafe { room.set_len(count) };
    room
}

/// # Safety
/// All of *room* was written.
unsafe fn written<T: Copy>(room: Vec<MaybeUninit<T>>) -> Vec<T> {
    let mut room = std::mem::ManuallyDrop::new(room);
    // SAFETY: the parts are those of a vector that nobody else has; its values are initialised.
    unsafe { Vec::from_raw_parts(room.as_mut_ptr().cast(), room.len(), room.capacity()) }
}

/// Sort rows by key; rows with equal keys stay in their order.
pub fn by_key<const W: usize>(key: &Key, rows: &[[u64; W]], threads: usize, way: &mut Way<W>) -> Sorted {
    let wanted = (size_of_val(rows) / PART).next_power_of_two().clamp(1, MAX_PARTS);
    let upper = wanted.trailing_zeros().min(key.width);
    let (parts, low) = (1usize << upper, key.width - upper);
    let size = rows.len().div_ceil(threads.max(1)).max(CHUNK);
    let chunks: Vec<(usize, &[[u64; W]])> =
        rows.chunks(size).enumerate().map(|(chunk, rows)| (chunk * size, rows)).collect();
    let part_of = |key: u32| (key >> low) as usize & (parts - 1);
    let pieces: Vec<MovedChunk> = each(chunks.clone(), |(start, rows)| {
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
        MovedChunk { start, bounds }
    });
    if way.0.len() < rows.len() {
        way.0 = Vec::new(); // freed before more is allocated
        way.0 = room(rows.len());
    }
    let moved = &mut way.0[..rows.len()];
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
        let mut lines = filled(parts * LINE, MaybeUninit::new(Moved { row: [0; W], number: 0, key: 0 }));
        let mut number = start as u32;
        for rows in rows.chunks(BATCH) {
            key.extract(rows, &mut keys);
            for (row, &key) in rows.iter().zip(&keys) {
                let part = part_of(key);
                let place = places[part];
                let slot = place % LINE;
                let line = &mut lines[part * LINE..][..LINE];
                line[slot].write(Moved { row: *row, number, key });
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
            assert_eq!(place, piece.bounds[part + 1], "the rows changed while they were sorted");
            let first = (place - place % LINE).max(piece.bounds[part]);
            let line = &lines[part * LINE..][..LINE];
            own[first..place].copy_from_slice(&line[first % LINE..][..place - first]);
        }
    });
    // SAFETY: each chunk's rows went to places of their own, as many as it has: that was asserted.
    let moved = unsafe { &*(&raw const *moved as *const [Moved<W>]) };
    let mut bounds = zeros((1usize << key.width) + 1);
    in_large_pages(&mut bounds);
    let mut planes: Vec<_> = (0..W).map(|_| room(rows.len())).collect();
    let mut order = room(rows.len());
    let targets = targets(&mut bounds, &mut planes, &mut order, &pieces, parts, low, threads);
    each(targets, |mut target| finish(&mut target, moved, &pieces, low));
    bounds[1usize << key.width] = rows.len() as u32;
    // SAFETY: every moved row was written to a place of its own.
    let (planes, order) = unsafe { (planes.into_iter().map(|plane| written(plane)).collect(), written(order)) };
    Sorted { bounds, planes, order }
}

/// The results cut into runs of parts, about as many rows in each, one for each thread.
fn targets<'a>(
    mut bounds: &'a mut [u32],
    planes: &'a mut [Vec<MaybeUninit<u64>>],
    mut order: &'a mut [MaybeUninit<u32>],
    pieces: &[MovedChunk],
    parts: usize,
    low: u32,
    threads: usize,
) -> Vec<Target<'a>> {
    let size_of = |part: usize| pieces.iter().map(|piece| piece.bounds[part + 1] - piece.bounds[part]).sum::<usize>();
    let share = order.len().div_ceil(threads.max(1)).max(1);
    let mut planes: Vec<&mut [MaybeUninit<u64>]> = planes.iter_mut().map(|plane| &mut plane[..]).collect();
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
fn finish<const W: usize>(target: &mut Target<'_>, moved: &[Moved<W>], pieces: &[MovedChunk], low: u32) {
    let pieces_of = |part: usize| -> Vec<&[Moved<W>]> {
        pieces
            .iter()
            .map(|piece| &moved[piece.start + piece.bounds[part]..piece.start + piece.bounds[part + 1]])
            .collect()
    };
    let mut next: Vec<usize> = Vec::new();
    let mut start = 0;
    for (number, part) in target.parts.clone().enumerate() {
        let own = pieces_of(part);
        let bounds = &mut target.bounds[number << low..(number + 1) << low];
        let mask = bounds.len() - 1;
        for moved in own.iter().flat_map(|piece| piece.iter()) {
            bounds[moved.key as usize & mask] += 1;
        }
        next.clear();
        for bound in bounds {
            let count = *bound as usize;
            *bound = (target.first + start) as u32;
            next.push(start);
            start += count;
        }
        for moved in own.iter().flat_map(|piece| piece.iter()) {
            let place = &mut next[moved.key as usize & mask];
            for (plane, word) in target.planes.iter_mut().zip(moved.row) {
                plane[*place].write(word);
            }
            target.order[*place].write(moved.number);
            *place += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::split_mix;

    #[test]
    fn rows_are_sorted_by_key_and_stay_in_order_within_one() {
        let mut state = 9;
        // Miri looks at every access, a thousand times slower.
        let (most, some, run) = if cfg!(miri) { (600, 0x30, 0xff) } else { (200_000, 0xf0f0, 0xffff) };
        for count in [0, 1, 50, most / 10, most] {
            let rows: Vec<[u64; 2]> = (0..count).map(|_| [split_mix(&mut state), split_mix(&mut state)]).collect();
            for mask in [[0xff, 0], [some, 0x1111], [0, run << 20]] {
                let key = Key::new(&mask);
                let keys: Vec<usize> = rows.iter().map(|row| key.of(row) as usize).collect();
                let mut expected: Vec<u32> = (0..count as u32).collect();
                expected.sort_by_key(|&row| keys[row as usize]);
                for threads in [1, 3] {
                    let sorted = by_key(&key, &rows, threads, &mut Way::default());
                    assert_eq!(sorted.order, expected);
                    for (place, &row) in expected.iter().enumerate() {
                        assert_eq!([sorted.planes[0][place], sorted.planes[1][place]], rows[row as usize]);
                    }
                    for value in 0..1usize << key.width {
                        let (start, end) = (sorted.bounds[value] as usize, sorted.bounds[value + 1] as usize);
                        assert!(expected[start..end].iter().all(|&row| keys[row as usize] == value));
                    }
                }
            }
        }
    }
}
