//! Python's view of the core: convert, let go of the interpreter, call the kernel, convert back.

mod interrupt;
mod text;
mod texts;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    text::register(module)?;
    Ok(())
}
