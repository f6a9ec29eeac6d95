#![forbid(unsafe_code)]
//! What normalisation does to the bytes of a character, where it can be stated byte by byte.
//!
//! Most characters of most texts are dropped, kept, or changed into one that differs in the
//! last byte only (a small letter: `Ж` is d0 96, `ж` is d0 b6). Such a text is normalised
//! without being decoded. These tables say for each character of two or three bytes which it
//! is; they are made from the code-point table, so the two cannot disagree.

use std::sync::OnceLock;

use crate::text::unicode::{self, FORMAT, MARK, Properties, SPECIAL, UNSTABLE, WORD};

/// The character is not a word character.
pub const OTHER: u8 = 0x80;
/// The character must be handled one by one.
pub const SLOW: u8 = 0xff;

/// Which normalisation a table is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Words of NFKC text in lower case, one space between them.
    Text,
    /// Word characters in lower case.
    WordChars,
    /// Lower case.
    Lower,
}

pub struct Tables {
    /// By lead byte / 2 (c2 and c3, c4 and c5, ...), then by the last bit of the lead byte and
    /// the low six bits of the other one. An entry is `SLOW`, or `OTHER`, or else the same
    /// seven bits of the character that replaces this one.
    pub pairs: Box<[[u8; 128]; 16]>,
    /// By the lead byte's low four bits and the second byte's low six, then by the third
    /// byte's low six. As above, but only the third byte changes.
    pub threes: Box<[[u8; 64]; 1024]>,
    /// Three-byte characters whose second byte is within these bounds, by the lead byte's low
    /// four bits, are word characters that nothing changes.
    pub first: [u8; 16],
    pub last: [u8; 16],
    pub common: Common,
}

/// The characters that are as common as letters in East Asia and are in no such run: a bit for each of
/// six blocks of 64, by the lead byte's low four bits, by the second and by the third byte's low six. A bit
/// that all three have says that the character is a word character that nothing changes, if it is one of
/// `WORDS`, else that it is none.
pub struct Common {
    pub leads: [u8; 16],
    pub seconds: [u8; 64],
    pub thirds: [u8; 64],
}

/// Dashes and quotes, the punctuation of East Asia, its wide ASCII; and kana.
const COMMON: [(u8, u8); 6] = [(0xe2, 0x80), (0xe3, 0x80), (0xef, 0xbc), (0xe3, 0x81), (0xe3, 0x82), (0xe3, 0x83)];
/// The bits of kana.
pub const WORDS: u8 = 0b11_1000;

impl Common {
    fn new(rules: Rules, threes: &[[u8; 64]; 1024]) -> Common {
        let mut common = Common { leads: [0; 16], seconds: [0; 64], thirds: [0; 64] };
        for (number, (lead, second)) in COMMON.into_iter().enumerate() {
            let (lead, second, bit) = (usize::from(lead & 15), usize::from(second & 0x3f), 1 << number);
            common.leads[lead] |= bit;
            common.seconds[second] |= bit;
            for (third, entry) in threes[lead << 6 | second].iter().enumerate() {
                let stays = usize::from(*entry) == third;
                let other = *entry == OTHER || stays && rules == Rules::Lower;
                let told = if bit & WORDS != 0 { stays } else { other };
                common.thirds[third] |= if told { bit } else { 0 };
            }
        }
        common
    }
}

impl Tables {
    /// The tables for *rules*, made on first use.
    pub fn get(rules: Rules) -> &'static Tables {
        static TABLES: [OnceLock<Tables>; 3] = [const { OnceLock::new() }; 3];
        TABLES[rules as usize].get_or_init(|| Tables::new(rules))
    }

    fn new(rules: Rules) -> Tables {
        let table = Properties::get();
        let mut pairs = Box::new([[SLOW; 128]; 16]);
        for code in 0x80..0x800u32 {
            pairs[code as usize >> 7][code as usize & 0x7f] = entry(rules, table, code, 7);
        }
        let mut threes = Box::new([[SLOW; 64]; 1024]);
        for code in (0x800..0xd800).chain(0xe000..0x1_0000u32) {
            threes[code as usize >> 6][code as usize & 0x3f] = entry(rules, table, code, 6);
        }
        // A run of second bytes under which every character stays as it is; 1..=0 for none.
        let (mut first, mut last) = ([1; 16], [0; 16]);
        for lead in 0..16 {
            let kept = |second: usize| {
                let block = &threes[lead * 64 + second];
                block.iter().enumerate().all(|(third, entry)| usize::from(*entry) == third)
            };
            // The last run is the one in use: Han behind its extension, Hangul behind Yi.
            if let Some(end) = (0..64).rev().find(|second| kept(*second)) {
                let begin = (0..end).rev().take_while(|second| kept(*second)).last().unwrap_or(end);
                (first[lead], last[lead]) = (0x80 | begin as u8, 0x80 | end as u8);
            }
        }
        let common = Common::new(rules, &threes);
        Tables { pairs, threes, first, last, common }
    }
}

/// The entry of a character whose low *bits* bits may change.
fn entry(rules: Rules, table: &Properties, code: u32, bits: u32) -> u8 {
    let facts = table.entry(code);
    let slow = match rules {
        Rules::Text => facts & (UNSTABLE | SPECIAL | FORMAT | MARK) != 0 || unicode::class(facts) != 0,
        Rules::WordChars | Rules::Lower => facts & SPECIAL != 0,
    };
    if slow {
        return SLOW;
    }
    if rules != Rules::Lower && facts & WORD == 0 {
        return OTHER;
    }
    let lower = match rules {
        Rules::Text => unicode::lower_stable(code, facts),
        Rules::WordChars | Rules::Lower => unicode::lower(code, facts),
    };
    if lower >> bits == code >> bits { (lower & ((1 << bits) - 1)) as u8 } else { SLOW }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_letters_are_in_the_tables() {
        let tables = Tables::get(Rules::Text);
        assert_eq!(tables.pairs['Ж' as usize >> 7]['Ж' as usize & 0x7f], ('ж' as usize & 0x7f) as u8);
        assert_eq!(tables.pairs['«' as usize >> 7]['«' as usize & 0x7f], OTHER);
        assert_eq!(tables.threes['。' as usize >> 6]['。' as usize & 0x3f], OTHER);
        for letter in ['中', '한'] {
            let second = 0x80 | (letter as u32 >> 6 & 0x3f) as u8;
            let lead = letter as usize >> 12;
            assert!((tables.first[lead]..=tables.last[lead]).contains(&second), "{letter}");
        }
    }
}
