#![forbid(unsafe_code)]
//! Long work that Ctrl-C can stop, and panics that end in an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use super::LimitReached;
use crate::memory::{self, NoRoom};
use crate::parallel::Cancel;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Do *work*; an error where it panics. Every binding goes through here, so that Python never sees PyO3's
/// PanicException, which `except Exception` lets pass.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    if !memory::set_aside() {
        return Err(no_memory());
    }
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(error_of(&*panic)))
}

fn no_memory() -> PyErr {
    PyMemoryError::new_err("not enough memory")
}

/// What Python is told of a panic.
fn error_of(panic: &(dyn Any + Send)) -> PyErr {
    if panic.is::<NoRoom>() {
        return no_memory();
    }
    PyRuntimeError::new_err("internal error in the native core; please report it")
}

/// Do *work* with the interpreter released. *long* work goes on in a second thread, while this
/// one looks for signals; when one raises, *work* is told, and ends.
pub fn interruptible<T: Send>(py: Python<'_>, long: bool, work: impl FnOnce(&Cancel) -> T + Send) -> PyResult<T> {
    watched(py, long, None, work)
}

/// The same; *tell* is called now and then with the share of long work that is done.
pub fn watched<T: Send>(
    py: Python<'_>,
    long: bool,
    tell: Option<&Py<PyAny>>,
    work: impl FnOnce(&Cancel) -> T + Send,
) -> PyResult<T> {
    if !memory::set_aside() {
        return Err(no_memory());
    }
    let cancel = Cancel::new();
    let guarded = |cancel: &Cancel| catch_unwind(AssertUnwindSafe(|| work(cancel))).map_err(|panic| error_of(&*panic));
    if !long || !memory::has(memory::THREAD) {
        return py.detach(|| guarded(&cancel));
    }
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            let cancel = &cancel;
            let worker = std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    let _done = done; // dropped, and so heard, when the work ends
                    guarded(cancel)
                })
                .map_err(|error| LimitReached::new_err(format!("the system gives no thread: {error}")))?;
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK_EVERY) {
                let look = |py: Python<'_>| {
                    py.check_signals()?;
                    tell.map_or(Ok(()), |tell| tell.call1(py, (cancel.share(),)).map(drop))
                };
                if raised.is_none()
                    && let Err(error) = Python::attach(look)
                {
                    cancel.set();
                    raised = Some(error);
                }
            }
            match (worker.join(), raised) {
                (Err(panic), _) => Err(error_of(&*panic)),
                (Ok(_), Some(error)) => Err(error),
                (Ok(result), None) => result,
            }
        })
    })
}
