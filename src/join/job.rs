#![forbid(unsafe_code)]
//! What stays the same through a join, and the tables it walks.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hamming::distance::Planes;
use crate::hamming::plan::Plan;
use crate::system::memory::{append, gathered};
use crate::system::parallel::Cancel;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    /// More pairs than the caller wants to hold.
    TooMany,
}

/// What stays the same through a join.
pub struct Job<'a> {
    pub radius: u32,
    pub threads: usize,
    pub cancel: &'a Cancel,
    /// At most this many pairs are kept.
    pub budget: usize,
    /// About how many bytes the moved rows may take.
    pub scratch: usize,
    /// One in this many rows is moved at a time at least, whatever it takes: each time is a pass over all rows.
    pub share: usize,
    /// Distinct rows are kept aside for the later tables, unless all rows take more bytes than this.
    pub aside: usize,
    pub held: AtomicUsize,
}

impl<'a> Job<'a> {
    pub fn new(radius: u32, threads: usize, cancel: &'a Cancel) -> Job<'a> {
        Job {
            radius,
            threads,
            cancel,
            budget: usize::MAX,
            scratch: 1 << 30,
            share: 2,
            aside: 3 << 30,
            held: AtomicUsize::new(0),
        }
    }

    pub fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_set() {
            Err(Stop::Cancelled)
        } else if self.held.load(Ordering::Relaxed) > self.budget {
            Err(Stop::TooMany)
        } else {
            Ok(())
        }
    }
}

/// Larger buckets are joined again on their other bits.
pub const GIANT: usize = 16384;
/// Hits that are turned to pairs at a time, before anyone asks whether there are too many.
pub const EMIT: usize = 4096;

/// What is known of equal rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Equal {
    /// There are none.
    None,
    /// They are to be collapsed, and the distinct rows put aside.
    Aside,
    /// They are met in every table.
    Met,
}

/// The bits that two rows must have in common for a table to compare them.
pub type Mask<const W: usize> = [u64; W];

pub fn tables_of<const W: usize>(plan: &Plan) -> Vec<Mask<W>> {
    plan.masks
        .iter()
        .map(|words| {
            let mut table = [0; W];
            table[..words.len()].copy_from_slice(words);
            table
        })
        .collect()
}

pub fn planes_of<const W: usize>(rows: &[[u64; W]]) -> Vec<Vec<u64>> {
    (0..W).map(|word| gathered(rows.iter().map(|row| row[word]))).collect()
}

pub fn views<const W: usize>(planes: &[Vec<u64>]) -> Planes<'_, W> {
    std::array::from_fn(|word| &planes[word][..])
}

pub const ROWS: usize = 512;
pub const COLUMNS: usize = 2048;

/// Put `more` at the end of `pairs`; the first come as they are.
pub fn take_over<T: Copy>(pairs: &mut Vec<T>, more: Vec<T>) {
    if pairs.is_empty() {
        *pairs = more;
    } else {
        append(pairs, &more);
    }
}

/// Whether none of the earlier tables sees the pair.
#[inline(always)]
pub fn first_sight<const W: usize>(one: &[u64; W], two: &[u64; W], earlier: &[Mask<W>]) -> bool {
    let difference: [u64; W] = std::array::from_fn(|word| one[word] ^ two[word]);
    earlier.iter().all(|table| {
        let mut common = 0;
        for (bits, mask) in difference.iter().zip(table) {
            common |= bits & mask;
        }
        common != 0
    })
}
