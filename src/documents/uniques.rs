#![forbid(unsafe_code)]
//! Ids that were seen before, in about 30 bytes per id.
//!
//! A 64-bit and a 32-bit hash of each id are in an open table, with its place. Two different ids are
//! taken for one with odds of about 1 in 10^11 for a billion of them. The hashes are keyed again in each
//! process, so nobody can choose ids that collide. There are many tables, so that the one that grows, and
//! is there twice for a moment, is a small one.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};

use crate::system::fault::{Fault, require};
use crate::system::memory::{gathered, zeros};

/// A growing set of ids, each with the place where it was first met.
pub struct Uniques {
    /// The upper bits of an id's key say which one it is in.
    tables: Vec<IdTable>,
    states: [RandomState; 2],
}

const TABLE_BITS: u32 = 6;

impl Default for Uniques {
    fn default() -> Uniques {
        let tables = (0..1 << TABLE_BITS).map(|_| IdTable::with_slots(16)).collect();
        Uniques { tables, states: [RandomState::new(), RandomState::new()] }
    }
}

impl Uniques {
    /// The place where an id was first met: this one if never before.
    pub fn add(&mut self, id: &[u8], place: i64) -> i64 {
        let key = self.states[0].hash_one(id);
        let table = &mut self.tables[(key >> (64 - TABLE_BITS)) as usize];
        table.add((key << TABLE_BITS).max(1), self.states[1].hash_one(id) as u32, place)
    }

    /// The same of many ids, with a place for each.
    pub fn add_all<'a>(
        &mut self,
        ids: impl ExactSizeIterator<Item = Cow<'a, str>>,
        places: &[i64],
    ) -> Result<Vec<i64>, Fault> {
        require(ids.len() == places.len(), "one place for each id is needed")?;
        Ok(gathered(ids.zip(places.iter().copied()).map(|(id, place)| self.add(id.as_bytes(), place))))
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.keys.len() * 20).sum()
    }
}

struct IdTable {
    /// 0 marks a free slot.
    keys: Vec<u64>,
    checks: Vec<u32>,
    places: Vec<i64>,
    count: usize,
}

impl IdTable {
    fn with_slots(slots: usize) -> IdTable {
        IdTable { keys: zeros(slots), checks: zeros(slots), places: zeros(slots), count: 0 }
    }

    fn add(&mut self, key: u64, check: u32, place: i64) -> i64 {
        if self.count * 5 >= self.keys.len() * 4 {
            self.grow();
        }
        let slots = self.keys.len();
        let mut slot = ((u128::from(key) * slots as u128) >> 64) as usize;
        loop {
            if self.keys[slot] == 0 {
                (self.keys[slot], self.checks[slot], self.places[slot]) = (key, check, place);
                self.count += 1;
                return place;
            }
            if self.keys[slot] == key && self.checks[slot] == check {
                return self.places[slot];
            }
            slot = if slot + 1 == slots { 0 } else { slot + 1 };
        }
    }

    fn grow(&mut self) {
        let larger = IdTable::with_slots(self.keys.len() * 5 / 4);
        let old = std::mem::replace(self, larger);
        for ((key, check), place) in old.keys.into_iter().zip(old.checks).zip(old.places) {
            if key != 0 {
                self.add(key, check, place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_of_each_id_is_told() {
        let mut uniques = Uniques::default();
        for place in 0..5000 {
            assert_eq!(uniques.add(format!("id {place}").as_bytes(), place), place);
        }
        for place in 5000..10_000 {
            assert_eq!(uniques.add(format!("id {}", place - 5000).as_bytes(), place), place - 5000);
        }
        assert!(uniques.bytes() <= 40 * 5000);
    }

    #[test]
    fn many_ids_need_a_place_each() {
        let mut uniques = Uniques::default();
        let ids = || ["a", "b", "a"].into_iter().map(Cow::Borrowed);
        assert_eq!(uniques.add_all(ids(), &[7, 8, 9]), Ok(vec![7, 8, 7]));
        assert!(uniques.add_all(ids(), &[1]).is_err());
    }
}
