//! The first look at documents: what identifies each, and what all of them share.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use super::interrupt::interruptible;
use super::text::{LONG, NativeFrequencies, NativeRecipe, piece_of};
use super::texts::{ArrowChunk, Texts, text_or_empty};
use crate::parallel;
use crate::recipe::Scratch;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(survey, module)?)?;
    Ok(())
}

type Survey<'py> =
    (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u32>>);

/// For each text 128 bits that identify its normalised form, whether there is information in it, its
/// characters, and 32 bits that tell its spellings apart; its features are counted into *frequencies*. The caller
/// keeps the Arrow array.
#[pyfunction]
fn survey<'py>(
    py: Python<'py>,
    recipe: PyRef<'py, NativeRecipe>,
    chunk: ArrowChunk,
    frequencies: Option<PyRefMut<'py, NativeFrequencies>>,
    threads: Option<usize>,
) -> PyResult<Survey<'py>> {
    chunk.check()?;
    // SAFETY: the Python side passes the buffers of an Arrow array that it holds; Arrow memory
    // is immutable.
    let texts = unsafe { Texts::from_arrow(&chunk) }?;
    let count = texts.items.len();
    let mut content = vec![0u64; count * 2];
    let mut informative = vec![false; count];
    let mut lengths = vec![0i64; count];
    let mut spellings = vec![0u32; count];
    let piece = piece_of(&texts);
    let recipe = &recipe.0;
    let mut frequencies = frequencies;
    let table = frequencies.as_deref_mut().map(|own| {
        own.frozen = Default::default();
        &mut own.table
    });
    interruptible(py, texts.bytes > LONG, |cancel| {
        let threads = parallel::thread_count(threads).min(count.div_ceil(piece));
        let shared = table.as_deref();
        let rows = content.chunks_mut(piece * 2).zip(informative.chunks_mut(piece));
        let rows = rows.zip(lengths.chunks_mut(piece).zip(spellings.chunks_mut(piece)));
        parallel::drain(
            texts.items.chunks(piece).zip(rows),
            threads,
            cancel,
            || (Scratch::default(), Vec::new()),
            |(scratch, hashes), (texts, ((content, informative), (lengths, spellings)))| {
                hashes.clear();
                let rows = content.chunks_mut(2).zip(informative).zip(lengths.iter_mut().zip(spellings));
                for (text, ((content, informative), (length, spelling))) in texts.iter().zip(rows) {
                    let text = text_or_empty(text);
                    *length = characters(text.bytes());
                    *spelling = xxhash_rust::xxh3::xxh3_64(text.bytes()) as u32;
                    if let Some(found) = recipe.survey(text, scratch, shared.is_some()) {
                        content[0] = found as u64;
                        content[1] = (found >> 64) as u64;
                        *informative = true;
                        hashes.extend(recipe.different(scratch));
                    }
                }
                if let Some(table) = shared {
                    table.add(texts.len() as u64, hashes);
                }
            },
        );
        if let Some(table) = table {
            table.settle();
        }
    })?;
    let content = content.into_pyarray(py).reshape([count, 2])?;
    Ok((content, informative.into_pyarray(py), lengths.into_pyarray(py), spellings.into_pyarray(py)))
}

/// The characters of a text in UTF-8: all bytes but those that continue one.
fn characters(text: &[u8]) -> i64 {
    let begins = |bytes: &[u8]| bytes.iter().map(|&byte| u8::from(byte as i8 >= -64)).sum::<u8>();
    text.chunks(192).map(|bytes| i64::from(begins(bytes))).sum()
}
