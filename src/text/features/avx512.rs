#![allow(unsafe_code)]
//! Where characters begin and where spaces are.

use std::arch::x86_64::*;

use crate::system::memory;
use crate::system::simd::Avx512;

impl Avx512 {
    /// Append *base* plus the offsets of the bytes of *text* that are spaces.
    pub fn spaces(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: `in_force` found the instructions.
        unsafe { spaces(text, base, out) }
    }

    /// Append *base* plus the offsets of the bytes of *text* that begin a character.
    pub fn characters(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: `in_force` found the instructions.
        unsafe { characters(text, base, out) }
    }
}

/// Append the offsets (and *base*) of the bytes of *text* that are spaces.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn spaces(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |bytes| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8)));
}

/// Append the offsets (and *base*) of the bytes of *text* that begin a character.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn characters(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |bytes| _mm512_cmpge_epi8_mask(bytes, _mm512_set1_epi8(0xc0_u8 as i8)));
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn offsets(text: &[u8], base: u32, out: &mut Vec<u32>, found: impl Fn(__m512i) -> u64) {
    let iota = byte_numbers();
    for (block, bytes) in text.chunks(64).enumerate() {
        let valid = u64::MAX >> (64 - bytes.len());
        // SAFETY: the mask reads as many bytes as there are.
        let mask = found(unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().cast()) }) & valid;
        let base = _mm512_set1_epi32(base.wrapping_add(64 * block as u32) as i32);
        memory::more_room(out, 64 + 16);
        let written = out.len() + mask.count_ones() as usize;
        let places = _mm512_maskz_compress_epi8(mask, iota);
        let quarters = [
            _mm512_castsi512_si128(places),
            _mm512_extracti32x4_epi32::<1>(places),
            _mm512_extracti32x4_epi32::<2>(places),
            _mm512_extracti32x4_epi32::<3>(places),
        ];
        // SAFETY: there is room for 64 offsets and more.
        let target = unsafe { out.as_mut_ptr().add(out.len()) };
        // All four, whatever they hold: how many are needed could not be foretold.
        for (at, quarter) in quarters.into_iter().enumerate() {
            let sixteen = _mm512_add_epi32(base, _mm512_cvtepu8_epi32(quarter));
            // SAFETY: as above.
            unsafe { _mm512_storeu_si512(target.add(16 * at).cast(), sixteen) };
        }
        // SAFETY: the offsets up to here were written above.
        unsafe { out.set_len(written) };
    }
}

/// The number of each byte.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn byte_numbers() -> __m512i {
    const IOTA: [u8; 64] = {
        let mut iota = [0; 64];
        let mut at = 0;
        while at < 64 {
            iota[at] = at as u8;
            at += 1;
        }
        iota
    };
    // SAFETY: the array is 64 bytes.
    unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) }
}
