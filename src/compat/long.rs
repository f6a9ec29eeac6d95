#![forbid(unsafe_code)]
//! A stream index of long fingerprints: each block of an entry is looked up by its hash. Nothing waits.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::compat::names::Names;
use crate::compat::stream::{Stream, tell};
use crate::hash::mix::finish;
use crate::system::memory::{append, more_keys, more_room, push};

pub struct Long {
    words: usize,
    radius: u32,
    blocks: Vec<Range<usize>>,
    limit: u32,
    values: Vec<u64>,
    names: Names,
    gone: HashSet<u32>,
    /// The entries by the hash of each block, and by that of their id and value; in order.
    buckets: HashMap<u64, Vec<u32>>,
    asked: BTreeSet<Vec<u64>>,
    near: Vec<(u32, u32)>,
}

/// The words of a block, other bits as zeros.
fn words_of<'a>(value: &'a [u64], block: &Range<usize>) -> impl Iterator<Item = u64> + use<'a> {
    let Range { start, end } = block.clone();
    let places = if start < end { start / 64..end.div_ceil(64) } else { 0..0 };
    places.map(move |place| {
        let from = start.saturating_sub(place * 64);
        let to = (end - place * 64).min(64);
        value[place] >> from << from << (64 - to) >> (64 - to)
    })
}

fn hash(number: usize, words: impl Iterator<Item = u64>) -> u64 {
    words.fold(finish(number as u64), |hash, word| finish(hash ^ word))
}

impl Long {
    pub fn new(bits: usize, radius: u32, blocks: &[Range<usize>], limit: u32) -> Long {
        Long {
            words: bits.div_ceil(64),
            radius,
            blocks: blocks.to_vec(),
            limit,
            values: Vec::new(),
            names: Names::default(),
            gone: HashSet::new(),
            buckets: HashMap::new(),
            asked: BTreeSet::new(),
            near: Vec::new(),
        }
    }

    /// A value with the words of this index, also where it was made for another.
    fn fitted<'a>(&self, value: &'a [u64]) -> Cow<'a, [u64]> {
        if value.len() == self.words {
            return Cow::Borrowed(value);
        }
        let mut fitted = value.to_vec();
        fitted.resize(self.words, 0);
        Cow::Owned(fitted)
    }

    fn value(&self, entry: u32) -> &[u64] {
        &self.values[entry as usize * self.words..][..self.words]
    }

    fn keys(&self, id: &[u8], value: &[u64]) -> Vec<u64> {
        let blocks = self.blocks.iter().enumerate().map(|(number, block)| hash(number, words_of(value, block)));
        blocks.chain([self.key(id, value)]).collect()
    }

    fn key(&self, id: &[u8], value: &[u64]) -> u64 {
        let id = id.chunks(8).map(|bytes| bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        hash(self.blocks.len(), value.iter().copied().chain(id))
    }

    fn find(&self, id: &[u8], value: &[u64]) -> Option<u32> {
        let same = |entry: &u32| self.names.get(*entry) == id && self.value(*entry) == value;
        self.buckets.get(&self.key(id, value))?.iter().copied().find(same)
    }

    /// Drop removed entries for good.
    fn compact(&mut self) {
        let mut fresh = Long::new(self.words * 64, self.radius, &self.blocks, self.limit);
        self.each(&mut |id, value| _ = fresh.add(id, value));
        fresh.asked = std::mem::take(&mut self.asked);
        *self = fresh;
    }
}

impl Stream for Long {
    fn add(&mut self, id: &[u8], value: &[u64]) -> bool {
        let value = &self.fitted(value)[..];
        if self.find(id, value).is_some() {
            return true;
        }
        let entry = self.names.len() as u32;
        if entry == u32::MAX - 1 {
            return false;
        }
        let keys = self.keys(id, value);
        more_room(&mut self.values, value.len());
        more_keys(&mut self.buckets, keys.len());
        for key in &keys {
            more_room(self.buckets.entry(*key).or_default(), 1);
        }
        self.names.push(id);
        // From here on there is room for everything, unless two keys are one: that is seen by the vector.
        for key in keys {
            push(self.buckets.entry(key).or_default(), entry);
        }
        self.values.extend_from_slice(value);
        true
    }

    fn delete(&mut self, id: &[u8], value: &[u64]) {
        let value = &self.fitted(value)[..];
        self.asked.insert(value.to_vec());
        let Some(gone) = self.find(id, value) else {
            return;
        };
        for key in self.keys(id, value) {
            if let Some(bucket) = self.buckets.get_mut(&key) {
                if let Ok(place) = bucket.binary_search(&gone) {
                    bucket.remove(place);
                }
                if bucket.is_empty() {
                    self.buckets.remove(&key);
                }
            }
        }
        self.gone.insert(gone);
        if self.gone.len() > self.names.len() / 2 {
            self.compact();
        }
    }

    fn waiting(&self) -> usize {
        0
    }

    fn settle(&mut self) {}

    fn prefetch(&self, _: &[u64]) {}

    fn near(&mut self, value: &[u64], name: &mut dyn FnMut(&[u8])) -> Vec<(usize, u32)> {
        let value = &self.fitted(value)[..];
        let (mut crowds, mut entries) = (Vec::new(), Vec::new());
        for (number, block) in self.blocks.iter().enumerate() {
            let Some(bucket) = self.buckets.get(&hash(number, words_of(value, block))) else {
                continue;
            };
            append(&mut entries, bucket);
            if bucket.len() > self.limit as usize {
                let shares = |entry: &&u32| words_of(self.value(**entry), block).eq(words_of(value, block));
                let count = bucket.iter().filter(shares).count() as u32;
                if count > self.limit {
                    crowds.push((number, count));
                }
            }
        }
        entries.sort_unstable();
        entries.dedup();
        let mut near = std::mem::take(&mut self.near);
        near.clear();
        for entry in entries {
            let distance = self.value(entry).iter().zip(value).map(|(one, two)| (one ^ two).count_ones()).sum();
            if distance <= self.radius {
                push(&mut near, (distance, entry));
            }
        }
        if near.iter().all(|&(distance, _)| distance > 0) {
            self.asked.insert(value.to_vec());
        }
        tell(&mut near, &self.names, name);
        self.near = near;
        crowds
    }

    fn each(&mut self, work: &mut dyn FnMut(&[u8], &[u64])) {
        for entry in (0..self.names.len() as u32).filter(|entry| !self.gone.contains(entry)) {
            work(self.names.get(entry), self.value(entry));
        }
    }

    fn each_asked(&mut self, work: &mut dyn FnMut(&[u64])) {
        self.asked.iter().for_each(|value| work(value));
    }
}
