#![deny(unsafe_code)]
//! A scheme as the core runs it: one text in, one fingerprint out.
//!
//! Two phases over small buffers: normalise and cut the text into parts, then hash the parts
//! and let them vote, a batch of them at a time.

pub mod bands;
pub mod batches;
pub mod slices;
pub mod tally;
pub mod votes;

use std::sync::Arc;

use crate::frequencies::grams::{self, Grams};
use crate::frequencies::{Frozen, OPEN_WEIGHTS, WEIGHTS};
use crate::hash::Hash;
use crate::hash::md5;
use crate::hash::mix;
use crate::recipe::bands::{BANDS, Bins};
use crate::recipe::tally::Tally;
use crate::recipe::votes::{BATCH, ByWeight, Votes};
use crate::system::fault::Fault;
use crate::system::memory;
use crate::text::features::{Features, Parts, seed_of};
use crate::text::normalize::{Normalization, Text};

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
    /// The same, and what the table does not know is rare.
    LogDfOpen,
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
pub struct DigestBits {
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
    pub digest_bits: DigestBits,
    pub tie_gives_one: bool,
    pub empty: Empty,
    pub frequencies: Option<Arc<Frozen>>,
}

/// A recipe in words, each as the fields of a scheme have it.
#[derive(Clone, Copy)]
pub struct Spec<'a> {
    pub normalize: &'a str,
    pub features: &'a str,
    pub weights: &'a str,
    pub hash: &'a str,
    /// The secret of a keyed hash.
    pub key: Option<&'a [u8]>,
    pub bits: usize,
    pub digest_slice: &'a str,
    pub bit_order: &'a str,
    pub tie: &'a str,
    pub empty: &'a str,
}

/// Buffers that one thread uses again for every text.
#[derive(Default)]
pub struct Scratch {
    text: Vec<u8>,
    parts: Parts,
    counts: Counts,
    digests: Digests,
    votes: Votes,
    /// If the bands of a text are wanted, too.
    bins: Option<Bins>,
}

/// The different features of one text: the first words of their digests, and how often each occurs.
#[derive(Clone, Copy)]
pub struct Counted<'a> {
    pub hashes: &'a [u64],
    pub occurrences: &'a [u32],
    /// What the last of them are.
    pub grams: &'a [u32],
}

impl Recipe {
    /// The recipe that *spec* says, with the *frequencies* that weigh features.
    pub fn parse(spec: &Spec<'_>, frequencies: Option<Arc<Frozen>>) -> Result<Recipe, Fault> {
        let unknown = |kind: &str, name: &str| Fault::Value(format!("unknown {kind} {name:?}"));
        let Spec { normalize, features, weights, hash, empty, .. } = *spec;
        Ok(Recipe {
            normalization: Normalization::parse(normalize).ok_or_else(|| unknown("normalisation", normalize))?,
            features: Features::parse(features).ok_or_else(|| unknown("features", features))?,
            weights: match weights {
                "count" => Weights::Count,
                "set" => Weights::Set,
                "log" => Weights::Log,
                "log-df" => Weights::LogDf,
                "log-df-open" => Weights::LogDfOpen,
                other => return Err(unknown("weights", other)),
            },
            hash: Hash::parse(hash, spec.key).ok_or_else(|| unknown("hash", hash))?,
            bits: spec.bits,
            digest_bits: DigestBits { last: spec.digest_slice == "last", big_endian: spec.bit_order == "big" },
            tie_gives_one: spec.tie == "one",
            empty: match empty {
                "none" => Empty::None,
                "votes" => Empty::Votes,
                "feature" => Empty::Feature,
                other => return Err(unknown("empty rule", other)),
            },
            frequencies,
        })
    }

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
    pub fn fingerprint<'t>(&self, text: impl Into<Text<'t>>, scratch: &mut Scratch, out: &mut [u64]) -> bool {
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
        if !self.cut(ascii, false, scratch) {
            return self.without_features(scratch, out);
        }
        match self.weights {
            Weights::Count => self.vote_all(scratch, out),
            _ => self.vote_different(scratch, out),
        }
        true
    }

    /// Whether the features of a text have bands: each of them counts once.
    pub fn has_bands(&self) -> bool {
        self.hash == Hash::Mix && self.weights != Weights::Count
    }

    /// Write the fingerprint of *text* to *out*, and its bands where there is room for them; false where it has none.
    pub fn fingerprint_and_bands<'t>(
        &self,
        text: impl Into<Text<'t>>,
        scratch: &mut Scratch,
        out: &mut [u64],
        bands: Option<&mut [u32; BANDS]>,
    ) -> bool {
        let Some(bands) = bands else {
            return self.fingerprint(text, scratch, out);
        };
        scratch.bins = Some(Bins::default());
        let found = self.fingerprint(text, scratch, out);
        if let Some(bins) = scratch.bins.take() {
            bins.bands(bands);
        }
        found
    }

    /// The normalised form of a text, with padding behind it, and its different features.
    pub fn counted<'a, 't>(&self, text: impl Into<Text<'t>>, scratch: &'a mut Scratch) -> (&'a [u8], Counted<'a>) {
        scratch.counts.clear();
        let ascii = self.normalize(text, scratch);
        let length = scratch.text.len();
        if self.cut(ascii, false, scratch) {
            self.count_others(scratch);
            scratch.counts.count_grams(Grams::new(&scratch.text, scratch.parts.grams));
        }
        (&scratch.text[..length + mix::PADDING], scratch.counts.found())
    }

    /// What *identify* makes of the normalised text, or None if it has no information; then the hashes of
    /// its different features, if they are wanted, except its grams.
    pub fn survey<'a, 't, T>(
        &self,
        text: impl Into<Text<'t>>,
        scratch: &'a mut Scratch,
        features: bool,
        identify: impl FnOnce(&[u8]) -> T,
    ) -> (Option<T>, &'a [u64], Grams<'a>) {
        scratch.counts.clear();
        let ascii = self.normalize(text, scratch);
        let content = identify(&scratch.text);
        let informative = self.cut(ascii, false, scratch);
        let mut grams = Grams::NONE;
        if informative && features {
            self.count_others(scratch);
            grams = Grams::new(&scratch.text, scratch.parts.grams);
        }
        (informative.then_some(content), scratch.counts.found().hashes, grams)
    }

    /// Every feature of a text: its kind, its text and its hash, in the order of the text.
    pub fn listed(&self, text: &str, scratch: &mut Scratch) -> Vec<(u8, String, u64)> {
        let mut all = Vec::new();
        let ascii = self.normalize(text, scratch);
        if self.cut(ascii, true, scratch) {
            let mut words = vec![0; self.words()];
            for (kind, range) in scratch.parts.kinds.clone() {
                for at in range {
                    let (start, end) = (scratch.parts.starts[at] as usize, scratch.parts.ends[at] as usize);
                    let part = String::from_utf8_lossy(&scratch.text[start..end]).into_owned();
                    self.digest(
                        kind,
                        part.as_bytes(),
                        &mut scratch.digests.bytes,
                        &mut scratch.digests.prefixed,
                        &mut words,
                    );
                    memory::push(&mut all, (kind, part, words[0]));
                }
            }
        }
        all
    }

    /// Write the fingerprint of weighted features to *out*; false if there are none.
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
            self.digest(0, feature.as_bytes(), &mut scratch.digests.bytes, &mut scratch.digests.prefixed, &mut words);
            total += i128::from(*weight);
            for (bit, sum) in ones.iter_mut().enumerate() {
                if words[bit / 64] >> (bit % 64) & 1 == 1 {
                    *sum += i128::from(*weight);
                }
            }
        }
        (ones, total)
    }

    /// Normalise *text* into `scratch.text`, empty if there is nothing that could vote;
    /// whether it is ASCII.
    fn normalize<'t>(&self, text: impl Into<Text<'t>>, scratch: &mut Scratch) -> bool {
        let ascii = self.normalization.apply(text, &mut scratch.text);
        let informative = self.empty != Empty::None
            || !matches!(self.normalization, Normalization::Text | Normalization::Prose | Normalization::UnicodeWords)
            || scratch.text.iter().any(|byte| !matches!(byte, b'_' | b' '));
        if !informative {
            scratch.text.clear();
        }
        ascii
    }

    /// Cut the normalised text into parts, all of them *listed* or not; false if there are none.
    fn cut(&self, ascii: bool, listed: bool, scratch: &mut Scratch) -> bool {
        self.features.cut(&mut scratch.text, ascii, listed, &mut scratch.parts);
        if self.normalization == Normalization::Text && self.hash == Hash::Mix && self.weights != Weights::Count {
            scratch.parts.take_grams();
        }
        scratch.parts.count() > 0
    }

    /// Every run of *width* bytes of the normalised text votes.
    fn vote_windows(&self, width: usize, scratch: &mut Scratch, out: &mut [u64]) {
        let windows = scratch.text.len() - width + 1;
        let padded = scratch.text.len() + mix::PADDING;
        memory::resize(&mut scratch.text, padded, 0);
        scratch.votes.begin(self.words());
        scratch.votes.count_windows(&scratch.text, windows, width, seed_of(0));
        scratch.votes.decide(windows as u64, self.tie_gives_one, self.bits, out);
    }

    fn without_features(&self, scratch: &mut Scratch, out: &mut [u64]) -> bool {
        match self.empty {
            Empty::None => {
                out.fill(0);
                return false;
            }
            Empty::Votes => votes::decide(&vec![0u32; self.bits], 0, self.tie_gives_one, out),
            Empty::Feature => {
                self.digest(0, b"", &mut scratch.digests.bytes, &mut scratch.digests.prefixed, out);
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
                Some(bits) if self.digest_bits.last => bits / 8,
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
            if self.digest_bits.big_endian {
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
        if !self.bits.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << (self.bits % 64)) - 1;
        }
    }

    /// Call *each* with the digests of all features, up to `BATCH` at a time: how many they are,
    /// and their words, word 0 of all and `BATCH` further on word 1 of all. Words that follow from word 0 are
    /// left out: `mix::words` makes them.
    fn hashed(&self, text: &[u8], parts: &Parts, digests: &mut Digests, mut each: impl FnMut(usize, &[u64])) {
        memory::resize(&mut digests.words, if self.hash == Hash::Mix { 1 } else { self.words() } * BATCH, 0);
        for (kind, range) in &parts.kinds {
            for at in range.clone().step_by(BATCH) {
                let end = range.end.min(at + BATCH);
                self.hash_parts(*kind, text, &parts.starts[at..end], &parts.ends[at..end], digests);
                each(end - at, &digests.words);
            }
        }
        if let Some((kind, n)) = parts.spans {
            let total = parts.edges.len() - n;
            for at in (0..total).step_by(BATCH) {
                let end = total.min(at + BATCH);
                self.hash_parts(kind, text, &parts.edges[at..end], &parts.edges[at + n..end + n], digests);
                each(end - at, &digests.words);
            }
        }
        if let Some(windows) = &parts.windows {
            for at in (0..windows.count).step_by(BATCH) {
                let count = BATCH.min(windows.count - at);
                if self.hash == Hash::Mix {
                    mix::hash_windows(text, at, windows.width, seed_of(windows.kind), &mut digests.words[..count]);
                } else {
                    let starts: [u32; BATCH] = std::array::from_fn(|row| (at + row) as u32);
                    let ends = starts.map(|start| start + windows.width as u32);
                    self.hash_parts(windows.kind, text, &starts[..count], &ends[..count], digests);
                }
                each(count, &digests.words);
            }
        }
    }

    /// Fill `digests.words` for up to `BATCH` parts.
    fn hash_parts(&self, kind: u8, text: &[u8], starts: &[u32], ends: &[u32], digests: &mut Digests) {
        let count = starts.len();
        if self.hash == Hash::Mix {
            return mix::hash_parts(text, starts, ends, seed_of(kind), &mut digests.words[..count]);
        }
        let size = self.hash.bits().unwrap_or(128);
        if self.hash == Hash::Md5 && kind == 0 {
            return md5::digests(text, starts, ends, |row, digest| digests.set(row, self.read(digest, size)));
        }
        let parts = starts.iter().zip(ends).map(|(start, end)| &text[*start as usize..*end as usize]);
        match self.hash.short() {
            Some(short) if kind == 0 => {
                for (row, part) in parts.enumerate() {
                    digests.set(row, self.read(short(part), size));
                }
            }
            _ => {
                let mut one = std::mem::take(&mut digests.one);
                one.resize(self.words(), 0);
                for (row, part) in parts.enumerate() {
                    self.digest(kind, part, &mut digests.bytes, &mut digests.prefixed, &mut one);
                    for (j, word) in one.iter().enumerate() {
                        digests.words[j * BATCH + row] = *word;
                    }
                }
                digests.one = one;
            }
        }
    }

    /// The fingerprint's bits of a digest of *size* (64 or 128) bits whose first byte is the lowest.
    #[inline(always)]
    fn read(&self, digest: u128, size: usize) -> u128 {
        if self.bits == 64 {
            let word = if self.digest_bits.last && size == 128 { (digest >> 64) as u64 } else { digest as u64 };
            return u128::from(if self.digest_bits.big_endian { word.swap_bytes() } else { word });
        }
        let bytes = self.bits.div_ceil(8);
        let taken = if self.digest_bits.last { digest >> (size - 8 * bytes) } else { digest };
        let ordered = if self.digest_bits.big_endian { taken.swap_bytes() >> (128 - 8 * bytes) } else { taken };
        ordered & (u128::MAX >> (128 - self.bits))
    }

    /// Every occurrence votes.
    fn vote_all(&self, scratch: &mut Scratch, out: &mut [u64]) {
        let (votes, text, parts) = (&mut scratch.votes, &scratch.text, &scratch.parts);
        votes.begin(self.words());
        if self.hash == Hash::Mix {
            for (kind, range) in &parts.kinds {
                let (starts, ends) = (&parts.starts[range.clone()], &parts.ends[range.clone()]);
                votes.count_parts(text, starts, ends, seed_of(*kind));
            }
            if let Some((kind, n)) = parts.spans {
                let total = parts.edges.len() - n;
                votes.count_parts(text, &parts.edges[..total], &parts.edges[n..], seed_of(kind));
            }
            if let Some(windows) = &parts.windows {
                votes.count_windows(text, windows.count, windows.width, seed_of(windows.kind));
            }
        } else {
            self.hashed(text, parts, &mut scratch.digests, |count, words| {
                for (j, words) in words.chunks_exact(BATCH).enumerate() {
                    votes.count(j, &words[..count]);
                }
            });
        }
        votes.decide(parts.count() as u64, self.tie_gives_one, self.bits, out);
    }

    /// Fill `scratch.counts` with the different features of the text that was cut, except its grams.
    fn count_others(&self, scratch: &mut Scratch) {
        let words = self.words();
        let counts = &mut scratch.counts;
        counts.clear();
        self.hashed(&scratch.text, &scratch.parts, &mut scratch.digests, |count, batch| {
            memory::append(&mut counts.all, &batch[..count]);
            if self.hash != Hash::Mix {
                memory::more_room(&mut counts.digests, count * words);
                for row in 0..count {
                    counts.digests.extend(batch.iter().skip(row).step_by(BATCH).take(words));
                }
            }
        });
        counts.count_others();
    }

    /// Every different feature votes with its weight.
    fn vote_different(&self, scratch: &mut Scratch, out: &mut [u64]) {
        self.count_others(scratch);
        scratch.counts.count_grams(Grams::new(&scratch.text, scratch.parts.grams));
        let counts = &mut scratch.counts;
        let (hashes, occurrences) = (&mut counts.hashes[..counts.different], &counts.occurrences[..counts.different]);
        let weights = &mut counts.weights;
        weights.clear();
        memory::more_room(weights, hashes.len());
        let log = |occurrences: &u32| u32::BITS - occurrences.leading_zeros();
        match (self.weights, &self.frequencies) {
            (Weights::LogDf | Weights::LogDfOpen, Some(frequencies)) => {
                let of_class = if self.weights == Weights::LogDfOpen { &OPEN_WEIGHTS } else { &WEIGHTS };
                frequencies.classes(hashes, &counts.grams[..counts.different_grams], &mut counts.classes);
                let both = counts.classes.iter().zip(occurrences);
                weights.extend(both.map(|(class, occurrences)| of_class[usize::from(*class)] * log(occurrences)));
            }
            (Weights::Set, _) => weights.resize(hashes.len(), 1),
            _ => weights.extend(occurrences.iter().map(log)),
        }
        if weights.iter().all(|weight| *weight == 0) {
            // Nothing that other documents share: it votes for itself.
            weights.clear();
            weights.extend(occurrences.iter().map(log));
        }
        if let Some(bins) = &mut scratch.bins {
            bins.fill(hashes, weights);
        }
        let (votes, words) = (&mut scratch.votes, self.words());
        votes.begin(words);
        let total = if self.hash == Hash::Mix {
            votes.weigh(hashes, weights, &mut counts.hashes_by_weight, mix::words)
        } else {
            let digests = &counts.digests;
            votes.weigh(&mut counts.rows, weights, &mut counts.rows_by_weight, |rows, j, out| {
                for (word, row) in out.iter_mut().zip(rows) {
                    *word = digests[*row as usize * words + j];
                }
            })
        };
        votes.decide(total, self.tie_gives_one, self.bits, out);
    }
}

/// Digests of a batch of features, and what it takes to make them.
#[derive(Default)]
struct Digests {
    /// Word 0 of all, then word 1 of all, and so on.
    words: Vec<u64>,
    one: Vec<u64>,
    bytes: Vec<u8>,
    prefixed: Vec<u8>,
}

impl Digests {
    /// Write a digest of one or two words.
    #[inline(always)]
    fn set(&mut self, row: usize, digest: u128) {
        self.words[row] = digest as u64;
        if let Some(word) = self.words.get_mut(BATCH + row) {
            *word = (digest >> 64) as u64;
        }
    }
}

/// The different features of one text.
#[derive(Default)]
struct Counts {
    /// The hashes of all features.
    all: Vec<u64>,
    /// Whole digests of all, where they do not follow from the hash.
    digests: Vec<u64>,
    /// The different ones and how often each occurs, and something behind them.
    hashes: Vec<u64>,
    occurrences: Vec<u32>,
    different: usize,
    /// The last ones that were found.
    grams: Vec<u32>,
    different_grams: usize,
    /// The first row in `all` of each one found, where digests are kept.
    rows: Vec<u32>,
    classes: Vec<u8>,
    weights: Vec<u32>,
    hashes_by_weight: ByWeight<u64>,
    rows_by_weight: ByWeight<u32>,
    /// For texts of fewer than 2^16 features, and for others.
    short: Tally<u16>,
    long: Tally<u32>,
}

impl Counts {
    fn clear(&mut self) {
        self.all.clear();
        self.digests.clear();
        (self.different, self.different_grams) = (0, 0);
    }

    fn found(&self) -> Counted<'_> {
        Counted {
            hashes: &self.hashes[..self.different],
            occurrences: &self.occurrences[..self.different],
            grams: &self.grams[..self.different_grams],
        }
    }

    /// Fill `hashes`, `occurrences` and `rows`.
    fn count_others(&mut self) {
        self.rows.clear();
        let (hashes, occurrences) = (&mut self.hashes, &mut self.occurrences);
        self.different = match self.all.len() {
            0..=SHORT => self.short.count(&self.all[..], hashes, occurrences, 0),
            _ => self.long.count(&self.all[..], hashes, occurrences, 0),
        };
        if !self.digests.is_empty() {
            memory::more_room(&mut self.rows, self.different);
            match self.all.len() {
                0..=SHORT => self.rows.extend(self.short.rows()),
                _ => self.rows.extend(self.long.rows()),
            }
        }
    }

    /// Find the different ones of *grams*, too.
    fn count_grams(&mut self, grams: Grams<'_>) {
        let (found, occurrences, known) = (&mut self.grams, &mut self.occurrences, self.different);
        self.different_grams = match grams.len() {
            0..=SHORT => self.short.count(grams, found, occurrences, known),
            _ => self.long.count(grams, found, occurrences, known),
        };
        self.different += self.different_grams;
        memory::at_least(&mut self.hashes, self.different);
        grams::hashes(&self.grams[..self.different_grams], &mut self.hashes[known..self.different]);
    }
}

/// Lists of up to this many have numbers of 16 bits.
const SHORT: usize = 0xffff;
