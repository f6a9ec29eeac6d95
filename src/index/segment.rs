#![forbid(unsafe_code)]
//! A segment of an index: fingerprints by the keys of one to a few tables, and nothing that changes.
//!
//! Each table has, for each key, where its fingerprints lie, in full: a query looks at one bucket for each key within
//! the radius of its own, and compares.

use std::ops::Range;

use crate::hamming::distance::{Planes, distance, pairs_between, row};
use crate::hamming::keys::Key;
use crate::hamming::plan::Probe;
use crate::join::sorting::{Sorted, Way, by_key, needed};
use crate::system::column::{Column, prefetch};
use crate::system::memory::{gathered, more_room, push, room_for};
use crate::system::parallel::{Cancel, share};

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
    pub flips: Vec<u32>,
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

/// A query that looks at one bucket of a table.
#[derive(Clone, Copy, Default)]
pub struct Look {
    pub query: u32,
    pub table: u32,
    pub bucket: u32,
}

/// Probes that are under way at once.
pub const FLIGHT: usize = 64;
/// This many pairs are compared together.
pub const MOST_FOUND: usize = 1 << 18;

/// Make room for all pairs of this many queries and fingerprints, if they are more than a few.
#[inline(always)]
pub fn ready(found: &mut Vec<[u32; 2]>, queries: usize, columns: usize) {
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
    pub fn sees(&self, one: &[u64; W], two: &[u64; W]) -> bool {
        let mut differ = 0;
        for word in 0..W {
            differ += ((one[word] ^ two[word]) & self.mask[word]).count_ones();
        }
        differ <= self.radius
    }
}

/// The first tables, as many as it takes to see all that is within a radius: what none of them sees differs in more
/// bits than the radius of each block, and so in as many as these radii plus one add up to.
pub fn enough<T>(tables: &[T], radius: u32, of: impl Fn(&T) -> u32) -> &[T] {
    let mut reach = 0;
    let last = tables.iter().position(|table| {
        reach += of(table) + 1;
        reach > radius
    });
    &tables[..last.map_or(tables.len(), |last| last + 1)]
}

pub fn views<const W: usize>(planes: &[Column<u64>]) -> Planes<'_, W> {
    std::array::from_fn(|word| planes[word].slice())
}

impl<const W: usize> Segment<W> {
    /// Of rows and their entry numbers, which count on from the first unless they are listed. `begin` is called
    /// when there is memory for it, not counting about `freed` bytes that `begin` will free.
    pub fn build(
        rows: &[[u64; W]],
        first: u32,
        listed: Option<&[u32]>,
        probes: &[Probe],
        threads: usize,
        freed: usize,
        begin: impl FnOnce(),
    ) -> Segment<W> {
        let mut tables: Vec<Table<W>> = probes.iter().map(Table::new).collect();
        let each = tables.iter().map(|table| needed::<W>(&table.key, rows.len()));
        let (kept, moved) = each.fold((0, 0), |sum: (usize, usize), one| (sum.0 + one.0, sum.1.max(one.1)));
        drop(room_for::<u8>((kept + moved).saturating_sub(freed)));
        begin();
        let mut way = Way::default();
        for table in &mut tables {
            let Sorted { bounds, planes, mut order } = by_key(&table.key, rows, threads, &mut way);
            match listed {
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

    /// Of rows and their entry numbers, without tables: every search compares with each.
    pub fn plain(rows: &[[u64; W]], entries: Vec<u32>) -> Segment<W> {
        let planes = (0..W).map(|word| Column::Owned(gathered(rows.iter().map(|row| row[word])))).collect();
        Segment { planes, entries: Column::Owned(entries), tables: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.entries.slice().len()
    }

    /// What one segment holds within the radius of each query of `range`.
    pub fn search(
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
        let tables = enough(&self.tables, radius, |table| table.radius);
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
    pub fn search_few(
        &self,
        query: &[u64; W],
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hit: &mut impl FnMut(u32, u32),
    ) -> bool {
        const FEW: usize = 8;
        let tables = enough(&self.tables, radius, |table| table.radius);
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
    pub fn land(
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
    pub fn listed(&self, number: usize) -> (Planes<'_, W>, &[u32]) {
        let table = &self.tables[number];
        let (planes, entries) =
            if number == 0 { (&self.planes, &self.entries) } else { (&table.planes, &table.entries) };
        (views::<W>(planes), entries.slice())
    }

    /// The same, and which of them have a key.
    #[inline(always)]
    pub fn bucket(&self, number: usize, key: u32) -> (Planes<'_, W>, &[u32], Range<usize>) {
        let (planes, entries) = self.listed(number);
        let bounds = self.tables[number].bounds.slice();
        (planes, entries, bounds[key as usize] as usize..bounds[key as usize + 1] as usize)
    }

    /// As `search`, for many queries: they are sorted by key, so that all that look at a bucket do
    /// so together, and buckets are visited in the order in which they lie.
    pub fn search_sorted(
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
        let tables = enough(&self.tables, radius, |table| table.radius);
        let apart = common_divisor(tables.len(), threads);
        let threads = threads / apart;
        let answers = share(apart, tables.len(), Default::default, |state, number| {
            let (way, all): &mut (Way<W>, Vec<Vec<Hit>>) = state;
            let table = &tables[number];
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

    /// Whether this many queries are better sorted first.
    pub fn prefers_sorted(&self, queries: usize) -> bool {
        let keys = self.tables.iter().map(|table| 1usize << table.key.width).max().unwrap_or(usize::MAX);
        queries >= 8192 && queries >= keys / 8
    }

    pub fn bytes(&self) -> usize {
        let planes = |planes: &[Column<u64>]| planes.iter().map(|plane| plane.slice().len() * 8).sum::<usize>();
        let tables: usize = self
            .tables
            .iter()
            .map(|table| planes(&table.planes) + table.entries.slice().len() * 4 + table.bounds.slice().len() * 4)
            .sum();
        planes(&self.planes) + self.len() * 4 + tables
    }
}

pub fn common_divisor(one: usize, two: usize) -> usize {
    if two == 0 { one } else { common_divisor(two, one % two) }
}
