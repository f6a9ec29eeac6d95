//! Distances of many fingerprints: all pairs of a bucket, or of two, within a radius.
//!
//! The loop, plainly:
//!
//! ```text
//! for i in rows: for j in columns (j > i if they are the same): if distance(i, j) <= radius: hit (i, j)
//! ```

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "x86_64")]
pub mod avx512_base;
#[cfg(target_arch = "aarch64")]
pub mod neon;

pub mod listed;

use std::ops::Range;

pub use crate::hamming::planes::{Planes, distance, row};
use crate::hamming::tiles::{self, COLUMNS, FOLDS, Near};
#[cfg(test)]
use crate::system::memory::push;
#[cfg(target_arch = "aarch64")]
use crate::system::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512, Avx512Base};

/// Pairs `i < j` of the range within the radius, appended to `hits`.
pub fn pairs_within<const W: usize>(
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for plane in planes {
        assert!(range.end <= plane.len() && range.start <= range.end, "the range lies in the planes");
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.pairs_within(planes, range, radius, hits);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.pairs_within(planes, range, radius, hits);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.pairs_within(planes, range, radius, hits);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::in_force() {
        return cpu.pairs_within(planes, range, radius, hits);
    }
    tiles::pairs_within(Portable, planes, range, radius, hits);
}

/// Pairs (`i` of the left range, `j` of the right range) within the radius, appended to `hits`.
pub fn pairs_between<const W: usize>(
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for (planes, range) in [(left, &rows), (right, &columns)] {
        for plane in planes {
            assert!(range.end <= plane.len() && range.start <= range.end, "the range lies in the planes");
        }
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.pairs_between(left, rows, right, columns, radius, hits);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.pairs_between(left, rows, right, columns, radius, hits);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.pairs_between(left, rows, right, columns, radius, hits);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::in_force() {
        return cpu.pairs_between(left, rows, right, columns, radius, hits);
    }
    tiles::pairs_between(Portable, left, rows, right, columns, radius, hits);
}

/// What every processor has: eight columns whose bits are counted in a plain loop.
#[derive(Clone, Copy)]
struct Portable;

impl Near for Portable {
    type Folds = [u32; FOLDS];

    #[inline(always)]
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
        let mut sums = [0u64; COLUMNS];
        for (word, plane) in one.iter().zip(planes) {
            for (sum, column) in sums.iter_mut().zip(&plane[j..j + COLUMNS]) {
                // No more than the bits of a fingerprint.
                *sum = sum.wrapping_add(u64::from((word ^ column).count_ones()));
            }
        }
        sums.iter().fold(u64::MAX, |least, sum| least.min(*sum)) <= u64::from(radius)
    }
}

#[cfg(test)]
fn pairs_within_plain<const W: usize>(
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for i in range.clone() {
        let one = row(planes, i);
        for j in i + 1..range.end {
            if distance(&one, &row(planes, j)) <= radius {
                push(hits, [i as u32, j as u32]);
            }
        }
    }
}

#[cfg(test)]
fn pairs_between_plain<const W: usize>(
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for i in rows {
        let one = row(left, i);
        for j in columns.clone() {
            if distance(&one, &row(right, j)) <= radius {
                push(hits, [i as u32, j as u32]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    fn mixed(seed: u64, count: usize) -> Vec<u64> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                // Few bits vary, so that many pairs are near.
                (state >> 33) & 0x0101_0f0f_1111_0103
            })
            .collect()
    }

    fn every_level_agrees<const W: usize>() {
        let words: Vec<Vec<u64>> = (0..W).map(|word| mixed(word as u64 + 3, 150)).collect();
        let planes: Planes<'_, W> = std::array::from_fn(|word| &words[word][..]);
        for radius in [0, 2, 5, 9] {
            for range in [0..0, 3..4, 5..9, 0..17, 7..40, 1..150] {
                let mut expected = Vec::new();
                pairs_within_plain(&planes, range.clone(), radius, &mut expected);
                expected.sort_unstable();
                let mut crossed = Vec::new();
                pairs_between_plain(&planes, 2..31, &planes, range.clone(), radius, &mut crossed);
                crossed.sort_unstable();
                at_every_level(|name| {
                    let mut hits = Vec::new();
                    pairs_within(&planes, range.clone(), radius, &mut hits);
                    hits.sort_unstable();
                    assert_eq!(hits, expected, "{name} {W} words, radius {radius}, {range:?}");
                    hits.clear();
                    pairs_between(&planes, 2..31, &planes, range.clone(), radius, &mut hits);
                    hits.sort_unstable();
                    assert_eq!(hits, crossed, "{name} {W} words, radius {radius}, {range:?}");
                });
            }
        }
    }

    #[test]
    fn one_near_pair_is_found_wherever_it_stands() {
        let mut state = 5;
        for (i, j) in (0..40).flat_map(|j| (0..j).map(move |i| (i, j))) {
            for (flipped, radius) in
                [(0u64, 0), (1 << 63, 1), (0x8000_0000_8000_0000, 2), (0x7, 3), (0x1f, 5), (0x1f, 4), (0x3f, 6)]
            {
                let mut words: Vec<u64> = (0..40).map(|_| crate::hamming::plan::split_mix(&mut state)).collect();
                words[j] = words[i] ^ flipped;
                let expected: &[[u32; 2]] = if flipped.count_ones() <= radius { &[[i as u32, j as u32]] } else { &[] };
                for end in [40, j + 1] {
                    at_every_level(|name| {
                        let mut hits = Vec::new();
                        pairs_within(&[&words], 0..end, radius, &mut hits);
                        assert_eq!(hits, expected, "{name}: {i} and {j} of {end}, radius {radius}");
                    });
                }
            }
        }
    }

    #[test]
    fn a_range_of_any_size_ends_where_it_ends() {
        let mut state = 6;
        for (size, radius) in (0..40).flat_map(|size| (0..=6).map(move |radius| (size, radius))) {
            let mut words: Vec<u64> = (0..80).map(|_| crate::hamming::plan::split_mix(&mut state)).collect();
            let (start, end) = (20, 20 + size);
            if size > 3 {
                // Across the whole range: a pair that is just near enough, and one that is just too far apart.
                words[end - 1] = words[start] ^ ((1 << radius) - 1);
                words[end - 2] = words[start + 1] ^ ((2 << radius) - 1);
            }
            // What stands beside the range is near to what is in it.
            let (first, last) = (words[start], words[end - 1]);
            words[10..start].fill(first);
            words[end..end + 10].fill(last);
            let mut within = Vec::new();
            pairs_within_plain(&[&words], start..end, radius, &mut within);
            for rows in [8..9, 11..18, 5..22, 0..end] {
                let mut between = Vec::new();
                pairs_between_plain(&[&words], rows.clone(), &[&words], start..end, radius, &mut between);
                between.sort_unstable();
                at_every_level(|name| {
                    let mut hits = Vec::new();
                    pairs_within(&[&words], start..end, radius, &mut hits);
                    hits.sort_unstable();
                    assert_eq!(hits, within, "{name}: {size} rows, radius {radius}");
                    hits.clear();
                    pairs_between(&[&words], rows.clone(), &[&words], start..end, radius, &mut hits);
                    hits.sort_unstable();
                    assert_eq!(hits, between, "{name}: {rows:?} and {size} columns, radius {radius}");
                });
            }
        }
    }

    #[test]
    fn many_rows_and_few_columns_take_no_room_for_what_is_not_found() {
        let mut state = 8;
        let rows: Vec<u64> = (0..100_000).map(|_| crate::hamming::plan::split_mix(&mut state)).collect();
        for count in [1, 8, 13, 30] {
            let mut hits = Vec::new();
            pairs_between(&[&rows], 0..rows.len(), &[&rows], 500..500 + count, 3, &mut hits);
            let expected: Vec<[u32; 2]> = (500..500 + count as u32).map(|row| [row, row]).collect();
            assert_eq!(hits, expected);
            assert!(hits.capacity() < 10_000, "{}", hits.capacity());
        }
    }

    #[test]
    fn every_level_finds_the_same_pairs() {
        every_level_agrees::<1>();
        every_level_agrees::<2>();
        every_level_agrees::<4>();
        every_level_agrees::<8>();
        every_level_agrees::<16>();
        every_level_agrees::<64>();
    }
}
