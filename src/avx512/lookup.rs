//! Document frequencies: a bucket of keys is compared with a key at once.

use std::arch::x86_64::*;

use crate::frequencies::{AHEAD, Bucket, SLOTS, home};
use crate::simd;

/// Call *each* with the bucket and the place of every key, one after the other; None for one that is not there.
#[target_feature(enable = "avx512f,bmi1,bmi2,popcnt")]
pub fn find(
    buckets: &[Bucket],
    keys: impl Iterator<Item = u64> + Clone,
    mut each: impl FnMut(Option<(&Bucket, usize)>),
) {
    const PLACES: u8 = (1 << SLOTS) - 1;
    let mut ahead = keys.clone().skip(AHEAD);
    for key in keys {
        if let Some(later) = ahead.next() {
            simd::prefetch(&buckets[home(buckets.len(), later)]);
        }
        let mut at = home(buckets.len(), key);
        each(loop {
            let bucket = &buckets[at];
            // SAFETY: a bucket is 64 bytes, and begins with its keys.
            let words = unsafe { _mm512_loadu_si512(std::ptr::from_ref(bucket).cast()) };
            let places = _mm512_cmpeq_epi64_mask(words, _mm512_set1_epi64(key as i64)) & PLACES;
            if places != 0 {
                break Some((bucket, places.trailing_zeros() as usize));
            }
            if !bucket.overflows() {
                break None;
            }
            at = (at + 1) % buckets.len();
        });
    }
}
