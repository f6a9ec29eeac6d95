#![forbid(unsafe_code)]
//! Images: thumbnails to fingerprints, and the agreement of two of them.

pub mod corners;
pub mod regions;
pub mod thumbs;
