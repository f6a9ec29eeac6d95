//! A scheme as the core runs it: one text in, one fingerprint out.
//!
//! Two phases over small buffers: normalise and cut the text into parts, then hash the parts
//! and let them vote, a batch of them at a time.

use std::sync::Arc;

use crate::features::{Features, Parts};
use crate::frequencies::Frozen;
use crate::hash::Hash;
use crate::mix;
use crate::normalize::Normalization;
use crate::votes::{self, BATCH};

/// How much each feature of a text counts, by how often it occurs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Every occurrence votes.
    Count,
    /// Every different feature votes once.
    Set,
    /// Every different feature votes bit_length(occurrences) times.
    Log,
    /// As `Log`, times the weight that its document frequency gives.
    LogDf,
}

/// What a text without features gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// No fingerprint: there is nothing to compare.
    None,
    /// What the votes of nobody say: all zeros, or all ones where a tie gives 1.
    Votes,
    /// The fingerprint of one empty feature.
    Feature,
}

/// Which bits of a digest make the fingerprint's, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Take the last bytes of the digest instead of the first.
    pub last: bool,
    /// The first byte taken is the highest.
    pub big_endian: bool,
}

pub struct Recipe {
    pub normalization: Normalization,
    pub features: Features,
    pub weights: Weights,
    pub hash: Hash,
    pub bits: usize,
    pub reading: Reading,
    pub tie_gives_one: bool,
    pub empty: Empty,
    pub frequencies: Option<Arc<Frozen>>,
}

/// Buffers that one thread uses again for every text.
#[derive(Default)]
pub struct Scratch {
    text: Vec<u8>,
    parts: Parts,
    counts: Counts,
    digest: Vec<u8>,
    prefixed: Vec<u8>,
    ones: Vec<[u32; 64]>,
}

/// A feature of one text: its digest's first word and how often it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counted {
    pub hash: u64,
    pub occurrences: u32,
}

impl Recipe {
    /// 64-bit words of a fingerprint.
    pub fn words(&self) -> usize {
        self.bits.div_ceil(64)
    }

    /// The normalised form of a text.
    pub fn normalized(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        self.normalization.apply(text, &mut out);
        out
    }

    /// Write the fingerprint of *text* to *out*; false where it has none.
    pub fn fingerprint(&self, text: &str, scratch: &mut Scratch, out: &mut [u64]) -> bool {
        let ascii = self.normalize(text, scratch);
        if ascii
            && self.hash == Hash::Mix
            && self.weights == Weights::Count
            && let Features::Chars(width) = self.features
            && scratch.text.len() >= width
        {
            self.vote_windows(width, scratch, out);
            return true;
        }
        if !self.cut(ascii, scratch) {
            return self.without_features(scratch, out);
        }
        match self.weights {
            Weights::Count => self.vote_all(scratch, out),
            _ => self.vote_different(scratch, out),
        }
        true
    }

    /// The different features of a text and how often each occurs, in ascending order of hash.
    pub fn counted<'a>(&self, text: &str, scratch: &'a mut Scratch) -> &'a [Counted] {
        scratch.counts.clear();
        let ascii = self.normalize(text, scratch);
        if self.cut(ascii, scratch) {
            self.count_different(scratch);
        }
        let counts = &mut scratch.counts;
        counts.found.sort_unstable();
        &counts.found
    }

    /// What identifies the normalised text, or None where there is no information in it. The
    /// different features are left in the scratch, for `different`.
    pub fn survey(&self, text: &str, scratch: &mut Scratch, features: bool) -> Option<u128> {
        scratch.counts.clear();
        let ascii = self.normalization.apply(text, &mut scratch.text);
        let content = xxhash_rust::xxh3::xxh3_128(&scratch.text);
        if !self.cut_normalized(ascii, scratch) {
            return None;
        }
        if features {
            self.count_different(scratch);
        }
        Some(content)
    }

    /// The hashes of the different features that `survey` left behind.
    pub fn different<'a>(&self, scratch: &'a Scratch) -> impl Iterator<Item = u64> + 'a {
        scratch.counts.found.iter().map(|feature| feature.hash)
    }

    /// Every feature of a text: its kind, its text and its hash, in the order of the text.
    pub fn listed(&self, text: &str, scratch: &mut Scratch) -> Vec<(u8, String, u64)> {
        let mut all = Vec::new();
        let ascii = self.normalize(text, scratch);
        if self.cut(ascii, scratch) {
            let mut words = vec![0; self.words()];
            for (kind, range) in scratch.parts.kinds.clone() {
                for at in range {
                    let (start, end) = (scratch.parts.starts[at] as usize, scratch.parts.ends[at] as usize);
                    let part = String::from_utf8_lossy(&scratch.text[start..end]).into_owned();
                    self.digest(kind, part.as_bytes(), &mut scratch.digest, &mut scratch.prefixed, &mut words);
                    all.push((kind, part, words[0]));
                }
            }
        }
        all
    }

    /// Write the fingerprint of weighted features to *out*; false where there are none.
    pub fn fingerprint_of(&self, features: &[(&str, i64)], scratch: &mut Scratch, out: &mut [u64]) -> bool {
        if features.is_empty() && self.empty == Empty::None {
            out.fill(0);
            return false;
        }
        let (ones, total) = self.weighted_votes(features, scratch);
        votes::decide(&ones, total, self.tie_gives_one, out);
        true
    }

    /// The weight in favour of each bit, and the weight of all, for weighted features.
    pub fn weighted_votes(&self, features: &[(&str, i64)], scratch: &mut Scratch) -> (Vec<i128>, i128) {
        let mut ones = vec![0i128; self.bits];
        let mut total = 0;
        let mut words = vec![0; self.words()];
        for (feature, weight) in features {
            self.digest(0, feature.as_bytes(), &mut scratch.digest, &mut scratch.prefixed, &mut words);
            total += i128::from(*weight);
            for (bit, sum) in ones.iter_mut().enumerate() {
                if words[bit / 64] >> (bit % 64) & 1 == 1 {
                    *sum += i128::from(*weight);
                }
            }
        }
        (ones, total)
    }

    /// Normalise *text* into `scratch.text`, empty where there is nothing that could vote;
    /// whether it is ASCII.
    fn normalize(&self, text: &str, scratch: &mut Scratch) -> bool {
        let ascii = self.normalization.apply(text, &mut scratch.text);
        self.cut_normalized(ascii, scratch)
    }

    fn cut_normalized(&self, ascii: bool, scratch: &mut Scratch) -> bool {
        let informative = self.empty != Empty::None
            || !matches!(self.normalization, Normalization::Text | Normalization::UnicodeWords)
            || scratch.text.iter().any(|byte| !matches!(byte, b'_' | b' '));
        if !informative {
            scratch.text.clear();
        }
        ascii
    }

    /// Cut the normalised text into parts; false where there are none.
    fn cut(&self, ascii: bool, scratch: &mut Scratch) -> bool {
        self.features.cut(&mut scratch.text, ascii, &mut scratch.parts);
        !scratch.parts.starts.is_empty()
    }

    /// Every run of *width* bytes of the normalised text votes.
    fn vote_windows(&self, width: usize, scratch: &mut Scratch, out: &mut [u64]) {
        let windows = scratch.text.len() - width + 1;
        scratch.text.resize(scratch.text.len() + mix::PADDING, 0);
        scratch.ones.clear();
        scratch.ones.resize(self.words(), [0; 64]);
        let ones = &mut scratch.ones;
        votes::count_windows(&scratch.text, windows, width, seed_of(0), ones);
        votes::decide_counts(ones, windows, self.tie_gives_one, self.bits, out);
    }

    fn without_features(&self, scratch: &mut Scratch, out: &mut [u64]) -> bool {
        match self.empty {
            Empty::None => {
                out.fill(0);
                return false;
            }
            Empty::Votes => votes::decide(&vec![0u32; self.bits], 0, self.tie_gives_one, out),
            Empty::Feature => {
                self.digest(0, b"", &mut scratch.digest, &mut scratch.prefixed, out);
            }
        }
        true
    }

    /// The digest of one feature, read as the words of a fingerprint.
    fn digest(&self, kind: u8, part: &[u8], digest: &mut Vec<u8>, prefixed: &mut Vec<u8>, words: &mut [u64]) {
        if self.hash == Hash::Mix {
            let hash = mix::hash(part, seed_of(kind));
            for (j, word) in words.iter_mut().enumerate() {
                *word = mix::word(hash, j);
            }
        } else {
            let bytes = self.bits.div_ceil(8);
            let length = match self.hash.bits() {
                Some(bits) if self.reading.last => bits / 8,
                _ => bytes,
            };
            digest.resize(length, 0);
            if kind == 0 {
                self.hash.digest(part, digest);
            } else {
                prefixed.clear();
                prefixed.push(kind);
                prefixed.extend_from_slice(part);
                self.hash.digest(prefixed, digest);
            }
            let taken = &mut digest[length - bytes..];
            if self.reading.big_endian {
                taken.reverse();
            }
            for (word, chunk) in words.iter_mut().zip(taken.chunks(8)) {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_le_bytes(eight);
            }
        }
        self.trim(words);
    }

    /// Clear what a digest has above the fingerprint's bits.
    fn trim(&self, words: &mut [u64]) {
        if self.bits % 64 != 0
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << (self.bits % 64)) - 1;
        }
    }

    /// Every occurrence votes.
    fn vote_all(&self, scratch: &mut Scratch, out: &mut [u64]) {
        let words = self.words();
        scratch.ones.clear();
        scratch.ones.resize(words, [0; 64]);
        let ones = &mut scratch.ones;
        let total = scratch.parts.starts.len();
        let mut hashes = [0u64; BATCH];
        for (kind, range) in scratch.parts.kinds.clone() {
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + BATCH);
                if self.hash == Hash::Mix {
                    let hashes = &mut hashes[..end - at];
                    let (starts, ends) = (&scratch.parts.starts[at..end], &scratch.parts.ends[at..end]);
                    mix::hash_parts(&scratch.text, starts, ends, seed_of(kind), hashes);
                    votes::count_words(hashes, ones);
                } else {
                    let mut digests = vec![0u64; words];
                    for part in at..end {
                        let (from, to) = (scratch.parts.starts[part] as usize, scratch.parts.ends[part] as usize);
                        let bytes = &scratch.text[from..to];
                        self.digest(kind, bytes, &mut scratch.digest, &mut scratch.prefixed, &mut digests);
                        for (word, ones) in digests.iter().zip(ones.iter_mut()) {
                            votes::count(std::slice::from_ref(word), ones);
                        }
                    }
                }
                at = end;
            }
        }
        votes::decide_counts(ones, total, self.tie_gives_one, self.bits, out);
    }

    /// Fill `scratch.counts` with the different features of the text that was cut.
    fn count_different(&self, scratch: &mut Scratch) {
        let words = self.words();
        let keep_digests = self.hash != Hash::Mix;
        scratch.counts.start(scratch.parts.starts.len());
        let mut hashes = [0u64; BATCH];
        let mut digest = vec![0u64; words];
        for (kind, range) in scratch.parts.kinds.clone() {
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + BATCH);
                let (starts, ends) = (&scratch.parts.starts[at..end], &scratch.parts.ends[at..end]);
                if keep_digests {
                    for (start, end) in starts.iter().zip(ends) {
                        let bytes = &scratch.text[*start as usize..*end as usize];
                        self.digest(kind, bytes, &mut scratch.digest, &mut scratch.prefixed, &mut digest);
                        if scratch.counts.add(digest[0]) {
                            scratch.counts.digests.extend_from_slice(&digest);
                        }
                    }
                } else {
                    let hashes = &mut hashes[..end - at];
                    mix::hash_parts(&scratch.text, starts, ends, seed_of(kind), hashes);
                    for hash in hashes.iter() {
                        scratch.counts.add(*hash);
                    }
                }
                at = end;
            }
        }
    }

    /// Every different feature votes with its weight.
    fn vote_different(&self, scratch: &mut Scratch, out: &mut [u64]) {
        self.count_different(scratch);
        let counts = &mut scratch.counts;
        counts.weights.clear();
        let log = |feature: &Counted| u32::BITS - feature.occurrences.leading_zeros();
        match (self.weights, &self.frequencies) {
            (Weights::LogDf, Some(frequencies)) => {
                counts.weights.extend(counts.found.iter().map(|f| log(f) * frequencies.weight(f.hash)));
            }
            (Weights::Set, _) => counts.weights.resize(counts.found.len(), 1),
            _ => counts.weights.extend(counts.found.iter().map(log)),
        }
        if counts.weights.iter().all(|weight| *weight == 0) {
            // Nothing that other documents share: it votes for itself.
            counts.weights.clear();
            counts.weights.extend(counts.found.iter().map(log));
        }
        let words = self.words();
        let mut ones = vec![[0u64; 64]; words];
        let mut hashes = [0u64; BATCH];
        for (batch, features) in counts.found.chunks(BATCH).enumerate() {
            let begin = batch * BATCH;
            let weights = &counts.weights[begin..begin + features.len()];
            for (j, ones) in ones.iter_mut().enumerate() {
                for (at, (slot, feature)) in hashes.iter_mut().zip(features).enumerate() {
                    *slot = match self.hash {
                        Hash::Mix => mix::word(feature.hash, j),
                        _ => counts.digests[(begin + at) * words + j],
                    };
                }
                votes::weigh(&hashes[..features.len()], weights, ones);
            }
        }
        let total: u64 = counts.weights.iter().map(|weight| u64::from(*weight)).sum();
        votes::decide(&ones.as_flattened()[..self.bits], i128::from(total), self.tie_gives_one, out);
    }
}

/// Features of different kinds never share a hash by being the same string.
fn seed_of(kind: u8) -> u64 {
    mix::SECOND.wrapping_mul(u64::from(kind))
}

/// Counts the different features of one text: open addressing over the hashes.
#[derive(Default)]
struct Counts {
    /// One more than the row in `found`; 0 marks a free place.
    places: Vec<u32>,
    found: Vec<Counted>,
    weights: Vec<u32>,
    /// Whole digests, where they do not follow from the hash.
    digests: Vec<u64>,
}

impl Counts {
    fn clear(&mut self) {
        self.found.clear();
        self.digests.clear();
    }

    /// Make room for *features*.
    fn start(&mut self, features: usize) {
        self.clear();
        self.places.clear();
        self.places.resize((features * 2).next_power_of_two().max(16), 0);
    }

    /// Count one occurrence; whether the feature is a new one.
    #[inline(always)]
    fn add(&mut self, hash: u64) -> bool {
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.places[at] {
                0 => {
                    self.found.push(Counted { hash, occurrences: 1 });
                    self.places[at] = self.found.len() as u32;
                    return true;
                }
                row => {
                    let feature = &mut self.found[row as usize - 1];
                    if feature.hash == hash {
                        feature.occurrences += 1;
                        return false;
                    }
                }
            }
            at = (at + 1) & mask;
        }
    }
}
