#![forbid(unsafe_code)]
//! A stream index: named fingerprints come, go and are asked for one by one; each pair is there once.
//!
//! What comes waits for the next question, so that many that come in a row are taken up together; but
//! for long fingerprints (`index_long`).

use std::collections::HashSet;
use std::ops::Range;

use crate::index::Store;
use crate::index_census::Census;
use crate::index_long::Long;
use crate::index_names::Names;
use crate::memory::{gathered, give_back, more_room, push, room_for};
use crate::parallel::thread_count;

/// A stream index of some width. Values have as many words as it.
pub trait Stream: Send {
    /// Put in a pair; false if there is no room.
    fn add(&mut self, id: &[u8], value: &[u64]) -> bool;

    /// Take out a pair, if it is there.
    fn delete(&mut self, id: &[u8], value: &[u64]);

    /// How many wait.
    fn waiting(&self) -> usize;

    /// Take up what waits.
    fn settle(&mut self);

    /// Ask for what `near` reads first.
    fn prefetch(&self, value: &[u64]);

    /// Call `name` once with each id that is within the radius, by distance, then id; the blocks that
    /// are crowded, and how many share them.
    fn near(&mut self, value: &[u64], name: &mut dyn FnMut(&[u8])) -> Vec<(usize, u32)>;

    /// Call `work` with every pair.
    fn each(&mut self, work: &mut dyn FnMut(&[u8], &[u64]));

    /// Call `work` with everything that was deleted, or asked for and not there, once.
    fn each_asked(&mut self, work: &mut dyn FnMut(&[u64]));
}

struct Entries<const W: usize> {
    store: Store<W>,
    names: Names,
    census: Census<W>,
    waiting: Vec<[u64; W]>,
    waiting_names: Names,
    /// Distinct up to `distinct`.
    asked: Vec<[u64; W]>,
    distinct: usize,
    found: Vec<[u32; 2]>,
    near: Vec<(u32, u32)>,
}

/// An empty stream index. A block is crowded when more than `limit` entries share its bits.
pub fn stream(bits: usize, radius: u32, blocks: &[Range<usize>], limit: u32) -> Box<dyn Stream> {
    match bits.div_ceil(64) {
        0 | 1 => Box::new(Entries::<1>::new(bits, radius, blocks, limit)),
        2 => Box::new(Entries::<2>::new(bits, radius, blocks, limit)),
        3 | 4 => Box::new(Entries::<4>::new(bits, radius, blocks, limit)),
        5..=8 => Box::new(Entries::<8>::new(bits, radius, blocks, limit)),
        9..=16 => Box::new(Entries::<16>::new(bits, radius, blocks, limit)),
        _ => Box::new(Long::new(bits, radius, blocks, limit)),
    }
}

fn row<const W: usize>(value: &[u64]) -> [u64; W] {
    std::array::from_fn(|word| value.get(word).copied().unwrap_or(0))
}

/// Call `name` once with each id of `near`, which is put in order: by distance, then id.
#[inline]
pub fn tell(near: &mut [(u32, u32)], names: &Names, name: &mut dyn FnMut(&[u8])) {
    near.sort_unstable_by(|one, two| {
        one.0.cmp(&two.0).then_with(|| (names.get(one.1), one.1).cmp(&(names.get(two.1), two.1)))
    });
    let mut known = None;
    for (at, &(_, entry)) in near.iter().enumerate() {
        let own = names.get(entry);
        let new = if near.len() > 8 {
            known.get_or_insert_with(HashSet::new).insert(own)
        } else {
            near[..at].iter().all(|&(_, earlier)| names.get(earlier) != own)
        };
        if new {
            name(own);
        }
    }
}

impl<const W: usize> Entries<W> {
    fn new(bits: usize, radius: u32, blocks: &[Range<usize>], limit: u32) -> Entries<W> {
        Entries {
            store: Store::new(bits, radius),
            names: Names::default(),
            census: Census::new(blocks, limit),
            waiting: Vec::new(),
            waiting_names: Names::default(),
            asked: Vec::new(),
            distinct: 0,
            found: Vec::new(),
            near: Vec::new(),
        }
    }

    /// The waiting rows that are there already, or came before among the waiting.
    fn repeated(&mut self) -> Vec<usize> {
        let mut repeated = Vec::new();
        if self.waiting.len() > 1 {
            let mut order: Vec<([u64; W], u32)> = room_for(self.waiting.len());
            order.extend(self.waiting.iter().copied().zip(0..));
            order.sort_unstable();
            for equal in order.chunk_by_mut(|one, two| one.0 == two.0).filter(|equal| equal.len() > 1) {
                equal.sort_unstable_by_key(|&(_, row)| (self.waiting_names.get(row), row));
                for pair in equal.windows(2) {
                    if self.waiting_names.get(pair[0].1) == self.waiting_names.get(pair[1].1) {
                        push(&mut repeated, pair[1].1 as usize);
                    }
                }
            }
        }
        if self.store.len() > 0 {
            for (row, value) in self.waiting.iter().enumerate() {
                let id = self.waiting_names.get(row as u32);
                self.store.search_one(value, 0, &mut self.found, &mut |entry, _| {
                    if self.names.get(entry) == id {
                        push(&mut repeated, row);
                    }
                });
            }
        }
        repeated.sort_unstable();
        repeated
    }

    /// Drop removed entries for good.
    fn compact(&mut self) {
        let rows = self.store.rows();
        self.names = self.names.only(rows.iter().map(|row| row.0));
        self.store = Store::new(self.store.bits, self.store.radius);
        let rows = gathered(rows.into_iter().map(|row| row.1));
        self.store.add(&rows, thread_count(None));
    }

    fn note(&mut self, value: [u64; W]) {
        push(&mut self.asked, value);
        if self.asked.len() >= 2 * self.distinct + (1 << 16) {
            self.tidy_asked();
        }
    }

    fn tidy_asked(&mut self) {
        self.asked.sort_unstable();
        self.asked.dedup();
        self.distinct = self.asked.len();
    }
}

impl<const W: usize> Stream for Entries<W> {
    fn add(&mut self, id: &[u8], value: &[u64]) -> bool {
        if self.names.len() + self.waiting.len() >= u32::MAX as usize - 1 {
            return false;
        }
        more_room(&mut self.waiting, 1);
        self.waiting_names.push(id);
        self.waiting.push(row(value));
        true
    }

    fn delete(&mut self, id: &[u8], value: &[u64]) {
        self.settle();
        let value = row(value);
        self.note(value);
        let mut gone = None;
        self.store.search_one(&value, 0, &mut self.found, &mut |entry, _| {
            if self.names.get(entry) == id {
                gone = Some(entry);
            }
        });
        if let Some(entry) = gone {
            self.store.remove(entry);
            self.census.remove(&value);
            if self.store.is_worn() {
                self.compact();
            }
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let repeated = self.repeated();
        let mut rows = std::mem::take(&mut self.waiting);
        let mut names = std::mem::take(&mut self.waiting_names);
        if !repeated.is_empty() {
            let mut fresh: Vec<u32> = room_for(rows.len());
            fresh.extend((0..rows.len()).filter(|row| repeated.binary_search(row).is_err()).map(|row| row as u32));
            names = names.only(fresh.iter().copied());
            rows = gathered(fresh.iter().map(|&row| rows[row as usize]));
        }
        if self.names.len() == 0 {
            self.names = names;
        } else {
            (0..rows.len() as u32).for_each(|row| self.names.push(names.get(row)));
        }
        self.store.add(&rows, thread_count(None));
        if rows.len() > self.names.len() / 2
            && let Some(old) = self.store.renumber()
        {
            self.names = self.names.only(old.into_iter());
            give_back();
        }
        let store = &self.store;
        self.census.add(&rows, |work| store.each_living(&mut |_, row| work(row)));
    }

    fn prefetch(&self, value: &[u64]) {
        self.store.prefetch_one(&row(value));
    }

    fn near(&mut self, value: &[u64], name: &mut dyn FnMut(&[u8])) -> Vec<(usize, u32)> {
        self.settle();
        let value = row(value);
        self.near.clear();
        let (near, store, names) = (&mut self.near, &self.store, &self.names);
        if let Some(first) = store.likely(&value) {
            names.prefetch(first);
            names.prefetch(first + 4);
        }
        let crowds = self.census.crowds(&value, |work| store.each_living(&mut |_, row| work(row)));
        store.search_one(&value, store.radius, &mut self.found, &mut |entry, distance| {
            names.prefetch(entry);
            push(near, (distance, entry));
        });
        if near.iter().all(|&(distance, _)| distance > 0) {
            self.note(value); // the buckets of an entry are there without a question
        }
        tell(&mut self.near, &self.names, name);
        crowds
    }

    fn each(&mut self, work: &mut dyn FnMut(&[u8], &[u64])) {
        self.settle();
        for (entry, row) in self.store.rows() {
            work(self.names.get(entry), &row);
        }
    }

    fn each_asked(&mut self, work: &mut dyn FnMut(&[u64])) {
        self.tidy_asked();
        self.asked.iter().for_each(|row| work(row));
    }
}
