//! Our own hash, eight strings at a time.

use std::arch::x86_64::*;

use crate::mix::{FIRST, GAMMA, PADDING, SECOND};

/// `mix::finish` of eight words.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn finish(x: __m512i) -> __m512i {
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<30>(x));
    let x = _mm512_mullo_epi64(x, _mm512_set1_epi64(FIRST as i64));
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<27>(x));
    let x = _mm512_mullo_epi64(x, _mm512_set1_epi64(SECOND as i64));
    _mm512_xor_si512(x, _mm512_srli_epi64::<31>(x))
}

/// `mix::words` with *step* = STREAM * j.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn words(hashes: &[u64], step: u64, out: &mut [u64]) {
    assert_eq!(hashes.len(), out.len(), "a word per hash");
    let step = _mm512_set1_epi64(step as i64);
    for (hashes, out) in hashes.chunks(8).zip(out.chunks_mut(8)) {
        let lanes = ((1u32 << out.len()) - 1) as __mmask8;
        let word = finish(_mm512_add_epi64(super::votes::load(hashes), step));
        // SAFETY: the mask writes as many words as there are.
        unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), lanes, word) };
    }
}

/// The byte shuffle that makes eight runs of *width* (1 to 8) bytes from sixteen bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn window_shuffle(width: usize) -> __m512i {
    let mut index = [0x80u8; 64];
    for (lane, eight) in index.chunks_exact_mut(8).enumerate() {
        for (at, byte) in eight.iter_mut().take(width).enumerate() {
            *byte = (lane + at) as u8;
        }
    }
    // SAFETY: the array is 64 bytes.
    unsafe { _mm512_loadu_si512(index.as_ptr().cast()) }
}

/// Eight neighbouring runs of bytes, the first at *at*.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn eight_windows(text: &[u8], at: usize, shuffle: __m512i) -> __m512i {
    let sixteen = &text[at..at + 16];
    // SAFETY: the slice is 16 bytes.
    let sixteen = unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) };
    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(sixteen), shuffle)
}

/// The hashes of the parts `text[starts[i]..ends[i]]`, one after the other into *out*.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn hash_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    assert!(starts.len() == out.len() && ends.len() == out.len(), "a start and an end per hash");
    let farthest = ends.iter().max().map_or(0, |end| *end as usize);
    assert!(text.len() >= farthest + PADDING, "parts stand in a padded text");
    let (seed, gamma) = (_mm512_set1_epi64(seed as i64), _mm512_set1_epi64(GAMMA as i64));
    let eight = _mm512_set1_epi64(8);
    for ((starts, ends), out) in starts.chunks(8).zip(ends.chunks(8)).zip(out.chunks_mut(8)) {
        let lanes = ((1u32 << out.len()) - 1) as __mmask8;
        // SAFETY: the mask reads as many offsets as there are.
        let (starts, ends) = unsafe {
            (
                _mm256_maskz_loadu_epi32(lanes, starts.as_ptr().cast()),
                _mm256_maskz_loadu_epi32(lanes, ends.as_ptr().cast()),
            )
        };
        assert!(_mm256_cmpgt_epu32_mask(starts, ends) == 0, "a part begins before it ends");
        let (start, end) = (_mm512_cvtepu32_epi64(starts), _mm512_cvtepu32_epi64(ends));
        let length = _mm512_sub_epi64(end, start);
        let mut x = _mm512_add_epi64(seed, _mm512_mullo_epi64(length, gamma));
        let mut left = length;
        let mut from = start;
        loop {
            let longer = _mm512_cmpgt_epu64_mask(left, eight);
            if longer == 0 {
                break;
            }
            // SAFETY: eight bytes from within a part are within the padded text.
            let next = unsafe { gather(text, longer, from) };
            x = _mm512_mask_mov_epi64(x, longer, finish(_mm512_xor_si512(x, next)));
            from = _mm512_mask_add_epi64(from, longer, from, eight);
            left = _mm512_mask_sub_epi64(left, longer, left, eight);
        }
        // The last eight bytes; of a shorter part all, zeros behind them.
        let short = _mm512_min_epu64(length, eight);
        let unused = _mm512_slli_epi64::<3>(_mm512_sub_epi64(eight, short));
        // SAFETY: no part begins before the text, and 64 bytes stand behind each.
        let last = unsafe { gather(text, lanes, _mm512_sub_epi64(end, short)) };
        let last = _mm512_and_si512(last, _mm512_srlv_epi64(_mm512_set1_epi64(-1), unused));
        let hash = finish(_mm512_xor_si512(x, last));
        // SAFETY: the mask writes as many hashes as there are.
        unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), lanes, hash) };
    }
}

/// Eight bytes at each offset of *lanes*, zeros elsewhere.
///
/// # Safety
/// Every offset of *lanes* has eight bytes of *text* from it.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn gather(text: &[u8], lanes: __mmask8, offsets: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    // SAFETY: the caller vouches for the offsets.
    unsafe { _mm512_mask_i64gather_epi64::<1>(zero, lanes, offsets, text.as_ptr().cast()) }
}
