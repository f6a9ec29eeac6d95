#![forbid(unsafe_code)]
//! The index: what is within a radius of a fingerprint, while fingerprints come and go.
//!
//! New fingerprints wait in a small live part that is searched one by one. When it is full it
//! becomes a frozen segment, merged with smaller segments before it, so that there are few. A
//! segment has one table for each block of its plan: `bounds[key]` to the fingerprints with that
//! key, stored in full, and their entries. The first table's are those of the segment itself. A
//! removed entry is only marked; what is marked goes when its segment is merged.

use std::borrow::Cow;
use std::ops::Range;

use crate::column::{Column, prefetch};
use crate::distance::{Planes, distance, pairs_between, row};
use crate::keys::Key;
use crate::memory::{copied, filled, gathered, more_room, push, room_for, zeros};
use crate::parallel::{Cancel, Cancelled, each, share};
use crate::plan::{Probe, Sample, all_bits, probes};
use crate::sorting::{Sorted, Way, by_key, needed};

/// An entry within the radius of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    pub query: u32,
    pub distance: u32,
    pub entry: u32,
}

pub struct Table<const W: usize> {
    pub key: Key,
    pub mask: [u64; W],
    pub radius: u32,
    /// Bits to flip in a key to reach all keys within the radius.
    flips: Vec<u32>,
    pub bounds: Column<u32>,
    /// The fingerprints by key and their entries; empty in the first table, whose the segment has.
    pub planes: Vec<Column<u64>>,
    pub entries: Column<u32>,
}

pub struct Segment<const W: usize> {
    pub planes: Vec<Column<u64>>,
    pub entries: Column<u32>,
    pub tables: Vec<Table<W>>,
}

/// What a segment is built for, and on how many threads.
#[derive(Clone, Copy)]
struct Shape {
    bits: usize,
    radius: u32,
    threads: usize,
}

pub struct Store<const W: usize> {
    pub bits: usize,
    pub radius: u32,
    pub segments: Vec<Segment<W>>,
    live: Vec<Vec<u64>>,
    live_first: u32,
    /// All entries ever given a number since the last compaction, and which of them were removed.
    entries: u32,
    dead: Vec<u64>,
    dead_count: usize,
    /// What was there went, and there was no memory for its successor.
    pub torn: bool,
}

/// A query that looks at one bucket of a table.
#[derive(Clone, Copy, Default)]
struct Look {
    query: u32,
    table: u32,
    bucket: u32,
}

const MOST_TABLES: usize = 4;
const LIVE_LEAST: usize = 2048;
const LIVE_MOST: usize = 16384;
/// Probes that are under way at once.
const FLIGHT: usize = 64;

/// So many pairs are looked at together.
const MOST_FOUND: usize = 1 << 18;

/// Make room for all pairs of so many queries and fingerprints, if they are more than a few.
#[inline(always)]
fn ready(found: &mut Vec<[u32; 2]>, queries: usize, columns: usize) {
    if queries * columns > 1 << 16 {
        more_room(found, queries * columns);
    }
}

impl<const W: usize> Table<W> {
    pub fn new(probe: &Probe) -> Table<W> {
        let mut mask = [0; W];
        mask[..probe.mask.len()].copy_from_slice(&probe.mask);
        let key = Key::new(&mask);
        let mut flips = vec![0];
        let mut start = 0;
        for _ in 0..probe.radius {
            let end = flips.len();
            for known in start..end {
                let flip: u32 = flips[known];
                let next = 32 - flip.leading_zeros();
                flips.extend((next..key.width).map(|bit| flip | 1 << bit));
            }
            start = end;
        }
        Table {
            key,
            mask,
            radius: probe.radius,
            flips,
            bounds: Column::default(),
            planes: Vec::new(),
            entries: Column::default(),
        }
    }

    /// Whether this table shows two fingerprints to each other.
    #[inline(always)]
    fn sees(&self, one: &[u64; W], two: &[u64; W]) -> bool {
        let mut differ = 0;
        for word in 0..W {
            differ += ((one[word] ^ two[word]) & self.mask[word]).count_ones();
        }
        differ <= self.radius
    }
}

fn views<const W: usize>(planes: &[Column<u64>]) -> Planes<'_, W> {
    std::array::from_fn(|word| planes[word].slice())
}

impl<const W: usize> Segment<W> {
    /// Of rows and their entry numbers, which count on from the first unless they are listed. `begin` is called
    /// when there is memory for it, but for about `freed` bytes that `begin` will free.
    fn build(
        rows: Cow<'_, [[u64; W]]>,
        first: u32,
        listed: Option<Vec<u32>>,
        shape: Shape,
        freed: usize,
        begin: impl FnOnce(),
    ) -> Segment<W> {
        let Shape { bits, radius, threads } = shape;
        let sample = Sample::new(rows.as_flattened(), W, &all_bits(bits, W));
        let probes = probes(&sample, rows.len(), W, radius, MOST_TABLES);
        let mut tables: Vec<Table<W>> = probes.iter().map(Table::new).collect();
        if tables.is_empty() {
            let planes = (0..W).map(|word| Column::Owned(gathered(rows.iter().map(|row| row[word])))).collect();
            let entries = listed.unwrap_or_else(|| gathered(first..first + rows.len() as u32));
            begin();
            return Segment { planes, entries: Column::Owned(entries), tables };
        }
        let each = tables.iter().map(|table| needed::<W>(&table.key, rows.len()));
        let (kept, moved) = each.fold((0, 0), |sum: (usize, usize), one| (sum.0 + one.0, sum.1.max(one.1)));
        drop(room_for::<u8>((kept + moved).saturating_sub(freed)));
        begin();
        let mut way = Way::default();
        for table in &mut tables {
            let Sorted { bounds, planes, mut order } = by_key(&table.key, &rows, threads, &mut way);
            match &listed {
                Some(listed) => order.iter_mut().for_each(|row| *row = listed[*row as usize]),
                None => order.iter_mut().for_each(|row| *row += first),
            }
            table.bounds = Column::Owned(bounds);
            table.planes = planes.into_iter().map(Column::Owned).collect();
            table.entries = Column::Owned(order);
        }
        let (planes, entries) = (std::mem::take(&mut tables[0].planes), std::mem::take(&mut tables[0].entries));
        Segment { planes, entries, tables }
    }

    pub fn len(&self) -> usize {
        self.entries.slice().len()
    }

    /// What one segment holds within the radius of each query of `range`.
    fn search(
        &self,
        queries: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hits: &mut impl FnMut(u32, u32, u32),
    ) {
        if self.tables.is_empty() {
            let planes = views::<W>(&self.planes);
            for start in (0..self.len()).step_by(4096) {
                let columns = start..(start + 4096).min(self.len());
                ready(found, range.len(), columns.len());
                pairs_between(queries, range.clone(), &planes, columns, radius, found);
                for [query, place] in found.drain(..) {
                    let far = distance(&row(queries, query as usize), &row(&planes, place as usize));
                    hits(query, self.entries.slice()[place as usize], far);
                }
            }
            return;
        }
        // Equal fingerprints meet in every table.
        let tables = if radius == 0 { &self.tables[..1] } else { &self.tables[..] };
        let mut flight = [Look::default(); FLIGHT];
        let mut count = 0;
        for query in range {
            let asked = row(queries, query);
            for (number, table) in tables.iter().enumerate() {
                let key = table.key.of(&asked);
                for flip in &table.flips {
                    let bucket = key ^ flip;
                    prefetch(table.bounds.slice(), bucket as usize);
                    flight[count] = Look { query: query as u32, table: number as u32, bucket };
                    count += 1;
                    if count == FLIGHT {
                        self.land(&flight, queries, radius, found, hits);
                        count = 0;
                    }
                }
            }
        }
        self.land(&flight[..count], queries, radius, found, hits);
    }

    /// What one segment holds within the radius of one query that looks at few buckets; whether it does.
    fn search_few(
        &self,
        query: &[u64; W],
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hit: &mut impl FnMut(u32, u32),
    ) -> bool {
        const FEW: usize = 8;
        let tables = if radius == 0 { &self.tables[..self.tables.len().min(1)] } else { &self.tables[..] };
        if tables.is_empty() || tables.iter().map(|table| table.flips.len()).sum::<usize>() > FEW {
            return false;
        }
        let mut looks = [(0, 0, 0); FEW];
        let mut count = 0;
        for (number, table) in tables.iter().enumerate() {
            let key = table.key.of(query);
            for flip in &table.flips {
                let (planes, entries, columns) = self.bucket(number, key ^ flip);
                prefetch(planes[0], columns.start);
                prefetch(planes[0], columns.start + 8);
                prefetch(entries, columns.start);
                looks[count] = (number as u32, columns.start as u32, columns.end as u32);
                count += 1;
            }
        }
        let asked: Planes<'_, W> = std::array::from_fn(|word| std::slice::from_ref(&query[word]));
        for &(number, start, end) in &looks[..count] {
            if start == end {
                continue;
            }
            let number = number as usize;
            let (planes, entries) = self.listed(number);
            ready(found, 1, (end - start) as usize);
            pairs_between(&asked, 0..1, &planes, start as usize..end as usize, radius, found);
            for [_, index] in found.drain(..) {
                let value = row(&planes, index as usize);
                if !self.tables[..number].iter().any(|earlier| earlier.sees(query, &value)) {
                    hit(entries[index as usize], distance(query, &value));
                }
            }
        }
        true
    }

    /// Compare queries with the buckets they look at, whose bounds are on their way.
    fn land(
        &self,
        flight: &[Look],
        queries: &Planes<'_, W>,
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hits: &mut impl FnMut(u32, u32, u32),
    ) {
        for look in flight {
            let (planes, entries, columns) = self.bucket(look.table as usize, look.bucket);
            prefetch(planes[0], columns.start);
            prefetch(planes[0], columns.start + 8);
            prefetch(entries, columns.start);
        }
        for look in flight {
            let (number, at) = (look.table as usize, look.query as usize);
            let (planes, entries, columns) = self.bucket(number, look.bucket);
            if columns.is_empty() {
                continue;
            }
            ready(found, 1, columns.len());
            pairs_between(queries, at..at + 1, &planes, columns, radius, found);
            if found.is_empty() {
                continue;
            }
            let asked = row(queries, at);
            for [_, index] in found.drain(..) {
                let value = row(&planes, index as usize);
                if self.tables[..number].iter().any(|earlier| earlier.sees(&asked, &value)) {
                    continue;
                }
                hits(look.query, entries[index as usize], distance(&asked, &value));
            }
        }
    }

    /// The fingerprints of a table and their entries.
    #[inline(always)]
    fn listed(&self, number: usize) -> (Planes<'_, W>, &[u32]) {
        let table = &self.tables[number];
        let (planes, entries) =
            if number == 0 { (&self.planes, &self.entries) } else { (&table.planes, &table.entries) };
        (views::<W>(planes), entries.slice())
    }

    /// The same, and which of them have a key.
    #[inline(always)]
    fn bucket(&self, number: usize, key: u32) -> (Planes<'_, W>, &[u32], Range<usize>) {
        let (planes, entries) = self.listed(number);
        let bounds = self.tables[number].bounds.slice();
        (planes, entries, bounds[key as usize] as usize..bounds[key as usize + 1] as usize)
    }

    /// As `search`, for many queries: they are sorted by key, so that all that look at a bucket do
    /// so together, and buckets are visited in the order in which they lie.
    fn search_sorted(
        &self,
        queries: &[[u64; W]],
        radius: u32,
        threads: usize,
        cancel: &Cancel,
        keep: &(impl Fn(u32) -> bool + Sync),
        all: &mut Vec<Vec<Hit>>,
    ) {
        const KEYS: usize = 1024;
        // A thread that has a whole table need not wait for others between sorting and searching.
        let apart = common_divisor(self.tables.len(), threads);
        let threads = threads / apart;
        let answers = share(apart, self.tables.len(), Default::default, |state, number| {
            let (way, all): &mut (Way<W>, Vec<Vec<Hit>>) = state;
            let table = &self.tables[number];
            let (planes, entries) = self.listed(number);
            let bounds = table.bounds.slice();
            let Sorted { bounds: starts, planes: sorted, order } = by_key(&table.key, queries, threads, way);
            let sorted: Planes<'_, W> = std::array::from_fn(|word| &sorted[word][..]);
            let keys = starts.len() - 1;
            let workers = share(threads, keys.div_ceil(KEYS), Default::default, |state, task| {
                let (found, hits): &mut (Vec<[u32; 2]>, Vec<Hit>) = state;
                if cancel.is_set() {
                    return;
                }
                for key in task * KEYS..((task + 1) * KEYS).min(keys) {
                    let asking = starts[key] as usize..starts[key + 1] as usize;
                    if asking.is_empty() {
                        continue;
                    }
                    let mut land = |found: &mut Vec<[u32; 2]>| {
                        for [at, index] in found.drain(..) {
                            let (asked, value) = (row(&sorted, at as usize), row(&planes, index as usize));
                            if self.tables[..number].iter().any(|earlier| earlier.sees(&asked, &value)) {
                                continue;
                            }
                            let entry = entries[index as usize];
                            if keep(entry) {
                                let distance = distance(&asked, &value);
                                push(hits, Hit { query: order[at as usize], distance, entry });
                            }
                        }
                    };
                    for flip in &table.flips {
                        let bucket = key ^ *flip as usize;
                        let columns = bounds[bucket] as usize..bounds[bucket + 1] as usize;
                        // A crowd that asks a crowd does so in small groups.
                        let group = (MOST_FOUND / columns.len().max(1)).max(1);
                        for first in asking.clone().step_by(group).filter(|_| !columns.is_empty()) {
                            let asking = first..(first + group).min(asking.end);
                            ready(found, asking.len(), columns.len());
                            pairs_between(&sorted, asking, &planes, columns.clone(), radius, found);
                            if found.len() > MOST_FOUND {
                                land(found);
                            }
                        }
                    }
                    land(found);
                }
            });
            all.extend(workers.into_iter().map(|worker| worker.1));
        });
        all.extend(answers.into_iter().flat_map(|answer| answer.1));
    }

    /// Whether so many queries are better sorted first.
    fn prefers_sorted(&self, queries: usize) -> bool {
        let keys = self.tables.iter().map(|table| 1usize << table.key.width).max().unwrap_or(usize::MAX);
        queries >= 8192 && queries >= keys / 8
    }

    /// Bytes that go when the segment does: none of a mapped one.
    fn owned_bytes(&self) -> usize {
        if matches!(self.entries, Column::Owned(_)) { self.bytes() } else { 0 }
    }

    fn bytes(&self) -> usize {
        let planes = |planes: &[Column<u64>]| planes.iter().map(|plane| plane.slice().len() * 8).sum::<usize>();
        let tables: usize = self
            .tables
            .iter()
            .map(|table| planes(&table.planes) + table.entries.slice().len() * 4 + table.bounds.slice().len() * 4)
            .sum();
        planes(&self.planes) + self.len() * 4 + tables
    }
}

impl<const W: usize> Store<W> {
    pub fn new(bits: usize, radius: u32) -> Store<W> {
        Store {
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
    pub fn of_segment(bits: usize, radius: u32, segment: Segment<W>) -> Store<W> {
        let mut store = Store::new(bits, radius);
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
        let segments: usize = self.segments.iter().map(Segment::bytes).sum();
        segments + self.live.iter().map(|plane| plane.capacity() * 8).sum::<usize>() + self.dead.len() * 8
    }

    fn live_len(&self) -> usize {
        self.live[0].len()
    }

    #[inline(always)]
    fn is_dead(&self, entry: u32) -> bool {
        self.dead_count > 0 && self.dead[entry as usize / 64] >> (entry % 64) & 1 == 1
    }

    /// Add rows; they get the next entry numbers. Where there is no memory for them, `forget` undoes it.
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
            Segment::build(Cow::Borrowed(new), start, None, shape, 0, || ())
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
            let freed = self.segments[first..].iter().map(Segment::owned_bytes).sum();
            // What was there goes before its successor is built, lest both need room at once.
            let begin = || {
                self.torn = true;
                self.segments.truncate(first);
                self.live.iter_mut().for_each(|plane| *plane = Vec::new());
            };
            Segment::build(Cow::Owned(rows), 0, Some(entries), shape, freed, begin)
        };
        if built.len() > 0 {
            self.segments.push(built);
        }
        self.torn = false;
        self.entries = end;
        self.live_first = end;
        self.dead.resize(marks, 0);
    }

    /// Number all entries anew, as they lie in the first table: so what belongs to the entries of a bucket can
    /// lie together, too. Their old numbers; nothing if some were removed, or do not lie in one table.
    pub fn renumber(&mut self) -> Option<Vec<u32>> {
        let whole = self.dead_count == 0 && self.live_len() == 0;
        let [segment] = &mut self.segments[..] else { return None };
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
        let table = self.segments.first()?.tables.first()?;
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

    /// One segment with the living rows, their entries numbered anew in order.
    pub fn compacted(&self, threads: usize) -> Segment<W> {
        let rows = gathered(self.rows().into_iter().map(|known| known.1));
        let shape = Shape { bits: self.bits, radius: self.radius, threads };
        Segment::build(Cow::Owned(rows), 0, None, shape, 0, || ())
    }

    fn search_range(
        &self,
        queries: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        batch: usize,
        found: &mut Vec<[u32; 2]>,
        hit: &mut impl FnMut(u32, u32, u32),
    ) {
        let mut keep = |query: u32, entry: u32, distance: u32| {
            if !self.is_dead(entry) {
                hit(query, entry, distance);
            }
        };
        for segment in self.segments.iter().filter(|segment| !segment.prefers_sorted(batch)) {
            segment.search(queries, range.clone(), radius, found, &mut keep);
        }
        self.search_live(queries, range, radius, found, &mut keep);
    }

    /// What the live part holds.
    #[inline]
    fn search_live(
        &self,
        queries: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hit: &mut impl FnMut(u32, u32, u32),
    ) {
        if self.live_len() == 0 {
            return;
        }
        let live: Planes<'_, W> = std::array::from_fn(|word| &self.live[word][..]);
        pairs_between(queries, range, &live, 0..self.live_len(), radius, found);
        for [query, place] in found.drain(..) {
            let far = distance(&row(queries, query as usize), &row(&live, place as usize));
            hit(query, self.live_first + place, far);
        }
    }

    /// Ask for what `search_one` reads first.
    #[inline]
    pub fn prefetch_one(&self, query: &[u64; W]) {
        for table in self.segments.iter().flat_map(|segment| &segment.tables) {
            prefetch(table.bounds.slice(), table.key.of(query) as usize);
        }
    }

    /// Call `hit` with each entry within the radius of one fingerprint and its distance, in no order.
    pub fn search_one(&self, query: &[u64; W], radius: u32, found: &mut Vec<[u32; 2]>, hit: &mut impl FnMut(u32, u32)) {
        let planes: Planes<'_, W> = std::array::from_fn(|word| std::slice::from_ref(&query[word]));
        let mut keep = |entry: u32, distance: u32| {
            if !self.is_dead(entry) {
                hit(entry, distance);
            }
        };
        for segment in &self.segments {
            if !segment.search_few(query, radius, found, &mut keep) {
                segment.search(&planes, 0..1, radius, found, &mut |_, entry, distance| keep(entry, distance));
            }
        }
        self.search_live(&planes, 0..1, radius, found, &mut |_, entry, distance| keep(entry, distance));
    }

    /// All entries within the radius of one fingerprint, in no order.
    pub fn hits_of_one(&self, query: &[u64; W], radius: u32) -> Vec<Hit> {
        let mut hits = Vec::new();
        self.search_one(query, radius, &mut Vec::new(), &mut |entry, distance| {
            push(&mut hits, Hit { query: 0, distance, entry });
        });
        hits
    }

    /// All entries within the radius of each query, by query, then distance, then entry.
    pub fn search(
        &self,
        queries: &[[u64; W]],
        radius: u32,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Vec<Hit>, Cancelled> {
        const SHARE: usize = 1024;
        let batch = queries.len();
        let mut together = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.prefers_sorted(batch)) {
            segment.search_sorted(queries, radius, threads, cancel, &|entry| !self.is_dead(entry), &mut together);
        }
        if self.live_len() > 0 || self.segments.iter().any(|segment| !segment.prefers_sorted(batch)) {
            let plane = |word: usize| gathered(queries.iter().map(|query| query[word]));
            let planes: Vec<Vec<u64>> = (0..W).map(plane).collect();
            let planes: Planes<'_, W> = std::array::from_fn(|word| &planes[word][..]);
            let workers = share(threads, batch.div_ceil(SHARE), Default::default, |state, task| {
                let (found, hits): &mut (Vec<[u32; 2]>, Vec<Hit>) = state;
                for small in (task * SHARE..((task + 1) * SHARE).min(batch)).step_by(64) {
                    if cancel.is_set() {
                        return;
                    }
                    let small = small..(small + 64).min(batch);
                    let mut keep = |query, entry, distance| push(hits, Hit { query, distance, entry });
                    self.search_range(&planes, small, radius, batch, found, &mut keep);
                }
            });
            together.extend(workers.into_iter().map(|worker| worker.1));
        }
        cancel.check()?;
        Ok(by_query(&together, batch, threads))
    }

    /// At least the `count` nearest entries of one fingerprint, with all that tie with the last.
    pub fn nearest(&self, query: &[u64; W], count: usize) -> Vec<Hit> {
        if count == 0 || self.len() == 0 {
            return Vec::new();
        }
        let near = self.hits_of_one(query, self.radius);
        if near.len() >= count {
            return near;
        }
        // Look at all: first how many there are at each distance, then those up to the last needed.
        let mut counts = vec![0usize; W * 64 + 1];
        self.each_living(&mut |_, value| counts[distance(query, value) as usize] += 1);
        let (mut sum, mut last) = (0, 0);
        for (far, &here) in counts.iter().enumerate() {
            sum += here;
            last = far as u32;
            if sum >= count {
                break;
            }
        }
        let mut hits = Vec::new();
        self.each_living(&mut |entry, value| {
            let distance = distance(query, value);
            if distance <= last {
                push(&mut hits, Hit { query: 0, distance, entry });
            }
        });
        hits
    }

    pub fn each_living(&self, work: &mut impl FnMut(u32, &[u64; W])) {
        for segment in &self.segments {
            self.living_of(segment, work);
        }
        self.living(work);
    }

    /// What lives in a segment.
    fn living_of(&self, segment: &Segment<W>, work: &mut impl FnMut(u32, &[u64; W])) {
        let planes = views::<W>(&segment.planes);
        for (place, &entry) in segment.entries.slice().iter().enumerate() {
            if !self.is_dead(entry) {
                work(entry, &row(&planes, place));
            }
        }
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

fn common_divisor(one: usize, two: usize) -> usize {
    if two == 0 { one } else { common_divisor(two, one % two) }
}

/// Hits in order of query, distance, entry. Most queries have few, so they are counted into place,
/// by each thread for a run of queries.
fn by_query(parts: &[Vec<Hit>], queries: usize, threads: usize) -> Vec<Hit> {
    let size = queries.div_ceil(threads).max(4096);
    let runs: Vec<Range<usize>> = (0..queries).step_by(size).map(|start| start..(start + size).min(queries)).collect();
    let of = |run: &Range<usize>| {
        let run = run.clone();
        parts.iter().flatten().filter(move |hit| run.contains(&(hit.query as usize)))
    };
    // Counts stand two places on: places are then counted up where the ends of the queries will stand.
    let starts: Vec<Vec<usize>> = each(runs.clone(), |run| {
        let mut starts = zeros(run.len() + 2);
        of(&run).for_each(|hit| starts[hit.query as usize - run.start + 2] += 1);
        for query in 0..run.len() {
            starts[query + 2] += starts[query + 1];
        }
        starts
    });
    let mut ordered = filled(parts.iter().map(Vec::len).sum(), Hit { query: 0, distance: 0, entry: 0 });
    let mut rest = &mut ordered[..];
    let mut inputs = Vec::new();
    for (run, starts) in runs.into_iter().zip(starts) {
        let (own, more) = std::mem::take(&mut rest).split_at_mut(starts[run.len() + 1]);
        inputs.push((run, starts, own));
        rest = more;
    }
    each(inputs, |(run, mut starts, own)| {
        for hit in of(&run) {
            let place = &mut starts[hit.query as usize - run.start + 1];
            own[*place] = *hit;
            *place += 1;
        }
        for bounds in starts[..=run.len()].windows(2) {
            if bounds[1] - bounds[0] > 1 {
                own[bounds[0]..bounds[1]].sort_unstable();
            }
        }
    });
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::split_mix;

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
        let mut store = Store::<W>::new(W * 64, radius);
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
        let tables: usize = store.segments.iter().map(|segment| segment.tables.len()).sum();
        assert!(tables > 0, "some segment is large enough for tables");
    }

    #[test]
    fn searching_finds_what_comparing_with_all_finds() {
        check::<1>(3);
        check::<1>(6);
        check::<2>(3);
        check::<4>(2);
    }
}
