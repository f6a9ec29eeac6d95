//! Python's view of the index, and of joins that are streamed through one.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};

use super::hamming::{Flags, PairArrays, Words, answered, given, pair_arrays};
use super::interrupt::caught;
use super::{ChangedFile, DamagedFile, InvalidType, LimitReached};
use crate::index::Hit;
use crate::index::any::{AnyIndex, Named, Refusal};
use crate::index::batches::PairBatches;
use crate::index::file::{self, About, Stamp};
use crate::index::ids::{Id, Ids};
use crate::index::opened::{self, Opened, Refused, Watch};
use crate::system::memory::{gathered, push, room_for};
use crate::system::parallel::thread_count;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<HammingIndex>()?;
    module.add_class::<PairStream>()?;
    module.add_function(wrap_pyfunction!(check_index, module)?)?;
    module.add_function(wrap_pyfunction!(index_stamp, module)?)?;
    Ok(())
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
        }
    }
}

/// The native part of `neardup.Index`. Readers share it; a writer has it alone.
#[pyclass(frozen, module = "neardup._native")]
struct HammingIndex {
    inner: RwLock<AnyIndex>,
    bits: usize,
    radius: u32,
    watch: Option<Watch>,
}

type HitArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

impl HammingIndex {
    fn of(index: AnyIndex, watch: Option<Watch>) -> HammingIndex {
        let (bits, radius) = (index.bits, index.radius);
        HammingIndex { inner: RwLock::new(index), bits, radius, watch }
    }

    /// Do *work* on what was checked: a file that changed under its map is an error, as is a panic.
    fn sound<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let Some(watch) = self.watch.as_ref().filter(|watch| watch.is_needed()) else {
            return caught(work);
        };
        let check = || match watch.is_sound() {
            true => Ok(()),
            false => Err(changed(
                &watch.path,
                "was changed while it was in use; load it again (map=False reads it into memory)",
            )),
        };
        check()?;
        let done = caught(work);
        check()?;
        done
    }

    /// The index, to be read. A free lock is taken at once; only a taken one is waited for without the interpreter.
    fn read(&self, py: Python<'_>) -> Result<RwLockReadGuard<'_, AnyIndex>, Refusal> {
        let inner = match self.inner.try_read() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                py.detach(|| Waited(self.inner.read().unwrap_or_else(PoisonError::into_inner))).0
            }
        };
        inner.sound().map(|()| inner)
    }

    /// The index, to be changed, for one that does not hold the interpreter.
    fn write(&self) -> RwLockWriteGuard<'_, AnyIndex> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn words_of(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let width = self.bits.div_ceil(64);
        let words = if width == 1 {
            vec![value.extract()?]
        } else {
            let bytes = value.call_method1("to_bytes", (width * 8, "little"))?;
            let bytes = bytes.cast::<PyBytes>()?.as_bytes();
            bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        match (self.bits % 64, words.last()) {
            (own @ 1.., Some(last)) if last >> own != 0 => {
                Err(PyOverflowError::new_err("bits above those of the index"))
            }
            _ => Ok(words),
        }
    }
}

fn changed(path: &Path, how: &str) -> PyErr {
    ChangedFile::new_err(format!("'{}' {how}", path.display()))
}

fn hit_arrays<'py>(py: Python<'py>, index: &AnyIndex, hits: &[Hit]) -> PyResult<HitArrays<'py>> {
    let query: Vec<u32> = gathered(hits.iter().map(|hit| hit.query));
    let distance = if hits.iter().all(|hit| hit.distance <= u32::from(u16::MAX)) {
        gathered(hits.iter().map(|hit| hit.distance as u16)).into_pyarray(py).into_any()
    } else {
        // Only the nearest of the widest fingerprints can be so far away.
        gathered(hits.iter().map(|hit| hit.distance)).into_pyarray(py).into_any()
    };
    Ok((query.into_pyarray(py), names(py, index, hits.iter().map(|hit| hit.entry))?, distance))
}

/// The ids of entries: an integer array, or a list of texts.
fn names<'py>(
    py: Python<'py>,
    index: &AnyIndex,
    entries: impl ExactSizeIterator<Item = u32>,
) -> PyResult<Bound<'py, PyAny>> {
    if matches!(index.ids, Ids::Texts { .. }) {
        let texts = PyList::empty(py);
        for entry in entries {
            texts.append(name(py, index.ids.get(entry))?)?;
        }
        return Ok(texts.into_any());
    }
    let numbers = gathered(entries.map(|entry| match index.ids.get(entry) {
        Id::Number(number) => number,
        Id::Text(_) => 0,
    }));
    Ok(numbers.into_pyarray(py).into_any())
}

fn name<'py>(py: Python<'py>, id: Id<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match id {
        Id::Number(number) => number.into_pyobject(py)?.into_any(),
        Id::Text(text) => PyString::from_bytes(py, text)?.into_any(),
    })
}

/// An id as it comes from Python: an int, or a str.
enum OneId {
    Number(i64),
    Text(String),
}

impl OneId {
    fn of(id: &Bound<'_, PyAny>) -> PyResult<OneId> {
        Ok(match id.cast::<PyString>() {
            Ok(text) => OneId::Text(text.to_string_lossy().into_owned()),
            Err(_) => OneId::Number(id.extract()?),
        })
    }

    fn id(&self) -> Id<'_> {
        match self {
            OneId::Number(number) => Id::Number(*number),
            OneId::Text(text) => Id::Text(text.as_bytes()),
        }
    }
}

/// Ids as they come from Python: an int64 array, or a list of str.
enum ManyIds<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<PyBackedStr>),
}

impl<'py> ManyIds<'py> {
    fn of(ids: &Bound<'py, PyAny>) -> PyResult<ManyIds<'py>> {
        match ids.extract::<PyReadonlyArray1<'py, i64>>() {
            Ok(numbers) => Ok(ManyIds::Numbers(numbers)),
            Err(_) => {
                let mut texts = room_for(ids.len()?);
                for id in ids.try_iter()? {
                    push(&mut texts, id?.extract()?);
                }
                Ok(ManyIds::Texts(texts))
            }
        }
    }

    fn list(&self) -> PyResult<Vec<Id<'_>>> {
        Ok(match self {
            ManyIds::Numbers(numbers) => gathered(numbers.as_slice()?.iter().map(|&number| Id::Number(number))),
            ManyIds::Texts(texts) => gathered(texts.iter().map(|text| Id::Text(text.as_bytes()))),
        })
    }
}

#[pymethods]
impl HammingIndex {
    #[new]
    fn new(bits: usize, radius: u32) -> PyResult<HammingIndex> {
        caught(|| Ok(HammingIndex::of(AnyIndex::new(bits, radius), None)))
    }

    #[getter]
    fn bits(&self) -> usize {
        self.bits
    }

    #[getter]
    fn radius(&self) -> u32 {
        self.radius
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        caught(|| Ok(self.read(py)?.len()))
    }

    /// Bytes of the entries and the ids.
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        caught(|| Ok(self.read(py)?.bytes()))
    }

    /// For each segment its rows, and its tables as (bits of the key, radius).
    #[allow(clippy::type_complexity)]
    fn segments(&self, py: Python<'_>) -> PyResult<Vec<(usize, Vec<(u32, u32)>)>> {
        caught(|| Ok(self.read(py)?.segments()))
    }

    /// Add one fingerprint for each id, in place of all that *replaced* have.
    #[pyo3(signature = (ids, words, threads, replaced=None))]
    fn add(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        words: Words<'_>,
        threads: Option<usize>,
        replaced: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.sound(|| {
            let replaced = replaced.map(ManyIds::of).transpose()?;
            let replaced = replaced.as_ref().map(ManyIds::list).transpose()?.unwrap_or_default();
            let ids = ManyIds::of(ids)?;
            let list;
            let named = match &ids {
                ManyIds::Numbers(numbers) => Named::Numbers(numbers.as_slice()?),
                ManyIds::Texts(_) => {
                    list = ids.list()?;
                    Named::Texts(&list)
                }
            };
            let (rows, threads) = (given(&words, &None)?, thread_count(threads));
            let added =
                answered(py, rows.words.len() > 100_000, |_| Ok(self.write().add(named, rows, &replaced, threads)))?;
            Ok(added?)
        })
    }

    fn add_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sound(|| {
            let (words, id) = (self.words_of(value)?, OneId::of(id)?);
            // A free lock is taken at once; only a taken one is waited for without the interpreter.
            Ok(match self.inner.try_write() {
                Ok(mut inner) => inner.add_one(id.id(), &words),
                Err(_) => py.detach(|| self.write().add_one(id.id(), &words)),
            }?)
        })
    }

    fn search_one<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        radius: u32,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, u32)>> {
        self.sound(|| {
            let words = self.words_of(value)?;
            let inner = self.read(py)?;
            let hits = inner.search_one(&words, radius);
            let mut answer = room_for(hits.len());
            for hit in hits {
                answer.push((name(py, inner.ids.get(hit.entry))?, hit.distance));
            }
            Ok(answer)
        })
    }

    /// Remove all entries of each id; how many went.
    fn remove(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let ids = ManyIds::of(ids)?;
            let list = ids.list()?;
            Ok(answered(py, true, |_| Ok(self.write().remove(&list)))??)
        })
    }

    /// Remove the entries of one id that have one value; how many went.
    fn remove_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let (words, id) = (self.words_of(value)?, OneId::of(id)?);
            Ok(py.detach(|| self.write().remove_one(id.id(), &words))?)
        })
    }

    fn search<'py>(
        &self,
        py: Python<'py>,
        words: Words<'py>,
        valid: Flags<'py>,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<HitArrays<'py>> {
        self.sound(|| {
            let (rows, threads) = (given(&words, &valid)?, thread_count(threads));
            let inner = &*self.read(py)?;
            let hits =
                answered(py, rows.words.len() > 10_000, |cancel| Ok(inner.search(rows, radius, threads, cancel)?))?;
            hit_arrays(py, inner, &hits)
        })
    }

    fn nearest<'py>(
        &self,
        py: Python<'py>,
        words: Words<'py>,
        valid: Flags<'py>,
        count: usize,
        threads: Option<usize>,
    ) -> PyResult<HitArrays<'py>> {
        self.sound(|| {
            let (rows, threads) = (given(&words, &valid)?, thread_count(threads));
            let inner = &*self.read(py)?;
            let hits = answered(py, true, |cancel| Ok(inner.nearest(rows, count, threads, cancel)?))?;
            hit_arrays(py, inner, &hits)
        })
    }

    /// The ids and the words of everything in the index.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<u64>>)> {
        self.sound(|| {
            let inner = self.read(py)?;
            let (entries, words) = inner.items();
            Ok((names(py, &inner, entries.into_iter())?, words.into_pyarray(py)))
        })
    }

    /// Write the index to an open file; its stamp. Others may change the index meanwhile.
    fn write_to(&self, py: Python<'_>, file: Py<PyAny>, digest: &str) -> PyResult<Stamp> {
        let about = About { bits: self.bits, radius: self.radius, digest };
        let mut out = PyFile { file, fault: None };
        let written = self.sound(|| {
            let written = answered(py, true, |_| {
                // Nobody waits for the disk: the lock is let go before.
                let taken = self.inner.read().unwrap_or_else(PoisonError::into_inner).snapshot();
                Ok(taken.map(|(snapshot, ids)| snapshot.write(&mut out, &ids, &about)))
            })?;
            Ok(written?)
        })?;
        match (written, out.fault) {
            (Ok(stamp), _) => Ok(stamp),
            (Err(_), Some(fault)) => Err(fault),
            (Err(error), None) => Err(PyOSError::new_err(error.to_string())),
        }
    }

    /// The index of a file, mapped or read into memory; the digest of its scheme and its stamp.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf, mapped: bool) -> PyResult<(HammingIndex, String, Stamp)> {
        told(answered(py, true, |_| Ok(opened::load(&path, mapped)))?, &path)
    }

    /// The index that the bytes of a file are, and the same.
    #[staticmethod]
    fn read_from(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<(HammingIndex, String, Stamp)> {
        let data = data.as_bytes();
        told(answered(py, data.len() > 1 << 20, |_| Ok(opened::read(data)))?, Path::new("the index"))
    }
}

/// A file of Python's, open to be written.
struct PyFile {
    file: Py<PyAny>,
    fault: Option<PyErr>,
}

impl PyFile {
    fn call(&mut self, work: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<Py<PyAny>>) -> io::Result<()> {
        Python::attach(|py| work(py, &self.file)).map(drop).map_err(|fault| {
            self.fault = Some(fault);
            io::Error::other("Python's file raised")
        })
    }
}

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(|py, file| file.call_method1(py, "write", (PyBytes::new(py, bytes),)))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for PyFile {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(place) = place else {
            return Err(io::Error::other("only places from the start are needed"));
        };
        self.call(|py, file| file.call_method1(py, "seek", (place,)))?;
        Ok(place)
    }
}

/// What was opened, as Python takes it, or what it is told.
fn told(opened: Result<Opened, Refused>, path: &Path) -> PyResult<(HammingIndex, String, Stamp)> {
    let Opened { index, digest, stamp, watch } = opened.map_err(|refused| error_of(refused, path))?;
    Ok((HammingIndex::of(index, watch), digest, stamp))
}

fn error_of(refused: Refused, path: &Path) -> PyErr {
    match refused {
        Refused::Changed => changed(path, "was changed while it was read; load it again"),
        Refused::Damaged(what) => DamagedFile::new_err(format!("{}: {what}", path.display())),
        Refused::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            PyMemoryError::new_err(format!("not enough memory for '{}'", path.display()))
        }
        Refused::Io(error) => match error.raw_os_error() {
            Some(number) => {
                let reason = error.to_string();
                let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((number, reason, path.display().to_string()))
            }
            None => PyOSError::new_err(format!("{}: {error}", path.display())),
        },
    }
}

/// A lock that was waited for without the interpreter, carried back to the thread that waits.
struct Waited<'a>(RwLockReadGuard<'a, AnyIndex>);

// SAFETY: `detach` runs its closure on the calling thread, so the guard never leaves its thread.
unsafe impl Send for Waited<'_> {}

/// Check the bytes of an index file as loading would.
#[pyfunction]
fn check_index(data: &Bound<'_, PyBytes>) -> PyResult<()> {
    caught(|| file::parse(data.as_bytes()).map(drop).map_err(|damage| DamagedFile::new_err(damage.0)))
}

/// The stamp of an index file: two files that have the same are the same. None if it is none.
#[pyfunction]
fn index_stamp(path: PathBuf) -> PyResult<Option<Stamp>> {
    caught(|| {
        let read = File::open(&path).and_then(|mut file| file::stamp(&mut file));
        read.map_err(|error| error_of(Refused::Io(error), &path))
    })
}

/// A join whose pairs come in batches.
#[pyclass(module = "neardup._native")]
struct PairStream(PairBatches);

#[pymethods]
impl PairStream {
    #[new]
    #[pyo3(signature = (words, valid, other, other_valid, bits, radius, threads))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        words: Words<'_>,
        valid: Flags<'_>,
        other: Option<Words<'_>>,
        other_valid: Flags<'_>,
        bits: usize,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<PairStream> {
        let rows = given(&words, &valid)?;
        let other = other.as_ref().map(|other| given(other, &other_valid)).transpose()?;
        let threads = thread_count(threads);
        answered(py, true, |cancel| PairBatches::new(rows, other, bits, radius, threads, cancel)).map(PairStream)
    }

    /// The next pairs, about `most` of them; none at the end.
    fn take<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<PairArrays<'py>> {
        let pairs = answered(py, true, |cancel| self.0.take(most, cancel))?;
        pair_arrays(py, &pairs)
    }
}
