#![allow(unsafe_code)]
//! The form of `distance` for AVX-512 that counts no bits: that of AVX2 with twice as many columns in a vector.

use std::arch::x86_64::*;
use std::ops::Range;

use super::Planes;
use super::avx2::Eight;
use crate::hamming::tiles::{self, Near};
use crate::system::simd::Avx512Base;

impl Avx512Base {
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

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn pairs_within<const W: usize>(
    cpu: Avx512Base,
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_within(cpu, planes, range, radius, hits);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,popcnt")]
fn pairs_between<const W: usize>(
    cpu: Avx512Base,
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_between(cpu, left, rows, right, columns, radius, hits);
}

impl Near for Avx512Base {
    type Folds = Eight;

    #[inline(always)]
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { columns_near(one, planes, j, radius) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn columns_near<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
    let mut sum = _mm512_setzero_si512();
    // A byte has room for the bits of 31 words.
    for (words, planes) in one.chunks(31).zip(planes.chunks(31)) {
        let mut bytes = _mm512_setzero_si512();
        for (word, plane) in words.iter().zip(planes) {
            let eight = &plane[j..j + 8];
            // SAFETY: eight words are 64 bytes.
            let eight = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            bytes = _mm512_add_epi8(bytes, bits(_mm512_xor_si512(eight, _mm512_set1_epi64(*word as i64))));
        }
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(bytes, _mm512_setzero_si512()));
    }
    _mm512_cmple_epu64_mask(sum, _mm512_set1_epi64(i64::from(radius))) != 0
}

/// How many bits of each byte are set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn bits(x: __m512i) -> __m512i {
    let counts = _mm512_broadcast_i32x4(_mm_set_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0));
    let half = _mm512_set1_epi8(0x0f);
    let low = _mm512_shuffle_epi8(counts, _mm512_and_si512(x, half));
    let high = _mm512_shuffle_epi8(counts, _mm512_and_si512(_mm512_srli_epi16::<4>(x), half));
    _mm512_add_epi8(low, high)
}
