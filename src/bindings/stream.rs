#![forbid(unsafe_code)]
//! Python's view of a stream index: the native parts of `neardup.compat.simhash`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::exceptions::{PyAssertionError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit, intern};

use super::arrays::Row;
use super::errors::InvalidValue;
use super::ids::words_of;
use super::interrupt::caught;
use crate::compat::shared::SharedStream;
use crate::compat::words::{Words, lowest};

/// The native part of `neardup.compat.simhash.Simhash`: its value is in the object, where a query
/// finds it at once. What few of them have is stored elsewhere, so that the object fits a cache line.
#[pyclass(frozen, subclass, module = "neardup._native")]
#[derive(Default)]
pub struct SimhashValue {
    word: AtomicU64,
    f: AtomicU32,
    /// The value is not an `int` of up to 64 bits: it is in the rest.
    apart: AtomicBool,
    rest: Mutex<Option<Box<Rest>>>,
}

/// Objects of Python's, each in its place.
type Rest = [Option<Py<PyAny>>; 2];
const VALUE: usize = 0;
const OPTIONS: usize = 1;

impl SimhashValue {
    /// The rest, locked. While it is, nothing is called that may run Python code.
    fn rest(&self) -> MutexGuard<'_, Option<Box<Rest>>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, py: Python, place: usize) -> Option<Py<PyAny>> {
        self.rest().as_ref().and_then(|rest| rest[place].as_ref().map(|own| own.clone_ref(py)))
    }

    /// What was there before. Dropped where the rest is free again: it may run Python code that looks at this object.
    #[must_use]
    fn put(&self, place: usize, new: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        let mut rest = self.rest();
        if new.is_none() && rest.is_none() {
            return None;
        }
        std::mem::replace(&mut rest.get_or_insert_default()[place], new)
    }

    /// The value, if it is that of a word, and the number of bits.
    #[inline(always)]
    fn word(&self) -> (Option<u64>, usize) {
        let word = if self.apart.load(Ordering::Relaxed) { None } else { Some(self.word.load(Ordering::Relaxed)) };
        (word, self.f.load(Ordering::Relaxed) as usize)
    }
}

#[pymethods]
impl SimhashValue {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<PyTuple>, _options: Option<&Bound<PyDict>>) -> PyResult<SimhashValue> {
        caught(|| Ok(SimhashValue::default()))
    }

    #[getter]
    fn value(&self, py: Python) -> PyResult<Py<PyAny>> {
        caught(|| match self.word() {
            (Some(word), _) => word.into_py_any(py),
            (None, _) => self.get(py, VALUE).into_py_any(py),
        })
    }

    #[setter]
    fn set_value(&self, value: &Bound<PyAny>) -> PyResult<()> {
        caught(|| {
            let word = value.cast_exact::<PyInt>().ok().and_then(|value| value.extract().ok());
            let old = self.put(VALUE, word.is_none().then(|| value.clone().unbind()));
            self.word.store(word.unwrap_or(0), Ordering::Relaxed);
            self.apart.store(word.is_none(), Ordering::Relaxed);
            drop(old);
            Ok(())
        })
    }

    #[getter]
    fn f(&self) -> PyResult<u32> {
        caught(|| Ok(self.f.load(Ordering::Relaxed)))
    }

    #[setter]
    fn set_f(&self, f: u32) -> PyResult<()> {
        caught(|| {
            self.f.store(f, Ordering::Relaxed);
            Ok(())
        })
    }

    #[getter]
    fn _options(&self, py: Python) -> PyResult<Option<Py<PyAny>>> {
        caught(|| Ok(self.get(py, OPTIONS)))
    }

    #[setter]
    #[allow(non_snake_case)]
    fn set__options(&self, options: Py<PyAny>) -> PyResult<()> {
        caught(|| {
            drop(self.put(OPTIONS, Some(options)));
            Ok(())
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock is in the middle of a change, and alive.
        match self.rest.try_lock() {
            Ok(rest) => rest.iter().flat_map(|rest| rest.iter()).try_for_each(|own| visit.call(own)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        let old = self.rest().take();
        drop(old);
    }
}

/// Named fingerprints that are queried one by one. `_start` gives it its shape.
#[pyclass(frozen, subclass, module = "neardup._native")]
#[derive(Default)]
pub struct StreamIndex {
    /// The class of which it is known that its value is the one in the object.
    plain: OnceLock<Py<PyType>>,
    stream: SharedStream,
}

/// The lowest bits of an integer.
fn lowest_of(value: &Bound<PyAny>, bits: usize) -> PyResult<Words> {
    match value.extract() {
        Ok(word) => Ok(lowest(word, bits)),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        Err(_) => {
            let ones = 1u8.into_pyobject(value.py())?.lshift(bits)?.sub(1)?;
            let low = value.call_method0("__index__")?.bitand(ones)?;
            Ok(Words::More(words_of(&low, bits.div_ceil(64))?))
        }
    }
}

/// An id as text, as the original writes it.
fn text<'py>(id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    match id.cast_exact::<PyString>() {
        Ok(text) => Ok(text.clone()),
        Err(_) => id.str(),
    }
}

fn utf8<'a>(text: &'a Bound<PyString>) -> PyResult<&'a [u8]> {
    let invalid = |_| {
        let shown = text.repr().map_or_else(|_| String::new(), |shown| shown.to_string_lossy().into_owned());
        InvalidValue::new_err(format!("the id {shown} is not valid text; it cannot be stored"))
    };
    text.to_str().map(str::as_bytes).map_err(invalid)
}

/// Put a name into a list; *failed* is the first error.
fn append_to(names: &Bound<PyList>, name: &[u8], failed: &mut PyResult<()>) {
    let added = PyString::from_bytes(names.py(), name).and_then(|name| names.append(name));
    if failed.is_ok() {
        *failed = added;
    }
}

impl StreamIndex {
    /// The value of a `Simhash`, if it has as many bits as the index.
    fn value(&self, simhash: &Bound<PyAny>) -> PyResult<Words> {
        let (py, own) = (simhash.py(), self.stream.bits());
        if self.plain.get().is_some_and(|plain| simhash.get_type().is(plain))
            && let Ok(simhash) = simhash.cast::<SimhashValue>()
            && let (Some(word), bits) = simhash.get().word()
            && bits == own
        {
            return Ok(lowest(word, own));
        }
        let bits = simhash.getattr(intern!(py, "f"))?;
        if bits.extract::<usize>().ok() != Some(own) {
            return Err(PyAssertionError::new_err(format!("cannot index {bits} bits among {own}")));
        }
        lowest_of(&simhash.getattr(intern!(py, "value"))?, own)
    }
}

#[pymethods]
impl StreamIndex {
    /// A class made of this one may take what it likes.
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<PyTuple>, _options: Option<&Bound<PyDict>>) -> PyResult<StreamIndex> {
        caught(|| Ok(StreamIndex::default()))
    }

    /// Start again. A block is given by its first bit and the one after it. Objects of the class *plain*
    /// have the value that the native part of them has.
    fn _start(
        &self,
        plain: Bound<PyType>,
        bits: usize,
        radius: u32,
        blocks: Vec<(usize, usize)>,
        limit: u32,
    ) -> PyResult<()> {
        caught(|| {
            self.stream.start(bits, radius, &blocks, limit, &aside(plain.py()))?;
            self.plain.get_or_init(|| plain.unbind());
            Ok(())
        })
    }

    /// Put in a fingerprint; one of up to 1,024 bits waits for the next query, to be added together with others.
    fn add(&self, obj_id: &Bound<PyAny>, simhash: &Bound<PyAny>) -> PyResult<()> {
        caught(|| {
            let (value, name) = (self.value(simhash)?, text(obj_id)?);
            Ok(self.stream.add(utf8(&name)?, &value, &aside(simhash.py()))?)
        })
    }

    /// Take out the entry of that id and fingerprint, if there is one.
    fn delete(&self, obj_id: &Bound<PyAny>, simhash: &Bound<PyAny>) -> PyResult<()> {
        caught(|| {
            let (value, name) = (self.value(simhash)?, text(obj_id)?);
            Ok(self.stream.delete(utf8(&name)?, &value, &aside(simhash.py()))?)
        })
    }

    /// The ids of what is within the radius, the nearest first.
    fn get_near_dups<'py>(own: &Bound<'py, Self>, simhash: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = own.py();
        let (names, crowds) = caught(|| {
            let (value, stream) = (own.get().value(simhash)?, &own.get().stream);
            stream.prefetch(&value, &aside(py))?; // on its way while the list is made
            let (names, mut failed) = (PyList::empty(py), Ok(()));
            let crowds = stream.near(&value, &mut |name| append_to(&names, name, &mut failed), &aside(py))?;
            failed.map(|()| (names, crowds))
        })?;
        if !crowds.is_empty() {
            own.call_method1(intern!(py, "_warn"), (simhash, crowds))?;
        }
        Ok(names)
    }

    /// The ids and the words of all entries.
    fn _entries<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Row<u64>)> {
        caught(|| {
            let (names, mut failed) = (PyList::empty(py), Ok(()));
            let words = self.stream.entries(&mut |name| append_to(&names, name, &mut failed), &aside(py))?;
            failed.map(|()| (names, Row(words)))
        })
    }

    /// The words of everything that was removed, or queried and not found.
    fn _asked(&self, py: Python) -> PyResult<Row<u64>> {
        caught(|| Ok(Row(self.stream.asked(&aside(py))?)))
    }
}

/// Lets go of the interpreter while it works.
fn aside(py: Python) -> impl Fn(&mut (dyn FnMut() + Send)) {
    move |work| py.detach(work)
}
