#![forbid(unsafe_code)]
//! Passages that texts share.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::arrays::{Row, Rows, Table, Threads};
use super::interrupt::{answered, caught, interruptible};
use super::texts::{ManyTexts, text_of};
use crate::passages::places::word_places;
use crate::passages::scan::Search;

/// What a batch has: words, sharers, passages, passages that are not listed.
type Found = (u64, Table<u32>, Table<u32>, u64);

/// Texts whose passages are looked for in others: first all of them are added, then others are looked at.
#[pyclass(module = "neardup._native", name = "Passages")]
pub struct NativePassages(Search);

#[pymethods]
impl NativePassages {
    /// For passages of *words* words on, of which *most* places each are listed.
    #[new]
    fn new(words: usize, most: usize) -> PyResult<NativePassages> {
        caught(|| Ok(NativePassages(Search::new(words, most)?)))
    }

    /// Add texts that are looked for.
    fn add(&mut self, py: Python, texts: ManyTexts, threads: Threads) -> PyResult<()> {
        let texts = texts.texts()?;
        answered(py, true, |cancel| self.0.add(&texts, threads, cancel))
    }

    /// Look at the next texts. A row for each that shares something: its row, its words, those of them that are
    /// shared, whether it is the first to have some run. Then one for each passage: the place of its text among those,
    /// the text that was added, where it begins in both, its words.
    fn look(&mut self, py: Python, texts: ManyTexts, threads: Threads) -> PyResult<Found> {
        let texts = texts.texts()?;
        let found = answered(py, true, |cancel| self.0.look(&texts, threads, cancel))?;
        let (sharers, passages) = found.rows();
        Ok((found.words, sharers.into(), passages.into(), found.unlisted))
    }

    /// What of each text that was added is shared: the text, the words where it begins and ends, in how many texts its
    /// most common run is, and the first of them.
    fn stretches(&self, py: Python) -> PyResult<Table<u32>> {
        interruptible(py, true, |_| self.0.stretches()).map(Table::from)
    }

    /// For each passage, as `look` gives them, in how many texts its most common run is.
    fn texts_with(&self, py: Python, passages: Rows<u32, 5>) -> PyResult<Row<u32>> {
        answered(py, true, |_| self.0.texts_with(&passages.0)).map(Row)
    }

    /// How many words each text that was added has.
    #[getter]
    fn words(&self, py: Python) -> PyResult<Row<u32>> {
        interruptible(py, false, |_| self.0.words()).map(Row)
    }
}

/// Where each word of a text begins and ends, in characters.
#[pyfunction(name = "word_places")]
pub fn places_of_words(text: &Bound<PyString>) -> PyResult<Table<u32>> {
    let own = text_of(text);
    interruptible(text.py(), false, |_| word_places(&own)).map(Table::from)
}
