#![forbid(unsafe_code)]
//! A stream index of fingerprints of up to 1,024 bits. What is added waits for the next query, so that many
//! that are added in a row are taken up together.

use std::ops::Range;

use crate::compat::census::Census;
use crate::compat::names::Names;
use crate::compat::stream::{Stream, tell};
use crate::index::Index;
use crate::system::memory::{gathered, give_back, more_room, push, room_for};
use crate::system::parallel::thread_count;

pub struct Entries<const W: usize> {
    store: Index<W>,
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

fn row<const W: usize>(value: &[u64]) -> [u64; W] {
    std::array::from_fn(|word| value.get(word).copied().unwrap_or(0))
}

impl<const W: usize> Entries<W> {
    /// An empty one. A block is crowded when more than `limit` entries share its bits.
    pub fn new(bits: usize, radius: u32, blocks: &[Range<usize>], limit: u32) -> Entries<W> {
        Entries {
            store: Index::new(bits, radius),
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
        self.store = Index::new(self.store.bits, self.store.radius);
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
            self.note(value); // the buckets of an entry are there without a query
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
