#![forbid(unsafe_code)]
//! Long work that Ctrl-C, or another thread, can stop, and panics that end in an error.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use crate::system::fault::Fault;
use crate::system::memory::{self, NoRoom};
use crate::system::parallel::Cancel;
use crate::system::watch::{Ended, in_second_thread};

thread_local! {
    /// What this thread calls beside looking for signals; an error that it raises ends the work.
    static LOOK: RefCell<Option<Py<PyAny>>> = const { RefCell::new(None) };
}

/// Raise MemoryError where a new thread would not find what it needs to begin.
#[pyfunction]
pub fn check_thread_memory() -> PyResult<()> {
    caught(|| if memory::has(memory::THREAD) { Ok(()) } else { Err(no_memory()) })
}

/// From now on long calls that this thread makes call *look*, too, every 50 ms; what they called before.
#[pyfunction]
#[pyo3(signature = (look))]
pub fn watch(look: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    caught(|| Ok(LOOK.with(|own| own.replace(look))))
}

/// What may end the work of this thread: a signal, or the function that it was given.
fn look(py: Python) -> PyResult<()> {
    py.check_signals()?;
    // Let go of before the call, which may set another one.
    let own = LOOK.with(|own| own.borrow().as_ref().map(|look| look.clone_ref(py)));
    own.map_or(Ok(()), |own| own.call0(py).map(drop))
}

/// Do *work*; an error where it panics. Every binding goes through here, so that Python never sees PyO3's
/// PanicException, which `except Exception` lets pass.
pub fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    if !memory::set_aside() {
        return Err(no_memory());
    }
    guarded(work)?
}

pub fn no_memory() -> PyErr {
    PyMemoryError::new_err("not enough memory")
}

/// What Python is told about a panic.
fn error_of(panic: &(dyn Any + Send)) -> PyErr {
    if panic.is::<NoRoom>() { no_memory() } else { internal() }
}

fn internal() -> PyErr {
    PyRuntimeError::new_err("internal error in the native core; please report it")
}

/// What *work* gives; an error where it panics.
fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| error_of(&*panic))
}

/// Who is told which share of long work is done.
pub type Tell = Option<Py<PyAny>>;

/// Do *work* with the interpreter released. *long* work runs in a second thread, while this
/// one checks for signals and calls what `watch` set; when one raises, *work* is told, and ends.
pub fn interruptible<T: Send>(py: Python, long: bool, work: impl FnOnce(&Cancel) -> T + Send) -> PyResult<T> {
    released(py, long, &None, work)
}

fn released<T: Send>(py: Python, long: bool, tell: &Tell, work: impl FnOnce(&Cancel) -> T + Send) -> PyResult<T> {
    if !memory::set_aside() {
        return Err(no_memory());
    }
    let cancel = Cancel::new();
    if !long || !memory::has(memory::THREAD) {
        return py.detach(|| guarded(|| work(&cancel)));
    }
    py.detach(|| {
        let (mut work, mut result) = (Some(work), None);
        let look = |share: f64| {
            Python::attach(|py| {
                look(py)?;
                tell.as_ref().map_or(Ok(()), |tell| tell.call1(py, (share,)).map(drop))
            })
        };
        let ended = in_second_thread(&cancel, look, &mut || result = work.take().map(|work| guarded(|| work(&cancel))));
        match ended {
            Ok(()) => result.unwrap_or_else(|| Err(internal())),
            Err(Ended::Unwanted(raised)) => Err(raised),
            Err(Ended::Panicked(panic)) => Err(error_of(&*panic)),
        }
    })
}

/// `interruptible` work that may end without an answer.
pub fn answered<T: Send, E: Send + Into<Fault>>(
    py: Python,
    long: bool,
    work: impl FnOnce(&Cancel) -> Result<T, E> + Send,
) -> PyResult<T> {
    watched(py, long, &None, work)
}

/// The same; *tell* is called now and then with the share of long work that is done.
pub fn watched<T: Send, E: Send + Into<Fault>>(
    py: Python,
    long: bool,
    tell: &Tell,
    work: impl FnOnce(&Cancel) -> Result<T, E> + Send,
) -> PyResult<T> {
    released(py, long, tell, work)?.map_err(|error| error.into().into())
}
