#![forbid(unsafe_code)]
//! Python's view of the index, and of joins that are streamed through one.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::{Pairs, Prints, Row, Threads, pairs};
use super::ids::{ManyIds, OneId, name, words_of};
use super::interrupt::{answered, caught};
use crate::index::Hit;
use crate::index::any::{AnyIndex, Names, Refusal};
use crate::index::batches::PairBatches;
use crate::index::file::{self, About, Stamp};
use crate::index::ids::Ids;
use crate::index::opened::{self, Opened, Refused};
use crate::index::shared::{Found, SharedIndex};
use crate::join::resolve::columns;
use crate::system::fault::Fault;
use crate::system::memory::{gathered, room_for};
use crate::system::parallel::{Cancel, Cancelled, thread_count};

/// The native part of `neardup.Index`.
#[pyclass(frozen, module = "neardup._native")]
pub struct HammingIndex(SharedIndex);

/// Rows, and the tables of each segment.
type Segments = Vec<(usize, Vec<(u32, u32)>)>;

/// Queries, ids, and distances.
type Hits = (Row<u32>, Ids, Distances);

/// An id and its distance.
type OneHit<'py> = (Bound<'py, PyAny>, u32);

/// Only the nearest of the widest fingerprints can be so far away that they need more than two bytes.
#[derive(IntoPyObject)]
pub enum Distances {
    Near(Row<u16>),
    Far(Row<u32>),
}

fn hits((hits, ids): Found) -> Hits {
    let query = Row(gathered(hits.iter().map(|hit| hit.query)));
    let are_near = hits.iter().all(|hit| hit.distance <= u32::from(u16::MAX));
    let distances = if are_near {
        Distances::Near(Row(gathered(hits.iter().map(|hit| hit.distance as u16))))
    } else {
        Distances::Far(Row(gathered(hits.iter().map(|hit| hit.distance))))
    };
    (query, ids, distances)
}

impl HammingIndex {
    /// Do *work*; a file that changed under its map is an error, as is a panic.
    fn sound<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        self.0.on_what_was_checked(|| caught(work))
    }

    /// What *ask* says of the index. A free lock is taken at once; only a taken one is waited for without the
    /// interpreter.
    fn asked<T: Send>(&self, py: Python, ask: impl FnOnce(&AnyIndex) -> T + Send) -> PyResult<T> {
        let answer = match self.0.try_read() {
            Some(index) => index.map(|index| ask(&index)),
            None => py.detach(|| self.0.read().map(|index| ask(&index))),
        };
        Ok(answer.map_err(Fault::from)?)
    }

    /// What *search* finds, with the ids of then.
    fn found(
        &self,
        py: Python,
        long: bool,
        search: impl FnOnce(&AnyIndex, &Cancel) -> Result<Vec<Hit>, Cancelled> + Send,
    ) -> PyResult<Hits> {
        answered(py, long, |cancel| {
            let index = self.0.read()?;
            Ok::<_, Refusal>(hits(index.named(search(&index, cancel)?)))
        })
    }

    fn words_of(&self, value: &Bound<PyAny>) -> PyResult<Vec<u64>> {
        let words = match self.0.bits.div_ceil(64) {
            1 => vec![value.extract()?],
            width => words_of(value, width)?,
        };
        match (self.0.bits % 64, words.last()) {
            (own @ 1.., Some(last)) if last >> own != 0 => {
                Err(PyOverflowError::new_err("bits above those of the index"))
            }
            _ => Ok(words),
        }
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

    fn __len__(&self, py: Python) -> PyResult<usize> {
        caught(|| self.asked(py, AnyIndex::len))
    }

    /// Bytes of the entries and the ids.
    fn nbytes(&self, py: Python) -> PyResult<usize> {
        caught(|| self.asked(py, AnyIndex::bytes))
    }

    /// For each segment its rows, and its tables as (bits of the key, radius).
    fn segments(&self, py: Python) -> PyResult<Segments> {
        caught(|| self.asked(py, AnyIndex::segments))
    }

    /// Add one fingerprint for each id, in place of all that *replaced* have.
    fn add(&self, py: Python, ids: ManyIds, rows: Prints, threads: Threads, replaced: Option<ManyIds>) -> PyResult<()> {
        self.sound(|| {
            let (rows, threads, ids) = (rows.given()?, thread_count(threads), ids.names()?);
            let replaced = replaced.as_ref().map_or(Ok(Names::NONE), ManyIds::names)?;
            answered(py, !rows.are_few(0), |_| self.0.write().add(ids, rows, replaced, threads))
        })
    }

    fn add_one(&self, py: Python, id: OneId, value: &Bound<PyAny>) -> PyResult<()> {
        self.sound(|| {
            let words = self.words_of(value)?;
            let done = match self.0.try_write() {
                Some(mut index) => index.add_one(id.id(), &words),
                None => py.detach(|| self.0.write().add_one(id.id(), &words)),
            };
            Ok(done.map_err(Fault::from)?)
        })
    }

    fn search_one<'py>(&self, py: Python<'py>, value: &Bound<'py, PyAny>, radius: u32) -> PyResult<Vec<OneHit<'py>>> {
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
    fn remove(&self, py: Python, ids: ManyIds) -> PyResult<usize> {
        self.sound(|| {
            let ids = ids.names()?;
            answered(py, true, |_| self.0.write().remove(ids))
        })
    }

    /// Remove the entries of one id that have one value; how many went.
    fn remove_one(&self, py: Python, id: OneId, value: &Bound<PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let words = self.words_of(value)?;
            Ok(py.detach(|| self.0.write().remove_one(id.id(), &words)).map_err(Fault::from)?)
        })
    }

    fn search(&self, py: Python, rows: Prints, radius: u32, threads: Threads) -> PyResult<Hits> {
        self.sound(|| {
            let (rows, threads) = (rows.given()?, thread_count(threads));
            self.found(py, !rows.are_few(0), |index, cancel| index.search(rows, radius, threads, cancel))
        })
    }

    fn nearest(&self, py: Python, rows: Prints, count: usize, threads: Threads) -> PyResult<Hits> {
        self.sound(|| {
            let (rows, threads) = (rows.given()?, thread_count(threads));
            self.found(py, true, |index, cancel| index.nearest(rows, count, threads, cancel))
        })
    }

    /// The ids and the words of everything in the index.
    fn items(&self, py: Python) -> PyResult<(Ids, Row<u64>)> {
        self.sound(|| self.asked(py, AnyIndex::named_items).map(|(ids, words)| (ids, Row(words))))
    }

    /// Write the index to an open file; its stamp. Others may change the index meanwhile.
    fn write_to(&self, py: Python, file: Py<PyAny>, digest: &str) -> PyResult<Stamp> {
        let about = About { bits: self.0.bits, radius: self.0.radius, digest };
        let written = self.sound(|| {
            answered(py, true, |_| {
                // Nobody waits for the disk: the lock is let go before.
                let taken = self.0.read()?.snapshot();
                taken.map(|(snapshot, ids)| snapshot.write(&mut PyFile(file), &ids, &about))
            })
        })?;
        Ok(written?)
    }

    /// The index of a file, mapped or read into memory; the digest of its scheme and its stamp.
    #[staticmethod]
    fn load(py: Python, path: PathBuf, mapped: bool) -> PyResult<(HammingIndex, String, Stamp)> {
        answered(py, true, |_| told(opened::load(&path, mapped), &path))
    }

    /// The index that the bytes of a file are, and the same.
    #[staticmethod]
    fn read_from(py: Python, data: &Bound<PyBytes>) -> PyResult<(HammingIndex, String, Stamp)> {
        let data = data.as_bytes();
        answered(py, data.len() > 1 << 20, |_| told(opened::read(data), Path::new("the index")))
    }
}

/// What was opened, as Python takes it, or what it is told.
fn told(opened: Result<Opened, Refused>, path: &Path) -> Result<(HammingIndex, String, Stamp), Fault> {
    let Opened { index, digest, stamp, watch } = opened.map_err(|refused| refused.at(path))?;
    Ok((HammingIndex(SharedIndex::new(index, watch)), digest, stamp))
}

/// A file of Python's, open to be written. What it raises is in the error.
struct PyFile(Py<PyAny>);

impl Write for PyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| self.0.call_method1(py, "write", (PyBytes::new(py, bytes),))).map_err(io::Error::other)?;
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
        Python::attach(|py| self.0.call_method1(py, "seek", (place,))).map_err(io::Error::other)?;
        Ok(place)
    }
}

/// Check the bytes of an index file as loading would.
#[pyfunction]
pub fn check_index(data: &Bound<PyBytes>) -> PyResult<()> {
    caught(|| file::parse(data.as_bytes()).map(drop).map_err(|damage| Fault::Damaged(damage.0).into()))
}

/// The stamp of an index file: two files that have the same are the same. None if it is none.
#[pyfunction]
pub fn index_stamp(path: PathBuf) -> PyResult<Option<Stamp>> {
    caught(|| {
        let read = File::open(&path).and_then(|mut file| file::stamp(&mut file));
        read.map_err(|error| Fault::of_file(&error, path.display()).into())
    })
}

/// A join whose pairs come in batches.
#[pyclass(module = "neardup._native")]
pub struct PairStream(PairBatches);

#[pymethods]
impl PairStream {
    #[new]
    fn new(
        py: Python,
        rows: Prints,
        other: Option<Prints>,
        bits: usize,
        radius: u32,
        threads: Threads,
    ) -> PyResult<PairStream> {
        let (rows, threads) = (rows.given()?, thread_count(threads));
        let other = other.as_ref().map(Prints::given).transpose()?;
        answered(py, true, |cancel| PairBatches::new(rows, other, bits, radius, threads, cancel)).map(PairStream)
    }

    /// The next pairs, about `most` of them; none at the end.
    fn take(&mut self, py: Python, most: usize) -> PyResult<Pairs> {
        answered(py, true, |cancel| self.0.take(most, cancel).map(|found| pairs(columns(&found))))
    }
}
