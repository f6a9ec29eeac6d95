#![forbid(unsafe_code)]
//! Figures: what can be said of a pair in numbers, for a rule that is learned from a person's answers.
//!
//! All are shares in ten-thousandths, rounded down, and the same whichever text comes first. A count has no
//! upper end: it stands as count / (count + 1). `neardup.verifiers.figures` has rows of the same names, which
//! tests compare. What a figure means never changes without another version there: rules that were learned rest
//! on it.

use crate::hash::mix;
use crate::system::memory;
use crate::verify::gaps::Gaps;
use crate::verify::measures::{Measures, WHOLE};
use crate::verify::profile::Profile;
use crate::verify::subjects::only_in;

/// As many words are the beginning of a text.
const OPENING: usize = 12;
/// Among as many first words a text names what it is about.
const FIRST: usize = 24;
/// Texts of two to the power of this many words, and longer ones, have the same length figure.
const LONGEST: u64 = 16;

macro_rules! figures {
    ($($name:literal = $of:expr,)*) => {
        /// The names of the figures, in their order.
        pub const NAMES: &[&str] = &[$($name),*];
        pub const COUNT: usize = NAMES.len();

        fn all_of(pair: &Pair<'_>) -> [u16; COUNT] {
            [$({
                let of: fn(&Pair<'_>) -> u64 = $of;
                of(pair).min(WHOLE) as u16
            }),*]
        }
    };
}

figures! {
    "similarity" = |pair| pair.measures.plain,
    "weighted" = |pair| pair.measures.weighted,
    "rare" = |pair| pair.measures.rare,
    "features" = |pair| {
        share(pair.measures.shared, (pair.left.all + pair.right.all).saturating_sub(pair.measures.shared))
    },
    "words" = |pair| pair.words.jaccard(),
    "pairs" = |pair| pair.pairs.jaccard(),
    "triples" = |pair| pair.triples.jaccard(),
    "contained" = |pair| pair.triples.contained(),
    "edited-less" = |pair| pair.gaps.map(in_gaps).into_iter().min().unwrap_or(0),
    "edited-more" = |pair| pair.gaps.map(in_gaps).into_iter().max().unwrap_or(0),
    "passage" = |pair| pair.gaps.map(|(gaps, words)| share(gaps.longest, words)).into_iter().min().unwrap_or(0),
    "lengths" = |pair| share(pair.shorter(), pair.longer()),
    "length" = |pair| size(pair.shorter()),
    "numbers" = |pair| pair.numbers.jaccard(),
    "other-numbers" = |pair| counted(pair.other_numbers[0].min(pair.other_numbers[1])),
    "more-numbers" = |pair| counted(pair.other_numbers[0].max(pair.other_numbers[1])),
    "opening" = |pair| share(pair.same_beginning(), pair.longer().min(OPENING as u64)),
    "first-words" = |pair| pair.opening.jaccard(),
    "other-names" = |pair| counted(pair.names[0].min(pair.names[1])),
    "more-names" = |pair| counted(pair.names[0].max(pair.names[1])),
    "ending" = |pair| share(pair.same_end(), pair.longer().min(OPENING as u64)),
    "alone" = |pair| yes(pair.alone),
    "default" = |pair| yes(pair.accepted),
}

/// What is known of a pair once.
struct Pair<'a> {
    left: &'a Profile,
    right: &'a Profile,
    measures: &'a Measures,
    /// Whether the default rule accepts it by itself, and among its neighbours.
    alone: bool,
    accepted: bool,
    words: Both,
    pairs: Both,
    triples: Both,
    opening: Both,
    numbers: Both,
    /// What of each text is not in the other one, and how many words it has.
    gaps: [(&'a Gaps, u64); 2],
    /// How many numbers each has that the other has not.
    other_numbers: [u64; 2],
    /// How many of its first words the other has nowhere.
    names: [u64; 2],
}

/// How many different ones each of two lists has, and both.
struct Both {
    left: u64,
    right: u64,
    shared: u64,
}

impl Both {
    fn of(left: Vec<u64>, right: Vec<u64>) -> Both {
        let (left, right) = (distinct(left), distinct(right));
        let shared = left.iter().filter(|one| right.binary_search(one).is_ok()).count() as u64;
        Both { left: left.len() as u64, right: right.len() as u64, shared }
    }

    /// Of all that either has, how much both have; all of it where neither has any.
    fn jaccard(&self) -> u64 {
        share_or(self.shared, self.left + self.right - self.shared, WHOLE)
    }

    /// The same of what the side with fewer has.
    fn contained(&self) -> u64 {
        share_or(self.shared, self.left.min(self.right), WHOLE)
    }
}

impl Pair<'_> {
    fn shorter(&self) -> u64 {
        self.left.tokens.len().min(self.right.tokens.len()) as u64
    }

    fn longer(&self) -> u64 {
        self.left.tokens.len().max(self.right.tokens.len()) as u64
    }

    /// How many of the first words are the same, up to the first that is not.
    fn same_beginning(&self) -> u64 {
        let both = self.left.tokens.iter().zip(&self.right.tokens);
        both.take(OPENING).take_while(|(one, other)| one == other).count() as u64
    }

    fn same_end(&self) -> u64 {
        let both = self.left.tokens.iter().rev().zip(self.right.tokens.iter().rev());
        both.take(OPENING).take_while(|(one, other)| one == other).count() as u64
    }
}

/// The figures of a pair, of which the default rule thinks so: by itself, and among its neighbours.
pub fn figures(left: &Profile, right: &Profile, measures: &Measures, (alone, accepted): (bool, bool)) -> [u16; COUNT] {
    let (ours, theirs) = (&left.tokens, &right.tokens);
    let gaps = [Gaps::of(ours, theirs), Gaps::of(theirs, ours)];
    let lacks =
        |own: &[u64], joined: &[u64]| own.iter().filter(|one| joined.binary_search(one).is_err()).count() as u64;
    let first = |tokens: &[u64]| memory::copied(&tokens[..tokens.len().min(OPENING)]);
    let pair = Pair {
        left,
        right,
        measures,
        alone,
        accepted,
        words: Both::of(memory::copied(ours), memory::copied(theirs)),
        pairs: Both::of(runs(ours, 2), runs(theirs, 2)),
        triples: Both::of(runs(ours, 3), runs(theirs, 3)),
        opening: Both::of(first(ours), first(theirs)),
        numbers: Both::of(memory::copied(&left.numbers), memory::copied(&right.numbers)),
        gaps: [(&gaps[0], ours.len() as u64), (&gaps[1], theirs.len() as u64)],
        other_numbers: [lacks(&left.numbers, &right.joined), lacks(&right.numbers, &left.joined)],
        names: [only_in(left, right, FIRST).len() as u64, only_in(right, left, FIRST).len() as u64],
    };
    all_of(&pair)
}

/// A hash of each run of *count* neighbouring words.
fn runs(tokens: &[u64], count: usize) -> Vec<u64> {
    let hash = |run: &[u64]| run.iter().fold(0, |hash: u64, token| mix::finish(hash.rotate_left(32) ^ token));
    memory::collected(tokens.windows(count).map(hash))
}

fn distinct(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values.dedup();
    values
}

/// In ten-thousandths, rounded down; of nothing: 0.
fn share(part: u64, whole: u64) -> u64 {
    share_or(part, whole, 0)
}

fn share_or(part: u64, whole: u64, of_nothing: u64) -> u64 {
    (part * WHOLE).checked_div(whole).unwrap_or(of_nothing)
}

fn in_gaps((gaps, words): (&Gaps, u64)) -> u64 {
    share(gaps.words, words)
}

fn counted(count: u64) -> u64 {
    share(count, count + 1)
}

fn yes(is: bool) -> u64 {
    if is { WHOLE } else { 0 }
}

/// How long a text of that many words is, by doublings, with 256 steps each.
fn size(words: u64) -> u64 {
    let Some(doublings) = words.checked_ilog2().map(u64::from) else { return 0 };
    let steps = ((words - (1 << doublings)) << 8) >> doublings;
    share(doublings << 8 | steps, LONGEST << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tokens: &[u64]) -> Profile {
        Profile { tokens: tokens.to_vec(), all: 10, ..Profile::default() }
    }

    fn figure(name: &str, left: &Profile, right: &Profile) -> u16 {
        let measures = Measures { plain: 7000, weighted: 8000, rare: 9000, shared: 5 };
        let found = figures(left, right, &measures, (true, false));
        assert_eq!(figures(right, left, &measures, (true, false)), found, "of the pair the other way round");
        found[NAMES.iter().position(|known| *known == name).unwrap()]
    }

    #[test]
    fn figures_are_shares_of_what_both_have() {
        let (one, other) = (text(&[1, 2, 3, 4]), text(&[1, 2, 3, 9, 8]));
        for (name, expected) in [
            ("similarity", 7000),
            ("weighted", 8000),
            ("rare", 9000),
            ("features", 3333),
            ("words", 5000),
            ("pairs", 4000),
            ("triples", 2500),
            ("contained", 5000),
            ("edited-less", 2500),
            ("edited-more", 4000),
            ("passage", 2500),
            ("lengths", 8000),
            ("length", 1250),
            ("numbers", 10_000),
            ("opening", 6000),
            ("first-words", 5000),
            ("other-names", 5000),
            ("more-names", 6666),
            ("ending", 0),
            ("alone", 10_000),
            ("default", 0),
        ] {
            assert_eq!(figure(name, &one, &other), expected, "{name}");
        }
    }

    #[test]
    fn numbers_of_one_side_are_counted() {
        let with = |numbers: &[u64]| Profile { numbers: numbers.into(), joined: numbers.into(), ..text(&[1]) };
        let (one, other) = (with(&[1, 2, 3]), with(&[3, 4]));
        assert_eq!(figure("numbers", &one, &other), 2500);
        assert_eq!((figure("other-numbers", &one, &other), figure("more-numbers", &one, &other)), (5000, 6666));
    }

    #[test]
    fn the_length_grows_with_each_doubling_and_ends() {
        assert_eq!([0, 1, 2, 3, 4, 6].map(size), [0, 0, 625, 937, 1250, 1562]);
        assert_eq!([1 << 16, 1 << 17].map(|words| size(words).min(WHOLE)), [WHOLE, WHOLE]);
    }

    #[test]
    fn texts_without_words_have_figures() {
        assert_eq!(figure("words", &text(&[]), &text(&[])), 10_000);
        assert_eq!(figure("opening", &text(&[]), &text(&[1])), 0);
    }
}
