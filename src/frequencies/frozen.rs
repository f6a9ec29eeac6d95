#![forbid(unsafe_code)]
//! The table in the form that answers fastest: the class of a feature.

use crate::frequencies::classes::{ALONE, class_of};
use crate::frequencies::grams::{self, GRAMS};
use crate::frequencies::shard::{AHEAD, key_of, large};
use crate::frequencies::sketch::{ROWS, cell, sketched};
use crate::system::memory;
use crate::system::simd;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};
use crate::system::spread::Spread;

/// The classes of features that two documents share: all others weigh nothing. A look-up reads one line of the cache.
pub struct ExactTable {
    pub buckets: Vec<Bucket>,
    pub spread: Spread,
}

pub const PLACES: usize = 7;
/// Bits of `Bucket::facts` for each place.
pub const CLASS: u32 = 6;
/// In `Bucket::facts`: some that belong here are in the next one.
pub const MORE: u64 = 1 << 63;

#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
pub struct Bucket {
    pub keys: [u64; PLACES],
    /// `CLASS` bits for each place (the class of its key), and `MORE`.
    pub facts: u64,
}

impl Bucket {
    /// The class of the key at *place*; of `PLACES` it means nothing.
    #[inline(always)]
    pub fn class(&self, place: u32) -> u8 {
        (self.facts >> (CLASS * place)) as u8 & ((1 << CLASS) - 1)
    }

    /// The place of a key, or `PLACES`.
    #[inline(always)]
    pub fn find(&self, key: u64) -> u32 {
        // All are looked at: where a key is cannot be foretold, and a branch on it costs more.
        let mut found = PLACES;
        for (at, own) in self.keys.iter().enumerate() {
            found = if *own == key { at } else { found };
        }
        found as u32
    }

    /// Whether some keys that belong here are in the next one.
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
    pub fn new(shared: &[(u64, u32)], knee: u32) -> ExactTable {
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
    pub fn passed(&self) -> usize {
        let count = self.buckets.len();
        let here = |(at, bucket): (usize, &Bucket)| -> usize {
            let passed = |key: &u64| (at + count - home(count, *key, self.spread)) % count;
            bucket.keys.iter().filter(|key| **key != 0).map(passed).sum()
        };
        self.buckets.iter().enumerate().map(here).sum()
    }

    /// All keys, and their classes.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        let both = |bucket: &Bucket| std::array::from_fn(|at| (bucket.keys[at], bucket.class(at as u32)));
        self.buckets.iter().flat_map(both as fn(&Bucket) -> [(u64, u8); PLACES]).filter(|(key, _)| *key != 0)
    }

    /// The class of a key; *find* is `Bucket::find`.
    #[inline(always)]
    fn class(&self, key: u64, find: impl Fn(&Bucket, u64) -> u32) -> u8 {
        let mut at = home(self.buckets.len(), key, self.spread);
        let mut bucket = &self.buckets[at];
        let mut found = find(bucket, key);
        // Whether others have a feature cannot be foretold, so no branch depends on that alone: hardly ever was the
        // bucket full, too.
        while found + u32::from(bucket.overflows()) > PLACES as u32 {
            at = (at + 1) % self.buckets.len();
            bucket = &self.buckets[at];
            found = find(bucket, key);
        }
        bucket.class(found) | (u8::from(found != PLACES as u32).wrapping_sub(1) & ALONE)
    }

    /// Write the class of each feature; *find* is `Bucket::find`.
    #[inline(always)]
    pub fn classes(&self, hashes: &[u64], out: &mut [u8], find: impl Fn(&Bucket, u64) -> u32) {
        assert_eq!(hashes.len(), out.len(), "a class for each feature");
        for (at, (hash, class)) in hashes.iter().zip(out).enumerate() {
            if let Some(later) = hashes.get(at + AHEAD) {
                self.prefetch(*later);
            }
            *class = self.class(key_of(*hash), &find);
        }
    }

    /// Prefetch the place of a feature that will be needed soon.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        simd::prefetch(&self.buckets[home(self.buckets.len(), key_of(hash), self.spread)]);
    }
}

pub enum Lookup {
    Exact(ExactTable),
    Sketch(Vec<u32>),
}

impl Lookup {
    pub fn class(&self, key: u64, knee: u32) -> u8 {
        match self {
            Lookup::Exact(table) => table.class(key, Bucket::find),
            Lookup::Sketch(cells) => class_of(sketched(cells.len(), key, |cell| cells[cell]), knee),
        }
    }

    /// The classes of all grams.
    pub fn grams(&self, knee: u32) -> Box<[u8; GRAMS]> {
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
        // There are this many.
        classes.try_into().unwrap_or_else(|_| Box::new([ALONE; GRAMS]))
    }
}

/// Frequencies that no longer change, and the weights they give.
pub struct Frozen {
    pub lookup: Lookup,
    /// The class of each gram, which `lookup` knows, too.
    pub grams: Box<[u8; GRAMS]>,
    /// Up to this frequency a feature is rare and keeps its whole weight.
    pub knee: u32,
    /// What identifies the weights: the number of documents and every shared feature's count.
    pub digest: u128,
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

    /// The classes of features. Their places in memory are prefetched.
    pub fn look_up(&self, hashes: &[u64], out: &mut [u8]) {
        match &self.lookup {
            Lookup::Exact(table) => {
                #[cfg(target_arch = "x86_64")]
                if let Some(cpu) = Avx512Base::in_force() {
                    return cpu.classes(table, hashes, out);
                }
                #[cfg(target_arch = "x86_64")]
                if let Some(cpu) = Avx2::in_force() {
                    return cpu.classes(table, hashes, out);
                }
                table.classes(hashes, out, Bucket::find);
            }
            Lookup::Sketch(cells) => {
                let width = cells.len() / ROWS;
                for (at, (hash, class)) in hashes.iter().zip(out).enumerate() {
                    if let Some(later) = hashes.get(at + AHEAD) {
                        (0..ROWS).for_each(|row| simd::prefetch(&cells[cell(row, width, key_of(*later))]));
                    }
                    *class = self.lookup.class(key_of(*hash), self.knee);
                }
            }
        }
    }
}
