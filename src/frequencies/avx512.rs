#![allow(unsafe_code)]
//! Document frequencies: a bucket of keys is compared with a key at once.

use std::arch::x86_64::*;

use crate::frequencies::{AHEAD, ALONE, Bucket, PLACES, SLOTS, Slots, home, key_of, line_of};
use crate::system::simd;
use crate::system::simd::Avx512Base;
use crate::system::spread::Spread;

impl Avx512Base {
    /// Count each of *keys* once, until there is no *room* for a new one; how many are done, and how many were new.
    pub fn add_counts(self, lines: &mut [Slots], keys: &[u64], room: usize, spread: Spread) -> (usize, usize) {
        // SAFETY: `in_force` found the instructions.
        unsafe { add_counts(lines, keys, room, spread) }
    }

    /// Write the class of each feature, as `Frozen::look_up` does.
    pub fn classes(self, buckets: &[Bucket], hashes: &[u64], spread: Spread, out: &mut [u8]) {
        // SAFETY: `in_force` found the instructions.
        unsafe { classes(buckets, hashes, spread, out) }
    }
}

/// Write the class of each feature.
#[target_feature(enable = "avx512f,bmi1,bmi2,popcnt")]
pub fn classes(buckets: &[Bucket], hashes: &[u64], spread: Spread, out: &mut [u8]) {
    assert_eq!(hashes.len(), out.len(), "a class for each feature");
    for (at, (hash, class)) in hashes.iter().zip(out).enumerate() {
        if let Some(later) = hashes.get(at + AHEAD) {
            simd::prefetch(&buckets[home(buckets.len(), key_of(*later), spread)]);
        }
        let key = key_of(*hash);
        let mut place = home(buckets.len(), key, spread);
        let mut bucket = &buckets[place];
        let mut found = find(bucket, key);
        // Whether others have a feature cannot be foretold, so no branch depends on that alone: hardly ever was the
        // bucket full, too.
        while found + u32::from(bucket.overflows()) > PLACES as u32 {
            place = (place + 1) % buckets.len();
            bucket = &buckets[place];
            found = find(bucket, key);
        }
        *class = bucket.class(found) | (u8::from(found != PLACES as u32).wrapping_sub(1) & ALONE);
    }
}

/// The place of a key in its bucket, or `PLACES`.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
fn find(bucket: &Bucket, key: u64) -> u32 {
    // SAFETY: a bucket is 64 bytes, and begins with its keys.
    let words = unsafe { _mm512_loadu_si512(std::ptr::from_ref(bucket).cast()) };
    let places = u32::from(_mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(key as i64)));
    // What is behind the keys may look like one.
    (places | 1 << PLACES).trailing_zeros()
}

/// Count each of *keys* once, until there is no *room* for a new one; how many are done, and how many were new.
#[target_feature(enable = "avx512f,bmi1")]
pub fn add_counts(lines: &mut [Slots], keys: &[u64], room: usize, spread: Spread) -> (usize, usize) {
    let mut new = 0;
    for (at, key) in keys.iter().enumerate() {
        if let Some(later) = keys.get(at + AHEAD) {
            simd::prefetch(&lines[line_of(lines.len(), *later, spread)]);
        }
        let mut line = line_of(lines.len(), *key, spread);
        let mut place = place_of(&lines[line], *key);
        while place == SLOTS {
            line = (line + 1) & (lines.len() - 1);
            place = place_of(&lines[line], *key);
        }
        let slots = &mut lines[line];
        if slots.keys[place] == 0 {
            if new == room {
                return (at, new);
            }
            new += 1;
            slots.keys[place] = *key;
        }
        slots.counts[place] = slots.counts[place].saturating_add(1);
    }
    (keys.len(), new)
}

/// See `Slots::place`.
#[inline]
#[target_feature(enable = "avx512f,bmi1")]
fn place_of(slots: &Slots, key: u64) -> usize {
    // SAFETY: they are 64 bytes, and begin with the keys.
    let words = unsafe { _mm512_loadu_si512(std::ptr::from_ref(slots).cast()) };
    let own = _mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(key as i64));
    let places = u32::from(own | _mm512_testn_epi64_mask(words, words));
    // What is behind the keys may look like one.
    (places | 1 << SLOTS).trailing_zeros() as usize
}
