#![deny(unsafe_code)]
//! MD5 of the parts of a text, as the simhash package on PyPI hashes its features.
//!
//! Not for secrets: it is here because others used it.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

use ::md5::{Digest, Md5};

#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx2;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::Avx512Base;

/// How many digests a kernel makes at a time.
#[cfg(target_arch = "x86_64")]
pub const LANES: usize = 32;
/// The longest string that is one block.
pub const LONGEST: usize = 55;

/// The constants of the 64 steps: the first 32 bits behind the point of |sin(1)|, |sin(2)|, ...
#[rustfmt::skip]
pub const CONSTANTS: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee,
    0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501,
    0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be,
    0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821,
    0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa,
    0xd62f_105d, 0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8,
    0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed,
    0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a,
    0xfffa_3942, 0x8771_f681, 0x6d9d_6122, 0xfde5_380c,
    0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70,
    0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05,
    0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665,
    0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039,
    0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1,
    0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
];

/// Call *each* with the digest of every part `text[starts[i]..ends[i]]`, its first byte the lowest.
/// *text* is padded.
pub fn digests(text: &[u8], starts: &[u32], ends: &[u32], each: impl FnMut(usize, u128)) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        let mut each = each;
        let mut words = [[0; LANES]; 4];
        for (group, (starts, ends)) in starts.chunks(LANES).zip(ends.chunks(LANES)).enumerate() {
            cpu.md5(text, starts, ends, &mut words);
            for (row, (start, end)) in starts.iter().zip(ends).enumerate() {
                let digest = if (end - start) as usize <= LONGEST {
                    (0..4).fold(0, |digest, j| digest | u128::from(words[j][row]) << (32 * j))
                } else {
                    digest(&text[*start as usize..*end as usize])
                };
                each(group * LANES + row, digest);
            }
        }
        return;
    }
    digests_plain(text, starts, ends, each);
}

fn digests_plain(text: &[u8], starts: &[u32], ends: &[u32], mut each: impl FnMut(usize, u128)) {
    for (group, (starts, ends)) in starts.chunks(WIDTH).zip(ends.chunks(WIDTH)).enumerate() {
        let mut message = [[0; WIDTH]; 16];
        for (lane, (start, end)) in starts.iter().zip(ends).enumerate() {
            let part = &text[*start as usize..*end as usize];
            write(&part[..part.len().min(LONGEST)], lane, &mut message);
        }
        let words = blocks(&message);
        for (lane, (start, end)) in starts.iter().zip(ends).enumerate() {
            let digest = if (end - start) as usize <= LONGEST {
                (0..4).fold(0, |digest, j| digest | u128::from(words[j][lane]) << (32 * j))
            } else {
                digest(&text[*start as usize..*end as usize])
            };
            each(group * WIDTH + lane, digest);
        }
    }
}

/// Lanes of the portable code.
const WIDTH: usize = 8;
/// The sixteen words of a block, and the four of a digest, for each lane.
pub type Message = [[u32; WIDTH]; 16];
pub type Digests = [[u32; WIDTH]; 4];

/// Write the block of a string of at most `LONGEST` bytes over zeros: itself, 0x80, zeros, its length in bits.
fn write(part: &[u8], lane: usize, message: &mut Message) {
    let (fours, rest) = part.as_chunks::<4>();
    for (word, four) in message.iter_mut().zip(fours) {
        word[lane] = u32::from_le_bytes(*four);
    }
    message[fours.len()][lane] = rest.iter().rev().fold(0x80, |word, byte| word << 8 | u32::from(*byte));
    message[14][lane] = 8 * part.len() as u32;
}

fn blocks(message: &Message) -> Digests {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.md5(message);
    }
    blocks_plain(message)
}

/// The 64 steps over all lanes at once. The compiler makes vectors of them as long as all but the lane is known to it.
#[inline(always)]
pub fn blocks_plain(message: &Message) -> Digests {
    const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut state = START.map(|word| [word; WIDTH]);
    round::<0>(&mut state, message);
    round::<1>(&mut state, message);
    round::<2>(&mut state, message);
    round::<3>(&mut state, message);
    for (words, start) in state.iter_mut().zip(START) {
        for word in words {
            *word = word.wrapping_add(start);
        }
    }
    state
}

#[inline(always)]
fn round<const N: usize>(state: &mut Digests, message: &Message) {
    let [mut a, mut b, mut c, mut d] = *state;
    for at in [0, 4, 8, 12] {
        a = step::<N, 0>(at, &a, &b, &c, &d, message);
        d = step::<N, 1>(at, &d, &a, &b, &c, message);
        c = step::<N, 2>(at, &c, &d, &a, &b, message);
        b = step::<N, 3>(at, &b, &c, &d, &a, message);
    }
    *state = [a, b, c, d];
}

/// The step *at* + *S* of round *N*.
#[inline(always)]
fn step<const N: usize, const S: usize>(
    at: usize,
    a: &[u32; WIDTH],
    b: &[u32; WIDTH],
    c: &[u32; WIDTH],
    d: &[u32; WIDTH],
    message: &Message,
) -> [u32; WIDTH] {
    const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
    let (words, constant) = (&message[word::<N>(at + S)], CONSTANTS[16 * N + at + S]);
    let mut new = [0; WIDTH];
    for lane in 0..WIDTH {
        let (x, y, z) = (b[lane], c[lane], d[lane]);
        let chosen = match N {
            0 => x & y | !x & z,
            1 => z & x | !z & y,
            2 => x ^ y ^ z,
            _ => y ^ (x | !z),
        };
        // MD5 adds up to 32 bits.
        let sum = a[lane].wrapping_add(words[lane]).wrapping_add(constant).wrapping_add(chosen);
        new[lane] = x.wrapping_add(sum.rotate_left(TURNS[N][S]));
    }
    new
}

/// Which word of the message a step of round *N* takes.
#[inline(always)]
fn word<const N: usize>(step: usize) -> usize {
    match N {
        0 => step,
        1 => (5 * step + 1) % 16,
        2 => (3 * step + 5) % 16,
        _ => 7 * step % 16,
    }
}

/// The digest of one string, its first byte the lowest.
pub fn digest(data: &[u8]) -> u128 {
    u128::from_le_bytes(Md5::digest(data).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn a_published_digest() {
        let abc = digest(b"abc").to_le_bytes();
        assert_eq!(abc[..4], [0x90, 0x01, 0x50, 0x98]);
    }

    #[test]
    fn every_lane_and_length_is_the_plain_digest() {
        let mut text: Vec<u8> = (0..400u32).map(|n| (n * n + n / 7) as u8).collect();
        text.resize(400 + crate::hash::mix::PADDING, 0xaa);
        for first in 0..80u32 {
            let starts: Vec<u32> = (0..77).map(|n| n * 3 % 100).collect();
            let ends: Vec<u32> = starts.iter().zip(0..).map(|(start, n)| start + (first + n) % 70).collect();
            let (mut rows, mut rounds) = (0, 0);
            let mut check = |row: usize, found| {
                let part = &text[starts[row] as usize..ends[row] as usize];
                assert_eq!(found, digest(part), "{part:?}");
                rows += 1;
            };
            at_every_level(|_| {
                digests(&text, &starts, &ends, &mut check);
                rounds += 1;
            });
            assert_eq!(rows, rounds * starts.len());
        }
    }
}
