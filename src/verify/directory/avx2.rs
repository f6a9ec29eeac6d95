#![allow(unsafe_code)]
//! Hashes in groups: one is compared with eight words from the beginning of its group on, whatever they are.

use std::arch::x86_64::*;

use crate::system::simd::Avx2;
use crate::verify::directory::{AT_ONCE, Directory, MATCHES};

impl Avx2 {
    /// See `Directory::find`.
    pub fn find_in(self, directory: &Directory, wanted: &[u64], out: &mut [(u32, u32); MATCHES]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { find(directory, wanted, out) }
    }
}

/// Write the places in *wanted*, at most `MATCHES`, and in the directory, which has groups, of hashes that are in
/// both; how many they are.
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn find(directory: &Directory, wanted: &[u64], out: &mut [(u32, u32); MATCHES]) -> usize {
    let (hashes, starts, shift) = directory.groups();
    assert!(wanted.len() <= MATCHES && !starts.is_empty(), "groups, and room for all matches");
    let mut count = 0;
    for (at, hash) in (0u32..).zip(wanted) {
        let group = (hash >> shift) as usize;
        // SAFETY: a directory has as many groups as its shift leaves numbers, and one start more.
        let (mut start, end) = unsafe { (*starts.get_unchecked(group), *starts.get_unchecked(group + 1)) };
        let sought = _mm256_set1_epi64x(*hash as i64);
        loop {
            let left = end - start;
            // SAFETY: the starts of a directory ascend up to the number of its hashes, behind which there are
            // `AT_ONCE` words.
            let own = unsafe { hashes.as_ptr().add(start as usize) };
            // SAFETY: as above.
            let same = |four: usize| unsafe {
                let equal = _mm256_cmpeq_epi64(sought, _mm256_loadu_si256(own.add(four).cast()));
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
            };
            // What is not of the group is cleared.
            let same = _bzhi_u32(same(0) | same(4) << 4, left);
            // SAFETY: there is at most one match for each that is wanted.
            unsafe { *out.get_unchecked_mut(count) = (at, start.wrapping_add(same.trailing_zeros())) };
            count += usize::from(same != 0);
            // Few groups have more than eight: this can be foretold, whether there is a match cannot.
            if left <= AT_ONCE as u32 || same != 0 {
                break;
            }
            start += AT_ONCE as u32;
        }
    }
    count
}
