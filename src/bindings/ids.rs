#![forbid(unsafe_code)]
//! Ids and integers of an index, there and back.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use pyo3::{IntoPyObjectExt, intern};

use super::arrays::Row;
use super::interrupt::caught;
use crate::index::any::Names;
use crate::index::ids::{Id, Ids};
use crate::system::memory::gathered;

/// An id: an int, or a str.
pub enum OneId {
    Number(i64),
    Text(String),
}

impl FromPyObject<'_, '_> for OneId {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<OneId> {
        Ok(match given.cast::<PyString>() {
            Ok(text) => OneId::Text(text.to_string_lossy().into_owned()),
            Err(_) => OneId::Number(given.extract()?),
        })
    }
}

impl OneId {
    pub fn id(&self) -> Id<'_> {
        match self {
            OneId::Number(number) => Id::Number(*number),
            OneId::Text(text) => Id::Text(text.as_bytes()),
        }
    }
}

/// Many ids: an int64 array, or a list of str.
pub enum ManyIds<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Ids),
}

impl<'py> FromPyObject<'_, 'py> for ManyIds<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<ManyIds<'py>> {
        if let Ok(numbers) = given.extract() {
            return Ok(ManyIds::Numbers(numbers));
        }
        caught(|| {
            let mut texts = Ids::texts();
            for id in given.try_iter()? {
                texts.push(Id::Text(id?.cast::<PyString>()?.to_str()?.as_bytes()));
            }
            Ok(ManyIds::Texts(texts))
        })
    }
}

impl ManyIds<'_> {
    pub fn names(&self) -> PyResult<Names<'_>> {
        Ok(match self {
            ManyIds::Numbers(numbers) => Names::Numbers(numbers.as_slice()?),
            ManyIds::Texts(texts) => Names::Texts(texts),
        })
    }
}

/// An int or a str.
pub fn name<'py>(py: Python<'py>, id: Id<'_>) -> PyResult<Bound<'py, PyAny>> {
    match id {
        Id::Number(number) => number.into_bound_py_any(py),
        Id::Text(text) => PyString::from_bytes(py, text)?.into_bound_py_any(py),
    }
}

/// An integer array, or a list of str.
impl<'py> IntoPyObject<'py> for Ids {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = || (0..self.len() as u32).map(|at| self.get(at));
        if matches!(self, Ids::Texts { .. }) {
            let texts = PyList::empty(py);
            all().try_for_each(|id| texts.append(name(py, id)?))?;
            return Ok(texts.into_any());
        }
        let number = |id| if let Id::Number(number) = id { number } else { 0 };
        Row(caught(|| Ok(gathered(all().map(number))))?).into_bound_py_any(py)
    }
}

/// The words of an integer that has no more.
pub fn words_of(value: &Bound<PyAny>, count: usize) -> PyResult<Vec<u64>> {
    let bytes = value.call_method1(intern!(value.py(), "to_bytes"), (count * 8, "little"))?;
    let bytes = bytes.cast::<PyBytes>()?.as_bytes();
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
