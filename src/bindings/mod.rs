//! Python's view of the core: convert, let go of the interpreter, call the kernel, convert back.

mod arrow;
mod hamming;
mod index;
mod interpreter;
mod interrupt;
mod jsonl;
mod order;
mod picture;
mod stream;
mod survey;
mod text;
mod texts;
mod uniques;
mod verify;

use pyo3::prelude::*;

// What Python raises, so that a caller catches one kind of error.
pyo3::import_exception!(neardup.errors, ChangedFile);
pyo3::import_exception!(neardup.errors, DamagedFile);
pyo3::import_exception!(neardup.errors, InvalidType);
pyo3::import_exception!(neardup.errors, InvalidValue);
pyo3::import_exception!(neardup.errors, LimitReached);

/// Give memory that was freed back to the system.
#[pyfunction]
fn give_back() -> PyResult<()> {
    interrupt::caught(|| {
        crate::system::memory::give_back();
        Ok(())
    })
}

// A free-threaded Python switches its lock on for us: nobody has tested the core without it.
#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    interpreter::only_the_first(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("UNICODE_VERSION", crate::text::unicode::version())?;
    module.add_function(wrap_pyfunction!(give_back, module)?)?;
    module.add_function(wrap_pyfunction!(interrupt::check_thread_memory, module)?)?;
    module.add_function(wrap_pyfunction!(interrupt::watch, module)?)?;
    hamming::register(module)?;
    index::register(module)?;
    jsonl::register(module)?;
    order::register(module)?;
    picture::register(module)?;
    stream::register(module)?;
    survey::register(module)?;
    uniques::register(module)?;
    text::register(module)?;
    verify::register(module)?;
    Ok(())
}
