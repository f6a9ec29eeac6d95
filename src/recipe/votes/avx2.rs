#![allow(unsafe_code)]
//! The plain loops, compiled for AVX2.

use super::{Group, weigh_plain};
use crate::recipe::slices::Sums;
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `count`.
    pub fn count(self, words: &[u64], sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { count(words, sums) }
    }

    /// See `weigh`.
    pub fn weigh(self, words: &[u64], first: usize, groups: &[Group], sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { weigh(words, first, groups, sums) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn count(words: &[u64], sums: &mut Sums) {
    sums.count(words);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn weigh(words: &[u64], first: usize, groups: &[Group], sums: &mut Sums) {
    weigh_plain(words, first, groups, sums);
}
