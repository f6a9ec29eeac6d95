//! Arrow arrays of texts, as Python hands them over.

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::errors::InvalidType;
use super::interrupt::no_memory;
use crate::arrow::array::ArrowTexts;
use crate::arrow::interface::{CArray, CSchema, Held, Layout};
use crate::system::memory;

/// What Python passes (`arrays.CoreTexts`): the array, and the size of each of its buffers.
#[derive(FromPyObject)]
struct Passed<'py> {
    #[pyo3(attribute)]
    array: Bound<'py, PyAny>,
    #[pyo3(attribute)]
    sizes: Vec<usize>,
}

impl<'py> FromPyObject<'_, 'py> for ArrowTexts {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<ArrowTexts> {
        let Passed { array, sizes } =
            given.extract().map_err(|_| InvalidType::new_err("not an Arrow array of texts"))?;
        // Arrow ends the process where it gets no memory for a capsule.
        let Some(capsules) = memory::lent(|| array.call_method0("__arrow_c_array__")) else {
            return Err(no_memory());
        };
        let capsules: (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) = capsules?.extract()?;
        let schema = capsules.0.pointer_checked(Some(c"arrow_schema"))?.cast::<CSchema>();
        let array = capsules.1.pointer_checked(Some(c"arrow_array"))?.cast::<CArray>();
        // SAFETY: a capsule of this name holds this structure, and lives until the end of this function.
        let layout = unsafe { Layout::of(schema.as_ref()) }?;
        // SAFETY: as above; the capsule was made for this call, and this thread has the interpreter.
        let held = unsafe { Held::taken(array.as_ptr()) }?;
        // SAFETY: `arrays.core_texts`, which alone makes what is passed, has the sizes from the buffers themselves.
        Ok(unsafe { ArrowTexts::new(layout, held, &sizes) }?)
    }
}
