#![forbid(unsafe_code)]
//! The words of one text, and hashes of all their runs.
//!
//! A run is hashed as a polynomial over the hashes of its words, so that from the hashes of all beginnings of the
//! text follows that of any run at once. Seed and base are drawn again in each process: nobody can choose texts whose
//! runs collide. No answer depends on them, because runs are compared word by word.

use crate::hash::mix;
use crate::system::memory;
use crate::system::spread::Spread;
use crate::text::features::spaces;
use crate::text::normalize::{Normalization, Text};
use crate::verify::tokens::for_each_token;

/// The prime 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;

fn reduced(value: u128) -> u64 {
    let folded = (value as u64 & PRIME) + (value >> 61) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

/// The product of two numbers below the prime.
#[inline(always)]
fn times(one: u64, other: u64) -> u64 {
    reduced(u128::from(one) * u128::from(other))
}

/// How runs are hashed.
#[derive(Clone, Copy)]
pub struct Key {
    seed: u64,
    base: u64,
    spread: Spread,
}

impl Key {
    /// The one of this process.
    pub fn own() -> Key {
        let spread = Spread::own();
        Key { seed: spread.of(1), base: spread.of(2) % (PRIME - 2) + 2, spread }
    }

    /// What a run of *count* words is hashed with.
    pub fn of_runs(self, count: usize) -> RunKey {
        RunKey { count, power: (0..count).fold(1, |power, _| times(power, self.base)), spread: self.spread }
    }
}

/// How runs of one length are hashed.
#[derive(Clone, Copy)]
pub struct RunKey {
    pub count: usize,
    power: u64,
    spread: Spread,
}

/// The words of a text, each with a space behind it.
#[derive(Default)]
pub struct Words {
    pub bytes: Vec<u8>,
    /// Where each word begins, and where the next one would.
    pub starts: Vec<u32>,
    /// The hash of the words before each.
    beginnings: Vec<u64>,
    hashes: Vec<u64>,
    ends: Vec<u32>,
    normalized: Vec<u8>,
    edges: Vec<u32>,
}

impl Words {
    /// Take the words of *text* in place of those that were here.
    pub fn read<'t>(&mut self, text: impl Into<Text<'t>>) {
        let is_ascii = Normalization::Text.apply(text, &mut self.normalized);
        if is_ascii {
            self.take_ascii();
            return;
        }
        let normalized = std::str::from_utf8(&self.normalized).unwrap_or_default();
        self.bytes.clear();
        self.starts.clear();
        // CJK characters come with no space between them, and get one.
        memory::more_room(&mut self.bytes, self.normalized.len() + 1 + mix::PADDING);
        let (bytes, starts) = (&mut self.bytes, &mut self.starts);
        for_each_token(normalized, &mut self.edges, |word| {
            memory::push(starts, bytes.len() as u32);
            memory::append(bytes, word.as_bytes());
            memory::push(bytes, b' ');
        });
        memory::push(starts, bytes.len() as u32);
    }

    /// The same, where a normalised text is its words as they are wanted.
    fn take_ascii(&mut self) {
        std::mem::swap(&mut self.bytes, &mut self.normalized);
        self.starts.clear();
        self.edges.clear();
        memory::push(&mut self.starts, 0);
        if self.bytes.is_empty() {
            return;
        }
        memory::more_room(&mut self.bytes, 1 + mix::PADDING);
        self.bytes.push(b' ');
        spaces(&self.bytes, 0..self.bytes.len(), &mut self.edges);
        memory::more_room(&mut self.starts, self.edges.len());
        self.starts.extend(self.edges.iter().map(|edge| edge + 1));
    }

    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The bytes of *count* words from *at* on, with their spaces.
    #[inline(always)]
    pub fn run(&self, at: usize, count: usize) -> &[u8] {
        &self.bytes[self.starts[at] as usize..self.starts[at + count] as usize]
    }

    /// Prepare to hash runs.
    pub fn hash(&mut self, key: Key) {
        let written = self.bytes.len();
        memory::resize(&mut self.bytes, written + mix::PADDING, 0);
        self.beginnings.clear();
        memory::more_room(&mut self.beginnings, self.starts.len());
        let (mut hash, count) = (0, self.len());
        self.ends.clear();
        memory::more_room(&mut self.ends, count);
        self.ends.extend(self.starts.iter().skip(1).map(|start| start - 1));
        memory::at_least(&mut self.hashes, count);
        let hashes = &mut self.hashes[..count];
        mix::hash_parts(&self.bytes, &self.starts[..count], &self.ends, key.seed, hashes);
        self.beginnings.push(hash);
        for word in hashes {
            let sum = times(hash, key.base) + (*word & PRIME);
            hash = if sum >= PRIME { sum - PRIME } else { sum };
            self.beginnings.push(hash);
        }
        self.bytes.truncate(written);
    }

    /// The hash of the run that begins *at* a word, after `hash`.
    #[inline(always)]
    pub fn hash_of(&self, at: usize, key: &RunKey) -> u64 {
        let sum = self.beginnings[at + key.count] + PRIME - times(self.beginnings[at], key.power);
        key.spread.of(if sum >= PRIME { sum - PRIME } else { sum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_normalised_text_and_cjk_characters() {
        let mut words = Words::default();
        words.read("Ab, 12 漢字X");
        let all: Vec<&[u8]> = (0..words.len()).map(|at| words.run(at, 1)).collect();
        assert_eq!(all, ["ab ", "12 ", "漢 ", "字 ", "x "].map(str::as_bytes));
        for nothing in ["", " -- ", "。"] {
            words.read(nothing);
            assert_eq!((words.len(), words.bytes.len()), (0, 0));
        }
        words.read("One, TWO.  three");
        assert_eq!(words.run(0, 3), b"one two three ");
        assert_eq!(words.run(1, 1), b"two ");
    }

    #[test]
    fn equal_runs_have_one_hash_wherever_they_stand() {
        let (mut one, mut other) = (Words::default(), Words::default());
        one.read("zero the same run of words here");
        other.read("The SAME run -- of words, elsewhere and the same run of words");
        let key = Key::own();
        one.hash(key);
        other.hash(key);
        let runs = key.of_runs(5);
        assert_eq!(one.hash_of(1, &runs), other.hash_of(0, &runs));
        assert_eq!(one.hash_of(1, &runs), other.hash_of(7, &runs));
        assert_ne!(one.hash_of(0, &runs), other.hash_of(0, &runs));
    }
}
