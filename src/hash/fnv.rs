#![forbid(unsafe_code)]
//! FNV-1a of 64 bits.

/// FNV-1a over units of any width, as the news system applies it to UTF-16.
pub fn fnv1a64(units: impl Iterator<Item = u64>) -> u64 {
    units.fold(0xcbf2_9ce4_8422_2325, |hash, unit| (hash ^ unit).wrapping_mul(0x0100_0000_01b3))
}
