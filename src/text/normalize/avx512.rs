#![allow(unsafe_code)]
//! Normalisation, 64 bytes at a time, without decoding: see `bytes`.
//!
//! ```text
//! for each block of whole characters:
//!     which bytes belong to word characters; what they become
//!     keep those, and the first byte behind a word as a space; move what is kept together
//! ```

use std::arch::x86_64::*;

use crate::system::memory;
use crate::system::simd::Avx512;
use crate::text::bytes::{Rules, SLOW, Tables, WORDS};
use crate::text::features::avx512::byte_numbers;

impl Avx512 {
    /// Normalise *text* while it is ASCII; whether the end was reached.
    pub fn normalize_ascii(self, rules: Rules, text: &[u8], state: &mut State, out: &mut Vec<u8>) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { run_ascii(rules, text, state, out) }
    }

    /// Normalise on from *state*; whether the end was reached.
    pub fn normalize(self, rules: Rules, text: &[u8], tables: &Tables, state: &mut State, out: &mut Vec<u8>) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { run(rules, text, tables, state, out) }
    }
}

/// Where the vector code stopped, and what it has to know to continue.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The next byte of the text.
    pub at: usize,
    /// The last character was a word character.
    pub in_word: bool,
    /// Bytes above 0x7f were written.
    pub high: bool,
    /// The block that must be handled character by character ends here.
    pub slow_end: usize,
    /// The last block before: where it began, how much was written then, and `in_word` there.
    before: (usize, usize, bool),
}

impl State {
    /// Go back by one block.
    pub fn rewind(&mut self, out: &mut Vec<u8>) {
        let written;
        (self.at, written, self.in_word) = self.before;
        out.truncate(written);
    }
}

const ALL: u64 = u64::MAX;

/// Normalise *text* into *out* until its end, or until a block that is not ASCII; whether the end was reached.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn run_ascii(rules: Rules, text: &[u8], state: &mut State, out: &mut Vec<u8>) -> bool {
    let table = ascii_table(rules);
    let gaps = if rules == Rules::Text { ALL } else { 0 };
    let others_stay = if rules == Rules::Lower { ALL } else { 0 };
    out.clear();
    memory::more_room(out, text.len() + 64);
    let end = out.as_mut_ptr();
    let (mut at, mut written, mut in_word) = (0, 0, 0);
    let mut before = (at, written, in_word);
    let mut step = |at: usize, size: usize, bytes: __m512i| {
        let ascii = of_ascii(bytes, table);
        let gap = !ascii.word & (ascii.word << 1 | in_word) & gaps;
        let kept = (ascii.word | gap | others_stay) & (ALL >> (64 - size));
        before = (at, written, in_word);
        in_word = ascii.word >> (size - 1) & 1;
        // SAFETY: at most `size` bytes are kept of as many read, and there was room for all
        // that was left to read and 64 more.
        unsafe { _mm512_storeu_si512(end.add(written).cast(), _mm512_maskz_compress_epi8(kept, ascii.new)) };
        written += kept.count_ones() as usize;
    };
    let (blocks, rest) = text.as_chunks::<64>();
    let mut whole = true;
    for block in blocks {
        // SAFETY: a block is 64 bytes.
        let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        if _mm512_movepi8_mask(bytes) != 0 {
            whole = false;
            break;
        }
        step(at, 64, bytes);
        at += 64;
    }
    if whole && !rest.is_empty() {
        // SAFETY: the mask reads no more bytes than are left.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(ALL >> (64 - rest.len()), rest.as_ptr().cast()) };
        whole = _mm512_movepi8_mask(bytes) == 0;
        if whole {
            step(at, rest.len(), bytes);
            at = text.len();
        }
    }
    // SAFETY: the bytes up to here were written above.
    unsafe { out.set_len(written) };
    *state =
        State { at, in_word: in_word != 0, high: false, slow_end: at, before: (before.0, before.1, before.2 != 0) };
    whole
}

/// Normalise `text[state.at..]` behind *out* until the end of the text, or until a block that
/// holds a character that is not in *tables*; whether the end was reached.
///
/// `state.at` is the beginning of a character. What is not UTF-8 is in no table.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn run(rules: Rules, text: &[u8], tables: &Tables, state: &mut State, out: &mut Vec<u8>) -> bool {
    let gaps = if rules == Rules::Text { ALL } else { 0 };
    let others_stay = if rules == Rules::Lower { ALL } else { 0 };
    let table = ascii_table(rules);
    let space = _mm512_set1_epi8(b' ' as i8);
    memory::more_room(out, text.len() - state.at + 64);
    let mut in_word = u64::from(state.in_word);
    let mut at = state.at;
    let mut high = 0;
    let mut written = out.len();
    let end = out.as_mut_ptr();
    let mut whole = true;
    while at < text.len() {
        let mut size = (text.len() - at).min(64);
        let mut keep = ALL >> (64 - size);
        // SAFETY: the mask reads no more bytes than are left.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(keep, text.as_ptr().add(at).cast()) };
        let Ascii { mut new, mut word } = of_ascii(bytes, table);
        let above = _mm512_movepi8_mask(bytes);
        if above != 0 {
            let found = others(&text[at..at + size], bytes, _mm512_mask_mov_epi8(new, above, bytes), above, tables);
            (new, size) = (found.new, found.size);
            keep = ALL >> (64 - size);
            if found.slow != 0 {
                whole = false;
                state.slow_end = at + size;
                break;
            }
            word = (word | found.word) & keep;
        }
        let gap = !word & (word << 1 | in_word) & gaps;
        let kept = keep & (word | gap | others_stay);
        new = _mm512_mask_mov_epi8(new, gap & above, space);
        state.before = (at, written, in_word != 0);
        in_word = word >> (size - 1) & 1;
        high |= above & kept & !gap;
        // SAFETY: at most `size` bytes are kept of as many read, and there was room for all
        // that was left to read and 64 more.
        unsafe { _mm512_storeu_si512(end.add(written).cast(), _mm512_maskz_compress_epi8(kept, new)) };
        written += kept.count_ones() as usize;
        at += size;
    }
    // SAFETY: the bytes up to here were written above.
    unsafe { out.set_len(written) };
    state.at = at;
    state.in_word = in_word != 0;
    state.high |= high != 0;
    whole
}

struct Ascii {
    /// What becomes of the ASCII characters.
    new: __m512i,
    /// Which are word characters.
    word: u64,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn of_ascii(bytes: __m512i, table: [__m512i; 2]) -> Ascii {
    let entries = _mm512_permutex2var_epi8(table[0], bytes, table[1]);
    let new = _mm512_and_si512(entries, _mm512_set1_epi8(0x7f));
    Ascii { new, word: !_mm512_movepi8_mask(_mm512_or_si512(entries, bytes)) }
}

/// What becomes of each ASCII character; the highest bit is set if it is not a word character.
#[inline]
#[target_feature(enable = "avx512f")]
fn ascii_table(rules: Rules) -> [__m512i; 2] {
    const fn table(other: Option<u8>) -> [u8; 128] {
        let mut table = [0; 128];
        let mut byte = 0u8;
        while byte < 128 {
            table[byte as usize] = match (byte.is_ascii_alphanumeric() || byte == b'_', other) {
                (true, _) => byte.to_ascii_lowercase(),
                (false, Some(other)) => 0x80 | other,
                (false, None) => 0x80 | byte,
            };
            byte += 1;
        }
        table
    }
    const SPACED: [u8; 128] = table(Some(b' '));
    const PLAIN: [u8; 128] = table(None);
    let table = if rules == Rules::Text { &SPACED } else { &PLAIN };
    // SAFETY: the table is 128 bytes.
    unsafe { [_mm512_loadu_si512(table.as_ptr().cast()), _mm512_loadu_si512(table.as_ptr().add(64).cast())] }
}

struct Found {
    new: __m512i,
    /// The bytes of word characters outside ASCII.
    word: u64,
    /// How many bytes make whole characters.
    size: usize,
    /// Characters that are not in the tables, and bytes that make none.
    slow: u64,
}

/// What becomes of the characters outside ASCII in *block*, whose *bytes* are those *above* 0x7f
/// and others.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn others(block: &[u8], bytes: __m512i, new: __m512i, above: u64, tables: &Tables) -> Found {
    let at_least = |low: u8| _mm512_mask_cmpge_epu8_mask(above, bytes, _mm512_set1_epi8(low as i8));
    let (from_two, from_three, from_four) = (at_least(0xc0), at_least(0xe0), at_least(0xf0));
    let size = whole_characters(block);
    let keep = ALL >> (64 - size);
    let (two, three) = (from_two & !from_three & keep, from_three & !from_four & keep);
    let continued = two << 1 | three << 1 | three << 2;
    let continuing = above & !from_two & keep;
    let mut found = Found { new, word: 0, size, slow: (from_four & keep) | (continued ^ continuing) };
    if found.slow == 0 && two != 0 {
        pairs(block, bytes, two, tables, &mut found);
    }
    if found.slow == 0 && three != 0 {
        threes(block, bytes, three, tables, &mut found);
    }
    found
}

/// How many bytes of *block* make whole characters: one that does not end in it waits for the next.
///
/// The next block begins there, so this is what all else waits for: it is kept out of the vectors.
#[inline]
fn whole_characters(block: &[u8]) -> usize {
    let Some([third, second, last]) = block.last_chunk::<3>() else {
        return block.len();
    };
    let missing = usize::from(*last >= 0xc0);
    let missing = if *second >= 0xe0 { 2 } else { missing };
    let missing = if *third >= 0xf0 { 3 } else { missing };
    // All of it, where not even the first character is whole.
    if missing == block.len() { missing } else { block.len() - missing }
}

/// Characters of two bytes, which begin at *leads*.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn pairs(block: &[u8], bytes: __m512i, leads: u64, tables: &Tables, found: &mut Found) {
    let second = moved(1, bytes);
    let six = _mm512_set1_epi8(0x3f);
    let pair = _mm512_and_si512(bytes, _mm512_set1_epi8(0xfe_u8 as i8));
    let odd = _mm512_slli_epi16::<6>(_mm512_and_si512(bytes, _mm512_set1_epi8(1)));
    let index = _mm512_or_si512(odd, _mm512_and_si512(second, six));
    let mut entries = _mm512_setzero_si512();
    let mut left = leads;
    while left != 0 {
        let lead = block[left.trailing_zeros() as usize] & 0xfe;
        let these = _mm512_mask_cmpeq_epi8_mask(left, pair, _mm512_set1_epi8(lead as i8));
        let table = tables.pairs[usize::from(lead >> 1 & 15)].as_ptr();
        // SAFETY: a table is 128 bytes.
        let (low, high) = unsafe { (_mm512_loadu_si512(table.cast()), _mm512_loadu_si512(table.add(64).cast())) };
        entries = _mm512_mask_mov_epi8(entries, these, _mm512_permutex2var_epi8(low, index, high));
        left &= !these;
    }
    found.slow |= _mm512_mask_cmpeq_epi8_mask(leads, entries, _mm512_set1_epi8(SLOW as i8));
    let word = leads & !_mm512_movepi8_mask(entries);
    let odd = _mm512_srli_epi16::<6>(_mm512_and_si512(entries, _mm512_set1_epi8(0x40)));
    found.new = _mm512_mask_mov_epi8(found.new, word, _mm512_or_si512(pair, odd));
    found.new = _mm512_mask_mov_epi8(found.new, word << 1, continuing(moved(-1, entries)));
    found.word |= word | word << 1;
}

/// Characters of three bytes, which begin at *leads*.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn threes(block: &[u8], bytes: __m512i, leads: u64, tables: &Tables, found: &mut Found) {
    let (second, third) = (moved(1, bytes), moved(2, bytes));
    let four = _mm512_and_si512(bytes, _mm512_set1_epi8(15));
    let by_lead = |table: &[u8; 16]| {
        // SAFETY: the array is 16 bytes.
        let table = unsafe { _mm_loadu_si128(table.as_ptr().cast()) };
        _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), four)
    };
    let by_byte = |table: &[u8; 64], byte: __m512i| {
        // SAFETY: the array is 64 bytes.
        _mm512_permutexvar_epi8(byte, unsafe { _mm512_loadu_si512(table.as_ptr().cast()) })
    };
    let common = &tables.common;
    let known = _mm512_ternarylogic_epi64::<0x80>(
        by_lead(&common.leads),
        by_byte(&common.seconds, second),
        by_byte(&common.thirds, third),
    );
    let mut word = _mm512_mask_cmpge_epu8_mask(leads, second, by_lead(&tables.first));
    word = _mm512_mask_cmple_epu8_mask(word, second, by_lead(&tables.last));
    word |= _mm512_mask_test_epi8_mask(leads, known, _mm512_set1_epi8(WORDS as i8));
    let mut left = leads & !word & _mm512_testn_epi8_mask(known, known);
    if left != 0 {
        let looked_up = left;
        let mut entries = _mm512_setzero_si512();
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            let (lead, next) = (block[at], block[at + 1]);
            let these = _mm512_mask_cmpeq_epi8_mask(left, bytes, _mm512_set1_epi8(lead as i8));
            let these = _mm512_mask_cmpeq_epi8_mask(these, second, _mm512_set1_epi8(next as i8));
            let table = &tables.threes[usize::from(lead & 15) << 6 | usize::from(next & 0x3f)];
            entries = _mm512_mask_mov_epi8(entries, these, by_byte(table, third));
            left &= !these;
        }
        found.slow |= _mm512_mask_cmpeq_epi8_mask(looked_up, entries, _mm512_set1_epi8(SLOW as i8));
        let kept = looked_up & !_mm512_movepi8_mask(entries);
        found.new = _mm512_mask_mov_epi8(found.new, kept << 2, continuing(moved(-2, entries)));
        word |= kept;
    }
    found.word |= word | word << 1 | word << 2;
}

/// The byte *by* places further on, in every place.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn moved(by: i8, bytes: __m512i) -> __m512i {
    _mm512_permutexvar_epi8(_mm512_add_epi8(byte_numbers(), _mm512_set1_epi8(by)), bytes)
}

/// Continuation bytes with the low six bits of *bytes*.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn continuing(bytes: __m512i) -> __m512i {
    let six = _mm512_and_si512(bytes, _mm512_set1_epi8(0x3f));
    _mm512_or_si512(six, _mm512_set1_epi8(0x80_u8 as i8))
}
