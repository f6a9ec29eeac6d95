#![allow(unsafe_code)]
//! The AVX2 form of `distance`: four columns a vector, or the folds of eight.
//!
//! AVX2 counts no bits, but a byte shuffle looks the counts of 32 half bytes up at once. For a small radius it is
//! cheaper not to count at all: a number of at most k bits is 0 once its lowest bit has been cleared k times.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Planes, distance, row};
use crate::system::memory::push;

/// Up to this radius rows are compared by their folds first, as with AVX-512.
const FOLDED: u32 = 5;
/// Columns whose folds are made at a time: a tile of them stays in the first cache.
const TILE: usize = 1024;
/// Folds that are compared at a time; a tile has this much room behind its end.
const STEP: usize = 32;
/// Fewer columns than this are not worth folding.
const FEW: usize = 8;

/// Pairs `i < j` of the range within the radius; `range.end` must lie in every plane.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn pairs_within<const W: usize>(
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    if radius > FOLDED || range.len() < FEW {
        for i in range.clone() {
            count(&row(planes, i), i, planes, i + 1..range.end, radius, hits);
        }
        return;
    }
    for columns in tiles(range.clone()) {
        let folds = Folds::new(planes, columns.clone());
        for i in range.start..columns.end {
            folds.compare(&row(planes, i), i, planes, columns.start.max(i + 1)..columns.end, radius, hits);
        }
    }
}

/// Pairs (`i` of the left range, `j` of the right range) within the radius; both must lie in every plane.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub fn pairs_between<const W: usize>(
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    if radius > FOLDED || rows.len() < 2 || columns.len() < FEW {
        for i in rows {
            count(&row(left, i), i, right, columns.clone(), radius, hits);
        }
        return;
    }
    for columns in tiles(columns) {
        let folds = Folds::new(right, columns.clone());
        for i in rows.clone() {
            folds.compare(&row(left, i), i, right, columns.clone(), radius, hits);
        }
    }
}

fn tiles(columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = columns.end;
    columns.step_by(TILE).map(move |begin| begin..end.min(begin + TILE))
}

/// Compare row *i* with columns by counting bits, eight at a time.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn count<const W: usize>(
    one: &[u64; W],
    i: usize,
    planes: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let limit = _mm256_set1_epi64x(i64::from(radius));
    let mut j = columns.start;
    while columns.end - j >= 8 {
        let (low, high) = (distances(one, planes, j), distances(one, planes, j + 4));
        let far = _mm256_and_si256(_mm256_cmpgt_epi64(low, limit), _mm256_cmpgt_epi64(high, limit));
        if _mm256_movemask_epi8(far) != -1 {
            plainly(one, i, planes, j..j + 8, radius, hits);
        }
        j += 8;
    }
    plainly(one, i, planes, j..columns.end, radius, hits);
}

/// The distances of a row and the four columns from *j* on.
#[inline]
#[target_feature(enable = "avx2")]
fn distances<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize) -> __m256i {
    let mut sum = _mm256_setzero_si256();
    // A byte has room for the bits of 31 words.
    for (words, planes) in one.chunks(31).zip(planes.chunks(31)) {
        let mut bytes = _mm256_setzero_si256();
        for (word, plane) in words.iter().zip(planes) {
            let four = &plane[j..j + 4];
            // SAFETY: four words are 32 bytes.
            let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            bytes = _mm256_add_epi8(bytes, bits(_mm256_xor_si256(four, _mm256_set1_epi64x(*word as i64))));
        }
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    sum
}

/// How many bits of each byte are set.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(x: __m256i) -> __m256i {
    let counts = _mm256_broadcastsi128_si256(_mm_set_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0));
    let half = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(x, half));
    let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(x), half));
    _mm256_add_epi8(low, high)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn plainly<const W: usize>(
    one: &[u64; W],
    i: usize,
    planes: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for j in columns {
        if distance(one, &row(planes, j)) <= radius {
            push(hits, [i as u32, j as u32]);
        }
    }
}

/// The words of each row of a tile, folded onto 32 bits by XOR, which brings no two rows further apart.
struct Folds {
    begin: usize,
    folds: [u32; TILE + STEP],
}

impl Folds {
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn new<const W: usize>(planes: &Planes<'_, W>, columns: Range<usize>) -> Folds {
        let mut folds = [0; TILE + STEP];
        for (fold, j) in folds.iter_mut().zip(columns.clone()) {
            *fold = folded(&row(planes, j));
        }
        Folds { begin: columns.start, folds }
    }

    /// Compare row *i* with some of the columns.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn compare<const W: usize>(
        &self,
        one: &[u64; W],
        i: usize,
        planes: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        let fold = _mm256_set1_epi32(folded(one) as i32);
        let mut j = columns.start;
        while j < columns.end {
            let some = &self.folds[j - self.begin..][..STEP];
            let near = match radius {
                0 => near::<0>(fold, some),
                1 => near::<1>(fold, some),
                2 => near::<2>(fold, some),
                3 => near::<3>(fold, some),
                4 => near::<4>(fold, some),
                _ => near::<5>(fold, some),
            };
            if near {
                plainly(one, i, planes, j..columns.end.min(j + STEP), radius, hits);
            }
            j += STEP;
        }
    }
}

#[inline(always)]
fn folded<const W: usize>(row: &[u64; W]) -> u32 {
    let word = row.iter().fold(0, |all, word| all ^ word);
    (word ^ word >> 32) as u32
}

/// Whether one of the folds is at most K bits from *fold*.
#[inline]
#[target_feature(enable = "avx2")]
fn near<const K: usize>(fold: __m256i, some: &[u32]) -> bool {
    let (ones, zero) = (_mm256_set1_epi32(-1), _mm256_setzero_si256());
    let mut found = zero;
    for eight in some.as_chunks::<8>().0 {
        // SAFETY: eight numbers are 32 bytes.
        let eight = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
        let mut x = _mm256_xor_si256(eight, fold);
        for _ in 0..K {
            x = _mm256_and_si256(x, _mm256_add_epi32(x, ones));
        }
        found = _mm256_or_si256(found, _mm256_cmpeq_epi32(x, zero));
    }
    _mm256_testz_si256(found, found) == 0
}
