#![forbid(unsafe_code)]
//! Where the words of a text stand in it, in characters.
//!
//! Normalising joins letters and takes others apart, so a text is cut where that never reaches across: before each
//! character that NFKC joins to nothing before it. What comes of one such piece stands where the piece does. A
//! character that gives several words (½, ㍿) is the place of each of them.

use unicode_normalization::UnicodeNormalization;

use crate::system::memory::push;
use crate::text::normalize::{Normalization, is_new};
use crate::text::unicode::{self, CJK, FORMAT, MARK, Properties, SPECIAL, UNSTABLE, WORD};

/// The words of a text that are being found.
#[derive(Default)]
struct Found {
    places: Vec<[u32; 2]>,
    in_word: bool,
    /// Whether the last word may go on.
    open: bool,
}

impl Found {
    /// A character of the normalised text, and the place of what it came from.
    fn take(&mut self, entry: u32, place: [u32; 2]) {
        self.in_word = entry & WORD != 0 || (entry & MARK != 0 && self.in_word);
        let alone = entry & CJK != 0;
        match self.places.last_mut() {
            _ if !self.in_word => {}
            Some(last) if self.open && !alone => last[1] = place[1],
            // A mark behind a CJK character is a word by itself, and none without what it stands on.
            Some(last) if entry & WORD == 0 => {
                let begin = last[0];
                push(&mut self.places, [begin, place[1]]);
            }
            _ => push(&mut self.places, place),
        }
        self.open = self.in_word && !alone;
    }
}

/// Where each word begins and ends, in characters of the text.
pub fn word_places(text: &str) -> Vec<[u32; 2]> {
    let table = Properties::get();
    let mut found = Found::default();
    let (mut seen, mut lower) = (Vec::new(), Vec::new());
    let mut rest = text.chars().peekable();
    let mut at: u32 = 0;
    while let Some(first) = rest.next() {
        let begin = at;
        at += 1;
        let entry = table.entry(first as u32);
        let goes_on = |next: Option<&char>| next.is_some_and(|next| !is_new(table.entry(*next as u32)));
        if !goes_on(rest.peek()) && entry & (UNSTABLE | FORMAT | SPECIAL) == 0 && unicode::class(entry) == 0 {
            let lowered = unicode::lower_stable(first as u32, entry);
            // Whether it is a word character is known of the letter itself, as in normalising.
            let cjk = table.entry(lowered) & CJK;
            found.take(entry & !CJK | cjk, [begin, at]);
            continue;
        }
        // What is invisible is no part of a word, unless it is within one.
        seen.clear();
        let mut see = |at: u32, letter: char| {
            if table.entry(letter as u32) & FORMAT == 0 {
                push(&mut seen, (at, letter));
            }
        };
        see(begin, first);
        while let Some(next) = rest.next_if(|next| !is_new(table.entry(*next as u32))) {
            see(at, next);
            at += 1;
        }
        for part in parts(&seen, table) {
            let whole: String = part.iter().map(|(_, letter)| *letter).nfkc().collect();
            Normalization::Lower.apply(whole.as_str(), &mut lower);
            let place = [part[0].0, part[part.len() - 1].0 + 1];
            for letter in std::str::from_utf8(&lower).unwrap_or_default().chars() {
                found.take(table.entry(letter as u32), place);
            }
        }
    }
    found.places
}

/// What NFKC makes of some letters.
fn composed(letters: &[(u32, char)]) -> String {
    letters.iter().map(|(_, letter)| *letter).nfkc().collect()
}

/// Letters in which no part ends are not looked at any further: it would take the square of their number.
const LONGEST: usize = 64;

/// The smallest parts of some letters that NFKC does not join, if there are such; else all of them.
fn parts<'a>(letters: &'a [(u32, char)], table: &Properties) -> Vec<&'a [(u32, char)]> {
    let (mut found, mut begin, mut joined) = (Vec::new(), 0, String::new());
    for at in 1..letters.len() {
        if unicode::class(table.entry(letters[at].1 as u32)) != 0 {
            continue;
        }
        // Up to the next one that may begin a part, so that its marks come along.
        let marks = letters[at + 1..].iter().take_while(|(_, next)| unicode::class(table.entry(*next as u32)) != 0);
        let end = at + 1 + marks.count();
        if end - begin > LONGEST {
            return vec![letters];
        }
        let apart = composed(&letters[begin..at]) + &composed(&letters[at..end]);
        if composed(&letters[begin..end]) == apart {
            push(&mut found, &letters[begin..at]);
            begin = at;
        }
    }
    if begin < letters.len() {
        push(&mut found, &letters[begin..]);
    }
    found.iter().for_each(|part| joined.push_str(&composed(part)));
    if joined == composed(letters) { found } else { vec![letters] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix::finish;
    use crate::passages::words::Words;

    /// The words of a text.
    fn words(text: &str) -> Vec<String> {
        let mut words = Words::default();
        words.read(text);
        let word = |at| String::from_utf8(words.run(at, 1).to_vec()).unwrap().trim_end().replace('ς', "σ");
        (0..words.len()).map(word).collect()
    }

    fn check(text: &str) {
        let (all, places) = (words(text), word_places(text));
        assert_eq!(all.len(), places.len(), "{text:?}");
        let letters: Vec<char> = text.chars().collect();
        for (word, [begin, end]) in all.iter().zip(places) {
            let part: String = letters[begin as usize..end as usize].iter().collect();
            assert!(words(&part).contains(word), "{word:?} is not in {part:?} of {text:?}");
        }
    }

    #[test]
    fn places_are_in_characters() {
        assert_eq!(word_places("Ab, déjà-vu 漢字x"), [[0, 2], [4, 8], [9, 11], [12, 13], [13, 14], [14, 15]]);
        assert_eq!(word_places("\u{feff}so\u{ad}ft\u{ad} 1½"), [[1, 6], [8, 10], [9, 10]]);
        assert_eq!(word_places("e\u{301}a ,"), [[0, 3]]);
        assert_eq!(word_places(" _ "), [[1, 2]]);
    }

    #[test]
    fn letters_that_never_end_a_part_take_no_time() {
        // Each decomposes to marks, which are put in order with all of the others.
        check(&"a\u{f73}".repeat(100));
        check(&format!("a{}", "\u{f73}".repeat(100_000)));
        check(&format!("a{} ½½", "\u{301}".repeat(100_000)));
    }

    #[test]
    fn every_word_stands_at_its_place() {
        let parts = "a|Z|_| |7|,|\n|é|ß|İ|Σ|σ|Ж|\u{301}|\u{323}|\u{338}|ﬁ|™|—|\u{200b}|\u{ad}|中";
        let more = "한|\u{1100}|\u{1161}|か|\u{3099}|。|ｶ|ﾞ|・|…|！|０|Ａ|ก\u{e49}|😀|½|㍿|\u{fe0f}|ㄱ|㎏|=|\u{345}";
        let parts: Vec<&str> = parts.split('|').chain(more.split('|')).collect();
        let mut seed = 5;
        for length in (0..400).chain([2000]) {
            let text: String = (0..length % 60 + length / 100)
                .map(|_| {
                    seed = finish(seed);
                    parts[(seed >> 20) as usize % parts.len()]
                })
                .collect();
            check(&text);
        }
    }

    #[test]
    fn every_character_alone_and_among_others() {
        let mut text = String::new();
        for letter in ('\0'..=char::MAX).filter(|letter| (*letter as u32) < 0x3_2000) {
            text.push(letter);
            if text.len() > 60 {
                check(&text);
                check(&format!("a{text}"));
                text.clear();
            }
        }
    }
}
