#![allow(unsafe_code)]
//! The AVX2 form of `distance`: four columns a vector.
//!
//! AVX2 counts no bits, but a byte shuffle looks the counts of 32 half bytes up at once. Folds are eight in a register,
//! and compared 64 pairs without a branch: half of that against the columns as they stand, half with their halves swapped.

use std::arch::x86_64::*;
use std::ops::Range;

use super::Planes;
use crate::hamming::tiles::{self, COLUMNS, FOLDS, Folds, Near};
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `distance::pairs_within`.
    pub fn pairs_within<const W: usize>(
        self,
        planes: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_within(self, planes, range, radius, hits) }
    }

    /// See `distance::pairs_between`.
    pub fn pairs_between<const W: usize>(
        self,
        left: &Planes<'_, W>,
        rows: Range<usize>,
        right: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_between(self, left, rows, right, columns, radius, hits) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn pairs_within<const W: usize>(
    cpu: Avx2,
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_within(cpu, planes, range, radius, hits);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn pairs_between<const W: usize>(
    cpu: Avx2,
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    tiles::pairs_between(cpu, left, rows, right, columns, radius, hits);
}

impl Near for Avx2 {
    type Folds = Eight;

    #[inline(always)]
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
        // SAFETY: `in_force` found the instructions.
        unsafe { columns_near(one, planes, j, radius) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn columns_near<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
    let limit = _mm256_set1_epi64x(i64::from(radius));
    let (low, high) = (distances(one, planes, j), distances(one, planes, j + COLUMNS / 2));
    let far = _mm256_and_si256(_mm256_cmpgt_epi64(low, limit), _mm256_cmpgt_epi64(high, limit));
    _mm256_movemask_epi8(far) != -1
}

/// The distances of a row and the four columns from *j* on.
#[inline]
#[target_feature(enable = "avx2")]
fn distances<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize) -> __m256i {
    let mut sum = _mm256_setzero_si256();
    // A byte has room for the bits of 31 words.
    for (words, planes) in one.chunks(31).zip(planes.chunks(31)) {
        let mut bytes = _mm256_setzero_si256();
        for (word, plane) in words.iter().zip(planes) {
            let four = &plane[j..j + 4];
            // SAFETY: four words are 32 bytes.
            let four = unsafe { _mm256_loadu_si256(four.as_ptr().cast()) };
            bytes = _mm256_add_epi8(bytes, bits(_mm256_xor_si256(four, _mm256_set1_epi64x(*word as i64))));
        }
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    }
    sum
}

/// Eight folds. Only a token for AVX2, or for more than that, makes them.
#[derive(Clone, Copy)]
pub struct Eight(__m256i);

impl Folds for Eight {
    #[inline(always)]
    fn of<N: Near<Folds = Self>, const W: usize>(
        _: N,
        planes: &Planes<'_, W>,
        rows: Range<usize>,
        pads: &[u32; FOLDS],
    ) -> Self {
        // SAFETY: `in_force` found the instructions for every token whose folds these are.
        Eight(unsafe { folded(planes, rows, pads) })
    }

    #[inline(always)]
    fn near(self, others: Self, radius: u32) -> bool {
        // SAFETY: whoever made them had the instructions.
        unsafe { near(self.0, others.0, radius) }
    }

    #[inline(always)]
    fn near_each_other(self, radius: u32) -> bool {
        // SAFETY: whoever made them had the instructions.
        unsafe { near_each_other(self.0, radius) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn folded<const W: usize>(planes: &Planes<'_, W>, rows: Range<usize>, pads: &[u32; FOLDS]) -> __m256i {
    let count = _mm256_set1_epi64x(rows.len() as i64);
    let first = _mm256_cmpgt_epi64(count, _mm256_set_epi64x(3, 2, 1, 0));
    let last = _mm256_cmpgt_epi64(count, _mm256_set_epi64x(7, 6, 5, 4));
    let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for plane in planes {
        let start = plane[rows.clone()].as_ptr();
        // SAFETY: only lanes of rows are read, and these lie in the plane.
        let (four, more) = unsafe {
            (_mm256_maskload_epi64(start.cast(), first), _mm256_maskload_epi64(start.wrapping_add(4).cast(), last))
        };
        (low, high) = (_mm256_xor_si256(low, four), _mm256_xor_si256(high, more));
    }
    let folds = _mm256_xor_si256(lower_halves(low, high), upper_halves(low, high));
    // SAFETY: eight numbers are 32 bytes.
    let pads = unsafe { _mm256_loadu_si256(pads.as_ptr().cast()) };
    _mm256_blendv_epi8(pads, folds, lower_halves(first, last))
}

/// The lower 32 bits of each of eight numbers, in an order of their own.
#[inline]
#[target_feature(enable = "avx2")]
fn lower_halves(low: __m256i, high: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)))
}

/// The upper 32 bits, in the same order.
#[inline]
#[target_feature(enable = "avx2")]
fn upper_halves(low: __m256i, high: __m256i) -> __m256i {
    _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn near(some: __m256i, others: __m256i, radius: u32) -> bool {
    let swapped = _mm256_permute4x64_epi64::<SWAP>(others);
    any_within(
        [
            _mm256_xor_si256(some, others),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<ONE>(others)),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<TWO>(others)),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<THREE>(others)),
            _mm256_xor_si256(some, swapped),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<ONE>(swapped)),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<TWO>(swapped)),
            _mm256_xor_si256(some, _mm256_shuffle_epi32::<THREE>(swapped)),
        ],
        radius,
    )
}

#[inline]
#[target_feature(enable = "avx2")]
fn near_each_other(folds: __m256i, radius: u32) -> bool {
    let swapped = _mm256_permute4x64_epi64::<SWAP>(folds);
    // A turn by three is one by one, seen from the other side.
    any_within(
        [
            _mm256_xor_si256(folds, _mm256_shuffle_epi32::<ONE>(folds)),
            _mm256_xor_si256(folds, _mm256_shuffle_epi32::<TWO>(folds)),
            _mm256_xor_si256(folds, swapped),
            _mm256_xor_si256(folds, _mm256_shuffle_epi32::<ONE>(swapped)),
            _mm256_xor_si256(folds, _mm256_shuffle_epi32::<TWO>(swapped)),
        ],
        radius,
    )
}

/// The halves of a vector change places; each half turns by this many lanes.
const SWAP: i32 = 0b01_00_11_10;
const ONE: i32 = 0b00_11_10_01;
const TWO: i32 = 0b01_00_11_10;
const THREE: i32 = 0b10_01_00_11;

/// Whether one of these numbers has at most so many bits: whether it is 0 once its lowest bit was cleared as often.
#[inline]
#[target_feature(enable = "avx2")]
fn any_within<const N: usize>(mut numbers: [__m256i; N], bits: u32) -> bool {
    for _ in 0..bits {
        for number in &mut numbers {
            *number = _mm256_and_si256(*number, _mm256_add_epi32(*number, _mm256_set1_epi32(-1)));
        }
    }
    let mut least = numbers[0];
    for number in &numbers[1..] {
        least = _mm256_min_epu32(least, *number);
    }
    _mm256_movemask_epi8(_mm256_cmpeq_epi32(least, _mm256_setzero_si256())) != 0
}

/// How many bits of each byte are set.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(x: __m256i) -> __m256i {
    let counts = _mm256_broadcastsi128_si256(_mm_set_epi8(4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0));
    let half = _mm256_set1_epi8(0x0f);
    let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(x, half));
    let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(x), half));
    _mm256_add_epi8(low, high)
}
