#![allow(unsafe_code)]
//! Document frequencies: a bucket of keys is compared with a key at once.

use std::arch::x86_64::*;

use crate::frequencies::frozen::{Bucket, ExactTable, PLACES};
use crate::frequencies::shard::{SLOTS, Shard, Slots};
use crate::system::simd::Avx512Base;

impl Avx512Base {
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

#[target_feature(enable = "avx512f,bmi1,bmi2,popcnt")]
fn classes(table: &ExactTable, hashes: &[u64], out: &mut [u8]) {
    table.classes(hashes, out, |bucket, key| find(bucket, key));
}

/// See `Bucket::find`.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
fn find(bucket: &Bucket, key: u64) -> u32 {
    // SAFETY: a bucket is 64 bytes, and begins with its keys.
    let words = unsafe { _mm512_loadu_si512(std::ptr::from_ref(bucket).cast()) };
    let places = u32::from(_mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(key as i64)));
    // What is behind the keys may look like one.
    (places | 1 << PLACES).trailing_zeros()
}

#[target_feature(enable = "avx512f,bmi1")]
fn add_counts(shard: &mut Shard, keys: &[u64]) -> usize {
    shard.add_counts(keys, |slots, key| place(slots, key))
}

/// See `Slots::place`.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
fn place(slots: &Slots, key: u64) -> usize {
    // SAFETY: they are 64 bytes, and begin with the keys.
    let words = unsafe { _mm512_loadu_si512(std::ptr::from_ref(slots).cast()) };
    let own = _mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(key as i64));
    let places = u32::from(own | _mm512_testn_epi64_mask(words, words));
    // What is behind the keys may look like one.
    (places | 1 << SLOTS).trailing_zeros() as usize
}
