//! A scheme as the core runs it: one text in, one fingerprint out.
//!
//! Two phases over small buffers: normalise and cut the text into parts, then hash the parts
//! and let them vote, a batch of them at a time.

use std::sync::Arc;

use crate::features::{Features, Parts};
use crate::frequencies::Frozen;
use crate::hash::Hash;
use crate::normalize::{Normalization, Text};
use crate::votes::{self, BATCH};
use crate::{md5, mix};

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
    digests: Digests,
    ones: Vec<[u32; 64]>,
    sums: Vec<[u64; 64]>,
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

    /// The normalised form of a text, with padding behind it, and its different features.
    pub fn counted<'a, 't>(&self, text: impl Into<Text<'t>>, scratch: &'a mut Scratch) -> (&'a [u8], &'a [Counted]) {
        scratch.counts.clear();
        let ascii = self.normalize(text, scratch);
        let length = scratch.text.len();
        if self.cut(ascii, false, scratch) {
            self.count_different(scratch);
        }
        (&scratch.text[..length + mix::PADDING], scratch.counts.found())
    }

    /// What identifies the normalised text, or None where there is no information in it. The
    /// different features are left in the scratch, for `different`.
    pub fn survey<'t>(&self, text: impl Into<Text<'t>>, scratch: &mut Scratch, features: bool) -> Option<u128> {
        scratch.counts.clear();
        let ascii = self.normalize(text, scratch);
        let content = xxhash_rust::xxh3::xxh3_128(&scratch.text);
        if !self.cut(ascii, false, scratch) {
            return None;
        }
        if features {
            self.count_different(scratch);
        }
        Some(content)
    }

    /// The hashes of the different features that `survey` left behind.
    pub fn different<'a>(&self, scratch: &'a Scratch) -> impl Iterator<Item = u64> + 'a {
        scratch.counts.found().iter().map(|feature| feature.hash)
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

    /// Normalise *text* into `scratch.text`, empty where there is nothing that could vote;
    /// whether it is ASCII.
    fn normalize<'t>(&self, text: impl Into<Text<'t>>, scratch: &mut Scratch) -> bool {
        let ascii = self.normalization.apply(text, &mut scratch.text);
        let informative = self.empty != Empty::None
            || !matches!(self.normalization, Normalization::Text | Normalization::UnicodeWords)
            || scratch.text.iter().any(|byte| !matches!(byte, b'_' | b' '));
        if !informative {
            scratch.text.clear();
        }
        ascii
    }

    /// Cut the normalised text into parts, all of them *listed* or not; false where there are none.
    fn cut(&self, ascii: bool, listed: bool, scratch: &mut Scratch) -> bool {
        self.features.cut(&mut scratch.text, ascii, listed, &mut scratch.parts);
        scratch.parts.count() > 0
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
        if !self.bits.is_multiple_of(64)
            && let Some(last) = words.last_mut()
        {
            *last &= (1 << (self.bits % 64)) - 1;
        }
    }

    /// Call *each* with the digests of all features, up to `BATCH` at a time: how many they are,
    /// and their words, word 0 of all and `BATCH` further on word 1 of all.
    fn hashed(&self, text: &[u8], parts: &Parts, digests: &mut Digests, mut each: impl FnMut(usize, &[u64])) {
        digests.words.resize(self.words() * BATCH, 0);
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
                    self.hash_on(count, digests);
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
            mix::hash_parts(text, starts, ends, seed_of(kind), &mut digests.words[..count]);
            return self.hash_on(count, digests);
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

    /// The words that follow from word 0 of the first *count* digests.
    fn hash_on(&self, count: usize, digests: &mut Digests) {
        let (first, further) = digests.words.split_at_mut(BATCH);
        for (j, words) in further.chunks_exact_mut(BATCH).enumerate() {
            mix::words(&first[..count], j + 1, &mut words[..count]);
        }
    }

    /// The fingerprint's bits of a digest of *size* (64 or 128) bits whose first byte is the lowest.
    #[inline(always)]
    fn read(&self, digest: u128, size: usize) -> u128 {
        if self.bits == 64 {
            let word = if self.reading.last && size == 128 { (digest >> 64) as u64 } else { digest as u64 };
            return u128::from(if self.reading.big_endian { word.swap_bytes() } else { word });
        }
        let bytes = self.bits.div_ceil(8);
        let taken = if self.reading.last { digest >> (size - 8 * bytes) } else { digest };
        let ordered = if self.reading.big_endian { taken.swap_bytes() >> (128 - 8 * bytes) } else { taken };
        ordered & (u128::MAX >> (128 - self.bits))
    }

    /// Every occurrence votes.
    fn vote_all(&self, scratch: &mut Scratch, out: &mut [u64]) {
        scratch.ones.clear();
        scratch.ones.resize(self.words(), [0; 64]);
        let (ones, text, parts) = (&mut scratch.ones, &scratch.text, &scratch.parts);
        if self.hash == Hash::Mix {
            for (kind, range) in &parts.kinds {
                let (starts, ends) = (&parts.starts[range.clone()], &parts.ends[range.clone()]);
                votes::count_parts(text, starts, ends, seed_of(*kind), ones);
            }
            if let Some((kind, n)) = parts.spans {
                let total = parts.edges.len() - n;
                votes::count_parts(text, &parts.edges[..total], &parts.edges[n..], seed_of(kind), ones);
            }
            if let Some(windows) = &parts.windows {
                votes::count_windows(text, windows.count, windows.width, seed_of(windows.kind), ones);
            }
        } else {
            self.hashed(text, parts, &mut scratch.digests, |count, words| {
                for (ones, words) in ones.iter_mut().zip(words.chunks_exact(BATCH)) {
                    votes::count(&words[..count], ones);
                }
            });
        }
        votes::decide_counts(ones, scratch.parts.count(), self.tie_gives_one, self.bits, out);
    }

    /// Fill `scratch.counts` with the different features of the text that was cut.
    fn count_different(&self, scratch: &mut Scratch) {
        let words = self.words();
        let counts = &mut scratch.counts;
        counts.clear();
        self.hashed(&scratch.text, &scratch.parts, &mut scratch.digests, |count, batch| {
            counts.all.extend_from_slice(&batch[..count]);
            if self.hash != Hash::Mix {
                for row in 0..count {
                    counts.digests.extend(batch.iter().skip(row).step_by(BATCH).take(words));
                }
            }
        });
        counts.count();
    }

    /// Every different feature votes with its weight.
    fn vote_different(&self, scratch: &mut Scratch, out: &mut [u64]) {
        self.count_different(scratch);
        let counts = &mut scratch.counts;
        let found = &counts.found[..counts.different];
        let weights = &mut counts.weights;
        weights.clear();
        let log = |feature: &Counted| u32::BITS - feature.occurrences.leading_zeros();
        match (self.weights, &self.frequencies) {
            (Weights::LogDf, Some(frequencies)) => {
                frequencies.weights(found.iter().map(|feature| feature.hash), weights);
                for (weight, feature) in weights.iter_mut().zip(found) {
                    *weight *= log(feature);
                }
            }
            (Weights::Set, _) => weights.resize(found.len(), 1),
            _ => weights.extend(found.iter().map(log)),
        }
        if weights.iter().all(|weight| *weight == 0) {
            // Nothing that other documents share: it votes for itself.
            weights.clear();
            weights.extend(found.iter().map(log));
        }
        let words = self.words();
        scratch.sums.clear();
        scratch.sums.resize(words, [0; 64]);
        let sums = &mut scratch.sums;
        let (mut hashes, mut further) = ([0u64; BATCH], [0u64; BATCH]);
        for (batch, features) in found.chunks(BATCH).enumerate() {
            let begin = batch * BATCH;
            let weights = &weights[begin..begin + features.len()];
            let (hashes, further) = (&mut hashes[..features.len()], &mut further[..features.len()]);
            for (hash, feature) in hashes.iter_mut().zip(features) {
                *hash = feature.hash;
            }
            for (j, sums) in sums.iter_mut().enumerate() {
                if self.hash == Hash::Mix {
                    mix::words(hashes, j, further);
                } else {
                    for (at, word) in further.iter_mut().enumerate() {
                        *word = counts.digests[counts.rows[begin + at] as usize * words + j];
                    }
                }
                votes::weigh(further, weights, sums);
            }
        }
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        votes::decide_sums(sums, total, self.tie_gives_one, self.bits, out);
    }
}

/// Features of different kinds never share a hash by being the same string.
fn seed_of(kind: u8) -> u64 {
    mix::SECOND.wrapping_mul(u64::from(kind))
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

/// Counts the different features of one text.
///
/// Whether a feature is new cannot be foretold, so that a branch on it costs more than all else.
/// There is none here:
///
/// ```text
/// all features write their number into a table, at a place that their hash gives
/// all look there: who finds a feature with its own hash adds to its count; the others wait
/// those who waited do the same with other bits of their hashes
/// ```
#[derive(Default)]
struct Counts {
    /// The hashes of all features.
    all: Vec<u64>,
    /// Whole digests of all, where they do not follow from the hash.
    digests: Vec<u64>,
    /// The different ones, and something behind them.
    found: Vec<Counted>,
    different: usize,
    /// The first row in `all` of each one found, where digests are kept.
    rows: Vec<u32>,
    weights: Vec<u32>,
    /// For texts of fewer than 2^16 features, so that it stays in the first cache; for others.
    short: Tally<u16>,
    long: Tally<u32>,
}

impl Counts {
    fn clear(&mut self) {
        self.all.clear();
        self.digests.clear();
        self.different = 0;
    }

    fn found(&self) -> &[Counted] {
        &self.found[..self.different]
    }

    /// Fill `found` and `rows`.
    fn count(&mut self) {
        let total = self.all.len();
        if self.found.len() < total {
            self.found.resize(total, Counted { hash: 0, occurrences: 0 });
        }
        self.rows.clear();
        if !self.digests.is_empty() {
            self.rows.resize(total, 0);
        }
        let (all, found, rows) = (&self.all[..], &mut self.found[..], &mut self.rows[..]);
        self.different = match total {
            0..=0xffff => self.short.count(all, found, rows),
            _ => self.long.count(all, found, rows),
        };
    }
}

/// A number below that of the features of a text.
trait Row: Copy + Default {
    fn number(self) -> usize;
    fn of(number: usize) -> Self;
}

impl Row for u16 {
    fn number(self) -> usize {
        usize::from(self)
    }
    fn of(number: usize) -> u16 {
        number as u16
    }
}

impl Row for u32 {
    fn number(self) -> usize {
        self as usize
    }
    fn of(number: usize) -> u32 {
        number as u32
    }
}

#[derive(Default)]
struct Tally<R> {
    table: Vec<R>,
    tallies: Vec<R>,
    waiting: Vec<R>,
}

impl<R: Row> Tally<R> {
    /// Write the different ones of *all* to *found* (and their first rows to *rows*, unless that
    /// is empty); how many they are.
    fn count(&mut self, all: &[u64], found: &mut [Counted], rows: &mut [u32]) -> usize {
        let total = all.len();
        let mask = (total * 2).next_power_of_two().max(16) - 1;
        if self.table.len() <= mask {
            self.table.resize(mask + 1, R::default());
        }
        if self.waiting.len() < total {
            self.waiting.resize(total, R::default());
        }
        self.tallies.clear();
        self.tallies.resize(total, R::default());
        let (table, tallies, waiting) = (&mut self.table[..=mask], &mut self.tallies[..], &mut self.waiting[..]);
        // The first round is for all, and needs no list of them.
        for (row, hash) in all.iter().enumerate().rev() {
            table[*hash as usize & mask] = R::of(row);
        }
        let mut left = 0;
        for (row, hash) in all.iter().enumerate() {
            let first = table[*hash as usize & mask].number();
            let same = all[first] == *hash;
            tallies[first] = R::of(tallies[first].number() + usize::from(same));
            waiting[left] = R::of(row);
            left += usize::from(!same);
        }
        let mut round = 1;
        while left > 0 {
            let place = |hash: u64| mix::word(hash, round) as usize & mask;
            for row in waiting[..left].iter().rev() {
                table[place(all[row.number()])] = *row;
            }
            let waited = left;
            left = 0;
            for at in 0..waited {
                let row = waiting[at];
                let hash = all[row.number()];
                let first = table[place(hash)].number();
                let same = all[first] == hash;
                tallies[first] = R::of(tallies[first].number() + usize::from(same));
                waiting[left] = row;
                left += usize::from(!same);
            }
            round += 1;
        }
        let mut different = 0;
        for (hash, tally) in all.iter().zip(tallies.iter()) {
            found[different] = Counted { hash: *hash, occurrences: tally.number() as u32 };
            different += usize::from(tally.number() != 0);
        }
        if !rows.is_empty() {
            let mut different = 0;
            for (row, tally) in tallies.iter().enumerate() {
                rows[different] = row as u32;
                different += usize::from(tally.number() != 0);
            }
        }
        different
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_features_are_found_once_with_their_number() {
        for (total, kinds) in [(0, 1), (1, 1), (100, 7), (1000, 1000), (70_000, 300), (70_000, 50_000)] {
            let mut counts = Counts::default();
            let mut expected = std::collections::BTreeMap::new();
            for row in 0..total {
                // Low bits alike, so that many meet in one place.
                let hash = mix::finish(row % kinds) << 9;
                counts.all.push(hash);
                counts.digests.push(hash);
                expected.entry(hash).or_insert((row as u32, 0)).1 += 1;
            }
            counts.count();
            let rows = counts.rows.iter();
            let mut found: Vec<_> =
                counts.found().iter().zip(rows).map(|(f, row)| (f.hash, (*row, f.occurrences))).collect();
            found.sort_unstable();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
