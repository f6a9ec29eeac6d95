//! Python's view of the index, and of joins that are streamed through one.

use std::path::PathBuf;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use memmap2::Mmap;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};

use super::hamming::{Failure, answered, padded, pair_arrays, rows_of};
use super::{DamagedFile, InvalidType, LimitReached};
use crate::ids::{Id, Ids, Lookup};
use crate::index::{Hit, Store};
use crate::index_file::{self, About, MOST_WORDS};
use crate::parallel::{Cancel, thread_count};
use crate::resolve::{Pair, Rows, Values};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<HammingIndex>()?;
    module.add_class::<PairStream>()?;
    module.add_function(wrap_pyfunction!(check_index, module)?)?;
    Ok(())
}

/// A store of any width.
macro_rules! any_width {
    ($($name:ident $count:literal)*) => {
        enum Any {
            $($name(Store<$count>),)*
        }

        impl Any {
            fn new(bits: usize, radius: u32) -> Any {
                match bits.div_ceil(64).next_power_of_two() {
                    $($count => Any::$name(Store::new(bits, radius)),)*
                    more => unreachable!("{more} words: the Python side takes at most {MOST_WORDS}"),
                }
            }
        }
    };
}

any_width!(W1 1 W2 2 W4 4 W8 8 W16 16 W32 32 W64 64 W128 128 W256 256 W512 512 W1024 1024);

macro_rules! with_store {
    ($any:expr, $W:ident, $store:ident => $body:expr) => {
        with_store!(@each $any, $W, $store => $body,
            W1 1 W2 2 W4 4 W8 8 W16 16 W32 32 W64 64 W128 128 W256 256 W512 512 W1024 1024)
    };
    (@each $any:expr, $W:ident, $store:ident => $body:expr, $($name:ident $count:literal)*) => {
        match $any {
            $(Any::$name($store) => {
                #[allow(dead_code)]
                const $W: usize = $count;
                $body
            })*
        }
    };
}

struct Inner {
    store: Any,
    ids: Ids,
    lookup: Option<Lookup>,
}

impl Inner {
    /// Order hits by query, distance, id.
    fn order(&self, hits: &mut [Hit]) {
        match self.ids {
            Ids::Counted(_) => hits.sort_unstable(),
            _ => hits.sort_unstable_by_key(|hit| (hit.query, hit.distance, self.ids.get(hit.entry), hit.entry)),
        }
    }

    fn lookup(&mut self) -> &Lookup {
        let lookup = self.lookup.get_or_insert_with(|| Lookup::of(&Ids::Counted(0)));
        lookup.extend(&self.ids);
        lookup
    }

    /// Drop removed entries for good when they are many.
    fn tidy(&mut self, threads: usize) {
        let worn = with_store!(&self.store, W, store => store.is_worn());
        if worn {
            self.compact(threads);
        }
    }

    fn compact(&mut self, threads: usize) {
        let (ids, lookup) = (&mut self.ids, &mut self.lookup);
        with_store!(&mut self.store, W, store => {
            let rows = store.rows();
            *ids = ids.only(rows.iter().map(|row| row.0));
            *lookup = None;
            let mut new = Store::<W>::new(store.bits, store.radius);
            let rows: Vec<[u64; W]> = rows.into_iter().map(|row| row.1).collect();
            new.add(&rows, threads);
            *store = new;
        });
    }
}

/// The native part of `neardup.Index`. Readers share it; a writer has it alone.
#[pyclass(frozen, module = "neardup._native")]
struct HammingIndex {
    inner: RwLock<Inner>,
    bits: usize,
    radius: u32,
    width: usize,
}

type HitArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

impl HammingIndex {
    // A lock poisoned by a panic still holds a store that can be read.
    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn words_of(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        if self.width == 1 {
            return Ok(vec![value.extract()?]);
        }
        let bytes = value.call_method1("to_bytes", (self.width * 8, "little"))?;
        let bytes = bytes.cast::<PyBytes>()?.as_bytes();
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn hits<'py>(&self, py: Python<'py>, inner: &Inner, hits: &[Hit]) -> PyResult<HitArrays<'py>> {
        let query: Vec<u32> = hits.iter().map(|hit| hit.query).collect();
        let distance = if hits.iter().all(|hit| hit.distance <= u32::from(u16::MAX)) {
            hits.iter().map(|hit| hit.distance as u16).collect::<Vec<u16>>().into_pyarray(py).into_any()
        } else {
            // Only the nearest of the widest fingerprints can be so far away.
            hits.iter().map(|hit| hit.distance).collect::<Vec<u32>>().into_pyarray(py).into_any()
        };
        Ok((query.into_pyarray(py), names(py, inner, hits)?, distance))
    }
}

/// The ids of hits: an integer array, or a list of texts.
fn names<'py>(py: Python<'py>, inner: &Inner, hits: &[Hit]) -> PyResult<Bound<'py, PyAny>> {
    if matches!(inner.ids, Ids::Texts { .. }) {
        let texts = PyList::empty(py);
        for hit in hits {
            texts.append(name(py, inner.ids.get(hit.entry))?)?;
        }
        return Ok(texts.into_any());
    }
    let numbers: Vec<i64> = hits
        .iter()
        .map(|hit| match inner.ids.get(hit.entry) {
            Id::Number(number) => number,
            Id::Text(_) => 0,
        })
        .collect();
    Ok(numbers.into_pyarray(py).into_any())
}

fn name<'py>(py: Python<'py>, id: Id<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match id {
        Id::Number(number) => number.into_pyobject(py)?.into_any(),
        Id::Text(text) => PyString::from_bytes(py, text)?.into_any(),
    })
}

/// Ids as they come from Python: an int64 array, or a list of str.
enum Named<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<PyBackedStr>),
}

impl<'py> Named<'py> {
    fn of(ids: &Bound<'py, PyAny>) -> PyResult<Named<'py>> {
        match ids.extract::<PyReadonlyArray1<'py, i64>>() {
            Ok(numbers) => Ok(Named::Numbers(numbers)),
            Err(_) => Ok(Named::Texts(ids.extract()?)),
        }
    }

    fn list(&self) -> PyResult<Vec<Id<'_>>> {
        Ok(match self {
            Named::Numbers(numbers) => numbers.as_slice()?.iter().map(|&number| Id::Number(number)).collect(),
            Named::Texts(texts) => texts.iter().map(|text| Id::Text(text.as_bytes())).collect(),
        })
    }
}

fn mixed() -> PyErr {
    InvalidType::new_err("the ids of an index are all integers or all str; use one kind")
}

#[pymethods]
impl HammingIndex {
    #[new]
    fn new(bits: usize, radius: u32) -> HammingIndex {
        let inner = Inner { store: Any::new(bits, radius), ids: Ids::Counted(0), lookup: None };
        HammingIndex { inner: RwLock::new(inner), bits, radius, width: bits.div_ceil(64) }
    }

    #[getter]
    fn bits(&self) -> usize {
        self.bits
    }

    #[getter]
    fn radius(&self) -> u32 {
        self.radius
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| with_store!(&self.read().store, W, store => store.len()))
    }

    /// Bytes of the store and the ids.
    fn bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| {
            let inner = self.read();
            with_store!(&inner.store, W, store => store.bytes()) + inner.ids.bytes()
        })
    }

    /// Of each segment its rows, and its tables as (bits of the key, radius).
    fn segments(&self, py: Python<'_>) -> Vec<(usize, Vec<(u32, u32)>)> {
        py.detach(|| {
            with_store!(&self.read().store, W, store => store
                .segments
                .iter()
                .map(|segment| {
                    (segment.len(), segment.tables.iter().map(|table| (table.key.width, table.radius)).collect())
                })
                .collect())
        })
    }

    fn add(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        words: PyReadonlyArray2<'_, u64>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let named = Named::of(ids)?;
        let numbers = match &named {
            Named::Numbers(numbers) => Some(numbers.as_slice()?),
            Named::Texts(_) => None,
        };
        let list = if numbers.is_some() { Vec::new() } else { named.list()? };
        let count = numbers.map_or(list.len(), <[i64]>::len);
        let width = words.shape()[1];
        let words = words.as_slice()?;
        let threads = thread_count(threads);
        let added = answered(py, words.len() > 100_000, |_| {
            let mut inner = self.write();
            let Inner { store, ids, .. } = &mut *inner;
            if ids.len() > 0 && count > 0 && matches!(ids, Ids::Texts { .. }) == numbers.is_some() {
                return Ok(Some(false));
            }
            let room = with_store!(store, W, store => u32::MAX - 1 - store.entries());
            if count as u64 > u64::from(room) {
                return Ok(None);
            }
            match numbers {
                Some(numbers) => {
                    ids.extend(numbers);
                }
                None => {
                    for id in &list {
                        ids.push(*id);
                    }
                }
            }
            with_store!(store, W, store => {
                let mut wide = Vec::new();
                rows_of::<W>(words, width, None, &mut wide);
                let rows = if width == W { words.as_chunks::<W>().0 } else { &wide };
                store.add(rows, threads);
            });
            Ok(Some(true))
        })?;
        match added {
            Some(true) => Ok(()),
            Some(false) => Err(mixed()),
            None => Err(LimitReached::new_err("an index holds at most 4294967294 fingerprints")),
        }
    }

    fn add_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let words = self.words_of(value)?;
        let text;
        let id = match id.cast::<PyString>() {
            Ok(name) => {
                text = name.to_string_lossy().into_owned();
                Id::Text(text.as_bytes())
            }
            Err(_) => Id::Number(id.extract()?),
        };
        // A free lock is taken at once; only a taken one is waited for without the interpreter.
        let added = match self.inner.try_write() {
            Ok(mut inner) => add_one(&mut inner, id, &words),
            Err(_) => py.detach(|| add_one(&mut self.write(), id, &words)),
        };
        if added { Ok(()) } else { Err(mixed()) }
    }

    fn search_one<'py>(
        &self,
        py: Python<'py>,
        value: &Bound<'py, PyAny>,
        radius: u32,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, u32)>> {
        let words = self.words_of(value)?;
        let answer = |inner: &Inner| {
            let mut hits = with_store!(&inner.store, W, store => store.hits_of_one(&padded::<W>(&words), radius));
            inner.order(&mut hits);
            hits
        };
        let guard = match self.inner.try_read() {
            Ok(guard) => guard,
            Err(_) => py.detach(|| Waited(self.read())).0,
        };
        let hits = answer(&guard);
        hits.iter().map(|hit| Ok((name(py, guard.ids.get(hit.entry))?, hit.distance))).collect()
    }

    /// Remove all entries of each id; how many went.
    fn remove(&self, py: Python<'_>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
        let named = Named::of(ids)?;
        let list = named.list()?;
        answered(py, true, |_| {
            let mut inner = self.write();
            inner.lookup();
            let Inner { store, ids, lookup } = &mut *inner;
            let mut gone = 0;
            if let Some(lookup) = lookup {
                for id in &list {
                    for entry in lookup.entries(ids, *id) {
                        gone += usize::from(with_store!(store, W, store => store.remove(entry)));
                    }
                }
            }
            inner.tidy(thread_count(None));
            Ok(gone)
        })
    }

    /// Remove the entries of one id that have one value; how many went.
    fn remove_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        let words = self.words_of(value)?;
        let text;
        let id = match id.cast::<PyString>() {
            Ok(name) => {
                text = name.to_string_lossy().into_owned();
                Id::Text(text.as_bytes())
            }
            Err(_) => Id::Number(id.extract()?),
        };
        py.detach(|| {
            let mut inner = self.write();
            let Inner { store, ids, .. } = &mut *inner;
            let mut gone = 0;
            with_store!(store, W, store => {
                for hit in store.hits_of_one(&padded::<W>(&words), 0) {
                    if ids.get(hit.entry) == id {
                        gone += usize::from(store.remove(hit.entry));
                    }
                }
            });
            inner.tidy(thread_count(None));
            Ok(gone)
        })
    }

    fn search<'py>(
        &self,
        py: Python<'py>,
        words: PyReadonlyArray2<'py, u64>,
        valid: Option<PyReadonlyArray1<'py, bool>>,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<HitArrays<'py>> {
        let width = words.shape()[1];
        let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
        let threads = thread_count(threads);
        let guard = match self.inner.try_read() {
            Ok(guard) => guard,
            Err(_) => py.detach(|| Waited(self.read())).0,
        };
        let inner = &*guard;
        let hits = answered(py, words.len() > 10_000, |cancel| {
            with_store!(&inner.store, W, store => {
                let mut wide = Vec::new();
                let numbers = rows_of::<W>(words, width, valid, &mut wide);
                let rows = if numbers.is_none() && width == W { words.as_chunks::<W>().0 } else { &wide };
                let mut hits = store.search(rows, radius, threads, cancel).map_err(|_| Failure::Stopped)?;
                if let Some(numbers) = numbers {
                    hits.iter_mut().for_each(|hit| hit.query = numbers[hit.query as usize]);
                }
                if !matches!(inner.ids, Ids::Counted(_)) {
                    inner.order(&mut hits);
                }
                Ok(hits)
            })
        })?;
        self.hits(py, inner, &hits)
    }

    fn nearest<'py>(
        &self,
        py: Python<'py>,
        words: PyReadonlyArray2<'py, u64>,
        valid: Option<PyReadonlyArray1<'py, bool>>,
        count: usize,
        threads: Option<usize>,
    ) -> PyResult<HitArrays<'py>> {
        let width = words.shape()[1];
        let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
        let threads = thread_count(threads);
        let guard = match self.inner.try_read() {
            Ok(guard) => guard,
            Err(_) => py.detach(|| Waited(self.read())).0,
        };
        let inner = &*guard;
        let hits = answered(py, true, |cancel| {
            let queries = words.len() / width;
            let workers = crate::parallel::share(threads, queries, Vec::new, |found: &mut Vec<Hit>, query| {
                if cancel.is_set() || valid.is_some_and(|valid| !valid[query]) {
                    return;
                }
                let asked = &words[query * width..(query + 1) * width];
                let mut hits = with_store!(&inner.store, W, store => store.nearest(&padded::<W>(asked), count));
                hits.iter_mut().for_each(|hit| hit.query = query as u32);
                inner.order(&mut hits);
                hits.truncate(count);
                found.extend_from_slice(&hits);
            });
            cancel.check().map_err(|_| Failure::Stopped)?;
            let mut hits = workers.concat();
            inner.order(&mut hits);
            Ok(hits)
        })?;
        self.hits(py, inner, &hits)
    }

    /// The ids and the words of everything in the index.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<u64>>)> {
        let inner = self.read();
        let (hits, words): (Vec<Hit>, Vec<u64>) = with_store!(&inner.store, W, store => {
            let rows = store.rows();
            let words = rows.iter().flat_map(|row| row.1[..self.width].to_vec()).collect();
            let hits = rows.iter().map(|row| Hit { query: 0, entry: row.0, distance: 0 }).collect();
            (hits, words)
        });
        Ok((names(py, &inner, &hits)?, words.into_pyarray(py)))
    }

    fn save(&self, py: Python<'_>, path: PathBuf, digest: &str) -> PyResult<()> {
        let about = About { bits: self.bits, radius: self.radius, digest };
        answered(py, true, |_| {
            let inner = self.read();
            Ok(with_store!(&inner.store, W, store => {
                let rows = store.rows();
                let ids = inner.ids.only(rows.iter().map(|row| row.0));
                drop(rows);
                index_file::write::<W>(&path, &store.compacted(thread_count(None)), &ids, &about)
            }))
        })?
        .map_err(|error| os_error(&path, &error))
    }

    /// The index of a file, and the digest of its scheme.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<(HammingIndex, String)> {
        let result = answered(py, true, |_| Ok(load(&path)))?;
        match result {
            Ok(loaded) => Ok(loaded),
            Err(Refused::Io(error)) => Err(os_error(&path, &error)),
            Err(Refused::Damaged(what)) => Err(DamagedFile::new_err(format!("{}: {what}", path.display()))),
        }
    }
}

fn os_error(path: &std::path::Path, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let reason = error.to_string();
            let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, reason, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

enum Refused {
    Io(std::io::Error),
    Damaged(String),
}

fn load(path: &std::path::Path) -> Result<(HammingIndex, String), Refused> {
    let file = std::fs::File::open(path).map_err(Refused::Io)?;
    if file.metadata().map_err(Refused::Io)?.len() == 0 {
        return Err(Refused::Damaged("the file is empty".into()));
    }
    // SAFETY: our files are never changed in place, only replaced; docs/formats/index.md says so.
    let map = unsafe { Mmap::map(&file) }.map_err(Refused::Io)?;
    let map = Arc::new(map);
    let layout = index_file::parse(&map).map_err(|damage| Refused::Damaged(damage.0))?;
    let (bits, radius) = (layout.bits, layout.radius);
    let mut store = Any::new(bits, radius);
    let ids;
    with_store!(&mut store, W, store => {
        if layout.words != W {
            return Err(Refused::Damaged("the width does not fit the bits".into()));
        }
        let (segment, own) = layout.open::<W>(&map).map_err(|damage| Refused::Damaged(damage.0))?;
        ids = own;
        *store = Store::of_segment(bits, radius, segment);
    });
    let inner = Inner { store, ids, lookup: None };
    let index = HammingIndex { inner: RwLock::new(inner), bits, radius, width: bits.div_ceil(64) };
    Ok((index, layout.digest))
}

/// A lock that was waited for without the interpreter, carried back to the thread that waits.
struct Waited<'a>(RwLockReadGuard<'a, Inner>);

// SAFETY: `detach` runs its closure on the calling thread, so the guard never leaves its thread.
unsafe impl Send for Waited<'_> {}

fn add_one(inner: &mut Inner, id: Id<'_>, words: &[u64]) -> bool {
    if !inner.ids.push(id) {
        return false;
    }
    with_store!(&mut inner.store, W, store => store.add(&[padded::<W>(words)], thread_count(None)));
    true
}

/// Check the bytes of an index file as loading would.
#[pyfunction]
fn check_index(data: &Bound<'_, PyBytes>) -> PyResult<()> {
    index_file::parse(data.as_bytes()).map(|_| ()).map_err(|damage| DamagedFile::new_err(damage.0))
}

/// A join whose pairs come in batches: rows ask a store of the distinct values, in order.
#[pyclass(module = "neardup._native")]
struct PairStream {
    store: Any,
    held: Rows,
    words: Vec<u64>,
    numbers: Option<Vec<u32>>,
    width: usize,
    radius: u32,
    threads: usize,
    own: bool,
    next: usize,
    hits: Vec<Hit>,
    hits_at: usize,
    block_end: usize,
}

const BLOCK: usize = 4096;

#[pymethods]
impl PairStream {
    #[new]
    #[pyo3(signature = (words, valid, other, other_valid, bits, radius, threads))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        words: PyReadonlyArray2<'_, u64>,
        valid: Option<PyReadonlyArray1<'_, bool>>,
        other: Option<PyReadonlyArray2<'_, u64>>,
        other_valid: Option<PyReadonlyArray1<'_, bool>>,
        bits: usize,
        radius: u32,
        threads: Option<usize>,
    ) -> PyResult<PairStream> {
        let width = words.shape()[1];
        let threads = thread_count(threads);
        let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
        let other = other.as_ref().map(|other| other.as_slice()).transpose()?;
        let other_valid = other_valid.as_ref().map(|valid| valid.as_slice()).transpose()?;
        answered(py, true, |cancel| {
            let mut store = Any::new(bits, radius);
            let (stored, stored_valid) = other.map_or((words, valid), |other| (other, other_valid));
            let held = with_store!(&mut store, W, store => {
                let mut wide = Vec::new();
                let numbers = rows_of::<W>(stored, width, stored_valid, &mut wide);
                let rows = if numbers.is_none() && width == W { stored.as_chunks::<W>().0 } else { &wide };
                let mut values = Values::<W>::with_room(rows.len());
                for row in rows {
                    values.number(row);
                }
                let held =
                    values.rows(rows, numbers.as_deref(), threads, cancel).map_err(|_| Failure::Stopped)?;
                store.add(&values.values, threads);
                held
            });
            let numbers = valid
                .map(|valid| (0u32..).zip(valid).filter(|known| *known.1).map(|known| known.0).collect::<Vec<u32>>());
            let queries = match &numbers {
                None => words.to_vec(),
                Some(numbers) => numbers
                    .iter()
                    .flat_map(|&row| words[row as usize * width..(row as usize + 1) * width].iter().copied())
                    .collect(),
            };
            Ok(PairStream {
                store,
                held,
                words: queries,
                numbers,
                width,
                radius,
                threads,
                own: other.is_none(),
                next: 0,
                hits: Vec::new(),
                hits_at: 0,
                block_end: 0,
            })
        })
    }

    /// The next pairs, about `most` of them; none at the end.
    #[allow(clippy::type_complexity)]
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        most: usize,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u16>>)> {
        let pairs = answered(py, true, |cancel| self.batch(most, cancel))?;
        Ok(pair_arrays(py, &pairs))
    }
}

impl PairStream {
    fn batch(&mut self, most: usize, cancel: &Cancel) -> Result<Vec<Pair>, Failure> {
        let mut pairs = Vec::new();
        let rows = self.words.len() / self.width;
        while pairs.len() < most && self.next < rows {
            cancel.check().map_err(|_| Failure::Stopped)?;
            if self.next == self.block_end {
                let end = (self.next + BLOCK).min(rows);
                let asked = &self.words[self.next * self.width..end * self.width];
                self.hits = with_store!(&self.store, W, store => {
                    let mut wide = Vec::new();
                    rows_of::<W>(asked, self.width, None, &mut wide);
                    let rows = if self.width == W { asked.as_chunks::<W>().0 } else { &wide };
                    store.search(rows, self.radius, self.threads, cancel).map_err(|_| Failure::Stopped)?
                });
                self.hits_at = 0;
                self.block_end = end;
            }
            let block_start = self.block_end - (self.block_end - 1) % BLOCK - 1;
            let query = (self.next - block_start) as u32;
            let left = self.numbers.as_ref().map_or(self.next as u32, |numbers| numbers[self.next]);
            let first = pairs.len();
            while self.hits_at < self.hits.len() && self.hits[self.hits_at].query == query {
                let hit = self.hits[self.hits_at];
                self.hits_at += 1;
                let rows = self.held.of(hit.entry);
                let rows = if self.own { &rows[rows.partition_point(|&row| row <= left)..] } else { rows };
                pairs.extend(rows.iter().map(|&right| Pair { left, right, distance: hit.distance }));
            }
            pairs[first..].sort_unstable();
            self.next += 1;
        }
        Ok(pairs)
    }
}
