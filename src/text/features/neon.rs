#![allow(unsafe_code)]
//! Where characters begin and where spaces are, 16 bytes at a time.

use std::arch::aarch64::*;

use super::offsets;
use crate::system::simd::Neon;

impl Neon {
    /// Append *base* plus the offsets of the bytes of *text* that are spaces.
    pub fn spaces(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: every processor of aarch64 has NEON.
        unsafe { spaces(text, base, out) }
    }

    /// Append *base* plus the offsets of the bytes of *text* that begin a character.
    pub fn characters(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: every processor of aarch64 has NEON.
        unsafe { characters(text, base, out) }
    }
}

#[target_feature(enable = "neon")]
fn spaces(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |block| mask_of(block, |bytes| vceqq_u8(bytes, vdupq_n_u8(b' '))));
}

#[target_feature(enable = "neon")]
fn characters(text: &[u8], base: u32, out: &mut Vec<u32>) {
    // As signed numbers the bytes that continue a character are the lowest ones.
    offsets(text, base, out, |block| {
        mask_of(block, |bytes| vcgtq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8(0xbf_u8 as i8)))
    });
}

/// Bit i where *found* sets the bits of byte i.
#[inline]
#[target_feature(enable = "neon")]
fn mask_of(block: &[u8; 64], found: impl Fn(uint8x16_t) -> uint8x16_t) -> u64 {
    let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    // SAFETY: a block is 64 bytes.
    let some = |at: usize| vandq_u8(found(unsafe { vld1q_u8(block.as_ptr().add(at)) }), bits);
    // Neighbours added three times: a byte has the bits of eight.
    let (low, high) = (vpaddq_u8(some(0), some(16)), vpaddq_u8(some(32), some(48)));
    let all = vpaddq_u8(low, high);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(all, all)))
}
