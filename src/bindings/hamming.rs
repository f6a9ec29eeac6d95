#![forbid(unsafe_code)]
//! Python's view of the Hamming engine.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::arrays::{Codes, Flags, Pairs, Prints, Request, Row, pairs, slice};
use super::interrupt::{Tell, answered, caught, interruptible, watched};
use crate::hamming::plan::Plan;
use crate::join::cluster;
use crate::join::lists::Comparable;
use crate::join::resolve::columns;
use crate::join::rows::{banded_rows, cross_rows, groups_of_rows, join_rows, nearest_rows, planned};
use crate::system::fault::Fault;
use crate::system::parallel::thread_count;
use crate::system::simd;

type Places<'py> = PyReadonlyArray1<'py, u32>;

#[pyfunction]
pub fn join(py: Python, rows: Prints, other: Option<Prints>, request: Request, tell: Tell) -> PyResult<Pairs> {
    let (ask, left) = (request.ask()?, rows.given()?);
    let right = other.as_ref().map(Prints::given).transpose()?;
    let long = !left.are_few(right.map_or(0, |right| right.words.len()));
    let found = watched(py, long, &tell, |cancel| {
        let found = match right {
            None => join_rows(left, &ask, cancel),
            Some(right) => cross_rows(left, right, &ask, cancel),
        };
        found.map(|pairs| columns(&pairs))
    });
    found.map(pairs)
}

/// The pairs of a join that are among the *most* nearest of either side, the rows of those that were cut, and the plan.
/// Only rows of equal numbers *within*, of different ones *across*, and not both *fixed* are compared; with *bands*, only
/// those that share one.
#[pyfunction]
pub fn join_nearest(
    py: Python,
    rows: Prints,
    bands: Option<PyReadonlyArray2<u32>>,
    most: u32,
    comparable: (Codes, Codes, Flags),
    request: Request,
    tell: Tell,
) -> PyResult<(Pairs, Row<u32>, Option<Facts>)> {
    let (within, across, fixed) = &comparable;
    let comparable = Comparable { within: slice(within)?, across: slice(across)?, fixed: slice(fixed)? };
    let (ask, rows) = (request.ask()?, rows.given()?);
    let bands = bands.as_ref().map(|bands| bands.as_slice()).transpose()?;
    let (columns, found) = watched(py, !rows.are_few(0), &tell, |cancel| {
        let found = match bands {
            None => nearest_rows(rows, most, comparable, &ask, cancel),
            Some(bands) => banded_rows(rows, bands, most, comparable, &ask, cancel),
        };
        found.map(|found| (columns(&found.pairs), found))
    })?;
    Ok((pairs(columns), Row(found.crowded), found.plan.as_ref().map(facts)))
}

/// A plan: the method, its blocks (bits, radius, parts), its tables and the bits of their keys; collisions, seconds,
/// bytes and recall.
type Facts = (&'static str, Vec<(u32, u32, u32)>, usize, u32, f64, f64, u64, f64);

#[pyfunction]
pub fn join_plan(py: Python, rows: Prints, other: Option<usize>, request: Request) -> PyResult<Facts> {
    let (ask, rows) = (request.ask()?, rows.given()?);
    Ok(facts(&interruptible(py, !rows.are_few(0), |_| planned(rows, other, &ask))?))
}

fn facts(plan: &Plan) -> Facts {
    let blocks = plan.blocks.iter().map(|block| (block.bits, block.radius, block.parts)).collect();
    let (tables, bits) = (plan.masks.len(), plan.key_bits());
    (plan.method.name(), blocks, tables, bits, plan.collision, plan.seconds, plan.bytes, plan.recall)
}

type Groups = (Row<u32>, Row<u32>, Row<u32>, Row<u32>, Row<u16>);

#[pyfunction]
pub fn groups(py: Python, rows: Prints, order: Option<Places>, request: Request) -> PyResult<Groups> {
    let (ask, rows, order) = (request.ask()?, rows.given()?, slice(&order)?);
    let found = answered(py, !rows.are_few(0), |cancel| groups_of_rows(rows, order, &ask, cancel))?;
    Ok((Row(found.label), Row(found.centers), Row(found.member), Row(found.center), Row(found.distance)))
}

#[pyfunction]
pub fn components(py: Python, left: Places, right: Places, count: usize) -> PyResult<Row<u32>> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let long = left.len() > cluster::MANY;
    answered(py, long, |cancel| cluster::components(left, right, count, cancel)).map(Row)
}

#[pyfunction]
pub fn set_simd(level: &str) -> PyResult<()> {
    caught(|| Ok(simd::set_level(level).map_err(Fault::Value)?))
}

#[pyfunction]
pub fn simd_level() -> PyResult<&'static str> {
    caught(|| Ok(simd::level().name()))
}

#[pyfunction]
pub fn simd_levels() -> PyResult<Vec<&'static str>> {
    caught(|| Ok(simd::here().map(simd::Level::name).collect()))
}

/// How many threads a call uses that names no number.
#[pyfunction]
pub fn usual_threads() -> PyResult<usize> {
    caught(|| Ok(thread_count(None)))
}
