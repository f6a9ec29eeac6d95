#![allow(unsafe_code)]
//! The different values of a list: without checks of places that are known to be there, and gathered eight, or of grams sixteen, at once.

use std::arch::x86_64::*;

use crate::frequencies::grams::Grams;
use crate::frequencies::grams::avx512::{letters, windows};
use crate::recipe::tally::List;
use crate::system::simd::Avx512Base;

impl Avx512Base {
    /// See `tally::first_round`.
    pub fn first_round(self, all: &[u64], table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { first_round(all, table, tallies, waiting) }
    }

    /// See `tally::gather`.
    pub fn gather(self, all: &[u64], tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { gather(all, tallies, values, counts) }
    }

    /// See `tally::first_round`.
    pub fn first_round_of_grams(
        self,
        all: Grams<'_>,
        table: &mut [u16],
        tallies: &mut [u16],
        waiting: &mut [u16],
    ) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { first_round(all, table, tallies, waiting) }
    }

    /// See `tally::gather`.
    pub fn gather_grams(self, all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { gather_grams(all, tallies, values, counts) }
    }
}

/// A list that is read without a check.
///
/// # Safety
/// `count` and `place` say what is so: there are that many rows to be read, and a row below it is one of the list.
pub unsafe trait Unchecked: List {
    /// # Safety
    /// The row must be one of the list.
    unsafe fn value_at(self, row: usize) -> Self::Value;
}

// SAFETY: a slice has as many values as it counts.
unsafe impl Unchecked for &[u64] {
    #[inline(always)]
    unsafe fn value_at(self, row: usize) -> u64 {
        // SAFETY: the caller guarantees it.
        unsafe { *self.get_unchecked(row) }
    }
}

// SAFETY: a text of grams is padded, so that each gram it counts can be read.
unsafe impl Unchecked for Grams<'_> {
    #[inline(always)]
    unsafe fn value_at(self, row: usize) -> u32 {
        // SAFETY: the text has four bytes for each of its grams.
        unsafe { self.text().as_ptr().add(row).cast::<u32>().read_unaligned() }
    }
}

/// See `tally::first_round`.
#[target_feature(enable = "bmi1,bmi2")]
pub fn first_round<L: Unchecked>(all: L, table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize {
    let (mask, total) = (table.len() - 1, all.count());
    assert!(table.len().is_power_of_two() && total < 1 << 16, "a table for short lists");
    assert!(tallies.len() >= total && waiting.len() >= total, "a place for each value");
    for row in (0..total).rev() {
        // SAFETY: it is a row, and the mask keeps its place within the table.
        unsafe { *table.get_unchecked_mut(L::place(all.value_at(row), 0) & mask) = row as u16 };
    }
    let mut left = 0;
    for begin in (0..total).step_by(64) {
        let mut apart = 0u64;
        for at in 0..(total - begin).min(64) {
            // SAFETY: as above; what the table holds there is a row, the loop above wrote it.
            unsafe {
                let value = all.value_at(begin + at);
                let first = usize::from(*table.get_unchecked(L::place(value, 0) & mask));
                let same = all.value_at(first) == value;
                let tally = tallies.get_unchecked_mut(first);
                *tally = tally.wrapping_add(u16::from(same));
                apart |= u64::from(!same) << at;
            }
        }
        while apart != 0 {
            waiting[left] = begin as u16 + apart.trailing_zeros() as u16;
            left += 1;
            apart &= apart - 1;
        }
    }
    left
}

/// See `tally::gather`; there is room for sixteen grams more than there are.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
pub fn gather_grams(all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
    assert!(all.len() == tallies.len(), "a tally for each gram");
    assert!(values.len() >= all.len() + 16 && counts.len() >= all.len() + 16, "room for sixteen more");
    let mut different = 0;
    for (part, tallies) in tallies.chunks(16).enumerate() {
        let here = ((1u32 << tallies.len()) - 1) as __mmask16;
        // SAFETY: the mask reads as many as there are, and at most as many as were read before are in front of
        // the sixteen that are written.
        unsafe {
            let tallies = _mm256_maskz_loadu_epi16(here, tallies.as_ptr().cast());
            let some = windows(letters(all, part * 16), 0);
            let kept = _mm256_test_epi16_mask(tallies, tallies);
            let numbers = _mm512_maskz_compress_epi32(kept, _mm512_cvtepu16_epi32(tallies));
            let some = _mm512_maskz_compress_epi32(kept, some);
            _mm512_storeu_si512(values.as_mut_ptr().add(different).cast(), some);
            _mm512_storeu_si512(counts.as_mut_ptr().add(different).cast(), numbers);
            different += kept.count_ones() as usize;
        }
    }
    different
}

/// See `tally::gather`; there is room for eight values more than there are.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
pub fn gather(all: &[u64], tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
    assert!(all.len() == tallies.len(), "a tally for each value");
    assert!(values.len() >= all.len() + 8 && counts.len() >= all.len() + 8, "room for eight more");
    let mut different = 0;
    for (some, tallies) in all.chunks(8).zip(tallies.chunks(8)) {
        let here = ((1u32 << some.len()) - 1) as __mmask8;
        // SAFETY: the mask reads as many as there are, and at most as many as were read before are in front of
        // the eight that are written.
        unsafe {
            let tallies = _mm_maskz_loadu_epi16(here, tallies.as_ptr().cast());
            let some = _mm512_maskz_loadu_epi64(here, some.as_ptr().cast());
            let kept = _mm_test_epi16_mask(tallies, tallies);
            let numbers = _mm256_cvtepu16_epi32(tallies);
            _mm512_storeu_si512(values.as_mut_ptr().add(different).cast(), _mm512_maskz_compress_epi64(kept, some));
            let numbers = _mm256_maskz_compress_epi32(kept, numbers);
            _mm256_storeu_si256(counts.as_mut_ptr().add(different).cast(), numbers);
            different += kept.count_ones() as usize;
        }
    }
    different
}
