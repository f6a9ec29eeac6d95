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
use crate::hamming::plan::{Force, Method};
use crate::join::cluster;
use crate::join::lists::Comparable;
use crate::join::resolve::Pair;
use crate::join::rows::{Ask, Failure, Given, cross_rows, groups_of_rows, join_rows, nearest_rows, planned};
use crate::system::memory::gathered;
use crate::system::parallel::{Cancel, thread_count};
use crate::system::simd;

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

/// Work on fewer words than this ends before anyone could press a key.
const QUICK: usize = 30_000;

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

fn force_of(text: Option<&str>) -> PyResult<Force> {
    let Some(text) = text else { return Ok(Force::Any) };
    let known = "brute, blocks, blocks:COUNT,EXTRA, sampling";
    Force::parse(text).ok_or_else(|| InvalidValue::new_err(format!("unknown plan '{text}'; known: {known}")))
}

pub type Words<'py> = PyReadonlyArray2<'py, u64>;
pub type Flags<'py> = Option<PyReadonlyArray1<'py, bool>>;
type Codes<'py> = Option<PyReadonlyArray1<'py, i32>>;

/// The rows of an array, and which of them have information.
pub fn given<'a>(words: &'a Words<'_>, valid: &'a Flags<'_>) -> PyResult<Given<'a>> {
    Ok(Given { words: words.as_slice()?, width: words.shape()[1], valid: slice(valid)? })
}

fn slice<'a, T: numpy::Element>(array: &'a Option<PyReadonlyArray1<'_, T>>) -> PyResult<Option<&'a [T]>> {
    Ok(array.as_ref().map(|array| array.as_slice()).transpose()?)
}

pub type PairArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u16>>);

#[pyfunction]
#[pyo3(signature = (words, valid, other, other_valid, bits, radius, recall, threads, plan, memory, tell))]
#[allow(clippy::too_many_arguments)]
fn join<'py>(
    py: Python<'py>,
    words: Words<'py>,
    valid: Flags<'py>,
    other: Option<Words<'py>>,
    other_valid: Flags<'py>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
    memory: Option<usize>,
    tell: Option<Py<PyAny>>,
) -> PyResult<PairArrays<'py>> {
    let ask = Ask { bits, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory };
    let left = given(&words, &valid)?;
    let right = other.as_ref().map(|other| given(other, &other_valid)).transpose()?;
    let long = left.words.len() + right.map_or(0, |right| right.words.len()) > QUICK;
    let pairs = answered_aloud(py, long, tell.as_ref(), |cancel| match right {
        None => join_rows(left, &ask, cancel),
        Some(right) => cross_rows(left, right, &ask, cancel),
    })?;
    pair_arrays(py, &pairs)
}

/// The pairs of a join that are among the *most* nearest of either side, and the rows of those that were cut. Only
/// rows of equal numbers *within*, of different ones *across*, and not both *fixed* are compared.
#[pyfunction]
#[pyo3(name = "join_nearest")]
#[pyo3(signature = (words, valid, most, within, across, fixed, bits, radius, recall, threads, plan, memory, tell))]
#[allow(clippy::too_many_arguments)]
fn join_nearest_pairs<'py>(
    py: Python<'py>,
    words: Words<'py>,
    valid: Flags<'py>,
    most: u32,
    within: Codes<'py>,
    across: Codes<'py>,
    fixed: Flags<'py>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
    memory: Option<usize>,
    tell: Option<Py<PyAny>>,
) -> PyResult<(PairArrays<'py>, Bound<'py, PyArray1<u32>>)> {
    let ask = Ask { bits, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory };
    let rows = given(&words, &valid)?;
    let comparable = Comparable { within: slice(&within)?, across: slice(&across)?, fixed: slice(&fixed)? };
    let sizes =
        [comparable.within.map(<[_]>::len), comparable.across.map(<[_]>::len), comparable.fixed.map(<[_]>::len)];
    if most == 0 || sizes.iter().flatten().any(|&size| size != words.shape()[0]) {
        return Err(InvalidValue::new_err(
            "one number and one flag for each row, and at least one neighbour are needed",
        ));
    }
    let (pairs, crowded) = answered_aloud(py, rows.words.len() > QUICK, tell.as_ref(), |cancel| {
        nearest_rows(rows, most, comparable, &ask, cancel)
    })?;
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
    words: Words<'py>,
    valid: Flags<'py>,
    other_rows: Option<usize>,
    bits: usize,
    radius: u32,
    recall: f64,
    threads: Option<usize>,
    plan: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let ask = Ask { bits, radius, recall, threads: thread_count(threads), force: force_of(plan)?, memory: None };
    let rows = given(&words, &valid)?;
    let plan = interruptible(py, rows.words.len() > QUICK, |_| planned(rows, other_rows, &ask))?;
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

type GroupArrays<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u16>>,
);

#[pyfunction]
#[pyo3(signature = (words, valid, order, bits, radius, threads, plan))]
#[allow(clippy::too_many_arguments)]
fn groups<'py>(
    py: Python<'py>,
    words: Words<'py>,
    valid: Flags<'py>,
    order: Option<PyReadonlyArray1<'py, u32>>,
    bits: usize,
    radius: u32,
    threads: Option<usize>,
    plan: Option<&str>,
) -> PyResult<GroupArrays<'py>> {
    let ask = Ask { bits, radius, recall: 1.0, threads: thread_count(threads), force: force_of(plan)?, memory: None };
    let (rows, order) = (given(&words, &valid)?, slice(&order)?);
    let groups = answered(py, rows.words.len() > QUICK, |cancel| groups_of_rows(rows, order, &ask, cancel))?;
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
