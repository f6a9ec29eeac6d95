#![forbid(unsafe_code)]
//! A profile: what verification needs to know of one text, computed once and compared often.

use std::sync::Arc;

use crate::frequencies::{ABOVE_KNEE, ALONE, Frozen, RARE};
use crate::hash::mix;
use crate::recipe::{Counted, Recipe, Scratch};
use crate::system::memory;
use crate::text::normalize::Text;
use crate::verify::directory::Directory;
use crate::verify::titles::{self, Title, is_uncommon};
use crate::verify::tokens::for_each_token;

/// 32 x 2^(-j/4): how much a feature counts that is j doublings above the knee.
const DISCOUNT: [u8; 24] = [32, 27, 23, 19, 16, 13, 11, 10, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1];

/// How much a feature of each class counts where common text counts little; nothing where nobody shares it.
const COMMON: [u8; 256] = {
    let mut weights = [0; 256];
    weights[RARE as usize] = 32;
    let mut at = 0;
    while at < DISCOUNT.len() {
        weights[ABOVE_KNEE as usize + at] = DISCOUNT[at];
        at += 1;
    }
    weights
};

/// What is known of a feature beside its hash: its weight, then how common it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fact(u16);

impl Fact {
    fn new(occurrences: u32, class: u8) -> Fact {
        let weight = u32::BITS - occurrences.leading_zeros();
        Fact((weight << 8) as u16 | u16::from(class))
    }

    /// bit_length(occurrences).
    #[inline(always)]
    pub fn weight(self) -> u64 {
        u64::from(self.0 >> 8)
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
    /// The features, without those that nobody else has.
    pub features: Directory,
    /// What is known of each.
    pub facts: Vec<Fact>,
    /// How many features there are with those that nobody else has.
    pub all: u64,
    /// Squared lengths of the three vectors.
    pub plain: u64,
    pub weighted: u64,
    pub rare: u64,
    /// Words, and CJK characters, in the order of the text, as hashes.
    pub tokens: Vec<u64>,
    /// The numbers among the tokens, in ascending order of hash.
    pub numbers: Vec<u64>,
    /// Those of them that few documents have.
    pub rare_numbers: Vec<u64>,
    /// The numbers, and what two to four neighbouring ones give when joined.
    pub joined: Vec<u64>,
    /// What the text says that it is about.
    pub title: Title,
}

impl Profile {
    /// The profile of a text. *frequencies* count the features of every document that it is compared with.
    pub fn of<'t>(
        text: impl Into<Text<'t>>,
        recipe: &Recipe,
        frequencies: Option<&Frozen>,
        bench: &mut Bench,
    ) -> Profile {
        let (text, mut profile) = (text.into(), Profile::default());
        let (normalized, counted) = recipe.counted(text, &mut bench.scratch);
        let numbers = profile.read_tokens(normalized, &mut bench.edges);
        profile.all = counted.hashes.len() as u64;
        let Bench { classes, hashes, facts, shared: among, .. } = bench;
        classify(&counted, frequencies, if among.is_some() { ALONE } else { RARE }, classes);
        if let Some(among) = among {
            for (hash, class) in counted.hashes.iter().zip(classes.iter_mut()) {
                if *class == ALONE && among.binary_search(hash).is_ok() {
                    *class = RARE;
                }
            }
        }
        // Whether others have a feature cannot be foretold, so no branch depends on it.
        memory::at_least(hashes, counted.hashes.len());
        memory::at_least(facts, hashes.len());
        let mut shared = 0;
        for ((hash, occurrences), class) in counted.hashes.iter().zip(counted.occurrences).zip(&*classes) {
            let fact = Fact::new(*occurrences, *class);
            let (square, weight) = (fact.weight() * fact.weight(), fact.common_weight());
            profile.plain += square;
            profile.weighted += square * weight * weight;
            profile.rare += square * u64::from(fact.is_rare());
            (hashes[shared], facts[shared]) = (*hash, fact);
            shared += usize::from(*class != ALONE);
        }
        (profile.features, profile.facts) = Directory::new(&hashes[..shared], &facts[..shared]);
        profile.title = Title::of(text, &profile.tokens, recipe, frequencies, &mut bench.titles);
        profile.weigh_numbers(&numbers, frequencies, &mut bench.titles);
        profile
    }

    /// Read the tokens of a normalised text that has padding behind it; its numbers, each with its hash as a feature.
    fn read_tokens(&mut self, padded: &[u8], edges: &mut Vec<u32>) -> Vec<[u64; 2]> {
        let (mut run, mut numbers): (Vec<&str>, Vec<[u64; 2]>) = (Vec::new(), Vec::new());
        memory::more_room(&mut self.tokens, padded.len() / 5);
        let text = std::str::from_utf8(&padded[..padded.len() - mix::PADDING]).unwrap_or_default();
        for_each_token(text, edges, |token| {
            let start = token.as_ptr() as usize - text.as_ptr() as usize;
            memory::push(&mut self.tokens, mix::hash_part(padded, start, start + token.len(), 0));
            if token.chars().all(char::is_numeric) {
                memory::push(&mut run, token);
                memory::push(&mut numbers, [self.tokens[self.tokens.len() - 1], titles::feature_of(token)]);
            } else if !run.is_empty() {
                self.note_numbers(&mut run);
            }
        });
        self.note_numbers(&mut run);
        memory::append(&mut self.joined, &self.numbers);
        for list in [&mut self.numbers, &mut self.joined] {
            list.sort_unstable();
            list.dedup();
        }
        numbers
    }

    /// Note which of the *numbers*, each with its hash as a feature, are rare.
    fn weigh_numbers(&mut self, numbers: &[[u64; 2]], frequencies: Option<&Frozen>, room: &mut titles::Room) {
        room.ask(numbers.iter().map(|number| number[1]));
        let rare = numbers.iter().zip(room.classes(frequencies)).filter(|(_, class)| is_uncommon(**class));
        self.rare_numbers = memory::collected(rare.map(|(number, _)| number[0]));
        self.rare_numbers.sort_unstable();
        self.rare_numbers.dedup();
    }

    /// Note neighbouring numbers, each by itself and joined with up to three after it.
    fn note_numbers(&mut self, run: &mut Vec<&str>) {
        for (at, number) in run.iter().enumerate() {
            memory::push(&mut self.numbers, mix::hash(number.as_bytes(), 0));
            let mut whole = String::from(*number);
            for next in run.iter().skip(at + 1).take(3) {
                whole.push_str(next);
                memory::push(&mut self.joined, mix::hash(whole.as_bytes(), 0));
            }
        }
        run.clear();
    }

    pub fn bytes(&self) -> usize {
        let tokens = self.tokens.len() + self.numbers.len() + self.rare_numbers.len() + self.joined.len();
        self.features.bytes() + 2 * self.facts.len() + 8 * tokens + self.title.bytes() + 272
    }
}

/// Write the class of each feature; without *frequencies* all have the class *unknown*.
fn classify(counted: &Counted<'_>, frequencies: Option<&Frozen>, unknown: u8, classes: &mut Vec<u8>) {
    match frequencies {
        Some(table) => table.classes(counted.hashes, counted.grams, classes),
        None => {
            classes.clear();
            memory::resize(classes, counted.hashes.len(), unknown);
        }
    }
}

/// Add the features of a text that *frequencies* do not know, each once, to *unknown*.
pub fn note_unknown<'t>(
    text: impl Into<Text<'t>>,
    recipe: &Recipe,
    frequencies: Option<&Frozen>,
    bench: &mut Bench,
    unknown: &mut Vec<u64>,
) {
    let (_, counted) = recipe.counted(text, &mut bench.scratch);
    classify(&counted, frequencies, ALONE, &mut bench.classes);
    for (hash, class) in counted.hashes.iter().zip(&bench.classes) {
        if *class == ALONE {
            memory::push(unknown, *hash);
        }
    }
}

/// Where profiles are made, one after the other.
#[derive(Default)]
pub struct Bench {
    /// The features, in ascending order, that the frequencies do not know and some texts share; None where they
    /// know all.
    shared: Option<Arc<Vec<u64>>>,
    scratch: Scratch,
    classes: Vec<u8>,
    hashes: Vec<u64>,
    facts: Vec<Fact>,
    edges: Vec<u32>,
    titles: titles::Room,
}

impl Bench {
    /// One for texts of which some *shared* features that the frequencies do not know.
    pub fn among(shared: Option<Arc<Vec<u64>>>) -> Bench {
        Bench { shared, ..Bench::default() }
    }
}

/// The features on which texts are measured.
#[cfg(test)]
pub fn text_recipe() -> Recipe {
    use crate::hash::Hash;
    use crate::recipe::{DigestBits, Empty, Weights};
    use crate::text::features::Features;
    use crate::text::normalize::Normalization;

    Recipe {
        normalization: Normalization::Text,
        features: Features::Mixed(4),
        weights: Weights::Log,
        hash: Hash::Mix,
        bits: 64,
        digest_bits: DigestBits { last: false, big_endian: false },
        tie_gives_one: false,
        empty: Empty::None,
        frequencies: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_the_tokens_of_the_text_and_no_more() {
        let recipe = text_recipe();
        let mut bench = Bench::default();
        for (text, tokens) in [("One two, 3!", 3), ("one 漢字 two", 4), ("漢字", 2), ("é 12 34", 3)] {
            assert_eq!(Profile::of(text, &recipe, None, &mut bench).tokens.len(), tokens, "{text}");
        }
    }
}
