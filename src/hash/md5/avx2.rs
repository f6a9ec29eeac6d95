#![allow(unsafe_code)]
//! The plain loops, compiled for AVX2.

use super::{Digests, Message, blocks_plain};
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `blocks`.
    pub fn md5(self, message: &Message) -> Digests {
        // SAFETY: `in_force` found the instructions.
        unsafe { md5_blocks(message) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn md5_blocks(message: &Message) -> Digests {
    blocks_plain(message)
}
