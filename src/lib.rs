//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

mod bindings;

// The Hamming engine.
pub mod cluster;
pub mod column;
pub mod distance;
#[cfg(target_arch = "x86_64")]
mod distance_avx512;
pub mod ids;
pub mod index;
pub mod index_file;
pub mod join;
pub mod keys;
pub mod parallel;
pub mod plan;
pub mod resolve;
pub mod simd;
