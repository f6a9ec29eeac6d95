#![forbid(unsafe_code)]
//! Entries and queries one by one, as `compat.simhash.SimhashIndex` has them.

pub mod census;
pub mod long;
pub mod names;
pub mod short;
pub mod stream;

use std::ops::Range;

use long::Long;
use short::Entries;
use stream::Stream;

/// An empty stream index. A block is crowded when more than `limit` entries share its bits.
pub fn stream(bits: usize, radius: u32, blocks: &[Range<usize>], limit: u32) -> Box<dyn Stream> {
    match bits.div_ceil(64) {
        0 | 1 => Box::new(Entries::<1>::new(bits, radius, blocks, limit)),
        2 => Box::new(Entries::<2>::new(bits, radius, blocks, limit)),
        3 | 4 => Box::new(Entries::<4>::new(bits, radius, blocks, limit)),
        5..=8 => Box::new(Entries::<8>::new(bits, radius, blocks, limit)),
        9..=16 => Box::new(Entries::<16>::new(bits, radius, blocks, limit)),
        _ => Box::new(Long::new(bits, radius, blocks, limit)),
    }
}
