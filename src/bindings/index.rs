#![forbid(unsafe_code)]
//! Python's view of the index, and of joins that are streamed through one.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};

use super::arrays::{Pairs, Prints, Row, pairs};
use super::errors::{DamagedFile, changed, unread};
use super::interrupt::{answered, caught, interruptible};
use crate::index::any::{AnyIndex, Names, Refusal};
use crate::index::batches::PairBatches;
use crate::index::file::{self, About, Stamp};
use crate::index::ids::{Id, Ids};
use crate::index::opened::{self, Opened, Refused};
use crate::index::shared::{Found, SharedIndex};
use crate::join::resolve::columns;
use crate::system::memory::{gathered, push, room_for};
use crate::system::parallel::thread_count;

/// The native part of `neardup.Index`.
#[pyclass(frozen, module = "neardup._native")]
pub struct HammingIndex(SharedIndex);

/// Rows, and the tables of each segment.
type Segments = Vec<(usize, Vec<(u32, u32)>)>;
type Hits<'py> = (Row<'py, u32>, Bound<'py, PyAny>, Bound<'py, PyAny>);

impl HammingIndex {
    /// Do *work*; a file that changed under its map is an error, as is a panic.
    fn sound<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        self.0.on_what_was_checked(changed, || caught(work))
    }

    /// What *ask* says of the index. A free lock is taken at once; only a taken one is waited for without the
    /// interpreter.
    fn asked<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&AnyIndex) -> T + Send) -> PyResult<T> {
        Ok(match self.0.try_read() {
            Some(index) => ask(&*index?),
            None => py.detach(|| self.0.read().map(|index| ask(&index)))?,
        })
    }

    fn words_of(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let width = self.0.bits.div_ceil(64);
        let words = if width == 1 {
            vec![value.extract()?]
        } else {
            let bytes = value.call_method1("to_bytes", (width * 8, "little"))?;
            let bytes = bytes.cast::<PyBytes>()?.as_bytes();
            bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        match (self.0.bits % 64, words.last()) {
            (own @ 1.., Some(last)) if last >> own != 0 => {
                Err(PyOverflowError::new_err("bits above those of the index"))
            }
            _ => Ok(words),
        }
    }
}

fn hits<'py>(py: Python<'py>, (hits, ids): Found) -> PyResult<Hits<'py>> {
    let query = gathered(hits.iter().map(|hit| hit.query));
    let distance = if hits.iter().all(|hit| hit.distance <= u32::from(u16::MAX)) {
        gathered(hits.iter().map(|hit| hit.distance as u16)).into_pyarray(py).into_any()
    } else {
        // Only the nearest of the widest fingerprints can be so far away.
        gathered(hits.iter().map(|hit| hit.distance)).into_pyarray(py).into_any()
    };
    Ok((query.into_pyarray(py), names(py, &ids)?, distance))
}

/// Ids: an integer array, or a list of texts.
fn names<'py>(py: Python<'py>, ids: &Ids) -> PyResult<Bound<'py, PyAny>> {
    let all = || (0..ids.len() as u32).map(|at| ids.get(at));
    if matches!(ids, Ids::Texts { .. }) {
        let texts = PyList::empty(py);
        all().try_for_each(|id| texts.append(name(py, id)?))?;
        return Ok(texts.into_any());
    }
    let number = |id| if let Id::Number(number) = id { number } else { 0 };
    Ok(gathered(all().map(number)).into_pyarray(py).into_any())
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
        caught(|| Ok(HammingIndex(SharedIndex::new(AnyIndex::new(bits, radius), None))))
    }

    #[getter]
    fn bits(&self) -> usize {
        self.0.bits
    }

    #[getter]
    fn radius(&self) -> u32 {
        self.0.radius
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        caught(|| self.asked(py, AnyIndex::len))
    }

    /// Bytes of the entries and the ids.
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        caught(|| self.asked(py, AnyIndex::bytes))
    }

    /// For each segment its rows, and its tables as (bits of the key, radius).
    fn segments(&self, py: Python<'_>) -> PyResult<Segments> {
        caught(|| self.asked(py, AnyIndex::segments))
    }

    /// Add one fingerprint for each id, in place of all that *replaced* have.
    #[pyo3(signature = (ids, rows, threads, replaced=None))]
    fn add(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        rows: Prints<'_>,
        threads: Option<usize>,
        replaced: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.sound(|| {
            let replaced = replaced.map(ManyIds::of).transpose()?;
            let replaced = replaced.as_ref().map(ManyIds::list).transpose()?.unwrap_or_default();
            let ids = ManyIds::of(ids)?;
            let list;
            let named = match &ids {
                ManyIds::Numbers(numbers) => Names::Numbers(numbers.as_slice()?),
                ManyIds::Texts(_) => {
                    list = ids.list()?;
                    Names::Texts(&list)
                }
            };
            let (rows, threads) = (rows.given()?, thread_count(threads));
            answered(py, !rows.are_few(0), |_| self.0.write().add(named, rows, &replaced, threads))
        })
    }

    fn add_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sound(|| {
            let (words, id) = (self.words_of(value)?, OneId::of(id)?);
            Ok(match self.0.try_write() {
                Some(mut index) => index.add_one(id.id(), &words),
                None => py.detach(|| self.0.write().add_one(id.id(), &words)),
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
            let (hits, ids) = self.asked(py, |index| index.named(index.search_one(&words, radius)))?;
            let mut answer = room_for(hits.len());
            for (at, hit) in (0..).zip(hits) {
                answer.push((name(py, ids.get(at))?, hit.distance));
            }
            Ok(answer)
        })
    }

    /// Remove all entries of each id; how many went.
    fn remove(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let ids = ManyIds::of(ids)?;
            let list = ids.list()?;
            answered(py, true, |_| self.0.write().remove(&list))
        })
    }

    /// Remove the entries of one id that have one value; how many went.
    fn remove_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let (words, id) = (self.words_of(value)?, OneId::of(id)?);
            Ok(py.detach(|| self.0.write().remove_one(id.id(), &words))?)
        })
    }

    fn search<'py>(
        &self,
        py: Python<'py>,
        rows: Prints<'py>,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<Hits<'py>> {
        self.sound(|| {
            let (rows, threads) = (rows.given()?, thread_count(threads));
            let found = answered(py, !rows.are_few(0), |cancel| {
                let index = self.0.read()?;
                Ok::<_, Refusal>(index.named(index.search(rows, radius, threads, cancel)?))
            })?;
            hits(py, found)
        })
    }

    fn nearest<'py>(
        &self,
        py: Python<'py>,
        rows: Prints<'py>,
        count: usize,
        threads: Option<usize>,
    ) -> PyResult<Hits<'py>> {
        self.sound(|| {
            let (rows, threads) = (rows.given()?, thread_count(threads));
            let found = answered(py, true, |cancel| {
                let index = self.0.read()?;
                Ok::<_, Refusal>(index.named(index.nearest(rows, count, threads, cancel)?))
            })?;
            hits(py, found)
        })
    }

    /// The ids and the words of everything in the index.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Row<'py, u64>)> {
        self.sound(|| {
            let (ids, words) = self.asked(py, AnyIndex::named_items)?;
            Ok((names(py, &ids)?, words.into_pyarray(py)))
        })
    }

    /// Write the index to an open file; its stamp. Others may change the index meanwhile.
    fn write_to(&self, py: Python<'_>, file: Py<PyAny>, digest: &str) -> PyResult<Stamp> {
        let about = About { bits: self.0.bits, radius: self.0.radius, digest };
        let mut out = PyFile { file, fault: None };
        let written = self.sound(|| {
            answered(py, true, |_| {
                // Nobody waits for the disk: the lock is let go before.
                let taken = self.0.read()?.snapshot();
                taken.map(|(snapshot, ids)| snapshot.write(&mut out, &ids, &about))
            })
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
        told(interruptible(py, true, |_| opened::load(&path, mapped))?, &path)
    }

    /// The index that the bytes of a file are, and the same.
    #[staticmethod]
    fn read_from(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<(HammingIndex, String, Stamp)> {
        let data = data.as_bytes();
        told(interruptible(py, data.len() > 1 << 20, |_| opened::read(data))?, Path::new("the index"))
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
    let Opened { index, digest, stamp, watch } = opened.map_err(|refused| unread(refused, path))?;
    Ok((HammingIndex(SharedIndex::new(index, watch)), digest, stamp))
}

/// Check the bytes of an index file as loading would.
#[pyfunction]
pub fn check_index(data: &Bound<'_, PyBytes>) -> PyResult<()> {
    caught(|| file::parse(data.as_bytes()).map(drop).map_err(|damage| DamagedFile::new_err(damage.0)))
}

/// The stamp of an index file: two files that have the same are the same. None if it is none.
#[pyfunction]
pub fn index_stamp(path: PathBuf) -> PyResult<Option<Stamp>> {
    caught(|| {
        let read = File::open(&path).and_then(|mut file| file::stamp(&mut file));
        read.map_err(|error| unread(Refused::Io(error), &path))
    })
}

/// A join whose pairs come in batches.
#[pyclass(module = "neardup._native")]
pub struct PairStream(PairBatches);

#[pymethods]
impl PairStream {
    #[new]
    fn new(
        py: Python<'_>,
        rows: Prints<'_>,
        other: Option<Prints<'_>>,
        bits: usize,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<PairStream> {
        let (rows, threads) = (rows.given()?, thread_count(threads));
        let other = other.as_ref().map(Prints::given).transpose()?;
        answered(py, true, |cancel| PairBatches::new(rows, other, bits, radius, threads, cancel)).map(PairStream)
    }

    /// The next pairs, about `most` of them; none at the end.
    fn take<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Pairs<'py>> {
        let found = answered(py, true, |cancel| self.0.take(most, cancel).map(|pairs| columns(&pairs)))?;
        Ok(pairs(py, found))
    }
}
