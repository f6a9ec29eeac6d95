//! Distances of fingerprints, the bits that tables look at, and the plan of which tables to make.

#[macro_use]
pub mod widths;

pub mod distance;
pub mod keys;
pub mod plan;
