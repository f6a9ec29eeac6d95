#![allow(unsafe_code)]
//! Grams: eight at a time are numbered by two products of neighbours.

use std::arch::x86_64::*;

use crate::frequencies::grams::{self, GRAMS, Grams, NUMBERS, hashes_plain};
use crate::system::simd::Avx2;

impl Avx2 {
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

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hashes(grams: &[u32], out: &mut [u64]) {
    hashes_plain(grams, out);
}

/// The numbers of 32 characters in the alphabet, which has digits, small letters, and `_` in the gap behind z.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers(letters: __m256i) -> __m256i {
    let row = |from: usize| {
        // SAFETY: a row is 16 bytes.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(NUMBERS[from..from + 16].as_ptr().cast()) })
    };
    // Of the characters with these high bits; 0 of the others, whose sum has the bit that makes a shuffle give 0.
    let of = |letters: __m256i, high_bits: i8, row: __m256i| {
        let low = _mm256_xor_si256(letters, _mm256_set1_epi8(high_bits));
        _mm256_shuffle_epi8(row, _mm256_adds_epu8(low, _mm256_set1_epi8(0x70)))
    };
    let last = _mm256_insert_epi8::<31>(_mm256_insert_epi8::<15>(row(0x70), NUMBERS[0x5f] as i8), NUMBERS[0x5f] as i8);
    let like_last = _mm256_or_si256(letters, _mm256_set1_epi8(0x20));
    let digits = of(letters, 0x30, row(0x30));
    _mm256_or_si256(_mm256_or_si256(digits, of(letters, 0x60, row(0x60))), of(like_last, 0x70, last))
}

/// `grams::place` of eight grams whose characters have these numbers. It is below `GRAMS`, whatever they were.
#[inline]
#[target_feature(enable = "avx2")]
fn places(numbers: __m256i) -> [u32; 8] {
    let pairs = _mm256_maddubs_epi16(numbers, _mm256_set1_epi16(38 | (1 << 8)));
    let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32((38 * 38) | (1 << 16)));
    let mut places = [0; 8];
    // SAFETY: eight numbers.
    unsafe { _mm256_storeu_si256(places.as_mut_ptr().cast(), fours) };
    places
}

/// The first eight runs of four of sixteen bytes, which both halves have.
#[inline]
#[target_feature(enable = "avx2")]
pub fn windows(bytes: __m256i) -> __m256i {
    let runs = _mm256_setr_epi8(
        0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7, 5, 6, 7, 8, 6, 7, 8, 9, 7, 8, 9, 10,
    );
    _mm256_shuffle_epi8(bytes, runs)
}

/// See `grams::SeenGrams::add`.
#[target_feature(enable = "avx2")]
fn count(grams: Grams<'_>, document: u32, seen: &mut [u32; GRAMS]) {
    for begin in (0..grams.len()).step_by(24) {
        let letters = &grams.text()[begin..begin + 32];
        // SAFETY: this many were taken.
        let numbers = numbers(unsafe { _mm256_loadu_si256(letters.as_ptr().cast()) });
        let eights = [
            _mm256_permute4x64_epi64::<0b01_00_01_00>(numbers),
            _mm256_permute4x64_epi64::<0b10_01_10_01>(numbers),
            _mm256_permute4x64_epi64::<0b11_10_11_10>(numbers),
        ];
        for (part, eight) in eights.into_iter().enumerate() {
            let places = places(windows(eight));
            for place in &places[..8.min(grams.len().saturating_sub(begin + 8 * part))] {
                // SAFETY: a place is below the number of grams.
                grams::count(unsafe { seen.get_unchecked_mut(*place as usize) }, document);
            }
        }
    }
}

/// See `grams::look_up`.
#[target_feature(enable = "avx2")]
fn look_up(table: &[u8; GRAMS], grams: &[u32], out: &mut [u8]) {
    assert_eq!(grams.len(), out.len(), "an answer for each");
    let (eights, rest) = grams.as_chunks::<8>();
    let (answers, last) = out.as_chunks_mut::<8>();
    for (eight, answers) in eights.iter().zip(answers) {
        // SAFETY: eight grams are 32 bytes.
        let letters = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
        for (place, answer) in places(numbers(letters)).into_iter().zip(answers) {
            // SAFETY: a place is below the number of grams.
            *answer = unsafe { *table.get_unchecked(place as usize) };
        }
    }
    for (gram, answer) in rest.iter().zip(last) {
        *answer = table[grams::place(*gram)];
    }
}
