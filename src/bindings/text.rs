#![forbid(unsafe_code)]
//! Texts to fingerprints, and the frequencies that weigh them.

use std::sync::Arc;

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::arrays::{Row, Table, table};
use super::errors::InvalidValue;
use super::interrupt::{answered, caught, interruptible};
use super::texts::{ManyTexts, text_of};
use crate::frequencies::shared::SharedFrequencies;
use crate::frequencies::{DEFAULT_MAX_FEATURES, Frequencies, Frozen};
use crate::hash::Hash;
use crate::recipe::bands::BANDS;
use crate::recipe::batches::is_short;
use crate::recipe::{Recipe, Scratch, Spec};
use crate::system::parallel::Cancel;

type Prints<'py> = (Table<'py, u64>, Row<'py, bool>);

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
            let frequencies = frequencies.map(|table| table.frozen(py)).transpose()?;
            let spec = Spec { normalize, features, weights, hash, key, bits, digest_slice, bit_order, tie, empty };
            Ok(NativeRecipe(Arc::new(Recipe::parse(&spec, frequencies)?)))
        })
    }

    fn fingerprint_one(&self, text: &Bound<'_, PyString>) -> PyResult<Option<Vec<u64>>> {
        caught(|| {
            let own = text_of(text);
            let run = || self.0.fingerprint_of_text(&own);
            Ok(if is_short(&own) { run() } else { text.py().detach(run) })
        })
    }

    fn fingerprints<'py>(
        &self,
        py: Python<'py>,
        texts: ManyTexts<'py>,
        threads: Option<usize>,
    ) -> PyResult<Prints<'py>> {
        caught(|| {
            let texts = texts.texts()?;
            let run = |cancel: &Cancel| self.0.fingerprints(&texts, threads, cancel);
            let (words, valid) = interruptible(py, texts.are_long(), run)?;
            Ok((table(py, words, self.0.words())?, valid.into_pyarray(py)))
        })
    }

    /// The same, and the bands of each text.
    fn banded<'py>(
        &self,
        py: Python<'py>,
        texts: ManyTexts<'py>,
        threads: Option<usize>,
    ) -> PyResult<(Prints<'py>, Table<'py, u32>)> {
        caught(|| {
            let texts = texts.texts()?;
            let run = |cancel: &Cancel| self.0.banded(&texts, threads, cancel);
            let ((words, valid), bands) = interruptible(py, texts.are_long(), run)??;
            let prints = (table(py, words, self.0.words())?, valid.into_pyarray(py));
            Ok((prints, table(py, bands, BANDS)?))
        })
    }

    fn fingerprint_of_features(&self, py: Python<'_>, features: Vec<(String, i64)>) -> PyResult<Option<Vec<u64>>> {
        interruptible(py, false, |_| self.0.fingerprint_of_features(&features))
    }

    /// Weight for minus weight against, a bit at a time.
    fn votes<'py>(&self, py: Python<'py>, features: Vec<(String, i64)>) -> PyResult<Row<'py, i64>> {
        Ok(answered(py, false, |_| self.0.balances(&features))?.into_pyarray(py))
    }

    fn normalized(&self, text: &Bound<'_, PyString>) -> PyResult<String> {
        caught(|| Ok(String::from_utf8_lossy(&self.0.normalized(&text_of(text))).into_owned()))
    }

    /// Every feature of a text as (kind, text, hash), in the order of the text.
    fn features(&self, text: &Bound<'_, PyString>) -> PyResult<Vec<(u8, String, u64)>> {
        caught(|| Ok(self.0.listed(&text_of(text), &mut Scratch::default())))
    }

    fn count(
        &self,
        py: Python<'_>,
        texts: ManyTexts<'_>,
        into: &Bound<'_, NativeFrequencies>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        caught(|| {
            let (texts, into) = (texts.texts()?, &into.get().0);
            interruptible(py, texts.are_long(), |cancel| {
                into.counting(|table| self.0.count(&texts, table, threads, cancel));
            })
        })
    }
}

/// Its locks are taken with the interpreter released: their holder may be waiting for it.
#[pyclass(name = "Frequencies", module = "neardup._native", frozen)]
pub struct NativeFrequencies(pub(super) SharedFrequencies);

impl NativeFrequencies {
    pub(super) fn frozen(&self, py: Python<'_>) -> PyResult<Arc<Frozen>> {
        self.0.known().map_or_else(|| interruptible(py, false, |_| self.0.frozen()), Ok)
    }

    fn settled<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&mut Frequencies) -> T + Send) -> PyResult<T> {
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
        answered(py, false, |_| self.0.merge(&other.0))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.settled(py, |table| table.to_bytes())?;
        bytes_of(py, &bytes)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, data: &[u8]) -> PyResult<NativeFrequencies> {
        let table = interruptible(py, false, |_| Frequencies::from_bytes(data))?;
        table.map(|table| NativeFrequencies(SharedFrequencies::of(table))).map_err(InvalidValue::new_err)
    }
}

/// `PyBytes::new`, but with an error instead of a panic if there is no memory.
fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |out| {
        out.copy_from_slice(bytes);
        Ok(())
    })
}

/// The first *size* bytes of the digest of *data*.
#[pyfunction]
#[pyo3(signature = (hash, data, size, key = None))]
pub fn digest<'py>(
    py: Python<'py>,
    hash: &str,
    data: &[u8],
    size: usize,
    key: Option<&[u8]>,
) -> PyResult<Bound<'py, PyBytes>> {
    caught(|| bytes_of(py, &Hash::named_digest(hash, key, data, size)?))
}
