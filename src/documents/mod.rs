#![forbid(unsafe_code)]
//! Documents around their comparison: lines to ids and texts, ids already seen, equal texts, an order, and who stays.

pub mod identity;
pub mod jsonl;
pub mod order;
pub mod stars;
pub mod survey;
pub mod uniques;
