#![forbid(unsafe_code)]
//! Python's view of the Hamming engine.
//!
//! The Python side hands over arrays that nothing else writes: they are borrowed, not copied.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::interrupt::{caught, interruptible, watched};
use super::{InvalidValue, LimitReached};
use crate::cluster::{self, Stars};
use crate::index_file::MOST_WORDS;
use crate::join::{Job, Stop, cross_join, self_join};
use crate::join_nearest::join_nearest;
use crate::memory::{copied, filled, gathered, more_room, room_for};
use crate::nearest::Comparable;
use crate::parallel::{Cancel, thread_count};
use crate::plan::{Force, Method, Plan, Sample, Task, all_bits, plan};
use crate::resolve::{Pair, Values, numbered, sort_pairs};
use crate::simd;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(join, module)?)?;
    module.add_function(wrap_pyfunction!(join_nearest_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(join_plan, module)?)?;
    module.add_function(wrap_pyfunction!(groups, module)?)?;
    module.add_function(wrap_pyfunction!(components, module)?)?;
    module.add_function(wrap_pyfunction!(set_simd, module)?)?;
    module.add_function(wrap_pyfunction!(simd_level, module)?)?;
    Ok(())
}

/// More pairs than this are not put into one answer.
const MAX_PAIRS: u64 = 1 << 31;

/// Call `$body` with `W` as the number of words that `$words` is padded to: the next power of two.
macro_rules! with_words {
    ($words:expr, $W:ident => $body:expr) => {
        with_words!(@each $words, $W => $body, 1 2 4 8 16 32 64 128 256 512 1024)
    };
    (@each $words:expr, $W:ident => $body:expr, $($count:literal)*) => {
        match $words.next_power_of_two() {
            $($count => {
                const $W: usize = $count;
                $body
            })*
            more => unreachable!("{more} words: the Python side takes at most {MOST_WORDS}"),
        }
    };
}

/// Why a call ended without an answer.
pub enum Failure {
    Stopped,
    TooMany(u64),
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Failure {
        match stop {
            Stop::Cancelled => Failure::Stopped,
            Stop::TooMany => Failure::TooMany(MAX_PAIRS),
        }
    }
}

/// Do *work* as `interruptible` does; the error of work that ended without an answer.
pub fn answered<T: Send>(
    py: Python<'_>,
    long: bool,
    work: impl FnOnce(&Cancel) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    answered_aloud(py, long, None, work)
}

/// The same; *tell* is called now and then with the share of the work that is done.
fn answered_aloud<T: Send>(
    py: Python<'_>,
    long: bool,
    tell: Option<&Py<PyAny>>,
    work: impl FnOnce(&Cancel) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    watched(py, long, tell, work)?.map_err(|failure| match failure {
        Failure::Stopped => PyRuntimeError::new_err("stopped"),
        Failure::TooMany(count) => LimitReached::new_err(format!(
            "the answer has {count} pairs or more; use join_batches to stream them, or groups"
        )),
    })
}

/// A row padded to `W` words.
pub fn padded<const W: usize>(row: &[u64]) -> [u64; W] {
    let mut wide = [0; W];
    wide[..row.len()].copy_from_slice(row);
    wide
}

/// Rows padded to `W` words, without those that have no information; their row numbers if any went.
pub fn rows_of<const W: usize>(
    words: &[u64],
    width: usize,
    valid: Option<&[bool]>,
    wide: &mut Vec<[u64; W]>,
) -> Option<Vec<u32>> {
    let numbers = valid.filter(|valid| !valid.iter().all(|&valid| valid)).map(|valid| {
        let mut numbers = room_for(valid.iter().filter(|valid| **valid).count());
        numbers.extend((0u32..).zip(valid).filter(|(_, valid)| **valid).map(|(row, _)| row));
        numbers
    });
    if width == W && numbers.is_none() {
        return None;
    }
    more_room(wide, numbers.as_ref().map_or(words.len() / width, Vec::len));
    match &numbers {
        None => wide.extend(words.chunks_exact(width).map(padded)),
        Some(numbers) => {
            wide.extend(numbers.iter().map(|&row| padded(&words[row as usize * width..(row as usize + 1) * width])))
        }
    }
    numbers
}

/// `brute`, `blocks`, `blocks:4,1` (four blocks, one part more than the radius), `sampling`.
fn force_of(text: Option<&str>) -> PyResult<Force> {
    let unknown = |text: &str| {
        let known = "brute, blocks, blocks:COUNT,EXTRA, sampling";
        InvalidValue::new_err(format!("unknown plan '{text}'; known: {known}"))
    };
    Ok(match text {
        None => Force::Any,
        Some("brute") => Force::Brute,
        Some("blocks") => Force::Blocks,
        Some("sampling") => Force::Sampling,
        Some(text) => {
            let numbers = text.strip_prefix("blocks:").and_then(|rest| rest.split_once(','));
            let (blocks, extra) = numbers.ok_or_else(|| unknown(text))?;
            match (blocks.parse(), extra.parse()) {
                (Ok(blocks @ 1..=4096), Ok(extra @ 1..=16)) => Force::Cut { blocks, extra },
                _ => return Err(unknown(text)),
            }
        }
    })
}

struct Ask {
    bits: usize,
    width: usize,
    radius: u32,
    recall: f64,
    threads: usize,
    force: Force,
    /// Bytes for moving rows, where they are limited.
    memory: Option<usize>,
}

impl Ask {
    fn plan<const W: usize>(&self, rows: &[[u64; W]], other: Option<&[[u64; W]]>) -> Plan {
        let sample = Sample::new(rows.as_flattened(), W, &all_bits(self.bits, W));
        let task = Task {
            rows: rows.len(),
            other: other.map(<[_]>::len),
            words: W,
            radius: self.radius,
            recall: self.recall,
            threads: self.threads,
        };
        let force = match self.force {
            // More blocks than the radius needs would leave some with nothing to find.
            Force::Cut { blocks, extra } => Force::Cut { blocks: blocks.min(self.radius + 1), extra },
            other => other,
        };
        plan(&sample, &task, force)
    }

    fn self_join<const W: usize>(
        &self,
        words: &[u64],
        valid: Option<&[bool]>,
        cancel: &Cancel,
    ) -> Result<Vec<Pair>, Failure> {
        let mut wide = Vec::new();
        let numbers = rows_of::<W>(words, self.width, valid, &mut wide);
        let rows = if wide.is_empty() && numbers.is_none() { words.as_chunks::<W>().0 } else { &wide };
        let plan = self.plan(rows, None);
        let mut job = Job::new(self.radius, self.threads, cancel);
        job.budget = MAX_PAIRS as usize;
        if let Some(memory) = self.memory {
            (job.scratch, job.share) = (memory, 4);
        }
        let found = self_join(rows, &plan, &job)?;
        let (values, pairs) = numbered(&found.pairs, &found.repeated);
        drop(found);
        let held = values.rows(rows, numbers.as_deref(), self.threads, cancel).map_err(|_| Failure::Stopped)?;
        let total = held.pairs_among(&pairs);
        if total > MAX_PAIRS {
            return Err(Failure::TooMany(total));
        }
        let mut result = room_for(total as usize);
        held.each_pair(&pairs, cancel, |pair| result.push(pair)).map_err(|_| Failure::Stopped)?;
        Ok(sort_pairs(result, self.threads))
    }

    /// Pairs that are cut to the nearest of either side, and the rows of those that were cut.
    fn join_nearest<const W: usize>(
        &self,
        words: &[u64],
        valid: Option<&[bool]>,
        most: u32,
        comparable: Comparable<'_>,
        cancel: &Cancel,
    ) -> Result<(Vec<Pair>, Vec<u32>), Failure> {
        let mut wide = Vec::new();
        let numbers = rows_of::<W>(words, self.width, valid, &mut wide);
        let rows = if wide.is_empty() && numbers.is_none() { words.as_chunks::<W>().0 } else { &wide };
        let plan = self.plan(rows, None);
        let mut job = Job::new(self.radius, self.threads, cancel);
        if let Some(memory) = self.memory {
            (job.scratch, job.share) = (memory, 4);
        }
        let Some(numbers) = numbers else {
            return Ok(join_nearest(rows, &plan, most, &comparable, &job)?);
        };
        // Rows without information are left out: the others move up, in their order.
        let own = |codes: &[i32]| gathered(numbers.iter().map(|&row| codes[row as usize]));
        let (within, across) = (comparable.within.map(own), comparable.across.map(own));
        let fixed = comparable.fixed.map(|fixed| gathered(numbers.iter().map(|&row| fixed[row as usize])));
        let comparable = Comparable { within: within.as_deref(), across: across.as_deref(), fixed: fixed.as_deref() };
        let (mut pairs, mut crowded) = join_nearest(rows, &plan, most, &comparable, &job)?;
        for pair in &mut pairs {
            (pair.left, pair.right) = (numbers[pair.left as usize], numbers[pair.right as usize]);
        }
        crowded.iter_mut().for_each(|row| *row = numbers[*row as usize]);
        Ok((pairs, crowded))
    }

    fn cross_join<const W: usize>(
        &self,
        left: (&[u64], Option<&[bool]>),
        right: (&[u64], Option<&[bool]>),
        cancel: &Cancel,
    ) -> Result<Vec<Pair>, Failure> {
        let (mut left_padded, mut right_padded) = (Vec::new(), Vec::new());
        let left_numbers = rows_of::<W>(left.0, self.width, left.1, &mut left_padded);
        let right_numbers = rows_of::<W>(right.0, self.width, right.1, &mut right_padded);
        let plain = |words: &'_ [u64]| -> bool { self.width == W && !words.is_empty() };
        let left_rows = if left_numbers.is_none() && plain(left.0) { left.0.as_chunks::<W>().0 } else { &left_padded };
        let right_rows =
            if right_numbers.is_none() && plain(right.0) { right.0.as_chunks::<W>().0 } else { &right_padded };
        let plan = self.plan(left_rows, Some(right_rows));
        let mut job = Job::new(self.radius, self.threads, cancel);
        job.budget = MAX_PAIRS as usize;
        let found = cross_join(left_rows, right_rows, &plan, &job)?;
        let mut values = Values::<W>::with_room(found.len() * 2);
        let pairs: Vec<[u32; 3]> = gathered(
            found
                .iter()
                .map(|pair| [values.number(&pair[0]), values.number(&pair[1]), crate::join::pair_distance(pair)]),
        );
        let stopped = |_| Failure::Stopped;
        let left_held = values.rows(left_rows, left_numbers.as_deref(), self.threads, cancel).map_err(stopped)?;
        let right_held = values.rows(right_rows, right_numbers.as_deref(), self.threads, cancel).map_err(stopped)?;
        let total: u64 =
            pairs.iter().map(|[a, b, _]| left_held.of(*a).len() as u64 * right_held.of(*b).len() as u64).sum();
        if total > MAX_PAIRS {
            return Err(Failure::TooMany(total));
        }
        let mut result = room_for(total as usize);
        for [a, b, distance] in pairs {
            for &left in left_held.of(a) {
                for &right in right_held.of(b) {
                    result.push(Pair { left, right, distance });
                }
            }
        }
        Ok(sort_pairs(result, self.threads))
    }
}

type PairArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u16>>);

type GroupArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u16>>,
);

/// Work on fewer words than this ends before anyone could press a key.
const QUICK: usize = 30_000;

#[pyfunction]
#[pyo3(signature = (words, valid, other, other_valid, bits, radius, recall, threads, plan, memory, tell))]
#[allow(clippy::too_many_arguments)]
fn join<'py>(
    py: Python<'py>,
    words: PyReadonlyArray2<'py, u64>,
    valid: Option<PyReadonlyArray1<'py, bool>>,
    other: Option<PyReadonlyArray2<'py, u64>>,
    other_valid: Option<PyReadonlyArray1<'py, bool>>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
    memory: Option<usize>,
    tell: Option<Py<PyAny>>,
) -> PyResult<PairArrays<'py>> {
    let width = words.shape()[1];
    let ask = Ask { bits, width, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory };
    let left = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
    let right = match &other {
        None => None,
        Some(other) => Some((other.as_slice()?, other_valid.as_ref().map(|valid| valid.as_slice()).transpose()?)),
    };
    let long = left.0.len() + right.map_or(0, |right| right.0.len()) > QUICK;
    let pairs = answered_aloud(py, long, tell.as_ref(), |cancel| {
        with_words!(width, W => match right {
            None => ask.self_join::<W>(left.0, left.1, cancel),
            Some(right) => ask.cross_join::<W>(left, right, cancel),
        })
    })?;
    pair_arrays(py, &pairs)
}

type NearestArrays<'py> = (PairArrays<'py>, Bound<'py, PyArray1<u32>>);

/// The pairs of a join that are among the *most* nearest of either side, and the rows of those that were cut. Only rows of
/// equal numbers *within*, of different ones *across*, and not both *fixed* are compared.
#[pyfunction]
#[pyo3(name = "join_nearest")]
#[pyo3(signature = (words, valid, most, within, across, fixed, bits, radius, recall, threads, plan, memory, tell))]
#[allow(clippy::too_many_arguments)]
fn join_nearest_pairs<'py>(
    py: Python<'py>,
    words: PyReadonlyArray2<'py, u64>,
    valid: Option<PyReadonlyArray1<'py, bool>>,
    most: u32,
    within: Option<PyReadonlyArray1<'py, i32>>,
    across: Option<PyReadonlyArray1<'py, i32>>,
    fixed: Option<PyReadonlyArray1<'py, bool>>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
    memory: Option<usize>,
    tell: Option<Py<PyAny>>,
) -> PyResult<NearestArrays<'py>> {
    let (count, width) = (words.shape()[0], words.shape()[1]);
    let ask = Ask { bits, width, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory };
    let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
    let comparable = Comparable {
        within: within.as_ref().map(|codes| codes.as_slice()).transpose()?,
        across: across.as_ref().map(|codes| codes.as_slice()).transpose()?,
        fixed: fixed.as_ref().map(|fixed| fixed.as_slice()).transpose()?,
    };
    let sizes =
        [comparable.within.map(<[_]>::len), comparable.across.map(<[_]>::len), comparable.fixed.map(<[_]>::len)];
    if most == 0 || sizes.iter().flatten().any(|&size| size != count) {
        return Err(InvalidValue::new_err(
            "one number and one flag for each row, and at least one neighbour are needed",
        ));
    }
    let (pairs, crowded) = answered_aloud(
        py,
        words.len() > QUICK,
        tell.as_ref(),
        |cancel| with_words!(width, W => ask.join_nearest::<W>(words, valid, most, comparable, cancel)),
    )?;
    Ok((pair_arrays(py, &pairs)?, crowded.into_pyarray(py)))
}

pub fn pair_arrays<'py>(py: Python<'py>, pairs: &[Pair]) -> PyResult<PairArrays<'py>> {
    let (left, right, distance) = interruptible(py, false, |_| {
        (
            gathered(pairs.iter().map(|pair| pair.left)),
            gathered(pairs.iter().map(|pair| pair.right)),
            gathered(pairs.iter().map(|pair| pair.distance as u16)),
        )
    })?;
    Ok((left.into_pyarray(py), right.into_pyarray(py), distance.into_pyarray(py)))
}

#[pyfunction]
#[pyo3(signature = (words, valid, other_rows, bits, radius, recall, threads, plan))]
#[allow(clippy::too_many_arguments)]
fn join_plan<'py>(
    py: Python<'py>,
    words: PyReadonlyArray2<'py, u64>,
    valid: Option<PyReadonlyArray1<'py, bool>>,
    other_rows: Option<usize>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let width = words.shape()[1];
    let ask = Ask { bits, width, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory: None };
    let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
    let plan = answered(py, words.len() > QUICK, |_| {
        with_words!(width, W => {
            let mut wide = Vec::new();
            let numbers = rows_of::<W>(words, width, valid, &mut wide);
            let plain = numbers.is_none() && width == W;
            let rows = if plain { words.as_chunks::<W>().0 } else { &wide };
            let sample = Sample::new(rows.as_flattened(), W, &all_bits(bits, W));
            let task = Task {
                rows: rows.len(),
                other: other_rows,
                words: W,
                radius,
                recall,
                threads: ask.threads,
            };
            let force = match ask.force {
                Force::Cut { blocks, extra } => Force::Cut { blocks: blocks.min(radius + 1), extra },
                force => force,
            };
            Ok(crate::plan::plan(&sample, &task, force))
        })
    })?;
    let result = PyDict::new(py);
    let method = match plan.method {
        Method::Brute => "brute",
        Method::Blocks => "blocks",
        Method::Sampling => "sampling",
    };
    result.set_item("method", method)?;
    let blocks: Vec<(u32, u32, u32)> =
        plan.blocks.iter().map(|block| (block.bits, block.radius, block.parts)).collect();
    result.set_item("blocks", blocks)?;
    result.set_item("tables", plan.masks.len())?;
    let key_bits = plan.masks.first().map_or(0, |mask| mask.iter().map(|word| word.count_ones()).sum());
    result.set_item("key_bits", key_bits)?;
    result.set_item("collision", plan.collision)?;
    result.set_item("seconds", plan.seconds)?;
    result.set_item("bytes", plan.bytes)?;
    result.set_item("recall", plan.recall)?;
    Ok(result)
}

#[pyfunction]
#[pyo3(signature = (words, valid, order, bits, radius, threads, plan))]
#[allow(clippy::too_many_arguments)]
fn groups<'py>(
    py: Python<'py>,
    words: PyReadonlyArray2<'py, u64>,
    valid: Option<PyReadonlyArray1<'py, bool>>,
    order: Option<PyReadonlyArray1<'py, u32>>,
    bits: usize,
    radius: u32,
    threads: Option<usize>,
    plan: Option<&str>,
) -> PyResult<GroupArrays<'py>> {
    let (count, width) = (words.shape()[0], words.shape()[1]);
    let force = force_of(plan)?;
    let threads = thread_count(threads);
    let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
    let order = order.as_ref().map(|order| order.as_slice()).transpose()?;
    let groups = answered(py, words.len() > QUICK, |cancel| {
        with_words!(width, W => {
            let mut wide = Vec::new();
            let numbers = rows_of::<W>(words, width, valid, &mut wide);
            let plain = numbers.is_none() && width == W;
            let rows = if plain { words.as_chunks::<W>().0 } else { &wide };
            // The order speaks of all rows; the walk sees only those with information.
            let own = match (&numbers, order) {
                (Some(numbers), Some(order)) => {
                    let mut place = filled(count, u32::MAX);
                    for (at, &row) in (0u32..).zip(numbers) {
                        place[row as usize] = at;
                    }
                    let mut own = room_for(numbers.len());
                    own.extend(order.iter().map(|&row| place[row as usize]).filter(|&at| at != u32::MAX));
                    Some(own)
                }
                (None, Some(order)) => Some(copied(order)),
                (_, None) => None::<Vec<u32>>,
            };
            let job = Job::new(radius, threads, cancel);
            let stars = cluster::stars(rows, &all_bits(bits, W), own.as_deref(), force, &job)?;
            let Some(numbers) = numbers else {
                return Ok(stars.listed(order));
            };
            let mut all = Stars::alone(count);
            for (at, &row) in numbers.iter().enumerate() {
                all.center[row as usize] = numbers[stars.center[at] as usize];
                all.distance[row as usize] = stars.distance[at];
            }
            Ok(all.listed(order))
        })
    })?;
    Ok((
        groups.label.into_pyarray(py),
        groups.centers.into_pyarray(py),
        groups.member.into_pyarray(py),
        groups.center.into_pyarray(py),
        groups.distance.into_pyarray(py),
    ))
}

#[pyfunction]
fn components<'py>(
    py: Python<'py>,
    left: PyReadonlyArray1<'py, u32>,
    right: PyReadonlyArray1<'py, u32>,
    count: usize,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let pairs = left.iter().copied().zip(right.iter().copied());
    let labels = interruptible(py, false, |_| cluster::components(pairs, count))?;
    let beyond = || format!("a pair names a row beyond the {count} rows; pass n = the number of rows joined");
    Ok(labels.ok_or_else(|| InvalidValue::new_err(beyond()))?.into_pyarray(py))
}

#[pyfunction]
fn set_simd(level: &str) -> PyResult<()> {
    caught(|| simd::set_level(level).map_err(InvalidValue::new_err))
}

#[pyfunction]
fn simd_level() -> PyResult<&'static str> {
    caught(|| Ok(simd::level().name()))
}
