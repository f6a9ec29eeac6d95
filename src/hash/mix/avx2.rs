#![allow(unsafe_code)]
//! The plain loops, compiled for AVX2.

use super::{hash_windows_plain, words_plain};
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `words`.
    pub fn words(self, hashes: &[u64], j: usize, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { words(hashes, j, out) }
    }

    /// See `hash_windows`.
    pub fn hash_windows(self, text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_windows(text, from, width, seed, out) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn words(hashes: &[u64], j: usize, out: &mut [u64]) {
    words_plain(hashes, j, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hash_windows(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    hash_windows_plain(text, from, width, seed, out);
}
