#![forbid(unsafe_code)]
//! Document frequencies: in how many documents a feature was seen.
//!
//! Exact while there are at most `max_features` different features; then a sketch (count-min,
//! two rows) that never says too little. Both are sums over documents, and which one it is
//! depends on the features alone, so parts added together equal the whole, byte for byte.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(target_arch = "x86_64")]
use crate::avx512::Avx512;
use crate::grams::{self, Census, GRAMS, Grams};
use crate::spread::Spread;
use crate::{memory, mix, simd};

pub const DEFAULT_MAX_FEATURES: usize = 1 << 25;
/// A bound that no machine reaches, below which no size overflows.
pub const MOST_FEATURES: u64 = 1 << 40;
const SHARDS: usize = 64;
const ROWS: usize = 2;
const MAGIC: &[u8; 8] = b"NDFREQ01";

/// Keys and counts in one line of the cache; places are taken in order, and 0 marks a free one.
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Slots {
    pub keys: [u64; SLOTS],
    pub counts: [u32; SLOTS],
    /// So that all bytes of the line are there to be read.
    rest: u32,
}

pub const SLOTS: usize = 5;

impl Slots {
    /// The place of *key*, or the free one where it belongs; `SLOTS` if all are taken by others.
    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        self.keys.iter().position(|own| *own == key || *own == 0).unwrap_or(SLOTS)
    }
}

/// A growing table of one shard. What finds its line full stands in the next that is not.
struct Shard {
    lines: Vec<Slots>,
    used: usize,
    spread: Spread,
}

impl Shard {
    fn new() -> Shard {
        Shard { lines: memory::filled(4, Slots::default()), used: 0, spread: Spread::own() }
    }

    /// How many more keys may be added before it grows: at most three of four places are taken.
    fn room(&self) -> usize {
        self.lines.len() * SLOTS * 3 / 4 - self.used
    }

    /// The line and the place of *key*, or where it belongs.
    fn place(&self, key: u64) -> (usize, usize) {
        let mut at = line_of(self.lines.len(), key, self.spread);
        loop {
            let place = self.lines[at].place(key);
            if place < SLOTS {
                return (at, place);
            }
            at = (at + 1) & (self.lines.len() - 1);
        }
    }

    fn add(&mut self, key: u64, count: u32) {
        let (mut at, mut place) = self.place(key);
        if self.lines[at].keys[place] == 0 {
            if self.room() == 0 {
                self.grow();
                (at, place) = self.place(key);
            }
            self.used += 1;
            self.lines[at].keys[place] = key;
        }
        let sum = &mut self.lines[at].counts[place];
        *sum = sum.saturating_add(count);
    }

    /// Count each of *keys* once.
    fn add_all(&mut self, mut keys: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx512::in_force() {
            while !keys.is_empty() {
                let room = self.room();
                let (done, new) = cpu.add_counts(&mut self.lines, keys, room, self.spread);
                self.used += new;
                keys = &keys[done..];
                if !keys.is_empty() {
                    self.grow();
                }
            }
            return;
        }
        while let Some((key, later)) = keys.split_first() {
            if let Some(later) = later.get(AHEAD) {
                simd::prefetch(&self.lines[line_of(self.lines.len(), *later, self.spread)]);
            }
            self.add(*key, 1);
            keys = later;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let lines = large(self.lines.len() * 2, Slots::default());
        let mut larger = Shard { lines, used: self.used, spread: self.spread };
        for (key, count) in self.entries() {
            let (at, place) = larger.place(key);
            (larger.lines[at].keys[place], larger.lines[at].counts[place]) = (key, count);
        }
        *self = larger;
    }

    /// How many full lines are passed, in all, on the way to every key.
    #[cfg(test)]
    fn passed(&self) -> usize {
        let lines = self.lines.len();
        let passed = |(key, _)| self.place(key).0.wrapping_sub(line_of(lines, key, self.spread)) & (lines - 1);
        self.entries().map(passed).sum()
    }

    fn entries(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let all = self.lines.iter().flat_map(|slots| slots.keys.into_iter().zip(slots.counts));
        all.filter(|(key, _)| *key != 0)
    }
}

/// Where *key* belongs among a power of two of lines.
#[inline(always)]
pub fn line_of(lines: usize, key: u64, spread: Spread) -> usize {
    spread.of(key) as usize & (lines - 1)
}

/// So many of the same value, in large pages where they are many.
fn large<T: Clone>(count: usize, value: T) -> Vec<T> {
    let mut found = memory::room_for(count);
    found.resize(count, value);
    found
}

/// A feature whose hash is 0 is kept under 1: 0 marks free places.
#[inline(always)]
pub fn key_of(hash: u64) -> u64 {
    hash.max(1)
}

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
    censuses: Mutex<Vec<Census>>,
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

    fn cell(row: usize, width: usize, hash: u64) -> usize {
        row * width + (mix::finish(hash ^ mix::GAMMA.wrapping_mul(row as u64 + 1)) as usize & (width - 1))
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
            let cell = &cells[Self::cell(row, width, key_of(hash))];
            // Saturating, whatever the other threads do.
            let _ = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(old.saturating_add(count)));
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
    fn take_in(&self, census: &mut Census) {
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

    /// The bytes of docs/formats/scheme.md, the same for the same counts.
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries = self.entries();
        let count = self.sketch.as_ref().map_or(entries.len(), Vec::len);
        let mut out = memory::room_for(64 + 12 * count);
        out.extend_from_slice(MAGIC);
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
        if sketched == 0 && count > max_features {
            return Err(damaged("it has more features than it may have"));
        }
        let count = count as usize;
        let number = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap_or_default());
        let mut table = Frequencies::new(max_features as usize);
        if sketched == 1 {
            if count != ROWS * table.row() {
                return Err(damaged("its sketch has the wrong size"));
            }
            table.shards.clear();
            table.sketch = Some(memory::gathered((0..count).map(|at| AtomicU32::new(number(at * 4)))));
        } else {
            let mut last = 0; // marks free places, and so is no feature
            for at in 0..count {
                let key = u64::from_le_bytes(data[at * 8..at * 8 + 8].try_into().unwrap_or_default());
                if key <= last {
                    return Err(damaged("its features are not in ascending order"));
                }
                last = key;
                table.add_count(key, number(count * 8 + at * 4));
            }
        }
        table.documents = AtomicU64::new(documents);
        Ok(table)
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
    census: Option<Census>,
}

/// So many features are passed on at once.
const MANY: usize = 1 << 14;

impl Counter<'_> {
    /// Count one document that has these grams, and these different features else.
    pub fn add(&mut self, hashes: &[u64], grams: Grams<'_>) {
        self.table.documents.fetch_add(1, Ordering::Relaxed);
        if grams.len() > 0 {
            let census = || locked(&self.table.censuses).pop().unwrap_or_else(Census::new);
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

/// What a sketch of so many cells says of a key.
fn sketched(cells: usize, key: u64, cell: impl Fn(usize) -> u32) -> u32 {
    (0..ROWS).map(|row| cell(Frequencies::cell(row, cells / ROWS, key))).min().unwrap_or(0)
}

/// The classes of features that two documents share: all others weigh nothing. A look-up reads one line of the cache.
struct ExactTable {
    buckets: Vec<Bucket>,
    spread: Spread,
}

pub const PLACES: usize = 7;
/// How many features ahead memory is asked for.
pub const AHEAD: usize = 16;
/// Bits of `Bucket::facts` for each place.
const CLASS: u32 = 6;
/// In `Bucket::facts`: some that belong here stand in the next one.
const MORE: u64 = 1 << 63;

#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Bucket {
    keys: [u64; PLACES],
    /// `CLASS` bits for each place (the class of its key), and `MORE`.
    facts: u64,
}

impl Bucket {
    /// The class of the key at *place*; of `PLACES` it means nothing.
    #[inline(always)]
    pub fn class(&self, place: u32) -> u8 {
        (self.facts >> (CLASS * place)) as u8 & ((1 << CLASS) - 1)
    }

    /// Whether some keys that belong here stand in the next one.
    #[inline(always)]
    pub fn overflows(&self) -> bool {
        self.facts & MORE != 0
    }
}

/// Where a key belongs among *buckets*.
#[inline(always)]
pub fn home(buckets: usize, key: u64, spread: Spread) -> usize {
    ((u128::from(spread.of(key)) * buckets as u128) >> 64) as usize
}

impl ExactTable {
    fn new(shared: &[(u64, u32)], knee: u32) -> ExactTable {
        // Half of the places are taken: seldom is a bucket full.
        let size = shared.len() * 2 / PLACES + 1;
        let mut table = ExactTable { buckets: large(size, Bucket::default()), spread: Spread::own() };
        for &(key, count) in shared {
            let mut at = home(size, key, table.spread);
            loop {
                let bucket = &mut table.buckets[at];
                if let Some(free) = bucket.keys.iter().position(|key| *key == 0) {
                    bucket.keys[free] = key;
                    bucket.facts |= u64::from(class_of(count, knee)) << (CLASS * free as u32);
                    break;
                }
                bucket.facts |= MORE;
                at = (at + 1) % size;
            }
        }
        table
    }

    /// How many full buckets are passed, in all, on the way to every key.
    #[cfg(test)]
    fn passed(&self) -> usize {
        let count = self.buckets.len();
        let here = |(at, bucket): (usize, &Bucket)| -> usize {
            let passed = |key: &u64| (at + count - home(count, *key, self.spread)) % count;
            bucket.keys.iter().filter(|key| **key != 0).map(passed).sum()
        };
        self.buckets.iter().enumerate().map(here).sum()
    }

    /// All keys, and their classes.
    fn entries(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        let both = |bucket: &Bucket| std::array::from_fn(|at| (bucket.keys[at], bucket.class(at as u32)));
        self.buckets.iter().flat_map(both as fn(&Bucket) -> [(u64, u8); PLACES]).filter(|(key, _)| *key != 0)
    }

    fn class(&self, key: u64) -> u8 {
        let mut at = home(self.buckets.len(), key, self.spread);
        loop {
            let bucket = &self.buckets[at];
            if let Some(place) = bucket.keys.iter().position(|own| *own == key) {
                return bucket.class(place as u32);
            }
            if !bucket.overflows() {
                return ALONE;
            }
            at = (at + 1) % self.buckets.len();
        }
    }
}

enum Lookup {
    Exact(ExactTable),
    Sketch(Vec<u32>),
}

impl Lookup {
    fn class(&self, key: u64, knee: u32) -> u8 {
        match self {
            Lookup::Exact(table) => table.class(key),
            Lookup::Sketch(cells) => class_of(sketched(cells.len(), key, |cell| cells[cell]), knee),
        }
    }

    /// The classes of all grams.
    fn grams(&self, knee: u32) -> Box<[u8; GRAMS]> {
        let mut classes = memory::filled(GRAMS, ALONE);
        match self {
            Lookup::Exact(table) => {
                for (key, class) in table.entries() {
                    if let Some(gram) = grams::of_hash(key) {
                        classes[grams::place(gram)] = class;
                    }
                }
            }
            Lookup::Sketch(_) => {
                for (place, class) in classes.iter_mut().enumerate() {
                    *class = self.class(key_of(grams::hash(grams::at(place))), knee);
                }
            }
        }
        // There are so many.
        classes.try_into().unwrap_or_else(|_| Box::new([ALONE; GRAMS]))
    }
}

/// Frequencies that no longer change, and the weights they give.
pub struct Frozen {
    lookup: Lookup,
    /// The class of each gram, which `lookup` knows, too.
    grams: Box<[u8; GRAMS]>,
    /// Up to this frequency a feature is rare and keeps its whole weight.
    knee: u32,
    /// What identifies the weights: the number of documents and every shared feature's count.
    pub digest: u128,
}

/// How common a feature is: up to the knee, and from here on above it, one more for each doubling; or no other
/// document has it.
pub const RARE: u8 = 0;
pub const SHARED: u8 = 1;
pub const ALONE: u8 = u8::MAX;

/// How much a feature of each class counts in a fingerprint: 32 if it is rare, 32 x 2^(-j/2) if it is j doublings
/// above the knee, 0 if nobody shares it.
pub const WEIGHTS: [u32; 256] = {
    let discount = [32, 23, 16, 11, 8, 6, 4, 3, 2, 1, 1, 1];
    let mut weights = [0; 256];
    weights[RARE as usize] = discount[0];
    let mut at = 0;
    while at < discount.len() {
        weights[SHARED as usize + at] = discount[at];
        at += 1;
    }
    weights
};

/// The class of a feature that so many documents have.
fn class_of(count: u32, knee: u32) -> u8 {
    match count {
        0..2 => ALONE,
        count if count <= knee => RARE,
        count => SHARED + doublings(count, knee),
    }
}

/// Up to which frequency a feature of so many documents is rare.
fn knee_of(documents: u64) -> u32 {
    (documents.isqrt() / 3).clamp(16, u64::from(u32::MAX)) as u32
}

impl Frozen {
    pub fn knee(&self) -> u32 {
        self.knee
    }

    /// Fill *out* with the classes of features, the last of which are those of *grams*.
    pub fn classes(&self, hashes: &[u64], grams: &[u32], out: &mut Vec<u8>) {
        memory::resize(out, hashes.len(), ALONE);
        let (others, of_grams) = out.split_at_mut(hashes.len() - grams.len());
        self.look_up(&hashes[..others.len()], others);
        grams::look_up(&self.grams, grams, of_grams);
    }

    /// The classes of features. Their places in memory are asked for ahead of their use.
    fn look_up(&self, hashes: &[u64], out: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        if let Lookup::Exact(table) = &self.lookup
            && let Some(cpu) = Avx512::in_force()
        {
            return cpu.classes(&table.buckets, hashes, table.spread, out);
        }
        for (at, (hash, class)) in hashes.iter().zip(out).enumerate() {
            if let Some(later) = hashes.get(at + AHEAD) {
                self.prefetch(*later);
            }
            *class = self.lookup.class(key_of(*hash), self.knee);
        }
    }

    /// Say that the feature will be asked for soon.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        match &self.lookup {
            Lookup::Exact(table) => {
                simd::prefetch(&table.buckets[home(table.buckets.len(), key_of(hash), table.spread)]);
            }
            Lookup::Sketch(cells) => {
                let width = cells.len() / ROWS;
                for row in 0..ROWS {
                    simd::prefetch(&cells[Frequencies::cell(row, width, key_of(hash))]);
                }
            }
        }
    }
}

/// How often *frequency* is twice the knee: 0 below it.
fn doublings(frequency: u32, knee: u32) -> u8 {
    if frequency < knee {
        return 0;
    }
    let more = frequency.ilog2() - knee.ilog2();
    (more - u32::from(u64::from(knee) << more > u64::from(frequency))) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

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
