//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

// Tests of the kernels build without Python, and then nobody calls most of them.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

// Its macro of the compiled widths is seen by what comes after it.
#[macro_use]
mod hamming;

mod arrow;
#[cfg(feature = "python")]
mod bindings;
mod compat;
mod documents;
mod frequencies;
mod hash;
mod image;
mod index;
#[cfg(feature = "instructions")]
pub mod instructions;
mod join;
mod passages;
mod recipe;
mod system;
mod text;
mod verify;
