#![allow(unsafe_code)]
//! The NEON form of `distance`: bits are counted in bytes, and the counts of eight columns added up by pairs into one
//! vector.

use std::arch::aarch64::*;
use std::ops::Range;

use super::Planes;
use crate::hamming::tiles::{self, FOLDS, Near};
use crate::system::simd::Neon;

impl Neon {
    /// See `distance::pairs_within`.
    pub fn pairs_within<const W: usize>(
        self,
        planes: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        tiles::pairs_within(self, planes, range, radius, hits);
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
        tiles::pairs_between(self, left, rows, right, columns, radius, hits);
    }
}

impl Near for Neon {
    type Folds = [u32; FOLDS];

    #[inline(always)]
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
        // SAFETY: every processor of aarch64 has NEON.
        unsafe { columns_near(one, planes, j, radius) }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn columns_near<const W: usize>(one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool {
    let mut sums = vdupq_n_u16(0);
    // A byte has room for the bits of 31 words.
    for (words, planes) in one.chunks(31).zip(planes.chunks(31)) {
        let mut bytes = [vdupq_n_u8(0); 4];
        for (word, plane) in words.iter().zip(planes) {
            let (word, columns) = (vdupq_n_u64(*word), &plane[j..j + 8]);
            for (bytes, two) in bytes.iter_mut().zip(columns.as_chunks::<2>().0) {
                // SAFETY: two words are 16 bytes.
                let two = unsafe { vld1q_u64(two.as_ptr()) };
                *bytes = vaddq_u8(*bytes, vcntq_u8(vreinterpretq_u8_u64(veorq_u64(two, word))));
            }
        }
        let [a, b, c, d] = bytes;
        let (low, high) = (vpaddq_u16(vpaddlq_u8(a), vpaddlq_u8(b)), vpaddq_u16(vpaddlq_u8(c), vpaddlq_u8(d)));
        // Of wide rows that differ in more bits than a number of 16 bits holds, the most it holds: that says "may be".
        sums = vqaddq_u16(sums, vpaddq_u16(low, high));
    }
    let limit = vdupq_n_u16(u16::try_from(radius).unwrap_or(u16::MAX));
    vmaxvq_u16(vcleq_u16(sums, limit)) != 0
}
