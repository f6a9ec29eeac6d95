#![forbid(unsafe_code)]
//! Entries and queries one by one, as `compat.simhash.SimhashIndex` has them.

pub mod census;
pub mod long;
pub mod names;
pub mod shared;
pub mod short;
pub mod stream;
pub mod words;

use std::ops::Range;

use crate::system::fault::Fault;
use long::Long;
use short::Entries;
use stream::Stream;

/// An empty stream index. A block, given by its first bit and the one after it, is crowded when more than `limit`
/// entries share its bits.
pub fn stream_of(bits: usize, radius: u32, blocks: &[(usize, usize)], limit: u32) -> Result<Box<dyn Stream>, Fault> {
    if let Some((start, end)) = blocks.iter().find(|(start, end)| start > end || *end > bits) {
        return Err(Fault::Value(format!("no bits {start} to {end} in fingerprints of {bits} bits")));
    }
    let blocks: Vec<Range<usize>> = blocks.iter().map(|(start, end)| *start..*end).collect();
    Ok(stream(bits, radius, &blocks, limit))
}

/// The same without a look at the blocks.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_outside_of_the_fingerprint_are_refused() {
        assert!(stream_of(64, 3, &[(0, 32), (32, 64)], 9).is_ok());
        for block in [(0, 65), (9, 8)] {
            let what = format!("no bits {} to {} in fingerprints of 64 bits", block.0, block.1);
            assert_eq!(stream_of(64, 3, &[block], 9).err(), Some(Fault::Value(what)));
        }
    }
}
