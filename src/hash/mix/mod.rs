#![deny(unsafe_code)]
//! Our own hash: a string to 64 well-mixed bits, and a stream of further words from those.
//!
//! Not for secrets: anybody who knows the text can craft collisions (`blake3-keyed` is for that).
//!
//! ```text
//! x = seed + GAMMA * length
//! while more than 8 bytes are left: x = finish(x ^ next 8 bytes, little-endian)
//! hash = finish(x ^ last)      last = the last 8 bytes; of a shorter string all, zero-padded
//! word j = finish(hash + STREAM * j), word 0 = hash
//! ```

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx2;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx512, Avx512Base};

pub const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
pub const STREAM: u64 = 0xd1b5_4a32_d192_ed03;
pub const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
pub const SECOND: u64 = 0x94d0_49bb_1331_11eb;

/// Bytes that must be readable after the last one of a text whose parts are hashed.
pub const PADDING: usize = 64;

/// The two-multiply finaliser: every bit of the input moves every bit of the output.
#[inline(always)]
pub fn finish(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(FIRST);
    x = (x ^ x >> 27).wrapping_mul(SECOND);
    x ^ x >> 31
}

/// What *finish* made this of.
pub fn unfinish(mut x: u64) -> u64 {
    x = (x ^ x >> 31 ^ x >> 62).wrapping_mul(const { inverse(SECOND) });
    x = (x ^ x >> 27 ^ x >> 54).wrapping_mul(const { inverse(FIRST) });
    x ^ x >> 30 ^ x >> 60
}

/// What an odd number must be multiplied with to give 1.
const fn inverse(odd: u64) -> u64 {
    let mut found = odd; // right in three bits, and in twice as many after each step
    let mut right = 3;
    while right < u64::BITS {
        found = found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found)));
        right *= 2;
    }
    found
}

/// Word *j* of the digest whose word 0 is *hash*.
#[inline(always)]
pub fn word(hash: u64, j: usize) -> u64 {
    if j == 0 { hash } else { finish(hash.wrapping_add(STREAM.wrapping_mul(j as u64))) }
}

/// Word *j* of each of the digests whose word 0 is in *hashes*.
pub fn words(hashes: &[u64], j: usize, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force()
        && j > 0
    {
        return cpu.words(hashes, STREAM.wrapping_mul(j as u64), out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.words(hashes, j, out);
    }
    words_plain(hashes, j, out);
}

#[inline(always)]
pub fn words_plain(hashes: &[u64], j: usize, out: &mut [u64]) {
    for (out, hash) in out.iter_mut().zip(hashes) {
        *out = word(*hash, j);
    }
}

/// The hash of `text[start..end]`; *text* has `PADDING` bytes behind *end*.
#[inline(always)]
pub fn hash_part(text: &[u8], start: usize, end: usize, seed: u64) -> u64 {
    let at = |from: usize| {
        let bytes: [u8; 8] = text[from..from + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(bytes)
    };
    let length = end - start;
    let mut x = seed.wrapping_add(GAMMA.wrapping_mul(length as u64));
    let mut from = start;
    while end - from > 8 {
        x = finish(x ^ at(from));
        from += 8;
    }
    let last = if length >= 8 { at(end - 8) } else { at(start) & ((1 << (8 * length)) - 1) };
    finish(x ^ last)
}

/// The hash of a whole string.
pub fn hash(data: &[u8], seed: u64) -> u64 {
    let mut padded = Vec::with_capacity(data.len() + PADDING);
    padded.extend_from_slice(data);
    padded.resize(data.len() + PADDING, 0);
    hash_part(&padded, 0, data.len(), seed)
}

/// The hashes of the parts `text[starts[i]..ends[i]]`, one after the other into *out*.
pub fn hash_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.hash_parts(text, starts, ends, seed, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.hash_parts(text, starts, ends, seed, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.hash_parts(text, starts, ends, seed, out);
    }
    hash_parts_plain(text, starts, ends, seed, out);
}

fn hash_parts_plain(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
    for ((start, end), hash) in starts.iter().zip(ends).zip(out) {
        *hash = hash_part(text, *start as usize, *end as usize, seed);
    }
}

/// The hashes of every run of *width* bytes of `text[from..]`, as many as *out* holds.
pub fn hash_windows(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.hash_windows(text, from, width, seed, out);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.hash_windows(text, from, width, seed, out);
    }
    hash_windows_plain(text, from, width, seed, out);
}

#[inline(always)]
pub fn hash_windows_plain(text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
    if width > 8 {
        for (at, hash) in out.iter_mut().enumerate() {
            *hash = hash_part(text, from + at, from + at + width, seed);
        }
        return;
    }
    let mask = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
    let x = seed.wrapping_add(GAMMA.wrapping_mul(width as u64));
    for (hash, bytes) in out.iter_mut().zip(text[from..].windows(8)) {
        let bytes: [u8; 8] = bytes.try_into().unwrap_or_default();
        *hash = finish(x ^ (u64::from_le_bytes(bytes) & mask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn what_was_finished_is_found_again() {
        for x in (0..64).map(|bit| 1 << bit).chain([0, u64::MAX, GAMMA]) {
            assert_eq!(unfinish(finish(x)), x);
        }
    }

    #[test]
    fn windows_are_parts() {
        let mut text = b"the quick brown fox jumps".to_vec();
        let length = text.len();
        text.resize(length + PADDING, 0xff);
        for width in 1..=8 {
            let count = length - width + 1;
            let starts: Vec<u32> = (0..count as u32).collect();
            let ends: Vec<u32> = starts.iter().map(|start| start + width as u32).collect();
            let (mut parts, mut windows) = (vec![0; count], vec![0; count]);
            hash_parts(&text, &starts, &ends, 7, &mut parts);
            hash_windows(&text, 0, width, 7, &mut windows);
            assert_eq!(parts, windows);
        }
    }

    #[test]
    fn what_stands_behind_a_string_does_not_matter() {
        let strings: [&[u8]; 4] = [b"", b"abc", b"12345678", b"longer than sixteen bytes"];
        for string in strings {
            let mut text = string.to_vec();
            text.resize(string.len() + PADDING, 0xaa);
            assert_eq!(hash_part(&text, 0, string.len(), 1), hash(string, 1));
        }
    }

    #[test]
    fn every_level_hashes_as_the_plain_code_does() {
        at_every_level(|_| hashes_are_those_of_the_plain_code());
    }

    fn hashes_are_those_of_the_plain_code() {
        let size = 3000;
        let text: Vec<u8> = (0..(size + PADDING) as u64).map(|n| finish(n) as u8).collect();
        for longest in [0u64, 1, 3, 8, 9, 12, 16, 17, 30, 64, 200, 2000] {
            // Near each other, and anywhere.
            for step in [1u64, 2, 3, 7, 40, 1013] {
                let starts: Vec<u32> = (0..101).map(|n| (n * step % 990) as u32).collect();
                let lengths = (0..101).map(|n| (finish(n * 31 + longest) % (longest + 1)) as u32);
                let ends: Vec<u32> = starts.iter().zip(lengths).map(|(start, length)| start + length).collect();
                for count in [0, 1, 7, 8, 9, 101] {
                    let (mut one, mut other) = (vec![0; count], vec![0; count]);
                    hash_parts_plain(&text, &starts[..count], &ends[..count], longest, &mut one);
                    hash_parts(&text, &starts[..count], &ends[..count], longest, &mut other);
                    assert_eq!(one, other);
                }
            }
        }
        for width in 1..=64 {
            for count in [0, 1, 7, 8, 9, 100] {
                let (mut one, mut other) = (vec![0; count], vec![0; count]);
                hash_windows_plain(&text, 3, width, 9, &mut one);
                hash_windows(&text, 3, width, 9, &mut other);
                assert_eq!(one, other);
                for j in 0..5 {
                    words_plain(&other, j, &mut one);
                    let mut found = vec![0; count];
                    words(&other, j, &mut found);
                    assert_eq!(one, found);
                }
            }
        }
    }
}
