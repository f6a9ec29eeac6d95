//! Python's view of the core: convert, let go of the interpreter, call the kernel, convert back.

mod arrays;
mod arrow;
mod documents;
mod errors;
mod hamming;
mod ids;
mod image;
mod index;
mod interpreter;
mod interrupt;
mod passages;
mod stream;
mod text;
mod texts;
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
    use super::{
        documents::{NativeUniques, line_ends, most_alike, one_of_each, ordered},
        documents::{read_jsonl, read_jsonl_fields, spellings, stars_of_pairs, survey_of},
        give_back,
        hamming::{components, groups, join, join_nearest, join_plan},
        hamming::{set_simd, simd_level, simd_levels, usual_threads},
        image::{image_agreements, image_corners, image_fingerprints, image_maps, image_regions},
        index::{HammingIndex, PairStream, check_index, index_stamp},
        interrupt::{check_thread_memory, watch},
        passages::{NativePassages, places_of_words},
        stream::{SimhashValue, StreamIndex},
        text::{NativeFrequencies, NativeRecipe, digest},
        verify::{NativeVerifier, figure_names, text_rule, walk_pairs},
    };

    #[pymodule_init]
    fn init(module: &Bound<PyModule>) -> PyResult<()> {
        super::interpreter::only_the_first(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("UNICODE_VERSION", crate::text::unicode::version())
    }
}
