#![forbid(unsafe_code)]
//! Joins of rows as they are handed over: words of any width, some rows without information.
//!
//! The engine knows distinct values of a width that it is compiled for, and each of them has information. Here rows
//! are padded and those without information left out, and pairs of values become pairs of rows again.

use crate::hamming::plan::{Force, Plan, Sample, Task, all_bits, plan};
use crate::hamming::widths::{padded, stored};
use crate::join::banded::{Banded, join_banded};
use crate::join::cluster::{self, Listed, Stars};
use crate::join::lists::Comparable;
use crate::join::nearest::join_nearest;
use crate::join::resolve::{Pair, Values, numbered, sort_pairs};
use crate::join::{Job, Stop, cross_join, pair_distance, self_join};
use crate::system::fault::{Fault, require};
use crate::system::memory::{copied, filled, gathered, more_room, room_for};
use crate::system::parallel::{Cancel, Cancelled, thread_count};

/// More pairs than this are not put into one answer.
const MAX_PAIRS: u64 = 1 << 31;

/// Work on this many words ends before anyone could press a key.
const QUICK: usize = 30_000;

/// Fingerprints of *width* words each, and which of them have information: all, if not given.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    pub words: &'a [u64],
    pub width: usize,
    pub valid: Option<&'a [bool]>,
}

/// The request of a join.
#[derive(Clone, Copy)]
pub struct Ask {
    pub bits: usize,
    pub radius: u32,
    pub recall: f64,
    pub threads: usize,
    pub force: Force,
    /// Bytes for moving rows, where they are limited.
    pub memory: Option<usize>,
}

/// Pairs that are cut to the nearest of either side.
#[derive(Debug)]
pub struct Nearest {
    pub pairs: Vec<Pair>,
    /// The rows of pairs that were cut.
    pub crowded: Vec<u32>,
    /// How they were found, but where bands say which rows are compared.
    pub plan: Option<Plan>,
}

/// Why a call ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Stopped,
    /// The answer has this many pairs or more.
    TooMany(u64),
    Wrong(Fault),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Wrong(fault)
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Fault {
        match failure {
            Failure::Stopped => Fault::Runtime("stopped".into()),
            Failure::TooMany(count) => Fault::Limit(format!(
                "the answer has {count} pairs or more; use join_batches to stream them, or groups"
            )),
            Failure::Wrong(fault) => fault,
        }
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Cancelled => Failure::Stopped,
            Stop::TooMany => Failure::TooMany(MAX_PAIRS),
        }
    }
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Failure {
        Failure::Stopped
    }
}

impl<'a> Given<'a> {
    /// All rows have information.
    pub fn whole(words: &'a [u64], width: usize) -> Given<'a> {
        Given { words, width, valid: None }
    }

    pub fn len(&self) -> usize {
        self.words.len() / self.width
    }

    /// Whether work on them, and *more* words, ends before anyone could press a key.
    pub fn are_few(&self, more: usize) -> bool {
        self.words.len() + more <= QUICK
    }

    pub fn row(&self, row: usize) -> &'a [u64] {
        &self.words[row * self.width..(row + 1) * self.width]
    }

    /// The numbers of the rows that have information, unless all have.
    pub fn numbers(&self) -> Option<Vec<u32>> {
        self.valid.filter(|valid| !valid.iter().all(|&valid| valid)).map(|valid| {
            let mut numbers = room_for(valid.iter().filter(|valid| **valid).count());
            numbers.extend((0u32..).zip(valid).filter(|(_, valid)| **valid).map(|(row, _)| row));
            numbers
        })
    }

    /// The rows with information, padded to `W` words; in *room*, unless they are so already.
    pub fn rows<'b, const W: usize>(&self, numbers: Option<&[u32]>, room: &'b mut Vec<[u64; W]>) -> &'b [[u64; W]]
    where
        'a: 'b,
    {
        if self.width == W && numbers.is_none() {
            return self.words.as_chunks::<W>().0;
        }
        more_room(room, numbers.map_or(self.len(), <[u32]>::len));
        match numbers {
            None => room.extend(self.words.chunks_exact(self.width).map(padded)),
            Some(numbers) => room.extend(numbers.iter().map(|&row| padded(self.row(row as usize)))),
        }
        room
    }
}

impl Ask {
    /// As a caller has it: the number of threads may be left to the machine, and the plan to its cost.
    pub fn new(
        (bits, radius, recall): (usize, u32, f64),
        threads: Option<usize>,
        plan: Option<&str>,
        memory: Option<usize>,
    ) -> Result<Ask, Fault> {
        Ok(Ask { bits, radius, recall, threads: thread_count(threads), force: Force::of(plan)?, memory })
    }

    fn force(&self) -> Force {
        match self.force {
            // More blocks than the radius needs would leave some with nothing to find.
            Force::Cut { blocks, extra } => Force::Cut { blocks: blocks.min(self.radius + 1), extra },
            other => other,
        }
    }

    fn plan<const W: usize>(&self, rows: &[[u64; W]], other: Option<usize>, width: usize) -> Plan {
        let sample = Sample::new(rows.as_flattened(), W, &all_bits(self.bits, W));
        let task = Task {
            rows: rows.len(),
            other,
            words: stored(width),
            radius: self.radius,
            recall: self.recall,
            threads: self.threads,
        };
        plan(&sample, &task, self.force())
    }

    fn job<'a>(&self, cancel: &'a Cancel) -> Job<'a> {
        let mut job = Job::new(self.radius, self.threads, cancel);
        if let Some(memory) = self.memory {
            (job.scratch, job.share) = (memory, 4);
        }
        job
    }
}

/// The plan of a join of *rows*, or of them with *other* rows.
pub fn planned(rows: Given<'_>, other: Option<usize>, ask: &Ask) -> Plan {
    let numbers = rows.numbers();
    with_words!(rows.width, W => ask.plan(rows.rows::<W>(numbers.as_deref(), &mut Vec::new()), other, rows.width))
}

/// All pairs of *rows* within the radius.
pub fn join_rows(rows: Given<'_>, ask: &Ask, cancel: &Cancel) -> Result<Vec<Pair>, Failure> {
    with_words!(rows.width, W => joined::<W>(rows, ask, cancel))
}

fn joined<const W: usize>(given: Given<'_>, ask: &Ask, cancel: &Cancel) -> Result<Vec<Pair>, Failure> {
    let (numbers, mut room) = (given.numbers(), Vec::new());
    let rows = given.rows::<W>(numbers.as_deref(), &mut room);
    let plan = ask.plan(rows, None, given.width);
    let mut job = ask.job(cancel);
    job.budget = MAX_PAIRS as usize;
    let found = self_join(rows, &plan, &job)?;
    let (values, pairs) = numbered(&found.pairs, &found.repeated);
    drop(found);
    let held = values.rows(rows, numbers.as_deref(), ask.threads, cancel)?;
    let total = held.pairs_among(&pairs);
    if total > MAX_PAIRS {
        return Err(Failure::TooMany(total));
    }
    let mut result = room_for(total as usize);
    held.each_pair(&pairs, cancel, |pair| result.push(pair))?;
    Ok(sort_pairs(result, ask.threads))
}

/// All pairs (a row of *left*, a row of *right*) within the radius.
pub fn cross_rows(left: Given<'_>, right: Given<'_>, ask: &Ask, cancel: &Cancel) -> Result<Vec<Pair>, Failure> {
    with_words!(left.width, W => crossed::<W>(left, right, ask, cancel))
}

fn crossed<const W: usize>(
    left: Given<'_>,
    right: Given<'_>,
    ask: &Ask,
    cancel: &Cancel,
) -> Result<Vec<Pair>, Failure> {
    let (left_numbers, right_numbers) = (left.numbers(), right.numbers());
    let (mut left_room, mut right_room) = (Vec::new(), Vec::new());
    let left_rows = left.rows::<W>(left_numbers.as_deref(), &mut left_room);
    let right_rows = right.rows::<W>(right_numbers.as_deref(), &mut right_room);
    let plan = ask.plan(left_rows, Some(right_rows.len()), left.width);
    let mut job = Job::new(ask.radius, ask.threads, cancel);
    job.budget = MAX_PAIRS as usize;
    let found = cross_join(left_rows, right_rows, &plan, &job)?;
    let mut values = Values::<W>::with_room(found.len() * 2);
    let pairs: Vec<[u32; 3]> =
        gathered(found.iter().map(|pair| [values.number(&pair[0]), values.number(&pair[1]), pair_distance(pair)]));
    let left_held = values.rows(left_rows, left_numbers.as_deref(), ask.threads, cancel)?;
    let right_held = values.rows(right_rows, right_numbers.as_deref(), ask.threads, cancel)?;
    let total: u64 = pairs.iter().map(|[a, b, _]| left_held.of(*a).len() as u64 * right_held.of(*b).len() as u64).sum();
    if total > MAX_PAIRS {
        return Err(Failure::TooMany(total));
    }
    let mut result = room_for(total as usize);
    for [a, b, distance] in pairs {
        for &left in left_held.of(a) {
            result.extend(right_held.of(b).iter().map(|&right| Pair { left, right, distance }));
        }
    }
    Ok(sort_pairs(result, ask.threads))
}

/// The pairs within the radius that are among the *most* nearest of either side.
pub fn nearest_rows(
    rows: Given<'_>,
    most: u32,
    comparable: Comparable<'_>,
    ask: &Ask,
    cancel: &Cancel,
) -> Result<Nearest, Failure> {
    comparable.check(rows.len(), most)?;
    with_words!(rows.width, W => nearest::<W>(rows, None, most, comparable, ask, cancel))
}

/// The same of rows that share one of their bands, of which each row has as many.
pub fn banded_rows(
    rows: Given<'_>,
    bands: &[u32],
    most: u32,
    comparable: Comparable<'_>,
    ask: &Ask,
    cancel: &Cancel,
) -> Result<Nearest, Failure> {
    comparable.check(rows.len(), most)?;
    let each = bands.len() / rows.len().max(1);
    require(bands.len() == each * rows.len(), "as many bands for each row are needed")?;
    with_words!(rows.width, W => nearest::<W>(rows, Some(bands), most, comparable, ask, cancel))
}

fn nearest<const W: usize>(
    given: Given<'_>,
    bands: Option<&[u32]>,
    most: u32,
    comparable: Comparable<'_>,
    ask: &Ask,
    cancel: &Cancel,
) -> Result<Nearest, Failure> {
    let (numbers, mut room) = (given.numbers(), Vec::new());
    let rows = given.rows::<W>(numbers.as_deref(), &mut room);
    let job = ask.job(cancel);
    let each = bands.map_or(0, |bands| bands.len() / given.len().max(1));
    let plan = bands.is_none().then(|| ask.plan(rows, None, given.width));
    let join = |bands: Option<&[u32]>, comparable: &Comparable<'_>| match bands {
        Some(bands) => join_banded(&Banded { rows, bands, each }, most, comparable, &job),
        None => join_nearest(rows, plan.as_ref().expect("there are no bands"), most, comparable, &job),
    };
    let Some(numbers) = numbers else {
        let (pairs, crowded) = join(bands, &comparable)?;
        return Ok(Nearest { pairs, crowded, plan });
    };
    // Rows without information are left out: the others move up, in their order.
    let own = |codes: &[i32]| gathered(numbers.iter().map(|&row| codes[row as usize]));
    let (within, across) = (comparable.within.map(own), comparable.across.map(own));
    let fixed = comparable.fixed.map(|fixed| gathered(numbers.iter().map(|&row| fixed[row as usize])));
    let comparable = Comparable { within: within.as_deref(), across: across.as_deref(), fixed: fixed.as_deref() };
    let bands = bands.map(|bands| {
        let mut own = room_for(numbers.len() * each);
        numbers.iter().for_each(|&row| own.extend_from_slice(&bands[row as usize * each..][..each]));
        own
    });
    let (mut pairs, mut crowded) = join(bands.as_deref(), &comparable)?;
    for pair in &mut pairs {
        (pair.left, pair.right) = (numbers[pair.left as usize], numbers[pair.right as usize]);
    }
    crowded.iter_mut().for_each(|row| *row = numbers[*row as usize]);
    Ok(Nearest { pairs, crowded, plan })
}

/// The greedy stars of *rows* in their *order*, group by group.
pub fn groups_of_rows(rows: Given<'_>, order: Option<&[u32]>, ask: &Ask, cancel: &Cancel) -> Result<Listed, Failure> {
    with_words!(rows.width, W => groups::<W>(rows, order, ask, cancel))
}

fn groups<const W: usize>(
    given: Given<'_>,
    order: Option<&[u32]>,
    ask: &Ask,
    cancel: &Cancel,
) -> Result<Listed, Failure> {
    let (numbers, mut room) = (given.numbers(), Vec::new());
    let rows = given.rows::<W>(numbers.as_deref(), &mut room);
    // The order speaks of all rows; the walk sees only those with information.
    let own = match (&numbers, order) {
        (Some(numbers), Some(order)) => {
            let mut place = filled(given.len(), u32::MAX);
            for (at, &row) in (0u32..).zip(numbers) {
                place[row as usize] = at;
            }
            let mut own = room_for(numbers.len());
            own.extend(order.iter().map(|&row| place[row as usize]).filter(|&at| at != u32::MAX));
            Some(own)
        }
        (None, Some(order)) => Some(copied(order)),
        (_, None) => None,
    };
    let job = Job::new(ask.radius, ask.threads, cancel);
    let stars = cluster::stars(rows, &all_bits(ask.bits, W), own.as_deref(), ask.force, &job)?;
    let Some(numbers) = numbers else {
        return Ok(stars.listed(order));
    };
    let mut all = Stars::alone(given.len());
    for (at, &row) in numbers.iter().enumerate() {
        all.center[row as usize] = numbers[stars.center[at] as usize];
        all.distance[row as usize] = stars.distance[at];
    }
    Ok(all.listed(order))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(bits: usize, radius: u32) -> Ask {
        Ask { bits, radius, recall: 1.0, threads: 2, force: Force::Any, memory: None }
    }

    fn triples(pairs: &[Pair]) -> Vec<[u32; 3]> {
        pairs.iter().map(|pair| [pair.left, pair.right, pair.distance]).collect()
    }

    /// Rows of three words, which are padded to four: 0 and 2 are a bit apart, 1 and 3 are equal.
    const WORDS: [u64; 12] = [1, 2, 3, 7, 7, !0, 1, 2, 2, 7, 7, !0];

    #[test]
    fn rows_of_a_width_between_two_are_padded() {
        let found = join_rows(Given::whole(&WORDS, 3), &ask(192, 1), &Cancel::new()).unwrap();
        assert_eq!(triples(&found), [[0, 2, 1], [1, 3, 0]]);
    }

    #[test]
    fn rows_without_information_are_in_no_pair_and_keep_their_numbers() {
        let given = Given { words: &WORDS, width: 3, valid: Some(&[false, true, true, true]) };
        let found = join_rows(given, &ask(192, 1), &Cancel::new()).unwrap();
        assert_eq!(triples(&found), [[1, 3, 0]]);
        let found = nearest_rows(given, 4, Comparable::default(), &ask(192, 1), &Cancel::new()).unwrap();
        assert_eq!((triples(&found.pairs), found.crowded), (vec![[1, 3, 0]], vec![]));
        let found = groups_of_rows(given, Some(&[3, 2, 1, 0]), &ask(192, 1), &Cancel::new()).unwrap();
        assert_eq!((found.centers, found.member, found.center), (vec![3, 2, 0], vec![1], vec![3]));
    }

    #[test]
    fn equal_rows_of_two_sets_meet_each_with_each() {
        let (left, right) = (Given::whole(&WORDS, 3), Given::whole(&WORDS[3..], 3));
        let found = cross_rows(left, right, &ask(192, 0), &Cancel::new()).unwrap();
        assert_eq!(triples(&found), [[1, 0, 0], [1, 2, 0], [2, 1, 0], [3, 0, 0], [3, 2, 0]]);
    }

    #[test]
    fn a_wide_row_is_joined_as_a_narrow_one() {
        for width in [16, 17, 32, 64, 65, 300, 1024] {
            let mut words = vec![5; 3 * width];
            words[width - 1] = 4; // one bit from the others
            words[2 * width] = 2; // three bits
            let found = join_rows(Given::whole(&words, width), &ask(64 * width, 3), &Cancel::new()).unwrap();
            assert_eq!(triples(&found), [[0, 1, 1], [1, 2, 3]]);
        }
    }

    #[test]
    fn a_plan_costs_what_a_power_of_two_of_words_costs() {
        let words = vec![0; 33 * 100];
        let plan = planned(Given::whole(&words, 33), Some(7), &ask(64 * 33, 5));
        let padded = vec![0; 64 * 100];
        assert_eq!(plan.seconds, planned(Given::whole(&padded, 64), Some(7), &ask(64 * 33, 5)).seconds);
    }

    #[test]
    fn a_cancelled_join_of_rows_stops() {
        let cancel = Cancel::new();
        cancel.set();
        assert_eq!(join_rows(Given::whole(&WORDS, 3), &ask(192, 1), &cancel).err(), Some(Failure::Stopped));
    }

    #[test]
    fn a_request_names_a_plan_or_leaves_it_to_the_cost() {
        let force = |plan| Ask::new((64, 3, 1.0), Some(2), plan, None).map(|ask| ask.force);
        assert_eq!(force(None), Ok(Force::Any));
        assert_eq!(force(Some("blocks:4,1")), Ok(Force::Cut { blocks: 4, extra: 1 }));
        let known = "unknown plan 'x'; known: brute, blocks, blocks:COUNT,EXTRA, sampling";
        assert_eq!(force(Some("x")), Err(Fault::value(known)));
    }

    #[test]
    fn codes_and_flags_are_one_for_each_row() {
        let nearest = |most, comparable| {
            nearest_rows(Given::whole(&WORDS, 3), most, comparable, &ask(192, 1), &Cancel::new()).is_ok()
        };
        assert!(nearest(1, Comparable { within: Some(&[1; 4]), ..Comparable::default() }));
        assert!(!nearest(0, Comparable::default()));
        assert!(!nearest(1, Comparable { across: Some(&[1; 3]), ..Comparable::default() }));
        assert!(!nearest(1, Comparable { fixed: Some(&[true; 5]), ..Comparable::default() }));
    }
}
