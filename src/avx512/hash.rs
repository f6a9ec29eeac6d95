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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub fn hash_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    assert!(starts.len() == out.len() && ends.len() == out.len(), "a start and an end per hash");
    let farthest = ends.iter().fold(0, |farthest, end| farthest.max(*end)) as usize;
    assert!(text.len() >= farthest + PADDING, "parts stand in a padded text");
    let begins = Begins::new(seed);
    let (starts, last_starts) = starts.as_chunks::<8>();
    let (ends, last_ends) = ends.as_chunks::<8>();
    let (hashes, last_hashes) = out.as_chunks_mut::<8>();
    for ((starts, ends), hashes) in starts.iter().zip(ends).zip(hashes) {
        *hashes = eight_hashes(text, starts, ends, &begins);
    }
    if let (Some(start), Some(end)) = (last_starts.first(), last_ends.first()) {
        let (mut starts, mut ends) = ([*start; 8], [*end; 8]);
        starts[..last_starts.len()].copy_from_slice(last_starts);
        ends[..last_ends.len()].copy_from_slice(last_ends);
        let hashes = eight_hashes(text, &starts, &ends, &begins);
        last_hashes.copy_from_slice(&hashes[..last_hashes.len()]);
    }
}

/// The hashes of eight parts of a text that is padded behind each of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn eight_hashes(text: &[u8], starts: &[u32; 8], ends: &[u32; 8], begins: &Begins) -> [u64; 8] {
    let first = starts[0] as usize;
    let base = _mm256_set1_epi32(starts[0] as i32);
    // SAFETY: eight offsets are 32 bytes.
    let (starts, ends) =
        unsafe { (_mm256_loadu_si256(starts.as_ptr().cast()), _mm256_loadu_si256(ends.as_ptr().cast())) };
    let (near_starts, near_ends) = (_mm256_sub_epi32(starts, base), _mm256_sub_epi32(ends, base));
    let lengths = _mm256_sub_epi32(ends, starts);
    // Most are short and near each other: no longer than 15, and within 63 bytes.
    let largest = _mm256_max_epu32(near_ends, _mm256_slli_epi32::<2>(lengths));
    let hashes = if _mm256_cmpgt_epu32_mask(largest, _mm256_set1_epi32(63)) == 0 {
        let block = &text[first..first + 64];
        // SAFETY: the slice is 64 bytes.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        near_hashes(block, near_starts, near_ends, lengths, begins)
    } else {
        assert!(_mm256_cmpgt_epu32_mask(starts, ends) == 0, "a part begins before it ends");
        let (start, end) = (_mm512_cvtepu32_epi64(starts), _mm512_cvtepu32_epi64(ends));
        far_hashes(text, start, end, begins)
    };
    let mut out = [0; 8];
    // SAFETY: eight hashes are 64 bytes.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), hashes) };
    out
}

/// Of parts that all stand in one block and have up to 15 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn near_hashes(block: __m512i, starts: __m256i, ends: __m256i, lengths: __m256i, begins: &Begins) -> __m512i {
    let eight = _mm256_set1_epi32(8);
    let length = _mm512_cvtepu32_epi64(lengths);
    let mut x = _mm512_permutex2var_epi64(begins.short[0], length, begins.short[1]);
    let longer = _mm256_cmpgt_epu32_mask(lengths, eight);
    if longer != 0 {
        let next = eight_bytes(block, _mm512_cvtepu32_epi64(starts));
        x = _mm512_mask_mov_epi64(x, longer, finish(_mm512_xor_si512(x, next)));
    }
    let last = _mm256_sub_epi32(ends, _mm256_min_epu32(lengths, eight));
    let last = eight_bytes(block, _mm512_cvtepu32_epi64(last));
    let mask = _mm512_permutex2var_epi64(begins.masks, length, _mm512_set1_epi64(-1));
    finish(_mm512_xor_si512(x, _mm512_and_si512(last, mask)))
}

/// Of parts anywhere, of any length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn far_hashes(text: &[u8], start: __m512i, end: __m512i, begins: &Begins) -> __m512i {
    let eight = _mm512_set1_epi64(8);
    let read = |lanes: __mmask8, at: __m512i| {
        // SAFETY: eight bytes from within a part are within the padded text.
        unsafe { _mm512_mask_i64gather_epi64::<1>(at, lanes, at, text.as_ptr().cast()) }
    };
    let length = _mm512_sub_epi64(end, start);
    let mut x = begins.of(length);
    let (mut left, mut from) = (length, start);
    loop {
        let longer = _mm512_cmpgt_epu64_mask(left, eight);
        if longer == 0 {
            break;
        }
        x = _mm512_mask_mov_epi64(x, longer, finish(_mm512_xor_si512(x, read(longer, from))));
        from = _mm512_add_epi64(from, eight);
        left = _mm512_mask_sub_epi64(left, longer, left, eight);
    }
    // The last eight bytes; of a shorter part all, zeros behind them.
    let short = _mm512_min_epu64(length, eight);
    let last = read(0xff, _mm512_sub_epi64(end, short));
    let mask = _mm512_permutex2var_epi64(begins.masks, short, _mm512_set1_epi64(-1));
    finish(_mm512_xor_si512(x, _mm512_and_si512(last, mask)))
}

/// With what the hash of a string begins, by its length.
struct Begins {
    seed: __m512i,
    /// Of lengths 0 to 7 and 8 to 15.
    short: [__m512i; 2],
    /// All ones in the lowest n bytes, for n up to 7.
    masks: __m512i,
}

impl Begins {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn new(seed: u64) -> Begins {
        let gamma = _mm512_set1_epi64(GAMMA as i64);
        let seed = _mm512_set1_epi64(seed as i64);
        let iota = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let of = |lengths| _mm512_add_epi64(seed, _mm512_mullo_epi64(lengths, gamma));
        let short = [of(iota), of(_mm512_add_epi64(iota, _mm512_set1_epi64(8)))];
        let unused = _mm512_sub_epi64(_mm512_set1_epi64(64), _mm512_slli_epi64::<3>(iota));
        Begins { seed, short, masks: _mm512_srlv_epi64(_mm512_set1_epi64(-1), unused) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn of(&self, lengths: __m512i) -> __m512i {
        _mm512_add_epi64(self.seed, _mm512_mullo_epi64(lengths, _mm512_set1_epi64(GAMMA as i64)))
    }
}

/// Eight bytes of *block* from each of eight offsets below 64; behind the block anything.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn eight_bytes(block: __m512i, offsets: __m512i) -> __m512i {
    let lowest = _mm512_set4_epi32(0x0808_0808, 0x0808_0808, 0, 0);
    let steps = _mm512_set1_epi64(0x0706_0504_0302_0100);
    let index = _mm512_add_epi8(_mm512_shuffle_epi8(offsets, lowest), steps);
    _mm512_permutexvar_epi8(index, block)
}

/// The hashes of every run of *width* bytes of `text[from..]`, as many as *out* holds.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn hash_windows(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    let start = _mm512_set1_epi64(seed.wrapping_add(GAMMA.wrapping_mul(width as u64)) as i64);
    let (whole, last) = (window_shuffle(8), window_shuffle(width.min(8)));
    for (block, out) in out.chunks_mut(8).enumerate() {
        let at = from + 8 * block;
        let mut x = start;
        let mut done = 0;
        while width - done > 8 {
            x = finish(_mm512_xor_si512(x, eight_windows(text, at + done, whole)));
            done += 8;
        }
        let hash = finish(_mm512_xor_si512(x, eight_windows(text, at + width.saturating_sub(8), last)));
        let lanes = ((1u32 << out.len()) - 1) as __mmask8;
        // SAFETY: the mask writes as many hashes as there are.
        unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), lanes, hash) };
    }
}
