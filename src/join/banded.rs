//! The join of rows that come with bands: only rows that share one are compared.
//!
//! ```text
//! for each band: sort the rows by it; for each bucket of rows that share it: compare all pairs
//! for each pair within the radius that shares no earlier band: lists.meet(one, other)
//! ```
//!
//! Which pairs are found depends on the bands and the radius alone: not on the number of threads, the memory or the
//! instructions of the machine. Similar texts share several bands, so a bucket that lies in one of an earlier band
//! is left out as a whole.

use std::ops::Range;

use crate::hamming::distance::{Planes, distance, pairs_between, pairs_within};
use crate::join::lists::{Comparable, Lists};
use crate::join::resolve::Pair;
use crate::join::{COLUMNS, Job, ROWS, Stop, views};
use crate::system::memory::{gathered, push, room_for};
use crate::system::parallel::share;
use crate::system::simd::prefetch;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Level, level};

/// Smaller buckets are compared pair by pair, where their rows are.
const FEW: usize = 12;
/// Larger ones are compared tile by tile, by all threads.
const LARGE: usize = 2048;
/// Small buckets are gathered until they have this many rows.
const RUN: usize = 8192;
/// Rows of buckets further on are asked for this many places ahead.
const AHEAD: usize = 24;

/// Rows and their bands, as many for each: those of one row, then those of the next.
#[derive(Clone, Copy)]
pub struct Banded<'a, const W: usize> {
    pub rows: &'a [[u64; W]],
    pub bands: &'a [u32],
    pub each: usize,
}

impl<const W: usize> Banded<'_, W> {
    #[inline(always)]
    fn bands_of(&self, row: u32, count: usize) -> &[u32] {
        &self.bands[row as usize * self.each..][..count]
    }

    /// Whether two rows share one of the first bands.
    #[inline(always)]
    fn met_before(&self, one: u32, two: u32, band: usize) -> bool {
        self.bands_of(one, band).iter().zip(self.bands_of(two, band)).fold(false, |met, (one, two)| met | (one == two))
    }
}

/// The pairs that share a band, are within the radius, that `comparable` allows and that are among the `most` nearest
/// of either side, sorted by left, then right; and the rows that have another such pair, which was cut.
pub fn join_banded<const W: usize>(
    rows: &Banded<'_, W>,
    most: u32,
    comparable: &Comparable<'_>,
    job: &Job<'_>,
) -> Result<(Vec<Pair>, Vec<u32>), Stop> {
    let lists = Lists::new(rows.rows.len(), most as usize, job.radius);
    job.cancel.expect((rows.rows.len() * rows.each) as u64);
    let meeting = Meeting { rows, lists: &lists, comparable, job };
    // Each band that is walked at a time sorts eight bytes for each row.
    let at_once = (job.scratch / (8 * rows.rows.len()).max(1)).clamp(1, job.threads.min(rows.each).max(1));
    let stops = share(
        at_once,
        rows.each,
        || None,
        |stop: &mut Option<Stop>, band| {
            *stop = stop.take().or_else(|| meeting.band(band, job.threads / at_once).err());
        },
    );
    stops.into_iter().flatten().next().map_or(Ok(()), Err)?;
    Ok(lists.pairs(job.threads))
}

struct Meeting<'a, const W: usize> {
    rows: &'a Banded<'a, W>,
    lists: &'a Lists,
    comparable: &'a Comparable<'a>,
    job: &'a Job<'a>,
}

/// What a thread keeps from bucket to bucket.
#[derive(Default)]
struct Worker {
    hits: Vec<[u32; 2]>,
    names: Vec<u32>,
    planes: Vec<Vec<u64>>,
    stop: Option<Stop>,
}

impl<const W: usize> Meeting<'_, W> {
    fn check(&self) -> Result<(), Stop> {
        self.job.cancel.check().map_err(|_| Stop::Cancelled)
    }

    /// Rows that share this band meet.
    fn band(&self, band: usize, threads: usize) -> Result<(), Stop> {
        self.check()?;
        let keys = self.rows.bands.iter().skip(band).step_by(self.rows.each);
        let mut sorted: Vec<u64> = room_for(self.rows.rows.len());
        sorted.extend(keys.zip(0u64..).map(|(&key, row)| u64::from(key) << 32 | row));
        sorted.sort_unstable();
        self.check()?;
        // Runs of small buckets, which threads share, and large buckets, one after the other.
        let (mut runs, mut large, mut place): (Vec<Range<usize>>, Vec<Range<usize>>, usize) = Default::default();
        for bucket in sorted.chunk_by(|one, two| one >> 32 == two >> 32) {
            let own = place..place + bucket.len();
            place = own.end;
            match runs.last_mut() {
                _ if own.len() > LARGE => push(&mut large, own),
                Some(run) if run.end == own.start && own.end - run.start <= RUN => run.end = own.end,
                _ => push(&mut runs, own),
            }
        }
        let workers = share(threads, runs.len(), Worker::default, |worker, run| {
            if worker.stop.is_none() {
                worker.stop = self.check().err();
                self.small(&sorted[runs[run].clone()], band, worker);
                self.job.cancel.advance(runs[run].len() as u64);
            }
        });
        workers.into_iter().find_map(|worker| worker.stop).map_or(Ok(()), Err)?;
        for bucket in large {
            self.large(&sorted[bucket.clone()], band, threads)?;
            self.job.cancel.advance(bucket.len() as u64);
        }
        Ok(())
    }

    /// The rows of each of some small buckets meet.
    fn small(&self, run: &[u64], band: usize, worker: &mut Worker) {
        #[cfg(target_arch = "x86_64")]
        if level() != Level::Scalar {
            // SAFETY: the levels above the scalar one have the features.
            return unsafe { self.small_avx2(run, band, worker) };
        }
        self.small_plain(run, band, worker);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn small_avx2(&self, run: &[u64], band: usize, worker: &mut Worker) {
        self.small_plain(run, band, worker); // inlined here, so compiled for AVX2
    }

    #[inline(always)]
    fn small_plain(&self, run: &[u64], band: usize, worker: &mut Worker) {
        let alone = |at: usize| {
            let same = |other: usize| run.get(other).is_some_and(|other| other >> 32 == run[at] >> 32);
            !same(at + 1) && !same(at.wrapping_sub(1))
        };
        let mut place = 0;
        while place < run.len() {
            if let Some(row) = run.get(place + AHEAD)
                && !alone(place + AHEAD)
            {
                let row = *row as u32 as usize;
                prefetch(&self.rows.rows[row]);
                prefetch(&self.rows.bands[row * self.rows.each]);
            }
            let mut end = place + 1;
            while end < run.len() && run[end] >> 32 == run[place] >> 32 {
                end += 1;
            }
            let bucket = &run[place..end];
            place = end;
            if bucket.len() < 2 || self.is_within_an_earlier_one(bucket, band) {
                continue;
            }
            if bucket.len() > FEW {
                self.gathered(bucket, worker);
                let Worker { hits, names, planes, .. } = &mut *worker;
                pairs_within(&views::<W>(planes), 0..bucket.len(), self.reach([names.as_slice()]), hits);
                self.met(worker, band);
                continue;
            }
            for (at, one) in bucket.iter().enumerate() {
                let one = *one as u32;
                for two in &bucket[at + 1..] {
                    self.meet(one, *two as u32, band);
                }
            }
        }
    }

    /// Whether all rows of a bucket share an earlier band: then they have met.
    #[inline(always)]
    fn is_within_an_earlier_one(&self, bucket: &[u64], band: usize) -> bool {
        let first = self.rows.bands_of(bucket[0] as u32, band);
        (0..band).any(|earlier| {
            bucket[1..]
                .iter()
                .all(|row| self.rows.bands[*row as u32 as usize * self.rows.each + earlier] == first[earlier])
        })
    }

    /// Two rows that share the band meet, if they did not before.
    #[inline(always)]
    fn meet(&self, one: u32, two: u32, band: usize) {
        let apart = distance(&self.rows.rows[one as usize], &self.rows.rows[two as usize]);
        if apart <= self.job.radius && !self.rows.met_before(one, two, band) && self.comparable.allows(one, two) {
            self.lists.meet(one, two, apart);
        }
    }

    /// The rows of a bucket in planes, and their numbers.
    fn gathered(&self, bucket: &[u64], worker: &mut Worker) {
        worker.names = gathered(bucket.iter().map(|row| *row as u32));
        let rows = |word: usize| worker.names.iter().map(move |row| self.rows.rows[*row as usize][word]);
        worker.planes = (0..W).map(|word| gathered(rows(word))).collect();
    }

    /// The rows of one large bucket meet, tile by tile.
    fn large(&self, bucket: &[u64], band: usize, threads: usize) -> Result<(), Stop> {
        if self.is_within_an_earlier_one(bucket, band) {
            return Ok(());
        }
        let mut all = Worker::default();
        self.gathered(bucket, &mut all);
        let (names, planes): (&[u32], Planes<'_, W>) = (&all.names, views::<W>(&all.planes));
        let total = names.len();
        let workers = share(threads, total.div_ceil(ROWS), Worker::default, |worker, tile| {
            let rows = tile * ROWS..((tile + 1) * ROWS).min(total);
            if worker.stop.is_some() {
                return;
            }
            let reach = self.reach([&names[rows.clone()]]);
            pairs_within(&planes, rows.clone(), reach, &mut worker.hits);
            self.met_of(&mut worker.hits, names, band);
            for start in (rows.end..total).step_by(COLUMNS) {
                worker.stop = self.check().err();
                if worker.stop.is_some() {
                    return;
                }
                let columns = start..(start + COLUMNS).min(total);
                let reach = self.reach([&names[rows.clone()], &names[columns.clone()]]);
                pairs_between(&planes, rows.clone(), &planes, columns, reach, &mut worker.hits);
                self.met_of(&mut worker.hits, names, band);
            }
        });
        workers.into_iter().find_map(|worker| worker.stop).map_or(Ok(()), Err)
    }

    /// The largest distance at which a pair of such rows still matters to one of them.
    fn reach<const N: usize>(&self, names: [&[u32]; N]) -> u32 {
        let mut most = 0;
        for &row in names.into_iter().flatten() {
            most = most.max(self.lists.reach(row));
            if most == self.job.radius {
                break;
            }
        }
        most
    }

    #[inline(always)]
    fn met(&self, worker: &mut Worker, band: usize) {
        let Worker { hits, names, .. } = worker;
        self.met_of(hits, names, band);
    }

    /// What was found goes to the lists.
    #[inline(always)]
    fn met_of(&self, hits: &mut Vec<[u32; 2]>, names: &[u32], band: usize) {
        for [i, j] in hits.drain(..) {
            self.meet(names[i as usize], names[j as usize], band);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::split_mix;
    use crate::join::clustered;
    use crate::join::lists::nearest;
    use crate::system::parallel::Cancel;
    use crate::system::simd::tests::at_every_level;

    /// What comparing all pairs finds.
    fn expected<const W: usize>(
        rows: &Banded<'_, W>,
        most: u32,
        radius: u32,
        comparable: &Comparable<'_>,
    ) -> (Vec<Pair>, Vec<u32>) {
        let mut pairs = Vec::new();
        for left in 0..rows.rows.len() as u32 {
            for right in left + 1..rows.rows.len() as u32 {
                let distance = distance(&rows.rows[left as usize], &rows.rows[right as usize]);
                if distance <= radius && rows.met_before(left, right, rows.each) && comparable.allows(left, right) {
                    pairs.push(Pair { left, right, distance });
                }
            }
        }
        nearest(rows.rows.len(), pairs, most)
    }

    /// Bands of which each has this many values.
    fn bands_of(count: usize, each: usize, values: u64) -> Vec<u32> {
        let mut state = values;
        (0..count * each).map(|_| (split_mix(&mut state) % values) as u32).collect()
    }

    fn check<const W: usize>(count: usize, values: u64) {
        let rows = clustered::<W>(count, 3);
        let codes: Vec<i32> = (0..count as i32).map(|row| row % 3).collect();
        for each in [1, 4, 5] {
            let rows = Banded { rows: &rows, bands: &bands_of(count, each, values), each };
            for comparable in [Comparable::default(), Comparable { across: Some(&codes), ..Comparable::default() }] {
                for (most, radius) in [(2, 8), (32, 3), (u32::MAX >> 1, 64 * W as u32 / 2)] {
                    let expected = expected(&rows, most, radius, &comparable);
                    at_every_level(|level| {
                        for (threads, scratch) in [(1, 0), (3, 0), (4, 1 << 30)] {
                            let cancel = Cancel::new();
                            let job = Job { scratch, ..Job::new(radius, threads, &cancel) };
                            let found = join_banded(&rows, most, &comparable, &job).unwrap();
                            assert_eq!(
                                found, expected,
                                "{W} words, {count} rows, {values}, {most}, {threads}, {level}"
                            );
                        }
                    });
                }
            }
        }
    }

    #[test]
    fn rows_that_share_a_band_and_are_near_are_found() {
        for (count, values) in [(0, 1), (1, 1), (2, 1), (300, 7), (300, 40), (500, 1000)] {
            check::<1>(count, values);
            check::<4>(count, values);
        }
    }

    #[test]
    fn a_large_bucket_is_compared_whole() {
        let (rows, bands) = (clustered::<4>(5000, 9), bands_of(5000, 2, 2));
        let rows = Banded { rows: &rows, bands: &bands, each: 2 };
        let expected = expected(&rows, 3, 9, &Comparable::default());
        let cancel = Cancel::new();
        for threads in [1, 3] {
            let job = Job::new(9, threads, &cancel);
            assert_eq!(join_banded(&rows, 3, &Comparable::default(), &job).unwrap(), expected);
        }
        cancel.set();
        let stopped = join_banded(&rows, 3, &Comparable::default(), &Job::new(9, 2, &cancel));
        assert_eq!(stopped, Err(Stop::Cancelled));
    }
}
