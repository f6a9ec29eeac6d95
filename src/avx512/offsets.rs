//! Where characters begin and where spaces stand.

use std::arch::x86_64::*;

/// Append the offsets (and *base*) of the bytes of *text* that are spaces.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn spaces(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |bytes| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b' ' as i8)));
}

/// Append the offsets (and *base*) of the bytes of *text* that begin a character.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub fn characters(text: &[u8], base: u32, out: &mut Vec<u32>) {
    offsets(text, base, out, |bytes| _mm512_cmpge_epi8_mask(bytes, _mm512_set1_epi8(0xc0_u8 as i8)));
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn offsets(text: &[u8], base: u32, out: &mut Vec<u32>, found: impl Fn(__m512i) -> u64) {
    const IOTA: [u8; 64] = {
        let mut iota = [0; 64];
        let mut at = 0;
        while at < 64 {
            iota[at] = at as u8;
            at += 1;
        }
        iota
    };
    // SAFETY: the array is 64 bytes.
    let iota = unsafe { _mm512_loadu_si512(IOTA.as_ptr().cast()) };
    for (block, bytes) in text.chunks(64).enumerate() {
        let valid = u64::MAX >> (64 - bytes.len());
        // SAFETY: the mask reads as many bytes as there are.
        let mut mask = found(unsafe { _mm512_maskz_loadu_epi8(valid, bytes.as_ptr().cast()) }) & valid;
        let base = _mm512_set1_epi32(base.wrapping_add(64 * block as u32) as i32);
        out.reserve(64 + 16);
        let mut written = out.len();
        let mut places = _mm512_maskz_compress_epi8(mask, iota);
        while mask != 0 {
            let count = mask.count_ones().min(16);
            let sixteen = _mm512_add_epi32(base, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places)));
            // SAFETY: there is room for 64 offsets and 16 more, and at most 64 are counted.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(written).cast(), sixteen) };
            written += count as usize;
            places = _mm512_shuffle_i32x4::<0b11_11_10_01>(places, places);
            mask = if count < 16 { 0 } else { _pdep_u64(u64::MAX << 16, mask) };
        }
        // SAFETY: the offsets up to here were written above.
        unsafe { out.set_len(written) };
    }
}
