#![forbid(unsafe_code)]
//! numpy's arrays, there and back.
//!
//! The Python side hands over arrays that nothing else writes: they are borrowed, not copied.

use numpy::{Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use numpy::{PyUntypedArrayMethods, ndarray::ArrayView1};
use pyo3::prelude::*;

use super::interrupt::caught;
use crate::join::rows::{Ask, Given};
use crate::system::fault::Fault;
use crate::system::memory::gathered;

pub type Words<'py> = PyReadonlyArray2<'py, u64>;
pub type Flags<'py> = Option<PyReadonlyArray1<'py, bool>>;
pub type Codes<'py> = Option<PyReadonlyArray1<'py, i32>>;
pub type Numbers<'py> = PyReadonlyArray1<'py, i64>;
/// How many threads a call uses, if it says so.
pub type Threads = Option<usize>;
pub type Pairs = (Row<u32>, Row<u32>, Row<u16>);

/// Fingerprints (`pairs.arrays`): their words, and which have information, unless all have.
#[derive(FromPyObject)]
pub struct Prints<'py>(Words<'py>, Flags<'py>);

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
pub fn slice<'a, T: Element>(array: &'a Option<PyReadonlyArray1<T>>) -> PyResult<Option<&'a [T]>> {
    Ok(array.as_ref().map(|array| array.as_slice()).transpose()?)
}

/// The rows of an array of any layout that has `N` columns.
pub struct Rows<T, const N: usize>(pub Vec<[T; N]>);

impl<'py, T: Element + Copy, const N: usize> FromPyObject<'_, 'py> for Rows<T, N> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Rows<T, N>> {
        let array: PyReadonlyArray2<'py, T> = given.extract()?;
        if array.shape()[1] != N {
            return Err(Fault::value(format!("an array must have {N} columns, not {}", array.shape()[1])).into());
        }
        let row = |row: ArrayView1<'_, T>| match row.as_slice().and_then(|row| row.try_into().ok()) {
            Some(row) => row,
            None => std::array::from_fn(|at| row[at]),
        };
        caught(|| Ok(Rows(gathered(array.as_array().rows().into_iter().map(row)))))
    }
}

/// Values that become an array.
pub struct Row<T>(pub Vec<T>);

/// Values that become an array of this many columns.
pub struct Table<T>(pub Vec<T>, pub usize);

impl<T, const N: usize> From<Vec<[T; N]>> for Table<T> {
    fn from(rows: Vec<[T; N]>) -> Table<T> {
        Table(rows.into_flattened(), N)
    }
}

impl<'py, T: Element> IntoPyObject<'py> for Row<T> {
    type Target = PyArray1<T>;
    type Output = Bound<'py, PyArray1<T>>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        caught(|| Ok(self.0.into_pyarray(py)))
    }
}

impl<'py, T: Element> IntoPyObject<'py> for Table<T> {
    type Target = PyArray2<T>;
    type Output = Bound<'py, PyArray2<T>>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let count = self.0.len() / self.1.max(1);
        caught(|| self.0.into_pyarray(py).reshape([count, self.1]))
    }
}

/// Prints, of which there are fewer than 2^31, as numpy likes to index with them.
pub fn signed(rows: Vec<u32>) -> Row<i32> {
    Row(rows.into_iter().map(|row| row as i32).collect())
}

/// Pairs by column.
pub fn pairs((left, right, distance): (Vec<u32>, Vec<u32>, Vec<u16>)) -> Pairs {
    (Row(left), Row(right), Row(distance))
}
