#![forbid(unsafe_code)]
//! Python's view of the ids that were seen before.

use std::sync::{Mutex, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::InvalidValue;
use super::interrupt::caught;
use super::texts::{strings, text_of};
use crate::documents::uniques::Uniques;
use crate::system::memory::gathered;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeUniques>()
}

/// A growing set of ids, each with the place where it was first met.
#[pyclass(frozen, name = "Uniques", module = "neardup._native")]
#[derive(Default)]
struct NativeUniques(Mutex<Uniques>);

#[pymethods]
impl NativeUniques {
    #[new]
    fn new() -> PyResult<NativeUniques> {
        caught(|| Ok(NativeUniques::default()))
    }

    /// The place where each of *ids* was first met: its own place if never before.
    fn add<'py>(
        &self,
        ids: &Bound<'py, PyList>,
        places: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        caught(|| {
            let (names, places) = (strings(ids)?, places.as_slice()?);
            if names.len() != places.len() {
                return Err(InvalidValue::new_err("one place for each id is needed"));
            }
            let mut uniques = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let add = |(name, place)| uniques.add(text_of(name).as_bytes(), place);
            let first: Vec<i64> = gathered(names.iter().zip(places.iter().copied()).map(add));
            Ok(first.into_pyarray(ids.py()))
        })
    }

    /// The memory that it takes.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        caught(|| Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).bytes()))
    }
}
