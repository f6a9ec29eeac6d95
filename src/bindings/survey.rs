#![forbid(unsafe_code)]
//! The first look at documents.

use numpy::IntoPyArray;
use pyo3::prelude::*;

use super::arrays::{Row, Table, table};
use super::interrupt::{caught, interruptible};
use super::text::{NativeFrequencies, NativeRecipe};
use crate::arrow::array::ArrowTexts;
use crate::documents::survey;
use crate::text::texts::Texts;

type Survey<'py> = (Table<'py, u64>, Row<'py, bool>, Row<'py, i64>, Row<'py, u32>);

/// For each text 128 bits that identify its normalised form, whether there is information in it, its
/// characters, and 32 bits that tell its spellings apart, keyed with *key*; its features are counted into
/// *frequencies*.
#[pyfunction(name = "survey")]
pub fn survey_of<'py>(
    py: Python<'py>,
    recipe: PyRef<'py, NativeRecipe>,
    texts: ArrowTexts,
    frequencies: Option<Py<NativeFrequencies>>,
    key: [u8; 32],
    threads: Option<usize>,
) -> PyResult<Survey<'py>> {
    caught(|| {
        let (recipe, texts) = (&recipe.0, Texts::of_arrow(&texts)?);
        let found = interruptible(py, texts.are_long(), |cancel| {
            let look = |table: Option<&_>| survey::survey(recipe, &texts, table, key, threads, cancel);
            match &frequencies {
                Some(frequencies) => frequencies.get().0.counting(|table| look(Some(table))),
                None => look(None),
            }
        })?;
        let (lengths, spellings) = (found.lengths.into_pyarray(py), found.spellings.into_pyarray(py));
        let content = table(py, found.content.into_flattened(), 2)?;
        Ok((content, found.informative.into_pyarray(py), lengths, spellings))
    })
}

/// The spellings of texts, as `survey` gives them.
#[pyfunction]
pub fn spellings<'py>(py: Python<'py>, texts: ArrowTexts, key: [u8; 32]) -> PyResult<Row<'py, u32>> {
    caught(|| {
        let texts = Texts::of_arrow(&texts)?;
        let found = interruptible(py, texts.are_long(), |cancel| survey::spellings(&texts, key, cancel))?;
        Ok(found.into_pyarray(py))
    })
}
