#![allow(unsafe_code)]
//! The different values of a list, and how often each occurs.
//!
//! Whether a value is new cannot be foretold, so that a branch on it costs more than all else.
//! There is none here:
//!
//! ```text
//! all values write their number into a table, at a place that their bits give
//! all look there: who finds a value like itself adds to its count; the others wait
//! those who waited do the same with other bits
//! ```

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

use std::ops::Range;

use crate::frequencies::grams::Grams;
use crate::hash::mix;
use crate::system::memory;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};

/// So many more values than there are have room in the answer.
pub const ROOM: usize = 16;

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
fn gather<L: List, R: Row>(all: L, tallies: &mut [R], values: &mut [L::Value], counts: &mut [u32]) -> usize {
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

#[derive(Default)]
pub struct Tally<R> {
    table: Vec<R>,
    tallies: Vec<R>,
    waiting: Vec<R>,
}

impl<R: Row> Tally<R> {
    /// Write the different ones of *all* to *values*, and how often each occurs to *counts* behind the first *known*
    /// of them; how many they are. Something may follow them.
    pub fn count<L: List>(&mut self, all: L, values: &mut Vec<L::Value>, counts: &mut Vec<u32>, known: usize) -> usize {
        self.run(all);
        let most = all.count() + ROOM;
        memory::at_least(values, most);
        memory::at_least(counts, known + most);
        gather(all, &mut self.tallies, values, &mut counts[known..])
    }

    /// Where in the list that was counted last each of the different ones is first.
    pub fn rows(&self) -> impl Iterator<Item = u32> + '_ {
        let firsts = self.tallies.iter().enumerate().filter(|(_, tally)| tally.number() != 0);
        firsts.map(|(row, _)| row as u32)
    }

    /// Say of each value how often it occurs, at the first one of it, and 0 at the others.
    fn run<L: List>(&mut self, all: L) {
        let total = all.count();
        assert!(total <= R::MOST, "rows have numbers");
        let places = (total * 2).next_power_of_two().max(16);
        memory::at_least(&mut self.table, places);
        memory::at_least(&mut self.waiting, total);
        self.tallies.clear();
        memory::resize(&mut self.tallies, total, R::default());
        let mut room = Room {
            table: &mut self.table[..places],
            tallies: &mut self.tallies[..],
            waiting: &mut self.waiting[..total],
        };
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn different_values_are_found_once_with_their_number_at_every_level() {
        at_every_level(|_| different_values_are_found_once());
    }

    fn different_values_are_found_once() {
        fn check<R: Row>(total: u64, kinds: u64, tally: &mut Tally<R>) {
            // Equal low bits, so that many meet in one place.
            let all: Vec<u64> = (0..total).map(|row| mix::finish(row % kinds) << 9).collect();
            let mut expected = std::collections::BTreeMap::new();
            for (row, value) in (0u32..).zip(&all) {
                expected.entry(*value).or_insert((row, 0)).1 += 1;
            }
            let (mut values, mut counts) = (Vec::new(), vec![7; 3]);
            let different = tally.count(&all[..], &mut values, &mut counts, 3);
            assert_eq!((tally.rows().count(), &counts[..3]), (different, &[7; 3][..]));
            let facts = tally.rows().zip(counts.into_iter().skip(3));
            let mut found: Vec<_> = values.into_iter().zip(facts).take(different).collect();
            found.sort_unstable();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
        let (mut short, mut long) = (Tally::<u16>::default(), Tally::<u32>::default());
        for (total, kinds) in [(0, 1), (1, 1), (7, 7), (100, 7), (1000, 1000), (65_535, 9), (65_535, 65_535)] {
            check(total, kinds, &mut short);
            check(total, kinds, &mut long);
        }
        check(70_000, 300, &mut long);
        check(70_000, 50_000, &mut long);
    }

    #[test]
    fn whichever_have_a_tally_are_gathered_at_every_level() {
        // Row r has one if bit r % 8 of r / 8 is set: all sets of eight, and a few rows more.
        let total = 256 * 8 + 5;
        let text: Vec<u8> = (0..total as u64 + 3 + mix::PADDING as u64).map(|n| mix::finish(n) as u8 & 0x7f).collect();
        let grams = Grams::new(&text, total);
        let hashes: Vec<u64> = (0..total as u64).map(mix::finish).collect();
        let mut tallies: Vec<u16> =
            (0..total).map(|row| ((row / 8) >> (row % 8) & 1) as u16 * (row as u16 + 1)).collect();
        let kept: Vec<usize> = (0..total).filter(|row| tallies[*row] > 0).collect();
        at_every_level(|level| {
            let (mut found, mut values) = (vec![0; total + ROOM], vec![0; total + ROOM]);
            let (mut of_grams, mut of_hashes) = (vec![0; total + ROOM], vec![0; total + ROOM]);
            assert_eq!(gather(grams, &mut tallies[..], &mut found, &mut of_grams), kept.len(), "{level}");
            assert_eq!(gather(&hashes[..], &mut tallies[..], &mut values, &mut of_hashes), kept.len(), "{level}");
            for (at, row) in kept.iter().enumerate() {
                assert_eq!((found[at], values[at]), (grams.get(*row), hashes[*row]), "{level}, row {row}");
                assert_eq!([of_grams[at], of_hashes[at]], [*row as u32 + 1; 2], "{level}, row {row}");
            }
        });
    }

    #[test]
    fn grams_are_counted_as_their_hashes_are_at_every_level() {
        at_every_level(|_| grams_are_counted_as_their_hashes_are());
    }

    fn grams_are_counted_as_their_hashes_are() {
        for (length, letters) in [(4, 1), (5, 3), (20, 2), (300, 5), (3000, 26), (65_000, 30)] {
            let letter = |n: u64| b'a' + (mix::finish(n) % letters) as u8;
            let text: Vec<u8> = (0..length + mix::PADDING as u64).map(letter).collect();
            let grams = Grams::new(&text, length as usize - 3);
            let hashes: Vec<u64> =
                (0..grams.len()).map(|row| crate::frequencies::grams::hash(grams.get(row))).collect();
            let (mut found, mut counts, mut expected, mut times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            let (mut short, mut long) = (Tally::<u16>::default(), Tally::<u32>::default());
            let different = short.count(grams, &mut found, &mut counts, 0);
            assert_eq!(long.count(&hashes[..], &mut expected, &mut times, 0), different);
            let found: Vec<u64> =
                found[..different].iter().map(|gram| crate::frequencies::grams::hash(*gram)).collect();
            assert_eq!((&found[..], &counts[..different]), (&expected[..different], &times[..different]));
        }
    }
}
