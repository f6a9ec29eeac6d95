#![allow(unsafe_code)]
//! ASCII words, 32 bytes at a time.
//!
//! ```text
//! for each block: which bytes belong to words; those and the first one behind a word are kept
//!     eight bytes at a time: a table says by which shuffle those that are kept move together
//! ```

use std::arch::x86_64::*;

use super::PACKED;
use crate::system::memory;
use crate::system::simd::Avx2;

const BLOCK: usize = 32;

impl Avx2 {
    /// See `ascii_words`.
    pub fn ascii_words(self, text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { ascii_words(text, in_word, out) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn ascii_words(text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
    memory::more_room(out, text.len() + 2 * BLOCK);
    let mut written = out.len();
    let end = out.as_mut_ptr();
    let mut before = u32::from(in_word);
    let mut step = |block: &[u8; BLOCK], size: usize| {
        // SAFETY: a block is 32 bytes.
        let bytes = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
        let (new, word) = lowered(bytes);
        let kept = (word | word << 1 | before) & (u32::MAX >> (BLOCK - size));
        before = word >> (size - 1) & 1;
        let (low, high) = (_mm256_castsi256_si128(new), _mm256_extracti128_si256::<1>(new));
        let eights = [low, _mm_unpackhi_epi64(low, low), high, _mm_unpackhi_epi64(high, high)];
        for (eight, kept) in eights.into_iter().zip(kept.to_le_bytes()) {
            // SAFETY: a shuffle is eight bytes. No more is kept than was read, and there is room for all that is
            // read and a block more.
            unsafe {
                let shuffle = _mm_loadl_epi64(PACKED[usize::from(kept)].as_ptr().cast());
                _mm_storel_epi64(end.add(written).cast(), _mm_shuffle_epi8(eight, shuffle));
            }
            written = written.wrapping_add(kept.count_ones() as usize);
        }
    };
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    blocks.iter().for_each(|block| step(block, BLOCK));
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        step(&block, rest.len());
    }
    // SAFETY: the bytes up to here were written above.
    unsafe { out.set_len(written) };
    before != 0
}

/// The lower case of word bytes, spaces for others; and which are word bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn lowered(bytes: __m256i) -> (__m256i, u32) {
    let all = |byte: u8| _mm256_set1_epi8(byte as i8);
    // Without sign: what is below the first one is far above the last one.
    let within = |bytes, first: u8, last: u8| {
        let from = _mm256_sub_epi8(bytes, all(first));
        _mm256_cmpeq_epi8(_mm256_min_epu8(from, all(last - first)), from)
    };
    let small = _mm256_or_si256(bytes, all(0x20));
    let letter = within(small, b'a', b'z');
    let other = _mm256_or_si256(within(bytes, b'0', b'9'), _mm256_cmpeq_epi8(bytes, all(b'_')));
    let lower = _mm256_or_si256(bytes, _mm256_and_si256(letter, all(0x20)));
    let word = _mm256_or_si256(letter, other);
    (_mm256_blendv_epi8(all(b' '), lower, word), _mm256_movemask_epi8(word) as u32)
}
