#![allow(unsafe_code)]
//! Grams: sixteen at a time are numbered by two products of neighbours.

use std::arch::x86_64::*;

use crate::frequencies::grams::{self, GRAMS, Grams, NUMBERS, START};
use crate::hash::mix::avx512::finish_all;
use crate::system::simd::Avx512;

impl Avx512 {
    /// See `grams::Census::add`.
    pub fn count_grams(self, grams: Grams<'_>, document: u32, seen: &mut [u32; GRAMS]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { count(grams, document, seen) }
    }

    /// See `grams::look_up`.
    pub fn look_up_grams(self, table: &[u8; GRAMS], grams: &[u32], out: &mut [u8]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { look_up(table, grams, out) }
    }

    /// See `grams::hashes`.
    pub fn gram_hashes(self, grams: &[u32], out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hashes(grams, out) }
    }
}

/// The byte shuffles that make runs of four of 64 bytes: the first sixteen, the next, and the next.
pub const WINDOWS: [[u8; 64]; 3] = {
    let mut shuffles = [[0; 64]; 3];
    let mut at = 0;
    while at < 192 {
        shuffles[at / 64][at % 64] = (at / 4 + at % 4) as u8;
        at += 1;
    }
    shuffles
};

/// The 64 bytes of the text at the beginning of a gram.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn letters(grams: Grams<'_>, row: usize) -> __m512i {
    let letters = &grams.text()[row..row + 64];
    // SAFETY: this many were taken.
    unsafe { _mm512_loadu_si512(letters.as_ptr().cast()) }
}

/// The numbers of 64 characters in the alphabet.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn numbers(letters: __m512i) -> __m512i {
    let (low, high) = NUMBERS.split_at(64);
    // SAFETY: two halves of 64 bytes.
    let (low, high) = unsafe { (_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast())) };
    _mm512_permutex2var_epi8(low, letters, high)
}

/// `grams::place` of sixteen grams whose characters have these numbers. It is below `GRAMS`, whatever they were.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn places(numbers: __m512i) -> [u32; 16] {
    let pairs = _mm512_maddubs_epi16(numbers, _mm512_set1_epi16(38 | (1 << 8)));
    let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32((38 * 38) | (1 << 16)));
    let mut places = [0; 16];
    // SAFETY: sixteen numbers.
    unsafe { _mm512_storeu_si512(places.as_mut_ptr().cast(), fours) };
    places
}

/// See `grams::Census::add`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn count(grams: Grams<'_>, document: u32, seen: &mut [u32; GRAMS]) {
    let mut begin = 0;
    while begin < grams.len() {
        let numbers = numbers(letters(grams, begin));
        for windows in &WINDOWS {
            // SAFETY: a shuffle is 64 bytes.
            let windows = unsafe { _mm512_loadu_si512(windows.as_ptr().cast()) };
            let places = places(_mm512_permutexvar_epi8(windows, numbers));
            for place in &places[..16.min(grams.len().saturating_sub(begin))] {
                // SAFETY: a place is below the number of grams.
                grams::count(unsafe { seen.get_unchecked_mut(*place as usize) }, document);
            }
            begin += 16;
        }
    }
}

/// See `grams::look_up`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn look_up(table: &[u8; GRAMS], grams: &[u32], out: &mut [u8]) {
    assert_eq!(grams.len(), out.len(), "an answer for each");
    for (grams, out) in grams.chunks(16).zip(out.chunks_mut(16)) {
        let here = ((1u32 << grams.len()) - 1) as __mmask16;
        // SAFETY: the mask reads as many as there are.
        let letters = unsafe { _mm512_maskz_loadu_epi32(here, grams.as_ptr().cast()) };
        for (place, out) in places(numbers(letters)).into_iter().zip(out) {
            // SAFETY: a place is below the number of grams.
            *out = unsafe { *table.get_unchecked(place as usize) };
        }
    }
}

/// See `grams::hashes`.
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
pub fn hashes(grams: &[u32], out: &mut [u64]) {
    assert_eq!(grams.len(), out.len(), "a hash for each");
    let start = _mm512_set1_epi64(START as i64);
    for (grams, out) in grams.chunks(16).zip(out.chunks_mut(16)) {
        let here = ((1u32 << grams.len()) - 1) as __mmask16;
        // SAFETY: the mask reads as many as there are.
        let some = unsafe { _mm512_maskz_loadu_epi32(here, grams.as_ptr().cast()) };
        let halves = [_mm512_castsi512_si256(some), _mm512_extracti64x4_epi64::<1>(some)];
        let mut wide = [start; 2];
        for (wide, half) in wide.iter_mut().zip(halves) {
            *wide = _mm512_xor_si512(start, _mm512_cvtepu32_epi64(half));
        }
        let [low, high] = finish_all(wide);
        // SAFETY: the masks write as many as there are.
        unsafe {
            _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), here as __mmask8, low);
            _mm512_mask_storeu_epi64(out.as_mut_ptr().cast::<i64>().wrapping_add(8), (here >> 8) as __mmask8, high);
        }
    }
}
