//! Python's view of the core: convert, let go of the interpreter, call the kernel, convert back.

use pyo3::prelude::*;

mod hamming;
mod index;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    hamming::register(module)?;
    index::register(module)?;
    Ok(())
}
