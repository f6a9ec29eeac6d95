//! Ids that were met before, in about 40 bytes an id.
//!
//! A 64-bit and a 32-bit hash of each id stand in an open table, with its place. Two different ids are
//! taken for one with odds of about 1 in 10^11 for a billion of them. The hashes are keyed anew in each
//! process, so nobody can choose ids that collide.

use std::hash::{BuildHasher, RandomState};

/// A growing set of ids, each with the place where it was first met.
pub struct Uniques {
    /// 0 marks a free slot.
    keys: Vec<u64>,
    checks: Vec<u32>,
    places: Vec<i64>,
    count: usize,
    states: [RandomState; 2],
}

impl Default for Uniques {
    fn default() -> Uniques {
        let mut uniques = Uniques {
            keys: Vec::new(),
            checks: Vec::new(),
            places: Vec::new(),
            count: 0,
            states: [RandomState::new(), RandomState::new()],
        };
        uniques.reserve(1024);
        uniques
    }
}

impl Uniques {
    /// The place where an id was first met: this one if never before.
    pub fn add(&mut self, id: &[u8], place: i64) -> i64 {
        if self.count * 4 >= self.keys.len() * 3 {
            self.grow();
        }
        let key = self.states[0].hash_one(id).max(1);
        self.put(key, self.states[1].hash_one(id) as u32, place)
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> usize {
        self.keys.len() * 20
    }

    fn reserve(&mut self, slots: usize) {
        (self.keys, self.checks, self.places) = (vec![0; slots], vec![0; slots], vec![0; slots]);
        self.count = 0;
    }

    fn grow(&mut self) {
        let (keys, checks, places) =
            (std::mem::take(&mut self.keys), std::mem::take(&mut self.checks), std::mem::take(&mut self.places));
        self.reserve(keys.len() * 8 / 5);
        for ((key, check), place) in keys.into_iter().zip(checks).zip(places).filter(|((key, _), _)| *key != 0) {
            self.put(key, check, place);
        }
    }

    fn put(&mut self, key: u64, check: u32, place: i64) -> i64 {
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
        assert!(uniques.bytes() <= 64 * 5000);
    }
}
