#![allow(unsafe_code)]
//! The AVX2 form of `distance`: four columns a vector.
//!
//! AVX2 counts no bits, but a byte shuffle looks the counts of 32 half bytes up at once.

use std::arch::x86_64::*;
use std::ops::Range;

use super::Planes;
use crate::hamming::tiles::{self, COLUMNS, Near};
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `distance::pairs_within`.
    pub fn pairs_within<const W: usize>(
        self,
        planes: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_within(self, planes, range, radius, hits) }
    }

    /// See `distance::pairs_between`.
    pub fn pairs_between<const W: usize>(
        self,
        left: &Planes<'_, W>,
        rows: Range<usize>,
        right: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_between(self, left, rows, right, columns, radius, hits) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn pairs_within<const W: usize>(
    cpu: Avx2,
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_within(cpu, planes, range, radius, hits);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn pairs_between<const W: usize>(
    cpu: Avx2,
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_between(cpu, left, rows, right, columns, radius, hits);
}

impl Near for Avx2 {
    #[inline(always)]
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { columns_near(one, planes, j, radius) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn columns_near<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
    let limit = _mm256_set1_epi64x(i64::from(radius));
    let (low, high) = (distances(one, planes, j), distances(one, planes, j + COLUMNS / 2));
    let far = _mm256_and_si256(_mm256_cmpgt_epi64(low, limit), _mm256_cmpgt_epi64(high, limit));
    _mm256_movemask_epi8(far) != -1
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
