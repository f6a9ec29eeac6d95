#![allow(unsafe_code)]
//! Grams: sixteen at a time are numbered by two products of neighbours.

use std::arch::x86_64::*;

use crate::frequencies::grams::{self, GRAMS, Grams, NUMBERS, START};
use crate::hash::mix::avx512::finish_all;
use crate::system::simd::Avx512Base;

impl Avx512Base {
    /// See `grams::SeenGrams::add`.
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

/// The four-byte words that a quarter of sixteen runs of four is cut from, for the first sixteen of 64 bytes, the next,
/// and the next.
const WORDS: [[u32; 16]; 3] = {
    let mut words = [[0; 16]; 3];
    let mut at = 0;
    while at < 48 {
        words[at / 16][at % 16] = (at / 4 + at % 4 % 2) as u32;
        at += 1;
    }
    words
};

/// Runs of four of 64 bytes: the sixteen that begin at 16 * *part*, of three parts.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn windows(bytes: __m512i, part: usize) -> __m512i {
    // SAFETY: sixteen numbers are 64 bytes.
    let words = unsafe { _mm512_loadu_si512(WORDS[part].as_ptr().cast()) };
    let runs = _mm_set_epi8(6, 5, 4, 3, 5, 4, 3, 2, 4, 3, 2, 1, 3, 2, 1, 0);
    _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, bytes), _mm512_broadcast_i32x4(runs))
}

/// The 64 bytes of the text at the beginning of a gram.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn letters(grams: Grams<'_>, row: usize) -> __m512i {
    let letters = &grams.text()[row..row + 64];
    // SAFETY: this many were taken.
    unsafe { _mm512_loadu_si512(letters.as_ptr().cast()) }
}

/// The numbers of 64 characters in the alphabet, which has digits, small letters, and `_` in the gap behind z.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn numbers(letters: __m512i) -> __m512i {
    let row = |from: usize| {
        // SAFETY: a row is 16 bytes.
        _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(NUMBERS[from..from + 16].as_ptr().cast()) })
    };
    let last = _mm512_mask_mov_epi8(row(0x70), 0x8000_8000_8000_8000, row(0x50));
    let high = _mm512_and_si512(letters, _mm512_set1_epi8(0x70));
    let of = |high_bits: i8| _mm512_cmpeq_epi8_mask(high, _mm512_set1_epi8(high_bits));
    let low = _mm512_and_si512(letters, _mm512_set1_epi8(0x0f));
    let digits = _mm512_maskz_shuffle_epi8(of(0x30), row(0x30), low);
    let letters = _mm512_mask_shuffle_epi8(digits, of(0x60), row(0x60), low);
    _mm512_mask_shuffle_epi8(letters, of(0x70) | of(0x50), last, low)
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

/// See `grams::SeenGrams::add`.
#[target_feature(enable = "avx512f,avx512bw")]
pub fn count(grams: Grams<'_>, document: u32, seen: &mut [u32; GRAMS]) {
    let mut begin = 0;
    while begin < grams.len() {
        let numbers = numbers(letters(grams, begin));
        for part in 0..3 {
            let places = places(windows(numbers, part));
            for place in &places[..16.min(grams.len().saturating_sub(begin))] {
                // SAFETY: a place is below the number of grams.
                grams::count(unsafe { seen.get_unchecked_mut(*place as usize) }, document);
            }
            begin += 16;
        }
    }
}

/// See `grams::look_up`.
#[target_feature(enable = "avx512f,avx512bw")]
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
