#![allow(unsafe_code)]
//! Our own hash, eight strings at a time.

use std::arch::x86_64::*;

use crate::hash::mix::{FIRST, GAMMA, PADDING, SECOND};
use crate::system::simd::{Avx512, Avx512Base};

impl Avx512 {
    /// See `mix::hash_parts`.
    pub fn hash_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_parts(text, starts, ends, seed, out) }
    }
}

impl Avx512Base {
    /// See `mix::hash_parts`.
    pub fn hash_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_far_parts(text, starts, ends, seed, out) }
    }

    /// See `mix::hash_windows`.
    pub fn hash_windows(self, text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_windows(text, from, width, seed, out) }
    }

    /// `finish(hash + step)` of each hash.
    pub fn words(self, hashes: &[u64], step: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { words(hashes, step, out) }
    }
}

/// `mix::finish` of eight words.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub fn finish(x: __m512i) -> __m512i {
    finish_all([x])[0]
}

/// The same of several vectors, step by step: one alone would wait for its multiplications.
///
/// Loops, here and below: a closure in `map` would be a call where the compiler does not see through it.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub fn finish_all<const N: usize>(mut x: [__m512i; N]) -> [__m512i; N] {
    let (first, second) = (_mm512_set1_epi64(FIRST as i64), _mm512_set1_epi64(SECOND as i64));
    for x in &mut x {
        *x = _mm512_mullo_epi64(_mm512_xor_si512(*x, _mm512_srli_epi64::<30>(*x)), first);
    }
    for x in &mut x {
        *x = _mm512_mullo_epi64(_mm512_xor_si512(*x, _mm512_srli_epi64::<27>(*x)), second);
    }
    for x in &mut x {
        *x = _mm512_xor_si512(*x, _mm512_srli_epi64::<31>(*x));
    }
    x
}

/// `mix::words` with *step* = STREAM * j.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub fn words(hashes: &[u64], step: u64, out: &mut [u64]) {
    assert_eq!(hashes.len(), out.len(), "a word per hash");
    let step = _mm512_set1_epi64(step as i64);
    for (hashes, out) in hashes.chunks(8).zip(out.chunks_mut(8)) {
        let lanes = ((1u32 << out.len()) - 1) as __mmask8;
        let word = finish(_mm512_add_epi64(load(hashes), step));
        // SAFETY: the mask writes as many words as there are.
        unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), lanes, word) };
    }
}

/// The byte shuffle that makes eight runs of *width* (1 to 8) bytes from sixteen bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn window_shuffle(width: usize) -> __m512i {
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
pub fn eight_windows(text: &[u8], at: usize, shuffle: __m512i) -> __m512i {
    let sixteen = &text[at..at + 16];
    // SAFETY: the slice is 16 bytes.
    let sixteen = unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) };
    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(sixteen), shuffle)
}

/// The hashes of the parts `text[starts[i]..ends[i]]`, one after the other into *out*.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub fn hash_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    assert!(starts.len() == out.len(), "a part per hash");
    let parts = PaddedParts::new(text, starts, ends, seed);
    let (many, few) = out.as_chunks_mut::<16>();
    for (block, hashes) in many.iter_mut().enumerate() {
        store(parts.hashes::<2>(16 * block), hashes);
    }
    for (block, hashes) in few.chunks_mut(8).enumerate() {
        let mut eight = [0; 8];
        store([parts.some_hashes(16 * many.len() + 8 * block)], &mut eight);
        hashes.copy_from_slice(&eight[..hashes.len()]);
    }
}

/// `hash_parts` without VBMI, which finds the bytes of eight parts in one vector.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn hash_far_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    assert!(starts.len() == out.len() && ends.len() == out.len(), "a part per hash");
    let begins = Begins::new(seed);
    for ((starts, ends), hashes) in starts.chunks(8).zip(ends.chunks(8)).zip(out.chunks_mut(8)) {
        // Behind the last one the first of its group again.
        let (mut from, mut to) = ([starts[0]; 8], [ends[0]; 8]);
        from[..starts.len()].copy_from_slice(starts);
        to[..ends.len()].copy_from_slice(ends);
        let mut eight = [0; 8];
        store([far_hashes(text, &groups_of::<1>(&from, &to)[0], &begins)], &mut eight);
        hashes.copy_from_slice(&eight[..hashes.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store<const N: usize>(hashes: [__m512i; N], out: &mut [u64]) {
    for (hashes, out) in hashes.into_iter().zip(out.as_chunks_mut::<8>().0) {
        // SAFETY: eight hashes are 64 bytes.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), hashes) };
    }
}

/// Parts of a text that has room behind each of them, and what hashing them takes.
pub struct PaddedParts<'a> {
    text: &'a [u8],
    starts: &'a [u32],
    ends: &'a [u32],
    begins: Begins,
}

impl<'a> PaddedParts<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub fn new(text: &'a [u8], starts: &'a [u32], ends: &'a [u32], seed: u64) -> PaddedParts<'a> {
        assert!(starts.len() == ends.len(), "a start and an end per part");
        PaddedParts { text, starts, ends, begins: Begins::new(seed) }
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// The hashes of N groups of eight parts from *at* on, all of which exist.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub fn hashes<const N: usize>(&self, at: usize) -> [__m512i; N] {
        self.of_groups(groups_of(&self.starts[at..at + 8 * N], &self.ends[at..at + 8 * N]))
    }

    /// The hashes of up to eight parts from *at* on, and anything behind them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    pub fn some_hashes(&self, at: usize) -> __m512i {
        let count = (self.starts.len() - at).min(8);
        let (mut starts, mut ends) = ([self.starts[at]; 8], [self.ends[at]; 8]);
        starts[..count].copy_from_slice(&self.starts[at..at + count]);
        ends[..count].copy_from_slice(&self.ends[at..at + count]);
        self.of_groups(groups_of::<1>(&starts, &ends))[0]
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
    fn of_groups<const N: usize>(&self, groups: [Group; N]) -> [__m512i; N] {
        if let Some(hashes) = near_hashes(self.text, &groups, &self.begins) {
            return hashes;
        }
        let mut hashes = [_mm512_setzero_si512(); N];
        for (hash, group) in hashes.iter_mut().zip(&groups) {
            *hash = far_hashes(self.text, group, &self.begins);
        }
        hashes
    }
}

/// Eight parts: where they begin and end.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    starts: __m256i,
    ends: __m256i,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn groups_of<const N: usize>(starts: &[u32], ends: &[u32]) -> [Group; N] {
    let (starts, ends) = (starts.as_chunks::<8>().0, ends.as_chunks::<8>().0);
    std::array::from_fn(|k| {
        // SAFETY: eight offsets are 32 bytes.
        unsafe {
            Group {
                first: starts[k][0],
                starts: _mm256_loadu_si256(starts[k].as_ptr().cast()),
                ends: _mm256_loadu_si256(ends[k].as_ptr().cast()),
            }
        }
    })
}

/// Of parts that are short and near each other, as most are: no longer than 15 bytes, and those of
/// a group within 63. None where they are not.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn near_hashes<const N: usize>(text: &[u8], groups: &[Group; N], begins: &Begins) -> Option<[__m512i; N]> {
    let eight = _mm256_set1_epi32(8);
    let none = _mm256_setzero_si256();
    let (mut starts, mut ends, mut lengths) = ([none; N], [none; N], [none; N]);
    let (mut largest, mut longest) = (none, none);
    for (k, group) in groups.iter().enumerate() {
        let base = _mm256_set1_epi32(group.first as i32);
        starts[k] = _mm256_sub_epi32(group.starts, base);
        ends[k] = _mm256_sub_epi32(group.ends, base);
        lengths[k] = _mm256_sub_epi32(group.ends, group.starts);
        longest = _mm256_max_epu32(longest, lengths[k]);
        largest = _mm256_max_epu32(largest, ends[k]);
    }
    largest = _mm256_max_epu32(largest, _mm256_slli_epi32::<2>(longest));
    if _mm256_cmpgt_epu32_mask(largest, _mm256_set1_epi32(63)) != 0 {
        return None;
    }
    let zero = _mm512_setzero_si512();
    let (mut blocks, mut length, mut x) = ([zero; N], [zero; N], [zero; N]);
    for k in 0..N {
        let first = groups[k].first as usize;
        let block = &text[first..first + 64];
        // SAFETY: the slice is 64 bytes.
        blocks[k] = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        length[k] = _mm512_cvtepu32_epi64(lengths[k]);
        x[k] = _mm512_permutex2var_epi64(begins.short[0], length[k], begins.short[1]);
    }
    if _mm256_cmpgt_epu32_mask(longest, eight) != 0 {
        let mut next = x;
        for k in 0..N {
            next[k] = _mm512_xor_si512(x[k], eight_bytes(blocks[k], _mm512_cvtepu32_epi64(starts[k])));
        }
        next = finish_all(next);
        for k in 0..N {
            x[k] = _mm512_mask_mov_epi64(x[k], _mm256_cmpgt_epu32_mask(lengths[k], eight), next[k]);
        }
    }
    for k in 0..N {
        let from = _mm256_sub_epi32(ends[k], _mm256_min_epu32(lengths[k], eight));
        let last = eight_bytes(blocks[k], _mm512_cvtepu32_epi64(from));
        let mask = _mm512_permutex2var_epi64(begins.masks, length[k], _mm512_set1_epi64(-1));
        x[k] = _mm512_xor_si512(x[k], _mm512_and_si512(last, mask));
    }
    Some(finish_all(x))
}

/// Of parts anywhere, of any length.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn far_hashes(text: &[u8], group: &Group, begins: &Begins) -> __m512i {
    let room = u32::try_from(text.len().saturating_sub(PADDING)).unwrap_or(u32::MAX);
    let outside = _mm256_cmpgt_epu32_mask(group.ends, _mm256_set1_epi32(room as i32));
    assert!(outside == 0, "parts stand in a padded text");
    assert!(_mm256_cmpgt_epu32_mask(group.starts, group.ends) == 0, "a part begins before it ends");
    let (start, end) = (_mm512_cvtepu32_epi64(group.starts), _mm512_cvtepu32_epi64(group.ends));
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

/// Up to eight words, zeros behind them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn load(words: &[u64]) -> __m512i {
    let mask = ((1u32 << words.len().min(8)) - 1) as __mmask8;
    // SAFETY: the mask reads as many words as there are.
    unsafe { _mm512_maskz_loadu_epi64(mask, words.as_ptr().cast()) }
}
