//! Python's view of the index, and of joins that are streamed through one.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError, Weak};
use std::time::SystemTime;

use memmap2::{Mmap, MmapMut};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyList, PyString};

use super::hamming::{Failure, answered, padded, pair_arrays, rows_of};
use super::interrupt::caught;
use super::{ChangedFile, DamagedFile, InvalidType, LimitReached};
use crate::ids::{Id, Ids, Lookup};
use crate::index::{Hit, Store};
use crate::index_file::{self, About, MOST_WORDS, Stamp};
use crate::memory::{append, attempt, gathered, more_room, push, room_for};
use crate::parallel::{Cancel, thread_count};
use crate::resolve::{Pair, Rows, Values};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<HammingIndex>()?;
    module.add_class::<PairStream>()?;
    module.add_function(wrap_pyfunction!(check_index, module)?)?;
    module.add_function(wrap_pyfunction!(index_stamp, module)?)?;
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
    /// A change is under way; it stays set when the change did not end.
    torn: bool,
}

impl Inner {
    fn new(store: Any, ids: Ids) -> Inner {
        Inner { store, ids, lookup: None, torn: false }
    }

    /// Make a change. Where it is unwound, the index is torn.
    fn change<T>(&mut self, work: impl FnOnce(&mut Inner) -> T) -> T {
        self.torn = true;
        let done = work(self);
        self.torn = false;
        done
    }

    /// Put in `count` entries, whose ids `name` adds; what was wrong, and then nothing is changed.
    fn add(
        &mut self,
        count: usize,
        texts: bool,
        name: impl FnOnce(&mut Ids),
        put: impl FnOnce(&mut Any),
    ) -> Result<(), Refusal> {
        if self.ids.len() > 0 && count > 0 && matches!(self.ids, Ids::Texts { .. }) != texts {
            return Err(Refusal::Mixed);
        }
        let entries = with_store!(&self.store, W, store => store.entries());
        if count as u64 > u64::from(u32::MAX - 1 - entries) {
            return Err(Refusal::Full);
        }
        self.change(|inner| {
            let known = inner.ids.len();
            let done = attempt(|| {
                name(&mut inner.ids);
                put(&mut inner.store);
            });
            if done.is_some() {
                return Ok(());
            }
            inner.ids.truncate(known);
            let torn = with_store!(&mut inner.store, W, store => {
                store.forget(entries);
                store.torn
            });
            Err(if torn { Refusal::Torn } else { Refusal::Memory })
        })
        .inspect_err(|refusal| self.torn = matches!(refusal, Refusal::Torn))
    }

    /// Order hits by query, distance, id.
    fn order(&self, hits: &mut [Hit]) {
        match self.ids {
            Ids::Counted(_) => hits.sort_unstable(),
            _ => hits.sort_unstable_by_key(|hit| (hit.query, hit.distance, self.ids.get(hit.entry), hit.entry)),
        }
    }

    /// All entries that these ids have.
    fn entries_of(&mut self, list: &[Id<'_>]) -> Vec<u32> {
        let mut entries = Vec::new();
        if !list.is_empty() {
            let lookup = self.lookup.get_or_insert_with(|| Lookup::of(&Ids::Counted(0)));
            lookup.extend(&self.ids);
            list.iter().for_each(|id| append(&mut entries, &lookup.entries(&self.ids, *id)));
        }
        entries
    }

    /// Remove entries; how many were there.
    fn remove(&mut self, entries: &[u32]) -> usize {
        self.change(|inner| {
            let remove = |&&entry: &&u32| with_store!(&mut inner.store, W, store => store.remove(entry));
            let gone = entries.iter().filter(remove).count();
            inner.tidy(thread_count(None));
            gone
        })
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
            let made = attempt(|| {
                let rows = store.rows();
                let own = ids.only(rows.iter().map(|row| row.0));
                let mut new = Store::<W>::new(store.bits, store.radius);
                new.add(&gathered(rows.into_iter().map(|row| row.1)), threads);
                (new, own)
            });
            // Where there is no memory for it, what was removed stays marked.
            if let Some(made) = made {
                (*store, *ids) = made;
                *lookup = None;
            }
        });
    }
}

/// Why an index did not do what it was asked to.
enum Refusal {
    Mixed,
    Full,
    Memory,
    Torn,
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

/// The file under a map: what it was when it was checked.
struct Watch {
    path: PathBuf,
    file: File,
    size: u64,
    modified: Option<SystemTime>,
    map: Weak<Mmap>,
    changed: AtomicBool,
}

impl Watch {
    /// Whether something of the file is, or was, used that is not what was checked.
    fn is_needed(&self) -> bool {
        self.map.strong_count() > 0 || self.changed.load(Ordering::Relaxed)
    }

    fn check(&self) -> PyResult<()> {
        if is_same(&self.file, self.size, self.modified) && !self.changed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.changed.store(true, Ordering::Relaxed);
        Err(changed(&self.path, "was changed while it was in use; load it again (map=False reads it into memory)"))
    }
}

fn is_same(file: &File, size: u64, modified: Option<SystemTime>) -> bool {
    file.metadata().is_ok_and(|now: Metadata| now.len() == size && now.modified().ok() == modified)
}

fn changed(path: &Path, how: &str) -> PyErr {
    ChangedFile::new_err(format!("'{}' {how}", path.display()))
}

/// The native part of `neardup.Index`. Readers share it; a writer has it alone.
#[pyclass(frozen, module = "neardup._native")]
struct HammingIndex {
    inner: RwLock<Inner>,
    bits: usize,
    radius: u32,
    width: usize,
    watch: Option<Watch>,
}

type HitArrays<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

impl HammingIndex {
    fn of(inner: Inner, bits: usize, radius: u32, watch: Option<Watch>) -> HammingIndex {
        HammingIndex { inner: RwLock::new(inner), bits, radius, width: bits.div_ceil(64), watch }
    }

    /// Do *work* on what was checked: a file that changed under its map is an error, as is a panic.
    fn sound<T>(&self, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let Some(watch) = self.watch.as_ref().filter(|watch| watch.is_needed()) else {
            return caught(work);
        };
        watch.check()?;
        let done = caught(work);
        watch.check()?;
        done
    }

    /// The entries, to be read. A free lock is taken at once; only a taken one is waited for without the
    /// interpreter.
    fn read(&self, py: Python<'_>) -> Result<RwLockReadGuard<'_, Inner>, Refusal> {
        let inner = match self.inner.try_read() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                py.detach(|| Waited(self.inner.read().unwrap_or_else(PoisonError::into_inner))).0
            }
        };
        if inner.torn { Err(Refusal::Torn) } else { Ok(inner) }
    }

    /// The entries, to be changed, for one that does not hold the interpreter.
    fn write(&self) -> Result<RwLockWriteGuard<'_, Inner>, Refusal> {
        let inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if inner.torn { Err(Refusal::Torn) } else { Ok(inner) }
    }

    fn words_of(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let words = if self.width == 1 {
            vec![value.extract()?]
        } else {
            let bytes = value.call_method1("to_bytes", (self.width * 8, "little"))?;
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

    fn hits<'py>(&self, py: Python<'py>, inner: &Inner, hits: &[Hit]) -> PyResult<HitArrays<'py>> {
        let query: Vec<u32> = gathered(hits.iter().map(|hit| hit.query));
        let distance = if hits.iter().all(|hit| hit.distance <= u32::from(u16::MAX)) {
            gathered(hits.iter().map(|hit| hit.distance as u16)).into_pyarray(py).into_any()
        } else {
            // Only the nearest of the widest fingerprints can be so far away.
            gathered(hits.iter().map(|hit| hit.distance)).into_pyarray(py).into_any()
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
    let numbers = gathered(hits.iter().map(|hit| match inner.ids.get(hit.entry) {
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

/// Ids as they come from Python: an int64 array, or a list of str.
enum Named<'py> {
    Numbers(PyReadonlyArray1<'py, i64>),
    Texts(Vec<PyBackedStr>),
}

impl<'py> Named<'py> {
    fn of(ids: &Bound<'py, PyAny>) -> PyResult<Named<'py>> {
        match ids.extract::<PyReadonlyArray1<'py, i64>>() {
            Ok(numbers) => Ok(Named::Numbers(numbers)),
            Err(_) => {
                let mut texts = room_for(ids.len()?);
                for id in ids.try_iter()? {
                    push(&mut texts, id?.extract()?);
                }
                Ok(Named::Texts(texts))
            }
        }
    }

    fn list(&self) -> PyResult<Vec<Id<'_>>> {
        Ok(match self {
            Named::Numbers(numbers) => gathered(numbers.as_slice()?.iter().map(|&number| Id::Number(number))),
            Named::Texts(texts) => gathered(texts.iter().map(|text| Id::Text(text.as_bytes()))),
        })
    }
}

#[pymethods]
impl HammingIndex {
    #[new]
    fn new(bits: usize, radius: u32) -> PyResult<HammingIndex> {
        caught(|| Ok(HammingIndex::of(Inner::new(Any::new(bits, radius), Ids::Counted(0)), bits, radius, None)))
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
        caught(|| {
            let inner = self.read(py)?;
            Ok(with_store!(&inner.store, W, store => store.len()))
        })
    }

    /// Bytes of the store and the ids.
    fn nbytes(&self, py: Python<'_>) -> PyResult<usize> {
        caught(|| {
            let inner = self.read(py)?;
            Ok(with_store!(&inner.store, W, store => store.bytes()) + inner.ids.bytes())
        })
    }

    /// Of each segment its rows, and its tables as (bits of the key, radius).
    #[allow(clippy::type_complexity)]
    fn segments(&self, py: Python<'_>) -> PyResult<Vec<(usize, Vec<(u32, u32)>)>> {
        caught(|| {
            let inner = self.read(py)?;
            Ok(with_store!(&inner.store, W, store => store
                .segments
                .iter()
                .map(|segment| {
                    (segment.len(), segment.tables.iter().map(|table| (table.key.width, table.radius)).collect())
                })
                .collect()))
        })
    }

    /// Add one fingerprint for each id, in place of all that *replaced* have.
    #[pyo3(signature = (ids, words, threads, replaced=None))]
    fn add(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        words: PyReadonlyArray2<'_, u64>,
        threads: Option<usize>,
        replaced: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.sound(|| {
            let replaced = replaced.map(Named::of).transpose()?;
            let replaced = replaced.as_ref().map(Named::list).transpose()?.unwrap_or_default();
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
                let name = |ids: &mut Ids| match numbers {
                    Some(numbers) => _ = ids.extend(numbers),
                    None => list.iter().for_each(|id| _ = ids.push(*id)),
                };
                let put = |store: &mut Any| {
                    with_store!(store, W, store => {
                        let mut wide = Vec::new();
                        rows_of::<W>(words, width, None, &mut wide);
                        let rows = if width == W { words.as_chunks::<W>().0 } else { &wide };
                        store.add(rows, threads);
                    });
                };
                Ok(self.write().and_then(|mut inner| {
                    let gone = inner.entries_of(&replaced);
                    inner.add(count, numbers.is_none(), name, put)?;
                    inner.remove(&gone);
                    Ok(())
                }))
            })?;
            Ok(added?)
        })
    }

    fn add_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.sound(|| {
            let words = self.words_of(value)?;
            let text;
            let id = match id.cast::<PyString>() {
                Ok(name) => {
                    text = name.to_string_lossy().into_owned();
                    Id::Text(text.as_bytes())
                }
                Err(_) => Id::Number(id.extract()?),
            };
            let add = |inner: &mut Inner| {
                if inner.torn {
                    return Err(Refusal::Torn);
                }
                let put = |store: &mut Any| {
                    with_store!(store, W, store => store.add(&[padded::<W>(&words)], thread_count(None)));
                };
                inner.add(1, matches!(id, Id::Text(_)), |ids| _ = ids.push(id), put)
            };
            // A free lock is taken at once; only a taken one is waited for without the interpreter.
            Ok(match self.inner.try_write() {
                Ok(mut inner) => add(&mut inner),
                Err(_) => py.detach(|| self.write().and_then(|mut inner| add(&mut inner))),
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
            let mut hits = with_store!(&inner.store, W, store => store.hits_of_one(&padded::<W>(&words), radius));
            inner.order(&mut hits);
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
            let named = Named::of(ids)?;
            let list = named.list()?;
            let gone = answered(py, true, |_| {
                Ok(self.write().map(|mut inner| {
                    let gone = inner.entries_of(&list);
                    inner.remove(&gone)
                }))
            })?;
            Ok(gone?)
        })
    }

    /// Remove the entries of one id that have one value; how many went.
    fn remove_one(&self, py: Python<'_>, id: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.sound(|| {
            let words = self.words_of(value)?;
            let text;
            let id = match id.cast::<PyString>() {
                Ok(name) => {
                    text = name.to_string_lossy().into_owned();
                    Id::Text(text.as_bytes())
                }
                Err(_) => Id::Number(id.extract()?),
            };
            let gone = py.detach(|| {
                self.write().map(|mut inner| {
                    let hits = with_store!(&inner.store, W, store => store.hits_of_one(&padded::<W>(&words), 0));
                    let own = hits.iter().map(|hit| hit.entry).filter(|&entry| inner.ids.get(entry) == id);
                    let gone: Vec<u32> = own.collect();
                    inner.remove(&gone)
                })
            });
            Ok(gone?)
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
        self.sound(|| {
            let width = words.shape()[1];
            let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
            let threads = thread_count(threads);
            let inner = &*self.read(py)?;
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
        })
    }

    fn nearest<'py>(
        &self,
        py: Python<'py>,
        words: PyReadonlyArray2<'py, u64>,
        valid: Option<PyReadonlyArray1<'py, bool>>,
        count: usize,
        threads: Option<usize>,
    ) -> PyResult<HitArrays<'py>> {
        self.sound(|| {
            let width = words.shape()[1];
            let (words, valid) = (words.as_slice()?, valid.as_ref().map(|valid| valid.as_slice()).transpose()?);
            let threads = thread_count(threads);
            let inner = &*self.read(py)?;
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
                    append(found, &hits);
                });
                cancel.check().map_err(|_| Failure::Stopped)?;
                let mut hits = room_for(workers.iter().map(Vec::len).sum());
                workers.iter().for_each(|found| hits.extend_from_slice(found));
                inner.order(&mut hits);
                Ok(hits)
            })?;
            self.hits(py, inner, &hits)
        })
    }

    /// The ids and the words of everything in the index.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyArray1<u64>>)> {
        self.sound(|| {
            let inner = self.read(py)?;
            let (hits, words): (Vec<Hit>, Vec<u64>) = with_store!(&inner.store, W, store => {
                let rows = store.rows();
                let mut words = room_for(rows.len() * self.width);
                rows.iter().for_each(|row| words.extend_from_slice(&row.1[..self.width]));
                (gathered(rows.iter().map(|row| Hit { query: 0, entry: row.0, distance: 0 })), words)
            });
            Ok((names(py, &inner, &hits)?, words.into_pyarray(py)))
        })
    }

    /// Write the index to an open file; its stamp. Others may change the index meanwhile.
    fn write_to(&self, py: Python<'_>, file: Py<PyAny>, digest: &str) -> PyResult<Stamp> {
        let about = About { bits: self.bits, radius: self.radius, digest };
        let mut out = PyFile { file, fault: None };
        let written = self.sound(|| {
            let written = answered(py, true, |_| {
                let inner = self.inner.read().unwrap_or_else(PoisonError::into_inner);
                if inner.torn {
                    return Ok(Err(Refusal::Torn));
                }
                with_store!(&inner.store, W, store => {
                    let rows = store.rows();
                    let ids = inner.ids.only(rows.iter().map(|row| row.0));
                    drop(rows);
                    let segment = store.compacted(thread_count(None));
                    drop(inner); // nobody waits for the disk
                    Ok(Ok(index_file::write::<W>(&mut out, &segment, &ids, &about)))
                })
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
        answered(py, true, |_| Ok(load(&path, mapped)))?.map_err(|refused| refused.told(&path))
    }

    /// The index that the bytes of a file are, and the same.
    #[staticmethod]
    fn read_from(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<(HammingIndex, String, Stamp)> {
        let data = data.as_bytes();
        let opened = answered(py, data.len() > 1 << 20, |_| {
            let copied = copied(data, data.len()).map(Arc::new);
            Ok(copied.map_err(Refused::Io).and_then(|map| opened(&map, None)))
        })?;
        opened.map_err(|refused| refused.told(Path::new("the index")))
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

enum Refused {
    Io(io::Error),
    Changed,
    Damaged(String),
}

impl Refused {
    fn told(self, path: &Path) -> PyErr {
        match self {
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
}

/// What *source* holds, in memory that begins as a map does.
fn copied(mut source: impl Read, size: usize) -> io::Result<Mmap> {
    let mut memory = MmapMut::map_anon(size.max(1))?;
    source.read_exact(&mut memory[..size])?;
    memory.make_read_only()
}

fn load(path: &Path, mapped: bool) -> Result<(HammingIndex, String, Stamp), Refused> {
    let file = File::open(path).map_err(Refused::Io)?;
    let about = file.metadata().map_err(Refused::Io)?;
    let (size, modified) = (about.len(), about.modified().ok());
    if size == 0 {
        return Err(Refused::Damaged("the file is empty".into()));
    }
    let map = if mapped {
        // SAFETY: our files are never changed in place, only replaced, as docs/formats/index.md says. Who does
        // so nevertheless is found out by `Watch`, but for a change in the middle of a call.
        unsafe { Mmap::map(&file) }
    } else {
        copied(&file, usize::try_from(size).unwrap_or(usize::MAX))
    };
    let map = match map {
        Ok(map) => Arc::new(map),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(Refused::Changed),
        Err(error) => return Err(Refused::Io(error)),
    };
    let same = |file: &File| is_same(file, size, modified);
    let opened = if mapped {
        let changed = AtomicBool::new(false);
        let file = file.try_clone().map_err(Refused::Io)?;
        let path = path.to_owned();
        opened(&map, Some(Watch { path, file, size, modified, map: Arc::downgrade(&map), changed }))
    } else {
        opened(&map, None)
    };
    if same(&file) { opened } else { Err(Refused::Changed) }
}

/// The index in *map*, every byte of it checked.
fn opened(map: &Arc<Mmap>, watch: Option<Watch>) -> Result<(HammingIndex, String, Stamp), Refused> {
    let layout = index_file::parse(map).map_err(|damage| Refused::Damaged(damage.0))?;
    let (bits, radius) = (layout.bits, layout.radius);
    let mut store = Any::new(bits, radius);
    let ids;
    with_store!(&mut store, W, store => {
        let (segment, own) = layout.open::<W>(map).map_err(|damage| Refused::Damaged(damage.0))?;
        ids = own;
        *store = Store::of_segment(bits, radius, segment);
    });
    Ok((HammingIndex::of(Inner::new(store, ids), bits, radius, watch), layout.digest, layout.stamp))
}

/// A lock that was waited for without the interpreter, carried back to the thread that waits.
struct Waited<'a>(RwLockReadGuard<'a, Inner>);

// SAFETY: `detach` runs its closure on the calling thread, so the guard never leaves its thread.
unsafe impl Send for Waited<'_> {}

/// Check the bytes of an index file as loading would.
#[pyfunction]
fn check_index(data: &Bound<'_, PyBytes>) -> PyResult<()> {
    caught(|| index_file::parse(data.as_bytes()).map(drop).map_err(|damage| DamagedFile::new_err(damage.0)))
}

/// The stamp of an index file: two files that have the same are the same. None if it is none.
#[pyfunction]
fn index_stamp(path: PathBuf) -> PyResult<Option<Stamp>> {
    caught(|| {
        let read = File::open(&path).and_then(|mut file| index_file::stamp(&mut file));
        read.map_err(|error| Refused::Io(error).told(&path))
    })
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
            let numbers = valid.map(|valid| {
                let mut numbers: Vec<u32> = room_for(valid.len());
                numbers.extend((0u32..).zip(valid).filter(|known| *known.1).map(|known| known.0));
                numbers
            });
            let mut queries = room_for(numbers.as_ref().map_or(words.len(), |numbers| numbers.len() * width));
            match &numbers {
                None => queries.extend_from_slice(words),
                Some(numbers) => numbers.iter().for_each(|&row| {
                    queries.extend_from_slice(&words[row as usize * width..(row as usize + 1) * width]);
                }),
            }
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
        pair_arrays(py, &pairs)
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
                more_room(&mut pairs, rows.len());
                pairs.extend(rows.iter().map(|&right| Pair { left, right, distance: hit.distance }));
            }
            pairs[first..].sort_unstable();
            self.next += 1;
        }
        Ok(pairs)
    }
}
