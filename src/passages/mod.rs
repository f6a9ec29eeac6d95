#![forbid(unsafe_code)]
//! Passages: runs of words that two texts share, found exactly, whatever the size of what is searched.
//!
//! texts -> `words` -> `winnow` -> `index` -> `shared`; `places` leads back to the characters of a text.

pub mod index;
pub mod places;
pub mod scan;
pub mod shared;
pub mod winnow;
pub mod words;
