#![deny(unsafe_code)]
//! Verification: a candidate pair measured on its real features, and judged.
//!
//! Everything is integers: similarities are in ten-thousandths, rounded down. What decides
//! and why is explained in docs/quality.md; each verdict has a reason that a user understands.
//!
//! texts -> `texts` -> `profile` -> `measures` -> `rule` -> `contest` -> `figures`, all of it run by `verifier`.

pub mod contest;
pub mod directory;
pub mod figures;
pub mod gaps;
pub mod measures;
pub mod neighbours;
pub mod preserving;
pub mod profile;
pub mod profiles;
pub mod ranks;
pub mod rule;
pub mod subjects;
pub mod texts;
pub mod titles;
pub mod tokens;
pub mod verifier;
