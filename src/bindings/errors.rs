#![forbid(unsafe_code)]
//! What the core says was wrong, as what Python raises: a caller catches one kind of error.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError};
use pyo3::prelude::*;

use crate::index::any::Refusal;
use crate::index::opened::Refused;
use crate::join::rows::Failure;
use crate::system::fault::Fault;
use crate::verify::verifier::Stop;

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
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Stopped => PyRuntimeError::new_err("stopped"),
            Failure::TooMany(count) => LimitReached::new_err(format!(
                "the answer has {count} pairs or more; use join_batches to stream them, or groups"
            )),
            Failure::Wrong(fault) => fault.into(),
        }
    }
}

impl From<Refusal> for PyErr {
    fn from(refusal: Refusal) -> PyErr {
        match refusal {
            Refusal::Mixed => InvalidType::new_err("the ids of an index are all integers or all str; use one kind"),
            Refusal::Full => LimitReached::new_err("an index holds at most 4294967294 fingerprints"),
            Refusal::Memory => {
                PyMemoryError::new_err("not enough memory for these fingerprints; the index is as it was")
            }
            Refusal::Torn => PyRuntimeError::new_err("an error left the index half changed; load it or build it again"),
            Refusal::Stopped => Failure::Stopped.into(),
        }
    }
}

impl From<Stop> for PyErr {
    fn from(stop: Stop) -> PyErr {
        match stop {
            Stop::Io(error) => PyOSError::new_err(error.to_string()),
            Stop::Wrong(fault) => fault.into(),
            // Only by an exception, which `interruptible` has raised.
            Stop::Cancelled => InvalidValue::new_err("cancelled"),
        }
    }
}

/// Why the file at *path* gave no index.
pub fn unread(refused: Refused, path: &Path) -> PyErr {
    let path = path.display();
    match refused {
        Refused::Changed => ChangedFile::new_err(format!("'{path}' was changed while it was read; load it again")),
        Refused::Damaged(what) => DamagedFile::new_err(format!("{path}: {what}")),
        Refused::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(format!("not enough memory for '{path}'"))
        }
        Refused::Io(error) => match error.raw_os_error() {
            Some(number) => {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, reason, path.to_string()))
            }
            None => PyOSError::new_err(format!("{path}: {error}")),
        },
    }
}

/// The same of a file that changed under its map.
pub fn changed(path: &Path) -> PyErr {
    let how = "was changed while it was in use; load it again (map=False reads it into memory)";
    ChangedFile::new_err(format!("'{}' {how}", path.display()))
}
