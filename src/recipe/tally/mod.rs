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
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

mod rounds;

use crate::recipe::tally::rounds::{List, Row, gather, tally};
use crate::system::memory;

/// The answer has room for this many more values than there are.
pub const ROOM: usize = 16;

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
        let places = (total * 2).next_power_of_two().max(16);
        memory::at_least(&mut self.table, places);
        memory::at_least(&mut self.waiting, total);
        self.tallies.clear();
        memory::resize(&mut self.tallies, total, R::default());
        tally(all, &mut self.table[..places], &mut self.tallies, &mut self.waiting[..total]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequencies::grams::Grams;
    use crate::hash::mix;
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
        // Miri is a thousand times slower.
        let most = if cfg!(miri) { 300 } else { 65_535 };
        for (total, kinds) in [(0, 1), (1, 1), (7, 7), (100, 7), (1000.min(most), 1000), (most, 9), (most, most)] {
            check(total, kinds, &mut short);
            check(total, kinds, &mut long);
        }
        check(most + 5000.min(most), 300, &mut long);
        check(most + 5000.min(most), most - most / 4, &mut long);
    }

    #[test]
    fn whichever_have_a_tally_are_gathered_at_every_level() {
        // Row r has one if bit r % 8 of r / 8 is set: all sets of eight, and a few rows more.
        let total = if cfg!(miri) { 40 * 8 + 5 } else { 256 * 8 + 5 };
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
        let lengths = [(4, 1), (5, 3), (20, 2), (300, 5), (3000, 26), (65_000, 30)];
        for (length, letters) in lengths.into_iter().take(if cfg!(miri) { 4 } else { 6 }) {
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
