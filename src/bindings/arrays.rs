#![forbid(unsafe_code)]
//! numpy's arrays, there and back.
//!
//! The Python side hands over arrays that nothing else writes: they are borrowed, not copied.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use numpy::{PyUntypedArrayMethods, ndarray::ArrayView2};
use pyo3::prelude::*;

use crate::join::rows::{Ask, Given};

pub type Row<'py, T> = Bound<'py, PyArray1<T>>;
pub type Table<'py, T> = Bound<'py, PyArray2<T>>;
pub type Words<'py> = PyReadonlyArray2<'py, u64>;
pub type Flags<'py> = Option<PyReadonlyArray1<'py, bool>>;
pub type Codes<'py> = Option<PyReadonlyArray1<'py, i32>>;
pub type Numbers<'py> = PyReadonlyArray1<'py, i64>;
pub type Pairs<'py> = (Row<'py, u32>, Row<'py, u32>, Row<'py, u16>);

/// Fingerprints (`pairs.arrays`): their words, and which have information, unless all have.
#[derive(FromPyObject)]
pub struct Prints<'py>(pub Words<'py>, Flags<'py>);

impl Prints<'_> {
    pub fn given(&self) -> PyResult<Given<'_>> {
        Ok(Given { words: self.0.as_slice()?, width: self.0.shape()[1], valid: slice(&self.1)? })
    }
}

/// The request of a join: bits, radius, recall, threads, plan, memory.
#[derive(FromPyObject)]
pub struct Request(usize, u32, f64, Option<usize>, Option<String>, Option<usize>);

impl Request {
    pub fn ask(&self) -> PyResult<Ask> {
        Ok(Ask::new((self.0, self.1, self.2), self.3, self.4.as_deref(), self.5)?)
    }
}

/// The values of an array, if there is one.
pub fn slice<'a, T: Element>(array: &'a Option<PyReadonlyArray1<'_, T>>) -> PyResult<Option<&'a [T]>> {
    Ok(array.as_ref().map(|array| array.as_slice()).transpose()?)
}

/// The rows of an array of any layout, if each has `N` values.
pub fn rows<T: Copy, const N: usize>(array: ArrayView2<'_, T>) -> Option<Vec<[T; N]>> {
    let row = |row: numpy::ndarray::ArrayView1<'_, T>| std::array::from_fn(|at| row[at]);
    (array.ncols() == N).then(|| array.rows().into_iter().map(row).collect())
}

/// A table of *width* columns.
pub fn table<T: Element>(py: Python<'_>, values: Vec<T>, width: usize) -> PyResult<Table<'_, T>> {
    let count = values.len() / width.max(1);
    values.into_pyarray(py).reshape([count, width])
}

/// Prints, of which there are fewer than 2^31, as numpy likes to index with them.
pub fn signed(py: Python<'_>, rows: Vec<u32>) -> Row<'_, i32> {
    rows.into_iter().map(|row| row as i32).collect::<Vec<_>>().into_pyarray(py)
}

/// Pairs by column.
pub fn pairs(py: Python<'_>, (left, right, distance): (Vec<u32>, Vec<u32>, Vec<u16>)) -> Pairs<'_> {
    (left.into_pyarray(py), right.into_pyarray(py), distance.into_pyarray(py))
}
