#![allow(unsafe_code)]
//! Hashes in groups: one is compared with eight of its group at once.

use std::arch::x86_64::*;

use crate::system::simd::Avx512Base;
use crate::verify::directory::{Directory, MATCHES};

impl Avx512Base {
    /// See `Directory::find`.
    pub fn find_in(self, directory: &Directory, wanted: &[u64], out: &mut [(u32, u32); MATCHES]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { find(directory, wanted, out) }
    }
}

/// Write the places in *wanted*, at most `MATCHES`, and in the directory, which has groups, of hashes that are in
/// both; how many they are.
#[target_feature(enable = "avx512f,bmi1,bmi2")]
pub fn find(directory: &Directory, wanted: &[u64], out: &mut [(u32, u32); MATCHES]) -> usize {
    let (hashes, starts, shift) = directory.groups();
    assert!(wanted.len() <= MATCHES && !starts.is_empty(), "groups, and room for all matches");
    let mut count = 0;
    for (at, hash) in (0u32..).zip(wanted) {
        let group = (hash >> shift) as usize;
        // SAFETY: a directory has as many groups as its shift leaves numbers, and one start more.
        let (mut start, end) = unsafe { (*starts.get_unchecked(group), *starts.get_unchecked(group + 1)) };
        let sought = _mm512_set1_epi64(*hash as i64);
        loop {
            let left = end - start;
            let here = _bzhi_u32(0xff, left) as __mmask8;
            // SAFETY: the starts of a directory ascend up to the number of its hashes; the mask reads the group.
            let some = unsafe { _mm512_maskz_loadu_epi64(here, hashes.as_ptr().add(start as usize).cast()) };
            let same = _mm512_mask_cmpeq_epi64_mask(here, some, sought);
            // SAFETY: there is at most one match for each that is wanted.
            unsafe { *out.get_unchecked_mut(count) = (at, start + same.trailing_zeros()) };
            count += usize::from(same != 0);
            // Few groups have more than eight: this can be foretold, whether there is a match cannot.
            if left <= 8 || same != 0 {
                break;
            }
            start += 8;
        }
    }
    count
}
