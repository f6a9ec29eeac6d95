#![forbid(unsafe_code)]
//! The runs of so many words that some texts have: which are equal, and where each is.
//!
//! Every run has a number, the same for equal ones. A text that is looked at asks for its runs: first whether one of
//! the short runs that winnowing takes is known at all (`filter`: a bit for each), and only around those for the runs
//! themselves, each of which is compared word by word with the first one that has its number.

use crate::passages::winnow::winnow;
use crate::passages::words::{Key, RunKey, Words};
use crate::system::fault::{Fault, require};
use crate::system::memory::{append, filled, gathered, push, zeros};
use crate::system::parallel::{self, Cancel, Cancelled};
use crate::text::texts::{Texts, text_or_empty};

/// The mark of a word at which no run begins.
pub const NONE: u32 = u32::MAX;
/// Bits of the filter for each run, of which one in ten or so is taken.
const BITS: usize = 4;

/// A run of a text that is looked at: where it begins, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    pub at: u32,
    pub run: u32,
}

/// Room to look at a text.
#[derive(Default)]
pub struct Bench {
    pub words: Words,
    grams: Vec<u64>,
}

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    run: u32,
}

/// The words of all texts, and their runs once it is `built`.
pub struct Index {
    key: Key,
    /// How runs, and the short ones that are winnowed, are hashed.
    runs: RunKey,
    grams: RunKey,
    window: usize,
    /// Most places of a run that are listed.
    most: usize,
    bytes: Vec<u8>,
    /// Where each word begins in *bytes*, and where the next one would.
    starts: Vec<u64>,
    /// The first word of each text, and the end of the last one.
    first: Vec<u32>,
    filter: Vec<u64>,
    slots: Vec<Slot>,
    /// The number of the run that begins at each word.
    run_of: Vec<u32>,
    /// A place of each run: that of the first one.
    leaders: Vec<u32>,
    /// Where the places of each run begin in *places*.
    from: Vec<u64>,
    places: Vec<u32>,
}

impl Index {
    /// For runs of *count* words, of which up to *most* places each are listed.
    pub fn new(count: usize, most: usize) -> Index {
        let key = Key::own();
        // A third of the run: common phrases are shorter, and one run in ten is taken.
        let gram = count.div_ceil(3);
        Index {
            key,
            runs: key.of_runs(count),
            grams: key.of_runs(gram),
            window: count - gram + 1,
            most,
            bytes: Vec::new(),
            starts: vec![0],
            first: vec![0],
            filter: Vec::new(),
            slots: Vec::new(),
            run_of: Vec::new(),
            leaders: Vec::new(),
            from: Vec::new(),
            places: Vec::new(),
        }
    }

    /// How many words a run has.
    pub fn count(&self) -> usize {
        self.runs.count
    }

    /// How many different runs there are.
    pub fn len(&self) -> usize {
        self.leaders.len()
    }

    /// How many texts there are.
    pub fn texts(&self) -> usize {
        self.first.len() - 1
    }

    /// Most places of a run that are listed.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The words of a text, by their numbers among all.
    pub fn words_of(&self, text: usize) -> std::ops::Range<usize> {
        self.first[text] as usize..self.first[text + 1] as usize
    }

    /// The text that has a word.
    pub fn text_of(&self, word: usize) -> usize {
        self.first.partition_point(|first| *first as usize <= word) - 1
    }

    /// The number of the run that begins at a word, or `NONE`.
    pub fn run_at(&self, word: usize) -> u32 {
        self.run_of[word]
    }

    /// The first places of a run.
    pub fn places(&self, run: u32) -> &[u32] {
        let run = run as usize;
        &self.places[self.from[run] as usize..self.from[run + 1] as usize]
    }

    /// The bytes of *count* words from *at* on, with their spaces.
    #[inline(always)]
    pub fn run(&self, at: usize, count: usize) -> &[u8] {
        &self.bytes[self.starts[at] as usize..self.starts[at + count] as usize]
    }

    /// Add texts; `build` comes when all are there.
    pub fn add(&mut self, texts: &Texts<'_>, threads: Option<usize>, cancel: &Cancel) -> Result<(), Fault> {
        let items = texts.items();
        let mut read: Vec<Words> = gathered(items.iter().map(|_| Words::default()));
        let piece = texts.piece();
        parallel::drain(
            items.chunks(piece).zip(read.chunks_mut(piece)),
            parallel::thread_count(threads).min(items.len().div_ceil(piece)),
            cancel,
            Vec::new,
            |room, (texts, words)| {
                for (text, words) in texts.iter().zip(words) {
                    words.read(text_or_empty(text, room));
                }
            },
        );
        for words in read {
            let end = self.starts.len() - 1 + words.len();
            require(end < NONE as usize, "the texts have 2^32 words or more; compare with parts of them")?;
            let base = self.bytes.len() as u64;
            for start in words.starts.iter().skip(1) {
                push(&mut self.starts, base + u64::from(*start));
            }
            append(&mut self.bytes, &words.bytes);
            push(&mut self.first, end as u32);
        }
        Ok(())
    }

    /// Give every run its number.
    pub fn build(&mut self, cancel: &Cancel) -> Result<(), Cancelled> {
        let words = self.starts.len() - 1;
        let count = self.runs.count;
        let all: usize = (0..self.texts()).map(|text| (self.words_of(text).len() + 1).saturating_sub(count)).sum();
        let (bits, slots) = ((all * BITS).next_power_of_two().max(64), (all * 2).next_power_of_two().max(2));
        self.filter = zeros(bits / 64);
        self.slots = filled(slots, Slot { tag: 0, run: NONE });
        self.run_of = filled(words, NONE);
        self.leaders = Vec::new();
        let mut bench = Bench::default();
        for text in 0..self.texts() {
            cancel.check()?;
            let range = self.words_of(text);
            if range.len() < count {
                continue;
            }
            self.take(range.start, range.len(), &mut bench.words);
            bench.hash(self);
            let mut filter = std::mem::take(&mut self.filter);
            winnow(&bench.grams, self.window, |at| {
                let bit = bench.grams[at] as usize & (bits - 1);
                filter[bit / 64] |= 1 << (bit % 64);
            });
            self.filter = filter;
            for at in 0..=range.len() - count {
                let (found, slot) = self.look(&bench.words, at);
                let run = found.unwrap_or(self.leaders.len() as u32);
                if found.is_none() {
                    self.slots[slot] = Slot { tag: tag_of(bench.words.hash_of(at, &self.runs)), run };
                    push(&mut self.leaders, (range.start + at) as u32);
                }
                self.run_of[range.start + at] = run;
            }
        }
        self.list_places();
        Ok(())
    }

    /// Copy the words of a text out.
    fn take(&self, at: usize, count: usize, words: &mut Words) {
        words.bytes.clear();
        words.starts.clear();
        append(&mut words.bytes, self.run(at, count));
        let base = self.starts[at];
        for start in &self.starts[at..=at + count] {
            push(&mut words.starts, (start - base) as u32);
        }
    }

    fn list_places(&mut self) {
        let mut counts: Vec<u32> = zeros(self.leaders.len());
        for run in self.run_of.iter().filter(|run| **run != NONE) {
            let count = &mut counts[*run as usize];
            *count = (*count + 1).min(self.most as u32);
        }
        self.from = zeros(self.leaders.len() + 1);
        for (run, count) in counts.iter().enumerate() {
            self.from[run + 1] = self.from[run] + u64::from(*count);
        }
        self.places = zeros(self.from[self.leaders.len()] as usize);
        for (word, run) in self.run_of.iter().enumerate().filter(|(_, run)| **run != NONE) {
            let run = *run as usize;
            // What is left of its places is counted down.
            if counts[run] > 0 {
                self.places[(self.from[run + 1] - u64::from(counts[run])) as usize] = word as u32;
                counts[run] -= 1;
            }
        }
    }

    /// The number of the run of *words* that begins *at*, and the slot where it is, or would be.
    fn look(&self, words: &Words, at: usize) -> (Option<u32>, usize) {
        let hash = words.hash_of(at, &self.runs);
        let (mask, tag) = (self.slots.len() - 1, tag_of(hash));
        let own = words.run(at, self.runs.count);
        let mut slot = hash as usize & mask;
        loop {
            let Slot { tag: other, run } = self.slots[slot];
            if run == NONE {
                return (None, slot);
            }
            if other == tag && self.run(self.leaders[run as usize] as usize, self.runs.count) == own {
                return (Some(run), slot);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// All runs of the text in *bench* that are here, in the order of the text.
    pub fn hits(&self, bench: &mut Bench) -> Vec<Hit> {
        let (count, mut found) = (self.runs.count, Vec::new());
        if bench.words.len() < count || self.leaders.is_empty() {
            return found;
        }
        bench.hash(self);
        let Bench { words, grams } = bench;
        let (last, bits, mut next) = (words.len() - count, self.filter.len() * 64, 0);
        winnow(grams, self.window, |at| {
            let bit = grams[at] as usize & (bits - 1);
            if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
                return;
            }
            // The runs that hold the short one, but for those that were looked at.
            for at in next.max((at + 1).saturating_sub(self.window))..=at.min(last) {
                next = at + 1;
                let run = self.following(words, at, found.last()).or_else(|| self.look(words, at).0);
                if let Some(run) = run {
                    push(&mut found, Hit { at: at as u32, run });
                }
            }
        });
        found
    }

    /// The run *at* a word, if the one before it is known and goes on as it does where it was first met.
    fn following(&self, words: &Words, at: usize, before: Option<&Hit>) -> Option<u32> {
        let before = before.filter(|hit| hit.at as usize + 1 == at)?;
        let next = self.leaders[before.run as usize] as usize + 1;
        let run = *self.run_of.get(next)?;
        let end = self.runs.count - 1;
        (run != NONE && words.run(at + end, 1) == self.run(next + end, 1)).then_some(run)
    }
}

fn tag_of(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl Bench {
    /// Hash the short runs of the words.
    fn hash(&mut self, index: &Index) {
        self.words.hash(index.key);
        self.grams.clear();
        let count = self.words.len() + 1 - index.grams.count;
        crate::system::memory::more_room(&mut self.grams, count);
        self.grams.extend((0..count).map(|at| self.words.hash_of(at, &index.grams)));
    }
}

#[cfg(test)]
pub mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::hash::mix::finish;

    pub fn texts_of(texts: &[String]) -> Texts<'_> {
        Texts::of_strings(texts.iter().map(|text| Cow::Borrowed(text.as_str())))
    }

    pub fn index_of(texts: &[String], count: usize, most: usize) -> Index {
        let mut index = Index::new(count, most);
        index.add(&texts_of(texts), Some(2), &Cancel::new()).unwrap();
        index.build(&Cancel::new()).unwrap();
        index
    }

    /// Texts of a few words, so that they share much.
    pub fn made(seed: u64, texts: u64, length: u64, kinds: u64) -> Vec<String> {
        let word = |text: u64, at: u64| format!("w{}", finish(finish(seed << 20 | text) ^ at) % kinds);
        (0..texts).map(|text| (0..length).map(|at| word(text, at)).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn every_run_that_is_shared_is_a_hit_and_no_other() {
        for round in 0..60 {
            let kinds = [1, 2, 3, 30][round as usize % 4];
            let (held, asked) = (made(round, 4, 40, kinds), made(round + 1000, 4, 40, kinds));
            for count in [1, 2, 5, 9, 30] {
                let index = index_of(&held, count, 3);
                for text in &asked {
                    let mut bench = Bench::default();
                    bench.words.read(text.as_str());
                    let hits = index.hits(&mut bench);
                    let words: Vec<&str> = text.split(' ').collect();
                    let mut wanted = Vec::new();
                    for (at, run) in words.windows(count).enumerate() {
                        let holds = |held: &String| {
                            held.split(' ').collect::<Vec<_>>().windows(count).any(|other| other == run)
                        };
                        if held.iter().any(holds) {
                            wanted.push(at as u32);
                        }
                    }
                    assert_eq!(hits.iter().map(|hit| hit.at).collect::<Vec<_>>(), wanted, "{round} {count}");
                    for hit in hits {
                        for place in index.places(hit.run) {
                            let same = index.run(*place as usize, count);
                            assert_eq!(same, bench.words.run(hit.at as usize, count));
                        }
                        assert!((1..=3).contains(&index.places(hit.run).len()));
                    }
                }
            }
        }
    }
}
