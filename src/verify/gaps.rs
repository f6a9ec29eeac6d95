#![forbid(unsafe_code)]
//! Gaps: the words of a text in no pair of neighbouring words that the other text has.

use std::ops::Range;

use crate::hash::mix;
use crate::system::memory;
use crate::system::spread::Spread;

/// Hashes that were met, in an open table that is at most half full. 0 marks a free place: it is never held.
pub struct Set(Vec<u64>, Spread);

impl Set {
    pub fn with_room(count: usize) -> Set {
        Set(memory::zeros((count * 2).next_power_of_two().max(2)), Spread::own())
    }

    /// Where the hash is, or would be.
    fn place(&self, hash: u64) -> usize {
        let mask = self.0.len() - 1;
        let mut at = self.1.of(hash) as usize & mask;
        while self.0[at] != hash && self.0[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    pub fn insert(&mut self, hash: u64) {
        let at = self.place(hash);
        self.0[at] = hash;
    }

    pub fn holds(&self, hash: u64) -> bool {
        hash != 0 && self.0[self.place(hash)] == hash
    }
}

/// How many words, in how many runs, and in the longest of them.
pub struct Gaps {
    pub words: u64,
    pub runs: u64,
    pub longest: u64,
}

/// Which of the words are in a pair of neighbouring words that the other text has.
fn covered(own: &[u64], other: &[u64]) -> Vec<bool> {
    let pair = |two: &[u64]| mix::finish(two[0] ^ two[1].rotate_left(32));
    let mut known = Set::with_room(other.len());
    other.windows(2).for_each(|two| known.insert(pair(two)));
    let mut covered = memory::zeros::<bool>(own.len());
    for (at, two) in own.windows(2).enumerate() {
        if known.holds(pair(two)) {
            covered[at] = true;
            covered[at + 1] = true;
        }
    }
    covered
}

/// Gaps of *least* words or more.
pub fn passages(own: &[u64], other: &[u64], least: usize) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in covered(own, other).iter().enumerate().filter(|(_, covered)| !**covered) {
        match found.last_mut() {
            Some(last) if at == last.end => last.end = at + 1,
            _ => memory::push(&mut found, at..at + 1),
        }
    }
    found.retain(|passage| passage.len() >= least);
    found
}

impl Gaps {
    pub fn of(own: &[u64], other: &[u64]) -> Gaps {
        let covered = covered(own, other);
        let mut gaps = Gaps { words: 0, runs: 0, longest: 0 };
        for run in covered.split(|covered| *covered).filter(|run| !run.is_empty()) {
            gaps.words += run.len() as u64;
            gaps.runs += 1;
            gaps.longest = gaps.longest.max(run.len() as u64);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_words_in_no_known_pair() {
        let gaps = Gaps::of(&[1, 2, 3, 9, 8, 4, 5, 7], &[1, 2, 3, 4, 5]);
        assert_eq!((gaps.words, gaps.runs, gaps.longest), (3, 2, 2));
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one passage")]
    fn passages_are_long_gaps() {
        let own = [1, 2, 3, 91, 92, 5, 6, 7, 93, 8, 9];
        let other: Vec<u64> = (1..20).collect();
        assert_eq!(passages(&own, &other, 2), [3..5]);
        assert_eq!(passages(&own, &other, 1), [3..5, 8..9]);
    }
}
