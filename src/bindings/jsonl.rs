#![forbid(unsafe_code)]
//! Blocks of JSON Lines to Arrow buffers.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::arrays::Row;
use super::interrupt::interruptible;
use crate::documents::jsonl;

type Column<'py> = (Row<'py, i64>, Row<'py, u8>);
type Records<'py> = (Column<'py>, Option<Column<'py>>, Row<'py, i64>);

/// Offsets and bytes of the texts and the ids (None if no line has one) of a block of lines, and where
/// the lines begin; None if it holds a line that is not such a record beyond doubt.
#[pyfunction]
pub fn read_jsonl<'py>(
    py: Python<'py>,
    block: &Bound<'py, PyBytes>,
    text: &str,
    id: &str,
) -> PyResult<Option<Records<'py>>> {
    let data = block.as_bytes();
    let column = |column: jsonl::Column| (column.offsets.into_pyarray(py), column.bytes.into_pyarray(py));
    let found = interruptible(py, false, |_| jsonl::records_of(data, text, id))?;
    Ok(found.map(|found| (column(found.texts), found.ids.map(column), found.lines.into_pyarray(py))))
}

/// How many LF there are.
#[pyfunction]
pub fn line_ends(py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<usize> {
    let data = data.as_bytes();
    interruptible(py, false, |_| jsonl::line_ends(data))
}
