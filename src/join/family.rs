#![forbid(unsafe_code)]
//! Families: tables whose keys have many bits in common, so that rows are moved once for all of them.

use std::ops::Range;

use crate::hamming::keys::Key;
use crate::join::job::Mask;

/// A part of the rows is about this many bytes, so that it stays in the second-level cache.
pub const PART: usize = 128 << 10;
pub const MAX_PARTS: usize = 2048;
/// Fewer parts are cheap to move, and tables of their own are more work to share among threads.
pub const MANY_PARTS: usize = 16;

/// Tables whose rows are moved together, to `parts` parts by bits that the keys of all have.
pub struct Family {
    pub tables: Range<usize>,
    pub parts: usize,
    pub split: Key,
    /// For each table, the bits of its key that the parts leave.
    pub rest: Vec<Key>,
}

impl Family {
    pub fn of<const W: usize>(rows: usize, tables: &[Mask<W>], numbers: Range<usize>) -> Vec<Family> {
        let wanted = (rows * size_of::<[u64; W]>() / PART).next_power_of_two().clamp(1, MAX_PARTS).trailing_zeros();
        let mut families = Vec::new();
        let mut first = numbers.start;
        while first < numbers.end {
            let mut common = tables[first];
            let needed = wanted.min(ones(&common));
            let mut end = first + 1;
            while end < numbers.end && 1 << needed >= MANY_PARTS {
                let shared = and(&common, &tables[end]);
                if ones(&shared) < needed {
                    break;
                }
                common = shared;
                end += 1;
            }
            let split = upper_bits(common, needed);
            let others = split.map(|word| !word);
            families.push(Family {
                tables: first..end,
                parts: 1 << needed,
                split: Key::new(&split),
                rest: tables[first..end].iter().map(|table| Key::new(&and(table, &others))).collect(),
            });
            first = end;
        }
        families
    }

    /// The number of each table, and the bits that its buckets are made by.
    pub fn members(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.tables.clone().zip(&self.rest)
    }
}

pub fn and<const W: usize>(one: &[u64; W], two: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|word| one[word] & two[word])
}

pub fn ones<const W: usize>(mask: &[u64; W]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// The highest `count` bits of `mask`.
pub fn upper_bits<const W: usize>(mut mask: [u64; W], count: u32) -> [u64; W] {
    let mut surplus = ones(&mask) - count;
    for word in &mut mask {
        while surplus > 0 && *word != 0 {
            *word &= *word - 1;
            surplus -= 1;
        }
    }
    mask
}
