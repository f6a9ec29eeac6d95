#![deny(unsafe_code)]
//! Normalisation: the text of a document in the form from which features are cut.
//!
//! ASCII text, and runs of ASCII in other text, take a short way; the rest one pass over the code-point table; only
//! what NFKC would change in more than single letters goes through NFKC itself, with the letters it may join.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
mod links;
#[cfg(target_arch = "aarch64")]
mod neon;

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use crate::system::memory;
#[cfg(target_arch = "aarch64")]
use crate::system::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512};
#[cfg(target_arch = "x86_64")]
use crate::text::bytes::{Rules, Tables};
use crate::text::unicode::{self, CJK, FORMAT, MARK, Properties, SPECIAL, UNSTABLE, WORD};
#[cfg(target_arch = "x86_64")]
use avx512::State;

/// A text: UTF-8, or what may turn out not to be.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    Valid(&'a str),
    Unchecked(&'a [u8]),
}

impl<'a> Text<'a> {
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Text::Valid(text) => text.as_bytes(),
            Text::Unchecked(bytes) => bytes,
        }
    }

    /// The text; what is not UTF-8 becomes U+FFFD.
    pub fn checked(self) -> Cow<'a, str> {
        match self {
            Text::Valid(text) => Cow::Borrowed(text),
            Text::Unchecked(bytes) => match simdutf8::basic::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => {
                    // Each byte becomes three at most, and room is made by doubling.
                    drop(memory::room_for::<u8>(bytes.len().saturating_mul(6)));
                    String::from_utf8_lossy(bytes)
                }
            },
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::Valid(text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalization {
    /// The text as it is.
    None,
    /// Full Unicode lower case.
    Lower,
    /// Format characters removed, NFKC, lower case, runs of other than word characters one space.
    Text,
    /// The same without scripts, styles, addresses and the targets of links.
    Prose,
    /// Lower case, word characters only, nothing between them.
    WordChars,
    /// Lower case, ASCII words of two letters or more, one space between them.
    AsciiWords,
    /// Lower case, Unicode words, one space between them; every CJK character is a word.
    UnicodeWords,
}

impl Normalization {
    pub fn parse(name: &str) -> Option<Normalization> {
        Some(match name {
            "none" => Normalization::None,
            "lower" => Normalization::Lower,
            "text" => Normalization::Text,
            "prose" => Normalization::Prose,
            "word-chars" => Normalization::WordChars,
            "ascii-words" => Normalization::AsciiWords,
            "unicode-words" => Normalization::UnicodeWords,
            _ => return None,
        })
    }

    /// Replace *out* by the normalised form of *text*; whether it is ASCII.
    pub fn apply<'a>(self, text: impl Into<Text<'a>>, out: &mut Vec<u8>) -> bool {
        let text = text.into();
        if self == Normalization::Prose {
            return Normalization::Text.apply(links::without_links(&text.checked()).as_str(), out);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx512::in_force()
            && let Some(ascii) = self.apply_avx512(cpu, text, out)
        {
            return ascii;
        }
        self.apply_plain(&text.checked(), out)
    }

    fn apply_plain(self, text: &str, out: &mut Vec<u8>) -> bool {
        out.clear();
        memory::more_room(out, text.len() + 16);
        let ascii = text.is_ascii();
        match (self, ascii) {
            (Normalization::None, _) => out.extend_from_slice(text.as_bytes()),
            (Normalization::Lower, true) => {
                out.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            }
            (Normalization::Text | Normalization::Prose | Normalization::UnicodeWords, true) => {
                only_ascii_words(text.as_bytes(), out)
            }
            (Normalization::Text | Normalization::Prose, false) => {
                if Walk::default().words(text, 0..text.len(), out).is_none() {
                    composed_words(text, out);
                }
                drop_last_space(out);
            }
            (Normalization::WordChars, true) => {
                out.extend(text.bytes().filter(is_word_byte).map(|byte| byte.to_ascii_lowercase()));
            }
            (Normalization::Lower, false) => lower(text, 0..text.len(), out),
            (Normalization::WordChars, false) => word_chars(text, 0..text.len(), out),
            (Normalization::AsciiWords, true) => {
                only_ascii_words(text.as_bytes(), out);
                drop_single_letters(out);
            }
            (Normalization::AsciiWords, false) => {
                // Some letters outside ASCII have a lower case within (the Kelvin sign).
                let mut lower = memory::room_for(text.len());
                Normalization::Lower.apply(text, &mut lower);
                only_ascii_words(&lower, out);
                drop_single_letters(out);
            }
            (Normalization::UnicodeWords, false) => words(text, out, true),
        }
        ascii || out.is_ascii()
    }

    /// As `apply`, 64 bytes at a time; None, with *out* unusable, where there is no such way.
    ///
    /// The kernels take no character that is not in their tables, and so nothing that is not UTF-8.
    #[cfg(target_arch = "x86_64")]
    fn apply_avx512(self, cpu: Avx512, text: Text<'_>, out: &mut Vec<u8>) -> Option<bool> {
        let rules = match self {
            Normalization::None => return None,
            Normalization::Lower => Rules::Lower,
            Normalization::WordChars => Rules::WordChars,
            Normalization::Text | Normalization::Prose | Normalization::AsciiWords | Normalization::UnicodeWords => {
                Rules::Text
            }
        };
        let mut state = State::default();
        let mut whole = cpu.normalize_ascii(rules, text.bytes(), &mut state, out);
        if !whole {
            if matches!(self, Normalization::AsciiWords | Normalization::UnicodeWords) {
                return None;
            }
            whole = cpu.normalize(rules, text.bytes(), Tables::get(rules), &mut state, out);
        }
        if !whole {
            match text.checked() {
                Cow::Borrowed(text) => return Some(self.apply_slowly(cpu, rules, text, state, out)),
                Cow::Owned(text) => return self.apply_avx512(cpu, Text::Valid(&text), out),
            }
        }
        Some(self.finished(rules, state, out))
    }

    /// Continue from *state*, where a block must be handled character by character.
    #[cfg(target_arch = "x86_64")]
    fn apply_slowly(self, cpu: Avx512, rules: Rules, text: &str, mut state: State, out: &mut Vec<u8>) -> bool {
        let mut walk = Walk::default();
        let mut walked_to = 0;
        loop {
            let mut begin = out.len();
            match rules {
                Rules::Lower => lower(text, state.at..state.slow_end, out),
                Rules::WordChars => word_chars(text, state.at..state.slow_end, out),
                Rules::Text => {
                    if state.at > walked_to {
                        walk.last_class = 0;
                        if !starts_anew(text, state.at) {
                            // It may join what is before it, so that is handled one by one, too.
                            state.rewind(out);
                        }
                    }
                    walk.in_word = state.in_word;
                    walk.rewritten = out.len();
                    let Some(end) = walk.words(text, state.at..state.slow_end, out) else {
                        composed_words(text, out);
                        drop_last_space(out);
                        return out.is_ascii();
                    };
                    begin = walk.rewritten;
                    state.in_word = walk.in_word;
                    walked_to = end;
                    state.slow_end = end;
                }
            }
            state.high |= !out[begin..].is_ascii();
            state.at = state.slow_end;
            if cpu.normalize(rules, text.as_bytes(), Tables::get(rules), &mut state, out) {
                return self.finished(rules, state, out);
            }
        }
    }

    /// What is left to do at the end; whether *out* is ASCII.
    #[cfg(target_arch = "x86_64")]
    fn finished(self, rules: Rules, state: State, out: &mut Vec<u8>) -> bool {
        if rules == Rules::Text {
            drop_last_space(out);
        }
        if self == Normalization::AsciiWords {
            drop_single_letters(out);
        }
        !state.high
    }
}

fn drop_last_space(out: &mut Vec<u8>) {
    if out.last() == Some(&b' ') {
        out.pop();
    }
}

#[inline(always)]
fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Append a code point as UTF-8; what is none becomes U+FFFD.
#[inline(always)]
fn push(out: &mut Vec<u8>, code: u32) {
    if code < 0x80 {
        memory::push(out, code as u8);
    } else {
        let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        memory::append(out, letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// The lower case of a word byte, with the highest bit; a space for any other.
const WORD_BYTES: [u8; 256] = {
    let mut table = [b' '; 256];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' {
            table[byte] = 0x80 | (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

/// ASCII words in lower case with one space between them; bytes above 0x7f separate words.
fn only_ascii_words(text: &[u8], out: &mut Vec<u8>) {
    ascii_words(text, false, out);
    drop_last_space(out);
}

/// Append ASCII words in lower case, and a space behind each that ends; bytes above 0x7f separate words, too.
/// Whether a word goes on at the end, as *in_word* says of the beginning.
fn ascii_words(text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.ascii_words(text, in_word, out);
    }
    #[cfg(target_arch = "aarch64")]
    if let Some(cpu) = Neon::in_force() {
        return cpu.ascii_words(text, in_word, out);
    }
    ascii_words_plain(text, in_word, out)
}

fn ascii_words_plain(text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
    memory::more_room(out, text.len());
    let mut before = u8::from(in_word);
    let mut block = [0; 256];
    for some in text.chunks(block.len()) {
        // Where words end cannot be foretold: every byte is written, and kept or written over.
        let mut written = 0usize;
        for byte in some {
            let entry = WORD_BYTES[usize::from(*byte)];
            let word = entry >> 7;
            // No more bytes than those of the block: neither its bounds nor an overflow must be looked for.
            block[written % 256] = entry & 0x7f;
            written = written.wrapping_add(usize::from(word | before));
            before = word;
        }
        memory::append(out, &block[..written]);
    }
    before != 0
}

/// For each set of eight bytes the shuffle that moves those in it together.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static PACKED: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut byte, mut count) = (0, 0);
        while byte < 8 {
            if set >> byte & 1 == 1 {
                table[set][count] = byte;
                count += 1;
            }
            byte += 1;
        }
        set += 1;
    }
    table
};

/// How many bytes of the beginning are ASCII.
fn ascii_run(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<16>();
    let whole = 16 * blocks.iter().take_while(|block| block.is_ascii()).count();
    whole + bytes[whole..].iter().take_while(|byte| byte.is_ascii()).count()
}

/// Remove words of one letter from words with one space between them.
fn drop_single_letters(out: &mut Vec<u8>) {
    let mut kept = 0;
    let mut start = 0;
    while start < out.len() {
        let end = out[start..].iter().position(|byte| *byte == b' ').map_or(out.len(), |at| start + at);
        if end - start >= 2 {
            if kept > 0 {
                out[kept] = b' ';
                kept += 1;
            }
            out.copy_within(start..end, kept);
            kept += end - start;
        }
        start = end + 1;
    }
    out.truncate(kept);
}

/// Append the lower case of a range of *text*.
fn lower(text: &str, range: Range<usize>, out: &mut Vec<u8>) {
    lowercase(text, range, |code, _| push(out, code));
}

/// Append the word characters of the lower case of a range of *text*.
fn word_chars(text: &str, range: Range<usize>, out: &mut Vec<u8>) {
    lowercase(text, range, |code, entry| {
        if entry & WORD != 0 {
            push(out, code);
        }
    });
}

/// Call *emit* with every code point of the lower-case form of a range of *text* and its entry.
#[inline(always)]
fn lowercase(text: &str, range: Range<usize>, mut emit: impl FnMut(u32, u32)) {
    let table = Properties::get();
    let begin = range.start;
    for (at, letter) in text[range].char_indices() {
        let code = letter as u32;
        let entry = table.entry(code);
        if entry & SPECIAL == 0 {
            emit(unicode::lower(code, entry), entry);
        } else {
            special_lower(table, text, begin + at, letter, |code| emit(code, table.entry(code)));
        }
    }
}

/// The lower case of a capital I with a dot, or of a capital sigma.
fn special_lower(table: &Properties, text: &str, at: usize, letter: char, mut emit: impl FnMut(u32)) {
    if letter == '\u{130}' {
        emit('i' as u32);
        emit(0x307);
        return;
    }
    let after = &text[at + letter.len_utf8()..];
    let last = unicode::sigma_is_final(table, &text[..at], after);
    emit(if last { 0x3c2 } else { 0x3c3 });
}

/// Unicode words of text that is NFKC already; where *spread* is set every CJK character is one.
fn words(text: &str, out: &mut Vec<u8>, spread: bool) {
    let mut in_word = false;
    let mut in_cjk = false;
    lowercase(text, 0..text.len(), |code, entry| {
        let word = entry & WORD != 0 || (entry & MARK != 0 && in_word);
        if word {
            let cjk = spread && entry & CJK != 0;
            if in_word && (cjk || (in_cjk && entry & MARK == 0)) {
                memory::push(out, b' ');
            }
            push(out, code);
            in_cjk = cjk || (in_cjk && entry & MARK != 0);
        } else if in_word {
            memory::push(out, b' ');
        }
        in_word = word;
    });
    drop_last_space(out);
}

/// Replace *out* by the `Text` form of *text*, by way of NFKC.
fn composed_words(text: &str, out: &mut Vec<u8>) {
    let table = Properties::get();
    let visible = |letter: &char| table.entry(*letter as u32) & FORMAT == 0;
    let mut composed = String::new();
    memory::letters(&mut composed, text.chars().filter(visible).nfkc());
    out.clear();
    words(&composed, out, false);
}

/// Whether the character at *at* begins something new: NFKC never joins it to what is before it.
#[cfg(target_arch = "x86_64")]
fn starts_anew(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_none_or(|letter| is_new(Properties::get().entry(letter as u32)))
}

/// Whether NFKC never joins a character with this entry to what is before it.
#[inline(always)]
pub fn is_new(entry: u32) -> bool {
    entry & (UNSTABLE | FORMAT) == 0 && unicode::class(entry) == 0
}

/// The `Text` form, character by character; the few that need it go through NFKC with what they
/// may join.
#[derive(Default)]
struct Walk {
    in_word: bool,
    last_class: u32,
    safe: Safe,
    composed: String,
    /// From where on what was written may be new.
    rewritten: usize,
}

/// Where the last character began that NFKC does not join to those before, and the state there.
#[derive(Clone, Copy, Default)]
struct Safe {
    at: usize,
    written: usize,
    in_word: bool,
}

/// Runs of ASCII of more bytes than this are worth the shorter way.
const LONG_RUN: usize = 8;

impl Walk {
    /// Append the form of a range of text, and of what may join its end; where that ends. None,
    /// with *out* unusable, where only the whole text can tell.
    fn words(&mut self, text: &str, range: Range<usize>, out: &mut Vec<u8>) -> Option<usize> {
        let table = Properties::get();
        let mut at = range.start;
        while at < range.end {
            let run = ascii_run(&text.as_bytes()[at..range.end]);
            if run > LONG_RUN {
                // All but the last byte, which a mark may join.
                self.in_word = ascii_words(&text.as_bytes()[at..at + run - 1], self.in_word, out);
                self.last_class = 0;
                at += run - 1;
            }
            let Some(letter) = text[at..].chars().next() else { break };
            let next = at + letter.len_utf8();
            let code = letter as u32;
            let entry = table.entry(code);
            let class = unicode::class(entry);
            if is_new(entry) {
                self.safe = Safe { at, written: out.len(), in_word: self.in_word };
            }
            if entry & UNSTABLE != 0 || (class != 0 && class < self.last_class) {
                at = self.compose(table, text, next, out)?;
                continue;
            }
            at = next;
            if entry & FORMAT != 0 {
                continue;
            }
            self.last_class = class;
            let word = entry & WORD != 0 || (entry & MARK != 0 && self.in_word);
            if word && entry & SPECIAL == 0 {
                push(out, unicode::lower_stable(code, entry));
            } else if word {
                let begin = next - letter.len_utf8();
                if letter == 'Σ' && !unicode::sigma_is_plain(table, &text[..begin], &text[next..]) {
                    return None;
                }
                special_lower(table, text, begin, letter, |code| push(out, code));
            } else if self.in_word {
                memory::push(out, b' ');
            }
            self.in_word = word;
        }
        Some(at)
    }

    /// Write again, by way of NFKC, what was written since `safe`, and what follows up to the next
    /// character that begins something new, behind *next*; where that is.
    fn compose(&mut self, table: &Properties, text: &str, next: usize, out: &mut Vec<u8>) -> Option<usize> {
        let rest = text[next..].char_indices().find(|(_, letter)| is_new(table.entry(*letter as u32)));
        let end = rest.map_or(text.len(), |(at, _)| next + at);
        let visible = |letter: &char| table.entry(*letter as u32) & FORMAT == 0;
        self.composed.clear();
        memory::letters(&mut self.composed, text[self.safe.at..end].chars().filter(visible).nfkc());
        if self.composed.contains('Σ') {
            return None;
        }
        out.truncate(self.safe.written);
        self.rewritten = self.rewritten.min(self.safe.written);
        let mut in_word = self.safe.in_word;
        lowercase(&self.composed, 0..self.composed.len(), |code, entry| {
            let word = entry & WORD != 0 || (entry & MARK != 0 && in_word);
            if word {
                push(out, code);
            } else if in_word {
                memory::push(out, b' ');
            }
            in_word = word;
        });
        self.in_word = in_word;
        self.last_class = 0;
        Some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    fn normalized(kind: Normalization, text: &str) -> String {
        let mut out = Vec::new();
        kind.apply(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn forms_of_one_text_become_one() {
        for text in ["Café  №1", "Cafe\u{301} — №1", "Ca\u{ad}fé, №1", "Ｃａｆé No1"] {
            assert_eq!(normalized(Normalization::Text, text), "café no1", "{text}");
        }
    }

    #[test]
    fn sigma_knows_the_end_of_a_word() {
        assert_eq!(normalized(Normalization::Lower, "ΣΑΣ Σ"), "σας σ");
    }

    #[test]
    fn sigma_ends_a_word_also_behind_dots_that_nfkc_takes_apart() {
        assert_eq!(normalized(Normalization::Text, "fox…Σ"), "fox ς");
        assert_eq!(normalized(Normalization::Text, "ΟΔΟΣ, Σ"), "οδος σ");
    }

    #[test]
    fn marks_without_a_letter_are_no_word() {
        assert_eq!(normalized(Normalization::Text, "\u{301}\u{fe0f} ❤\u{fe0f}"), "");
    }

    #[test]
    fn news_words_have_two_letters() {
        assert_eq!(
            normalized(Normalization::AsciiWords, "A president, I said: caf\u{e9} on \u{212a}m"),
            "president said caf on km"
        );
    }

    /// Letters of every kind that the tables and the slow path tell apart.
    const LETTERS: [&str; 54] = [
        "a",
        "Z",
        "_",
        " ",
        "7",
        "\0",
        "\u{7f}",
        "é",
        "É",
        "ß",
        "×",
        "«",
        "İ",
        "ı",
        "Ÿ",
        "ſ",
        "Σ",
        "σ",
        "Ω",
        "Ж",
        "ж",
        "Ё",
        "ѣ",
        "ґ",
        "א",
        "\u{5b0}",
        "ن",
        "\u{301}",
        "\u{323}",
        "ﬁ",
        "™",
        "—",
        "\u{200b}",
        "\u{ad}",
        "中",
        "한",
        "か",
        "\u{3099}",
        "。",
        "、",
        "々",
        "が",
        "カ",
        "ー",
        "・",
        "“",
        "…",
        "！",
        "０",
        "，",
        "Ａ",
        "ก\u{e49}",
        "😀",
        "𠀀",
    ];

    const ALL: [Normalization; 6] = [
        Normalization::None,
        Normalization::Lower,
        Normalization::Text,
        Normalization::WordChars,
        Normalization::AsciiWords,
        Normalization::UnicodeWords,
    ];

    /// Equal whatever the level, with *text* at every place of a block.
    fn check(text: &str) {
        for kind in ALL {
            let mut one = b"left over".to_vec();
            let ascii = kind.apply_plain(text, &mut one);
            at_every_level(|level| {
                let mut other = b"left over".to_vec();
                assert_eq!(kind.apply(text, &mut other), ascii, "{level} {kind:?} {text:?}");
                assert_eq!(String::from_utf8_lossy(&other), String::from_utf8_lossy(&one), "{level} {kind:?} {text:?}");
            });
        }
        // NFKC of all of it is what the parts must come to.
        let mut whole = Vec::new();
        composed_words(text, &mut whole);
        assert_eq!(normalized(Normalization::Text, text), String::from_utf8(whole).unwrap(), "{text:?}");
    }

    #[test]
    fn what_is_no_utf_8_is_found_at_every_place_of_a_block() {
        let broken: [&[u8]; 14] = [
            b"\x80",
            b"\xbf\x80",
            b"\xc3",
            b"\xc0\x80",
            b"\xc1\xbf",
            b"\xd0\xd0\x96",
            b"\xe4\xb8",
            b"\xe4",
            b"\xe0\x80\x80",
            b"\xed\xa0\x80",
            b"\xe4\xb8\xad\xad",
            b"\xf0\x80\x80",
            b"\xf5\x80\x80\x80",
            b"\xff",
        ];
        for broken in broken {
            for (filling, size) in [("x", 1), ("ж", 2), ("中", 3), ("。", 3)] {
                for before in 0..70 {
                    for behind in [0, 1, 2, 30] {
                        let count = |bytes: usize| bytes.div_ceil(size);
                        let mut text = filling.repeat(count(before)).into_bytes();
                        text.extend_from_slice(broken);
                        text.extend_from_slice(filling.repeat(count(behind)).as_bytes());
                        for kind in ALL {
                            let mut one = Vec::new();
                            kind.apply_plain(&String::from_utf8_lossy(&text), &mut one);
                            at_every_level(|level| {
                                let mut other = Vec::new();
                                kind.apply(Text::Unchecked(&text), &mut other);
                                assert_eq!(one, other, "{level} {kind:?} {text:x?}");
                            });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn every_letter_at_every_place_of_a_block() {
        for letter in LETTERS {
            for before in 0..70 {
                for after in [0, 1, 70] {
                    check(&format!("{}{letter}{}", "x".repeat(before), "y".repeat(after)));
                }
                check(&format!("{}{letter}{letter} {letter}", "é".repeat(before)));
            }
        }
    }

    #[test]
    fn texts_of_all_letters() {
        let mut seed = 1;
        for length in (0..200).chain([1000, 5000]) {
            // Some texts of a few letters, some of all: the slow path is common, or not.
            for kinds in [2, 5, 17, 30, LETTERS.len() as u64] {
                let text: String = (0..length)
                    .map(|_| {
                        seed = crate::hash::mix::finish(seed);
                        LETTERS[((seed >> 20) % kinds + seed % 2 * (seed >> 40) % 3) as usize % LETTERS.len()]
                    })
                    .collect();
                check(&text);
            }
        }
    }

    #[test]
    fn marks_join_the_last_byte_of_a_run_of_ascii() {
        for mark in ["\u{301}", "\u{323}", "\u{338}", "\u{200b}", "é", "“", "…", "ﬁ", "Σ"] {
            for last in ["e", "E", " ", "_", "=", "7", "x.", ". A"] {
                for before in 0..40 {
                    check(&format!("“{}{last}{mark}{}z", "Word ".repeat(before), "y".repeat(before)));
                }
            }
        }
    }

    #[test]
    fn ascii_words_are_the_same_at_every_level() {
        let mut seed = 1;
        for length in (0..200).chain([1000]) {
            for letters in ["ab", "a ", "aZ_9 .", "Q.,;\n@[`{/:\x7f\0xyz", "é Az", "\u{ff}-"] {
                let letters = letters.as_bytes();
                let text: Vec<u8> = (0..length)
                    .map(|_| {
                        seed = crate::hash::mix::finish(seed);
                        letters[(seed >> 20) as usize % letters.len()]
                    })
                    .collect();
                for (in_word, from) in [(false, 0), (true, 0), (true, length.min(7))] {
                    let (mut wanted, mut word) = (b"left".to_vec(), in_word);
                    for byte in &text[from..] {
                        match is_word_byte(byte) {
                            true => wanted.push(byte.to_ascii_lowercase()),
                            false if word => wanted.push(b' '),
                            false => {}
                        }
                        word = is_word_byte(byte);
                    }
                    at_every_level(|level| {
                        let mut found = b"left".to_vec();
                        assert_eq!(ascii_words(&text[from..], in_word, &mut found), word, "{level} {text:?}");
                        assert_eq!(found, wanted, "{level} {text:?}");
                    });
                }
            }
        }
    }

    #[test]
    fn every_character_alone_and_after_a_letter() {
        let mut text = String::new();
        for letter in ('\0'..=char::MAX).filter(|letter| (*letter as u32) < 0x3_2000) {
            text.push(letter);
            if text.len() > 40 {
                check(&text);
                check(&format!("a{text}"));
                text.clear();
            }
        }
    }
}
