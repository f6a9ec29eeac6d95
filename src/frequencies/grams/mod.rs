#![deny(unsafe_code)]
//! Grams: runs of four of the 38 characters that a normalised ASCII text has.
//!
//! There are so few of them that a table has a place for each, and those with the same beginning are together there:
//! what there is to know about a gram is found without its hash, and mostly in a near cache. A gram is given as its
//! four bytes, the first one lowest. Its hash is that of any feature, and tells which gram it is.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

use crate::hash::mix;
use crate::system::memory;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};
use crate::text::features::{CHARS, GRAM, seed_of};

/// Characters of a gram.
pub const WIDTH: usize = GRAM;
/// Frequent ones first, so that frequent grams are together.
const ALPHABET: [u8; 38] = *b" etaoinsrlhdcumpfgybwvkx0123_456789jzq";
/// How many grams there are.
pub const GRAMS: usize = ALPHABET.len().pow(WIDTH as u32);
/// What the bytes of a gram are mixed with in its hash.
pub const START: u64 = seed_of(CHARS).wrapping_add(mix::GAMMA.wrapping_mul(WIDTH as u64));

/// The place of each character in the alphabet; 0, too, for those that it lacks.
pub const NUMBERS: [u8; 128] = {
    let mut numbers = [0; 128];
    let mut at = 0;
    while at < ALPHABET.len() {
        numbers[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    numbers
};

/// The place of a gram in a table of all.
#[inline(always)]
pub fn place(gram: u32) -> usize {
    let number = |byte: u8| usize::from(NUMBERS[usize::from(byte & 0x7f)]);
    gram.to_le_bytes().into_iter().fold(0, |place, byte| place * ALPHABET.len() + number(byte))
}

/// The gram at a place.
pub fn at(place: usize) -> u32 {
    let letter = |power: usize| ALPHABET[place / ALPHABET.len().pow(power as u32) % ALPHABET.len()];
    u32::from_le_bytes([letter(3), letter(2), letter(1), letter(0)])
}

#[inline(always)]
pub fn hash(gram: u32) -> u64 {
    mix::finish(START ^ u64::from(gram))
}

/// The gram that has this hash, if one has.
pub fn of_hash(hash: u64) -> Option<u32> {
    let gram = u32::try_from(mix::unfinish(hash) ^ START).ok()?;
    (at(place(gram)) == gram).then_some(gram)
}

/// The hash of each gram.
pub fn hashes(grams: &[u32], out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.gram_hashes(grams, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.gram_hashes(grams, out);
    }
    hashes_plain(grams, out);
}

#[inline(always)]
pub fn hashes_plain(grams: &[u32], out: &mut [u64]) {
    for (gram, out) in grams.iter().zip(out) {
        *out = hash(*gram);
    }
}

/// What a table of all grams says of each.
pub fn look_up(table: &[u8; GRAMS], grams: &[u32], out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.look_up_grams(table, grams, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.look_up_grams(table, grams, out);
    }
    for (gram, out) in grams.iter().zip(out) {
        *out = table[place(*gram)];
    }
}

/// The grams of a text, in its order.
#[derive(Clone, Copy)]
pub struct Grams<'a> {
    /// Padded, if there are grams.
    text: &'a [u8],
    count: usize,
}

impl<'a> Grams<'a> {
    /// The first *count* grams of a text that has `mix::PADDING` bytes behind them.
    pub fn new(text: &'a [u8], count: usize) -> Grams<'a> {
        assert!(count == 0 || text.len() >= count - 1 + WIDTH + mix::PADDING, "a padded text");
        Grams { text, count }
    }

    pub const NONE: Grams<'static> = Grams { text: &[], count: 0 };

    pub fn len(self) -> usize {
        self.count
    }

    pub fn text(self) -> &'a [u8] {
        self.text
    }

    #[inline(always)]
    pub fn get(self, row: usize) -> u32 {
        u32::from_le_bytes(self.text[row..row + WIDTH].try_into().unwrap_or_default())
    }
}

/// Grams whose places are found together.
const RUN: usize = 32;

/// The places of the `RUN` grams from *begin* on. Each letter is looked up once, though four grams have it, and each
/// pair of letters is numbered once, though two have it.
#[inline(always)]
fn places(grams: Grams<'_>, begin: usize) -> [u32; RUN] {
    const SIZE: u16 = ALPHABET.len() as u16;
    let letters = &grams.text[begin..begin + RUN + 3];
    let (mut numbers, mut pairs, mut places) = ([0; RUN + 3], [0; RUN + 2], [0; RUN]);
    for (number, letter) in numbers.iter_mut().zip(letters) {
        *number = u16::from(NUMBERS[usize::from(letter & 0x7f)]);
    }
    // Numbers are below 38, so that nothing overflows.
    for (at, pair) in pairs.iter_mut().enumerate() {
        *pair = numbers[at].wrapping_mul(SIZE).wrapping_add(numbers[at + 1]);
    }
    for (at, place) in places.iter_mut().enumerate() {
        *place = u32::from(pairs[at]).wrapping_mul(u32::from(SIZE * SIZE)).wrapping_add(u32::from(pairs[at + 2]));
    }
    places
}

/// In how many of up to `LAST` documents each gram was seen, by one thread.
pub struct SeenGrams {
    /// For each gram the last document that had it, numbered from 1, and below that how many had it.
    seen: Vec<u32>,
    documents: u32,
}

const LAST: u32 = 0xffff;

impl SeenGrams {
    pub fn new() -> SeenGrams {
        SeenGrams { seen: memory::zeros(GRAMS), documents: 0 }
    }

    /// Whether it must be emptied before the next document.
    pub fn is_full(&self) -> bool {
        self.documents == LAST
    }

    /// Count the grams of one document, each once.
    pub fn add(&mut self, grams: Grams<'_>) {
        assert!(!self.is_full(), "it is emptied in time");
        self.documents += 1;
        let (seen, document) = (&mut self.seen[..], self.documents);
        #[cfg(target_arch = "x86_64")]
        if let Ok(seen) = (&mut *seen).try_into() {
            if let Some(cpu) = Avx512Base::in_force() {
                return cpu.count_grams(grams, document, seen);
            }
            if let Some(cpu) = Avx2::in_force() {
                return cpu.count_grams(grams, document, seen);
            }
        }
        for begin in (0..grams.len()).step_by(RUN) {
            for place in &places(grams, begin)[..RUN.min(grams.len() - begin)] {
                count(&mut seen[*place as usize], document);
            }
        }
    }

    /// All grams that were seen, and in how many documents each; it is empty then.
    pub fn take(&mut self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.documents = 0;
        let all = self.seen.iter_mut().map(|seen| std::mem::take(seen) & LAST);
        all.enumerate().filter(|(_, count)| *count > 0).map(|(place, count)| (at(place), count))
    }
}

/// Count a document for a gram, unless it was the last one that had it.
#[inline(always)]
pub fn count(seen: &mut u32, document: u32) {
    let new = u32::from(*seen >> 16 != document);
    *seen = (document << 16) | ((*seen & LAST) + new);
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::system::simd::tests::at_every_level;

    fn padded(text: &str) -> Vec<u8> {
        let mut padded = text.as_bytes().to_vec();
        padded.resize(text.len() + mix::PADDING, 0xff);
        padded
    }

    fn text(length: usize) -> String {
        (0..length as u64).map(|n| char::from(ALPHABET[mix::finish(n * n) as usize % 38 % (length % 38 + 1)])).collect()
    }

    #[test]
    fn a_gram_is_known_by_its_place_and_by_its_hash() {
        for number in (0..GRAMS).step_by(97).chain([GRAMS - 1]) {
            let gram = at(number);
            assert_eq!((place(gram), of_hash(hash(gram))), (number, Some(gram)));
            assert_eq!(hash(gram), mix::hash(&gram.to_le_bytes(), seed_of(CHARS)));
        }
        let others =
            [mix::hash(b"word", seed_of(1)), mix::hash(b"abcd5", seed_of(CHARS)), mix::hash(b"ab-c", seed_of(CHARS))];
        assert_eq!(others.map(of_hash), [None; 3]);
    }

    #[test]
    fn many_grams_are_as_each() {
        for length in [4, 5, 19, 20, 63, 67, 68, 300, 1000] {
            let text = padded(&text(length));
            let grams = Grams::new(&text, length - WIDTH + 1);
            let all: Vec<u32> = (0..grams.len()).map(|row| grams.get(row)).collect();
            let (mut found, mut classes) = (vec![0; all.len()], vec![0; all.len()]);
            at_every_level(|_| {
                hashes(&all, &mut found);
                assert_eq!(found, all.iter().map(|gram| hash(*gram)).collect::<Vec<_>>());
            });
            let table: Box<[u8; GRAMS]> =
                (0..GRAMS).map(|place| ((place * 7) >> 3) as u8).collect::<Vec<_>>().try_into().unwrap();
            at_every_level(|_| {
                look_up(&table, &all, &mut classes);
                assert_eq!(classes, all.iter().map(|gram| table[place(*gram)]).collect::<Vec<_>>());
            });
        }
    }

    #[test]
    fn a_document_counts_once_for_a_gram() {
        at_every_level(|_| documents_count_once_for_a_gram());
    }

    fn documents_count_once_for_a_gram() {
        let mut census = SeenGrams::new();
        let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
        let texts: Vec<_> = (0..100).map(|n| padded(&text(4 + n))).collect();
        // More than there are numbers for documents.
        for number in 0..LAST as usize + 700 {
            let text = &texts[if number < LAST as usize - 300 { 0 } else { number % 100 }];
            let grams = Grams::new(text, text.len() - mix::PADDING - WIDTH + 1);
            if census.is_full() {
                found.extend(census.take());
            }
            census.add(grams);
            let different: BTreeSet<u32> = (0..grams.len()).map(|row| grams.get(row)).collect();
            for gram in different {
                *expected.entry(gram).or_insert(0) += 1;
            }
        }
        for (gram, count) in census.take() {
            *found.entry(gram).or_insert(0) += count;
        }
        assert_eq!(found, expected);
        assert_eq!(census.take().count(), 0);
    }
}
