//! The join of one set, cut to the nearest of each row while pairs are met.
//!
//! The answer is that of `self_join` whose pairs are cut afterwards (`nearest`), to the pair. Where pairs are few
//! that is what is done. Families of look-alikes have more pairs than memory, so once there are too many
//! the tables are walked again, and each pair goes to the lists of its two rows as soon as it is met:
//!
//! ```text
//! for each table of the plan: sort the distinct values by key; for each bucket: compare all pairs
//! for each pair within the radius: for each row of the one value and of the other: lists.meet(row, other row)
//! ```
//!
//! A pair that several tables see is met several times, which changes nothing. A tile of a bucket is compared only as
//! far as the lists of its rows still reach, so large families soon cost little more than comparing.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use crate::hamming::distance::{Planes, distance, pairs_between, pairs_within, row};
use crate::hamming::keys::{BATCH, Key};
use crate::hamming::plan::{Method, Plan};
use crate::join::lists::{Comparable, Lists, nearest};
use crate::join::resolve::{Pair, numbered, sort_pairs};
use crate::join::{COLUMNS, GIANT, Job, Mask, ROWS, Stop, first_sight, plan_rest, self_join, tables_of, views};
use crate::system::memory::{copied, gathered, push, room_for, zeros};
use crate::system::parallel::share;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Level, level};

/// Pairs of values that are held before they are cut: a number, and a number of bytes for each row.
const HELD: usize = 1 << 18;
const HELD_BYTES: usize = 256;
/// Larger buckets are compared tile by tile, by all threads that their table has.
const LARGE: usize = 2048;
/// Small buckets are gathered until they have this many rows.
const RUN: usize = 4096;
/// The least size of a bucket, and of a tile, for which to ask how far its rows reach.
const ASKED: usize = 256;
/// Giant buckets are joined on their other bits, and the giant ones of those, up to this depth.
const DEPTH: usize = 3;

/// The pairs within the radius that `comparable` allows and that are among the `most` nearest of either side, sorted
/// by left, then right; and the rows that have another such pair, which was cut.
pub fn join_nearest<const W: usize>(
    rows: &[[u64; W]],
    plan: &Plan,
    most: u32,
    comparable: &Comparable<'_>,
    job: &Job<'_>,
) -> Result<(Vec<Pair>, Vec<u32>), Stop> {
    if plan.method != Method::Brute
        && let Some(pairs) = few_pairs(rows, plan, comparable, job)?
    {
        return Ok(nearest(rows.len(), pairs, most));
    }
    many_pairs(rows, plan, most, comparable, job)
}

/// The same, however many pairs there are.
fn many_pairs<const W: usize>(
    rows: &[[u64; W]],
    plan: &Plan,
    most: u32,
    comparable: &Comparable<'_>,
    job: &Job<'_>,
) -> Result<(Vec<Pair>, Vec<u32>), Stop> {
    let lists = Lists::new(rows.len(), most as usize, job.radius);
    let distinct = Distinct::of(rows);
    let meeting = Meeting { distinct: &distinct, lists: &lists, comparable, job };
    meeting.equal_rows()?;
    meeting.values(&distinct.values, None, plan, &[], 0, job.threads)?;
    drop(distinct);
    Ok(lists.pairs(job.threads))
}

/// All pairs that `comparable` allows, sorted, unless they are too many to be held.
fn few_pairs<const W: usize>(
    rows: &[[u64; W]],
    plan: &Plan,
    comparable: &Comparable<'_>,
    job: &Job<'_>,
) -> Result<Option<Vec<Pair>>, Stop> {
    let bytes = rows.len().saturating_mul(HELD_BYTES).min(job.scratch);
    let budget = HELD + bytes / size_of::<[[u64; W]; 2]>();
    let bounded = Job { budget: budget.min(job.budget), held: AtomicUsize::new(0), ..*job };
    let found = match self_join(rows, plan, &bounded) {
        Err(Stop::TooMany) => {
            job.cancel.begin_anew();
            return Ok(None);
        }
        found => found?,
    };
    let (values, pairs) = numbered(&found.pairs, &found.repeated);
    drop(found);
    let held = values.rows(rows, None, job.threads, job.cancel).map_err(|_| Stop::Cancelled)?;
    let count = held.pairs_among(&pairs);
    if count > 2 * budget as u64 {
        job.cancel.begin_anew();
        return Ok(None);
    }
    let mut result = room_for(count as usize);
    let keep = |pair: Pair| {
        if comparable.allows(pair.left, pair.right) {
            result.push(pair);
        }
    };
    held.each_pair(&pairs, job.cancel, keep).map_err(|_| Stop::Cancelled)?;
    Ok(Some(sort_pairs(result, job.threads)))
}

/// The distinct values of rows, in order, and the rows that hold each, ascending.
struct Distinct<const W: usize> {
    values: Vec<[u64; W]>,
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl<const W: usize> Distinct<W> {
    fn of(rows: &[[u64; W]]) -> Distinct<W> {
        let mut order: Vec<u32> = gathered(0..rows.len() as u32);
        order.sort_unstable_by_key(|&row| (&rows[row as usize], row));
        let (mut values, mut starts) = (Vec::new(), Vec::new());
        for (place, &row) in (0u32..).zip(&order) {
            let value = rows[row as usize];
            if values.last() != Some(&value) {
                push(&mut values, value);
                push(&mut starts, place);
            }
        }
        push(&mut starts, rows.len() as u32);
        Distinct { values, starts, rows: order }
    }

    /// The row that holds a value, if it is the only one.
    #[inline(always)]
    fn only_row(&self, value: u32) -> Option<u32> {
        let start = self.starts[value as usize];
        (self.starts[value as usize + 1] == start + 1).then(|| self.rows[start as usize])
    }

    #[inline(always)]
    fn rows(&self, value: u32) -> &[u32] {
        &self.rows[self.starts[value as usize] as usize..self.starts[value as usize + 1] as usize]
    }
}

/// Tables whose keys two values do not share, each in the order in which it is walked.
type Earlier<'a, const W: usize> = [&'a [Mask<W>]];

struct Meeting<'a, const W: usize> {
    distinct: &'a Distinct<W>,
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

    /// Rows that hold one value meet each other, once.
    fn equal_rows(&self) -> Result<(), Stop> {
        let mut met = 0;
        for value in 0..self.distinct.values.len() as u32 {
            let rows = self.distinct.rows(value);
            for (place, &one) in rows.iter().enumerate() {
                met += rows.len() - place;
                if met > 1 << 20 {
                    met = 0;
                    self.check()?;
                }
                for &two in &rows[place + 1..] {
                    if self.comparable.allows(one, two) {
                        self.lists.meet(one, two, 0);
                    }
                }
            }
        }
        Ok(())
    }

    /// Different values meet as the plan says. `names` are their numbers, if they are not all.
    fn values(
        &self,
        values: &[[u64; W]],
        names: Option<&[u32]>,
        plan: &Plan,
        earlier: &Earlier<'_, W>,
        depth: usize,
        threads: usize,
    ) -> Result<(), Stop> {
        let count = values.len();
        if plan.method == Method::Brute {
            self.job.cancel.expect((count as u64).pow(2) / 2);
            let names = names.map_or_else(|| gathered(0..count as u32), copied);
            let planes: Vec<Vec<u64>> = (0..W).map(|word| gathered(values.iter().map(|row| row[word]))).collect();
            return self.large(&planes, &names, earlier, threads, |done| self.job.cancel.advance(done));
        }
        let tables = tables_of::<W>(plan);
        self.job.cancel.expect((count * tables.len()) as u64);
        // Each table that is walked at a time sorts eight bytes for each value.
        let at_once = (self.job.scratch / (8 * count).max(1)).clamp(1, threads.min(tables.len()).max(1));
        let stops = share(
            at_once,
            tables.len(),
            || None,
            |stop: &mut Option<Stop>, number| {
                let own = || {
                    let earlier: Vec<&[Mask<W>]> = earlier.iter().copied().chain([&tables[..number]]).collect();
                    self.table(values, names, &tables[number], &earlier, depth, threads / at_once)
                };
                *stop = stop.take().or_else(|| own().err());
            },
        );
        stops.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// Values that agree in the bits of `table` meet.
    fn table(
        &self,
        values: &[[u64; W]],
        names: Option<&[u32]>,
        table: &Mask<W>,
        earlier: &Earlier<'_, W>,
        depth: usize,
        threads: usize,
    ) -> Result<(), Stop> {
        self.check()?;
        let key = Key::new(table);
        let mut sorted: Vec<u64> = room_for(values.len());
        let mut keys = [0; BATCH];
        for (batch, rows) in values.chunks(BATCH).enumerate() {
            key.extract(rows, &mut keys);
            let places = (batch * BATCH) as u64..;
            sorted.extend(keys[..rows.len()].iter().zip(places).map(|(&key, place)| u64::from(key) << 32 | place));
        }
        sorted.sort_unstable();
        self.check()?;
        let name = |place: usize| names.map_or(place as u32, |names| names[place]);
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
        for bucket in large {
            let rows: Vec<[u64; W]> = gathered(sorted[bucket.clone()].iter().map(|own| values[*own as u32 as usize]));
            let own: Vec<u32> = gathered(sorted[bucket].iter().map(|own| name(*own as u32 as usize)));
            if rows.len() > GIANT && depth < DEPTH {
                let plan = plan_rest(&rows, None, table, self.job);
                self.values(&rows, Some(&own), &plan, earlier, depth + 1, threads)?;
            } else {
                let planes: Vec<Vec<u64>> = (0..W).map(|word| gathered(rows.iter().map(|row| row[word]))).collect();
                self.large(&planes, &own, earlier, threads, |_| ())?;
            }
            self.job.cancel.advance(rows.len() as u64);
        }
        let workers = share(threads, runs.len(), Worker::default, |worker, run| {
            if worker.stop.is_none() {
                worker.stop = self.check().err();
                self.small(&sorted[runs[run].clone()], values, &name, earlier, worker);
                self.job.cancel.advance(runs[run].len() as u64);
            }
        });
        workers.into_iter().find_map(|worker| worker.stop).map_or(Ok(()), Err)
    }

    /// The values of each of some small buckets meet.
    fn small(
        &self,
        run: &[u64],
        values: &[[u64; W]],
        name: &impl Fn(usize) -> u32,
        earlier: &Earlier<'_, W>,
        worker: &mut Worker,
    ) {
        let Worker { hits, names, planes, .. } = worker;
        planes.resize_with(W, || zeros(RUN.max(LARGE)));
        for bucket in run.chunk_by(|one, two| one >> 32 == two >> 32).filter(|bucket| bucket.len() > 1) {
            names.clear();
            for (at, own) in bucket.iter().enumerate() {
                let place = *own as u32 as usize;
                push(names, name(place));
                for (plane, word) in planes.iter_mut().zip(values[place]) {
                    plane[at] = word;
                }
            }
            let planes = views::<W>(planes);
            let range = 0..bucket.len();
            let radius = if range.len() < ASKED { self.job.radius } else { self.reach(names, [&range]) };
            pairs_within(&planes, range, radius, hits);
            self.met(&planes, names, hits, earlier);
        }
    }

    /// The values of one large bucket meet, tile by tile.
    fn large(
        &self,
        planes: &[Vec<u64>],
        names: &[u32],
        earlier: &Earlier<'_, W>,
        threads: usize,
        done: impl Fn(u64) + Sync,
    ) -> Result<(), Stop> {
        let planes = views::<W>(planes);
        let total = names.len();
        let workers = share(threads, total.div_ceil(ROWS), Worker::default, |worker, tile| {
            let Worker { hits, stop, .. } = worker;
            let rows = tile * ROWS..((tile + 1) * ROWS).min(total);
            if stop.is_some() {
                return;
            }
            pairs_within(&planes, rows.clone(), self.reach(names, [&rows]), hits);
            self.met(&planes, names, hits, earlier);
            for start in (rows.end..total).step_by(COLUMNS) {
                *stop = self.check().err();
                if stop.is_some() {
                    return;
                }
                let columns = start..(start + COLUMNS).min(total);
                let radius = self.reach(names, [&rows, &columns]);
                pairs_between(&planes, rows.clone(), &planes, columns, radius, hits);
                self.met(&planes, names, hits, earlier);
            }
            done((rows.len() * (total - rows.start)) as u64);
        });
        workers.into_iter().find_map(|worker| worker.stop).map_or(Ok(()), Err)
    }

    /// The largest distance at which a pair of such values still matters to one of its rows.
    fn reach<const N: usize>(&self, names: &[u32], ranges: [&Range<usize>; N]) -> u32 {
        let mut most = 0;
        for &value in ranges.into_iter().flat_map(|range| &names[range.clone()]) {
            most = self.distinct.rows(value).iter().fold(most, |most, &row| most.max(self.lists.reach(row)));
            if most == self.job.radius {
                break;
            }
        }
        most
    }

    /// What was found goes to the lists.
    fn met(&self, planes: &Planes<'_, W>, names: &[u32], hits: &mut Vec<[u32; 2]>, earlier: &Earlier<'_, W>) {
        #[cfg(target_arch = "x86_64")]
        if level() != Level::Scalar {
            // SAFETY: the levels above the scalar one have the features.
            return unsafe { self.met_avx2(planes, names, hits, earlier) };
        }
        self.met_plain(planes, names, hits, earlier);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn met_avx2(&self, planes: &Planes<'_, W>, names: &[u32], hits: &mut Vec<[u32; 2]>, earlier: &Earlier<'_, W>) {
        self.met_plain(planes, names, hits, earlier); // inlined here, so compiled for AVX2
    }

    #[inline(always)]
    fn met_plain(&self, planes: &Planes<'_, W>, names: &[u32], hits: &mut Vec<[u32; 2]>, earlier: &Earlier<'_, W>) {
        for [i, j] in hits.drain(..) {
            let (one, two) = (row(planes, i as usize), row(planes, j as usize));
            let apart = distance(&one, &two);
            let (left, right) = (names[i as usize], names[j as usize]);
            if let (Some(left), Some(right)) = (self.distinct.only_row(left), self.distinct.only_row(right)) {
                if self.comparable.allows(left, right) {
                    self.lists.meet(left, right, apart);
                }
            } else if earlier.iter().all(|tables| first_sight(&one, &two, tables)) {
                // Many rows are dear to meet again.
                self.rows_met(self.distinct.rows(left), self.distinct.rows(right), apart);
            }
        }
    }

    #[cold]
    fn rows_met(&self, left: &[u32], right: &[u32], apart: u32) {
        for (&left, &right) in left.iter().flat_map(|left| right.iter().map(move |right| (left, right))) {
            if self.comparable.allows(left, right) {
                self.lists.meet(left, right, apart);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::{Force, Sample, Task, plan, split_mix};
    use crate::join::clustered;
    use crate::system::parallel::Cancel;

    /// All pairs that the plan sees, one by one.
    fn expected<const W: usize>(
        rows: &[[u64; W]],
        plan: &Plan,
        most: u32,
        comparable: &Comparable<'_>,
        radius: u32,
    ) -> (Vec<Pair>, Vec<u32>) {
        let tables = tables_of::<W>(plan);
        let mut pairs = Vec::new();
        for left in 0..rows.len() as u32 {
            for right in left + 1..rows.len() as u32 {
                let (one, two) = (&rows[left as usize], &rows[right as usize]);
                let seen = tables.is_empty() || !first_sight(one, two, &tables);
                let distance = distance(one, two);
                if seen && distance <= radius && comparable.allows(left, right) {
                    pairs.push(Pair { left, right, distance });
                }
            }
        }
        nearest(rows.len(), pairs, most)
    }

    fn check<const W: usize>() {
        let cancel = Cancel::new();
        for (count, radius) in [(0, 3), (1, 3), (200, 0), (300, 4), (300, 9)] {
            let mut rows = clustered::<W>(count, 11);
            (0..count / 4).for_each(|row| rows[row] = rows[row / 3 * 2]); // some are equal
            let codes: Vec<i32> = (0..count).map(|row| (row % 7 / 3) as i32).collect();
            let fixed: Vec<bool> = (0..count).map(|row| row % 5 < 2).collect();
            let all = Comparable::default();
            let allowed = [
                all,
                Comparable { within: Some(&codes), ..all },
                Comparable { across: Some(&codes), fixed: Some(&fixed), ..all },
            ];
            let sample = Sample::new(rows.as_flattened(), W, &[u64::MAX; W]);
            let mut forces = vec![(Force::Any, 1.0), (Force::Brute, 1.0), (Force::Blocks, 1.0), (Force::Sampling, 0.7)];
            for blocks in [1, 2, radius + 1] {
                forces.extend([1, 2].map(|extra| (Force::Cut { blocks: blocks.min(radius + 1), extra }, 1.0)));
            }
            for (force, recall) in forces {
                let task = Task { rows: count, other: None, words: W, radius, recall, threads: 2 };
                let plan = plan(&sample, &task, force);
                for (comparable, most) in allowed.iter().flat_map(|one| [1, 4, 32].map(|most| (one, most))) {
                    let expected = expected(&rows, &plan, most, comparable, radius);
                    for threads in [1, 2, 4] {
                        let job = Job::new(radius, threads, &cancel);
                        let found = join_nearest(&rows, &plan, most, comparable, &job).unwrap();
                        assert_eq!(found, expected, "{W} {count} {radius} {force:?} {most} {threads}");
                        let found = many_pairs(&rows, &plan, most, comparable, &job).unwrap();
                        assert_eq!(found, expected, "{W} {count} {radius} {force:?} {most} {threads}: lists");
                    }
                }
            }
        }
    }

    #[test]
    fn every_plan_keeps_what_cutting_all_pairs_keeps() {
        check::<1>();
        check::<2>();
        check::<4>();
    }

    #[test]
    fn giant_and_large_buckets_keep_what_cutting_all_pairs_keeps() {
        // All rows share the first 16 bits, which the forced plan takes for its first block, and some share more.
        let mut state = 5;
        let mut rows: Vec<[u64; 1]> = (0..17_000).map(|_| [split_mix(&mut state) << 16]).collect();
        for index in 0..6000 {
            let row = rows[index % 40][0] ^ (1 << (20 + index % 30)) ^ (1 << (16 + index % 47));
            rows.push([row]);
        }
        let sample = Sample::new(&[], 1, &[u64::MAX]);
        let task = Task { rows: rows.len(), other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let plan = plan(&sample, &task, Force::Cut { blocks: 4, extra: 1 });
        let cancel = Cancel::new();
        let all = Comparable::default();
        for scratch in [1 << 30, 1] {
            let mut job = Job::new(3, 2, &cancel);
            job.scratch = scratch;
            let pairs = few_pairs(&rows, &plan, &all, &job).unwrap().unwrap();
            assert!(pairs.len() > 100_000);
            let expected = nearest(rows.len(), pairs, 8);
            assert!(expected.1.len() > 5000);
            assert_eq!(many_pairs(&rows, &plan, 8, &all, &job).unwrap(), expected);
        }
    }

    #[test]
    fn more_pairs_than_are_held_are_cut_while_they_are_met() {
        let rows: Vec<[u64; 1]> = (0..1024).map(|row| [row]).collect();
        let sample = Sample::new(rows.as_flattened(), 1, &[u64::MAX]);
        let task = Task { rows: rows.len(), other: None, words: 1, radius: 10, recall: 1.0, threads: 2 };
        let plan = plan(&sample, &task, Force::Cut { blocks: 4, extra: 1 });
        let (cancel, all) = (Cancel::new(), Comparable::default());
        let job = Job::new(10, 2, &cancel);
        assert!(few_pairs(&rows, &plan, &all, &job).unwrap().is_none());
        let found = join_nearest(&rows, &plan, 5, &all, &job).unwrap();
        assert_eq!(found, expected(&rows, &plan, 5, &all, 10));
    }

    #[test]
    fn a_cancelled_join_stops() {
        let rows: Vec<[u64; 1]> = (0..5000).map(|row| [row]).collect();
        let sample = Sample::new(rows.as_flattened(), 1, &[u64::MAX]);
        let task = Task { rows: rows.len(), other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let cancel = Cancel::new();
        cancel.set();
        for force in [Force::Brute, Force::Blocks] {
            let (plan, job) = (plan(&sample, &task, force), Job::new(3, 2, &cancel));
            assert_eq!(many_pairs(&rows, &plan, 5, &Comparable::default(), &job).err(), Some(Stop::Cancelled));
        }
    }
}
