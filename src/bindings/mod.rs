//! Python's view of the core: convert, let go of the interpreter, call the kernel, convert back.

mod arrays;
mod arrow;
mod errors;
mod hamming;
mod image;
mod index;
mod interpreter;
mod interrupt;
mod jsonl;
mod order;
mod stream;
mod survey;
mod text;
mod texts;
mod uniques;
mod verify;

use pyo3::prelude::*;

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
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::give_back;
    #[pymodule_export]
    use super::hamming::{
        components, groups, join, join_nearest, join_plan, set_simd, simd_level, simd_levels, usual_threads,
    };
    #[pymodule_export]
    use super::image::{image_agreements, image_corners, image_fingerprints, image_maps};
    #[pymodule_export]
    use super::index::{HammingIndex, PairStream, check_index, index_stamp};
    #[pymodule_export]
    use super::interrupt::{check_thread_memory, watch};
    #[pymodule_export]
    use super::jsonl::{line_ends, read_jsonl};
    #[pymodule_export]
    use super::order::{most_alike, one_of_each, ordered, stars_of_pairs};
    #[pymodule_export]
    use super::stream::{SimhashValue, StreamIndex};
    #[pymodule_export]
    use super::survey::{spellings, survey_of};
    #[pymodule_export]
    use super::text::{NativeFrequencies, NativeRecipe, digest};
    #[pymodule_export]
    use super::uniques::NativeUniques;
    #[pymodule_export]
    use super::verify::{NativeVerifier, text_rule, walk_pairs};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interpreter::only_the_first(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("UNICODE_VERSION", crate::text::unicode::version())
    }
}
