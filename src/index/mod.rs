//! The index: what is within a radius of a fingerprint, while fingerprints come and go.
//!
//! New fingerprints wait in a small live part that is searched one by one. When it is full it
//! becomes a frozen segment, merged with smaller segments before it, so that there are few. A
//! segment has one table for each block of its plan, of one of two kinds (`frozen`). With few tables
//! (`segment`), `bounds[key]` leads to the fingerprints with that key, stored in full, and their
//! entries; the first table's are those of the segment itself. With many tables (`sparse`), the
//! fingerprints are stored once, and a key leads to their places. A removed entry is only marked;
//! what is marked goes when its segment is merged.

pub mod any;
pub mod batches;
pub mod blocks;
pub mod file;
pub mod frozen;
pub mod ids;
pub mod opened;
pub mod search;
pub mod segment;
pub mod shared;
pub mod sparse;

use frozen::{Frozen, Shape};
pub use segment::{Hit, Segment, Table};

use crate::hamming::distance::{Planes, row};
use crate::system::column::Column;
use crate::system::memory::{attempt, copied, gathered, more_room, no_room, push, room_for, set_aside, zeros};

pub struct Index<const W: usize> {
    pub bits: usize,
    pub radius: u32,
    pub segments: Vec<Frozen<W>>,
    live: Vec<Vec<u64>>,
    live_first: u32,
    /// All entries ever given a number since the last compaction, and which of them were removed.
    entries: u32,
    dead: Vec<u64>,
    dead_count: usize,
    /// What was there is gone, and there was no memory for its successor.
    pub torn: bool,
}

const LIVE_LEAST: usize = 2048;
const LIVE_MOST: usize = 16384;

impl<const W: usize> Index<W> {
    pub fn new(bits: usize, radius: u32) -> Index<W> {
        Index {
            bits,
            radius,
            segments: Vec::new(),
            live: vec![Vec::new(); W],
            live_first: 0,
            entries: 0,
            dead: Vec::new(),
            dead_count: 0,
            torn: false,
        }
    }

    /// A store of one segment that was read from a file.
    pub fn of_segment(bits: usize, radius: u32, segment: Frozen<W>) -> Index<W> {
        let mut store = Index::new(bits, radius);
        store.entries = segment.len() as u32;
        store.live_first = store.entries;
        store.dead = zeros(segment.len().div_ceil(64));
        if segment.len() > 0 {
            store.segments.push(segment);
        }
        store
    }

    /// Entries that are not removed.
    pub fn len(&self) -> usize {
        self.entries as usize - self.dead_count
    }

    /// Entries ever numbered, also removed ones.
    pub fn entries(&self) -> u32 {
        self.entries
    }

    pub fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(Frozen::bytes).sum();
        segments + self.live.iter().map(|plane| plane.capacity() * 8).sum::<usize>() + self.dead.len() * 8
    }

    fn live_len(&self) -> usize {
        self.live[0].len()
    }

    #[inline(always)]
    fn is_dead(&self, entry: u32) -> bool {
        self.dead_count > 0 && self.dead[entry as usize / 64] >> (entry % 64) & 1 == 1
    }

    /// Add rows; they get the next entry numbers. If there is no memory for them, `forget` undoes it.
    pub fn add(&mut self, rows: &[[u64; W]], threads: usize) {
        if rows.len() > LIVE_MOST {
            self.freeze(4, rows, threads);
            return;
        }
        self.live.iter_mut().for_each(|plane| more_room(plane, rows.len()));
        more_room(&mut self.dead, rows.len() / 64 + 1);
        for row in rows {
            self.push(row);
        }
        let room = (self.len() / 64).clamp(LIVE_LEAST, LIVE_MOST);
        if self.live_len() > room {
            self.freeze(4, &[], threads);
        }
    }

    /// Forget the entries from this number on, which an `add` could not put where they belong.
    pub fn forget(&mut self, entries: u32) {
        if entries >= self.live_first && entries < self.entries {
            self.live.iter_mut().for_each(|plane| plane.truncate((entries - self.live_first) as usize));
            self.entries = entries;
        }
    }

    /// Add one row without looking whether the live part is full, or there is memory.
    #[inline]
    fn push(&mut self, row: &[u64; W]) {
        for (plane, &word) in self.live.iter_mut().zip(row) {
            plane.push(word);
        }
        self.entries += 1;
        if self.dead.len() * 64 < self.entries as usize {
            self.dead.push(0);
        }
    }

    /// Make the live part and new rows a segment, together with segments up to `ratio` times as large.
    fn freeze(&mut self, ratio: usize, new: &[[u64; W]], threads: usize) {
        let mut merged = self.live_len() + new.len();
        let mut first = self.segments.len();
        while first > 0 && self.segments[first - 1].len() <= merged.saturating_mul(ratio) {
            first -= 1;
            merged += self.segments[first].len();
        }
        let shape = Shape { bits: self.bits, radius: self.radius, threads };
        let (start, end) = (self.entries, self.entries + new.len() as u32);
        let marks = (end as usize).div_ceil(64);
        let more = marks.saturating_sub(self.dead.len());
        more_room(&mut self.dead, more);
        more_room(&mut self.segments, 1);
        let built = if merged == new.len() {
            Frozen::build(new, start, None, shape, 0, || ())
        } else {
            let mut rows = room_for(merged);
            let mut entries = room_for(merged);
            let mut keep = |entry: u32, row: &[u64; W]| {
                rows.push(*row);
                entries.push(entry);
            };
            for segment in &self.segments[first..] {
                self.living_of(segment, &mut keep);
            }
            self.living(&mut keep);
            rows.extend_from_slice(new);
            entries.extend(start..end);
            let freed = self.segments[first..].iter().map(Frozen::owned_bytes).sum();
            // What was there goes before its successor is built, lest both need room at once.
            let begin = || {
                self.torn = true;
                self.segments.truncate(first);
            };
            match attempt(|| Frozen::build(&rows, 0, Some(&entries), shape, freed, begin)) {
                Some(built) => built,
                None if !self.torn => no_room(),
                None => {
                    // The estimate was too low. What was there fits without tables, in less than it took with them.
                    set_aside();
                    let frozen = entries.partition_point(|&entry| entry < self.live_first);
                    entries.truncate(frozen);
                    let plain = Segment::plain(&rows[..frozen], entries);
                    if plain.len() > 0 {
                        self.segments.push(Frozen::Full(plain));
                    }
                    self.torn = false;
                    no_room()
                }
            }
        };
        if built.len() > 0 {
            self.segments.push(built);
        }
        self.torn = false;
        self.live.iter_mut().for_each(|plane| *plane = Vec::new());
        self.entries = end;
        self.live_first = end;
        self.dead.resize(marks, 0);
    }

    /// Renumber all entries, in the order of the first table: so what belongs to the entries of a bucket can
    /// lie together, too. Their old numbers; nothing if some were removed, or do not lie in one table.
    pub fn renumber(&mut self) -> Option<Vec<u32>> {
        let whole = self.dead_count == 0 && self.live_len() == 0;
        let [Frozen::Full(segment)] = &mut self.segments[..] else { return None };
        if !whole || segment.tables.is_empty() {
            return None;
        }
        let count = segment.len() as u32;
        let mut counted = room_for(segment.len());
        counted.extend(0..count);
        let old = std::mem::replace(&mut segment.entries, Column::Owned(counted));
        let mut new = zeros(segment.len());
        for (place, &entry) in (0..count).zip(old.slice()) {
            new[entry as usize] = place;
        }
        for table in &mut segment.tables[1..] {
            let mut entries = room_for(new.len());
            entries.extend(table.entries.slice().iter().map(|&entry| new[entry as usize]));
            table.entries = Column::Owned(entries);
        }
        Some(copied(old.slice()))
    }

    /// The first entry of the bucket that a fingerprint has in the first table, if entries were renumbered.
    #[inline]
    pub fn likely(&self, query: &[u64; W]) -> Option<u32> {
        let table = self.segments.first()?.full()?.tables.first()?;
        Some(table.bounds.slice()[table.key.of(query) as usize])
    }

    /// Mark an entry as removed; whether it was there.
    pub fn remove(&mut self, entry: u32) -> bool {
        if self.is_dead(entry) {
            return false;
        }
        self.dead[entry as usize / 64] |= 1 << (entry % 64);
        self.dead_count += 1;
        true
    }

    pub fn is_worn(&self) -> bool {
        self.dead_count > 4096 && self.dead_count > self.len()
    }

    /// All living rows with their entry numbers, by entry.
    pub fn rows(&self) -> Vec<(u32, [u64; W])> {
        let mut all = room_for(self.len());
        self.each_living(&mut |entry, row| push(&mut all, (entry, *row)));
        all.sort_unstable_by_key(|known| known.0);
        all
    }

    /// One segment with the living rows, their entries renumbered in order.
    pub fn compacted(&self, threads: usize) -> Frozen<W> {
        let rows = gathered(self.rows().into_iter().map(|known| known.1));
        let shape = Shape { bits: self.bits, radius: self.radius, threads };
        Frozen::build(&rows, 0, None, shape, 0, || ())
    }

    pub fn each_living(&self, work: &mut impl FnMut(u32, &[u64; W])) {
        for segment in &self.segments {
            self.living_of(segment, work);
        }
        self.living(work);
    }

    /// What lives in a segment.
    fn living_of(&self, segment: &Frozen<W>, work: &mut impl FnMut(u32, &[u64; W])) {
        segment.each(&mut |entry, row| {
            if !self.is_dead(entry) {
                work(entry, row);
            }
        });
    }

    /// What lives in the live part.
    fn living(&self, work: &mut impl FnMut(u32, &[u64; W])) {
        let live: Planes<'_, W> = std::array::from_fn(|word| &self.live[word][..]);
        for (place, entry) in (0..self.live_len()).zip(self.live_first..) {
            if !self.is_dead(entry) {
                work(entry, &row(&live, place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::distance::distance;
    use crate::hamming::plan::split_mix;
    use crate::system::memory::ending;
    use crate::system::parallel::Cancel;

    fn check<const W: usize>(radius: u32) {
        let mut state = 3;
        let mut rows: Vec<[u64; W]> = Vec::new();
        for index in 0..30_000 {
            let mut value: [u64; W] = std::array::from_fn(|_| split_mix(&mut state));
            if index % 2 == 1 {
                value = rows[split_mix(&mut state) as usize % index];
                for _ in 0..3 {
                    let bit = split_mix(&mut state) as usize % (W * 64);
                    value[bit / 64] ^= 1 << (bit % 64);
                }
            }
            rows.push(value);
        }
        let mut store = Index::<W>::new(W * 64, radius);
        for chunk in rows.chunks(700) {
            store.add(chunk, 2);
        }
        for entry in (0..rows.len() as u32).step_by(7) {
            assert!(store.remove(entry));
        }
        let queries = &rows[5..305];
        // So many that they are sorted by key; every answer as if it were asked alone.
        let many = store.search(&rows, radius, 2, &Cancel::new()).unwrap();
        for query in (0..rows.len()).step_by(501) {
            let mut alone = store.hits_of_one(&rows[query], radius);
            alone.iter_mut().for_each(|hit| hit.query = query as u32);
            alone.sort_unstable();
            let own: Vec<Hit> = many.iter().copied().filter(|hit| hit.query == query as u32).collect();
            assert_eq!(own, alone);
        }
        let mut expected = Vec::new();
        for (query, asked) in (0u32..).zip(queries) {
            for (entry, value) in (0u32..).zip(&rows) {
                if entry % 7 != 0 && distance(asked, value) <= radius {
                    expected.push(Hit { query, distance: distance(asked, value), entry });
                }
            }
        }
        expected.sort_unstable();
        assert_eq!(store.search(queries, radius, 2, &Cancel::new()).unwrap(), expected);
        let tables: usize = store.segments.iter().map(|segment| segment.tables().len()).sum();
        assert!(tables > 0, "some segment is large enough for tables");
    }

    /// Memory ends at each request in turn, while the index grows from so many rows by so many.
    fn check_ends<const W: usize>(radius: u32, cases: &[(usize, usize, usize)]) {
        let mut state = 5;
        let rows: Vec<[u64; W]> = (0..60_000).map(|_| std::array::from_fn(|_| split_mix(&mut state))).collect();
        let mut makeshift = 0;
        for &(count, chunk, size) in cases {
            let (known, new) = (&rows[..count], &rows[count..count + size]);
            for requests in 0.. {
                let mut index = Index::<W>::new(W * 64, radius);
                known.chunks(chunk).for_each(|rows| index.add(rows, 1));
                ending::after(Some(requests));
                let done = attempt(|| index.add(new, 1));
                ending::after(None);
                assert!(!index.torn);
                if done.is_none() {
                    index.forget(known.len() as u32);
                    let kept: Vec<[u64; W]> = index.rows().into_iter().map(|row| row.1).collect();
                    assert_eq!(kept, known);
                    makeshift += usize::from(index.segments[0].tables().is_empty());
                    index.add(new, 1);
                }
                let found = index.search(&rows[..count + size], 0, 1, &Cancel::new()).unwrap();
                assert_eq!(found.len(), count + size);
                if done.is_some() {
                    assert_eq!(index.segments[0].full().is_none(), radius > 3, "the kind that is tried");
                    break;
                }
            }
        }
        assert!(makeshift > 0, "memory ended while a successor was built");
    }

    #[test]
    fn wherever_memory_ends_an_add_the_index_is_as_it_was() {
        check_ends::<1>(3, &[(30_000, 29_000, 30_000), (7_500, 1_500, 1_500)]);
        check_ends::<2>(8, &[(20_000, 19_000, 20_000)]);
    }

    #[test]
    fn searching_finds_what_comparing_with_all_finds() {
        check::<1>(3);
        check::<1>(6);
        check::<2>(3);
        check::<4>(2);
    }

    #[test]
    fn what_wide_fingerprints_have_in_many_tables_is_found_as_well() {
        check::<2>(16);
        check::<4>(31);
    }
}
