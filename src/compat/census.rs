#![forbid(unsafe_code)]
//! The census of an index: which blocks of a fingerprint more entries share than a limit.
//!
//! Entries are counted in cells, where each holds many keys of a block. A cell of few entries has no
//! crowded key. The keys of other cells are counted one by one, from the first query on that
//! meets such a cell.

use std::collections::HashMap;
use std::ops::Range;

use crate::hash::mix::finish;
use crate::system::memory::{more_keys, zeros};

pub struct Census<const W: usize> {
    blocks: Vec<Block<W>>,
    limit: u32,
    entries: usize,
}

struct Block<const W: usize> {
    mask: [u64; W],
    /// A power of two of them.
    cells: Vec<u32>,
    /// No cell ever had more.
    most: u32,
    /// The counts of keys, by cell; only of cells with more than half the limit.
    keys: HashMap<u32, HashMap<[u64; W], u32>>,
}

const MOST_PER_CELL: usize = 64;

impl<const W: usize> Census<W> {
    /// Of blocks that are given as their bits.
    pub fn new(blocks: &[Range<usize>], limit: u32) -> Census<W> {
        let block = |bits: &Range<usize>| {
            let mut mask = [0; W];
            for bit in bits.clone() {
                mask[bit / 64] |= 1 << (bit % 64);
            }
            Block { mask, cells: vec![0], most: 0, keys: HashMap::new() }
        };
        Census { blocks: blocks.iter().map(block).collect(), limit, entries: 0 }
    }

    /// Count new rows; `all` calls its argument with every row, also the new ones.
    pub fn add(&mut self, rows: &[[u64; W]], all: impl Fn(&mut dyn FnMut(&[u64; W]))) {
        self.entries += rows.len();
        for block in &mut self.blocks {
            if self.entries > block.cells.len() * MOST_PER_CELL {
                block.cells = Vec::new(); // freed before more is allocated
                block.cells = zeros((4 * self.entries / MOST_PER_CELL).next_power_of_two());
                block.most = 0;
                block.keys.clear();
                all(&mut |row| block.add(row, self.limit / 2));
            } else {
                rows.iter().for_each(|row| block.add(row, self.limit / 2));
            }
        }
    }

    pub fn remove(&mut self, row: &[u64; W]) {
        self.entries -= 1;
        for block in &mut self.blocks {
            block.remove(row, self.limit / 2);
        }
    }

    /// The number of each block of a fingerprint that more than the limit share, and how many do.
    #[inline]
    pub fn crowds(&mut self, row: &[u64; W], all: impl Fn(&mut dyn FnMut(&[u64; W]))) -> Vec<(usize, u32)> {
        let mut crowds = Vec::new();
        for (number, block) in self.blocks.iter_mut().enumerate() {
            if block.most > self.limit && block.cells[block.cell(&block.key(row))] > self.limit {
                let count = block.count(row, self.limit / 2, &all);
                if count > self.limit {
                    crowds.push((number, count));
                }
            }
        }
        crowds
    }
}

impl<const W: usize> Block<W> {
    #[inline(always)]
    fn key(&self, row: &[u64; W]) -> [u64; W] {
        std::array::from_fn(|word| row[word] & self.mask[word])
    }

    #[inline(always)]
    fn cell(&self, key: &[u64; W]) -> usize {
        key.iter().fold(0, |hash, word| finish(hash ^ word)) as usize & (self.cells.len() - 1)
    }

    fn add(&mut self, row: &[u64; W], half: u32) {
        let key = self.key(row);
        let cell = self.cell(&key);
        self.cells[cell] += 1;
        self.most = self.most.max(self.cells[cell]);
        if self.cells[cell] > half
            && let Some(keys) = self.keys.get_mut(&(cell as u32))
        {
            more_keys(keys, 1);
            *keys.entry(key).or_default() += 1;
        }
    }

    fn remove(&mut self, row: &[u64; W], half: u32) {
        let key = self.key(row);
        let cell = self.cell(&key);
        self.cells[cell] -= 1;
        if self.cells[cell] <= half {
            self.keys.remove(&(cell as u32));
        } else if let Some(keys) = self.keys.get_mut(&(cell as u32)) {
            *keys.entry(key).or_default() -= 1;
        }
    }

    /// How many entries share the key of a row whose cell has more than half the limit.
    fn count(&mut self, row: &[u64; W], half: u32, all: impl Fn(&mut dyn FnMut(&[u64; W]))) -> u32 {
        let key = self.key(row);
        let cell = self.cell(&key) as u32;
        if !self.keys.contains_key(&cell) {
            // All keys that may be needed next are counted in the same pass.
            self.keys.clear();
            all(&mut |row| {
                let key = self.key(row);
                let cell = self.cell(&key);
                if self.cells[cell] > half {
                    more_keys(&mut self.keys, 1);
                    let keys = self.keys.entry(cell as u32).or_default();
                    more_keys(keys, 1);
                    *keys.entry(key).or_default() += 1;
                }
            });
        }
        self.keys.get(&cell).and_then(|keys| keys.get(&key)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::split_mix;

    #[test]
    fn crowds_are_those_that_counting_all_finds() {
        let mut state = 5;
        let blocks = [0..21, 21..42, 42..64];
        let mut census = Census::<1>::new(&blocks, 20);
        let mut rows: Vec<[u64; 1]> = Vec::new();
        for step in 0..3000 {
            // Some keys are shared by hundreds, some by about as many as the limit.
            let mut value = split_mix(&mut state);
            for (shift, keys) in [(0, 3), (21, 100)] {
                value = value & !(0x1f_ffff << shift) | (split_mix(&mut state) % keys) << shift;
            }
            if step % 3 == 2 {
                let gone = rows.swap_remove(split_mix(&mut state) as usize % rows.len());
                census.remove(&gone);
            } else {
                rows.push([value]);
                census.add(&[[value]], |work| rows.iter().for_each(work));
            }
            let expected: Vec<(usize, u32)> = (0..blocks.len())
                .filter_map(|number| {
                    let mask = census.blocks[number].mask[0];
                    let count = rows.iter().filter(|row| (row[0] ^ value) & mask == 0).count() as u32;
                    (count > 20).then_some((number, count))
                })
                .collect();
            assert_eq!(census.crowds(&[value], |work| rows.iter().for_each(work)), expected);
        }
    }
}
