#![forbid(unsafe_code)]
//! Whether one text holds all that another one says: every run of three of its words, in their order.
//!
//! Profiles have the hashes of words, which reject; what they do not reject is compared word by word, so that no
//! hash decides that a text goes.

use std::collections::HashSet;

use crate::hash::mix;
use crate::system::memory;
use crate::text::normalize::{Normalization, Text};
use crate::verify::gaps::Set;
use crate::verify::tokens::for_each_token;

/// How many neighbouring words must stand together in the other text.
const RUN: usize = 3;

/// Which of two texts may go for the other: 1 for the left one, 2 for the right one, 3 for either.
pub fn sides(left: bool, right: bool) -> u8 {
    u8::from(left) + 2 * u8::from(right)
}

/// Words in runs of three; those of a text that has fewer in one run.
fn run_of(words: usize) -> usize {
    words.clamp(1, RUN)
}

/// Whether *other* may have every run of *own*, both the hashes of words; no if one is missing for sure.
pub fn may_hold(own: &[u64], other: &[u64]) -> bool {
    let run = run_of(own.len());
    let hash = |words: &[u64]| words.iter().fold(0, |hash, word| mix::finish(hash ^ word));
    if own.len() > other.len() && own.len() <= RUN {
        return false;
    }
    let mut known = Set::with_room(other.len());
    other.windows(run).for_each(|words| known.insert(hash(words)));
    own.windows(run).all(|words| known.holds(hash(words)))
}

/// Normalised texts, and where their words are.
#[derive(Default)]
pub struct Words {
    normalized: Vec<u8>,
    ends: Vec<(usize, usize)>,
    edges: Vec<u32>,
}

impl Words {
    pub fn read(&mut self, text: &[u8]) {
        Normalization::Text.apply(Text::Unchecked(text), &mut self.normalized);
        let normalized = std::str::from_utf8(&self.normalized).unwrap_or_default();
        self.ends.clear();
        let ends = &mut self.ends;
        for_each_token(normalized, &mut self.edges, |word| {
            let start = word.as_ptr() as usize - normalized.as_ptr() as usize;
            memory::push(ends, (start, start + word.len()));
        });
    }

    /// Every run of that many words.
    fn runs(&self, run: usize) -> impl Iterator<Item = [&[u8]; RUN]> {
        self.ends.windows(run).map(|words| {
            let mut found: [&[u8]; RUN] = [&[]; RUN];
            for (found, (start, end)) in found.iter_mut().zip(words) {
                *found = &self.normalized[*start..*end];
            }
            found
        })
    }

    /// Whether *other* has every run of the words of this one.
    pub fn stand_in(&self, other: &Words) -> bool {
        let run = run_of(self.ends.len());
        let mut known: HashSet<[&[u8]; RUN]> = HashSet::new();
        if known.try_reserve(other.ends.len()).is_err() {
            memory::no_room();
        }
        known.extend(other.runs(run));
        self.runs(run).all(|words| known.contains(&words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(own: &str, other: &str) -> bool {
        let (mut one, mut two) = (Words::default(), Words::default());
        one.read(own.as_bytes());
        two.read(other.as_bytes());
        let hashes = |words: &Words| -> Vec<u64> { words.runs(1).map(|word| mix::hash(word[0], 0)).collect() };
        let found = one.stand_in(&two);
        assert_eq!(may_hold(&hashes(&one), &hashes(&two)), found, "{own:?} {other:?}");
        found
    }

    #[test]
    fn a_text_stands_in_one_that_has_all_its_runs_of_three_words() {
        assert!(stands("one two three four", "Zero. One, two; three four five"));
        assert!(!stands("zero one two three", "one two three four"));
        assert!(!stands("one two three four", "one two three and two three five, three four"));
        assert!(stands("a b c d", "b c d, then a b c"));
    }

    #[test]
    fn fewer_than_three_words_stand_there_in_order() {
        assert!(stands("two", "one two"));
        assert!(stands("one two", "zero one two"));
        assert!(!stands("two one", "one two"));
        assert!(!stands("one two", "two"));
        assert!(!stands("one two three", "one two"));
        assert!(stands("漢字", "大漢字"));
    }
}
