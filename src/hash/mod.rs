#![deny(unsafe_code)]
//! Feature hashes: bytes in, digest out. Kept crates do the work; `mix` is our own.

pub mod fnv;
pub mod foreign;
pub mod md5;
pub mod mix;

use ::md5::Digest;
use shake::digest::{ExtendableOutput, Update, XofReader};

use crate::hash::fnv::fnv1a64;
use crate::hash::foreign::{Foreign, slip};
use crate::system::fault::Fault;
use crate::system::memory::zeros;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    Mix,
    Fnv1a64,
    Xxh64,
    Xxh3x128,
    Murmur3x128,
    Md5,
    Sha1,
    Shake256,
    Blake3Keyed([u8; 32]),
    /// One that only an original uses.
    Foreign(Foreign),
    /// The same, with the slip of pbtk's published program.
    Slip(Foreign),
    /// SHAKE256 with the highest bit of each byte first.
    Shake256Msb,
    /// The same as the HTM encoder copies it for that many bits.
    Shake256Htm(usize),
}

impl Hash {
    /// The hash of that name; a keyed one takes its secret from *key*.
    pub fn parse(name: &str, key: Option<&[u8]>) -> Option<Hash> {
        Some(match name {
            "mix" => Hash::Mix,
            "fnv1a64" => Hash::Fnv1a64,
            "xxh64" => Hash::Xxh64,
            "xxh3-128" => Hash::Xxh3x128,
            "murmur3-128" => Hash::Murmur3x128,
            "md5" => Hash::Md5,
            "sha1" => Hash::Sha1,
            "shake256" => Hash::Shake256,
            "blake3-keyed" => Hash::Blake3Keyed(blake3::derive_key("neardup feature hash", key?)),
            "shake256-msb" => Hash::Shake256Msb,
            _ => match name.split_once(':') {
                Some(("slip", name)) => Hash::Slip(Foreign::parse(name)?),
                Some(("shake256-htm", bits)) => Hash::Shake256Htm(bits.parse().ok()?),
                _ => Hash::Foreign(Foreign::parse(name)?),
            },
        })
    }

    /// The first *size* bytes of the digest of *data* by the hash of that name.
    pub fn named_digest(name: &str, key: Option<&[u8]>, data: &[u8], size: usize) -> Result<Vec<u8>, Fault> {
        let hash = Hash::parse(name, key).ok_or_else(|| Fault::Value(format!("unknown hash {name:?}")))?;
        if hash.bits().is_some_and(|bits| size > bits / 8) {
            return Err(Fault::Value(format!("a {name} digest has no {size} bytes")));
        }
        let mut out = zeros(size);
        hash.digest(data, &mut out);
        Ok(out)
    }

    /// How many bits a digest has; None if it has as many as requested.
    pub fn bits(self) -> Option<usize> {
        match self {
            Hash::Mix | Hash::Shake256 | Hash::Blake3Keyed(_) | Hash::Shake256Msb | Hash::Shake256Htm(_) => None,
            Hash::Fnv1a64 | Hash::Xxh64 | Hash::Foreign(_) | Hash::Slip(_) => Some(64),
            Hash::Xxh3x128 | Hash::Murmur3x128 | Hash::Md5 => Some(128),
            Hash::Sha1 => Some(160),
        }
    }

    /// The whole digest as a number, its first byte the lowest; only for some of at most 128 bits.
    pub fn short(self) -> Option<fn(&[u8]) -> u128> {
        Some(match self {
            Hash::Fnv1a64 => |data| u128::from(fnv1a64(data.iter().map(|byte| u64::from(*byte)))),
            Hash::Xxh64 => |data| u128::from(xxhash_rust::xxh64::xxh64(data, 0)),
            Hash::Xxh3x128 => xxhash_rust::xxh3::xxh3_128,
            Hash::Murmur3x128 => murmur3_x64_128,
            Hash::Md5 => md5::digest,
            _ => return None,
        })
    }

    /// Fill *out* with the first bytes of the digest; *out* is no longer than the digest.
    pub fn digest(self, data: &[u8], out: &mut [u8]) {
        match self {
            Hash::Mix => {
                let hash = mix::hash(data, 0);
                for (j, chunk) in out.chunks_mut(8).enumerate() {
                    chunk.copy_from_slice(&mix::word(hash, j).to_le_bytes()[..chunk.len()]);
                }
            }
            Hash::Fnv1a64 => copy(out, &fnv1a64(data.iter().map(|byte| u64::from(*byte))).to_le_bytes()),
            Hash::Xxh64 => copy(out, &xxhash_rust::xxh64::xxh64(data, 0).to_le_bytes()),
            Hash::Xxh3x128 => copy(out, &xxhash_rust::xxh3::xxh3_128(data).to_le_bytes()),
            Hash::Murmur3x128 => copy(out, &murmur3_x64_128(data).to_le_bytes()),
            Hash::Md5 => copy(out, &md5::digest(data).to_le_bytes()),
            Hash::Sha1 => copy(out, &sha1::Sha1::digest(data)),
            Hash::Shake256 => {
                let mut hasher = shake::Shake256::default();
                hasher.update(data);
                hasher.finalize_xof().read(out);
            }
            Hash::Blake3Keyed(key) => {
                let mut hasher = blake3::Hasher::new_keyed(&key);
                hasher.update(data);
                hasher.finalize_xof().fill(out);
            }
            Hash::Foreign(foreign) => copy(out, &foreign.hash(data).to_le_bytes()),
            Hash::Slip(foreign) => copy(out, &slip(foreign.hash(data)).to_le_bytes()),
            Hash::Shake256Msb => {
                Hash::Shake256.digest(data, out);
                out.iter_mut().for_each(|byte| *byte = byte.reverse_bits());
            }
            Hash::Shake256Htm(bits) => shake256_htm(data, bits, out),
        }
    }
}

/// SHAKE256 as the HTM encoder copies its bits: the loop leaves a byte once all but one are written, so
/// that the last comes from the next byte, or stays 0 where there is none.
fn shake256_htm(data: &[u8], bits: usize, out: &mut [u8]) {
    let mut whole = vec![0; bits / 8 + 1];
    Hash::Shake256Msb.digest(data, &mut whole);
    let (byte, bit) = ((bits - 1) / 8, (bits - 1) % 8);
    let last = match bits % 8 {
        0 | 1 => whole[bits / 8] & 1,
        _ => 0,
    };
    whole[byte] = whole[byte] & !(1 << bit) | last << bit;
    copy(out, &whole);
}

fn copy(out: &mut [u8], digest: &[u8]) {
    out.copy_from_slice(&digest[..out.len()]);
}

/// MurmurHash3 x64 128, seed 0: the first digest byte is the lowest.
fn murmur3_x64_128(data: &[u8]) -> u128 {
    // Reading from memory cannot fail.
    murmur3::murmur3_x64_128(&mut std::io::Cursor::new(data), 0).unwrap_or_default()
}
