#![allow(unsafe_code)]
//! The rounds of a tally, without checks of rows and places: assertions prove those of a whole list at once.

use std::ops::Range;

use crate::frequencies::grams::Grams;
use crate::hash::mix;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};

/// Values, some of them equal. They are read without a check.
///
/// # Safety
/// There are as many values to be read as `count` says.
pub unsafe trait List: Copy {
    type Value: Copy + Eq + Default;

    fn count(self) -> usize;

    /// # Safety
    /// The row must be below the count.
    unsafe fn value(self, row: usize) -> Self::Value;

    /// Any number that a value gives, another one in each round: its lowest bits are a place in the table.
    fn place(value: Self::Value, round: usize) -> usize;

    /// `gather`, where the level in force has something better than the plain loop.
    #[cfg(target_arch = "x86_64")]
    fn gather(self, tallies: &[u16], values: &mut [Self::Value], counts: &mut [u32]) -> Option<usize>;
}

/// Hashes, which are spread evenly as they are.
// SAFETY: a slice has as many values as it counts.
unsafe impl List for &[u64] {
    type Value = u64;

    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn value(self, row: usize) -> u64 {
        // SAFETY: the caller guarantees it.
        unsafe { *self.get_unchecked(row) }
    }

    #[inline(always)]
    fn place(value: u64, round: usize) -> usize {
        mix::word(value, round) as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn gather(self, tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> Option<usize> {
        Avx512Base::in_force().map(|cpu| cpu.gather(self, tallies, values, counts))
    }
}

// SAFETY: a text of grams is padded, so that each that it counts can be read.
unsafe impl List for Grams<'_> {
    type Value = u32;

    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    unsafe fn value(self, row: usize) -> u32 {
        // SAFETY: the text has four bytes for each of its grams.
        u32::from_le(unsafe { self.text().as_ptr().add(row).cast::<u32>().read_unaligned() })
    }

    #[inline(always)]
    fn place(value: u32, round: usize) -> usize {
        match round {
            0 => (u64::from(value).wrapping_mul(mix::GAMMA) >> 40) as usize,
            _ => mix::word(u64::from(value), round) as usize,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn gather(self, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> Option<usize> {
        if let Some(cpu) = Avx512Base::in_force() {
            return Some(cpu.gather_grams(self, tallies, values, counts));
        }
        Avx2::in_force().map(|cpu| cpu.gather_grams(self, tallies, values, counts))
    }
}

/// The number of a value in a list. Short lists have short ones, so that all stays in the first cache.
///
/// # Safety
/// Of a number up to `MOST` comes the number that it was made of.
pub unsafe trait Row: Copy + Default {
    const MOST: usize;

    fn number(self) -> usize;
    fn of(number: usize) -> Self;

    /// The same rows, if they are short.
    fn short(rows: &mut [Self]) -> Option<&mut [u16]>;
}

// SAFETY: they fit.
unsafe impl Row for u16 {
    const MOST: usize = u16::MAX as usize;

    fn number(self) -> usize {
        usize::from(self)
    }

    fn of(number: usize) -> u16 {
        number as u16
    }

    fn short(rows: &mut [u16]) -> Option<&mut [u16]> {
        Some(rows)
    }
}

// SAFETY: they fit.
unsafe impl Row for u32 {
    const MOST: usize = u32::MAX as usize;

    fn number(self) -> usize {
        self as usize
    }

    fn of(number: usize) -> u32 {
        number as u32
    }

    fn short(_: &mut [u32]) -> Option<&mut [u16]> {
        None
    }
}

/// Write the values that have a tally, and the tallies; how many they are. There is room for all.
pub fn gather<L: List, R: Row>(all: L, tallies: &mut [R], values: &mut [L::Value], counts: &mut [u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if let Some(tallies) = R::short(tallies)
        && let Some(different) = all.gather(tallies, values, counts)
    {
        return different;
    }
    let total = all.count();
    assert!(tallies.len() == total && values.len() >= total && counts.len() >= total, "room for each value");
    let mut different = 0;
    for (row, tally) in tallies.iter().enumerate() {
        // SAFETY: there are as many rows, and as much room, and at most as many were written as were read.
        unsafe {
            *values.get_unchecked_mut(different) = all.value(row);
            *counts.get_unchecked_mut(different) = tally.number() as u32;
        }
        different += usize::from(tally.number() != 0);
    }
    different
}

/// Values that look before those that must wait are written down.
const PART: usize = 64;

/// What a round writes to.
struct Room<'a, R> {
    /// A power of two of places.
    table: &'a mut [R],
    /// As many as there are values.
    tallies: &'a mut [R],
    waiting: &'a mut [R],
}

impl<R: Row> Room<'_, R> {
    /// Let all values that take part, of which there are *count*, write and look: at the place that the round gives.
    /// Those that must wait are written to the front of `waiting`; how many they are. *taking* says the row of each
    /// that takes part, from what is waiting.
    ///
    /// # Safety
    /// There are as many tallies, and places for those that wait, as *all* has values, and their numbers are rows; what
    /// *taking* says is a row of *all*.
    #[inline(always)]
    unsafe fn round<L: List>(
        &mut self,
        all: L,
        round: usize,
        count: usize,
        taking: impl Fn(&[R], usize) -> usize,
    ) -> usize {
        let mask = self.table.len() - 1;
        for at in (0..count).rev() {
            // SAFETY: it is a row, and the mask keeps its place within the table.
            unsafe {
                let row = taking(self.waiting, at);
                *self.table.get_unchecked_mut(L::place(all.value(row), round) & mask) = R::of(row);
            }
        }
        let mut left = 0;
        for begin in (0..count).step_by(PART) {
            // SAFETY: the loop above wrote the rows of the same.
            let mut apart = unsafe { self.look(all, round, begin..count.min(begin + PART), &taking) };
            while apart != 0 {
                let at = begin + apart.trailing_zeros() as usize;
                // SAFETY: at most as many wait as were looked at.
                unsafe { *self.waiting.get_unchecked_mut(left) = R::of(taking(self.waiting, at)) };
                left += 1;
                apart &= apart - 1;
            }
        }
        left
    }

    /// Let up to `PART` values look, and count those that find one like themselves; a bit for each of the others.
    ///
    /// # Safety
    /// As `round`, which wrote their rows.
    #[inline(never)]
    unsafe fn look<L: List>(
        &mut self,
        all: L,
        round: usize,
        part: Range<usize>,
        taking: impl Fn(&[R], usize) -> usize,
    ) -> u64 {
        let (mask, unused) = (self.table.len() - 1, PART - part.len());
        let mut apart = 0;
        for at in part {
            // SAFETY: it is a row, the mask keeps its place within the table, and what that holds is a row.
            unsafe {
                let value = all.value(taking(self.waiting, at));
                let first = self.table.get_unchecked(L::place(value, round) & mask).number();
                let same = all.value(first) == value;
                let tally = self.tallies.get_unchecked_mut(first);
                *tally = R::of(tally.number().wrapping_add(usize::from(same)));
                apart = apart >> 1 | u64::from(!same) << (PART - 1);
            }
        }
        apart >> unused
    }
}

/// Say of each value how often it occurs, at the first one of it, and 0 at the others, where `tallies` has zeros.
pub fn tally<L: List, R: Row>(all: L, table: &mut [R], tallies: &mut [R], waiting: &mut [R]) {
    let total = all.count();
    assert!(total <= R::MOST, "rows have numbers");
    assert!(table.len().is_power_of_two() && tallies.len() == total && waiting.len() == total, "room for all");
    let mut room = Room { table, tallies, waiting };
    // SAFETY: there is room for all; in the first round each row takes part, then those that the one before wrote.
    unsafe {
        let mut left = room.round(all, 0, total, |_, at| at);
        let mut round = 1;
        while left > 0 {
            left = room.round(all, round, left, |waiting, at| waiting.get_unchecked(at).number());
            round += 1;
        }
    }
}
