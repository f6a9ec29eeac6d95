//! The kernels for CPUs with AVX2. Most are the plain loops, compiled for it.

use std::arch::x86_64::*;

use crate::simd::{self, Level};
use crate::{md5, mix, votes};

/// Stands for the instructions: whoever has one may use the kernels.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Avx2 {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx2> {
        (simd::level() >= Level::Avx2).then_some(Avx2(()))
    }

    /// See `votes::count`.
    pub fn count(self, hashes: &[u64], ones: &mut [u32; 64]) {
        // SAFETY: `in_force` found the instructions; the same holds in all functions below.
        unsafe { count(hashes, ones) }
    }

    /// See `votes::weigh`.
    pub fn weigh(self, hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) {
        // SAFETY: as in `count`.
        unsafe { weigh(hashes, weights, ones) }
    }

    /// See `mix::words`.
    pub fn words(self, hashes: &[u64], j: usize, out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { words(hashes, j, out) }
    }

    /// See `mix::hash_windows`.
    pub fn hash_windows(self, text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { hash_windows(text, from, width, seed, out) }
    }

    /// See `md5::blocks`.
    pub fn md5(self, message: &md5::Message) -> md5::Digests {
        // SAFETY: as in `count`.
        unsafe { md5_blocks(message) }
    }
}

/// Byte i of a vector is compared with bit i % 8 of byte i / 8 of the hash, and counts where it is set.
#[target_feature(enable = "avx2")]
fn count(hashes: &[u64], ones: &mut [u32; 64]) {
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let byte = |first: i8| {
        let eight = |byte: i8| i64::from_le_bytes([byte as u8; 8]);
        _mm256_set_epi64x(eight(first + 3), eight(first + 2), eight(first + 1), eight(first))
    };
    let (low, high) = (byte(0), byte(4));
    for round in hashes.chunks(255) {
        let mut counters = [_mm256_setzero_si256(); 2];
        for hash in round {
            let hash = _mm256_set1_epi64x(*hash as i64);
            for (counter, bytes) in counters.iter_mut().zip([low, high]) {
                let spread = _mm256_and_si256(_mm256_shuffle_epi8(hash, bytes), bit);
                *counter = _mm256_sub_epi8(*counter, _mm256_cmpeq_epi8(spread, bit));
            }
        }
        let mut flat = [0u8; 64];
        for (half, counter) in flat.chunks_exact_mut(32).zip(counters) {
            // SAFETY: half of the counters is 32 bytes.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), counter) };
        }
        for (one, byte) in ones.iter_mut().zip(flat) {
            *one += u32::from(byte);
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn weigh(hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) {
    votes::weigh_plain(hashes, weights, ones);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn words(hashes: &[u64], j: usize, out: &mut [u64]) {
    mix::words_plain(hashes, j, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn hash_windows(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    mix::hash_windows_plain(text, from, width, seed, out);
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn md5_blocks(message: &md5::Message) -> md5::Digests {
    md5::blocks_plain(message)
}
