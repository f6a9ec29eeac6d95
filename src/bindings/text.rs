#![forbid(unsafe_code)]
//! Texts to fingerprints, and the frequencies that weigh them.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::InvalidValue;
use super::arrow::ArrowTexts;
use super::interrupt::{caught, interruptible};
use super::texts::{Texts, strings, text_of, text_or_empty};
use crate::frequencies::{DEFAULT_MAX_FEATURES, Frequencies, Frozen, MOST_FEATURES};
use crate::hash::Hash;
use crate::recipe::{Empty, Reading, Recipe, Scratch, Weights};
use crate::system::memory;
use crate::system::parallel::{self, Cancel};
use crate::text::features::Features;
use crate::text::normalize::Normalization;

/// Above this many bytes of text a call looks for Ctrl-C.
pub(super) const LONG: usize = 1 << 20;
/// Bytes of text that a thread takes at a time.
const PIECE: usize = 1 << 16;
/// Up to this many bytes of text the interpreter is not let go: it takes well below a millisecond.
const SHORT: usize = 1 << 14;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeRecipe>()?;
    module.add_class::<NativeFrequencies>()?;
    module.add_function(wrap_pyfunction!(digest, module)?)?;
    Ok(())
}

/// How many texts make a piece of work.
pub(super) fn piece_of(texts: &Texts<'_>) -> usize {
    let mean = texts.bytes / texts.items.len().max(1) + 1;
    (PIECE / mean).clamp(1, 1024)
}

/// What a thread works with: its buffers, and room for a text.
pub(super) type Work = (Scratch, Vec<u8>);
type Prints<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray1<bool>>);

#[pyclass(name = "Recipe", module = "neardup._native", frozen)]
pub struct NativeRecipe(pub(super) Arc<Recipe>);

#[pymethods]
impl NativeRecipe {
    #[new]
    #[pyo3(signature = (*, normalize, features, weights, hash, key, bits, digest_slice, bit_order, tie, empty, frequencies))]
    #[expect(clippy::too_many_arguments, reason = "one for each fact of a scheme, by name")]
    fn new(
        py: Python<'_>,
        normalize: &str,
        features: &str,
        weights: &str,
        hash: &str,
        key: Option<&[u8]>,
        bits: usize,
        digest_slice: &str,
        bit_order: &str,
        tie: &str,
        empty: &str,
        frequencies: Option<PyRef<'_, NativeFrequencies>>,
    ) -> PyResult<NativeRecipe> {
        caught(|| {
            let unknown = |kind: &str, name: &str| InvalidValue::new_err(format!("unknown {kind} {name:?}"));
            let frequencies = frequencies.map(|table| table.frozen(py)).transpose()?;
            Ok(NativeRecipe(Arc::new(Recipe {
                normalization: Normalization::parse(normalize).ok_or_else(|| unknown("normalisation", normalize))?,
                features: Features::parse(features).ok_or_else(|| unknown("features", features))?,
                weights: match weights {
                    "count" => Weights::Count,
                    "set" => Weights::Set,
                    "log" => Weights::Log,
                    "log-df" => Weights::LogDf,
                    other => return Err(unknown("weights", other)),
                },
                hash: Hash::parse(hash, key).ok_or_else(|| unknown("hash", hash))?,
                bits,
                reading: Reading { last: digest_slice == "last", big_endian: bit_order == "big" },
                tie_gives_one: tie == "one",
                empty: match empty {
                    "none" => Empty::None,
                    "votes" => Empty::Votes,
                    "feature" => Empty::Feature,
                    other => return Err(unknown("empty rule", other)),
                },
                frequencies,
            })))
        })
    }

    fn fingerprint_one(&self, text: &Bound<'_, PyString>) -> PyResult<Option<Vec<u64>>> {
        thread_local! {
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        caught(|| {
            let own = text_of(text);
            let mut out = vec![0; self.0.words()];
            let mut run = |scratch: &mut Scratch| self.0.fingerprint(&*own, scratch, &mut out);
            let found = if own.len() <= SHORT {
                SCRATCH.with_borrow_mut(run)
            } else {
                text.py().detach(|| run(&mut Scratch::default()))
            };
            Ok(found.then_some(out))
        })
    }

    fn fingerprints_of_strings<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyList>,
        threads: Option<usize>,
    ) -> PyResult<Prints<'py>> {
        caught(|| {
            let own = strings(texts)?;
            self.run(py, Texts::from_list(&own), threads)
        })
    }

    fn fingerprints_of_arrow<'py>(
        &self,
        py: Python<'py>,
        texts: ArrowTexts,
        threads: Option<usize>,
    ) -> PyResult<Prints<'py>> {
        caught(|| self.run(py, Texts::from_arrow(&texts)?, threads))
    }

    fn fingerprint_of_features(&self, py: Python<'_>, features: Vec<(String, i64)>) -> PyResult<Option<Vec<u64>>> {
        caught(|| {
            Ok(py.detach(|| {
                let mut out = vec![0; self.0.words()];
                self.0.fingerprint_of(&borrowed(&features), &mut Scratch::default(), &mut out).then_some(out)
            }))
        })
    }

    /// Weight for minus weight against, a bit at a time.
    fn votes<'py>(&self, py: Python<'py>, features: Vec<(String, i64)>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        caught(|| {
            let (ones, total) = py.detach(|| self.0.weighted_votes(&borrowed(&features), &mut Scratch::default()));
            let sums: Option<Vec<i64>> = ones.iter().map(|sum| i64::try_from(2 * sum - total).ok()).collect();
            let sums = sums.ok_or_else(|| InvalidValue::new_err("the sum of the weights does not fit 64 bits"))?;
            Ok(sums.into_pyarray(py))
        })
    }

    fn normalized(&self, text: &Bound<'_, PyString>) -> PyResult<String> {
        caught(|| {
            let bytes = self.0.normalized(&text_of(text));
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    /// Every feature of a text as (kind, text, hash), in the order of the text.
    fn features(&self, text: &Bound<'_, PyString>) -> PyResult<Vec<(u8, String, u64)>> {
        caught(|| Ok(self.0.listed(&text_of(text), &mut Scratch::default())))
    }

    fn count_strings(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyList>,
        into: &Bound<'_, NativeFrequencies>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        caught(|| {
            let own = strings(texts)?;
            self.count(py, Texts::from_list(&own), into.get(), threads)
        })
    }

    fn count_arrow(
        &self,
        py: Python<'_>,
        texts: ArrowTexts,
        into: &Bound<'_, NativeFrequencies>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        caught(|| self.count(py, Texts::from_arrow(&texts)?, into.get(), threads))
    }
}

fn borrowed(features: &[(String, i64)]) -> Vec<(&str, i64)> {
    memory::gathered(features.iter().map(|(text, weight)| (text.as_str(), *weight)))
}

impl NativeRecipe {
    fn run<'py>(&self, py: Python<'py>, texts: Texts<'_>, threads: Option<usize>) -> PyResult<Prints<'py>> {
        let recipe = &self.0;
        let words = recipe.words();
        let count = texts.items.len();
        let mut prints = memory::zeros::<u64>(count.saturating_mul(words));
        let mut valid = memory::zeros::<bool>(count);
        let piece = piece_of(&texts);
        interruptible(py, texts.bytes > LONG, |cancel| {
            let pieces = texts.items.chunks(piece).zip(prints.chunks_mut(piece * words).zip(valid.chunks_mut(piece)));
            let threads = parallel::thread_count(threads).min(count.div_ceil(piece));
            parallel::drain(pieces, threads, cancel, Work::default, |(scratch, room), (texts, (prints, valid))| {
                for (at, (print, valid)) in prints.chunks_mut(words).zip(valid).enumerate() {
                    if let Some(Some(next)) = texts.get(at + 1) {
                        next.prefetch();
                    }
                    if let Some(text) = &texts[at] {
                        *valid = recipe.fingerprint(text.get(room), scratch, print);
                    }
                }
            });
        })?;
        Ok((prints.into_pyarray(py).reshape([count, words])?, valid.into_pyarray(py)))
    }

    fn count(
        &self,
        py: Python<'_>,
        texts: Texts<'_>,
        into: &NativeFrequencies,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let recipe = &self.0;
        let piece = piece_of(&texts);
        into.counting(py, texts.bytes > LONG, |table, cancel| {
            let threads = parallel::thread_count(threads).min(texts.items.len().div_ceil(piece));
            parallel::drain(
                texts.items.chunks(piece),
                threads,
                cancel,
                || (Work::default(), table.counter()),
                |((scratch, room), counter), texts| {
                    for text in texts {
                        let text = text_or_empty(text, room);
                        let (_, hashes, grams) = recipe.survey(text, scratch, true, |_| ());
                        counter.add(hashes, grams);
                    }
                },
            );
        })
    }
}

/// Locks are taken with the interpreter released: their holder may be waiting for it.
#[pyclass(name = "Frequencies", module = "neardup._native", frozen)]
pub struct NativeFrequencies {
    /// Several threads may count into it at once.
    table: RwLock<Frequencies>,
    /// What was made of the table; changed only by the holder of its lock.
    frozen: Mutex<Option<Arc<Frozen>>>,
}

impl NativeFrequencies {
    fn with(table: Frequencies) -> NativeFrequencies {
        NativeFrequencies { table: RwLock::new(table), frozen: Mutex::default() }
    }

    fn remember(&self, frozen: Option<Arc<Frozen>>) {
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = frozen;
    }

    /// Let *count* count into the table; see `interruptible`.
    pub(super) fn counting<T: Send>(
        &self,
        py: Python<'_>,
        long: bool,
        count: impl FnOnce(&Frequencies, &Cancel) -> T + Send,
    ) -> PyResult<T> {
        interruptible(py, long, |cancel| {
            let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
            let done = count(&table, cancel);
            self.remember(None);
            let is_full = table.is_full();
            drop(table);
            if is_full {
                self.locked().limit();
            }
            done
        })
    }

    fn locked(&self) -> RwLockWriteGuard<'_, Frequencies> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// What *ask* says of the table with all that was counted.
    fn settled<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut Frequencies) -> T + Send) -> PyResult<T> {
        interruptible(py, false, |_| {
            let mut table = self.locked();
            table.settle();
            ask(&mut table)
        })
    }

    pub(super) fn frozen(&self, py: Python<'_>) -> PyResult<Arc<Frozen>> {
        let known = || self.frozen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known() {
            return Ok(known);
        }
        self.settled(py, |table| {
            let frozen = known().unwrap_or_else(|| Arc::new(table.freeze()));
            self.remember(Some(frozen.clone()));
            frozen
        })
    }
}

#[pymethods]
impl NativeFrequencies {
    #[new]
    #[pyo3(signature = (max_features = DEFAULT_MAX_FEATURES))]
    fn new(max_features: usize) -> PyResult<NativeFrequencies> {
        if max_features as u64 > MOST_FEATURES {
            return Err(InvalidValue::new_err(format!("max_features must be at most {MOST_FEATURES}")));
        }
        caught(|| Ok(NativeFrequencies::with(Frequencies::new(max_features))))
    }

    #[getter]
    fn documents(&self, py: Python<'_>) -> PyResult<u64> {
        self.settled(py, |table| table.documents())
    }

    #[getter]
    fn features(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.settled(py, |table| table.features())
    }

    #[getter]
    fn max_features(&self, py: Python<'_>) -> PyResult<usize> {
        self.settled(py, |table| table.max_features())
    }

    /// Up to this frequency a feature is rare and keeps its whole weight.
    #[getter]
    fn knee(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.frozen(py)?.knee())
    }

    #[getter]
    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{:032x}", self.frozen(py)?.digest))
    }

    /// In how many documents the feature of that hash was seen.
    fn get(&self, py: Python<'_>, hash: u64) -> PyResult<u32> {
        self.settled(py, |table| table.get(hash))
    }

    fn merge(&self, py: Python<'_>, other: &Bound<'_, NativeFrequencies>) -> PyResult<()> {
        let other = other.get();
        if std::ptr::eq(self, other) {
            return Err(InvalidValue::new_err("a table cannot be added to itself; count into another one"));
        }
        let merged = interruptible(py, false, |_| {
            // In a fixed order, so that two threads that merge to and fro never wait for each other.
            let (mut own, mut theirs);
            if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
                (own, theirs) = (self.locked(), other.locked());
            } else {
                (theirs, own) = (other.locked(), self.locked());
            }
            own.settle();
            theirs.settle();
            self.remember(None);
            own.merge(&theirs)
        })?;
        merged.map_err(InvalidValue::new_err)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.settled(py, |table| table.to_bytes())?;
        PyBytes::new_with(py, bytes.len(), |out| {
            out.copy_from_slice(&bytes);
            Ok(())
        })
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<NativeFrequencies> {
        let table = interruptible(py, false, |_| Frequencies::from_bytes(data))?;
        table.map(NativeFrequencies::with).map_err(InvalidValue::new_err)
    }
}

/// The first *size* bytes of the digest of *data*.
#[pyfunction]
#[pyo3(signature = (hash, data, size, key = None))]
fn digest<'py>(
    py: Python<'py>,
    hash: &str,
    data: &[u8],
    size: usize,
    key: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    let kind = Hash::parse(hash, key).ok_or_else(|| InvalidValue::new_err(format!("unknown hash {hash:?}")))?;
    if kind.bits().is_some_and(|bits| size > bits / 8) {
        return Err(InvalidValue::new_err(format!("a {hash} digest has no {size} bytes")));
    }
    caught(|| {
        PyBytes::new_with(py, size, |out| {
            kind.digest(data, out);
            Ok(())
        })
    })
}
