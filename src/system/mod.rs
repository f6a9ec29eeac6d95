//! What the machine gives: instructions, threads, memory, places in tables, numbers in mapped files.

pub mod column;
pub mod cores;
pub mod memory;
pub mod parallel;
pub mod simd;
pub mod spread;
