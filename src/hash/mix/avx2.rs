#![allow(unsafe_code)]
//! Our own hash, four strings at a time.

use std::arch::x86_64::*;

use super::{FIRST, GAMMA, PADDING, SECOND, STREAM, hash_part, words_plain};
use crate::system::simd::Avx2;

/// What a vector holds.
type Row = [u64; 4];

impl Avx2 {
    /// See `words`.
    pub fn words(self, hashes: &[u64], j: usize, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { words(hashes, j, out) }
    }

    /// See `hash_windows`.
    pub fn hash_windows(self, text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_windows(text, from, width, seed, out) }
    }

    /// See `hash_parts`.
    pub fn hash_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { hash_parts(text, starts, ends, seed, out) }
    }
}

/// The plain loop, compiled for AVX2.
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn words(hashes: &[u64], j: usize, out: &mut [u64]) {
    words_plain(hashes, j, out);
}

#[inline]
#[target_feature(enable = "avx2")]
fn all(word: u64) -> __m256i {
    _mm256_set1_epi64x(word as i64)
}

/// The lower halves of four products. There is a multiplication of 32 by 32 bits only.
#[inline]
#[target_feature(enable = "avx2")]
fn times(x: __m256i, factor: u64) -> __m256i {
    let (low, high) = (all(factor & 0xffff_ffff), all(factor >> 32));
    let upper = _mm256_add_epi64(_mm256_mul_epu32(x, high), _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), low));
    _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64::<32>(upper))
}

/// `mix::finish` of four words.
#[inline]
#[target_feature(enable = "avx2")]
fn finish(x: __m256i) -> __m256i {
    finish_second(times(_mm256_xor_si256(x, _mm256_srli_epi64::<30>(x)), FIRST))
}

/// What is left of it after the first multiplication.
#[inline]
#[target_feature(enable = "avx2")]
fn finish_second(x: __m256i) -> __m256i {
    let x = times(_mm256_xor_si256(x, _mm256_srli_epi64::<27>(x)), SECOND);
    _mm256_xor_si256(x, _mm256_srli_epi64::<31>(x))
}

/// Word *j* of the digests that begin with *hashes*.
#[inline]
#[target_feature(enable = "avx2")]
pub fn further<const N: usize>(hashes: &[Row; N], j: usize) -> [Row; N] {
    let step = all(STREAM.wrapping_mul(j as u64));
    let mut words = *hashes;
    for row in &mut words {
        // SAFETY: a row is 32 bytes.
        unsafe { store(finish(_mm256_add_epi64(_mm256_loadu_si256(row.as_ptr().cast()), step)), row) };
    }
    words
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: __m256i, row: &mut Row) {
    // SAFETY: a row is 32 bytes.
    unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), words) };
}

/// How runs of bytes are hashed, by their width: up to four bytes, up to eight, or more.
pub const NARROW: u8 = 0;
pub const SHORT: u8 = 1;
pub const LONG: u8 = 2;

/// What hashing runs of one width takes.
pub struct Windows {
    start: __m256i,
    /// By which the last four or eight bytes of four runs are taken from sixteen bytes, and all eight.
    last: __m256i,
    whole: __m256i,
    /// Of narrow runs, whose upper halves are all the same: what `start` is behind its first shift, in either half,
    /// and what the upper half adds to the product.
    shifted: __m256i,
    upper: __m256i,
    width: usize,
}

impl Windows {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn new(width: usize, seed: u64) -> Windows {
        let start = seed.wrapping_add(GAMMA.wrapping_mul(width as u64));
        let shifted = start ^ start >> 30;
        let narrow = width <= 4;
        Windows {
            start: all(start),
            last: shuffle(width.min(8), narrow),
            whole: shuffle(8, false),
            shifted: all((shifted & 0xffff_ffff).wrapping_mul(0x1_0000_0001)),
            upper: all((shifted & !0xffff_ffff).wrapping_mul(FIRST)),
            width,
        }
    }

    /// The hashes of the four runs that begin at *at* and behind it; *KIND* says of which widths.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn four<const KIND: u8>(&self, text: &[u8], at: usize) -> __m256i {
        if KIND == NARROW {
            // The bytes stand in both halves: the upper ones are multiplied by the upper half of the factor.
            let x = four_windows(text, at, self.last);
            let x = _mm256_xor_si256(_mm256_xor_si256(x, _mm256_srli_epi32::<30>(x)), self.shifted);
            let upper = _mm256_add_epi64(_mm256_mullo_epi32(x, all(FIRST & !0xffff_ffff)), self.upper);
            return finish_second(_mm256_add_epi64(_mm256_mul_epu32(x, all(FIRST & 0xffff_ffff)), upper));
        }
        let (mut x, mut from) = (self.start, 0);
        while KIND == LONG && self.width - from > 8 {
            x = finish(_mm256_xor_si256(x, four_windows(text, at + from, self.whole)));
            from += 8;
        }
        finish(_mm256_xor_si256(x, four_windows(text, at + self.width.saturating_sub(8), self.last)))
    }

    /// The hashes of the runs that begin at *at* and behind it, four in each of N rows.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn rows<const KIND: u8, const N: usize>(&self, text: &[u8], at: usize) -> [Row; N] {
        let mut rows = [Row::default(); N];
        for (number, row) in rows.iter_mut().enumerate() {
            store(self.four::<KIND>(text, at + 4 * number), row);
        }
        rows
    }
}

/// The byte shuffle that makes four runs of *width* (1 to 8) bytes from sixteen bytes; of up to four bytes *twice*, in
/// either half of a word.
#[inline]
#[target_feature(enable = "avx2")]
fn shuffle(width: usize, twice: bool) -> __m256i {
    let mut index = [0x80u8; 32];
    for (lane, eight) in index.chunks_exact_mut(8).enumerate() {
        for at in 0..width {
            eight[at] = (lane + at) as u8;
            if twice {
                eight[4 + at] = eight[at];
            }
        }
    }
    // SAFETY: the array is 32 bytes.
    unsafe { _mm256_loadu_si256(index.as_ptr().cast()) }
}

/// Four neighbouring runs of bytes, the first at *at*.
#[inline]
#[target_feature(enable = "avx2")]
fn four_windows(text: &[u8], at: usize, shuffle: __m256i) -> __m256i {
    let sixteen = &text[at..at + 16];
    // SAFETY: the slice is 16 bytes.
    let sixteen = unsafe { _mm_loadu_si128(sixteen.as_ptr().cast()) };
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(sixteen), shuffle)
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hash_windows(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    let windows = Windows::new(width, seed);
    match width {
        ..=4 => windows_like::<NARROW>(text, from, &windows, out),
        5..=8 => windows_like::<SHORT>(text, from, &windows, out),
        _ => windows_like::<LONG>(text, from, &windows, out),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn windows_like<const KIND: u8>(text: &[u8], from: usize, windows: &Windows, out: &mut [u64]) {
    let (rows, rest) = out.as_chunks_mut::<4>();
    let behind = from + 4 * rows.len();
    for (number, row) in rows.iter_mut().enumerate() {
        store(windows.four::<KIND>(text, from + 4 * number), row);
    }
    if !rest.is_empty() {
        let mut row = Row::default();
        store(windows.four::<KIND>(text, behind), &mut row);
        rest.copy_from_slice(&row[..rest.len()]);
    }
}

/// Parts of more bytes than this are hashed one by one; fewer are within the padding behind any part.
const LONGEST: usize = PADDING;

/// Eight parts side by side, in two vectors: each takes as many steps as the longest one, and keeps what its own
/// length makes of them.
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hash_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    assert!(starts.len() == out.len() && ends.len() == out.len(), "a part per hash");
    let one = |start: u32, end: u32| hash_part(text, start as usize, end as usize, seed);
    let room = u32::try_from(text.len().saturating_sub(PADDING)).unwrap_or(u32::MAX);
    let (many, few) = out.as_chunks_mut::<8>();
    let (starts, first) = starts.as_chunks::<8>();
    let (ends, last) = ends.as_chunks::<8>();
    for ((hashes, starts), ends) in many.iter_mut().zip(starts).zip(ends) {
        // SAFETY: eight offsets are 32 bytes.
        let (from, to) =
            unsafe { (_mm256_loadu_si256(starts.as_ptr().cast()), _mm256_loadu_si256(ends.as_ptr().cast())) };
        let lengths = _mm256_sub_epi32(to, from);
        // Without sign: a part that ends before it begins is the longest of all.
        let short = at_most(lengths, LONGEST as u32) && at_most(to, room) && at_most(from, room);
        if short {
            // SAFETY: the parts and the padding behind them are within the text.
            unsafe { eight_parts(text, starts, to, lengths, seed, hashes) };
        } else {
            for ((hash, start), end) in hashes.iter_mut().zip(starts).zip(ends) {
                *hash = one(*start, *end);
            }
        }
    }
    for ((hash, start), end) in few.iter_mut().zip(first).zip(last) {
        *hash = one(*start, *end);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn at_most(numbers: __m256i, most: u32) -> bool {
    let most = _mm256_set1_epi32(most as i32);
    let fits = _mm256_cmpeq_epi32(_mm256_max_epu32(numbers, most), most);
    _mm256_movemask_epi8(fits) == -1
}

/// The hashes of eight parts of at most `LONGEST` bytes.
///
/// # Safety
///
/// All of them begin and end at least `PADDING` bytes before the end of *text*.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
unsafe fn eight_parts(text: &[u8], starts: &[u32; 8], ends: __m256i, lengths: __m256i, seed: u64, out: &mut [u64; 8]) {
    let halves = |eight: __m256i| {
        [
            _mm256_cvtepu32_epi64(_mm256_castsi256_si128(eight)),
            _mm256_cvtepu32_epi64(_mm256_extracti128_si256::<1>(eight)),
        ]
    };
    // SAFETY: nobody asks for bytes behind the padding of a part, as the caller promises.
    let read = |places: &[u32; 4], behind: usize| unsafe {
        let word = |at: u32| text.as_ptr().add(at as usize).add(behind).cast::<i64>().read_unaligned();
        _mm256_set_epi64x(word(places[3]), word(places[2]), word(places[1]), word(places[0]))
    };
    let (starts, _) = starts.as_chunks::<4>();
    let eight = _mm256_set1_epi32(8);
    let length = halves(lengths);
    let mut x = length.map(|length| _mm256_add_epi64(times(length, GAMMA), all(seed)));
    let mut done = 0;
    loop {
        let longer = length.map(|length| _mm256_cmpgt_epi64(length, all(8 + done as u64)));
        if _mm256_movemask_epi8(_mm256_or_si256(longer[0], longer[1])) == 0 {
            break;
        }
        for half in 0..2 {
            let next = finish(_mm256_xor_si256(x[half], read(&starts[half], done)));
            x[half] = _mm256_blendv_epi8(x[half], next, longer[half]);
        }
        done += 8;
    }
    // The last eight bytes; of a shorter part all, zeros behind them.
    let short = _mm256_min_epu32(lengths, eight);
    let mut last = [0; 8];
    // SAFETY: eight offsets are 32 bytes.
    unsafe { _mm256_storeu_si256(last.as_mut_ptr().cast(), _mm256_sub_epi32(ends, short)) };
    let unused = halves(_mm256_slli_epi32::<3>(_mm256_sub_epi32(eight, short)));
    let ((last, _), (rows, _)) = (last.as_chunks::<4>(), out.as_chunks_mut::<4>());
    for half in 0..2 {
        let mask = _mm256_srlv_epi64(all(u64::MAX), unused[half]);
        let bytes = _mm256_and_si256(read(&last[half], 0), mask);
        store(finish(_mm256_xor_si256(x[half], bytes)), &mut rows[half]);
    }
}
