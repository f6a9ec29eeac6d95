#![forbid(unsafe_code)]
//! The first look at documents: what identifies each, and what all of them share.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use super::arrow::ArrowTexts;
use super::interrupt::{caught, interruptible};
use super::text::{LONG, NativeFrequencies, NativeRecipe, Work, piece_of};
use super::texts::{Texts, text_or_empty};
use crate::documents::identity::Identity;
use crate::frequencies::Frequencies;
use crate::system::memory::{gathered, zeros};
use crate::system::parallel::{self, Cancel};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(survey, module)?)?;
    module.add_function(wrap_pyfunction!(spellings, module)?)
}

type Survey<'py> =
    (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);

/// For each text 128 bits that identify its normalised form, whether there is information in it, its
/// characters, and 32 bits that tell its spellings apart, keyed with *key*; its features are counted into
/// *frequencies*.
#[pyfunction]
fn survey<'py>(
    py: Python<'py>,
    recipe: PyRef<'py, NativeRecipe>,
    texts: ArrowTexts,
    frequencies: Option<Py<NativeFrequencies>>,
    key: [u8; 32],
    threads: Option<usize>,
) -> PyResult<Survey<'py>> {
    caught(|| surveyed(py, &recipe, &Texts::from_arrow(&texts)?, frequencies, key, threads))
}

fn surveyed<'py>(
    py: Python<'py>,
    recipe: &NativeRecipe,
    texts: &Texts<'_>,
    frequencies: Option<Py<NativeFrequencies>>,
    key: [u8; 32],
    threads: Option<usize>,
) -> PyResult<Survey<'py>> {
    let identity = Identity::new(key);
    let count = texts.items.len();
    let mut content = zeros::<u64>(count.saturating_mul(2));
    let (mut informative, mut lengths, mut spellings) = (zeros(count), zeros(count), zeros(count));
    let piece = piece_of(texts);
    let recipe = &recipe.0;
    let mut look = |table: Option<&Frequencies>, cancel: &Cancel| {
        let threads = parallel::thread_count(threads).min(count.div_ceil(piece));
        let rows = content.chunks_mut(piece * 2).zip(informative.chunks_mut(piece));
        let rows = rows.zip(lengths.chunks_mut(piece).zip(spellings.chunks_mut(piece)));
        parallel::drain(
            texts.items.chunks(piece).zip(rows),
            threads,
            cancel,
            || (Work::default(), table.map(Frequencies::counter)),
            |((scratch, room), counter), (texts, ((content, informative), (lengths, spellings)))| {
                let rows = content.chunks_mut(2).zip(informative).zip(lengths.iter_mut().zip(spellings));
                for (text, ((content, informative), (length, spelling))) in texts.iter().zip(rows) {
                    let text = text_or_empty(text, room);
                    *length = characters(text.bytes());
                    *spelling = identity.spelling(text.bytes());
                    let (found, hashes, grams) =
                        recipe.survey(text, scratch, table.is_some(), |text| identity.content(text));
                    if let Some(found) = found {
                        content.copy_from_slice(&found);
                        *informative = true;
                    }
                    if let Some(counter) = counter {
                        counter.add(hashes, grams);
                    }
                }
            },
        );
    };
    let long = texts.bytes > LONG;
    match frequencies {
        Some(frequencies) => frequencies.get().counting(py, long, |table, cancel| look(Some(table), cancel)),
        None => interruptible(py, long, |cancel| look(None, cancel)),
    }?;
    let content = content.into_pyarray(py).reshape([count, 2])?;
    Ok((content, informative.into_pyarray(py), lengths.into_pyarray(py), spellings.into_pyarray(py)))
}

/// The spellings of texts, as `survey` gives them.
#[pyfunction]
fn spellings<'py>(py: Python<'py>, texts: ArrowTexts, key: [u8; 32]) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let texts = caught(|| Texts::from_arrow(&texts))?;
    let found = interruptible(py, false, |_| -> Vec<u32> {
        let (identity, mut room) = (Identity::new(key), Vec::new());
        gathered(texts.items.iter().map(|text| identity.spelling(text_or_empty(text, &mut room).bytes())))
    })?;
    Ok(found.into_pyarray(py))
}

/// The characters of a text in UTF-8: all bytes but those that continue one.
fn characters(text: &[u8]) -> i64 {
    let begins = |bytes: &[u8]| bytes.iter().map(|&byte| u8::from(byte as i8 >= -64)).sum::<u8>();
    text.chunks(192).map(|bytes| i64::from(begins(bytes))).sum()
}
