#![deny(unsafe_code)]
//! A text to its normalised form, and that to features.

#[cfg(target_arch = "x86_64")]
pub mod bytes;
pub mod features;
pub mod normalize;
pub mod texts;
pub mod unicode;
pub mod unicode_table;
