//! A profile: what verification needs to know of one text, computed once and compared often.

use crate::features::spaces;
use crate::frequencies::{Frozen, doublings};
use crate::mix;
use crate::recipe::{Recipe, Scratch};
use crate::unicode::{CJK, Table};

/// 32 x 2^(-j/4): how much a feature counts that is j doublings above the knee.
const DISCOUNT: [u8; 24] = [32, 27, 23, 19, 16, 13, 11, 10, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1];

/// How much a feature of each class counts where common text counts little.
const COMMON: [u8; 256] = {
    let mut weights = [0; 256];
    weights[RARE as usize] = 32;
    let mut at = 0;
    while at < DISCOUNT.len() {
        weights[SHARED as usize + at] = DISCOUNT[at];
        at += 1;
    }
    weights
};

/// Only few documents have it; from here on many do, one more for each doubling.
const RARE: u8 = 0;
const SHARED: u8 = 1;

/// A feature in one word: 48 bits of its hash, then its weight, then how common it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Feature(u64);

/// The bits of a feature that say which one it is.
pub const KEY: u64 = !0xffff;

impl Feature {
    fn new(hash: u64, occurrences: u32, class: u8) -> Feature {
        let weight = u32::BITS - occurrences.leading_zeros();
        Feature(hash & KEY | u64::from(weight) << 8 | u64::from(class))
    }

    #[inline(always)]
    pub fn key(self) -> u64 {
        self.0 >> 16
    }

    /// A feature of that hash, which occurs once.
    #[cfg(test)]
    pub fn test(hash: u64, class: u8) -> Feature {
        Feature::new(hash, 1, class)
    }

    /// Features as they are.
    #[cfg(target_arch = "x86_64")]
    pub fn words(features: &[Feature]) -> &[u64] {
        // SAFETY: a feature is a word and nothing else.
        unsafe { std::slice::from_raw_parts(features.as_ptr().cast(), features.len()) }
    }

    /// bit_length(occurrences).
    #[inline(always)]
    pub fn weight(self) -> u64 {
        self.0 >> 8 & 0xff
    }

    #[inline(always)]
    fn class(self) -> u8 {
        self.0 as u8
    }

    #[inline(always)]
    pub fn is_rare(self) -> bool {
        self.class() == RARE
    }

    /// How much it counts where common text counts little.
    #[inline(always)]
    pub fn common_weight(self) -> u64 {
        u64::from(COMMON[usize::from(self.class())])
    }
}

#[derive(Default)]
pub struct Profile {
    /// In ascending order, each key once, without those that nobody else has.
    pub features: Vec<Feature>,
    /// How many there are with those.
    pub all: u64,
    /// Squared lengths of the three vectors.
    pub plain: u64,
    pub common: u64,
    pub rare: u64,
    /// Words, and CJK characters, in the order of the text, as hashes.
    pub tokens: Vec<u64>,
    /// The numbers among the tokens, in ascending order of hash.
    pub numbers: Vec<u64>,
    /// Those, and what two to four neighbouring ones give when joined.
    pub joined: Vec<u64>,
}

impl Profile {
    /// The profile of a text. *frequencies* count the features of every document that it is compared with.
    pub fn of(text: &str, recipe: &Recipe, frequencies: Option<&Frozen>, bench: &mut Bench) -> Profile {
        let mut profile = Profile::default();
        let (normalized, counted) = recipe.counted(text, &mut bench.scratch);
        profile.read_tokens(normalized, &mut bench.edges);
        profile.all = counted.len() as u64;
        let (counts, features) = (&mut bench.counts, &mut bench.features);
        counts.clear();
        let knee = match frequencies {
            Some(table) => {
                table.counts(counted.iter().map(|feature| feature.hash), counts);
                table.knee()
            }
            None => {
                counts.resize(counted.len(), 2);
                u32::MAX
            }
        };
        // Whether others have a feature cannot be foretold, so no branch depends on it.
        features.resize(counted.len().max(features.len()), Feature(0));
        let mut shared = 0;
        for (feature, count) in counted.iter().zip(counts.iter().copied()) {
            let class = u8::from(count > knee) * (SHARED + doublings(count, knee).min(200) as u8);
            let feature = Feature::new(feature.hash, feature.occurrences, class);
            profile.plain += feature.weight() * feature.weight();
            features[shared] = feature;
            shared += usize::from(count > 1);
        }
        profile.features = sorted(&features[..shared], &mut bench.ends);
        for feature in &profile.features {
            let weight = feature.weight();
            let common = weight * feature.common_weight();
            profile.common += common * common;
            profile.rare += weight * weight * u64::from(feature.is_rare());
        }
        profile
    }

    /// Read the tokens of a normalised text that has padding behind it.
    fn read_tokens(&mut self, padded: &[u8], edges: &mut Vec<u32>) {
        let mut run: Vec<&str> = Vec::new();
        self.tokens.reserve(padded.len() / 5);
        let text = std::str::from_utf8(&padded[..padded.len() - mix::PADDING]).unwrap_or_default();
        for_each_token(text, edges, |token| {
            let start = token.as_ptr() as usize - text.as_ptr() as usize;
            self.tokens.push(mix::hash_part(padded, start, start + token.len(), 0));
            if token.chars().all(char::is_numeric) {
                run.push(token);
            } else if !run.is_empty() {
                self.note_numbers(&mut run);
            }
        });
        self.note_numbers(&mut run);
        self.joined.extend_from_slice(&self.numbers);
        for list in [&mut self.numbers, &mut self.joined] {
            list.sort_unstable();
            list.dedup();
        }
    }

    /// Note neighbouring numbers, each by itself and joined with up to three after it.
    fn note_numbers(&mut self, run: &mut Vec<&str>) {
        for (at, number) in run.iter().enumerate() {
            self.numbers.push(mix::hash(number.as_bytes(), 0));
            let mut whole = String::from(*number);
            for next in run.iter().skip(at + 1).take(3) {
                whole.push_str(next);
                self.joined.push(mix::hash(whole.as_bytes(), 0));
            }
        }
        run.clear();
    }

    pub fn bytes(&self) -> usize {
        8 * (self.features.len() + self.tokens.len() + self.numbers.len() + self.joined.len()) + 128
    }
}

/// Where profiles are made, one after the other.
#[derive(Default)]
pub struct Bench {
    scratch: Scratch,
    counts: Vec<u32>,
    features: Vec<Feature>,
    ends: Vec<u32>,
    edges: Vec<u32>,
}

/// Features in ascending order. Their hashes are spread evenly: each is put where its first bits say, which is
/// nearly where it belongs, and the few that are not in order move on.
fn sorted(features: &[Feature], ends: &mut Vec<u32>) -> Vec<Feature> {
    let bits = features.len().max(2).ilog2() + 1;
    let part = |feature: Feature| (feature.0 >> (u64::BITS - bits)) as usize;
    ends.clear();
    ends.resize(1 << bits, 0);
    for feature in features {
        ends[part(*feature)] += 1;
    }
    let mut sum = 0;
    for end in ends.iter_mut() {
        sum += std::mem::replace(end, sum);
    }
    let mut found = vec![Feature(0); features.len()];
    for feature in features {
        let end = &mut ends[part(*feature)];
        found[*end as usize] = *feature;
        *end += 1;
    }
    let (mut moves, mut again) = (0, false);
    for at in 1..found.len() {
        let feature = found[at];
        let mut place = at;
        while place > 0 && found[place - 1] > feature {
            found[place] = found[place - 1];
            place -= 1;
        }
        found[place] = feature;
        moves += at - place;
        if moves > CROWDED * found.len() {
            found.sort_unstable();
            break;
        }
    }
    for two in found.windows(2) {
        again |= two[0].key() == two[1].key();
    }
    if again {
        found.dedup_by_key(|feature| feature.key());
    }
    found
}

/// More moves than this for each feature, and they are not spread evenly.
const CROWDED: usize = 4;

/// Call *found* with the words of a normalised text outside CJK, and every CJK character, in order; *edges* is
/// room to work in.
fn for_each_token<'a>(text: &'a str, edges: &mut Vec<u32>, mut found: impl FnMut(&'a str)) {
    if text.is_ascii() {
        edges.clear();
        spaces(text.as_bytes(), 0..text.len(), edges);
        let mut begin = 0;
        for at in edges.iter().map(|at| *at as usize).chain([text.len()]) {
            if begin < at {
                found(&text[begin..at]);
            }
            begin = at + 1;
        }
        return;
    }
    let table = Table::get();
    let is_cjk = |letter: char| table.entry(letter as u32) & CJK != 0;
    let mut rest = text.trim_start_matches(' ');
    while let Some(first) = rest.chars().next() {
        let end = if is_cjk(first) {
            first.len_utf8()
        } else {
            rest.find(|letter: char| letter == ' ' || is_cjk(letter)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        found(token);
        rest = after.trim_start_matches(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Features;
    use crate::hash::Hash;
    use crate::normalize::Normalization;
    use crate::recipe::{Empty, Reading, Weights};

    #[test]
    fn tokens_are_words_and_cjk_characters() {
        let tokens = |text| {
            let mut found = Vec::new();
            for_each_token(text, &mut Vec::new(), |token| found.push(token));
            found
        };
        assert_eq!(tokens("ab 12 漢字x"), ["ab", "12", "漢", "字", "x"]);
        assert_eq!(tokens(" ab  12"), ["ab", "12"]);
    }

    #[test]
    fn a_profile_has_the_tokens_of_the_text_and_no_more() {
        let recipe = Recipe {
            normalization: Normalization::Text,
            features: Features::Mixed(4),
            weights: Weights::Log,
            hash: Hash::Mix,
            bits: 64,
            reading: Reading { last: false, big_endian: false },
            tie_gives_one: false,
            empty: Empty::None,
            frequencies: None,
        };
        let mut bench = Bench::default();
        for (text, tokens) in [("One two, 3!", 3), ("one 漢字 two", 4), ("漢字", 2), ("é 12 34", 3)] {
            assert_eq!(Profile::of(text, &recipe, None, &mut bench).tokens.len(), tokens, "{text}");
        }
    }

    #[test]
    fn features_are_sorted_wherever_they_crowd() {
        for shift in [0, 30, 60] {
            let features: Vec<_> = (0..500u64).map(|at| Feature(mix::finish(at) >> shift)).collect();
            let mut expected = features.clone();
            expected.sort_unstable();
            expected.dedup_by_key(|feature| feature.key());
            assert_eq!(sorted(&features, &mut Vec::new()), expected);
        }
        assert!(sorted(&[], &mut Vec::new()).is_empty());
    }
}
