#![forbid(unsafe_code)]
//! Titles: what a text says that it is about, in its first lines.
//!
//! Lines that many documents have come first on many pages, so a title goes on until a line that has a rare word.

use crate::frequencies::{ABOVE_KNEE, ALONE, Frozen, RARE};
use crate::hash::mix;
use crate::recipe::Recipe;
use crate::system::memory;
use crate::text::features::{CJK_ONE, WORD, seed_of};
use crate::text::normalize::Text;
use crate::text::unicode::{CJK, Properties};
use crate::verify::tokens::for_each_token;

/// Lines with words that may belong to a title, and words of a line.
const LINES: usize = 6;
const WORDS: usize = 24;
/// Shorter numbers than this may number anything.
const DIGITS: usize = 2;
/// A number that is this many doublings above the knee is a date, or something else that many pages carry.
const COMMON: u8 = ABOVE_KNEE + 3;

#[derive(Default)]
pub struct Title {
    /// Its words in ascending order of hash, and how often each is in the whole text.
    pub words: Vec<(u64, u32)>,
    /// Those of its last line, if one of them is rare.
    pub last: Vec<u64>,
    /// The numbers in it of two digits or more, without those that very many documents have.
    pub numbers: Vec<u64>,
    /// Whether a third or more of it is CJK characters, of which each says too little.
    pub cjk: bool,
}

/// Room in which titles are read, one after the other.
#[derive(Default)]
pub struct Room {
    line: Vec<u8>,
    hashes: Vec<u64>,
    classes: Vec<u8>,
    edges: Vec<u32>,
}

impl Room {
    /// How common words are, by their hashes as features.
    pub fn classes(&mut self, frequencies: Option<&Frozen>) -> &[u8] {
        self.classes.clear();
        memory::resize(&mut self.classes, self.hashes.len(), RARE);
        if let Some(table) = frequencies {
            table.look_up(&self.hashes, &mut self.classes);
        }
        &self.classes
    }

    /// Let `classes` say how common these features are.
    pub fn ask(&mut self, hashes: impl Iterator<Item = u64>) {
        self.hashes.clear();
        hashes.for_each(|hash| memory::push(&mut self.hashes, hash));
    }
}

/// Whether at most *m* documents have a feature of this class.
pub fn is_uncommon(class: u8) -> bool {
    class == RARE || class == ALONE
}

/// The hash of a word as a feature.
pub fn feature_of(word: &str) -> u64 {
    let table = Properties::get();
    let is_cjk = word.chars().next().is_some_and(|letter| table.entry(letter as u32) & CJK != 0);
    mix::hash(word.as_bytes(), seed_of(if is_cjk { CJK_ONE } else { WORD }))
}

impl Title {
    /// The title of a text whose words are *tokens*.
    pub fn of(text: Text<'_>, tokens: &[u64], recipe: &Recipe, frequencies: Option<&Frozen>, room: &mut Room) -> Title {
        let mut title = Title::default();
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if !text.bytes().iter().any(is_end) {
            return title;
        }
        let (mut lines, mut cjk, mut all) = (0, 0, 0);
        let mut words: Vec<u64> = Vec::new();
        let mut numbers: Vec<[u64; 2]> = Vec::new();
        for line in text.bytes().split(is_end) {
            let mut normal = std::mem::take(&mut room.line);
            recipe.normalization.apply(Text::Unchecked(line), &mut normal);
            let mut edges = std::mem::take(&mut room.edges);
            let (mut count, begin) = (0, (words.len(), numbers.len()));
            room.hashes.clear();
            for_each_token(std::str::from_utf8(&normal).unwrap_or_default(), &mut edges, |word| {
                count += 1;
                if count > WORDS {
                    return;
                }
                if word.chars().all(char::is_numeric) {
                    if word.chars().nth(DIGITS - 1).is_some() {
                        memory::push(&mut numbers, [mix::hash(word.as_bytes(), 0), feature_of(word)]);
                    }
                } else {
                    let feature = feature_of(word);
                    cjk += usize::from(feature == mix::hash(word.as_bytes(), seed_of(CJK_ONE)));
                    memory::push(&mut room.hashes, feature);
                    memory::push(&mut words, mix::hash(word.as_bytes(), 0));
                }
            });
            (room.line, room.edges) = (normal, edges);
            if count == 0 {
                continue;
            }
            if count * 2 > tokens.len() {
                words.truncate(begin.0);
                numbers.truncate(begin.1);
                break;
            }
            lines += 1;
            all += count.min(WORDS);
            if room.classes(frequencies).iter().any(|class| is_uncommon(*class)) {
                title.last = memory::copied(&words[begin.0..]);
                title.last.sort_unstable();
                title.last.dedup();
                break;
            }
            if lines == LINES {
                break;
            }
        }
        title.cjk = cjk * 3 >= all && cjk > 0;
        words.sort_unstable();
        words.dedup();
        title.words = memory::collected(words.into_iter().map(|word| (word, 0)));
        for token in tokens {
            if let Ok(at) = title.words.binary_search_by_key(token, |(word, _)| *word) {
                title.words[at].1 = title.words[at].1.saturating_add(1);
            }
        }
        room.ask(numbers.iter().map(|number| number[1]));
        let few =
            numbers.iter().zip(room.classes(frequencies)).filter(|(_, class)| **class < COMMON || **class == ALONE);
        title.numbers = memory::collected(few.map(|(number, _)| number[0]));
        title.numbers.sort_unstable();
        title.numbers.dedup();
        title
    }

    pub fn has(&self, word: u64) -> bool {
        self.words.binary_search_by_key(&word, |(word, _)| *word).is_ok()
    }

    /// Whether it has a rare word.
    pub fn is_rare(&self) -> bool {
        !self.last.is_empty()
    }

    /// Whether the words that the *other* title lacks stand in the title only: as dates and names of sites do.
    pub fn has_furniture_only_beside(&self, other: &Title) -> bool {
        self.words.iter().all(|(word, count)| *count == 1 || other.has(*word))
    }

    pub fn bytes(&self) -> usize {
        16 * self.words.len() + 8 * (self.numbers.len() + self.last.len())
    }
}
