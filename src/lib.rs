//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod bindings;
#[cfg(target_arch = "x86_64")]
mod bytes;
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
