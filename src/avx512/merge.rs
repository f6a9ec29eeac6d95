//! Two sorted lists: a value of one is compared with eight of the other at once.

use std::arch::x86_64::*;

use crate::verify::MATCHES;

/// Write the places of values of *left*, at most `MATCHES`, and *right*, from *other* on, that agree in the bits
/// of *mask*: how many there are, and from where on those after them may be. In each list the values, so masked,
/// ascend.
#[target_feature(enable = "avx512f,bmi1")]
pub fn equal(
    left: &[u64],
    right: &[u64],
    mut other: usize,
    mask: u64,
    out: &mut [(u32, u32); MATCHES],
) -> (usize, usize) {
    let wanted = _mm512_set1_epi64(mask as i64);
    let mut count = 0;
    for (at, value) in left.iter().enumerate() {
        while right.get(other + 7).is_some_and(|last| last & mask < value & mask) {
            other += 8;
        }
        let rest = right.len() - other;
        let here = if rest < 8 { !(u8::MAX << rest) } else { u8::MAX };
        // SAFETY: only what is behind *other* and within the list is read.
        let some = unsafe { _mm512_maskz_loadu_epi64(here, right.as_ptr().add(other).cast()) };
        let apart = _mm512_xor_si512(some, _mm512_set1_epi64(*value as i64));
        let same = _mm512_mask_testn_epi64_mask(here, apart, wanted);
        out[count] = (at as u32, (other as u32).wrapping_add(same.trailing_zeros()));
        count += usize::from(same != 0);
    }
    (count, other)
}
