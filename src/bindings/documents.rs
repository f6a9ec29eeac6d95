#![forbid(unsafe_code)]
//! Documents as they are read, surveyed and put in order, and which of them stay.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::arrays::{Flags, Numbers, Row, Table, Threads, Words, signed, slice};
use super::interrupt::{answered, caught, interruptible};
use super::text::{NativeFrequencies, NativeRecipe};
use super::texts::{ManyTexts, strings, text_of};
use crate::arrow::array::ArrowTexts;
use crate::documents::order::{self, Key};
use crate::documents::survey;
use crate::documents::uniques::Uniques;
use crate::documents::{jsonl, stars};
use crate::system::fault::require;
use crate::system::parallel::thread_count;

type Places<'py> = PyReadonlyArray1<'py, i32>;
type Column = (Row<i64>, Row<u8>);
type Records = (Column, Option<Column>, Row<i64>);
type Survey = (Table<u64>, Row<bool>, Row<i64>, Row<u32>);

/// Offsets and bytes of the texts and the ids (None if no line has one) of a block of lines, and where
/// the lines begin; None if it holds a line that is not such a record beyond doubt.
#[pyfunction]
pub fn read_jsonl(py: Python, block: &Bound<PyBytes>, text: &str, id: &str) -> PyResult<Option<Records>> {
    let data = block.as_bytes();
    interruptible(py, false, |_| jsonl::records_of(data, text, id)).map(columns)
}

/// The same of lines whose text is made of several *fields*, each as often as it is there, with *between*
/// between two; None also if no line has one of them or a text has more bytes than *limit*.
#[pyfunction]
pub fn read_jsonl_fields(
    py: Python,
    block: &Bound<PyBytes>,
    fields: Vec<String>,
    id: &str,
    between: &str,
    limit: usize,
) -> PyResult<Option<Records>> {
    let (data, fields) = (block.as_bytes(), jsonl::Fields::new(&fields, between, limit));
    interruptible(py, false, |_| jsonl::records_of_fields_in(data, &fields, id)).map(columns)
}

fn columns(found: Option<jsonl::Records>) -> Option<Records> {
    let column = |column: jsonl::Column| (Row(column.offsets), Row(column.bytes));
    found.map(|found| (column(found.texts), found.ids.map(column), Row(found.lines)))
}

/// How many LF there are.
#[pyfunction]
pub fn line_ends(py: Python, data: &Bound<PyBytes>) -> PyResult<usize> {
    let data = data.as_bytes();
    interruptible(py, false, |_| jsonl::line_ends(data))
}

/// For each text 128 bits that identify its normalised form, whether there is information in it, its
/// characters, and 32 bits that tell its spellings apart, keyed with *key*; its features are counted into
/// *frequencies*.
#[pyfunction(name = "survey")]
pub fn survey_of(
    py: Python,
    recipe: PyRef<NativeRecipe>,
    texts: ManyTexts,
    frequencies: Option<PyRef<NativeFrequencies>>,
    key: [u8; 32],
    threads: Threads,
) -> PyResult<Survey> {
    let (recipe, texts) = (&*recipe.0, texts.texts()?);
    let shared = frequencies.as_ref().map(|table| &table.0);
    let found = interruptible(py, texts.are_long(), |cancel| {
        let look = |table: Option<&_>| survey::survey(recipe, &texts, table, key, threads, cancel);
        shared.map_or_else(|| look(None), |shared| shared.counting(|table| look(Some(table))))
    })?;
    Ok((found.content.into(), Row(found.informative), Row(found.lengths), Row(found.spellings)))
}

/// The spellings of texts, as `survey` gives them.
#[pyfunction]
pub fn spellings(py: Python, texts: ManyTexts, key: [u8; 32]) -> PyResult<Row<u32>> {
    let texts = texts.texts()?;
    interruptible(py, texts.are_long(), |cancel| survey::spellings(&texts, key, cancel)).map(Row)
}

/// A growing set of ids, each with the place where it was first met.
#[pyclass(frozen, name = "Uniques", module = "neardup._native")]
#[derive(Default)]
pub struct NativeUniques(Mutex<Uniques>);

impl NativeUniques {
    fn lock(&self) -> MutexGuard<'_, Uniques> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl NativeUniques {
    #[new]
    fn new() -> PyResult<NativeUniques> {
        caught(|| Ok(NativeUniques::default()))
    }

    /// The place where each of *ids* was first met: its own place if never before.
    fn add(&self, ids: &Bound<PyList>, places: Numbers) -> PyResult<Row<i64>> {
        caught(|| Ok(Row(self.lock().add_all(strings(ids)?.iter().map(text_of), places.as_slice()?)?)))
    }

    /// The memory that it takes.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        caught(|| Ok(self.lock().bytes()))
    }
}

/// The places of *rows* in the order of their *keys* (numbers of all rows, and whether the highest comes first),
/// and where those are equal in that of their ids.
#[pyfunction]
pub fn ordered(
    py: Python,
    ids: ArrowTexts,
    rows: Option<Places>,
    keys: Vec<(PyReadonlyArray1<u32>, bool)>,
    threads: Threads,
) -> PyResult<Row<i32>> {
    let rows = slice(&rows)?;
    let keys = keys.iter().map(|(numbers, highest)| Ok(Key { numbers: numbers.as_slice()?, highest: *highest }));
    let keys = keys.collect::<PyResult<Vec<_>>>()?;
    answered(py, false, |_| order::ordered(&ids, rows, &keys, thread_count(threads)).map(signed))
}

/// The document that represents each text, the text of each document (-1: none), and for each text the first
/// that is equal except for its code (only with *codes*).
#[pyfunction]
pub fn one_of_each(
    py: Python,
    content: Words,
    codes: Option<PyReadonlyArray1<u32>>,
    order: Places,
) -> PyResult<(Row<i32>, Row<i32>, Row<i32>)> {
    let (pairs, _) = content.as_slice()?.as_chunks::<2>();
    require(content.shape()[1] == 2, "content must have two words per row, and the order known rows")?;
    let (codes, order) = (slice(&codes)?, order.as_slice()?);
    let found = answered(py, false, |_| order::one_of_each(pairs, codes, order.iter().copied()))?;
    Ok((signed(found.document), Row(found.of_document), signed(found.twin)))
}

/// The valid rows that hold the most frequent value.
#[pyfunction]
pub fn most_alike(py: Python, words: Words, valid: PyReadonlyArray1<bool>) -> PyResult<Row<u32>> {
    let (width, words, valid) = (words.shape()[1], words.as_slice()?, valid.as_slice()?);
    answered(py, false, |_| order::most_alike(words, width, valid)).map(Row)
}

/// The keeper of each of *count* documents, numbered in keep order: pairs are sorted, the first before the second.
#[pyfunction(name = "stars")]
pub fn stars_of_pairs(py: Python, count: u32, left: Places, right: Places, fixed: Flags) -> PyResult<Row<i32>> {
    let (left, right, fixed) = (left.as_slice()?, right.as_slice()?, slice(&fixed)?);
    answered(py, false, |_| stars::stars_of(count, left, right, fixed).map(signed))
}
