#![forbid(unsafe_code)]
//! What identifies a text within one run.
//!
//! Two texts with equal content are one text, and one of them goes: so nobody may be able to make two different texts
//! equal. Both numbers are keyed with a secret that is drawn for the run. They mean nothing outside of it, and no
//! order may depend on them.

/// The secret of a run.
pub struct Identity {
    key: [u8; 32],
    seed: u64,
}

impl Identity {
    pub fn new(key: [u8; 32]) -> Identity {
        let derived = blake3::derive_key("neardup spelling of a text", &key);
        let mut seed = [0; 8];
        seed.copy_from_slice(&derived[..8]);
        Identity { key, seed: u64::from_le_bytes(seed) }
    }

    /// 128 bits of a normalised text: keyed BLAKE3.
    pub fn content(&self, text: &[u8]) -> [u64; 2] {
        let digest = blake3::keyed_hash(&self.key, text);
        let (words, _) = digest.as_bytes().as_chunks::<8>();
        [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
    }

    /// 32 bits of a text as it is written: they tell apart texts that differ only in case, spacing or punctuation, and
    /// a text from what is read in its place another time.
    pub fn spelling(&self, text: &[u8]) -> u32 {
        xxhash_rust::xxh3::xxh3_64_with_seed(text, self.seed) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_key_gives_other_numbers() {
        let (one, other) = (Identity::new([1; 32]), Identity::new([2; 32]));
        assert_eq!(one.content(b"text"), Identity::new([1; 32]).content(b"text"));
        assert_ne!(one.content(b"text"), other.content(b"text"));
        assert_ne!(one.spelling(b"text"), other.spelling(b"text"));
        assert_ne!(one.content(b"text"), one.content(b"texts"));
    }
}
