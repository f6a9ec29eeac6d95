#![allow(unsafe_code)]
//! The different grams of a list, gathered eight at once.

use std::arch::x86_64::*;

use crate::frequencies::grams::Grams;
use crate::frequencies::grams::avx2::windows;
use crate::system::simd::Avx2;

impl Avx2 {
    /// See `tally::gather`.
    pub fn gather_grams(self, all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: `in_force` found the instructions.
        unsafe { gather_grams(all, tallies, values, counts) }
    }
}

/// For each set of eight its members, and then anything.
const MEMBERS: [[u8; 8]; 256] = {
    let mut members = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut member, mut found) = (0, 0);
        while member < 8 {
            if set >> member & 1 == 1 {
                members[set][found] = member;
                found += 1;
            }
            member += 1;
        }
        set += 1;
    }
    members
};

/// See `tally::gather`; there is room for eight grams more than there are.
#[target_feature(enable = "avx2,popcnt")]
fn gather_grams(all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
    assert!(all.len() == tallies.len(), "a tally for each gram");
    assert!(values.len() >= all.len() + 8 && counts.len() >= all.len() + 8, "room for eight more");
    let mut different = 0;
    let (eights, rest) = tallies.as_chunks::<8>();
    for (part, tallies) in eights.iter().enumerate() {
        let letters = &all.text()[part * 8..part * 8 + 16];
        // SAFETY: this many letters were taken, there are eight tallies, a set of eight is one of 256, and at most as
        // many as were read before are in front of the eight that are written.
        unsafe {
            let some = windows(_mm256_broadcastsi128_si256(_mm_loadu_si128(letters.as_ptr().cast())));
            let tallies = _mm_loadu_si128(tallies.as_ptr().cast());
            let none = _mm_packs_epi16(_mm_cmpeq_epi16(tallies, _mm_setzero_si128()), _mm_setzero_si128());
            let kept = !_mm_movemask_epi8(none) as u8;
            let members = _mm_loadl_epi64(MEMBERS.as_ptr().add(usize::from(kept)).cast());
            let members = _mm256_cvtepu8_epi32(members);
            let some = _mm256_permutevar8x32_epi32(some, members);
            let numbers = _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(tallies), members);
            _mm256_storeu_si256(values.as_mut_ptr().add(different).cast(), some);
            _mm256_storeu_si256(counts.as_mut_ptr().add(different).cast(), numbers);
            different += kept.count_ones() as usize;
        }
    }
    for (row, tally) in (eights.len() * 8..).zip(rest) {
        (values[different], counts[different]) = (all.get(row), u32::from(*tally));
        different += usize::from(*tally != 0);
    }
    different
}
