#![forbid(unsafe_code)]
//! What the core says was wrong, as what Python raises: a caller catches one kind of error.

use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::system::fault::Fault;

pyo3::import_exception!(neardup.errors, ChangedFile);
pyo3::import_exception!(neardup.errors, DamagedFile);
pyo3::import_exception!(neardup.errors, InvalidType);
pyo3::import_exception!(neardup.errors, InvalidValue);
pyo3::import_exception!(neardup.errors, LimitReached);

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> PyErr {
        match fault {
            Fault::Type(what) => InvalidType::new_err(what),
            Fault::Value(what) => InvalidValue::new_err(what),
            Fault::Limit(what) => LimitReached::new_err(what),
            Fault::Memory(what) => PyMemoryError::new_err(what),
            Fault::Changed(what) => ChangedFile::new_err(what),
            Fault::Damaged(what) => DamagedFile::new_err(what),
            Fault::System(Some(number), what, path) => PyOSError::new_err((number, what, path)),
            Fault::System(None, what, path) if path.is_empty() => PyOSError::new_err(what),
            Fault::System(None, what, path) => PyOSError::new_err(format!("{path}: {what}")),
            Fault::Runtime(what) => PyRuntimeError::new_err(what),
        }
    }
}
