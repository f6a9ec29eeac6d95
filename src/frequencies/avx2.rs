#![allow(unsafe_code)]
//! Document frequencies: half a bucket of keys is compared with a key at once.

use std::arch::x86_64::*;

use crate::frequencies::frozen::{Bucket, ExactTable, PLACES};
use crate::frequencies::shard::{SLOTS, Shard, Slots};
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `Shard::add_counts`.
    pub fn add_counts(self, shard: &mut Shard, keys: &[u64]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { add_counts(shard, keys) }
    }

    /// See `ExactTable::classes`.
    pub fn classes(self, table: &ExactTable, hashes: &[u64], out: &mut [u8]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { classes(table, hashes, out) }
    }
}

/// A bit for each of four words that is equal to the one beside it.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(one: __m256i, other: __m256i) -> u32 {
    _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(one, other))) as u32
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn classes(table: &ExactTable, hashes: &[u64], out: &mut [u8]) {
    table.classes(hashes, out, |bucket, key| find(bucket, key));
}

/// See `Bucket::find`.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn find(bucket: &Bucket, key: u64) -> u32 {
    let (words, key) = (std::ptr::from_ref(bucket).cast::<__m256i>(), _mm256_set1_epi64x(key as i64));
    // SAFETY: a bucket is 64 bytes, and begins with its keys.
    let (low, high) = unsafe { (_mm256_loadu_si256(words), _mm256_loadu_si256(words.add(1))) };
    // What is behind the keys may look like one.
    (equal(low, key) | equal(high, key) << 4 | 1 << PLACES).trailing_zeros()
}

#[target_feature(enable = "avx2,bmi1,bmi2")]
fn add_counts(shard: &mut Shard, keys: &[u64]) -> usize {
    shard.add_counts(keys, |slots, key| place(slots, key))
}

/// See `Slots::place`.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn place(slots: &Slots, key: u64) -> usize {
    let (words, wanted, free) =
        (std::ptr::from_ref(slots).cast::<__m256i>(), _mm256_set1_epi64x(key as i64), _mm256_setzero_si256());
    // SAFETY: they are 64 bytes, and begin with four keys.
    let low = unsafe { _mm256_loadu_si256(words) };
    let fifth = u32::from(slots.keys[4] == key || slots.keys[4] == 0);
    (equal(low, wanted) | equal(low, free) | fifth << 4 | 1 << SLOTS).trailing_zeros() as usize
}
