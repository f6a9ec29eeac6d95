//! What the machine gives: instructions, threads, memory, places in tables, numbers in mapped files; and what is
//! said where a call ends without an answer.

pub mod column;
pub mod cores;
pub mod fault;
pub mod memory;
pub mod parallel;
pub mod simd;
pub mod spread;
pub mod watch;
