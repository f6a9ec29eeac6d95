#![forbid(unsafe_code)]
//! Documents in order, one of each text, and which of them stay.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::InvalidValue;
use super::arrow::ArrowTexts;
use super::interrupt::{caught, interruptible};
use crate::documents::order::{self, Key};
use crate::documents::stars;
use crate::system::memory::gathered;
use crate::system::parallel::thread_count;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ordered, module)?)?;
    module.add_function(wrap_pyfunction!(one_of_each, module)?)?;
    module.add_function(wrap_pyfunction!(most_alike, module)?)?;
    module.add_function(wrap_pyfunction!(stars_of_pairs, module)?)
}

/// The places of *rows* in the order of their *keys* (numbers of all rows, and whether the highest comes first),
/// and where those are equal in that of their ids.
#[pyfunction]
fn ordered<'py>(
    py: Python<'py>,
    ids: ArrowTexts,
    rows: Option<PyReadonlyArray1<'py, i32>>,
    keys: Vec<(PyReadonlyArray1<'py, u32>, bool)>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let rows = rows.as_ref().map(|rows| rows.as_slice()).transpose()?;
    let keys = keys
        .iter()
        .map(|(numbers, highest)| Ok(Key { numbers: numbers.as_slice()?, highest: *highest }))
        .collect::<PyResult<Vec<_>>>()?;
    let count = rows.map_or(ids.len(), <[i32]>::len);
    let known = |row: &i32| usize::try_from(*row).is_ok_and(|row| row < ids.len());
    if i32::try_from(count).is_err()
        || keys.iter().any(|key| key.numbers.len() != ids.len())
        || !rows.is_none_or(|rows| rows.iter().all(known))
    {
        return Err(InvalidValue::new_err("rows must be known ones, and every id have its keys"));
    }
    let found = interruptible(py, false, |_| {
        let id = |row: usize| ids.item(row).ok().flatten().unwrap_or_default();
        signed(order::order(rows, count, &keys, id, thread_count(threads)))
    })?;
    Ok(found.into_pyarray(py))
}

type Texts<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);

/// The document that represents each text, the text of each document (-1: none), and for each text the first
/// that is equal except for its code (only with *codes*).
#[pyfunction]
fn one_of_each<'py>(
    py: Python<'py>,
    content: PyReadonlyArray2<'py, u64>,
    codes: Option<PyReadonlyArray1<'py, u32>>,
    order: PyReadonlyArray1<'py, i32>,
) -> PyResult<Texts<'py>> {
    let width = content.shape()[1];
    let (rows, rest) = content.as_slice()?.as_chunks::<2>();
    let codes = codes.as_ref().map(|codes| codes.as_slice()).transpose()?;
    let order = order.as_slice()?;
    let order = caught(|| Ok(gathered(order.iter().map(|row| *row as u32))))?;
    let known = order.iter().all(|row| (*row as usize) < rows.len());
    if width != 2 || !rest.is_empty() || !known || codes.is_some_and(|codes| codes.len() != rows.len()) {
        return Err(InvalidValue::new_err("content must have two words a row, and the order known rows"));
    }
    let found = interruptible(py, false, |_| order::one_of_each(rows, codes, &order))?;
    Ok((
        signed(found.document).into_pyarray(py),
        found.of_document.into_pyarray(py),
        signed(found.twin).into_pyarray(py),
    ))
}

/// The valid rows that hold the most frequent value.
#[pyfunction]
fn most_alike<'py>(
    py: Python<'py>,
    words: PyReadonlyArray2<'py, u64>,
    valid: PyReadonlyArray1<'py, bool>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let width = words.shape()[1];
    let (words, valid) = (words.as_slice()?, valid.as_slice()?);
    if width == 0 || words.len() != width * valid.len() {
        return Err(InvalidValue::new_err("one flag for each row of words is needed"));
    }
    Ok(interruptible(py, false, |_| order::most_alike(words, width, valid))?.into_pyarray(py))
}

/// The keeper of each of *count* documents, numbered in keep order: pairs are sorted, the first before the second.
#[pyfunction(name = "stars")]
fn stars_of_pairs<'py>(
    py: Python<'py>,
    count: u32,
    left: PyReadonlyArray1<'py, i32>,
    right: PyReadonlyArray1<'py, i32>,
    fixed: Option<PyReadonlyArray1<'py, bool>>,
) -> PyResult<Bound<'py, PyArray1<i32>>> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let fixed = fixed.as_ref().map(|fixed| fixed.as_slice()).transpose()?;
    if left.len() != right.len() || i32::try_from(count).is_err() {
        return Err(InvalidValue::new_err("a pair needs two sides, and documents numbers below 2^31"));
    }
    if fixed.is_some_and(|fixed| fixed.len() != count as usize) {
        return Err(InvalidValue::new_err("one flag for each document is needed"));
    }
    // What is negative becomes a number that no document has.
    let pairs = left.iter().zip(right).map(|(&one, &other)| (one as u32, other as u32));
    let keeper = interruptible(py, false, |_| stars::stars(count, pairs, fixed))?;
    let keeper = keeper.ok_or_else(|| InvalidValue::new_err("pairs must be sorted, of known documents"))?;
    Ok(signed(keeper).into_pyarray(py))
}

/// Rows, of which there are fewer than 2^31, as numpy likes to index with them.
fn signed(rows: Vec<u32>) -> Vec<i32> {
    rows.into_iter().map(|row| row as i32).collect()
}
