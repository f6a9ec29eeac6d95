#![forbid(unsafe_code)]
//! The passages that a text shares with those of an index: as long as they can be, each once.
//!
//! Plainly:
//!
//! ```text
//! for each run of the text that the index has, and each place of it there: go back and forth while the words are
//! equal; that is a passage
//! ```
//!
//! Runs on the way of a passage that was found already are passed over. Of a run that the text has more often than
//! `most` times the first ones count, as the index lists so many of its places: a text that repeats itself has passages
//! by the square of its length. What lies within a longer passage on both sides is left out.

use std::collections::HashMap;

use crate::passages::index::{Hit, Index};
use crate::passages::words::Words;
use crate::system::memory::{more_keys, push};

/// Words that a text shares with one of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage {
    /// The text of the index.
    pub text: u32,
    /// Where it begins, in words: in the text that was looked at, and in that of the index.
    pub own: u32,
    pub other: u32,
    pub words: u32,
}

impl Passage {
    fn lies_in(&self, longer: &Passage) -> bool {
        let within = |at: u32, from: u32| from <= at && at + self.words <= from + longer.words;
        within(self.own, longer.own) && within(self.other, longer.other)
    }
}

/// The passages of a text with its *hits*, ordered by text, then by where they begin.
pub fn passages(index: &Index, words: &Words, hits: &[Hit]) -> Vec<Passage> {
    let count = index.count();
    let mut times: HashMap<u32, usize> = HashMap::new();
    // By how far the two sides are shifted: up to where the runs of a passage go.
    let mut done: HashMap<i64, usize> = HashMap::new();
    let mut found: Vec<Passage> = Vec::new();
    for hit in hits {
        let at = hit.at as usize;
        more_keys(&mut times, 1);
        let times = times.entry(hit.run).or_default();
        *times += 1;
        if *times > index.most() {
            continue;
        }
        for place in index.places(hit.run) {
            let place = *place as usize;
            let shift = place as i64 - at as i64;
            if done.get(&shift).is_some_and(|end| *end > at) {
                continue;
            }
            let text = index.text_of(place);
            let range = index.words_of(text);
            let same = |own: usize, other: usize| words.run(own, 1) == index.run(other, 1);
            let (mut own, mut other) = (at, place);
            while own > 0 && other > range.start && same(own - 1, other - 1) {
                (own, other) = (own - 1, other - 1);
            }
            let mut end = at + count;
            let at_end = |end: usize| (end as i64 + shift) as usize;
            while end < words.len() && at_end(end) < range.end && same(end, at_end(end)) {
                end += 1;
            }
            more_keys(&mut done, 1);
            done.insert(shift, end + 1 - count);
            let passage = Passage {
                text: text as u32,
                own: own as u32,
                other: (other - range.start) as u32,
                words: (end - own) as u32,
            };
            push(&mut found, passage);
        }
    }
    only_longest(found)
}

/// Those that lie in no longer one of the same text.
fn only_longest(mut found: Vec<Passage>) -> Vec<Passage> {
    found.sort_unstable_by_key(|one| (one.text, one.own, u32::MAX - one.words, one.other));
    let mut open: Vec<Passage> = Vec::new();
    found.retain(|one| {
        open.retain(|longer| longer.text == one.text && longer.own + longer.words > one.own);
        let stays = !open.iter().any(|longer| one.lies_in(longer));
        if stays {
            push(&mut open, *one);
        }
        stays
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passages::index::Bench;
    use crate::passages::index::tests::{index_of, made};

    fn of(index: &Index, text: &str) -> Vec<Passage> {
        let mut bench = Bench::default();
        bench.words.read(text);
        let hits = index.hits(&mut bench);
        passages(index, &bench.words, &hits)
    }

    /// All of them, by comparing every word with every word.
    fn plain(held: &[String], text: &str, count: usize) -> Vec<Passage> {
        let own: Vec<&str> = text.split(' ').collect();
        let mut found = Vec::new();
        for (number, held) in held.iter().enumerate() {
            let other: Vec<&str> = held.split(' ').collect();
            for at in 0..own.len() {
                for place in 0..other.len() {
                    let begins = at == 0 || place == 0 || own[at - 1] != other[place - 1];
                    let equal = own[at..].iter().zip(&other[place..]).take_while(|(one, two)| one == two).count();
                    if begins && equal >= count {
                        found.push(Passage {
                            text: number as u32,
                            own: at as u32,
                            other: place as u32,
                            words: equal as u32,
                        });
                    }
                }
            }
        }
        let all = found.clone();
        found.retain(|one| !all.iter().any(|longer| longer != one && longer.text == one.text && one.lies_in(longer)));
        found.sort_unstable();
        found
    }

    #[test]
    fn passages_are_those_of_comparing_every_word_with_every_word() {
        for round in 0..60 {
            let kinds = [2, 3, 5, 30][round as usize % 4];
            let (held, asked) = (made(round, 3, 40, kinds), made(round + 1000, 3, 40, kinds));
            for count in [2, 5, 9] {
                let index = index_of(&held, count, 1000);
                for text in &asked {
                    let mut found = of(&index, text);
                    found.sort_unstable();
                    assert_eq!(found, plain(&held, text, count), "{round} {count}");
                }
            }
        }
    }

    #[test]
    fn a_text_that_repeats_one_word_has_few_passages() {
        let index = index_of(&[vec!["a"; 2000].join(" ")], 30, 16);
        assert_eq!(of(&index, &vec!["a"; 1000].join(" ")).len(), 16);
        let whole = of(&index, &vec!["a"; 2000].join(" "));
        assert_eq!(whole, [Passage { text: 0, own: 0, other: 0, words: 2000 }]);
    }
}
