//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

// Tests of the kernels build without Python, and then nobody calls most of them.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

#[cfg(feature = "python")]
mod bindings;
mod features;
mod frequencies;
mod hash;
mod mix;
mod normalize;
mod parallel;
mod recipe;
mod simd;
mod unicode;
mod unicode_table;
mod votes;
