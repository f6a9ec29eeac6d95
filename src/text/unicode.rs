#![forbid(unsafe_code)]
//! What the core knows of a code point, from one checked-in table.
//!
//! The table is expanded on first use into two stages (blocks of 128 code points, equal
//! blocks stored once), so a look-up is two loads and no branch.

use std::collections::HashMap;
use std::sync::OnceLock;

use unicode_normalization::UNICODE_VERSION;

use crate::text::unicode_table::{DELTAS, RUNS, VERSION};

// NFKC comes from the crate, everything else from our table, and one version is in the digest of a
// scheme. After `cargo update` brings a younger crate: tools/unicode_table.py with that Unicode first.
const _: () = assert!(
    VERSION.0 == UNICODE_VERSION.0 && VERSION.1 == UNICODE_VERSION.1 && VERSION.2 == UNICODE_VERSION.2,
    "src/text/unicode_table.rs and the crate unicode-normalization are of two versions of Unicode"
);

/// The version of Unicode that decides what a text is normalised to.
pub fn version() -> String {
    format!("{}.{}.{}", VERSION.0, VERSION.1, VERSION.2)
}

/// A letter, a number or an underscore: what `\w` means in Python.
pub const WORD: u32 = 1;
/// A combining mark.
pub const MARK: u32 = 1 << 1;
/// Written without spaces: Han, kana, Hangul.
pub const CJK: u32 = 1 << 2;
/// Invisible: soft hyphen, zero-width and bidi marks.
pub const FORMAT: u32 = 1 << 3;
/// Text that holds it must go through NFKC proper.
pub const UNSTABLE: u32 = 1 << 4;
/// Its lower-case form is not one code point, or depends on its neighbours.
pub const SPECIAL: u32 = 1 << 5;
const CASED: u32 = 1 << 6;
const IGNORABLE: u32 = 1 << 7;

const BLOCK: usize = 128;
const CODES: usize = 0x11_0000;

/// What is known of every code point.
pub struct Properties {
    stage: Vec<u16>,
    blocks: Vec<u32>,
}

impl Properties {
    /// The table, expanded on first use.
    pub fn get() -> &'static Properties {
        static TABLE: OnceLock<Properties> = OnceLock::new();
        TABLE.get_or_init(Properties::expand)
    }

    fn expand() -> Properties {
        let mut all = vec![0u32; CODES];
        for (row, &(first, entry)) in RUNS.iter().enumerate() {
            let end = RUNS.get(row + 1).map_or(CODES, |next| next.0 as usize);
            all[first as usize..end].fill(entry);
        }
        let mut seen: HashMap<&[u32], u16> = HashMap::new();
        let mut table = Properties { stage: Vec::with_capacity(CODES / BLOCK), blocks: Vec::new() };
        for block in all.chunks(BLOCK) {
            let next = seen.len() as u16;
            let number = *seen.entry(block).or_insert_with(|| {
                table.blocks.extend_from_slice(block);
                next
            });
            table.stage.push(number);
        }
        table
    }

    /// Flags, combining class (bits 8..16) and deltas of a code point.
    #[inline(always)]
    pub fn entry(&self, code: u32) -> u32 {
        let block = self.stage[code as usize / BLOCK] as usize;
        self.blocks[block * BLOCK + code as usize % BLOCK]
    }
}

/// The combining class in an entry.
#[inline(always)]
pub fn class(entry: u32) -> u32 {
    entry >> 8 & 0xff
}

/// The lower-case form of a code point that is not `SPECIAL`.
#[inline(always)]
pub fn lower(code: u32, entry: u32) -> u32 {
    code.wrapping_add_signed(DELTAS[(entry >> 16 & 0xff) as usize])
}

/// The lower-case form of the NFKC of a code point that is neither `UNSTABLE` nor `SPECIAL`.
#[inline(always)]
pub fn lower_stable(code: u32, entry: u32) -> u32 {
    code.wrapping_add_signed(DELTAS[(entry >> 24) as usize])
}

/// Whether what a capital sigma becomes is seen from its two neighbours alone, whatever NFKC makes
/// of the others: three dots in one (U+2026) are looked through after NFKC, and not before.
pub fn sigma_is_plain(table: &Properties, before: &str, after: &str) -> bool {
    let plain = |neighbour: Option<char>| {
        neighbour.is_none_or(|letter| {
            (letter.is_ascii() || ('\u{386}'..='\u{3ff}').contains(&letter))
                && table.entry(letter as u32) & (IGNORABLE | UNSTABLE | FORMAT | MARK) == 0
        })
    };
    plain(before.chars().next_back()) && plain(after.chars().next())
}

/// Whether a capital sigma between *before* and *after* ends its word, and so becomes U+03C2.
pub fn sigma_is_final(table: &Properties, before: &str, after: &str) -> bool {
    let cased = |letters: &mut dyn Iterator<Item = char>| {
        letters
            .map(|letter| table.entry(letter as u32))
            .find(|entry| entry & IGNORABLE == 0)
            .is_some_and(|entry| entry & CASED != 0)
    };
    cased(&mut before.chars().rev()) && !cased(&mut after.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_standard_library_on_letters_both_know() {
        let table = Properties::get();
        for letter in ('\0'..=char::MAX).filter(|letter| letter.is_alphabetic()) {
            let entry = table.entry(letter as u32);
            if entry & SPECIAL == 0 && entry & WORD != 0 {
                let mut expected = letter.to_lowercase();
                assert_eq!(char::from_u32(lower(letter as u32, entry)), expected.next(), "{letter:?}");
            }
        }
    }

    #[test]
    fn full_width_letters_become_plain_ones_without_the_slow_path() {
        let entry = Properties::get().entry('Ａ' as u32);
        assert_eq!(entry & UNSTABLE, 0);
        assert_eq!(lower_stable('Ａ' as u32, entry), 'a' as u32);
    }
}
