#![forbid(unsafe_code)]
//! Documents in order, one of each text, and which of them stay.

use numpy::{IntoPyArray, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::arrays::{Flags, Row, Words, signed, slice};
use super::interrupt::answered;
use crate::arrow::array::ArrowTexts;
use crate::documents::order::{self, Key};
use crate::documents::stars;
use crate::system::fault::require;
use crate::system::parallel::thread_count;

/// The places of *rows* in the order of their *keys* (numbers of all rows, and whether the highest comes first),
/// and where those are equal in that of their ids.
#[pyfunction]
pub fn ordered<'py>(
    py: Python<'py>,
    ids: ArrowTexts,
    rows: Option<PyReadonlyArray1<'py, i32>>,
    keys: Vec<(PyReadonlyArray1<'py, u32>, bool)>,
    threads: Option<usize>,
) -> PyResult<Row<'py, i32>> {
    let rows = slice(&rows)?;
    let keys = keys.iter().map(|(numbers, highest)| Ok(Key { numbers: numbers.as_slice()?, highest: *highest }));
    let keys = keys.collect::<PyResult<Vec<_>>>()?;
    Ok(signed(py, answered(py, false, |_| order::ordered(&ids, rows, &keys, thread_count(threads)))?))
}

/// The document that represents each text, the text of each document (-1: none), and for each text the first
/// that is equal except for its code (only with *codes*).
#[pyfunction]
pub fn one_of_each<'py>(
    py: Python<'py>,
    content: Words<'py>,
    codes: Option<PyReadonlyArray1<'py, u32>>,
    order: PyReadonlyArray1<'py, i32>,
) -> PyResult<(Row<'py, i32>, Row<'py, i32>, Row<'py, i32>)> {
    let (pairs, _) = content.as_slice()?.as_chunks::<2>();
    require(content.shape()[1] == 2, "content must have two words per row, and the order known rows")?;
    let (codes, order) = (slice(&codes)?, order.as_slice()?);
    let found = answered(py, false, |_| order::one_of_each(pairs, codes, order.iter().copied()))?;
    Ok((signed(py, found.document), found.of_document.into_pyarray(py), signed(py, found.twin)))
}

/// The valid rows that hold the most frequent value.
#[pyfunction]
pub fn most_alike<'py>(
    py: Python<'py>,
    words: Words<'py>,
    valid: PyReadonlyArray1<'py, bool>,
) -> PyResult<Row<'py, u32>> {
    let (width, words, valid) = (words.shape()[1], words.as_slice()?, valid.as_slice()?);
    Ok(answered(py, false, |_| order::most_alike(words, width, valid))?.into_pyarray(py))
}

/// The keeper of each of *count* documents, numbered in keep order: pairs are sorted, the first before the second.
#[pyfunction(name = "stars")]
pub fn stars_of_pairs<'py>(
    py: Python<'py>,
    count: u32,
    left: PyReadonlyArray1<'py, i32>,
    right: PyReadonlyArray1<'py, i32>,
    fixed: Flags<'py>,
) -> PyResult<Row<'py, i32>> {
    let (left, right, fixed) = (left.as_slice()?, right.as_slice()?, slice(&fixed)?);
    Ok(signed(py, answered(py, false, |_| stars::stars_of(count, left, right, fixed))?))
}
