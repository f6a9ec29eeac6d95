#![deny(unsafe_code)]
//! Document frequencies: how many documents have a feature.
//!
//! Exact while there are at most `max_features` different features; then a sketch (count-min,
//! two rows) that never says too little. Both are sums over documents, and which one it is
//! depends on the features alone, so parts added together equal the whole, byte for byte.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod bytes;
pub mod classes;
pub mod frozen;
pub mod grams;
pub mod shard;
pub mod shared;
pub mod sketch;

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use classes::knee_of;
pub use classes::{ABOVE_KNEE, ALONE, OPEN_WEIGHTS, RARE, WEIGHTS};
pub use frozen::Frozen;
use frozen::{ExactTable, Lookup};
pub use shard::{Shard, key_of};
use sketch::{ROWS, cell, sketched};

use crate::frequencies::grams::{Grams, SeenGrams};
use crate::hash::mix;
use crate::system::memory;

pub const DEFAULT_MAX_FEATURES: usize = 1 << 25;
/// A bound that no machine reaches, below which no size overflows.
pub const MOST_FEATURES: u64 = 1 << 40;
const SHARDS: usize = 64;

/// The value, also after a panic elsewhere: counts are whole.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A shard that is added to; what is new in it is noted, also where memory ended half-way.
struct Noted<'a> {
    before: usize,
    shard: MutexGuard<'a, Shard>,
    distinct: &'a AtomicUsize,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.distinct.fetch_add(self.shard.used - self.before, Ordering::Relaxed);
    }
}

pub struct Frequencies {
    documents: AtomicU64,
    distinct: AtomicUsize,
    max_features: usize,
    shards: Vec<Mutex<Shard>>,
    sketch: Option<Vec<AtomicU32>>,
    /// Grams that were counted and are not yet among the others: a census for each thread that was at work.
    censuses: Mutex<Vec<SeenGrams>>,
}

impl Frequencies {
    pub fn new(max_features: usize) -> Frequencies {
        Frequencies {
            documents: AtomicU64::new(0),
            distinct: AtomicUsize::new(0),
            max_features,
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            sketch: None,
            censuses: Mutex::default(),
        }
    }

    pub fn documents(&self) -> u64 {
        self.documents.load(Ordering::Relaxed)
    }

    /// How many different features there are; unknown once it is a sketch.
    pub fn features(&self) -> Option<usize> {
        self.sketch.is_none().then(|| self.distinct.load(Ordering::Relaxed))
    }

    pub fn max_features(&self) -> usize {
        self.max_features
    }

    /// Counters in a row of the sketch: together they take about as much as the exact table.
    fn row(&self) -> usize {
        (self.max_features / 2).next_power_of_two().max(1024)
    }

    /// What one thread counts documents with. Who asks afterwards must `settle` first.
    pub fn counter(&self) -> Counter<'_> {
        Counter { table: self, hashes: Vec::new(), keys: Vec::new(), census: None }
    }

    /// Count each of *hashes* once; *keys* is room to work in.
    fn add(&self, hashes: &[u64], keys: &mut Vec<u64>) {
        if let Some(cells) = &self.sketch {
            for hash in hashes.iter() {
                self.add_to_sketch(cells, *hash, 1);
            }
            return;
        }
        // By shard, so that each lock is taken once.
        let shard = |hash: u64| (hash >> 58) as usize;
        let mut places = [0; SHARDS + 1];
        for hash in hashes {
            places[shard(*hash) + 1] += 1;
        }
        for number in 0..SHARDS {
            places[number + 1] += places[number];
        }
        let begins = places;
        memory::at_least(keys, hashes.len());
        for hash in hashes {
            let place = &mut places[shard(*hash)];
            keys[*place] = key_of(*hash);
            *place += 1;
        }
        for number in 0..SHARDS {
            let group = &keys[begins[number]..begins[number + 1]];
            if !group.is_empty() {
                self.with_shard(number, |shard| shard.add_all(group));
            }
        }
    }

    /// Add *count* to what is known of a feature.
    fn add_count(&self, key: u64, count: u32) {
        match &self.sketch {
            Some(cells) => self.add_to_sketch(cells, key, count),
            None => self.with_shard((key >> 58) as usize, |shard| shard.add(key, count)),
        }
    }

    /// Let *add* add to a shard.
    fn with_shard(&self, number: usize, add: impl FnOnce(&mut Shard)) {
        let shard = locked(&self.shards[number]);
        let mut noted = Noted { before: shard.used, shard, distinct: &self.distinct };
        add(&mut noted.shard);
    }

    /// In how many documents the feature was seen; at most, once it is a sketch.
    pub fn get(&self, hash: u64) -> u32 {
        let key = key_of(hash);
        if let Some(cells) = &self.sketch {
            return sketched(cells.len(), key, |cell| cells[cell].load(Ordering::Relaxed));
        }
        let shard = locked(&self.shards[(key >> 58) as usize]);
        let (at, place) = shard.place(key);
        shard.lines[at].counts[place]
    }

    fn add_to_sketch(&self, cells: &[AtomicU32], hash: u64, count: u32) {
        let width = cells.len() / ROWS;
        for row in 0..ROWS {
            let own = &cells[cell(row, width, key_of(hash))];
            // Saturating, whatever the other threads do.
            let _ = own.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old.saturating_add(count)));
        }
    }

    /// Take in all that was counted.
    pub fn settle(&mut self) {
        for mut census in std::mem::take(&mut *locked(&self.censuses)) {
            self.take_in(&mut census);
        }
        self.limit();
    }

    /// Count what a census has among the others.
    fn take_in(&self, census: &mut SeenGrams) {
        for (gram, count) in census.take() {
            self.add_count(key_of(grams::hash(gram)), count);
        }
    }

    /// Whether there are too many features for an exact table.
    pub fn is_full(&self) -> bool {
        self.sketch.is_none() && self.distinct.load(Ordering::Relaxed) > self.max_features
    }

    /// Go over to the sketch if there are too many features. Call it between batches.
    pub fn limit(&mut self) {
        if !self.is_full() {
            return;
        }
        let cells: Vec<AtomicU32> = memory::gathered((0..ROWS * self.row()).map(|_| AtomicU32::new(0)));
        for shard in std::mem::take(&mut self.shards) {
            let shard = shard.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
            for (key, count) in shard.entries() {
                self.add_to_sketch(&cells, key, count);
            }
        }
        self.sketch = Some(cells);
    }

    /// Add what another one counted.
    pub fn merge(&mut self, other: &Frequencies) -> Result<(), String> {
        if self.max_features != other.max_features {
            return Err(format!(
                "cannot add frequencies with max_features {} to ones with {}; fit both with the same",
                other.max_features, self.max_features
            ));
        }
        self.documents.fetch_add(other.documents(), Ordering::Relaxed);
        if let Some(theirs) = &other.sketch {
            *self.distinct.get_mut() = usize::MAX;
            self.limit();
            for (mine, cell) in self.sketch.iter_mut().flatten().zip(theirs) {
                let sum = mine.get_mut().saturating_add(cell.load(Ordering::Relaxed));
                *mine.get_mut() = sum;
            }
            return Ok(());
        }
        for (key, count) in other.entries() {
            self.add_count(key, count);
        }
        self.limit();
        Ok(())
    }

    /// The exact counts in ascending order of feature; nothing once it is a sketch.
    pub fn entries(&self) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = locked(shard);
            let begin = all.len();
            memory::more_room(&mut all, shard.used);
            all.extend(shard.entries());
            all[begin..].sort_unstable();
        }
        all
    }

    /// The table in the form that answers fastest.
    pub fn freeze(&self) -> Frozen {
        let documents = self.documents();
        let knee = knee_of(documents);
        let head = xxhash_rust::xxh3::xxh3_128(&documents.to_le_bytes());
        let (lookup, digest) = match &self.sketch {
            Some(cells) => {
                let cells: Vec<u32> = memory::gathered(cells.iter().map(|cell| cell.load(Ordering::Relaxed)));
                let mixed = |(at, cell): (usize, &u32)| {
                    u128::from(mix::finish(at as u64 ^ (u64::from(*cell) << 32))) << (at % 64)
                };
                let digest = cells.iter().enumerate().map(mixed).fold(head, u128::wrapping_add);
                (Lookup::Sketch(cells), digest)
            }
            None => {
                let mut shared = Vec::new();
                for shard in &self.shards {
                    for entry in locked(shard).entries().filter(|(_, count)| *count >= 2) {
                        memory::push(&mut shared, entry);
                    }
                }
                // A sum, so that no order matters.
                let mixed = |(key, count): &(u64, u32)| {
                    let mut entry = [0; 12];
                    entry[..8].copy_from_slice(&key.to_le_bytes());
                    entry[8..].copy_from_slice(&count.to_le_bytes());
                    xxhash_rust::xxh3::xxh3_128(&entry)
                };
                let digest = shared.iter().map(mixed).fold(head, u128::wrapping_add);
                (Lookup::Exact(ExactTable::new(&shared, knee)), digest)
            }
        };
        Frozen { grams: lookup.grams(knee), lookup, knee, digest }
    }
}

/// Counts documents, in one thread.
pub struct Counter<'a> {
    table: &'a Frequencies,
    /// Features that wait until they are many.
    hashes: Vec<u64>,
    keys: Vec<u64>,
    census: Option<SeenGrams>,
}

/// This many features are passed on at once.
const MANY: usize = 1 << 14;

impl Counter<'_> {
    /// Count one document that has these grams, and these different features else.
    pub fn add(&mut self, hashes: &[u64], grams: Grams<'_>) {
        self.table.documents.fetch_add(1, Ordering::Relaxed);
        if grams.len() > 0 {
            let census = || locked(&self.table.censuses).pop().unwrap_or_else(SeenGrams::new);
            let census = self.census.get_or_insert_with(census);
            if census.is_full() {
                self.table.take_in(census);
            }
            census.add(grams);
        }
        memory::append(&mut self.hashes, hashes);
        if self.hashes.len() >= MANY {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        self.table.add(&self.hashes, &mut self.keys);
        self.hashes.clear();
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        // Where a panic ended the call nobody asks for the rest, and a second one would end the process.
        if !std::thread::panicking() {
            self.pass_on();
            locked(&self.table.censuses).extend(self.census.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequencies::classes::{class_of, doublings};
    use crate::system::simd::tests::at_every_level;

    fn fitted(max_features: usize, documents: &[Vec<u64>]) -> Frequencies {
        let mut table = Frequencies::new(max_features);
        for document in documents {
            table.counter().add(document, Grams::NONE);
            table.settle();
        }
        table
    }

    fn corpus() -> Vec<Vec<u64>> {
        (0..300u64).map(|n| (0..n % 40).map(|k| mix::finish(n % (k + 2) + k * 1000)).collect()).collect()
    }

    #[test]
    fn a_table_whose_features_are_out_of_order_is_refused() {
        let bytes = fitted(100, &[vec![5, 9]]).to_bytes();
        for (place, key) in [(40, 0u64), (40, 9), (48, 5)] {
            let mut changed = bytes[..bytes.len() - 16].to_vec();
            changed[place..place + 8].copy_from_slice(&key.to_le_bytes());
            let check = xxhash_rust::xxh3::xxh3_128(&changed);
            changed.extend_from_slice(&check.to_le_bytes());
            assert!(Frequencies::from_bytes(&changed).is_err_and(|error| error.contains("ascending order")));
        }
        assert!(Frequencies::from_bytes(&bytes).is_ok());
    }

    #[test]
    fn keys_that_somebody_chose_take_no_more_steps_than_others() {
        // All of one shard; alike in the bits that would give a line, or in those that would give a bucket.
        let families: [fn(u64) -> u64; 5] = [
            |k| (42 << 58) + (k << 34) + 1,
            |k| (42 << 58) + (k << 40) + 64,
            |k| (42 << 58) + k + 1,
            |k| (k << 44) + 7,
            mix::finish,
        ];
        for family in families {
            for count in [5_000u64, 20_000, 80_000] {
                let keys: Vec<u64> = (0..count).map(family).collect();
                let mut table = Frequencies::new(DEFAULT_MAX_FEATURES);
                table.counter().add(&keys, Grams::NONE);
                let mut counter = table.counter();
                keys.chunks(1000).for_each(|some| counter.add(some, Grams::NONE));
                drop(counter);
                table.settle();
                assert_eq!(table.features(), Some(count as usize));
                let passed: usize = table.shards.iter().map(|shard| locked(shard).passed()).sum();
                assert!(passed < count as usize, "{passed} lines are passed by {count} keys");
                let Lookup::Exact(exact) = table.freeze().lookup else { panic!("few features are counted one by one") };
                let passed = exact.passed();
                assert!(passed < count as usize, "{passed} buckets are passed by {count} keys");
                assert!(keys.iter().all(|key| table.get(*key) == 2));
                let read = Frequencies::from_bytes(&table.to_bytes()).unwrap();
                let passed: usize = read.shards.iter().map(|shard| locked(shard).passed()).sum();
                assert!(passed < count as usize, "{passed} lines of a file are passed by {count} keys");
            }
        }
    }

    #[test]
    fn counts_and_classes_are_the_same_at_every_level() {
        // Many of one shard, so that lines and buckets are full, and the hash that stands for a free place.
        let key = |n: u64| if n.is_multiple_of(3) { n } else { mix::finish(n) };
        let documents: Vec<Vec<u64>> =
            (0..60u64).map(|n| (0..3000).step_by(n as usize + 1).map(key).collect()).collect();
        let mut expected = std::collections::BTreeMap::new();
        documents.iter().flatten().for_each(|hash| *expected.entry(key_of(*hash)).or_insert(0) += 1);
        // Some that nobody has, too.
        let asked: Vec<u64> = (0..4000).map(key).collect();
        at_every_level(|level| {
            let table = fitted(DEFAULT_MAX_FEATURES, &documents);
            assert_eq!(table.entries(), expected.clone().into_iter().collect::<Vec<_>>(), "{level}");
            assert_eq!(table.features(), Some(expected.len()));
            let (frozen, mut classes) = (table.freeze(), Vec::new());
            frozen.classes(&asked, &[], &mut classes);
            let count = |hash: &u64| expected.get(&key_of(*hash)).copied().unwrap_or(0);
            let wanted: Vec<u8> = asked.iter().map(|hash| class_of(count(hash), frozen.knee)).collect();
            assert_eq!(classes, wanted, "{level}");
            assert!(classes.contains(&ALONE) && classes.contains(&RARE) && classes.contains(&ABOVE_KNEE));
        });
    }

    #[test]
    fn doublings_are_the_logarithm_of_the_quotient() {
        for knee in [16, 17, 31, 32, 100, 1000, u32::MAX / 2, u32::MAX] {
            let near = (0..32).flat_map(|bit| [knee.checked_shl(bit), 1u32.checked_shl(bit)]).flatten();
            for frequency in near.flat_map(|value| [value.saturating_sub(1), value, value.saturating_add(1)]) {
                let expected = (frequency / knee).checked_ilog2().unwrap_or(0) as u8;
                assert_eq!(doublings(frequency, knee), expected, "{frequency} of {knee}");
            }
        }
    }

    #[test]
    fn parts_added_together_equal_the_whole() {
        for max_features in [1 << 20, 100] {
            let corpus = corpus();
            let whole = fitted(max_features, &corpus).to_bytes();
            let mut parts = fitted(max_features, &corpus[..7]);
            parts.merge(&fitted(max_features, &corpus[7..100])).unwrap();
            let mut rest = fitted(max_features, &corpus[100..]);
            rest.merge(&parts).unwrap();
            assert_eq!(rest.to_bytes(), whole);
        }
    }

    #[test]
    fn the_sketch_never_says_too_little() {
        let corpus = corpus();
        let (exact, sketch) = (fitted(1 << 20, &corpus), fitted(100, &corpus));
        for (key, count) in exact.entries() {
            assert!(sketch.get(key) >= count && exact.get(key) == count);
        }
    }

    #[test]
    fn bytes_come_back() {
        for max_features in [1 << 20, 100] {
            let bytes = fitted(max_features, &corpus()).to_bytes();
            assert_eq!(Frequencies::from_bytes(&bytes).unwrap().to_bytes(), bytes);
            for at in [0, 9, 30, bytes.len() / 2, bytes.len() - 1] {
                let mut damaged = bytes.clone();
                damaged[at] ^= 4;
                assert!(Frequencies::from_bytes(&damaged).is_err());
            }
        }
    }
}
