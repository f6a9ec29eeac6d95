#![forbid(unsafe_code)]
//! A part of the exact table: features by their hash, five in a line of the cache, with their counts.

use crate::system::memory;
use crate::system::simd;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx512Base;
use crate::system::spread::Spread;

/// Keys and counts in one line of the cache; places are taken in order, and 0 marks a free one.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Slots {
    pub keys: [u64; SLOTS],
    pub counts: [u32; SLOTS],
    /// So that all bytes of the line are there to be read.
    pub rest: u32,
}

/// How many features ahead memory is prefetched.
pub const AHEAD: usize = 16;
pub const SLOTS: usize = 5;

impl Slots {
    /// The place of *key*, or the free one where it belongs; `SLOTS` if all are taken by others.
    #[inline(always)]
    pub fn place(&self, key: u64) -> usize {
        self.keys.iter().position(|own| *own == key || *own == 0).unwrap_or(SLOTS)
    }
}

/// A growing table of one shard. A key that finds its line full goes into the next that is not.
pub struct Shard {
    pub lines: Vec<Slots>,
    pub used: usize,
    pub spread: Spread,
}

impl Shard {
    pub fn new() -> Shard {
        Shard { lines: memory::filled(4, Slots::default()), used: 0, spread: Spread::own() }
    }

    /// How many more keys may be added before it grows: at most three of four places are taken.
    pub fn room(&self) -> usize {
        self.lines.len() * SLOTS * 3 / 4 - self.used
    }

    /// The line and the place of *key*, or where it belongs.
    pub fn place(&self, key: u64) -> (usize, usize) {
        let mut at = line_of(self.lines.len(), key, self.spread);
        loop {
            let place = self.lines[at].place(key);
            if place < SLOTS {
                return (at, place);
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }

    pub fn add(&mut self, key: u64, count: u32) {
        let (mut at, mut place) = self.place(key);
        if self.lines[at].keys[place] == 0 {
            if self.room() == 0 {
                self.grow();
                (at, place) = self.place(key);
            }
            self.used += 1;
            self.lines[at].keys[place] = key;
        }
        let sum = &mut self.lines[at].counts[place];
        *sum = sum.saturating_add(count);
    }

    /// Count each of *keys* once.
    pub fn add_all(&mut self, mut keys: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx512Base::in_force() {
            while !keys.is_empty() {
                let room = self.room();
                let (done, new) = cpu.add_counts(&mut self.lines, keys, room, self.spread);
                self.used += new;
                keys = &keys[done..];
                if !keys.is_empty() {
                    self.grow();
                }
            }
            return;
        }
        while let Some((key, later)) = keys.split_first() {
            if let Some(later) = later.get(AHEAD) {
                simd::prefetch(&self.lines[line_of(self.lines.len(), *later, self.spread)]);
            }
            self.add(*key, 1);
            keys = later;
        }
    }

    #[cold]
    pub fn grow(&mut self) {
        let lines = large(self.lines.len() * 2, Slots::default());
        let mut larger = Shard { lines, used: self.used, spread: self.spread };
        for (key, count) in self.entries() {
            let (at, place) = larger.place(key);
            (larger.lines[at].keys[place], larger.lines[at].counts[place]) = (key, count);
        }
        *self = larger;
    }

    /// How many full lines are passed, in all, on the way to every key.
    #[cfg(test)]
    pub fn passed(&self) -> usize {
        let lines = self.lines.len();
        let passed = |(key, _)| self.place(key).0.wrapping_sub(line_of(lines, key, self.spread)) & (lines - 1);
        self.entries().map(passed).sum()
    }

    pub fn entries(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = self.lines.iter().flat_map(|slots| slots.keys.into_iter().zip(slots.counts));
        all.filter(|(key, _)| *key != 0)
    }
}

/// Where *key* belongs among a power of two of lines.
#[inline(always)]
pub fn line_of(lines: usize, key: u64, spread: Spread) -> usize {
    spread.of(key) as usize & (lines - 1)
}

/// So many of the same value, in large pages where they are many.
pub fn large<T: Clone>(count: usize, value: T) -> Vec<T> {
    let mut found = memory::room_for(count);
    found.resize(count, value);
    found
}

/// A feature whose hash is 0 is kept under 1: 0 marks free places.
#[inline(always)]
pub fn key_of(hash: u64) -> u64 {
    hash.max(1)
}
