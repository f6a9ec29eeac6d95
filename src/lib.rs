//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

mod bindings;
mod features;
mod foreign;
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
