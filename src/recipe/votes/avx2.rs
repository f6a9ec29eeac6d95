#![allow(unsafe_code)]
//! The plain loops, compiled for AVX2; and runs of bytes, whose hashes are counted as they are made.

use super::{Part, weigh_plain};
use crate::hash::mix::PADDING;
use crate::hash::mix::avx2::{LONG, NARROW, SHORT, Windows, further};
use crate::recipe::slices::{Block, Row, Sums};
use crate::system::simd::Avx2;

/// Words of a block.
const COUNT: usize = size_of::<Block>() / size_of::<u64>();

impl Avx2 {
    /// See `count`.
    pub fn count(self, words: &[u64], sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { count(words, sums) }
    }

    /// See `count_blocks`.
    pub fn count_blocks(self, text: &[u8], windows: usize, width: usize, seed: u64, slices: &mut [Sums]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { count_blocks(text, windows, width, seed, slices) }
    }

    /// See `weigh`.
    pub fn weigh(self, rows: &[Row], part: &Part, sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { weigh(rows, part, sums) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn count(words: &[u64], sums: &mut Sums) {
    sums.count(words);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn weigh(rows: &[Row], part: &Part, sums: &mut Sums) {
    weigh_plain(rows, part, sums);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn count_blocks(text: &[u8], windows: usize, width: usize, seed: u64, slices: &mut [Sums]) -> usize {
    assert!(width >= 1 && text.len() >= windows + width + PADDING - 1, "windows stand in a padded text");
    let hashing = Windows::new(width, seed);
    match width {
        ..=4 => blocks_like::<NARROW>(text, windows, &hashing, slices),
        5..=8 => blocks_like::<SHORT>(text, windows, &hashing, slices),
        _ => blocks_like::<LONG>(text, windows, &hashing, slices),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn blocks_like<const KIND: u8>(text: &[u8], windows: usize, hashing: &Windows, slices: &mut [Sums]) -> usize {
    let all = windows / COUNT * COUNT;
    for at in (0..all).step_by(COUNT) {
        let hashes: Block = hashing.rows::<KIND, _>(text, at);
        let [first, others @ ..] = &mut *slices else { break };
        first.count_block(&hashes);
        for (j, sums) in others.iter_mut().enumerate() {
            sums.count_block(&further(&hashes, j + 1));
        }
    }
    all
}
