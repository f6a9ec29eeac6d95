#![forbid(unsafe_code)]
//! The words of one fingerprint: mostly there is but one, which needs no memory of its own.

use std::ops::Deref;

pub enum Words {
    One(u64),
    More(Vec<u64>),
}

impl Deref for Words {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        match self {
            Words::One(word) => std::slice::from_ref(word),
            Words::More(words) => words,
        }
    }
}

/// A fingerprint of this many *bits*: the lowest ones of *word*.
#[inline(always)]
pub fn lowest(word: u64, bits: usize) -> Words {
    match bits {
        0..64 => Words::One(word & ((1 << bits) - 1)),
        64 => Words::One(word),
        _ => {
            let mut words = vec![0; bits.div_ceil(64)];
            words[0] = word;
            Words::More(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_bits_of_the_fingerprint_are_left() {
        assert_eq!(lowest(0xff, 4)[..], [0xf]);
        assert_eq!(lowest(0xff, 0)[..], [0]);
        assert_eq!(lowest(!0, 64)[..], [!0]);
        assert_eq!(lowest(!0, 130)[..], [!0, 0, 0]);
    }
}
