#![forbid(unsafe_code)]
//! Python's view of a stream index: the native parts of `neardup.compat.simhash`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use numpy::IntoPyArray;
use pyo3::exceptions::{PyAssertionError, PyMemoryError, PyOverflowError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

use super::arrays::Row;
use super::errors::{InvalidValue, LimitReached};
use super::interrupt::caught;
use crate::compat;
use crate::compat::stream::Stream;
use crate::compat::words::{Words, lowest};
use crate::system::memory::{append, attempt};

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

#[derive(Default)]
struct Rest {
    value: Option<Py<PyAny>>,
    options: Option<Py<PyAny>>,
}

impl SimhashValue {
    /// The rest, locked. While it is, nothing is called that may run Python code.
    fn rest(&self) -> MutexGuard<'_, Option<Box<Rest>>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<SimhashValue> {
        caught(|| Ok(SimhashValue::default()))
    }

    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        caught(|| {
            if let (Some(word), _) = self.word() {
                return Ok(word.into_pyobject(py)?.into_any());
            }
            let value = self.rest().as_ref().and_then(|rest| rest.value.as_ref().map(|value| value.clone_ref(py)));
            Ok(value.unwrap_or_else(|| py.None()).into_bound(py))
        })
    }

    #[setter]
    fn set_value(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        caught(|| {
            let word = value.cast_exact::<PyInt>().ok().and_then(|value| value.extract().ok());
            let old = if word.is_none() {
                self.rest().get_or_insert_default().value.replace(value.clone().unbind())
            } else {
                self.rest().as_mut().and_then(|rest| rest.value.take())
            };
            self.word.store(word.unwrap_or(0), Ordering::Relaxed);
            self.apart.store(word.is_none(), Ordering::Relaxed);
            drop(old); // last: it may run Python code that looks at this object
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
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        caught(|| {
            let options = self.rest().as_ref().and_then(|rest| rest.options.as_ref().map(|own| own.clone_ref(py)));
            Ok(options.map(|options| options.into_bound(py)))
        })
    }

    #[setter]
    #[allow(non_snake_case)]
    fn set__options(&self, options: Bound<'_, PyAny>) -> PyResult<()> {
        caught(|| {
            let old = self.rest().get_or_insert_default().options.replace(options.unbind());
            drop(old);
            Ok(())
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Whoever holds the lock is in the middle of a change, and alive.
        let Ok(rest) = self.rest.try_lock() else {
            return Ok(());
        };
        match &*rest {
            Some(rest) => visit.call(&rest.value).and_then(|()| visit.call(&rest.options)),
            None => Ok(()),
        }
    }

    fn __clear__(&self) {
        let old = self.rest().take();
        drop(old);
    }
}

/// Named fingerprints that are queried one by one. `_start` gives it its shape.
#[pyclass(frozen, subclass, module = "neardup._native")]
pub struct StreamIndex {
    bits: AtomicUsize,
    /// The class of which it is known that its value is the one in the object.
    plain: OnceLock<Py<PyType>>,
    stream: Mutex<Box<dyn Stream>>,
}

/// The lowest bits of an integer.
fn words(value: &Bound<'_, PyAny>, bits: usize) -> PyResult<Words> {
    match value.extract() {
        Ok(word) => Ok(lowest(word, bits)),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        Err(_) => {
            let ones = 1u8.into_pyobject(value.py())?.lshift(bits)?.sub(1)?;
            let low = value.call_method0("__index__")?.bitand(ones)?;
            let bytes = low.call_method1("to_bytes", (bits.div_ceil(64) * 8, "little"))?;
            let words = bytes.cast::<PyBytes>()?.as_bytes().as_chunks().0.iter().copied().map(u64::from_le_bytes);
            Ok(Words::More(words.collect()))
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

fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a [u8]> {
    let invalid = |_| {
        let shown = text.repr().map_or_else(|_| String::new(), |shown| shown.to_string_lossy().into_owned());
        InvalidValue::new_err(format!("the id {shown} is not valid text; it cannot be stored"))
    };
    text.to_str().map(str::as_bytes).map_err(invalid)
}

impl StreamIndex {
    /// The value of a `Simhash`, if it has as many bits as the index.
    fn value(&self, simhash: &Bound<'_, PyAny>) -> PyResult<Words> {
        let (py, own) = (simhash.py(), self.bits.load(Ordering::Relaxed));
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
        words(&simhash.getattr(intern!(py, "value"))?, own)
    }

    /// The entries, locked. While they are, nothing is called that may run Python code.
    fn lock(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Box<dyn Stream>>> {
        loop {
            match self.stream.try_lock() {
                Ok(stream) => return Ok(stream),
                // What was under way when the work was unwound may be there by half.
                Err(TryLockError::Poisoned(_)) => {
                    return Err(PyRuntimeError::new_err("an error left the index half changed; build it again"));
                }
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.stream.lock())),
            }
        }
    }

    fn settled(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Box<dyn Stream>>> {
        let mut stream = self.lock(py)?;
        if stream.is_behind() {
            let waiting = &mut *stream;
            py.detach(|| waiting.settle());
        }
        Ok(stream)
    }
}

#[pymethods]
impl StreamIndex {
    /// A class made of this one may take what it likes.
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<StreamIndex> {
        caught(|| {
            let stream = Mutex::new(compat::stream(64, 0, &[], 0));
            Ok(StreamIndex { bits: AtomicUsize::new(64), plain: OnceLock::new(), stream })
        })
    }

    /// Start again. A block is given by its first bit and the one after it. Objects of the class *plain*
    /// have the value that the native part of them has.
    fn _start(
        &self,
        plain: Bound<'_, PyType>,
        bits: usize,
        radius: u32,
        blocks: Vec<(usize, usize)>,
        limit: u32,
    ) -> PyResult<()> {
        caught(|| {
            let fresh = compat::stream_of(bits, radius, &blocks, limit)?;
            self.stream.clear_poison(); // nothing of what was there stays
            let mut own = self.lock(plain.py())?;
            self.plain.get_or_init(|| plain.unbind());
            self.bits.store(bits, Ordering::Relaxed);
            *own = fresh;
            Ok(())
        })
    }

    /// Put in a fingerprint; one of up to 1,024 bits waits for the next query, to be added together with others.
    fn add(&self, obj_id: &Bound<'_, PyAny>, simhash: &Bound<'_, PyAny>) -> PyResult<()> {
        caught(|| {
            let value = self.value(simhash)?;
            let name = text(obj_id)?;
            let name = utf8(&name)?;
            let mut stream = self.lock(simhash.py())?;
            match attempt(|| stream.add(name, &value)) {
                Some(true) => Ok(()),
                Some(false) => Err(LimitReached::new_err("an index holds at most 4294967294 fingerprints")),
                None => Err(PyMemoryError::new_err("not enough memory for this fingerprint")),
            }
        })
    }

    /// Take out the entry of that id and fingerprint, if there is one.
    fn delete(&self, obj_id: &Bound<'_, PyAny>, simhash: &Bound<'_, PyAny>) -> PyResult<()> {
        caught(|| {
            let value = self.value(simhash)?;
            let name = text(obj_id)?;
            let name = utf8(&name)?;
            self.settled(simhash.py())?.delete(name, &value);
            Ok(())
        })
    }

    /// The ids of what is within the radius, the nearest first.
    fn get_near_dups<'py>(own: &Bound<'py, Self>, simhash: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = own.py();
        let (names, crowds) = caught(|| {
            let value = own.get().value(simhash)?;
            own.get().lock(py)?.prefetch(&value); // on its way while the list is made
            let names = PyList::empty(py);
            let mut failed = None;
            let crowds = own.get().settled(py)?.near(&value, &mut |name| {
                let added = PyString::from_bytes(py, name).and_then(|name| names.append(name));
                failed = failed.take().or(added.err());
            });
            failed.map_or(Ok((names, crowds)), Err)
        })?;
        if !crowds.is_empty() {
            own.call_method1(intern!(py, "_warn"), (simhash, crowds))?;
        }
        Ok(names)
    }

    /// The ids and the words of all entries.
    fn _entries<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Row<'py, u64>)> {
        caught(|| {
            let width = self.bits.load(Ordering::Relaxed).div_ceil(64);
            let (names, mut words, mut failed) = (PyList::empty(py), Vec::new(), None);
            self.settled(py)?.each(&mut |name, row| {
                let added = PyString::from_bytes(py, name).and_then(|name| names.append(name));
                failed = failed.take().or(added.err());
                append(&mut words, &row[..width]);
            });
            failed.map_or(Ok((names, words.into_pyarray(py))), Err)
        })
    }

    /// The words of everything that was removed, or queried and not found.
    fn _asked<'py>(&self, py: Python<'py>) -> PyResult<Row<'py, u64>> {
        caught(|| {
            let width = self.bits.load(Ordering::Relaxed).div_ceil(64);
            let mut words = Vec::new();
            self.lock(py)?.each_asked(&mut |row| append(&mut words, &row[..width]));
            Ok(words.into_pyarray(py))
        })
    }
}
