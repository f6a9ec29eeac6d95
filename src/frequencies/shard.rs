#![forbid(unsafe_code)]
//! A part of the exact table: features by their hash, five in a line of the cache, with their counts.

use crate::system::memory;
use crate::system::simd;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};
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
        // All are looked at: where a key is cannot be foretold, and a branch on it costs more.
        let mut found = SLOTS;
        for (at, own) in self.keys.iter().enumerate().rev() {
            found = if *own == key || *own == 0 { at } else { found };
        }
        found
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
        while !keys.is_empty() {
            keys = &keys[self.add_some(keys)..];
            if !keys.is_empty() {
                self.grow();
            }
        }
    }

    /// Count each of *keys* once, until there is no room for a new one; how many are done.
    fn add_some(&mut self, keys: &[u64]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx512Base::in_force() {
            return cpu.add_counts(self, keys);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx2::in_force() {
            return cpu.add_counts(self, keys);
        }
        self.add_counts(keys, Slots::place)
    }

    /// See `add_some`; *find* is `Slots::place`.
    #[inline(always)]
    pub fn add_counts(&mut self, keys: &[u64], find: impl Fn(&Slots, u64) -> usize) -> usize {
        let before = self.room();
        let (lines, mut room, mut done) = (&mut self.lines[..], before, keys.len());
        for (at, key) in keys.iter().enumerate() {
            if let Some(later) = keys.get(at + AHEAD) {
                simd::prefetch(&lines[line_of(lines.len(), *later, self.spread)]);
            }
            let mut line = line_of(lines.len(), *key, self.spread);
            let mut place = find(&lines[line], *key);
            while place == SLOTS {
                line = (line + 1) & (lines.len() - 1);
                place = find(&lines[line], *key);
            }
            let slots = &mut lines[line];
            if slots.keys[place] == 0 {
                if room == 0 {
                    done = at;
                    break;
                }
                room -= 1;
                slots.keys[place] = *key;
            }
            slots.counts[place] = slots.counts[place].saturating_add(1);
        }
        self.used += before - room;
        done
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

/// This many of the same value, in large pages where they are many.
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
