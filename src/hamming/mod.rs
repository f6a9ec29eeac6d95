//! Distances of fingerprints, the bits that tables look at, and the plan of which tables to make.

#[macro_use]
pub mod widths;

pub mod distance;
pub mod keys;
pub mod plan;
pub mod planes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod tiles;
