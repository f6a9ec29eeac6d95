#![deny(unsafe_code)]
//! Features: which parts of a normalised text are hashed.
//!
//! A part is a pair of offsets into one buffer, so no string is copied. Each kind of feature
//! has a number; the hash of a feature depends on it, so that the word `cafe` and the four
//! characters `cafe` are two features.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::ops::Range;

use crate::hash::mix::{self, PADDING};
use crate::system::memory;
#[cfg(target_arch = "aarch64")]
use crate::system::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512};
use crate::text::unicode::{CJK, Properties};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Every run of n characters; a shorter text is one feature.
    Chars(usize),
    /// Every run of n words (what is between single spaces); fewer words are one feature.
    Words(usize),
    /// Words, CJK characters, pairs of CJK characters, and runs of n other characters.
    Mixed(usize),
}

/// No CJK character begins with a lower byte.
const CJK_LEAD: u8 = 0xe3;

pub const PLAIN: u8 = 0;
pub const WORD: u8 = 1;
pub const CJK_ONE: u8 = 2;
pub const CJK_TWO: u8 = 3;
pub const CHARS: u8 = 4;
/// A run of this many characters is a gram, for which `frequencies` has a table of its own.
pub const GRAM: usize = 4;

/// Features of different kinds never share a hash by being the same string.
pub const fn seed_of(kind: u8) -> u64 {
    mix::SECOND.wrapping_mul(kind as u64)
}

impl Features {
    pub fn parse(name: &str) -> Option<Features> {
        let (kind, count) = name.split_once(':')?;
        let count = count.parse().ok().filter(|count| (1..=64).contains(count))?;
        Some(match kind {
            "chars" => Features::Chars(count),
            "words" => Features::Words(count),
            "mixed" => Features::Mixed(count),
            _ => return None,
        })
    }

    /// Cut *text* (normalised, without padding) into *parts*; pads it, and may write behind it.
    /// Runs of bytes of an ASCII text get offsets only if they must be *listed*.
    pub fn cut(self, text: &mut Vec<u8>, ascii: bool, listed: bool, parts: &mut Parts) {
        parts.clear();
        let length = text.len();
        match self {
            Features::Chars(n) => all_characters(text, ascii, listed, n, PLAIN, parts),
            Features::Words(n) => {
                words(text, 0..length, n, parts);
                parts.close(PLAIN);
            }
            Features::Mixed(n) if ascii || text.iter().all(|byte| *byte < CJK_LEAD) => {
                words(text, 0..length, 1, parts);
                parts.close(WORD);
                all_characters(text, ascii, listed, n, CHARS, parts);
            }
            Features::Mixed(n) => mixed(text, n, parts),
        }
        memory::resize(text, text.len() + PADDING, 0);
    }
}

fn all_characters(text: &[u8], ascii: bool, listed: bool, n: usize, kind: u8, parts: &mut Parts) {
    if ascii && !listed && text.len() >= n {
        parts.windows = Some(Windows { kind, width: n, count: text.len() - n + 1 });
        return;
    }
    if !listed && !ascii {
        parts.edges.clear();
        character_starts(text, 0..text.len(), &mut parts.edges);
        memory::push(&mut parts.edges, text.len() as u32);
        if parts.edges.len() > n + 1 {
            parts.spans = Some((kind, n));
            return;
        }
    }
    characters(text, ascii, 0..text.len(), n, parts);
    parts.close(kind);
}

/// Every run of *width* bytes from the beginning of the text, *count* of them.
pub struct Windows {
    pub kind: u8,
    pub width: usize,
    pub count: usize,
}

/// The offsets of the features of one text, kind after kind.
#[derive(Default)]
pub struct Parts {
    pub starts: Vec<u32>,
    pub ends: Vec<u32>,
    /// Where each kind begins and ends in the two above.
    pub kinds: Vec<(u8, Range<usize>)>,
    /// The last kind, where its offsets need not be written down.
    pub windows: Option<Windows>,
    /// How many of the last kind there are, where they are grams.
    pub grams: usize,
    /// The last kind, where a feature goes from every edge to the nth behind it: kind and n.
    pub spans: Option<(u8, usize)>,
    pub edges: Vec<u32>,
}

impl Parts {
    fn clear(&mut self) {
        self.starts.clear();
        self.ends.clear();
        self.kinds.clear();
        self.windows = None;
        self.grams = 0;
        self.spans = None;
    }

    /// Let runs of characters be grams, if they are as long. The characters must be those of grams.
    pub fn take_grams(&mut self) {
        if let Some(windows) = self.windows.take_if(|windows| windows.kind == CHARS && windows.width == GRAM) {
            self.grams = windows.count;
        }
    }

    /// How many features there are.
    pub fn count(&self) -> usize {
        let spans = self.spans.map_or(0, |(_, n)| self.edges.len() - n);
        self.starts.len() + spans + self.grams + self.windows.as_ref().map_or(0, |windows| windows.count)
    }

    fn push(&mut self, start: usize, end: usize) {
        memory::push(&mut self.starts, start as u32);
        memory::push(&mut self.ends, end as u32);
    }

    fn close(&mut self, kind: u8) {
        let begin = self.kinds.last().map_or(0, |(_, range)| range.end);
        if begin < self.starts.len() {
            self.kinds.push((kind, begin..self.starts.len()));
        }
    }

    /// All windows of *n* between neighbouring edges; fewer are one window.
    fn windows(&mut self, n: usize) {
        let gaps = self.edges.len() - 1;
        if gaps <= n {
            self.push(self.edges[0] as usize, self.edges[gaps] as usize);
        } else {
            memory::append(&mut self.starts, &self.edges[..=gaps - n]);
            memory::append(&mut self.ends, &self.edges[n..]);
        }
    }
}

fn characters(text: &[u8], ascii: bool, range: Range<usize>, n: usize, parts: &mut Parts) {
    if range.is_empty() {
        return;
    }
    parts.edges.clear();
    if ascii {
        memory::more_room(&mut parts.edges, range.len() + 1);
        parts.edges.extend(range.start as u32..=range.end as u32);
    } else {
        character_starts(text, range.clone(), &mut parts.edges);
        memory::push(&mut parts.edges, range.end as u32);
    }
    parts.windows(n);
}

/// Append the offsets of the first bytes of characters.
fn character_starts(text: &[u8], range: Range<usize>, out: &mut Vec<u32>) {
    let (text, base) = (&text[range.clone()], range.start as u32);
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.characters(text, base, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.characters(text, base, out);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::in_force() {
        return cpu.characters(text, base, out);
    }
    // A byte 10xxxxxx continues a character.
    offsets(text, base, out, |block| mask_of(block, |eight| !(eight & !(eight << 1))));
}

/// Append the offsets of spaces.
pub fn spaces(text: &[u8], range: Range<usize>, out: &mut Vec<u32>) {
    let (text, base) = (&text[range.clone()], range.start as u32);
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.spaces(text, base, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.spaces(text, base, out);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::in_force() {
        return cpu.spaces(text, base, out);
    }
    let space = each_byte(b' ');
    offsets(text, base, out, |block| {
        mask_of(block, |eight| {
            let other = eight ^ space;
            // No byte's sum exceeds 0xfe, so none reaches into the next.
            !((other & each_byte(0x7f)).wrapping_add(each_byte(0x7f)) | other)
        })
    });
}

const fn each_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Bit i where *found*, which is given eight bytes, sets the highest bit of byte i.
#[inline(always)]
fn mask_of(block: &[u8; 64], found: impl Fn(u64) -> u64) -> u64 {
    let mut mask = 0;
    for (at, eight) in block.as_chunks::<8>().0.iter().enumerate() {
        let ones = (found(u64::from_le_bytes(*eight)) & each_byte(0x80)) >> 7;
        // The product's highest byte has the lowest bit of each byte.
        mask |= (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    mask
}

/// Append *base* plus the offsets of the bytes of *text* that *mask* finds, which is given 64 at a time.
#[inline(always)]
fn offsets(text: &[u8], base: u32, out: &mut Vec<u32>, mask: impl Fn(&[u8; 64]) -> u64) {
    let mut append = |base: u32, mut left: u64| {
        let found = out.len() + left.count_ones() as usize;
        // Eight at a time, whatever the last ones are: how many there are cannot be foretold.
        while left != 0 {
            let mut eight = [0; 8];
            for place in &mut eight {
                *place = base.wrapping_add(left.trailing_zeros());
                left &= left.wrapping_sub(1);
            }
            memory::append(out, &eight);
        }
        out.truncate(found);
    };
    let (blocks, rest) = text.as_chunks::<64>();
    for (at, block) in blocks.iter().enumerate() {
        append(base.wrapping_add(64 * at as u32), mask(block));
    }
    if !rest.is_empty() {
        let mut block = [0; 64];
        block[..rest.len()].copy_from_slice(rest);
        let valid = (1 << rest.len()) - 1;
        append(base.wrapping_add(64 * blocks.len() as u32), mask(&block) & valid);
    }
}

fn words(text: &[u8], range: Range<usize>, n: usize, parts: &mut Parts) {
    if range.is_empty() {
        return;
    }
    // Between two spaces is a word; a run of words is cut from the text in one piece.
    parts.edges.clear();
    spaces(text, range.clone(), &mut parts.edges);
    let count = parts.edges.len() + 1;
    if count <= n {
        parts.push(range.start, range.end);
    } else {
        memory::more_room(&mut parts.starts, count);
        parts.starts.push(range.start as u32);
        parts.starts.extend(parts.edges[..count - n].iter().map(|space| space.wrapping_add(1)));
        memory::append(&mut parts.ends, &parts.edges[n - 1..]);
        memory::push(&mut parts.ends, range.end as u32);
    }
}

/// The four kinds of a text that is not ASCII. CJK characters are copied behind the text, so
/// that two of them are neighbours whatever stood between.
fn mixed(text: &mut Vec<u8>, n: usize, parts: &mut Parts) {
    let table = Properties::get();
    let length = text.len();
    let mut cjk: Vec<u8> = Vec::new();
    let mut other: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    // A normalised text is UTF-8 by construction.
    for (at, letter) in simdutf8::basic::from_utf8(text).unwrap_or_default().char_indices() {
        if table.entry(letter as u32) & CJK != 0 {
            if start < at {
                memory::push(&mut other, start..at);
            }
            start = at + letter.len_utf8();
            memory::append(&mut cjk, &text[at..start]);
        }
    }
    if start < length {
        other.push(start..length);
    }
    for (from, to) in other.iter().flat_map(|range| split_words(text, range.clone())) {
        parts.push(from, to);
    }
    parts.close(WORD);
    let begin = text.len();
    memory::append(text, &cjk);
    if !cjk.is_empty() {
        characters(text, false, begin..text.len(), 1, parts);
        parts.close(CJK_ONE);
        if parts.edges.len() > 2 {
            parts.windows(2);
            parts.close(CJK_TWO);
        }
    }
    let alone = cjk.is_empty();
    for range in other {
        let letters = text[range.clone()].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        if letters >= n || alone {
            characters(text, false, range, n, parts);
        }
    }
    parts.close(CHARS);
}

fn split_words(text: &[u8], range: Range<usize>) -> impl Iterator<Item = (usize, usize)> + '_ {
    let end = range.end;
    let mut at = range.start;
    std::iter::from_fn(move || {
        while at < end && text[at] == b' ' {
            at += 1;
        }
        let from = at;
        while at < end && text[at] != b' ' {
            at += 1;
        }
        (from < at).then_some((from, at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    fn cut(features: Features, text: &str) -> Vec<(u8, String)> {
        let mut buffer = text.as_bytes().to_vec();
        let mut parts = Parts::default();
        features.cut(&mut buffer, text.is_ascii(), true, &mut parts);
        let mut found = Vec::new();
        for (kind, range) in &parts.kinds {
            for at in range.clone() {
                let part = &buffer[parts.starts[at] as usize..parts.ends[at] as usize];
                found.push((*kind, String::from_utf8(part.to_vec()).unwrap()));
            }
        }
        found
    }

    fn plain(features: Features, text: &str) -> Vec<String> {
        cut(features, text).into_iter().map(|(_, part)| part).collect()
    }

    #[test]
    fn characters_slide_by_one() {
        assert_eq!(plain(Features::Chars(3), "hello"), ["hel", "ell", "llo"]);
        assert_eq!(plain(Features::Chars(3), "дом"), ["дом"]);
        assert_eq!(plain(Features::Chars(3), "дома"), ["дом", "ома"]);
        assert_eq!(plain(Features::Chars(3), "ab"), ["ab"]);
        assert!(plain(Features::Chars(3), "").is_empty());
    }

    #[test]
    fn words_are_cut_in_one_piece() {
        assert_eq!(plain(Features::Words(2), "a bc d"), ["a bc", "bc d"]);
        assert_eq!(plain(Features::Words(3), "a bc"), ["a bc"]);
        assert_eq!(plain(Features::Words(1), "a bc"), ["a", "bc"]);
    }

    #[test]
    fn mixed_text_has_four_kinds() {
        let found = cut(Features::Mixed(4), "abcde 漢字x語");
        let expected = [
            (WORD, "abcde"),
            (WORD, "x"),
            (CJK_ONE, "漢"),
            (CJK_ONE, "字"),
            (CJK_ONE, "語"),
            (CJK_TWO, "漢字"),
            (CJK_TWO, "字語"),
            (CHARS, "abcd"),
            (CHARS, "bcde"),
            (CHARS, "cde "),
        ];
        assert_eq!(found, expected.map(|(kind, part)| (kind, part.to_string())));
    }

    #[test]
    fn every_level_finds_the_same_offsets() {
        for length in 0..300usize {
            for share in 1..5 {
                let bytes = (0..length as u64).map(|n| crate::hash::mix::finish(n * share));
                let text: Vec<u8> = bytes.map(|byte| if byte % share == 0 { b' ' } else { byte as u8 }).collect();
                let from = length.min(5);
                let mut expected = vec![9];
                expected.extend((from..length).filter(|at| text[*at] == b' ').map(|at| at as u32));
                expected.extend((from..length).filter(|at| text[*at] & 0xc0 != 0x80).map(|at| at as u32));
                at_every_level(|level| {
                    let mut found = vec![9];
                    spaces(&text, from..length, &mut found);
                    character_starts(&text, from..length, &mut found);
                    assert_eq!(found, expected, "{level}");
                });
            }
        }
    }
}
