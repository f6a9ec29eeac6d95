#![allow(unsafe_code)]
//! The different values of a list, gathered eight, or of grams sixteen, at once.

use std::arch::x86_64::*;

use crate::frequencies::grams::Grams;
use crate::frequencies::grams::avx512::{letters, windows};
use crate::system::simd::Avx512Base;

impl Avx512Base {
    /// See `tally::gather`.
    pub fn gather(self, all: &[u64], tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { gather(all, tallies, values, counts) }
    }

    /// See `tally::gather`.
    pub fn gather_grams(self, all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { gather_grams(all, tallies, values, counts) }
    }
}

/// See `tally::gather`; there is room for sixteen grams more than there are.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
pub fn gather_grams(all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
    assert!(all.len() == tallies.len(), "a tally for each gram");
    assert!(values.len() >= all.len() + 16 && counts.len() >= all.len() + 16, "room for sixteen more");
    let mut different = 0;
    for (part, tallies) in tallies.chunks(16).enumerate() {
        let here = ((1u32 << tallies.len()) - 1) as __mmask16;
        // SAFETY: the mask reads as many as there are, and at most as many as were read before are in front of
        // the sixteen that are written.
        unsafe {
            let tallies = _mm256_maskz_loadu_epi16(here, tallies.as_ptr().cast());
            let some = windows(letters(all, part * 16), 0);
            let kept = _mm256_test_epi16_mask(tallies, tallies);
            let numbers = _mm512_maskz_compress_epi32(kept, _mm512_cvtepu16_epi32(tallies));
            let some = _mm512_maskz_compress_epi32(kept, some);
            _mm512_storeu_si512(values.as_mut_ptr().add(different).cast(), some);
            _mm512_storeu_si512(counts.as_mut_ptr().add(different).cast(), numbers);
            different += kept.count_ones() as usize;
        }
    }
    different
}

/// See `tally::gather`; there is room for eight values more than there are.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
pub fn gather(all: &[u64], tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
    assert!(all.len() == tallies.len(), "a tally for each value");
    assert!(values.len() >= all.len() + 8 && counts.len() >= all.len() + 8, "room for eight more");
    let mut different = 0;
    for (some, tallies) in all.chunks(8).zip(tallies.chunks(8)) {
        let here = ((1u32 << some.len()) - 1) as __mmask8;
        // SAFETY: the mask reads as many as there are, and at most as many as were read before are in front of
        // the eight that are written.
        unsafe {
            let tallies = _mm_maskz_loadu_epi16(here, tallies.as_ptr().cast());
            let some = _mm512_maskz_loadu_epi64(here, some.as_ptr().cast());
            let kept = _mm_test_epi16_mask(tallies, tallies);
            let numbers = _mm256_cvtepu16_epi32(tallies);
            _mm512_storeu_si512(values.as_mut_ptr().add(different).cast(), _mm512_maskz_compress_epi64(kept, some));
            let numbers = _mm256_maskz_compress_epi32(kept, numbers);
            _mm256_storeu_si256(counts.as_mut_ptr().add(different).cast(), numbers);
            different += kept.count_ones() as usize;
        }
    }
    different
}
