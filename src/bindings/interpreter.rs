//! One interpreter a process: types and exceptions are made once and kept, so a second one must not see them.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::{ffi, prelude::*};

/// ImportError in every interpreter of this process but the one that imports the core first.
pub(super) fn only_the_first(_py: Python) -> PyResult<()> {
    static FIRST: AtomicI64 = AtomicI64::new(-1);
    // SAFETY: `_py` says that this thread is attached, so there is a current interpreter.
    let current = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match FIRST.compare_exchange(-1, current, Ordering::SeqCst, Ordering::SeqCst) {
        Err(first) if first != current => Err(PyImportError::new_err(
            "neardup runs in one interpreter a process, and another one has imported it; use processes instead of sub-interpreters",
        )),
        _ => Ok(()),
    }
}
