#![allow(unsafe_code)]
//! Counting votes: eight hashes are one vector; its 8x8 bit blocks are transposed, so that a
//! byte holds one bit of eight hashes, and bits are counted a byte at a time.

use std::arch::x86_64::*;

use crate::hash::mix::avx512::{PaddedParts, eight_windows, finish, load, window_shuffle};
use crate::hash::mix::{GAMMA, PADDING, STREAM};
use crate::recipe::slices::{LANES, Row, Sums};
use crate::recipe::votes::{Part, weigh_plain};
use crate::system::simd::{Avx512, Avx512Base};

impl Avx512 {
    /// See `votes::count`.
    pub fn count(self, hashes: &[u64], ones: &mut [u32; 64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { count(hashes, ones) }
    }

    /// See `votes::count_windows`; false, with nothing done, for an uncommon number of words.
    pub fn count_windows(self, text: &[u8], windows: usize, width: usize, seed: u64, ones: &mut [[u32; 64]]) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { count_windows(text, windows, width, seed, ones) }
    }

    /// See `votes::count_parts`; false, with nothing done, for an uncommon number of words.
    pub fn count_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, ones: &mut [[u32; 64]]) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { count_parts(text, starts, ends, seed, ones) }
    }

    /// See `votes::weigh`; false, with nothing done, where a weight has more than 16 bits.
    pub fn weigh(self, hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { weigh(hashes, weights, ones) }
    }

    /// Bit i where `ones[i]` is at least *least*.
    pub fn at_least(self, ones: &[u32; 64], least: u32) -> u64 {
        // SAFETY: `in_force` found the instructions.
        unsafe { at_least(ones, least) }
    }
}

/// In slices: a full adder is three instructions here.
impl Avx512Base {
    /// See `votes::count`.
    pub fn count(self, words: &[u64], sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { count_in_slices(words, sums) }
    }

    /// See `votes::count_blocks`.
    pub fn count_blocks(self, text: &[u8], windows: usize, width: usize, seed: u64, slices: &mut [Sums]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { blocks_in_slices(text, windows, width, seed, slices) }
    }

    /// See `votes::weigh`.
    pub fn weigh(self, rows: &[Row], part: &Part, sums: &mut Sums) {
        // SAFETY: `in_force` found the instructions.
        unsafe { weigh_in_slices(rows, part, sums) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn count_in_slices(words: &[u64], sums: &mut Sums) {
    sums.count(words);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn weigh_in_slices(rows: &[Row], part: &Part, sums: &mut Sums) {
    weigh_plain(rows, part, sums);
}

/// Windows of a block in slices.
const SLICED: usize = 128;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn blocks_in_slices(text: &[u8], windows: usize, width: usize, seed: u64, slices: &mut [Sums]) -> usize {
    assert!(width >= 1 && text.len() >= windows + width + PADDING - 1, "windows stand in a padded text");
    let hashing = Hashing::new(width, seed);
    match (slices.len(), width) {
        (1, ..=8) => sliced::<1, false>(text, windows, &hashing, slices),
        (2, ..=8) => sliced::<2, false>(text, windows, &hashing, slices),
        (4, ..=8) => sliced::<4, false>(text, windows, &hashing, slices),
        (1, _) => sliced::<1, true>(text, windows, &hashing, slices),
        (2, _) => sliced::<2, true>(text, windows, &hashing, slices),
        (4, _) => sliced::<4, true>(text, windows, &hashing, slices),
        _ => 0,
    }
}

/// The lowest digits are whole vectors, added to the slices at the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn sliced<const WORDS: usize, const LONG: bool>(
    text: &[u8],
    windows: usize,
    hashing: &Hashing,
    slices: &mut [Sums],
) -> usize {
    let mut digits = [[_mm512_setzero_si512(); 4]; WORDS];
    let all = windows / SLICED * SLICED;
    for at in (0..all).step_by(SLICED) {
        let mut hashes = [_mm512_setzero_si512(); SLICED / 8];
        for (k, hash) in hashes.iter_mut().enumerate() {
            *hash = hashing.eight::<LONG>(text, at + 8 * k);
        }
        for (j, ([ones, twos, fours, eights], sums)) in digits.iter_mut().zip(slices.iter_mut()).enumerate() {
            let words = word(hashes, j);
            let mut four = [_mm512_setzero_si512(); 4];
            for (four, [a, b, c, d]) in four.iter_mut().zip(words.as_chunks::<4>().0) {
                let (low, high) = (carry(ones, *a, *b), carry(ones, *c, *d));
                *four = carry(twos, low, high);
            }
            let (low, high) = (carry(fours, four[0], four[1]), carry(fours, four[2], four[3]));
            add_digit(sums, 4, carry(eights, low, high));
        }
    }
    for (digits, sums) in digits.into_iter().zip(slices) {
        for (at, digit) in digits.into_iter().enumerate() {
            add_digit(sums, at, digit);
        }
    }
    all
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
fn add_digit(sums: &mut Sums, at: usize, digit: __m512i) {
    let mut rows = [[0; LANES]; 2];
    // SAFETY: two rows are 64 bytes.
    unsafe { _mm512_storeu_si512(rows.as_mut_ptr().cast(), digit) };
    sums.add_two(at, rows);
}

/// Blocks of eight hashes between two flushes of byte-wide counters.
const BLOCKS: usize = 31;

/// Byte counters of one word of the hashes, and what was flushed from them.
#[derive(Clone, Copy)]
struct Counter {
    bytes: __m512i,
    sums: [__m512i; 4],
}

impl Counter {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn new() -> Counter {
        Counter { bytes: _mm512_setzero_si512(), sums: [_mm512_setzero_si512(); 4] }
    }

    /// Count the bits of eight hashes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn add(&mut self, hashes: __m512i) {
        self.bytes = _mm512_add_epi8(self.bytes, _mm512_popcnt_epi8(transposed(hashes)));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn flush(&mut self) {
        let quarters = [
            _mm512_castsi512_si128(self.bytes),
            _mm512_extracti32x4_epi32::<1>(self.bytes),
            _mm512_extracti32x4_epi32::<2>(self.bytes),
            _mm512_extracti32x4_epi32::<3>(self.bytes),
        ];
        for (sum, quarter) in self.sums.iter_mut().zip(quarters) {
            *sum = _mm512_add_epi32(*sum, _mm512_cvtepu8_epi32(quarter));
        }
        self.bytes = _mm512_setzero_si512();
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn finish(mut self, ones: &mut [u32; 64]) {
        self.flush();
        for (sum, counters) in self.sums.iter().zip(ones.chunks_exact_mut(16)) {
            let at = counters.as_mut_ptr().cast::<__m512i>();
            // SAFETY: sixteen counters are 64 bytes.
            unsafe { _mm512_storeu_si512(at, _mm512_add_epi32(*sum, _mm512_loadu_si512(at))) };
        }
    }
}

/// Byte 8L + j holds bit 8L + j of the eight hashes, in an order that does not matter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
fn transposed(hashes: __m512i) -> __m512i {
    // Lane L takes byte L of every hash; the unit vectors then pick its bits.
    let lanes = _mm512_permutexvar_epi8(byte_lanes(), hashes);
    _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64), lanes)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn byte_lanes() -> __m512i {
    const INDEX: [u8; 64] = {
        let mut index = [0; 64];
        let mut at = 0;
        while at < 64 {
            index[at] = (at % 8 * 8 + at / 8) as u8;
            at += 1;
        }
        index
    };
    // SAFETY: the array is 64 bytes.
    unsafe { _mm512_loadu_si512(INDEX.as_ptr().cast()) }
}

/// Add to *ones* how many of *hashes* have each bit.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
pub fn count(hashes: &[u64], ones: &mut [u32; 64]) {
    let mut counter = Counter::new();
    for round in hashes.chunks(BLOCKS * 8) {
        for eight in round.chunks(8) {
            counter.add(load(eight));
        }
        counter.flush();
    }
    counter.finish(ones);
}

/// Add to *ones* how many of the hashes (`mix`, one array of counters for each of its words)
/// of the first *windows* runs of *width* bytes of *text* have each bit; false, with nothing
/// done, for more words than there are variants of.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
pub fn count_windows(text: &[u8], windows: usize, width: usize, seed: u64, ones: &mut [[u32; 64]]) -> bool {
    assert!(width >= 1 && text.len() >= windows + width + PADDING - 1, "windows stand in a padded text");
    match ones.len() {
        1 => windows_in::<1>(text, windows, width, seed, ones),
        2 => windows_in::<2>(text, windows, width, seed, ones),
        4 => windows_in::<4>(text, windows, width, seed, ones),
        _ => return false,
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn windows_in<const WORDS: usize>(text: &[u8], windows: usize, width: usize, seed: u64, ones: &mut [[u32; 64]]) {
    let hashing = Hashing::new(width, seed);
    match width {
        ..=8 => windows_like::<WORDS, false>(text, windows, &hashing, ones),
        _ => windows_like::<WORDS, true>(text, windows, &hashing, ones),
    }
}

/// What hashing runs of one width takes.
struct Hashing {
    start: __m512i,
    whole: __m512i,
    last: __m512i,
    width: usize,
}

impl Hashing {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn new(width: usize, seed: u64) -> Hashing {
        Hashing {
            start: _mm512_set1_epi64(seed.wrapping_add(GAMMA.wrapping_mul(width as u64)) as i64),
            whole: window_shuffle(8),
            last: window_shuffle(width.min(8)),
            width,
        }
    }

    /// The hashes of the eight runs that begin at *at* and behind it; LONG where they are of more than eight bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
    fn eight<const LONG: bool>(&self, text: &[u8], at: usize) -> __m512i {
        let mut x = self.start;
        if !LONG {
            return finish(_mm512_xor_si512(x, eight_windows(text, at, self.last)));
        }
        let mut from = 0;
        while self.width - from > 8 {
            x = finish(_mm512_xor_si512(x, eight_windows(text, at + from, self.whole)));
            from += 8;
        }
        finish(_mm512_xor_si512(x, eight_windows(text, at + self.width - 8, self.last)))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn windows_like<const WORDS: usize, const LONG: bool>(
    text: &[u8],
    windows: usize,
    hashing: &Hashing,
    ones: &mut [[u32; 64]],
) {
    let eight = |at| hashing.eight::<LONG>(text, at);
    let all = |at| std::array::from_fn(|k| hashing.eight::<LONG>(text, at + 8 * k));
    tally::<WORDS>(windows, ones, all, eight);
}

/// Add to *ones* how many of the hashes of the parts `text[starts[i]..ends[i]]` have each bit; as
/// `count_windows`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
pub fn count_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, ones: &mut [[u32; 64]]) -> bool {
    let parts = PaddedParts::new(text, starts, ends, seed);
    match ones.len() {
        1 => parts_in::<1>(&parts, ones),
        2 => parts_in::<2>(&parts, ones),
        4 => parts_in::<4>(&parts, ones),
        _ => return false,
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn parts_in<const WORDS: usize>(parts: &PaddedParts, ones: &mut [[u32; 64]]) {
    tally::<WORDS>(
        parts.len(),
        ones,
        |at| {
            let [a, b, c, d] = parts.hashes::<4>(at);
            let [e, f, g, h] = parts.hashes::<4>(at + 32);
            [a, b, c, d, e, f, g, h]
        },
        |at| parts.some_hashes(at),
    );
}

/// Add to *ones* the votes of *count* hashes, which come 64 at a time and, the last ones, eight
/// at a time, whatever then follows them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn tally<const WORDS: usize>(
    count: usize,
    ones: &mut [[u32; 64]],
    all: impl Fn(usize) -> [__m512i; 8],
    eight: impl Fn(usize) -> __m512i,
) {
    let mut ladders = [Ladder::new(); WORDS];
    let mut at = 0;
    while count - at >= 64 {
        let stop = at + (count - at).min(BLOCKS * 64) / 64 * 64;
        while at < stop {
            let hashes = all(at);
            for (j, ladder) in ladders.iter_mut().enumerate() {
                ladder.add(word(hashes, j));
            }
            at += 64;
        }
        ladders.iter_mut().for_each(|ladder| ladder.flush());
    }
    let mut counters = ladders.map(|ladder| ladder.finish());
    while at < count {
        let lanes = if count - at < 8 { (1 << (count - at)) - 1 } else { 0xff };
        let hash = eight(at);
        for (j, counter) in counters.iter_mut().enumerate() {
            counter.add(_mm512_maskz_mov_epi64(lanes, word([hash], j)[0]));
        }
        at += 8;
    }
    for (counter, ones) in counters.into_iter().zip(ones) {
        counter.finish(ones);
    }
}

/// Word *j* of the digests that begin with *hashes*.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn word<const N: usize>(mut hashes: [__m512i; N], j: usize) -> [__m512i; N] {
    if j > 0 {
        let step = _mm512_set1_epi64(STREAM.wrapping_mul(j as u64) as i64);
        for hash in &mut hashes {
            *hash = finish(_mm512_add_epi64(*hash, step));
        }
    }
    hashes
}

/// Sums of bits in binary, a vector a digit, so that bytes are counted only for every eighth vector.
#[derive(Clone, Copy)]
struct Ladder {
    digits: [__m512i; 3],
    eights: __m512i,
    sums: [__m512i; 4],
}

impl Ladder {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn new() -> Ladder {
        let zero = _mm512_setzero_si512();
        Ladder { digits: [zero; 3], eights: zero, sums: [zero; 4] }
    }

    /// Count the bits of 64 hashes; at most `BLOCKS` times between two flushes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn add(&mut self, hashes: [__m512i; 8]) {
        let [a, b, c, d, e, f, g, h] = hashes;
        let [mut ones, mut twos, mut fours] = self.digits;
        let two = [carry(&mut ones, a, b), carry(&mut ones, c, d), carry(&mut ones, e, f), carry(&mut ones, g, h)];
        let four = [carry(&mut twos, two[0], two[1]), carry(&mut twos, two[2], two[3])];
        let eight = carry(&mut fours, four[0], four[1]);
        self.digits = [ones, twos, fours];
        self.eights = _mm512_add_epi8(self.eights, _mm512_popcnt_epi8(transposed(eight)));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn flush(&mut self) {
        let mut counter = Counter { bytes: self.eights, sums: [_mm512_setzero_si512(); 4] };
        counter.flush();
        for (sum, part) in self.sums.iter_mut().zip(counter.sums) {
            *sum = _mm512_add_epi32(*sum, _mm512_slli_epi32::<3>(part));
        }
        self.eights = _mm512_setzero_si512();
    }

    /// The same in plain numbers. Its bytes have room for 24 more vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512bitalg,gfni")]
    fn finish(self) -> Counter {
        let mut counter = Counter { bytes: _mm512_setzero_si512(), sums: self.sums };
        for (digit, times) in self.digits.into_iter().zip([1, 2, 4]) {
            (0..times).for_each(|_| counter.add(digit));
        }
        counter
    }
}

/// Add the bits of *one* and *other* to those of *sum*; what is carried.
#[inline]
#[target_feature(enable = "avx512f")]
fn carry(sum: &mut __m512i, one: __m512i, other: __m512i) -> __m512i {
    let most = _mm512_ternarylogic_epi64::<0xe8>(*sum, one, other);
    *sum = _mm512_ternarylogic_epi64::<0x96>(*sum, one, other);
    most
}

/// Features between two flushes of 32-bit sums of weights below 2^16.
const WEIGHED: usize = 1 << 15;

/// Add to *ones* the weight of those of *hashes* that have each bit; false, with nothing done,
/// where a weight has more than 16 bits.
///
/// The weights are cut into planes, bit by bit; a plane is a set of features, and its votes are
/// counted as those of features without weights.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
pub fn weigh(hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) -> bool {
    assert_eq!(hashes.len(), weights.len(), "one weight per hash");
    let all = weights.iter().fold(0, |all, weight| all | weight);
    match u32::BITS - all.leading_zeros() {
        0 => {}
        1..=4 => weigh_planes::<4>(hashes, weights, ones),
        5..=6 => weigh_planes::<6>(hashes, weights, ones),
        7..=8 => weigh_planes::<8>(hashes, weights, ones),
        9..=11 => weigh_planes::<11>(hashes, weights, ones),
        12..=16 => weigh_planes::<16>(hashes, weights, ones),
        _ => return false,
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn weigh_planes<const PLANES: usize>(hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) {
    for (hashes, weights) in hashes.chunks(WEIGHED).zip(weights.chunks(WEIGHED)) {
        let mut sums = [_mm512_setzero_si512(); 4];
        for (hashes, weights) in hashes.chunks(BLOCKS * 8).zip(weights.chunks(BLOCKS * 8)) {
            let mut bytes = [_mm512_setzero_si512(); PLANES];
            for (hashes, weights) in hashes.chunks(8).zip(weights.chunks(8)) {
                let bits = transposed(load(hashes));
                let planes = planes_of(weights);
                for (bytes, plane) in bytes.iter_mut().zip(planes) {
                    let chosen = _mm512_and_si512(bits, _mm512_set1_epi64(plane as i64));
                    *bytes = _mm512_add_epi8(*bytes, _mm512_popcnt_epi8(chosen));
                }
            }
            for (plane, bytes) in bytes.into_iter().enumerate() {
                let mut counter = Counter { bytes, sums: [_mm512_setzero_si512(); 4] };
                counter.flush();
                let shift = _mm_cvtsi32_si128(plane as i32);
                for (sum, part) in sums.iter_mut().zip(counter.sums) {
                    *sum = _mm512_add_epi32(*sum, _mm512_sll_epi32(part, shift));
                }
            }
        }
        let mut flat = [0u32; 64];
        Counter { bytes: _mm512_setzero_si512(), sums }.finish(&mut flat);
        for (one, sum) in ones.iter_mut().zip(flat) {
            *one += u64::from(sum);
        }
    }
}

/// Bit p of up to eight weights in each byte of word p, in the order of `transposed`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,gfni")]
fn planes_of(weights: &[u32]) -> [u64; 16] {
    let mask = ((1u32 << weights.len().min(8)) - 1) as __mmask8;
    // SAFETY: the mask reads as many weights as there are.
    let weights = unsafe { _mm256_maskz_loadu_epi32(mask, weights.as_ptr().cast()) };
    let low = _mm256_cvtepi32_epi8(weights);
    let high = _mm256_cvtepi32_epi8(_mm256_srli_epi32::<8>(weights));
    let units = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bits = _mm_gf2p8affine_epi64_epi8::<0>(units, _mm_unpacklo_epi64(low, high));
    let bits = _mm512_broadcast_i32x4(bits);
    let mut planes = [0; 16];
    for (half, planes) in planes.chunks_exact_mut(8).enumerate() {
        let index = _mm512_add_epi8(lane_numbers(), _mm512_set1_epi8(8 * half as i8));
        let spread = _mm512_shuffle_epi8(bits, index);
        // SAFETY: eight words are 64 bytes.
        unsafe { _mm512_storeu_si512(planes.as_mut_ptr().cast(), spread) };
    }
    planes
}

/// The number of its 64-bit lane in each byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn lane_numbers() -> __m512i {
    _mm512_set_epi64(
        0x0707_0707_0707_0707,
        0x0606_0606_0606_0606,
        0x0505_0505_0505_0505,
        0x0404_0404_0404_0404,
        0x0303_0303_0303_0303,
        0x0202_0202_0202_0202,
        0x0101_0101_0101_0101,
        0,
    )
}

/// Bit i where `ones[i]` is at least *least*.
#[target_feature(enable = "avx512f,avx512bw")]
pub fn at_least(ones: &[u32; 64], least: u32) -> u64 {
    let least = _mm512_set1_epi32(least as i32);
    let mut word = 0;
    for (at, counters) in ones.chunks_exact(16).enumerate() {
        // SAFETY: sixteen counters are 64 bytes.
        let counters = unsafe { _mm512_loadu_si512(counters.as_ptr().cast()) };
        word |= u64::from(_mm512_cmpge_epu32_mask(counters, least)) << (16 * at);
    }
    word
}
