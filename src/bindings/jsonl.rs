#![forbid(unsafe_code)]
//! Blocks of JSON Lines to Arrow buffers.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::interrupt::interruptible;
use crate::documents::jsonl;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_jsonl, module)?)?;
    module.add_function(wrap_pyfunction!(line_ends, module)?)?;
    Ok(())
}

type Column<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<u8>>);
type Records<'py> = (Column<'py>, Option<Column<'py>>, Bound<'py, PyArray1<i64>>);

/// Offsets and bytes of the texts and the ids (None if no line has one) of a block of lines, and where
/// the lines begin; None if it holds a line that is not such a record beyond doubt.
#[pyfunction]
fn read_jsonl<'py>(
    py: Python<'py>,
    block: &Bound<'py, PyBytes>,
    text: &str,
    id: &str,
) -> PyResult<Option<Records<'py>>> {
    let data = block.as_bytes();
    let read = || jsonl::records(simdutf8::basic::from_utf8(data).ok()?, text, id);
    let Some(found) = interruptible(py, false, |_| read())? else { return Ok(None) };
    let column = |column: jsonl::Column| (column.offsets.into_pyarray(py), column.bytes.into_pyarray(py));
    Ok(Some((column(found.texts), found.ids.map(column), found.lines.into_pyarray(py))))
}

/// How many LF there are.
#[pyfunction]
fn line_ends(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<usize> {
    let data = data.as_bytes();
    // So few at a time that they can be counted in bytes.
    let add = |count: u8, byte: &u8| count.wrapping_add(u8::from(*byte == b'\n'));
    let count = |some: &[u8]| usize::from(some.iter().fold(0, add));
    interruptible(py, false, |_| data.chunks(192).map(count).sum())
}
