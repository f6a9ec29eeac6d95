#![forbid(unsafe_code)]
//! Texts to fingerprints, and the frequencies that weigh them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arrays::{Row, Table, Threads};
use super::interrupt::{answered, caught, interruptible};
use super::texts::{Bytes, ManyTexts, text_of};
use crate::frequencies::shared::SharedFrequencies;
use crate::frequencies::{DEFAULT_MAX_FEATURES, Frequencies, Frozen};
use crate::hash::Hash;
use crate::recipe::bands::BANDS;
use crate::recipe::batches::{Made, Weighted, is_short};
use crate::recipe::{Recipe, Scratch, Spec};
use crate::system::fault::Fault;

type Prints = (Table<u64>, Row<bool>);

#[pyclass(name = "Recipe", module = "neardup._native", frozen)]
pub struct NativeRecipe(pub(super) Arc<Recipe>);

impl NativeRecipe {
    fn prints(&self, (words, valid): Made) -> Prints {
        (Table(words, self.0.words()), Row(valid))
    }
}

#[pymethods]
impl NativeRecipe {
    #[new]
    #[pyo3(signature = (*, normalize, features, weights, hash, key, bits, digest_slice, bit_order, tie, empty, frequencies))]
    #[expect(clippy::too_many_arguments, reason = "one for each fact of a scheme, by name")]
    fn new(
        py: Python,
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
        frequencies: Option<PyRef<NativeFrequencies>>,
    ) -> PyResult<NativeRecipe> {
        caught(|| {
            let frequencies = frequencies.map(|table| table.frozen(py)).transpose()?;
            let spec = Spec { normalize, features, weights, hash, key, bits, digest_slice, bit_order, tie, empty };
            Ok(NativeRecipe(Arc::new(Recipe::parse(&spec, frequencies)?)))
        })
    }

    fn fingerprint_one(&self, text: &Bound<PyString>) -> PyResult<Option<Vec<u64>>> {
        caught(|| {
            let own = text_of(text);
            let run = || self.0.fingerprint_of_text(&own);
            Ok(if is_short(&own) { run() } else { text.py().detach(run) })
        })
    }

    fn fingerprints(&self, py: Python, texts: ManyTexts, threads: Threads) -> PyResult<Prints> {
        let texts = texts.texts()?;
        let made = interruptible(py, texts.are_long(), |cancel| self.0.fingerprints(&texts, threads, cancel))?;
        Ok(self.prints(made))
    }

    /// The same, and the bands of each text.
    fn banded(&self, py: Python, texts: ManyTexts, threads: Threads) -> PyResult<(Prints, Table<u32>)> {
        let texts = texts.texts()?;
        let (made, bands) = answered(py, texts.are_long(), |cancel| self.0.banded(&texts, threads, cancel))?;
        Ok((self.prints(made), Table(bands, BANDS)))
    }

    fn fingerprint_of_features(&self, py: Python, features: Vec<Weighted>) -> PyResult<Option<Vec<u64>>> {
        interruptible(py, false, |_| self.0.fingerprint_of_features(&features))
    }

    /// Weight for minus weight against, a bit at a time.
    fn votes(&self, py: Python, features: Vec<Weighted>) -> PyResult<Row<i64>> {
        answered(py, false, |_| self.0.balances(&features)).map(Row)
    }

    fn normalized(&self, text: &Bound<PyString>) -> PyResult<String> {
        caught(|| Ok(String::from_utf8_lossy(&self.0.normalized(&text_of(text))).into_owned()))
    }

    /// Every feature of a text as (kind, text, hash), in the order of the text.
    fn features(&self, text: &Bound<PyString>) -> PyResult<Vec<(u8, String, u64)>> {
        caught(|| Ok(self.0.listed(&text_of(text), &mut Scratch::default())))
    }

    fn count(&self, py: Python, texts: ManyTexts, into: PyRef<NativeFrequencies>, threads: Threads) -> PyResult<()> {
        let (texts, into) = (texts.texts()?, &into.0);
        interruptible(py, texts.are_long(), |cancel| {
            into.counting(|table| self.0.count(&texts, table, threads, cancel));
        })
    }
}

/// Its locks are taken with the interpreter released: their holder may be waiting for it.
#[pyclass(name = "Frequencies", module = "neardup._native", frozen)]
pub struct NativeFrequencies(pub(super) SharedFrequencies);

impl NativeFrequencies {
    pub(super) fn frozen(&self, py: Python) -> PyResult<Arc<Frozen>> {
        self.0.known().map_or_else(|| interruptible(py, false, |_| self.0.frozen()), Ok)
    }

    fn settled<T: Send>(&self, py: Python, ask: impl FnOnce(&mut Frequencies) -> T + Send) -> PyResult<T> {
        interruptible(py, false, |_| self.0.settled(ask))
    }
}

#[pymethods]
impl NativeFrequencies {
    #[new]
    #[pyo3(signature = (max_features = DEFAULT_MAX_FEATURES))]
    fn new(max_features: usize) -> PyResult<NativeFrequencies> {
        caught(|| Ok(NativeFrequencies(SharedFrequencies::new(max_features)?)))
    }

    #[getter]
    fn documents(&self, py: Python) -> PyResult<u64> {
        self.settled(py, |table| table.documents())
    }

    #[getter]
    fn features(&self, py: Python) -> PyResult<Option<usize>> {
        self.settled(py, |table| table.features())
    }

    #[getter]
    fn max_features(&self, py: Python) -> PyResult<usize> {
        self.settled(py, |table| table.max_features())
    }

    /// Up to this frequency a feature is rare and keeps its whole weight.
    #[getter]
    fn knee(&self, py: Python) -> PyResult<u32> {
        Ok(self.frozen(py)?.knee())
    }

    #[getter]
    fn digest(&self, py: Python) -> PyResult<String> {
        Ok(format!("{:032x}", self.frozen(py)?.digest))
    }

    /// In how many documents the feature of that hash was seen.
    fn get(&self, py: Python, hash: u64) -> PyResult<u32> {
        self.settled(py, |table| table.get(hash))
    }

    fn merge(&self, py: Python, other: PyRef<NativeFrequencies>) -> PyResult<()> {
        let other = &other.0;
        answered(py, false, |_| self.0.merge(other))
    }

    fn to_bytes(&self, py: Python) -> PyResult<Bytes> {
        self.settled(py, |table| Bytes(table.to_bytes()))
    }

    #[staticmethod]
    fn from_bytes(py: Python, data: &[u8]) -> PyResult<NativeFrequencies> {
        let table = answered(py, false, |_| Frequencies::from_bytes(data).map_err(Fault::Value))?;
        Ok(NativeFrequencies(SharedFrequencies::of(table)))
    }
}

/// The first *size* bytes of the digest of *data*.
#[pyfunction]
#[pyo3(signature = (hash, data, size, key = None))]
pub fn digest(hash: &str, data: &[u8], size: usize, key: Option<&[u8]>) -> PyResult<Bytes> {
    caught(|| Ok(Bytes(Hash::named_digest(hash, key, data, size)?)))
}
