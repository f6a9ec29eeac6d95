#![forbid(unsafe_code)]
//! Hashes that only the originals use. Maintained crates do the work where there is one.
//!
//! Each gives one 64-bit value, whose lowest byte is the first of the digest.

use std::hash::Hasher;

use crate::hash::fnv::fnv1a64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    Xxh64,
    Fnv1,
    Fnv1a,
    /// FNV that gives 0 for the empty input, as pbtk's does; the standard gives the offset basis.
    Fnv1Zero,
    Fnv1aZero,
    /// FNV-1a over UTF-16 units, as the news system applies it.
    Fnv1aUtf16,
    Metro,
    Highway,
    Murmur1,
    Murmur2,
    Murmur2A,
    /// The two halves of MurmurHash3 x64 128 added, as pbtk's "64x64" does; others take the first half.
    Murmur3Sum,
}

impl Foreign {
    pub fn parse(name: &str) -> Option<Foreign> {
        Some(match name {
            "xxh64" => Foreign::Xxh64,
            "fnv1-64" => Foreign::Fnv1,
            "fnv1a64" => Foreign::Fnv1a,
            "fnv1-64-zero" => Foreign::Fnv1Zero,
            "fnv1a64-zero" => Foreign::Fnv1aZero,
            "fnv1a64-utf16" => Foreign::Fnv1aUtf16,
            "metro64" => Foreign::Metro,
            "highway64" => Foreign::Highway,
            "murmur1" => Foreign::Murmur1,
            "murmur2" => Foreign::Murmur2,
            "murmur2-64a" => Foreign::Murmur2A,
            "murmur3-sum64" => Foreign::Murmur3Sum,
            _ => return None,
        })
    }

    pub fn hash(self, data: &[u8]) -> u64 {
        let bytes = || data.iter().map(|byte| u64::from(*byte));
        match self {
            Foreign::Fnv1Zero | Foreign::Fnv1aZero if data.is_empty() => 0,
            Foreign::Fnv1 | Foreign::Fnv1Zero => fnv1_64(bytes()),
            Foreign::Fnv1a | Foreign::Fnv1aZero => fnv1a64(bytes()),
            Foreign::Fnv1aUtf16 => fnv1a64(String::from_utf8_lossy(data).encode_utf16().map(u64::from)),
            Foreign::Xxh64 => xxhash_rust::xxh64::xxh64(data, 0),
            Foreign::Metro => {
                let mut hasher = metrohash::MetroHash64::with_seed(0);
                hasher.write(data);
                hasher.finish()
            }
            Foreign::Highway => {
                use highway::HighwayHash;
                highway::HighwayHasher::new(highway::Key([0; 4])).hash64(data)
            }
            Foreign::Murmur1 => u64::from(murmur1(data, 0)),
            Foreign::Murmur2 => u64::from(murmur2(data, 0)),
            Foreign::Murmur2A => murmur2_64a(data, 0),
            Foreign::Murmur3Sum => {
                // Reading from memory cannot fail.
                let both = murmur3::murmur3_x64_128(&mut std::io::Cursor::new(data), 0).unwrap_or_default();
                (both as u64).wrapping_add((both >> 64) as u64)
            }
        }
    }
}

/// What pbtk's published program votes with: a slip of operator precedence lets every byte of a hash
/// show its lowest bit at the even places and its complement at the odd ones.
pub fn slip(hash: u64) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    ((hash & LOWEST) * 0x55) | ((!hash & LOWEST) * 0xaa)
}

fn fnv1_64(units: impl Iterator<Item = u64>) -> u64 {
    units.fold(0xcbf2_9ce4_8422_2325, |hash: u64, unit| hash.wrapping_mul(0x0100_0000_01b3) ^ unit)
}

/// Whole groups of N bytes as little-endian numbers, and what is left.
fn groups<const N: usize>(data: &[u8]) -> (impl Iterator<Item = u64> + '_, &[u8]) {
    let whole = data.chunks_exact(N);
    let rest = whole.remainder();
    (whole.map(number), rest)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn murmur1(data: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let step = |hash: u32, unit: u32| {
        let hash = hash.wrapping_add(unit).wrapping_mul(M);
        hash ^ hash >> 16
    };
    let (units, rest) = groups::<4>(data);
    let mut hash = units.fold(seed ^ (data.len() as u32).wrapping_mul(M), |hash, unit| step(hash, unit as u32));
    if !rest.is_empty() {
        hash = step(hash, number(rest) as u32);
    }
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 10;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 17
}

fn murmur2(data: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let (units, rest) = groups::<4>(data);
    let mut hash = units.fold(seed ^ data.len() as u32, |hash, unit| {
        let unit = (unit as u32).wrapping_mul(M);
        hash.wrapping_mul(M) ^ (unit ^ unit >> 24).wrapping_mul(M)
    });
    if !rest.is_empty() {
        hash = (hash ^ number(rest) as u32).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

fn murmur2_64a(data: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let (units, rest) = groups::<8>(data);
    let mut hash = units.fold(seed ^ (data.len() as u64).wrapping_mul(M), |hash, unit| {
        let unit = unit.wrapping_mul(M);
        (hash ^ (unit ^ unit >> 47).wrapping_mul(M)).wrapping_mul(M)
    });
    if !rest.is_empty() {
        hash = (hash ^ number(rest)).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";

    #[test]
    fn murmur_gives_its_published_values() {
        assert_eq!(murmur1(b"foo", 0x1234_5678), 2_077_645_772);
        assert_eq!(murmur1(FOX, 0x9747_b28c), 3_950_314_481);
        assert_eq!(murmur2(b"foo", 0x1234_5678), 1_532_637_697);
        assert_eq!(murmur2(b"foobar", 0x1234_5678), 151_733_797);
        assert_eq!(murmur2(FOX, 0x9747_b28c), 495_243_318);
        assert_eq!(murmur2_64a(b"foo", 0), 14_834_356_025_302_342_401);
        assert_eq!(murmur2_64a(FOX, 0), 6_163_679_885_495_272_987);
    }

    #[test]
    fn a_slipped_hash_has_two_kinds_of_bytes() {
        assert_eq!(slip(0x01), 0xaaaa_aaaa_aaaa_aa55);
        assert_eq!(slip(u64::MAX), 0x5555_5555_5555_5555);
    }
}
