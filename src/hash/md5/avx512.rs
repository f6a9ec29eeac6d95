#![allow(unsafe_code)]
//! MD5 of short strings, 32 at a time: one string in each lane of two vectors.
//!
//! A string of up to 55 bytes is one block: itself, 0x80, zeros, and its length in bits. The two
//! vectors are worked on in turn, so that neither waits for the other's last step.

use std::arch::x86_64::*;

use crate::hash::md5::{CONSTANTS, LANES, LONGEST, word};
use crate::hash::mix::PADDING;
use crate::system::simd::Avx512Base;

impl Avx512Base {
    /// See `md5::digests` there: word j of digest i in `out[j][i]`.
    pub fn md5(self, text: &[u8], starts: &[u32], ends: &[u32], out: &mut [[u32; LANES]; 4]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { digests(text, starts, ends, out) }
    }
}

/// Two vectors of sixteen lanes.
type Lanes = [__m512i; 2];

/// The digests of the parts `text[starts[i]..ends[i]]`, `LANES` at most and each no longer than
/// `LONGEST`: word j of digest i in `out[j][i]`. Longer ones give anything.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn digests(text: &[u8], starts: &[u32], ends: &[u32], out: &mut [[u32; LANES]; 4]) {
    assert!(starts.len() == ends.len() && starts.len() <= LANES, "a start and an end per digest");
    let farthest = ends.iter().fold(0, |farthest, end| farthest.max(*end)) as usize;
    assert!(text.len() >= farthest + PADDING, "parts stand in a padded text");
    let message = message(text, starts, ends);
    let start = [0x6745_2301, 0xefcd_ab89_u32, 0x98ba_dcfe, 0x1032_5476];
    let start = start.map(|word| [_mm512_set1_epi32(word as i32); 2]);
    let mut state = start;
    // The functions of b, c and d: b ? c : d, d ? b : c, b ^ c ^ d, c ^ (b | !d).
    round::<0, 0xca, 7, 12, 17, 22>(&mut state, &message);
    round::<1, 0xe4, 5, 9, 14, 20>(&mut state, &message);
    round::<2, 0x96, 4, 11, 16, 23>(&mut state, &message);
    round::<3, 0x39, 6, 10, 15, 21>(&mut state, &message);
    for ((word, first), out) in state.iter().zip(start).zip(out) {
        for half in 0..2 {
            let sum = _mm512_add_epi32(word[half], first[half]);
            // SAFETY: each half of the lanes is 64 bytes.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(16 * half).cast(), sum) };
        }
    }
}

/// The sixteen words of the block of each string.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn message(text: &[u8], starts: &[u32], ends: &[u32]) -> [Lanes; 16] {
    let mut message = [[_mm512_setzero_si512(); 2]; 16];
    let (zero, four) = (_mm512_setzero_si512(), _mm512_set1_epi32(4));
    for (half, (starts, ends)) in starts.chunks(16).zip(ends.chunks(16)).enumerate() {
        let lanes = ((1u32 << starts.len()) - 1) as __mmask16;
        // SAFETY: the mask reads as many offsets as there are.
        let (from, to) = unsafe {
            (
                _mm512_maskz_loadu_epi32(lanes, starts.as_ptr().cast()),
                _mm512_maskz_loadu_epi32(lanes, ends.as_ptr().cast()),
            )
        };
        let length = _mm512_sub_epi32(to, from);
        let short = _mm512_cmple_epu32_mask(length, _mm512_set1_epi32(LONGEST as i32));
        let length = _mm512_maskz_mov_epi32(short, length);
        let longest = _mm512_reduce_max_epu32(length) as usize;
        message[14][half] = _mm512_slli_epi32::<3>(length);
        for (word, lanes) in message.iter_mut().enumerate().take(longest / 4 + 1) {
            let left = _mm512_sub_epi32(length, _mm512_set1_epi32(4 * word as i32));
            let some = _mm512_cmpgt_epi32_mask(left, zero);
            let at = _mm512_add_epi32(from, _mm512_set1_epi32(4 * word as i32));
            let (low, high) = (_mm512_castsi512_si256(at), _mm512_extracti64x4_epi64::<1>(at));
            // SAFETY: four bytes from within a string are within the padded text.
            let (low, high) =
                unsafe { (gather(text, some as __mmask8, low), gather(text, (some >> 8) as __mmask8, high)) };
            let bytes = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            // As many bytes as are left; the mark after the last.
            let bits = _mm512_slli_epi32::<3>(_mm512_max_epi32(zero, _mm512_min_epi32(left, four)));
            let unused = _mm512_sllv_epi32(_mm512_set1_epi32(-1), bits);
            let ended = _mm512_cmpge_epi32_mask(left, zero);
            let mark = _mm512_maskz_sllv_epi32(ended, _mm512_set1_epi32(0x80), bits);
            lanes[half] = _mm512_or_si512(_mm512_andnot_si512(unused, bytes), mark);
        }
    }
    message
}

/// Four bytes at each offset of *lanes*, zeros elsewhere.
///
/// # Safety
/// Every offset of *lanes* has four bytes of *text* from it.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn gather(text: &[u8], lanes: __mmask8, offsets: __m256i) -> __m256i {
    let offsets = _mm512_cvtepu32_epi64(offsets);
    // SAFETY: the caller vouches for the offsets.
    unsafe { _mm512_mask_i64gather_epi32::<1>(_mm256_setzero_si256(), lanes, offsets, text.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn round<const N: usize, const F: i32, const R0: i32, const R1: i32, const R2: i32, const R3: i32>(
    state: &mut [Lanes; 4],
    message: &[Lanes; 16],
) {
    let [mut a, mut b, mut c, mut d] = *state;
    for at in [0, 4, 8, 12] {
        let [first, second, third, fourth] = [word::<N>(at), word::<N>(at + 1), word::<N>(at + 2), word::<N>(at + 3)];
        a = step::<F, R0>(a, b, c, d, &message[first], CONSTANTS[16 * N + at]);
        d = step::<F, R1>(d, a, b, c, &message[second], CONSTANTS[16 * N + at + 1]);
        c = step::<F, R2>(c, d, a, b, &message[third], CONSTANTS[16 * N + at + 2]);
        b = step::<F, R3>(b, c, d, a, &message[fourth], CONSTANTS[16 * N + at + 3]);
    }
    *state = [a, b, c, d];
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn step<const F: i32, const R: i32>(a: Lanes, b: Lanes, c: Lanes, d: Lanes, word: &Lanes, constant: u32) -> Lanes {
    let constant = _mm512_set1_epi32(constant as i32);
    let mut new = a;
    for half in 0..2 {
        let chosen = _mm512_ternarylogic_epi32::<F>(b[half], c[half], d[half]);
        let sum = _mm512_add_epi32(a[half], _mm512_add_epi32(word[half], constant));
        let turned = _mm512_rol_epi32::<R>(_mm512_add_epi32(sum, chosen));
        new[half] = _mm512_add_epi32(b[half], turned);
    }
    new
}
