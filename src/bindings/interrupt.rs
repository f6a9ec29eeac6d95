#![forbid(unsafe_code)]
//! Long work that Ctrl-C can stop, and panics that end in an error.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

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
    internal()
}

fn internal() -> PyErr {
    PyRuntimeError::new_err("internal error in the native core; please report it")
}

/// What *work* gives; an error where it panics.
fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| error_of(&*panic))
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
    if !long || !memory::has(memory::THREAD) {
        return py.detach(|| guarded(|| work(&cancel)));
    }
    py.detach(|| {
        // Where the system gives no thread the work is still here, and is done without looking for signals.
        let work = Mutex::new(Some(work));
        let taken = || work.lock().unwrap_or_else(PoisonError::into_inner).take();
        std::thread::scope(|scope| {
            let (done, wait) = channel::<()>();
            let (cancel, taken) = (&cancel, &taken);
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
                let _done = done; // dropped, and so heard, when the work ends
                taken().map(|work| guarded(|| work(cancel)))
            });
            let Ok(worker) = worker else {
                return taken().map_or_else(|| Err(internal()), |work| guarded(|| work(cancel)));
            };
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
                (Ok(result), None) => result.unwrap_or_else(|| Err(internal())),
            }
        })
    })
}
