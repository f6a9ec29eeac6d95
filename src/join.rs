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
//! can be held twice, meet in every table. A bucket with very many rows is joined anew on its other bits.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::distance::{Planes, distance, pairs_between, pairs_within, row};
use crate::keys::{BATCH, Key};
use crate::memory::{append, copied, gathered, more_room, push, room_for, zeros};
use crate::parallel::{Cancel, map, share};
use crate::plan::{Force, Method, Plan, Sample, Task, plan, split_mix};

/// Pairs of values, and the values that occur more than once: pairs with those may be there more often.
pub struct Found<const W: usize> {
    pub pairs: Vec<[[u64; W]; 2]>,
    pub repeated: Vec<[u64; W]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancelled,
    /// More pairs than the caller wants to hold.
    TooMany,
}

/// What stays the same through a join.
pub struct Job<'a> {
    pub radius: u32,
    pub threads: usize,
    pub cancel: &'a Cancel,
    /// At most this many pairs are kept.
    pub budget: usize,
    /// About so many bytes for moving rows, but for one in so many rows at least: each time is another pass over
    /// all of them.
    pub scratch: usize,
    pub share: usize,
    /// Distinct rows are kept aside for the later tables, unless all rows take more bytes than this.
    pub aside: usize,
    pub held: AtomicUsize,
}

impl<'a> Job<'a> {
    pub fn new(radius: u32, threads: usize, cancel: &'a Cancel) -> Job<'a> {
        Job {
            radius,
            threads,
            cancel,
            budget: usize::MAX,
            scratch: 1 << 30,
            share: 2,
            aside: 3 << 30,
            held: AtomicUsize::new(0),
        }
    }

    fn check(&self) -> Result<(), Stop> {
        if self.cancel.is_set() {
            Err(Stop::Cancelled)
        } else if self.held.load(Ordering::Relaxed) > self.budget {
            Err(Stop::TooMany)
        } else {
            Ok(())
        }
    }
}

/// A part of the rows is about this many bytes, so that it stays in the second-level cache.
const PART: usize = 128 << 10;
const MAX_PARTS: usize = 2048;
/// Fewer parts are cheap to move, and tables of their own are more work to share among threads.
const MANY_PARTS: usize = 16;
/// Larger buckets are joined anew on their other bits.
pub const GIANT: usize = 16384;
/// Buckets of rows that were not made distinct before are made so from this size on, if it is far
/// above the mean, or large: equal rows may be the cause.
const CROWD: usize = 64;
const LARGE: usize = 512;
const LINE: usize = 8;
/// Hits that are turned to pairs at a time, before anyone asks whether there are too many.
const EMIT: usize = 4096;

/// What is known of equal rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equal {
    /// There are none.
    None,
    /// They are to be collapsed, and the distinct rows put aside.
    Aside,
    /// They are met in every table.
    Met,
}

/// The bits that two rows must have in common for a table to compare them.
pub type Table<const W: usize> = [u64; W];

pub fn tables_of<const W: usize>(plan: &Plan) -> Vec<Table<W>> {
    plan.masks
        .iter()
        .map(|words| {
            let mut table = [0; W];
            table[..words.len()].copy_from_slice(words);
            table
        })
        .collect()
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

fn planes_of<const W: usize>(rows: &[[u64; W]]) -> Vec<Vec<u64>> {
    (0..W).map(|word| gathered(rows.iter().map(|row| row[word]))).collect()
}

pub fn views<const W: usize>(planes: &[Vec<u64>]) -> Planes<'_, W> {
    std::array::from_fn(|word| &planes[word][..])
}

pub const ROWS: usize = 512;
pub const COLUMNS: usize = 2048;

fn brute_self<const W: usize>(unique: &[[u64; W]], job: &Job<'_>) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let planes = planes_of(unique);
    let planes = views::<W>(&planes);
    let total = unique.len();
    job.cancel.expect((total as u64).pow(2) / 2);
    brute(total.div_ceil(ROWS), job, |task, hits, keep| {
        let rows = task * ROWS..((task + 1) * ROWS).min(total);
        pairs_within(&planes, rows.clone(), job.radius, hits);
        keep(hits, unique, unique)?;
        for start in (rows.end..total).step_by(COLUMNS) {
            let columns = start..(start + COLUMNS).min(total);
            pairs_between(&planes, rows.clone(), &planes, columns, job.radius, hits);
            keep(hits, unique, unique)?;
        }
        job.cancel.advance((rows.len() * (total - rows.start)) as u64);
        Ok(())
    })
}

fn brute_cross<const W: usize>(
    left: &[[u64; W]],
    right: &[[u64; W]],
    job: &Job<'_>,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let (left_planes, right_planes) = (planes_of(left), planes_of(right));
    let (left_planes, right_planes) = (views::<W>(&left_planes), views::<W>(&right_planes));
    job.cancel.expect(left.len() as u64);
    brute(left.len().div_ceil(ROWS), job, |task, hits, keep| {
        let rows = task * ROWS..((task + 1) * ROWS).min(left.len());
        for start in (0..right.len()).step_by(COLUMNS) {
            let columns = start..(start + COLUMNS).min(right.len());
            pairs_between(&left_planes, rows.clone(), &right_planes, columns, job.radius, hits);
            keep(hits, left, right)?;
        }
        job.cancel.advance(rows.len() as u64);
        Ok(())
    })
}

type Keep<'a, const W: usize> = dyn FnMut(&mut Vec<[u32; 2]>, &[[u64; W]], &[[u64; W]]) -> Result<(), Stop> + 'a;

fn brute<const W: usize>(
    tasks: usize,
    job: &Job<'_>,
    work: impl Fn(usize, &mut Vec<[u32; 2]>, &mut Keep<'_, W>) -> Result<(), Stop> + Sync,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let workers = share(job.threads, tasks, Worker::<W>::default, |worker, task| {
        if worker.stop.is_some() {
            return;
        }
        let Worker { hits, pairs, stop, .. } = worker;
        let mut keep = |hits: &mut Vec<[u32; 2]>, left: &[[u64; W]], right: &[[u64; W]]| {
            for some in hits.chunks(EMIT) {
                job.held.fetch_add(some.len(), Ordering::Relaxed);
                job.check()?;
                more_room(pairs, some.len());
                pairs.extend(some.iter().map(|&[i, j]| [left[i as usize], right[j as usize]]));
            }
            hits.clear();
            job.check()
        };
        *stop = work(task, hits, &mut keep).err();
    });
    let mut pairs = Vec::new();
    for worker in workers {
        if let Some(stop) = worker.stop {
            return Err(stop);
        }
        take_over(&mut pairs, worker.pairs);
    }
    Ok(pairs)
}

/// Put `more` at the end of `pairs`; the first come as they are.
fn take_over<T: Copy>(pairs: &mut Vec<T>, more: Vec<T>) {
    if pairs.is_empty() {
        *pairs = more;
    } else {
        append(pairs, &more);
    }
}

/// Tables whose rows are moved together, to `parts` parts by bits that the keys of all have.
struct Family {
    tables: Range<usize>,
    parts: usize,
    split: Key,
    /// For each table, the bits of its key that the parts leave.
    rest: Vec<Key>,
}

impl Family {
    fn of<const W: usize>(rows: usize, tables: &[Table<W>], numbers: Range<usize>) -> Vec<Family> {
        let wanted = (rows * size_of::<[u64; W]>() / PART).next_power_of_two().clamp(1, MAX_PARTS).trailing_zeros();
        let mut families = Vec::new();
        let mut first = numbers.start;
        while first < numbers.end {
            let mut common = tables[first];
            let needed = wanted.min(ones(&common));
            let mut end = first + 1;
            while end < numbers.end && 1 << needed >= MANY_PARTS {
                let shared = and(&common, &tables[end]);
                if ones(&shared) < needed {
                    break;
                }
                common = shared;
                end += 1;
            }
            let split = upper_bits(common, needed);
            let others = split.map(|word| !word);
            families.push(Family {
                tables: first..end,
                parts: 1 << needed,
                split: Key::new(&split),
                rest: tables[first..end].iter().map(|table| Key::new(&and(table, &others))).collect(),
            });
            first = end;
        }
        families
    }

    /// The number of each table, and the bits that its buckets are made by.
    fn members(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.tables.clone().zip(&self.rest)
    }
}

fn and<const W: usize>(one: &[u64; W], two: &[u64; W]) -> [u64; W] {
    std::array::from_fn(|word| one[word] & two[word])
}

fn ones<const W: usize>(mask: &[u64; W]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// The highest `count` bits of `mask`.
fn upper_bits<const W: usize>(mut mask: [u64; W], count: u32) -> [u64; W] {
    let mut surplus = ones(&mask) - count;
    for word in &mut mask {
        while surplus > 0 && *word != 0 {
            *word &= *word - 1;
            surplus -= 1;
        }
    }
    mask
}

/// The slices cut into a few chunks for each thread, so that none waits long for another.
fn chunks<'a, const W: usize>(slices: &[&'a [[u64; W]]], threads: usize) -> Vec<&'a [[u64; W]]> {
    let total: usize = slices.iter().map(|slice| slice.len()).sum();
    let wanted = if threads == 1 { 1 } else { 4 * threads };
    let size = total.div_ceil(wanted).max(1 << 14);
    slices.iter().flat_map(|slice| slice.chunks(size)).collect()
}

/// Rows on their way to their parts. The first stands at the start of a line of the cache.
#[derive(Default)]
struct Scratch<const W: usize> {
    words: Vec<u64>,
}

impl<const W: usize> Scratch<W> {
    /// Make room for so many rows; what was there is lost.
    fn hold(&mut self, rows: usize) {
        let words = rows * W + LINE;
        if self.words.len() < words {
            self.words = Vec::new(); // given back before more is asked for
            self.words = zeros(words);
        }
    }

    fn first(&self) -> usize {
        self.words.as_ptr().align_offset(64).min(self.words.len())
    }

    fn rows(&self) -> &[[u64; W]] {
        self.words[self.first()..].as_chunks().0
    }

    fn rows_mut(&mut self) -> &mut [[u64; W]] {
        let first = self.first();
        self.words[first..].as_chunks_mut().0
    }
}

/// Where the parts of one chunk lie in the scratch rows.
struct Piece {
    start: usize,
    bounds: Vec<usize>,
}

fn pieces_of<'a, const W: usize>(scratch: &'a [[u64; W]], pieces: &[Piece], part: usize) -> Vec<&'a [[u64; W]]> {
    pieces
        .iter()
        .map(|piece| &scratch[piece.start + piece.bounds[part]..piece.start + piece.bounds[part + 1]])
        .filter(|slice| !slice.is_empty())
        .collect()
}

/// For each family the rows of `chunk` in each of its parts, counted in one pass.
fn count_parts<const W: usize>(chunk: &[[u64; W]], families: &[Family]) -> Vec<Vec<usize>> {
    let mut counts: Vec<Vec<usize>> = families.iter().map(|family| vec![0; family.parts]).collect();
    let mut keys = [0; BATCH];
    for rows in chunk.chunks(BATCH) {
        for (family, counts) in families.iter().zip(&mut counts) {
            family.split.extract(rows, &mut keys);
            for key in &keys[..rows.len()] {
                counts[*key as usize & (family.parts - 1)] += 1;
            }
        }
    }
    counts
}

/// Move the rows of `chunk` whose part is in `wanted` to `target`, part by part.
fn scatter<const W: usize>(
    chunk: &[[u64; W]],
    family: &Family,
    wanted: &Range<usize>,
    bounds: &[usize],
    target: &mut [[u64; W]],
) {
    let mut places = bounds.to_vec();
    let mut keys = [0; BATCH];
    let all = wanted.len() == family.parts;
    if family.parts <= 64 {
        for rows in chunk.chunks(BATCH) {
            family.split.extract(rows, &mut keys);
            for (row, key) in rows.iter().zip(&keys) {
                let part = *key as usize & (family.parts - 1);
                if all || wanted.contains(&part) {
                    target[places[part]] = *row;
                    places[part] += 1;
                }
            }
        }
        return;
    }
    // Write-combining: a part's rows wait in a line of their own until it is full, so that memory
    // is written a line at a time and never read for it. A row waits at its place in the target,
    // modulo the line.
    let mut lines: Vec<[u64; W]> = zeros(family.parts * LINE);
    for rows in chunk.chunks(BATCH) {
        family.split.extract(rows, &mut keys);
        for (row, key) in rows.iter().zip(&keys) {
            let part = *key as usize & (family.parts - 1);
            if !all && !wanted.contains(&part) {
                continue;
            }
            let place = places[part];
            let slot = place % LINE;
            let line = &mut lines[part * LINE..][..LINE];
            line[slot] = *row;
            places[part] = place.wrapping_add(1);
            if slot == LINE - 1 {
                let first = (place - slot).max(bounds[part]);
                match (target[first..=place].first_chunk_mut::<LINE>(), line.first_chunk::<LINE>()) {
                    (Some(target), Some(line)) => stream(line, target),
                    _ => target[first..=place].copy_from_slice(&line[first % LINE..]),
                }
            }
        }
    }
    for part in wanted.clone() {
        let place = places[part];
        let first = (place - place % LINE).max(bounds[part]);
        let line = &lines[part * LINE..][..LINE];
        target[first..place].copy_from_slice(&line[first % LINE..][..place - first]);
    }
    finish_streams();
}

/// Write a line of rows past the caches, where the machine can.
#[inline(always)]
fn stream<const W: usize>(line: &[[u64; W]; LINE], target: &mut [[u64; W]; LINE]) {
    #[cfg(target_arch = "x86_64")]
    if target.as_ptr().addr().is_multiple_of(16) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let (line, target): (*const __m128i, *mut __m128i) = (line.as_ptr().cast(), target.as_mut_ptr().cast());
        for at in 0..size_of::<[[u64; W]; LINE]>() / 16 {
            // SAFETY: both are so many times 16 bytes, and the target is aligned to 16.
            unsafe { _mm_stream_si128(target.add(at), _mm_loadu_si128(line.add(at))) };
        }
        return;
    }
    *target = *line;
}

/// Lines written past the caches are there for other threads after this.
fn finish_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Scatter all chunks, each into its own stretch of the scratch rows.
fn spread<const W: usize>(
    chunks: &[&[[u64; W]]],
    family: &Family,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
) -> Result<Vec<Piece>, Stop> {
    let counts = map(job.threads, chunks.to_vec(), |chunk| count_parts(chunk, std::slice::from_ref(family)).remove(0));
    let counts: Vec<&[usize]> = counts.iter().map(|counts| &counts[..]).collect();
    spread_counted(chunks, &counts, family, &(0..family.parts), scratch, job)
}

fn spread_counted<const W: usize>(
    chunks: &[&[[u64; W]]],
    counts: &[&[usize]],
    family: &Family,
    wanted: &Range<usize>,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
) -> Result<Vec<Piece>, Stop> {
    job.check()?;
    let mut pieces = Vec::with_capacity(chunks.len());
    let mut start = 0;
    for counts in counts {
        let mut bounds = vec![0; family.parts + 1];
        for part in 0..family.parts {
            bounds[part + 1] = bounds[part] + if wanted.contains(&part) { counts[part] } else { 0 };
        }
        let length = bounds[family.parts];
        pieces.push(Piece { start, bounds });
        start += length.next_multiple_of(LINE);
    }
    scratch.hold(start);
    let mut inputs = Vec::with_capacity(chunks.len());
    let mut left = scratch.rows_mut();
    for (chunk, piece) in chunks.iter().zip(&pieces) {
        let (own, others) = left.split_at_mut(piece.bounds[family.parts].next_multiple_of(LINE));
        inputs.push((*chunk, &piece.bounds, own));
        left = others;
    }
    map(job.threads, inputs, |(chunk, bounds, own)| scatter(chunk, family, wanted, bounds, own));
    job.check()?;
    Ok(pieces)
}

/// Families whose parts are counted together.
const TOGETHER: usize = 16;

/// Some of the tables, one family after the other, all threads on each; what was found goes to `take`.
fn run_tables<const W: usize>(
    slices: &[&[[u64; W]]],
    tables: &[Table<W>],
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
    tables: &[Table<W>],
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
    tables: &[Table<W>],
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
        pieces.push(Piece { start, bounds });
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
    tables: &[Table<W>],
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

/// Whether none of the earlier tables sees the pair.
#[inline(always)]
pub fn first_sight<const W: usize>(one: &[u64; W], two: &[u64; W], earlier: &[Table<W>]) -> bool {
    let difference: [u64; W] = std::array::from_fn(|word| one[word] ^ two[word]);
    earlier.iter().all(|table| {
        let mut common = 0;
        for (bits, mask) in difference.iter().zip(table) {
            common |= bits & mask;
        }
        common != 0
    })
}

/// The buckets of one part, in planes.
#[derive(Default)]
struct Buckets<const W: usize> {
    keys: Vec<u32>,
    bounds: Vec<u32>,
    planes: Vec<u64>,
    total: usize,
}

impl<const W: usize> Buckets<W> {
    fn fill(&mut self, pieces: &[&[[u64; W]]], key: &Key) {
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
            self.planes = Vec::new(); // given back before more is asked for
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
    fn mean(&self) -> usize {
        self.total / (self.bounds.len() - 1)
    }

    fn views(&self) -> Planes<'_, W> {
        std::array::from_fn(|word| &self.planes[word * self.total..(word + 1) * self.total])
    }
}

#[derive(Default)]
struct Worker<const W: usize> {
    buckets: Buckets<W>,
    others: Buckets<W>,
    hits: Vec<[u32; 2]>,
    rows: Vec<[u64; W]>,
    scratch: Scratch<W>,
    pairs: Vec<[[u64; W]; 2]>,
    repeated: Vec<[u64; W]>,
    uniques: Vec<[u64; W]>,
    giants: Vec<(usize, Vec<[u64; W]>)>,
    giant_pairs: Vec<(usize, [Vec<[u64; W]>; 2])>,
    stop: Option<Stop>,
}

impl<const W: usize> Worker<W> {
    /// Give back what only the work itself needed.
    fn shed(&mut self) {
        self.buckets = Buckets::default();
        self.others = Buckets::default();
        self.hits = Vec::new();
        self.rows = Vec::new();
        self.scratch = Scratch::default();
    }

    fn part(
        &mut self,
        pieces: &[&[[u64; W]]],
        tables: &[Table<W>],
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
    fn tiles(&mut self, range: Range<usize>, tables: &[Table<W>], number: usize, job: &Job<'_>) -> Result<(), Stop> {
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

    fn emit(&mut self, tables: &[Table<W>], number: usize, job: &Job<'_>) -> Result<(), Stop> {
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

    /// Keep each row of a bucket of at least so many rows once. Those that were there more often
    /// are remembered, and what is kept is put aside for later tables, if asked.
    fn collapse(&mut self, least: usize, tell: bool, aside: bool) {
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

    fn cross_part(
        &mut self,
        left: &[&[[u64; W]]],
        right: &[&[[u64; W]]],
        tables: &[Table<W>],
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
    use crate::plan::split_mix;

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
