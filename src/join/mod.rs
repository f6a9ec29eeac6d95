//! The join: all pairs of fingerprints within a radius, found table by table.
//!
//! For each family of tables of the plan, which have many bits of their keys in common:
//!
//! ```text
//! cut the rows into parts by bits that all keys of the family have    # each part fits the cache
//! for each table, for each part: counting sort by the other bits; for each bucket: compare all pairs
//! a pair is reported only by the first table that sees it              # so no set of pairs is kept
//! ```
//!
//! Only fingerprints move, never row numbers: pairs are pairs of values, and `resolve` finds
//! the rows afterwards. Many equal fingerprints are collapsed in the first table; few, or more than
//! can be held twice, meet in every table. A bucket with very many rows is joined again on its other bits.

pub mod banded;
pub mod brute;
pub mod buckets;
pub mod cluster;
pub mod family;
pub mod job;
pub mod lists;
pub mod nearest;
pub mod resolve;
pub mod rows;
pub mod scatter;
pub mod sorting;

use brute::{brute_cross, brute_self};
use buckets::Worker;
use family::Family;
pub use job::{COLUMNS, GIANT, Job, Mask, ROWS, Stop, first_sight, tables_of, views};
use job::{Equal, take_over};
use scatter::{LINE, ScatteredChunk, Scratch, chunks, count_parts, pieces_of, scatter, spread, spread_counted};

use crate::hamming::distance::distance;
use crate::hamming::plan::{Force, Method, Plan, Sample, Task, plan, split_mix};
use crate::system::memory::{append, copied, gathered, push};
use crate::system::parallel::{map, share};

/// Pairs of values, and the values that occur more than once: pairs with those may be there more often.
pub struct Found<const W: usize> {
    pub pairs: Vec<[[u64; W]; 2]>,
    pub repeated: Vec<[u64; W]>,
}

/// All pairs of `rows` within the radius.
pub fn self_join<const W: usize>(rows: &[[u64; W]], plan: &Plan, job: &Job<'_>) -> Result<Found<W>, Stop> {
    if plan.method == Method::Brute {
        let (unique, repeated) = collapse_by_sorting(rows);
        return Ok(Found { pairs: brute_self(&unique, job)?, repeated });
    }
    let tables = tables_of::<W>(plan);
    job.cancel.expect((rows.len() * tables.len()) as u64);
    let mut found = Found { pairs: Vec::new(), repeated: Vec::new() };
    // Rows too many to be held twice, or with few equals, stay as they are: then every table meets
    // equal ones, and only crowded buckets are made distinct. Pairs may come up more than once; `numbered` tells.
    let collapse = size_of_val(rows) <= job.aside && !nearly_distinct(rows);
    let mut scratch = Scratch::default();
    if !collapse {
        let families = Family::of(rows.len(), &tables, 0..tables.len());
        run_tables(&[rows], &tables, &families, Equal::Met, &mut scratch, job, |worker| {
            gather(worker, &mut found, &mut Vec::new(), &tables, job)
        })?;
        return Ok(found);
    }
    let mut uniques: Vec<Vec<[u64; W]>> = Vec::new();
    let first = Family::of(rows.len(), &tables, 0..1);
    run_tables(&[rows], &tables, &first, Equal::Aside, &mut scratch, job, |worker| {
        gather(worker, &mut found, &mut uniques, &tables, job)
    })?;
    let slices: Vec<&[[u64; W]]> = uniques.iter().map(|chunk| &chunk[..]).collect();
    let total: usize = slices.iter().map(|slice| slice.len()).sum();
    let families = Family::of(total, &tables, 1..tables.len());
    if job.threads > 1 && total * size_of::<[u64; W]>() <= 64 << 20 && families.len() > 2 * job.threads {
        // Many families of few rows: each thread takes whole families.
        drop(scratch);
        let workers = share(job.threads, families.len(), Worker::<W>::default, |worker, family| {
            let mut scratch = std::mem::take(&mut worker.scratch);
            worker.stop = worker
                .stop
                .take()
                .or_else(|| family_alone(&slices, &tables, &families[family], &mut scratch, worker, job).err());
            worker.scratch = scratch;
        });
        for worker in workers {
            gather(worker, &mut found, &mut Vec::new(), &tables, job)?;
        }
    } else {
        run_tables(&slices, &tables, &families, Equal::None, &mut scratch, job, |worker| {
            gather(worker, &mut found, &mut Vec::new(), &tables, job)
        })?;
    }
    Ok(found)
}

/// Whether, by a sample, a row has less than a tenth of an equal one.
fn nearly_distinct<const W: usize>(rows: &[[u64; W]]) -> bool {
    let mut state = 0;
    let mut place = || ((u128::from(split_mix(&mut state)) * rows.len() as u128) >> 64) as usize;
    let mut places: Vec<usize> = (0..rows.len().min(8192)).map(|_| place()).collect();
    places.sort_unstable();
    places.dedup();
    let count = places.len();
    let mut sample: Vec<[u64; W]> = gathered(places.into_iter().map(|place| rows[place]));
    sample.sort_unstable();
    let pairs = sample.chunk_by(|one, two| one == two).map(|run| run.len() * (run.len() - 1)).sum::<usize>();
    (pairs * rows.len()) as u128 * 10 < (count * count) as u128
}

/// All pairs (a row of `left`, a row of `right`) within the radius.
pub fn cross_join<const W: usize>(
    left: &[[u64; W]],
    right: &[[u64; W]],
    plan: &Plan,
    job: &Job<'_>,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let (left, _) = collapse_by_sorting(left);
    let (right, _) = collapse_by_sorting(right);
    cross_unique(&left, &right, plan, job)
}

fn cross_unique<const W: usize>(
    left: &[[u64; W]],
    right: &[[u64; W]],
    plan: &Plan,
    job: &Job<'_>,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    if plan.method == Method::Brute {
        return brute_cross(left, right, job);
    }
    let tables = tables_of::<W>(plan);
    let (mut left_scratch, mut right_scratch) = (Scratch::default(), Scratch::default());
    let mut pairs = Vec::new();
    job.cancel.expect(((left.len() + right.len()) * tables.len()) as u64);
    for family in Family::of(left.len() + right.len(), &tables, 0..tables.len()) {
        let left_pieces = spread(&chunks(&[left], job.threads), &family, &mut left_scratch, job)?;
        let right_pieces = spread(&chunks(&[right], job.threads), &family, &mut right_scratch, job)?;
        let workers = share(job.threads, family.parts, Worker::<W>::default, |worker, part| {
            let left = pieces_of(left_scratch.rows(), &left_pieces, part);
            let right = pieces_of(right_scratch.rows(), &right_pieces, part);
            for (number, rest) in family.members() {
                worker.stop =
                    worker.stop.take().or_else(|| worker.cross_part(&left, &right, &tables, number, rest, job).err());
                job.cancel.advance(left.iter().chain(&right).map(|piece| piece.len() as u64).sum());
            }
        });
        for worker in workers {
            if let Some(stop) = worker.stop {
                return Err(stop);
            }
            append(&mut pairs, &worker.pairs);
            for (number, [left, right]) in worker.giant_pairs {
                let plan = plan_rest(&left, Some(&right), &tables[number], job);
                for pair in cross_unique(&left, &right, &plan, job)? {
                    if first_sight(&pair[0], &pair[1], &tables[..number]) {
                        push(&mut pairs, pair);
                    }
                }
            }
        }
    }
    Ok(pairs)
}

/// Distinct rows in order, and those that were there more than once.
pub fn collapse_by_sorting<const W: usize>(rows: &[[u64; W]]) -> (Vec<[u64; W]>, Vec<[u64; W]>) {
    let mut unique = copied(rows);
    unique.sort_unstable();
    let mut repeated = Vec::new();
    for run in unique.chunk_by(|one, two| one == two).filter(|run| run.len() > 1) {
        push(&mut repeated, run[0]);
    }
    unique.dedup();
    (unique, repeated)
}

/// Families whose parts are counted together.
const TOGETHER: usize = 16;

/// Some of the tables, one family after the other, all threads on each; what was found goes to `take`.
fn run_tables<const W: usize>(
    slices: &[&[[u64; W]]],
    tables: &[Mask<W>],
    families: &[Family],
    equal: Equal,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
    mut take: impl FnMut(Worker<W>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let chunks = chunks(slices, job.threads);
    for some in families.chunks(TOGETHER) {
        let counts = map(job.threads, chunks.clone(), |chunk| count_parts(chunk, some));
        for (at, family) in some.iter().enumerate() {
            let counts: Vec<&[usize]> = counts.iter().map(|counts| &counts[at][..]).collect();
            run_family(&chunks, &counts, tables, family, equal, scratch, job, &mut take)?;
        }
    }
    Ok(())
}

/// One family, all threads on it.
#[allow(clippy::too_many_arguments)]
fn run_family<const W: usize>(
    chunks: &[&[[u64; W]]],
    counts: &[&[usize]],
    tables: &[Mask<W>],
    family: &Family,
    equal: Equal,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
    take: &mut impl FnMut(Worker<W>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let total: usize = chunks.iter().map(|chunk| chunk.len()).sum();
    // Rows beyond the scratch budget are moved in several ranges of parts.
    let sizes: Vec<usize> = (0..family.parts).map(|part| counts.iter().map(|counts| counts[part]).sum()).collect();
    // The least share of them, unless they are very many: each range is another pass over the input.
    let least = (total / job.share).min((4 << 30) / size_of::<[u64; W]>());
    let limit = (job.scratch / size_of::<[u64; W]>()).max(least).max(1);
    let mut first = 0;
    while first < family.parts {
        let (mut last, mut held) = (first, 0);
        while last < family.parts && (last == first || held + sizes[last] <= limit) {
            held += sizes[last];
            last += 1;
        }
        let range = first..last;
        let pieces = spread_counted(chunks, counts, family, &range, scratch, job)?;
        let moved = scratch.rows();
        for (number, rest) in family.members() {
            let workers = share(job.threads, range.len(), Worker::<W>::default, |worker, task| {
                let own = pieces_of(moved, &pieces, first + task);
                worker.stop = worker.stop.take().or_else(|| worker.part(&own, tables, number, rest, equal, job).err());
            });
            for mut worker in workers {
                worker.shed();
                take(worker)?;
            }
        }
        first = last;
    }
    Ok(())
}

/// One family, this thread alone.
fn family_alone<const W: usize>(
    slices: &[&[[u64; W]]],
    tables: &[Mask<W>],
    family: &Family,
    scratch: &mut Scratch<W>,
    worker: &mut Worker<W>,
    job: &Job<'_>,
) -> Result<(), Stop> {
    job.check()?;
    let total: usize = slices.iter().map(|slice| slice.len()).sum();
    scratch.hold(total + slices.len() * LINE);
    let mut pieces = Vec::new();
    let mut start = 0;
    for slice in slices {
        let counts = &count_parts(slice, std::slice::from_ref(family))[0];
        let mut bounds = vec![0; family.parts + 1];
        for part in 0..family.parts {
            bounds[part + 1] = bounds[part] + counts[part];
        }
        let own = &mut scratch.rows_mut()[start..start + slice.len()];
        scatter(slice, family, &(0..family.parts), &bounds, own);
        pieces.push(ScatteredChunk { start, bounds });
        start += slice.len().next_multiple_of(LINE);
    }
    for part in 0..family.parts {
        let own = pieces_of(scratch.rows(), &pieces, part);
        for (number, rest) in family.members() {
            worker.part(&own, tables, number, rest, Equal::None, job)?;
        }
    }
    Ok(())
}

/// Take over what a worker found, and join the giant buckets it left.
fn gather<const W: usize>(
    worker: Worker<W>,
    found: &mut Found<W>,
    uniques: &mut Vec<Vec<[u64; W]>>,
    tables: &[Mask<W>],
    job: &Job<'_>,
) -> Result<(), Stop> {
    if let Some(stop) = worker.stop {
        return Err(stop);
    }
    take_over(&mut found.pairs, worker.pairs);
    append(&mut found.repeated, &worker.repeated);
    if !worker.uniques.is_empty() {
        uniques.push(worker.uniques);
    }
    for (number, rows) in worker.giants {
        job.check()?;
        let plan = plan_rest(&rows, None, &tables[number], job);
        let inner = self_join(&rows, &plan, job)?;
        for pair in inner.pairs.into_iter().filter(|[one, two]| first_sight(one, two, &tables[..number])) {
            push(&mut found.pairs, pair);
        }
        if number == 0 {
            append(&mut found.repeated, &inner.repeated);
        }
    }
    Ok(())
}

/// A plan for rows that all agree in the bits of `mask`.
pub fn plan_rest<const W: usize>(
    rows: &[[u64; W]],
    other: Option<&[[u64; W]]>,
    mask: &[u64; W],
    job: &Job<'_>,
) -> Plan {
    let free: Vec<u64> = mask.iter().map(|word| !word).collect();
    let sample = Sample::new(rows.as_flattened(), W, &free);
    let task = Task {
        rows: rows.len(),
        other: other.map(<[_]>::len),
        words: W,
        radius: job.radius,
        recall: 1.0,
        threads: job.threads,
    };
    plan(&sample, &task, Force::Any)
}

/// The distance of a pair of values.
pub fn pair_distance<const W: usize>(pair: &[[u64; W]; 2]) -> u32 {
    distance(&pair[0], &pair[1])
}

/// For tests: a third random rows, the others near one centre.
#[cfg(test)]
pub fn clustered<const W: usize>(count: usize, seed: u64) -> Vec<[u64; W]> {
    let mut state = seed;
    let centre: [u64; W] = std::array::from_fn(|_| split_mix(&mut state));
    (0..count)
        .map(|index| {
            let mut row = if index % 3 == 0 { std::array::from_fn(|_| split_mix(&mut state)) } else { centre };
            for _ in 0..split_mix(&mut state) % 6 {
                let bit = split_mix(&mut state) as usize % (64 * W);
                row[bit / 64] ^= 1 << (bit % 64);
            }
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::parallel::Cancel;

    fn expected<const W: usize>(rows: &[[u64; W]], radius: u32) -> Vec<[[u64; W]; 2]> {
        let (unique, _) = collapse_by_sorting(rows);
        let mut pairs = Vec::new();
        for (i, one) in unique.iter().enumerate() {
            for two in &unique[i + 1..] {
                if distance(one, two) <= radius {
                    pairs.push([*one, *two]);
                }
            }
        }
        pairs
    }

    fn ordered<const W: usize>(mut pairs: Vec<[[u64; W]; 2]>) -> Vec<[[u64; W]; 2]> {
        pairs.iter_mut().for_each(|pair| pair.sort_unstable());
        pairs.sort_unstable();
        pairs
    }

    fn check<const W: usize>() {
        for (count, radius) in [(0, 3), (1, 3), (700, 0), (700, 3), (900, 6)] {
            let rows = clustered::<W>(count, 11);
            let expected = expected(&rows, radius);
            let sample = Sample::new(rows.as_flattened(), W, &[u64::MAX; W]);
            let task = Task { rows: count, other: None, words: W, radius, recall: 1.0, threads: 2 };
            let mut forces = vec![Force::Any, Force::Brute, Force::Blocks];
            for blocks in 1..=radius + 1 {
                forces.extend([Force::Cut { blocks, extra: 1 }, Force::Cut { blocks, extra: 2 }]);
            }
            for force in forces {
                for threads in [1, 3] {
                    let plan = plan(&sample, &task, force);
                    let cancel = Cancel::new();
                    let job = Job::new(radius, threads, &cancel);
                    let found = self_join(&rows, &plan, &job).unwrap();
                    assert_eq!(ordered(found.pairs), expected, "{W} {count} {radius} {force:?}");
                    let (_, repeated) = collapse_by_sorting(&rows);
                    let mut got = found.repeated;
                    got.sort_unstable();
                    assert_eq!(got, repeated);
                    let crossed = cross_join(&rows, &rows, &plan, &Job::new(radius, threads, &cancel)).unwrap();
                    let distinct: Vec<_> = crossed.into_iter().filter(|pair| pair[0] < pair[1]).collect();
                    assert_eq!(ordered(distinct), expected);
                }
            }
        }
    }

    #[test]
    fn every_plan_finds_what_comparing_all_pairs_finds() {
        check::<1>();
        check::<2>();
        check::<4>();
    }

    #[test]
    fn tables_that_share_enough_bits_are_one_family() {
        let [one, two, three] = [0x3ffu64, 0x3ff << 10, 0x3ff << 20];
        let tables = [[one | two], [one | three], [two | three]];
        let families = Family::of(1_000_000, &tables, 0..3);
        assert_eq!(families.iter().map(|family| family.tables.clone()).collect::<Vec<_>>(), [0..2, 2..3]);
        for family in &families {
            assert_eq!(family.parts, 1 << family.split.width);
            for (number, rest) in family.members() {
                // A bit of the table is in the split or in the rest, another in neither.
                for bit in 0..64 {
                    let seen = family.split.of(&[1 << bit]).count_ones() + rest.of(&[1 << bit]).count_ones();
                    assert_eq!(seen, (tables[number][0] >> bit & 1) as u32, "table {number}, bit {bit}");
                }
            }
        }
        // Many parts of the rows need more bits than these share.
        assert_eq!(Family::of(1 << 27, &tables, 0..3).len(), 3);
    }

    #[test]
    fn a_giant_bucket_is_joined_on_its_other_bits() {
        // All rows share the first 16 bits, which the forced plan takes for its first block.
        let mut state = 5;
        let mut rows: Vec<[u64; 1]> = (0..20_000).map(|_| [split_mix(&mut state) << 16]).collect();
        for index in 0..50 {
            let row = rows[index][0] ^ (1 << (20 + index % 30));
            rows.push([row]);
        }
        let sample = Sample::new(&[], 1, &[u64::MAX]);
        let task = Task { rows: rows.len(), other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let plan = plan(&sample, &task, Force::Cut { blocks: 4, extra: 1 });
        let cancel = Cancel::new();
        let found = self_join(&rows, &plan, &Job::new(3, 2, &cancel)).unwrap();
        assert_eq!(ordered(found.pairs), expected(&rows, 3));
        let crossed = cross_join(&rows, &rows, &plan, &Job::new(3, 2, &cancel)).unwrap();
        let distinct: Vec<_> = crossed.into_iter().filter(|pair| pair[0] < pair[1]).collect();
        assert_eq!(ordered(distinct), expected(&rows, 3));
    }

    #[test]
    fn rows_too_many_to_be_held_twice_give_the_same_pairs() {
        let mut rows = clustered::<1>(3000, 5);
        rows.extend(vec![[77]; 30_000]); // more equal ones than a bucket may hold
        rows.extend(vec![[76]; 500]);
        let sample = Sample::new(rows.as_flattened(), 1, &[u64::MAX]);
        let task = Task { rows: rows.len(), other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let cancel = Cancel::new();
        for force in [Force::Cut { blocks: 4, extra: 1 }, Force::Cut { blocks: 1, extra: 2 }] {
            let plan = plan(&sample, &task, force);
            let mut job = Job::new(3, 2, &cancel);
            (job.aside, job.scratch) = (0, 100_000);
            let found = self_join(&rows, &plan, &job).unwrap();
            let mut pairs = ordered(found.pairs);
            pairs.dedup();
            assert_eq!(pairs, expected(&rows, 3));
            let mut repeated = found.repeated;
            repeated.sort_unstable();
            repeated.dedup();
            assert_eq!(repeated, collapse_by_sorting(&rows).1);
        }
    }

    #[test]
    fn a_cancelled_join_stops() {
        let rows = clustered::<1>(5000, 3);
        let sample = Sample::new(rows.as_flattened(), 1, &[u64::MAX]);
        let task = Task { rows: 5000, other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let cancel = Cancel::new();
        cancel.set();
        let plan = plan(&sample, &task, Force::Blocks);
        assert_eq!(self_join(&rows, &plan, &Job::new(3, 2, &cancel)).err(), Some(Stop::Cancelled));
    }
}
