//! The native core of neardup: the loops, as pure functions on slices.
//!
//! `bindings` is the only module that knows Python.

// Tests of the kernels build without Python, and then nobody calls most of them.
#![cfg_attr(not(feature = "python"), allow(dead_code))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(feature = "python")]
mod bindings;
#[cfg(target_arch = "x86_64")]
mod bytes;
mod cluster;
mod column;
mod cores;
mod corners;
mod directory;
mod distance;
#[cfg(target_arch = "x86_64")]
mod distance_avx512;
mod features;
mod foreign;
mod frequencies;
mod grams;
mod hash;
mod identity;
mod ids;
mod index;
mod index_census;
mod index_file;
mod index_long;
mod index_names;
mod index_stream;
mod join;
mod join_nearest;
mod jsonl;
mod keys;
mod md5;
mod memory;
mod mix;
mod nearest;
mod neighbours;
mod normalize;
mod order;
mod parallel;
mod picture;
mod plan;
mod profile;
mod ranks;
mod recipe;
mod resolve;
mod simd;
mod sorting;
mod spread;
mod tally;
mod texts;
mod unicode;
mod unicode_table;
mod uniques;
mod verify;
mod votes;
