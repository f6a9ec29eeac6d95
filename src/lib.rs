//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

mod bindings;
mod features;
mod frequencies;
mod hash;
mod mix;
mod normalize;
mod parallel;
mod profile;
mod recipe;
mod simd;
mod texts;
mod unicode;
mod unicode_table;
mod verify;
mod votes;
