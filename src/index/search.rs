#![forbid(unsafe_code)]
//! The searches of an index: of one fingerprint, of many, and for the nearest.

use std::ops::Range;

use crate::hamming::distance::{Planes, distance, pairs_between, row};
use crate::index::frozen::Frozen;
use crate::index::{Hit, Index};
use crate::system::column::prefetch;
use crate::system::memory::{filled, gathered, push, zeros};
use crate::system::parallel::{Cancel, Cancelled, each, share};

impl<const W: usize> Index<W> {
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
        for table in self.segments.iter().filter_map(Frozen::full).flat_map(|segment| &segment.tables) {
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
            segment.search_one(query, radius, found, &mut keep);
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
        // A sparse segment is asked table by table, by many queries.
        let step = if self.segments.iter().any(|segment| segment.full().is_some()) { 64 } else { 256 };
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
                for small in (task * SHARE..((task + 1) * SHARE).min(batch)).step_by(step) {
                    if cancel.is_set() {
                        return;
                    }
                    let small = small..(small + step).min(batch);
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
}

/// Hits in order of query, distance, entry. Most queries have few, so they are counted into place,
/// by each thread for a run of queries.
pub fn by_query(parts: &[Vec<Hit>], queries: usize, threads: usize) -> Vec<Hit> {
    let size = queries.div_ceil(threads).max(4096);
    let runs: Vec<Range<usize>> = (0..queries).step_by(size).map(|start| start..(start + size).min(queries)).collect();
    let of = |run: &Range<usize>| {
        let run = run.clone();
        parts.iter().flatten().filter(move |hit| run.contains(&(hit.query as usize)))
    };
    // Counts stand two places on: places are then counted up where the ends of the queries will be.
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
