#![forbid(unsafe_code)]
//! The rows of a part by the other bits of their keys, and the pairs within each bucket.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::hamming::distance::{Planes, pairs_between, pairs_within, row};
use crate::hamming::keys::{BATCH, Key};
use crate::join::job::{COLUMNS, EMIT, Equal, GIANT, Job, Mask, ROWS, Stop, first_sight};
use crate::join::scatter::Scratch;
use crate::system::memory::{gathered, more_room, push, room_for, zeros};

/// Buckets of rows that were not made distinct before are made so from this size on, if it is far
/// above the mean, or large: equal rows may be the cause.
pub const CROWD: usize = 64;
pub const LARGE: usize = 512;

/// The buckets of one part, in planes.
#[derive(Default)]
pub struct Buckets<const W: usize> {
    pub keys: Vec<u32>,
    pub bounds: Vec<u32>,
    pub planes: Vec<u64>,
    pub total: usize,
}

impl<const W: usize> Buckets<W> {
    pub fn fill(&mut self, pieces: &[&[[u64; W]]], key: &Key) {
        self.total = pieces.iter().map(|piece| piece.len()).sum();
        let buckets = 1usize << key.width;
        self.bounds.clear();
        more_room(&mut self.bounds, buckets + 1);
        self.bounds.resize(buckets + 1, 0);
        self.keys.clear();
        if self.keys.capacity() < self.total {
            self.keys = room_for(self.total);
        }
        let mut batch = [0; BATCH];
        for rows in pieces.iter().flat_map(|piece| piece.chunks(BATCH)) {
            key.extract(rows, &mut batch);
            for key in &batch[..rows.len()] {
                self.bounds[*key as usize] += 1;
            }
            self.keys.extend_from_slice(&batch[..rows.len()]);
        }
        let mut sum = 0;
        for bound in &mut self.bounds {
            let count = *bound;
            *bound = sum;
            sum += count;
        }
        if self.planes.len() < self.total * W {
            self.planes = Vec::new(); // freed before more is allocated
            self.planes = zeros(self.total * W);
        }
        let mut keys = &self.keys[..];
        for piece in pieces {
            let (own, others) = keys.split_at(piece.len());
            keys = others;
            for (row, key) in piece.iter().zip(own) {
                let bound = &mut self.bounds[*key as usize];
                let place = *bound as usize;
                *bound += 1;
                for (word, &bits) in row.iter().enumerate() {
                    self.planes[word * self.total + place] = bits;
                }
            }
        }
        // Each bound is now the end of its bucket, which is the start of the next.
        self.bounds.rotate_right(1);
        self.bounds[0] = 0;
    }

    /// Rows in a bucket, on average.
    pub fn mean(&self) -> usize {
        self.total / (self.bounds.len() - 1)
    }

    pub fn views(&self) -> Planes<'_, W> {
        std::array::from_fn(|word| &self.planes[word * self.total..(word + 1) * self.total])
    }
}

#[derive(Default)]
pub struct Worker<const W: usize> {
    pub buckets: Buckets<W>,
    pub others: Buckets<W>,
    pub hits: Vec<[u32; 2]>,
    pub rows: Vec<[u64; W]>,
    pub scratch: Scratch<W>,
    pub pairs: Vec<[[u64; W]; 2]>,
    pub repeated: Vec<[u64; W]>,
    pub uniques: Vec<[u64; W]>,
    pub giants: Vec<(usize, Vec<[u64; W]>)>,
    pub giant_pairs: Vec<(usize, [Vec<[u64; W]>; 2])>,
    pub stop: Option<Stop>,
}

impl<const W: usize> Worker<W> {
    /// Give back what only the work itself needed.
    pub fn shed(&mut self) {
        self.buckets = Buckets::default();
        self.others = Buckets::default();
        self.hits = Vec::new();
        self.rows = Vec::new();
        self.scratch = Scratch::default();
    }

    pub fn part(
        &mut self,
        pieces: &[&[[u64; W]]],
        tables: &[Mask<W>],
        number: usize,
        rest: &Key,
        equal: Equal,
        job: &Job<'_>,
    ) -> Result<(), Stop> {
        job.check()?;
        if pieces.is_empty() {
            return Ok(());
        }
        self.buckets.fill(pieces, rest);
        let told = self.repeated.len();
        match equal {
            Equal::Aside => self.collapse(2, true, true),
            Equal::Met => self.collapse((4 * self.buckets.mean()).clamp(CROWD, LARGE), number == 0, false),
            Equal::None => {}
        }
        let before = self.pairs.len();
        let (mut start, mut seen) = (0, 0);
        for bucket in 0..self.buckets.bounds.len() - 1 {
            let end = self.buckets.bounds[bucket + 1] as usize;
            let range = start..end;
            start = end;
            if range.len() < 2 {
                continue;
            }
            let views = self.buckets.views();
            if range.len() > GIANT {
                self.giants.push((number, gathered(range.map(|index| row(&views, index)))));
                continue;
            }
            if range.len() > COLUMNS {
                self.tiles(range, tables, number, job)?;
                continue;
            }
            pairs_within(&views, range, job.radius, &mut self.hits);
            if self.hits.len() > EMIT {
                self.emit(tables, number, job)?;
            }
            seen += 1;
            if seen % 64 == 0 && self.pairs.len() > before {
                job.check()?;
            }
        }
        self.emit(tables, number, job)?;
        // A value that is there n times met itself about n * n / 2 times.
        let mut repeated = self.repeated.split_off(told);
        repeated.sort_unstable();
        repeated.dedup();
        self.repeated.append(&mut repeated);
        job.cancel.advance(pieces.iter().map(|piece| piece.len() as u64).sum());
        job.check()
    }

    /// All pairs of a large bucket, of which no more are held at a time than those of a tile.
    pub fn tiles(&mut self, range: Range<usize>, tables: &[Mask<W>], number: usize, job: &Job<'_>) -> Result<(), Stop> {
        for start in range.clone().step_by(ROWS) {
            let rows = start..(start + ROWS).min(range.end);
            pairs_within(&self.buckets.views(), rows.clone(), job.radius, &mut self.hits);
            self.emit(tables, number, job)?;
            for start in (rows.end..range.end).step_by(COLUMNS) {
                let (views, columns) = (self.buckets.views(), start..(start + COLUMNS).min(range.end));
                pairs_between(&views, rows.clone(), &views, columns, job.radius, &mut self.hits);
                self.emit(tables, number, job)?;
            }
        }
        Ok(())
    }

    pub fn emit(&mut self, tables: &[Mask<W>], number: usize, job: &Job<'_>) -> Result<(), Stop> {
        let views: Planes<'_, W> = std::array::from_fn(|word| {
            &self.buckets.planes[word * self.buckets.total..(word + 1) * self.buckets.total]
        });
        for some in self.hits.chunks(EMIT) {
            let before = self.pairs.len();
            for [i, j] in some {
                let (one, two) = (row(&views, *i as usize), row(&views, *j as usize));
                if first_sight(&one, &two, &tables[..number]) {
                    if one == two {
                        push(&mut self.repeated, one);
                    } else {
                        push(&mut self.pairs, [one, two]);
                    }
                }
            }
            job.held.fetch_add(self.pairs.len() - before, Ordering::Relaxed);
            job.check()?;
        }
        self.hits.clear();
        Ok(())
    }

    /// Keep each row of a bucket of at least this many rows once. Those that were there more often
    /// are remembered, and what is kept is put aside for later tables, if asked.
    pub fn collapse(&mut self, least: usize, tell: bool, aside: bool) {
        let Buckets { bounds, planes, total, .. } = &mut self.buckets;
        let total = *total;
        let (mut start, mut kept) = (0, 0);
        for bucket in 0..bounds.len() - 1 {
            let end = bounds[bucket + 1] as usize;
            let first = kept;
            if end - start < least {
                if kept == start {
                    kept = end;
                    start = end;
                    continue;
                }
                for word in 0..W {
                    planes.copy_within(word * total + start..word * total + end, word * total + kept);
                }
                kept += end - start;
            } else {
                let row_at = |index: usize| -> [u64; W] { std::array::from_fn(|word| planes[word * total + index]) };
                let one = row_at(start);
                // Of rows that are all equal two say as much as all.
                let all = (start..end).any(|index| row_at(index) != one);
                self.rows.clear();
                more_room(&mut self.rows, end - start);
                self.rows.extend((start..if all { end } else { (start + 2).min(end) }).map(row_at));
                self.rows.sort_unstable();
                let mut last_repeated = false;
                for index in 0..self.rows.len() {
                    let row = self.rows[index];
                    if index > 0 && self.rows[index - 1] == row {
                        if !last_repeated && tell {
                            push(&mut self.repeated, row);
                        }
                        last_repeated = true;
                        continue;
                    }
                    last_repeated = false;
                    for word in 0..W {
                        planes[word * total + kept] = row[word];
                    }
                    kept += 1;
                }
            }
            bounds[bucket] = first as u32;
            start = end;
        }
        let last = bounds.len() - 1;
        bounds[last] = kept as u32;
        if !aside {
            return;
        }
        more_room(&mut self.uniques, kept);
        self.uniques.extend((0..kept).map(|index| {
            let row: [u64; W] = std::array::from_fn(|word| planes[word * total + index]);
            row
        }));
    }

    pub fn cross_part(
        &mut self,
        left: &[&[[u64; W]]],
        right: &[&[[u64; W]]],
        tables: &[Mask<W>],
        number: usize,
        rest: &Key,
        job: &Job<'_>,
    ) -> Result<(), Stop> {
        job.check()?;
        if left.is_empty() || right.is_empty() {
            return Ok(());
        }
        self.buckets.fill(left, rest);
        self.others.fill(right, rest);
        for bucket in 0..self.buckets.bounds.len() - 1 {
            let rows = self.buckets.bounds[bucket] as usize..self.buckets.bounds[bucket + 1] as usize;
            let columns = self.others.bounds[bucket] as usize..self.others.bounds[bucket + 1] as usize;
            if rows.is_empty() || columns.is_empty() {
                continue;
            }
            let (one, two) = (self.buckets.views(), self.others.views());
            if rows.len() * columns.len() > GIANT * GIANT / 2 {
                let gather =
                    |views: &Planes<'_, W>, range: Range<usize>| gathered(range.map(|index| row(views, index)));
                self.giant_pairs.push((number, [gather(&one, rows), gather(&two, columns)]));
                continue;
            }
            for start in rows.clone().step_by(COLUMNS) {
                // No more are held at a time than those of some rows.
                let rows = start..(start + COLUMNS).min(rows.end);
                for start in columns.clone().step_by(COLUMNS) {
                    let columns = start..(start + COLUMNS).min(columns.end);
                    pairs_between(&one, rows.clone(), &two, columns, job.radius, &mut self.hits);
                    let before = self.pairs.len();
                    for [i, j] in self.hits.drain(..) {
                        let (one, two) = (row(&one, i as usize), row(&two, j as usize));
                        if first_sight(&one, &two, &tables[..number]) {
                            push(&mut self.pairs, [one, two]);
                        }
                    }
                    job.held.fetch_add(self.pairs.len() - before, Ordering::Relaxed);
                    job.check()?;
                }
            }
        }
        Ok(())
    }
}
