#![forbid(unsafe_code)]
//! The sketch (count-min): it may say too much of a feature, and never too little.

use crate::hash::mix;

/// The place of a feature in a row of the sketch.
pub fn cell(row: usize, width: usize, hash: u64) -> usize {
    row * width + (mix::finish(hash ^ mix::GAMMA.wrapping_mul(row as u64 + 1)) as usize & (width - 1))
}

pub const ROWS: usize = 2;

/// What a sketch of this many cells says about a key.
pub fn sketched(cells: usize, key: u64, count: impl Fn(usize) -> u32) -> u32 {
    (0..ROWS).map(|row| count(cell(row, cells / ROWS, key))).min().unwrap_or(0)
}
