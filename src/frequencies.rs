//! Document frequencies: in how many documents a feature was seen.
//!
//! Exact while there are at most `max_features` different features; then a sketch (count-min,
//! two rows) that never says too little. Both are sums over documents, and which one it is
//! depends on the features alone, so parts added together equal the whole, byte for byte.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

#[cfg(target_arch = "x86_64")]
use crate::avx512::Avx512;
use crate::{memory, mix, simd};

pub const DEFAULT_MAX_FEATURES: usize = 1 << 25;
/// A bound that no machine reaches, below which no size overflows.
pub const MOST_FEATURES: u64 = 1 << 40;
const SHARDS: usize = 64;
const ROWS: usize = 2;
const MAGIC: &[u8; 8] = b"NDFREQ01";

/// A growing table of one shard: open addressing, 0 marks a free place.
struct Shard {
    keys: Vec<u64>,
    counts: Vec<u32>,
    used: usize,
}

impl Shard {
    fn new() -> Shard {
        Shard { keys: vec![0; 16], counts: vec![0; 16], used: 0 }
    }

    /// The place of *key*, or the free one where it belongs.
    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        let mut at = self.home(key);
        while self.keys[at] != key && self.keys[at] != 0 {
            at = (at + 1) & (self.keys.len() - 1);
        }
        at
    }

    /// Where *key* belongs. The top bits chose the shard; lower ones choose the place.
    #[inline(always)]
    fn home(&self, key: u64) -> usize {
        (key >> 6) as usize & (self.keys.len() - 1)
    }

    #[inline(always)]
    fn add(&mut self, key: u64, count: u32) {
        let mut at = self.place(key);
        if self.keys[at] == 0 {
            if self.used * 4 >= self.keys.len() * 3 {
                self.grow();
                at = self.place(key);
            }
            self.used += 1;
            self.keys[at] = key;
        }
        self.counts[at] = self.counts[at].saturating_add(count);
    }

    #[cold]
    fn grow(&mut self) {
        let size = self.keys.len() * 2;
        let mut larger = Shard { keys: large(size, 0), counts: large(size, 0), used: self.used };
        for (key, count) in self.entries() {
            let at = larger.place(key);
            larger.keys[at] = key;
            larger.counts[at] = count;
        }
        *self = larger;
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.keys.iter().copied().zip(self.counts.iter().copied()).filter(|(key, _)| *key != 0)
    }
}

/// So many of the same value, in large pages where they are many.
fn large<T: Clone>(count: usize, value: T) -> Vec<T> {
    let mut found = memory::room_for(count);
    found.resize(count, value);
    found
}

/// A feature whose hash is 0 is kept under 1: 0 marks free places.
#[inline(always)]
fn key_of(hash: u64) -> u64 {
    hash.max(1)
}

pub struct Frequencies {
    documents: AtomicU64,
    distinct: AtomicUsize,
    max_features: usize,
    shards: Vec<Mutex<Shard>>,
    sketch: Option<Vec<AtomicU32>>,
}

impl Frequencies {
    pub fn new(max_features: usize) -> Frequencies {
        Frequencies {
            documents: AtomicU64::new(0),
            distinct: AtomicUsize::new(0),
            max_features,
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new())).collect(),
            sketch: None,
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

    fn cell(row: usize, width: usize, hash: u64) -> usize {
        row * width + (mix::finish(hash ^ mix::GAMMA.wrapping_mul(row as u64 + 1)) as usize & (width - 1))
    }

    /// Count documents: *hashes* are their different features, in any order.
    pub fn add(&self, documents: u64, hashes: &[u64]) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
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
        let mut keys = vec![0; hashes.len()];
        for hash in hashes {
            let place = &mut places[shard(*hash)];
            keys[*place] = key_of(*hash);
            *place += 1;
        }
        for number in 0..SHARDS {
            let group = &keys[begins[number]..begins[number + 1]];
            if !group.is_empty() {
                self.add_to_shard(number, group.iter().map(|key| (*key, 1)));
            }
        }
    }

    fn add_to_shard(&self, number: usize, entries: impl Iterator<Item = (u64, u32)> + Clone) {
        // A poisoned lock means a panic elsewhere; the counts themselves are whole.
        let mut shard = self.shards[number].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let before = shard.used;
        let mut later = entries.clone().skip(AHEAD);
        for (key, count) in entries {
            if let Some((later, _)) = later.next() {
                let home = shard.home(later);
                simd::prefetch(&shard.keys[home]);
                simd::prefetch(&shard.counts[home]);
            }
            shard.add(key, count);
        }
        self.distinct.fetch_add(shard.used - before, Ordering::Relaxed);
    }

    fn add_to_sketch(&self, cells: &[AtomicU32], hash: u64, count: u32) {
        let width = cells.len() / ROWS;
        for row in 0..ROWS {
            let cell = &cells[Self::cell(row, width, key_of(hash))];
            // Saturating, whatever the other threads do.
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old.saturating_add(count)));
        }
    }

    /// Go over to the sketch if there are too many features. Call it between batches.
    pub fn settle(&mut self) {
        if self.sketch.is_some() || *self.distinct.get_mut() <= self.max_features {
            return;
        }
        let cells: Vec<AtomicU32> = (0..ROWS * self.row()).map(|_| AtomicU32::new(0)).collect();
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
            self.settle();
            for (mine, cell) in self.sketch.iter_mut().flatten().zip(theirs) {
                let sum = mine.get_mut().saturating_add(cell.load(Ordering::Relaxed));
                *mine.get_mut() = sum;
            }
            return Ok(());
        }
        for (key, count) in other.entries() {
            match &self.sketch {
                Some(cells) => self.add_to_sketch(cells, key, count),
                None => self.add_to_shard((key >> 58) as usize, std::iter::once((key, count))),
            }
        }
        self.settle();
        Ok(())
    }

    /// The exact counts in ascending order of feature; nothing once it is a sketch.
    pub fn entries(&self) -> Vec<(u64, u32)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let begin = all.len();
            all.extend(shard.entries());
            all[begin..].sort_unstable();
        }
        all
    }

    /// The bytes of docs/formats/scheme.md, the same for the same counts.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let entries = self.entries();
        let count = self.sketch.as_ref().map_or(entries.len(), Vec::len);
        for number in [u64::from(self.sketch.is_some()), self.documents(), self.max_features as u64, count as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        match &self.sketch {
            Some(cells) => {
                out.extend(cells.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes()));
            }
            None => {
                out.extend(entries.iter().flat_map(|entry| entry.0.to_le_bytes()));
                out.extend(entries.iter().flat_map(|entry| entry.1.to_le_bytes()));
            }
        }
        let check = xxhash_rust::xxh3::xxh3_128(&out);
        out.extend_from_slice(&check.to_le_bytes());
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Frequencies, String> {
        const HEAD: usize = 40;
        let damaged = |what: &str| format!("the frequency table is damaged: {what}");
        if bytes.len() < HEAD + 16 || &bytes[..8] != MAGIC {
            return Err(damaged("it does not begin as one"));
        }
        let (body, check) = bytes.split_at(bytes.len() - 16);
        if xxhash_rust::xxh3::xxh3_128(body).to_le_bytes() != *check {
            return Err(damaged("its checksum does not match"));
        }
        let word = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap_or_default());
        let (sketched, documents, max_features, count) = (word(8), word(16), word(24), word(32));
        let data = &body[HEAD..];
        let size = if sketched == 1 { 4 } else { 12 };
        if max_features > MOST_FEATURES {
            return Err(damaged("it speaks of more features than there can be"));
        }
        if sketched > 1 || count.checked_mul(size) != Some(data.len() as u64) {
            return Err(damaged("its length does not fit its count"));
        }
        let count = count as usize;
        let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap_or_default());
        let mut table = Frequencies::new(max_features as usize);
        if sketched == 1 {
            if count != ROWS * table.row() {
                return Err(damaged("its sketch has the wrong size"));
            }
            table.shards.clear();
            table.sketch = Some((0..count).map(|at| AtomicU32::new(number(at * 4))).collect());
        } else {
            for at in 0..count {
                let key = u64::from_le_bytes(data[at * 8..at * 8 + 8].try_into().unwrap_or_default());
                table.add_to_shard((key >> 58) as usize, std::iter::once((key, number(count * 8 + at * 4))));
            }
        }
        table.documents = AtomicU64::new(documents);
        Ok(table)
    }

    /// The table in the form that answers fastest.
    pub fn freeze(&self) -> Frozen {
        let lookup = match &self.sketch {
            Some(cells) => Lookup::Sketch(cells.iter().map(|cell| cell.load(Ordering::Relaxed)).collect()),
            None => Lookup::Exact(ExactTable::new(&self.entries(), knee_of(self.documents()))),
        };
        Frozen::new(self.documents(), lookup)
    }
}

/// Only features that two documents share: all others weigh nothing. A look-up reads one line
/// of the cache.
struct ExactTable {
    buckets: Vec<Bucket>,
}

pub const SLOTS: usize = 5;
/// How many features ahead memory is asked for.
pub const AHEAD: usize = 16;
/// Bits of `Bucket::facts` for each place.
const CLASS: usize = 4;
/// In `Bucket::facts`: some that belong here stand in the next one.
const MORE: u32 = 1 << 31;

#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Bucket {
    keys: [u64; SLOTS],
    counts: [u32; SLOTS],
    /// `CLASS` bits for each place (its row of `DISCOUNT`), and `MORE`.
    facts: u32,
}

impl Bucket {
    /// The row of `DISCOUNT` of the key at *place*.
    #[inline(always)]
    pub fn class(&self, place: usize) -> usize {
        (self.facts >> (CLASS * place)) as usize & ((1 << CLASS) - 1)
    }

    /// Whether some keys that belong here stand in the next one.
    #[inline(always)]
    pub fn overflows(&self) -> bool {
        self.facts & MORE != 0
    }
}

/// Where a key belongs among *buckets*.
#[inline(always)]
pub fn home(buckets: usize, key: u64) -> usize {
    ((u128::from(key) * buckets as u128) >> 64) as usize
}

impl ExactTable {
    fn new(entries: &[(u64, u32)], knee: u32) -> ExactTable {
        let shared = entries.iter().filter(|entry| entry.1 >= 2);
        // Three of five places taken: seldom is one full.
        let size = shared.clone().count() / 3 + 1;
        let mut table = ExactTable { buckets: large(size, Bucket::default()) };
        for &(key, count) in shared {
            let mut at = home(size, key);
            loop {
                let bucket = &mut table.buckets[at];
                if let Some(free) = bucket.keys.iter().position(|key| *key == 0) {
                    bucket.keys[free] = key;
                    bucket.counts[free] = count;
                    let class = doublings(count, knee).min(UNWEIGHED);
                    bucket.facts |= (class as u32) << (CLASS * free);
                    break;
                }
                bucket.facts |= MORE;
                at = (at + 1) % size;
            }
        }
        table
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = self.buckets.iter().flat_map(|bucket| bucket.keys.into_iter().zip(bucket.counts));
        all.filter(|(key, _)| *key != 0)
    }

    /// The bucket and the place of a key.
    #[inline(always)]
    fn find(&self, key: u64) -> Option<(&Bucket, usize)> {
        let mut at = home(self.buckets.len(), key);
        loop {
            let bucket = &self.buckets[at];
            // All places are looked at: no branch that depends on which one it is.
            let mut places = 0u32;
            for (place, other) in bucket.keys.iter().enumerate() {
                places |= u32::from(*other == key) << place;
            }
            if places != 0 {
                return Some((bucket, places.trailing_zeros() as usize));
            }
            if !bucket.overflows() {
                return None;
            }
            at = (at + 1) % self.buckets.len();
        }
    }
}

enum Lookup {
    Exact(ExactTable),
    Sketch(Vec<u32>),
}

/// Frequencies that no longer change, and the weights they give.
pub struct Frozen {
    lookup: Lookup,
    /// Up to this frequency a feature is rare and keeps its whole weight.
    knee: u32,
    /// What identifies the weights: the number of documents and every shared feature's count.
    pub digest: u128,
}

/// 32 x 2^(-j/2): the weight of a feature that is j doublings above the knee.
const DISCOUNT: [u32; 16] = [32, 23, 16, 11, 8, 6, 4, 3, 2, 1, 1, 1, 0, 0, 0, 0];
/// The first row of `DISCOUNT` without weight.
pub const UNWEIGHED: usize = 12;

/// Up to which frequency a feature of so many documents is rare.
fn knee_of(documents: u64) -> u32 {
    (documents.isqrt() / 3).clamp(16, u64::from(u32::MAX)) as u32
}

impl Frozen {
    fn new(documents: u64, lookup: Lookup) -> Frozen {
        let knee = knee_of(documents);
        let head = xxhash_rust::xxh3::xxh3_128(&documents.to_le_bytes());
        let digest = match &lookup {
            // A sum, so that the order of the table does not matter.
            Lookup::Exact(table) => table.entries().fold(head, |sum, (key, count)| {
                let mut entry = [0; 12];
                entry[..8].copy_from_slice(&key.to_le_bytes());
                entry[8..].copy_from_slice(&count.to_le_bytes());
                sum.wrapping_add(xxhash_rust::xxh3::xxh3_128(&entry))
            }),
            Lookup::Sketch(cells) => cells.iter().enumerate().fold(head, |sum, (at, cell)| {
                sum.wrapping_add(u128::from(mix::finish(at as u64 ^ (u64::from(*cell) << 32))) << (at % 64))
            }),
        };
        Frozen { lookup, knee, digest }
    }

    pub fn knee(&self) -> u32 {
        self.knee
    }

    /// In how many documents the feature was seen; one that was seen in one only may give 0.
    #[inline(always)]
    pub fn get(&self, hash: u64) -> u32 {
        let key = key_of(hash);
        match &self.lookup {
            Lookup::Exact(table) => table.find(key).map_or(0, |(bucket, place)| bucket.counts[place]),
            Lookup::Sketch(cells) => {
                let width = cells.len() / ROWS;
                (0..ROWS).map(|row| cells[Frequencies::cell(row, width, key)]).min().unwrap_or(0)
            }
        }
    }

    /// Append the weights of features. Their places in memory are asked for ahead of their use.
    pub fn weights(&self, hashes: impl Iterator<Item = u64> + Clone, out: &mut Vec<u32>) {
        #[cfg(target_arch = "x86_64")]
        if let Lookup::Exact(table) = &self.lookup
            && let Some(cpu) = Avx512::in_force()
        {
            let weight = |(bucket, place): (&Bucket, usize)| DISCOUNT[bucket.class(place)];
            return cpu.find(&table.buckets, hashes.map(key_of), |found| out.push(found.map_or(0, weight)));
        }
        self.ahead(hashes, |hash| out.push(self.weight(hash)));
    }

    /// Append in how many documents each feature was seen, as `get` says.
    pub fn counts(&self, hashes: impl Iterator<Item = u64> + Clone, out: &mut Vec<u32>) {
        #[cfg(target_arch = "x86_64")]
        if let Lookup::Exact(table) = &self.lookup
            && let Some(cpu) = Avx512::in_force()
        {
            let count = |(bucket, place): (&Bucket, usize)| bucket.counts[place];
            return cpu.find(&table.buckets, hashes.map(key_of), |found| out.push(found.map_or(0, count)));
        }
        self.ahead(hashes, |hash| out.push(self.get(hash)));
    }

    /// Call *use_it* with each feature, for whose place in memory was asked before.
    fn ahead(&self, hashes: impl Iterator<Item = u64> + Clone, mut use_it: impl FnMut(u64)) {
        let mut later = hashes.clone().skip(AHEAD);
        for hash in hashes {
            if let Some(later) = later.next() {
                self.prefetch(later);
            }
            use_it(hash);
        }
    }

    /// Say that the feature will be asked for soon.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        match &self.lookup {
            Lookup::Exact(table) => simd::prefetch(&table.buckets[home(table.buckets.len(), key_of(hash))]),
            Lookup::Sketch(cells) => {
                let width = cells.len() / ROWS;
                for row in 0..ROWS {
                    simd::prefetch(&cells[Frequencies::cell(row, width, key_of(hash))]);
                }
            }
        }
    }

    /// How much the feature counts in a fingerprint: 32 if rare, less if common, 0 if nobody shares it.
    #[inline(always)]
    pub fn weight(&self, hash: u64) -> u32 {
        if let Lookup::Exact(table) = &self.lookup {
            return table.find(key_of(hash)).map_or(0, |(bucket, place)| DISCOUNT[bucket.class(place)]);
        }
        let frequency = self.get(hash);
        if frequency < 2 {
            return 0;
        }
        DISCOUNT[doublings(frequency, self.knee).min(UNWEIGHED)]
    }
}

/// How often *frequency* is twice the knee: 0 below it.
#[inline(always)]
pub fn doublings(frequency: u32, knee: u32) -> usize {
    if frequency < knee {
        return 0;
    }
    let more = frequency.ilog2() - knee.ilog2();
    (more - u32::from(u64::from(knee) << more > u64::from(frequency))) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(max_features: usize, documents: &[Vec<u64>]) -> Frequencies {
        let mut table = Frequencies::new(max_features);
        for document in documents {
            table.add(1, document);
            table.settle();
        }
        table
    }

    fn corpus() -> Vec<Vec<u64>> {
        (0..300u64).map(|n| (0..n % 40).map(|k| mix::finish(n % (k + 2) + k * 1000)).collect()).collect()
    }

    #[test]
    fn doublings_are_the_logarithm_of_the_quotient() {
        for knee in [16, 17, 31, 32, 100, 1000, u32::MAX / 2, u32::MAX] {
            let near = (0..32).flat_map(|bit| [knee.checked_shl(bit), 1u32.checked_shl(bit)]).flatten();
            for frequency in near.flat_map(|value| [value.saturating_sub(1), value, value.saturating_add(1)]) {
                let expected = (frequency / knee).checked_ilog2().unwrap_or(0) as usize;
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
        let (exact, sketch) = (fitted(1 << 20, &corpus), fitted(100, &corpus).freeze());
        for (key, count) in exact.entries() {
            assert!(sketch.get(key) >= count);
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
