#![allow(unsafe_code)]
//! Where characters begin and where spaces are, 32 bytes at a time.

use std::arch::x86_64::*;

use super::offsets;
use crate::system::simd::Avx2;

impl Avx2 {
    /// Append *base* plus the offsets of the bytes of *text* that are spaces.
    pub fn spaces(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: `in_force` found the instructions.
        unsafe { spaces(text, base, out) }
    }

    /// Append *base* plus the offsets of the bytes of *text* that begin a character.
    pub fn characters(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: `in_force` found the instructions.
        unsafe { characters(text, base, out) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn spaces(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |block| mask_of(block, |bytes| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b' ' as i8))));
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn characters(text: &[u8], base: u32, out: &mut Vec<u32>) {
    // As signed numbers the bytes that continue a character are the lowest ones.
    offsets(text, base, out, |block| mask_of(block, |bytes| _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(0xbf_u8 as i8))));
}

#[inline]
#[target_feature(enable = "avx2")]
fn mask_of(block: &[u8; 64], found: impl Fn(__m256i) -> __m256i) -> u64 {
    // SAFETY: a block is 64 bytes.
    let (low, high) =
        unsafe { (_mm256_loadu_si256(block.as_ptr().cast()), _mm256_loadu_si256(block.as_ptr().add(32).cast())) };
    let mask = |bytes| u64::from(_mm256_movemask_epi8(found(bytes)) as u32);
    mask(low) | mask(high) << 32
}
