#![forbid(unsafe_code)]
//! Python's strings.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::errors::InvalidType;
use super::interrupt::caught;
use crate::arrow::array::ArrowTexts;
use crate::system::memory;
use crate::text::texts::{Texts, without_surrogates};

/// Many texts: a list of str, or an Arrow array.
pub enum ManyTexts<'py> {
    Strings(Vec<Bound<'py, PyString>>),
    Arrow(ArrowTexts),
}

impl<'py> FromPyObject<'_, 'py> for ManyTexts<'py> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<ManyTexts<'py>> {
        match given.cast::<PyList>() {
            Ok(list) => Ok(ManyTexts::Strings(caught(|| strings(&list))?)),
            Err(_) => Ok(ManyTexts::Arrow(given.extract()?)),
        }
    }
}

impl ManyTexts<'_> {
    pub fn texts(&self) -> PyResult<Texts<'_>> {
        caught(|| match self {
            ManyTexts::Strings(strings) => Ok(Texts::of_strings(strings.iter().map(text_of))),
            ManyTexts::Arrow(array) => Ok(Texts::of_arrow(array)?),
        })
    }
}

/// Bytes that become Python's.
pub struct Bytes(pub Vec<u8>);

impl<'py> IntoPyObject<'py> for Bytes {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = PyErr;

    /// As `PyBytes::new`, but with an error instead of a panic if there is no memory.
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        PyBytes::new_with(py, self.0.len(), |out| {
            out.copy_from_slice(&self.0);
            Ok(())
        })
    }
}

/// The text of a Python string; lone surrogates become U+FFFD.
pub fn text_of<'a>(string: &'a Bound<PyString>) -> Cow<'a, str> {
    string.to_str().map_or_else(
        |_| {
            // Encoded with the surrogates let through, each is three bytes that are not UTF-8.
            let encoded = string.call_method1("encode", ("utf-8", "surrogatepass"));
            match encoded.and_then(|bytes| bytes.extract::<Vec<u8>>()) {
                Ok(bytes) => Cow::Owned(without_surrogates(&bytes)),
                Err(_) => Cow::Owned(string.to_string_lossy().into_owned()),
            }
        },
        Cow::Borrowed,
    )
}

/// The strings of a list of str; a clear error for anything else.
pub fn strings<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let mut found = memory::room_for(list.len());
    for (row, item) in list.iter().enumerate() {
        let string = item.cast_into::<PyString>().map_err(|error| {
            let kind = error.into_inner().get_type();
            InvalidType::new_err(format!("text {row} must be a str, not {kind}"))
        })?;
        memory::push(&mut found, string);
    }
    Ok(found)
}
