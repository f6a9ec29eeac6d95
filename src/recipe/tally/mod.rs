#![deny(unsafe_code)]
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
pub mod avx512;

use crate::frequencies::grams::Grams;
use crate::hash::mix;
use crate::system::memory;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx512Base;

/// So many more values than there are have room in the answer.
pub const ROOM: usize = 16;

/// Values, some of them equal.
pub trait List: Copy {
    type Value: Copy + Eq + Default;

    fn count(self) -> usize;
    fn value(self, row: usize) -> Self::Value;

    /// Any number that a value gives, another one in each round: its lowest bits are a place in the table.
    fn place(value: Self::Value, round: usize) -> usize;

    /// See `first_round`.
    #[cfg(target_arch = "x86_64")]
    fn begin(self, cpu: Avx512Base, table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize;

    /// See `gather`.
    #[cfg(target_arch = "x86_64")]
    fn end(self, cpu: Avx512Base, tallies: &[u16], values: &mut [Self::Value], counts: &mut [u32]) -> usize;
}

/// Hashes, which are spread evenly as they are.
impl List for &[u64] {
    type Value = u64;

    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn value(self, row: usize) -> u64 {
        self[row]
    }

    #[inline(always)]
    fn place(value: u64, round: usize) -> usize {
        mix::word(value, round) as usize
    }

    #[cfg(target_arch = "x86_64")]
    fn begin(self, cpu: Avx512Base, table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize {
        cpu.first_round(self, table, tallies, waiting)
    }

    #[cfg(target_arch = "x86_64")]
    fn end(self, cpu: Avx512Base, tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
        cpu.gather(self, tallies, values, counts)
    }
}

impl List for Grams<'_> {
    type Value = u32;

    fn count(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn value(self, row: usize) -> u32 {
        self.get(row)
    }

    #[inline(always)]
    fn place(value: u32, round: usize) -> usize {
        match round {
            0 => (u64::from(value).wrapping_mul(mix::GAMMA) >> 40) as usize,
            _ => mix::word(u64::from(value), round) as usize,
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn begin(self, cpu: Avx512Base, table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize {
        cpu.first_round_of_grams(self, table, tallies, waiting)
    }

    #[cfg(target_arch = "x86_64")]
    fn end(self, cpu: Avx512Base, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
        cpu.gather_grams(self, tallies, values, counts)
    }
}

/// The number of a value in a list. Short lists have short ones, so that all stays in the first cache.
pub trait Row: Copy + Default {
    fn number(self) -> usize;
    fn of(number: usize) -> Self;

    /// The same rows, if they are short.
    fn short(rows: &mut [Self]) -> Option<&mut [u16]>;
}

impl Row for u16 {
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

impl Row for u32 {
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

/// Let all values write and look, at the place in the table that the first round gives; how many must wait.
fn first_round<L: List, R: Row>(all: L, table: &mut [R], tallies: &mut [R], waiting: &mut [R]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force()
        && let (Some(table), Some(tallies), Some(waiting)) = (R::short(table), R::short(tallies), R::short(waiting))
    {
        return all.begin(cpu, table, tallies, waiting);
    }
    let mask = table.len() - 1;
    for row in (0..all.count()).rev() {
        table[L::place(all.value(row), 0) & mask] = R::of(row);
    }
    let mut left = 0;
    for row in 0..all.count() {
        let value = all.value(row);
        let first = table[L::place(value, 0) & mask].number();
        let same = all.value(first) == value;
        tallies[first] = R::of(tallies[first].number() + usize::from(same));
        waiting[left] = R::of(row);
        left += usize::from(!same);
    }
    left
}

/// Write the values that have a tally, and the tallies; how many they are.
fn gather<L: List, R: Row>(all: L, tallies: &mut [R], values: &mut [L::Value], counts: &mut [u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force()
        && let Some(tallies) = R::short(tallies)
    {
        return all.end(cpu, tallies, values, counts);
    }
    let mut different = 0;
    for (row, tally) in tallies.iter().enumerate() {
        (values[different], counts[different]) = (all.value(row), tally.number() as u32);
        different += usize::from(tally.number() != 0);
    }
    different
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
        let mask = (total * 2).next_power_of_two().max(16) - 1;
        memory::at_least(&mut self.table, mask + 1);
        memory::at_least(&mut self.waiting, total);
        self.tallies.clear();
        memory::resize(&mut self.tallies, total, R::default());
        let (table, tallies, waiting) = (&mut self.table[..=mask], &mut self.tallies[..], &mut self.waiting[..]);
        let mut left = first_round(all, table, tallies, waiting);
        let mut round = 1;
        while left > 0 {
            for row in waiting[..left].iter().rev() {
                table[L::place(all.value(row.number()), round) & mask] = *row;
            }
            let waited = left;
            left = 0;
            for at in 0..waited {
                let row = waiting[at];
                let value = all.value(row.number());
                let first = table[L::place(value, round) & mask].number();
                let same = all.value(first) == value;
                tallies[first] = R::of(tallies[first].number() + usize::from(same));
                waiting[left] = row;
                left += usize::from(!same);
            }
            round += 1;
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
