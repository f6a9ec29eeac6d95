#![allow(unsafe_code)]
//! ASCII words, 16 bytes at a time: see `avx2`.

use std::arch::aarch64::*;

use super::PACKED;
use crate::system::memory;
use crate::system::simd::Neon;

const BLOCK: usize = 16;

impl Neon {
    /// See `ascii_words`.
    pub fn ascii_words(self, text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
        // SAFETY: every processor of aarch64 has NEON.
        unsafe { ascii_words(text, in_word, out) }
    }
}

#[target_feature(enable = "neon")]
fn ascii_words(text: &[u8], in_word: bool, out: &mut Vec<u8>) -> bool {
    memory::more_room(out, text.len() + 2 * BLOCK);
    let mut written = out.len();
    let end = out.as_mut_ptr();
    let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let mut before = vdupq_n_u8(if in_word { 0xff } else { 0 });
    let mut step = |block: &[u8; BLOCK], size: usize| {
        // SAFETY: a block is 16 bytes.
        let bytes = unsafe { vld1q_u8(block.as_ptr()) };
        let (new, word) = lowered(bytes);
        let kept = vandq_u8(vorrq_u8(word, vextq_u8::<15>(before, word)), bits);
        before = word;
        let kept = [vaddv_u8(vget_low_u8(kept)), vaddv_u8(vget_high_u8(kept))];
        let valid = (u16::MAX >> (BLOCK - size)).to_le_bytes();
        for (at, eight) in [vget_low_u8(new), vget_high_u8(new)].into_iter().enumerate() {
            let kept = kept[at] & valid[at];
            // SAFETY: a shuffle is eight bytes. No more is kept than was read, and there is room for all that is
            // read and a block more.
            unsafe { vst1_u8(end.add(written), vtbl1_u8(eight, vld1_u8(PACKED[usize::from(kept)].as_ptr()))) };
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
    text.last().map_or(in_word, super::is_word_byte)
}

/// The lower case of word bytes, spaces for others; and which are word bytes.
#[inline]
#[target_feature(enable = "neon")]
fn lowered(bytes: uint8x16_t) -> (uint8x16_t, uint8x16_t) {
    let within = |bytes, first: u8, last: u8| vcleq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(last - first));
    let small = vorrq_u8(bytes, vdupq_n_u8(0x20));
    let letter = within(small, b'a', b'z');
    let other = vorrq_u8(within(bytes, b'0', b'9'), vceqq_u8(bytes, vdupq_n_u8(b'_')));
    let lower = vorrq_u8(bytes, vandq_u8(letter, vdupq_n_u8(0x20)));
    let word = vorrq_u8(letter, other);
    (vbslq_u8(word, lower, vdupq_n_u8(b' ')), word)
}
