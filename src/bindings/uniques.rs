#![forbid(unsafe_code)]
//! Python's view of the ids that were seen before.

use std::sync::{Mutex, PoisonError};

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrays::{Numbers, Row};
use super::interrupt::caught;
use super::texts::{strings, text_of};
use crate::documents::uniques::Uniques;

/// A growing set of ids, each with the place where it was first met.
#[pyclass(frozen, name = "Uniques", module = "neardup._native")]
#[derive(Default)]
pub struct NativeUniques(Mutex<Uniques>);

#[pymethods]
impl NativeUniques {
    #[new]
    fn new() -> PyResult<NativeUniques> {
        caught(|| Ok(NativeUniques::default()))
    }

    /// The place where each of *ids* was first met: its own place if never before.
    fn add<'py>(&self, ids: &Bound<'py, PyList>, places: Numbers<'py>) -> PyResult<Row<'py, i64>> {
        caught(|| {
            let (names, places) = (strings(ids)?, places.as_slice()?);
            let mut uniques = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(uniques.add_all(names.iter().map(text_of), places)?.into_pyarray(ids.py()))
        })
    }

    /// The memory that it takes.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        caught(|| Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes()))
    }
}
