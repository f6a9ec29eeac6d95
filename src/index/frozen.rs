#![forbid(unsafe_code)]
//! What of an index does not change any more: a segment of one of two kinds, whichever costs a query less.

use std::ops::Range;

use crate::hamming::distance::{Planes, row};
use crate::hamming::plan::{Sample, all_bits, probes};
use crate::hamming::widths::stored;
use crate::index::blocks::blocks;
use crate::index::segment::{Hit, Segment, views};
use crate::index::sparse::Sparse;
use crate::system::column::Column;
use crate::system::memory::{copied, gathered, room_for};
use crate::system::parallel::Cancel;

pub enum Frozen<const W: usize> {
    /// Fingerprints in full in each of a few tables, or in none.
    Full(Segment<W>),
    /// Fingerprints once, and tables that name their places.
    Sparse(Sparse<W>),
}

/// What a segment is built for, and on how many threads.
#[derive(Clone, Copy)]
pub struct Shape {
    pub bits: usize,
    pub radius: u32,
    pub threads: usize,
}

const MOST_TABLES: usize = 4;
/// Wider fingerprints are not kept row by row: a row in memory may have more words than one in a file.
pub const MOST_SPARSE_WORDS: usize = 16;
/// Fewer rows are not worth a plan.
const LEAST_SPARSE: usize = 4096;

impl<const W: usize> Frozen<W> {
    /// Of rows and their entry numbers, which count on from the first unless they are listed. `begin` is called
    /// when there is memory for it, not counting about `freed` bytes that `begin` will free.
    pub fn build(
        rows: &[[u64; W]],
        first: u32,
        listed: Option<&[u32]>,
        shape: Shape,
        freed: usize,
        begin: impl FnOnce(),
    ) -> Frozen<W> {
        let Shape { bits, radius, threads } = shape;
        let sample = Sample::new(rows.as_flattened(), W, &all_bits(bits, W));
        let (cost, full) = probes(&sample, rows.len(), stored(bits.div_ceil(64)), radius, MOST_TABLES);
        let is_fit = W <= MOST_SPARSE_WORDS && rows.len() >= LEAST_SPARSE;
        let sparse = if is_fit { blocks(&sample, rows.len(), radius) } else { None };
        let entries = || listed.map_or_else(|| gathered(first..first + rows.len() as u32), copied);
        if let Some((_, sparse)) = sparse.filter(|sparse| sparse.0 < cost) {
            let needed = Sparse::<W>::needed(rows.len(), &sparse, threads);
            drop(room_for::<u8>(needed.saturating_sub(freed)));
            let entries = entries();
            begin();
            return Frozen::Sparse(Sparse::build(rows, entries, &sparse, threads));
        }
        if full.is_empty() {
            let plain = Segment::plain(rows, entries());
            begin();
            return Frozen::Full(plain);
        }
        Frozen::Full(Segment::build(rows, first, listed, &full, threads, freed, begin))
    }

    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// The entry of each place.
    pub fn entries(&self) -> &[u32] {
        match self {
            Frozen::Full(full) => full.entries.slice(),
            Frozen::Sparse(sparse) => sparse.entries.slice(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Frozen::Full(full) => full.bytes(),
            Frozen::Sparse(sparse) => sparse.bytes(),
        }
    }

    pub fn is_mapped(&self) -> bool {
        let entries = match self {
            Frozen::Full(full) => &full.entries,
            Frozen::Sparse(sparse) => &sparse.entries,
        };
        matches!(entries, Column::Mapped { .. })
    }

    /// Bytes that go when the segment does: none of a mapped one.
    pub fn owned_bytes(&self) -> usize {
        if self.is_mapped() { 0 } else { self.bytes() }
    }

    /// Of each table the bits of its keys and the radius.
    pub fn tables(&self) -> Vec<(u32, u32)> {
        match self {
            Frozen::Full(full) => full.tables.iter().map(|table| (table.key.width, table.radius)).collect(),
            Frozen::Sparse(sparse) => sparse.tables.iter().map(|table| (table.key.width, table.radius)).collect(),
        }
    }

    /// The tables of a segment that has fingerprints in full.
    pub fn full(&self) -> Option<&Segment<W>> {
        match self {
            Frozen::Full(full) => Some(full),
            Frozen::Sparse(_) => None,
        }
    }

    /// Each entry with its fingerprint.
    pub fn each(&self, work: &mut impl FnMut(u32, &[u64; W])) {
        match self {
            Frozen::Full(full) => {
                let planes = views::<W>(&full.planes);
                for (place, &entry) in full.entries.slice().iter().enumerate() {
                    work(entry, &row(&planes, place));
                }
            }
            Frozen::Sparse(sparse) => {
                sparse.entries.slice().iter().zip(sparse.rows()).for_each(|(&entry, row)| work(entry, row));
            }
        }
    }

    /// What is within the radius of each query of `range`: its number, the entry and the distance.
    pub fn search(
        &self,
        queries: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        found: &mut Vec<[u32; 2]>,
        hits: &mut impl FnMut(u32, u32, u32),
    ) {
        match self {
            Frozen::Full(full) => full.search(queries, range, radius, found, hits),
            Frozen::Sparse(sparse) => {
                let queries: Vec<(u32, [u64; W])> = gathered(range.map(|query| (query as u32, row(queries, query))));
                sparse.search(&queries, radius, hits);
            }
        }
    }

    /// The same of one query.
    pub fn search_one(&self, query: &[u64; W], radius: u32, found: &mut Vec<[u32; 2]>, hit: &mut impl FnMut(u32, u32)) {
        match self {
            Frozen::Full(full) => {
                if !full.search_few(query, radius, found, hit) {
                    let planes: Planes<'_, W> = std::array::from_fn(|word| std::slice::from_ref(&query[word]));
                    full.search(&planes, 0..1, radius, found, &mut |_, entry, distance| hit(entry, distance));
                }
            }
            Frozen::Sparse(sparse) => {
                sparse.search(&[(0, *query)], radius, &mut |_, entry, distance| hit(entry, distance));
            }
        }
    }

    /// Whether this many queries are better sorted first.
    pub fn prefers_sorted(&self, queries: usize) -> bool {
        self.full().is_some_and(|full| full.prefers_sorted(queries))
    }

    /// As `search`, for many queries that are sorted first.
    pub fn search_sorted(
        &self,
        queries: &[[u64; W]],
        radius: u32,
        threads: usize,
        cancel: &Cancel,
        keep: &(impl Fn(u32) -> bool + Sync),
        all: &mut Vec<Vec<Hit>>,
    ) {
        if let Some(full) = self.full() {
            full.search_sorted(queries, radius, threads, cancel, keep, all);
        }
    }
}
