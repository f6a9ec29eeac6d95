#![forbid(unsafe_code)]
//! Texts looked at batch after batch, and what all of them together share with an index.
//!
//! How many texts have a run is counted for every run, in the order in which the texts come; threads only find. Of a
//! run that more than `most` texts have, the passages of the first ones are listed, and all are counted: what every
//! text has in common costs no more than it takes to read it. A passage is listed as long as one of its runs is not
//! yet that common.

use crate::passages::index::{Bench, Hit, Index, NONE};
use crate::passages::shared::{Passage, passages};
use crate::system::fault::{Fault, require};
use crate::system::memory::{filled, gathered, push, room_for, zeros};
use crate::system::parallel::{self, Cancel, Cancelled};
use crate::text::texts::{Texts, text_or_empty};

/// A text that shares something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its row in the batch.
    pub row: u32,
    pub words: u32,
    /// Words of it in runs that the index has.
    pub shared: u32,
    /// Whether it is the first one to have some run.
    pub is_first: bool,
}

/// What was found in a batch.
#[derive(Default)]
pub struct Found {
    pub sharers: Vec<Sharer>,
    /// The place of a sharer, and a passage of it.
    pub passages: Vec<(u32, Passage)>,
    /// Passages that were counted and not listed.
    pub unlisted: u64,
    /// Words of all texts.
    pub words: u64,
}

/// Words of a text of the index that others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub text: u32,
    pub begin: u32,
    pub end: u32,
    /// Most texts that have one run of it, and the first text that has its most common run.
    pub texts: u32,
    pub first: u32,
}

/// An index, and what was found so far.
pub struct Scan {
    index: Index,
    /// The texts that were looked at.
    seen: u32,
    /// In how many texts each run was, in which last, and in which first.
    counts: Vec<u32>,
    last: Vec<u32>,
    first: Vec<u32>,
}

impl Found {
    /// The rows of sharers and of passages, as numbers.
    pub fn rows(&self) -> (Vec<[u32; 4]>, Vec<[u32; 5]>) {
        let sharers = self.sharers.iter().map(|one| [one.row, one.words, one.shared, u32::from(one.is_first)]);
        let passages = self.passages.iter().map(|(at, one)| [*at, one.text, one.own, one.other, one.words]);
        (gathered(sharers), gathered(passages))
    }
}

/// Texts that are searched for, and what was found of them: first all are added, then others are looked at.
pub enum Search {
    Adding(Box<Index>),
    Looking(Box<Scan>),
    /// An error, or somebody who ended it, left it half done.
    Stopped,
}

/// What is said where nothing more can be asked.
fn stopped() -> Fault {
    Fault::Runtime("the search for passages was stopped; begin it again".to_owned())
}

impl Search {
    /// For passages of *words* words on, of which *most* places each are listed.
    pub fn new(words: usize, most: usize) -> Result<Search, Fault> {
        let fits = 1..=1 << 20;
        require(fits.contains(&words) && fits.contains(&most), "words and most are between 1 and 2^20")?;
        Ok(Search::Adding(Box::new(Index::new(words, most))))
    }

    /// Add texts that are searched for.
    pub fn add(&mut self, texts: &Texts<'_>, threads: Option<usize>, cancel: &Cancel) -> Result<(), Fault> {
        match self {
            Search::Adding(index) => index.add(texts, threads, cancel),
            Search::Looking(_) => Err(Fault::value("texts were looked at: no more can be added")),
            Search::Stopped => Err(stopped()),
        }
    }

    /// Look at more texts.
    pub fn look(&mut self, texts: &Texts<'_>, threads: Option<usize>, cancel: &Cancel) -> Result<Found, Fault> {
        let mut scan = match std::mem::replace(self, Search::Stopped) {
            Search::Adding(mut index) => {
                index.build(cancel).map_err(|_| stopped())?;
                Box::new(Scan::new(*index))
            }
            Search::Looking(scan) => scan,
            Search::Stopped => return Err(stopped()),
        };
        let found = scan.look(texts, threads, cancel).map_err(|_| stopped())?;
        *self = Search::Looking(scan);
        Ok(found)
    }

    fn scan(&self) -> Option<&Scan> {
        match self {
            Search::Looking(scan) => Some(scan),
            _ => None,
        }
    }

    /// What of each text was found: the text, the words where it begins and ends, texts, and the first of them.
    pub fn stretches(&self) -> Vec<[u32; 5]> {
        let found = self.scan().map_or_else(Vec::new, Scan::stretches);
        gathered(found.iter().map(|one| [one.text, one.begin, one.end, one.texts, one.first]))
    }

    /// Most texts that have one run of each of some passages, of which the first number is not looked at.
    pub fn texts_with(&self, passages: &[[u32; 5]]) -> Result<Vec<u32>, Fault> {
        let mut found = room_for(passages.len());
        for [_, text, own, other, words] in passages.iter().copied() {
            let passage = Passage { text, own, other, words };
            let scan = self.scan().filter(|scan| scan.knows(&passage));
            found.push(scan.ok_or_else(|| Fault::value("a passage is not of these texts"))?.texts_with(&passage));
        }
        Ok(found)
    }

    /// How many words each text has.
    pub fn words(&self) -> Vec<u32> {
        self.scan().map_or_else(Vec::new, Scan::words)
    }
}

/// One text, before it is known what the ones before it had.
struct Seen {
    words: u32,
    hits: Vec<Hit>,
    passages: Vec<Passage>,
}

impl Scan {
    pub fn new(index: Index) -> Scan {
        let runs = index.len();
        Scan { index, seen: 0, counts: zeros(runs), last: filled(runs, NONE), first: filled(runs, NONE) }
    }

    /// Look at more texts.
    pub fn look(&mut self, texts: &Texts<'_>, threads: Option<usize>, cancel: &Cancel) -> Result<Found, Cancelled> {
        let (items, piece) = (texts.items(), texts.piece());
        let mut seen: Vec<Seen> =
            gathered(items.iter().map(|_| Seen { words: 0, hits: Vec::new(), passages: Vec::new() }));
        let index = &self.index;
        parallel::drain(
            items.chunks(piece).zip(seen.chunks_mut(piece)),
            parallel::thread_count(threads).min(items.len().div_ceil(piece)),
            cancel,
            || (Bench::default(), Vec::new()),
            |(bench, room), (texts, seen)| {
                for (text, seen) in texts.iter().zip(seen) {
                    bench.words.read(text_or_empty(text, room));
                    let hits = index.hits(bench);
                    let passages = passages(index, &bench.words, &hits);
                    *seen = Seen { words: bench.words.len() as u32, hits, passages };
                }
            },
        );
        cancel.check()?;
        let mut found = Found::default();
        for (row, seen) in seen.iter().enumerate() {
            found.words += u64::from(seen.words);
            if !seen.hits.is_empty() {
                self.note(row as u32, seen, &mut found);
            }
            self.seen = self.seen.saturating_add(1);
        }
        Ok(found)
    }

    fn note(&mut self, row: u32, seen: &Seen, found: &mut Found) {
        let (mut is_first, mut shared, mut end) = (false, 0, 0);
        for hit in &seen.hits {
            let run = hit.run as usize;
            if self.last[run] != self.seen {
                self.last[run] = self.seen;
                self.counts[run] = self.counts[run].saturating_add(1);
                if self.counts[run] == 1 {
                    self.first[run] = self.seen;
                    is_first = true;
                }
            }
            let until = hit.at + self.index.count() as u32;
            shared += until - hit.at.max(end);
            end = until;
        }
        let place = found.sharers.len() as u32;
        push(&mut found.sharers, Sharer { row, words: seen.words, shared, is_first });
        for passage in &seen.passages {
            let most = self.index.most() as u32;
            if self.runs_of(passage).any(|run| self.counts[run as usize] <= most) {
                push(&mut found.passages, (place, *passage));
            } else {
                found.unlisted += 1;
            }
        }
    }

    /// The runs of a passage.
    fn runs_of(&self, passage: &Passage) -> impl Iterator<Item = u32> {
        let begin = self.index.words_of(passage.text as usize).start + passage.other as usize;
        let runs = passage.words as usize + 1 - self.index.count();
        (begin..begin + runs).map(|word| self.index.run_at(word))
    }

    /// Most texts so far that have one run of a passage.
    pub fn texts_with(&self, passage: &Passage) -> u32 {
        self.runs_of(passage).map(|run| self.counts[run as usize]).max().unwrap_or(0)
    }

    /// Whether a passage is one that the texts of the index can have.
    pub fn knows(&self, passage: &Passage) -> bool {
        (passage.text as usize) < self.index.texts() && {
            let words = self.index.words_of(passage.text as usize).len() as u64;
            passage.words as usize >= self.index.count() && u64::from(passage.other) + u64::from(passage.words) <= words
        }
    }

    /// How many words each text of the index has.
    pub fn words(&self) -> Vec<u32> {
        gathered((0..self.index.texts()).map(|text| self.index.words_of(text).len() as u32))
    }

    /// What of the texts of the index was found, in their order: as long as it can be, no two that touch.
    pub fn stretches(&self) -> Vec<Stretch> {
        let (mut found, count): (Vec<Stretch>, _) = (Vec::new(), self.index.count() as u32);
        for text in 0..self.index.texts() {
            let range = self.index.words_of(text);
            let begins = found.len();
            for (at, run) in range.map(|word| self.index.run_at(word)).enumerate() {
                let at = at as u32;
                if run == NONE || self.counts[run as usize] == 0 {
                    continue;
                }
                let (texts, first) = (self.counts[run as usize], self.first[run as usize]);
                match found[begins..].last_mut() {
                    Some(open) if open.end >= at => {
                        open.end = at + count;
                        if texts > open.texts {
                            (open.texts, open.first) = (texts, first);
                        }
                    }
                    _ => push(&mut found, Stretch { text: text as u32, begin: at, end: at + count, texts, first }),
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passages::index::tests::{index_of, made, texts_of};

    #[test]
    fn common_runs_are_counted_and_their_first_passages_listed() {
        let common = made(7, 1, 12, 1 << 40).remove(0);
        let texts: Vec<String> =
            made(8, 10, 5, 1 << 40).iter().enumerate().map(|(at, own)| format!("{own} {common} end{at}")).collect();
        let mut scan = Scan::new(index_of(&[format!("begin {common}")], 8, 3));
        let found = scan.look(&texts_of(&texts), Some(2), &Cancel::new()).unwrap();
        assert_eq!((found.sharers.len(), found.passages.len(), found.unlisted), (10, 3, 7));
        assert_eq!(found.words, 10 * 18);
        let sharer = Sharer { row: 0, words: 18, shared: 12, is_first: true };
        assert_eq!(found.sharers[0], sharer);
        assert!(!found.sharers[1].is_first);
        assert_eq!(scan.stretches(), [Stretch { text: 0, begin: 1, end: 13, texts: 10, first: 0 }]);
        assert_eq!(scan.texts_with(&found.passages[0].1), 10);
    }

    #[test]
    fn batches_and_threads_change_nothing() {
        let (held, asked) = (made(1, 5, 60, 3), made(2, 20, 60, 3));
        let look = |size: usize, threads: usize| {
            let mut scan = Scan::new(index_of(&held, 5, 4));
            let (mut all, mut before) = (Vec::new(), 0);
            for some in asked.chunks(size) {
                let found = scan.look(&texts_of(some), Some(threads), &Cancel::new()).unwrap();
                let row = |place: u32| before + found.sharers[place as usize].row;
                all.extend(found.passages.iter().map(|(place, passage)| (row(*place), *passage)));
                before += some.len() as u32;
            }
            (all, scan.stretches())
        };
        let once = look(20, 1);
        assert!(!once.0.is_empty());
        assert_eq!(look(20, 4), once);
        assert_eq!(look(3, 2), once);
    }
}
