#![forbid(unsafe_code)]
//! Verification: a candidate pair measured on its real features, and judged.
//!
//! Everything is integers: similarities are in ten-thousandths, rounded down. What decides
//! and why is told in docs/quality.md; each verdict has a reason that a user understands.

use crate::directory::Directory;
use crate::memory;
use crate::profile::Profile;
use crate::spread::Spread;

/// A similarity of 1.
pub const WHOLE: u64 = 10_000;

/// A cosine in ten-thousandths, rounded down; 0 where one side has nothing.
pub fn cosine(dot: u64, left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    if product == 0 {
        return 0;
    }
    let square = u128::from(dot) * u128::from(dot) * u128::from(WHOLE * WHOLE) / product;
    // A word and a gram that somebody made to share a hash count twice.
    (square.isqrt() as u64).min(WHOLE)
}

/// What two texts have in common, whatever else there is in the collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    /// Cosine of the features, weighted by their occurrences.
    pub plain: u64,
    /// The same, where common text counts little.
    pub common: u64,
    /// The same over text that few documents have.
    pub rare: u64,
    /// How many features both have.
    pub shared: u64,
}

pub fn measure(left: &Profile, right: &Profile) -> Measures {
    let (mut plain, mut common, mut rare, mut shared) = (0, 0, 0, 0);
    right.features.for_each(left.features.hashes(), |at, other| {
        let (one, other) = (left.facts[at], right.facts[other]);
        let product = one.weight() * other.weight();
        let weight = one.common_weight();
        plain += product;
        common += product * weight * weight;
        rare += if one.is_rare() { product } else { 0 };
        shared += 1;
    });
    Measures {
        plain: cosine(plain, left.plain, right.plain),
        common: cosine(common, left.common, right.common),
        rare: cosine(rare, left.rare, right.rare),
        shared,
    }
}

/// The settings of the rule; similarities and shares in ten-thousandths.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Below this plain similarity a pair is too different.
    pub floor: u64,
    /// From this plain similarity on a pair is nearly identical.
    pub high: u64,
    /// Least share of what is in dispute that only the two have, for a nearly identical pair.
    pub high_contrast: u64,
    /// Whether pairs between `floor` and `high` can be accepted at all.
    pub grey: bool,
    /// Least similarity where common text counts little.
    pub common: u64,
    /// Least similarity over rare text.
    pub rare: u64,
    /// Least share of what is in dispute that only the two have.
    pub contrast: u64,
    /// Texts of at most so many words are short.
    pub short: usize,
    /// Least similarity over rare text of two short texts.
    pub short_rare: u64,
    /// Texts of at least so many words are long.
    pub long: usize,
    /// Whether texts that are neither can be accepted between `floor` and `high`.
    pub grey_middle: bool,
    /// Texts that are neither need this plain similarity, or differ in few words.
    pub middle_high: u64,
    /// One word in so many is few.
    pub middle_words: u64,
    /// The same where what differs is common text: `common` is not below the plain similarity.
    pub middle_common: u64,
    /// Below `high` they are accepted if at least this much of the rare text is the same, and `common` is higher
    /// than the plain similarity by `drop`.
    pub middle_rare: u64,
    /// A passage of more than one in so many words that was replaced is too long.
    pub passage: u64,
    /// More words than this a gap, and the difference is in passages, not in words.
    pub gap: u64,
    /// How much lower the similarity may be where common text counts little, if rare text or the shape of
    /// the difference speaks against the pair.
    pub drop: u64,
    /// One number in so many words may differ.
    pub numbers: u64,
    /// From this plain similarity on, and in long texts, one number in so many words may differ.
    pub near: u64,
    pub near_numbers: u64,
    /// So many siblings make a template.
    pub siblings: usize,
    /// Below one feature in so many the difference is too small to speak of a template.
    pub slot: u64,
    /// Below one in so many not even of a form with little filled in.
    pub fine_slot: u64,
    /// Among so many first words a text names its subject; 0: it is not asked for.
    pub subject: usize,
    /// Among so many first words each of two families names what the other has not; 0: it is not asked for.
    pub families: usize,
}

/// Why a pair was accepted or rejected. The order is that of `neardup.verify.REASONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    NearlyIdentical = 0,
    ShortEdited = 1,
    Revision = 2,
    PerhapsForm = 3,
    TooDifferent = 4,
    OtherNumbers = 5,
    Template = 6,
    CommonText = 7,
    Unclear = 8,
    Passage = 9,
    Frame = 10,
    NotStrict = 11,
    OtherSubject = 12,
}

impl Reason {
    pub fn accepts(self) -> bool {
        matches!(self, Reason::NearlyIdentical | Reason::ShortEdited | Reason::Revision | Reason::PerhapsForm)
    }
}

/// The neighbours of a pair that are looked at.
pub struct Rivals<'a> {
    /// The nearest one of each group of nearly identical texts that neither of the two is in.
    pub groups: Vec<&'a Profile>,
    /// The nearest ones of any group.
    pub all: Vec<&'a Profile>,
    /// Whether each of the two is nearly identical to others, of another group than the other one.
    pub both_have_copies: bool,
}

/// Judge a pair by itself. An accepting reason stands only if the neighbours do not object.
pub fn judge(left: &Profile, right: &Profile, measures: &Measures, rule: &Rule) -> Reason {
    let reason = judge_measured(left, right, measures, rule);
    if reason.accepts() && other_subject(left, right, rule.subject) { Reason::OtherSubject } else { reason }
}

fn judge_measured(left: &Profile, right: &Profile, measures: &Measures, rule: &Rule) -> Reason {
    if measures.plain < rule.floor {
        return Reason::TooDifferent;
    }
    let high = measures.plain >= rule.high;
    if !high && !rule.grey {
        return Reason::NotStrict;
    }
    let drops = measures.common + rule.drop < measures.plain;
    if measures.rare < rule.rare && (drops || !high) || measures.common < rule.common && !high {
        return Reason::CommonText;
    }
    let shorter = left.tokens.len().min(right.tokens.len()) as u64;
    let longer = left.tokens.len().max(right.tokens.len());
    let short = longer <= rule.short;
    let long = shorter as usize >= rule.long;
    let numbers = if long && measures.plain >= rule.near { rule.near_numbers } else { rule.numbers };
    if other_numbers(left, right) * numbers > shorter {
        return Reason::OtherNumbers;
    }
    let gaps = || (Gaps::of(&left.tokens, &right.tokens), Gaps::of(&right.tokens, &left.tokens));
    if high {
        if !short && !long && measures.plain < rule.middle_high {
            let (one, other) = gaps();
            let few = if measures.common < measures.plain { rule.middle_words } else { rule.middle_common };
            if one.words.min(other.words) * few > shorter {
                return Reason::Unclear;
            }
        }
        return Reason::NearlyIdentical;
    }
    if short {
        return if measures.rare < rule.short_rare { Reason::CommonText } else { Reason::ShortEdited };
    }
    if long {
        let (one, other) = gaps();
        if one.longest.min(other.longest) * rule.passage > shorter {
            return Reason::Passage;
        }
        let scattered = one.words + other.words <= rule.gap * (one.runs + other.runs);
        if !scattered && drops {
            return Reason::Frame;
        }
        return Reason::Revision;
    }
    let alike = || {
        let (one, other) = gaps();
        one.words.min(other.words) * rule.middle_common <= shorter
    };
    let rises = measures.common >= measures.plain + rule.drop && measures.rare >= rule.middle_rare;
    if rule.grey_middle || rises && alike() { Reason::Revision } else { Reason::Unclear }
}

/// Whether one text names a subject in its first words, again and again, where the other names another: a word
/// that the other never has, and one that takes its place between the same two words.
fn other_subject(left: &Profile, right: &Profile, first: usize) -> bool {
    let (ours, theirs) = (only_in(left, right, first), only_in(right, left, first));
    let places = |profile: &Profile, subject: u64| -> Vec<[u64; 2]> {
        let threes = profile.tokens.windows(3).filter(|three| three[1] == subject);
        let mut found: Vec<_> = memory::collected(threes.map(|three| [three[0], three[2]]));
        found.sort_unstable();
        found
    };
    let theirs: Vec<_> = theirs.into_iter().map(|subject| places(right, subject)).collect();
    ours.into_iter().any(|subject| {
        let ours = places(left, subject);
        theirs.iter().any(|theirs| in_common(&ours, theirs) >= TWICE)
    })
}

/// How many values two sorted lists have in common, each as often as both have it.
fn in_common(left: &[[u64; 2]], right: &[[u64; 2]]) -> usize {
    let (mut at, mut other, mut count) = (0, 0, 0);
    while at < left.len() && other < right.len() {
        let order = left[at].cmp(&right[other]);
        count += usize::from(order.is_eq());
        at += usize::from(order.is_le());
        other += usize::from(order.is_ge());
    }
    count
}

/// So often another word must stand in the place of a subject.
const TWICE: usize = 2;

/// Words among the *first* of one text that the other has nowhere; numbers are none.
fn only_in(own: &Profile, other: &Profile, first: usize) -> Vec<u64> {
    let mut found: Vec<u64> = own.tokens.iter().take(first).copied().collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|token| !other.tokens.contains(token) && own.numbers.binary_search(token).is_err());
    found
}

/// Ask the neighbours of a pair that was accepted by itself: what both share must be their own,
/// and must not be the frame of a family.
pub fn contest(
    left: &Profile,
    right: &Profile,
    measures: &Measures,
    rule: &Rule,
    rivals: &Rivals<'_>,
    reason: Reason,
) -> Reason {
    let dispute = Dispute::of(left, right, measures);
    let stands_out = || {
        if measures.plain >= rule.high {
            dispute.stands_out(&rivals.groups, rule.high_contrast, || lone(left, right, &rivals.groups))
        } else {
            dispute.stands_out(&rivals.groups, rule.contrast, || dispute.leftover)
        }
    };
    let two_families = || {
        let named = |own, other| !only_in(own, other, rule.families).is_empty();
        measures.plain < rule.high && rivals.both_have_copies && named(left, right) && named(right, left)
    };
    let little = dispute.differing * rule.slot < dispute.shared.len() as u64;
    let has_siblings = dispute.has_siblings(left, right, rule, rivals);
    if has_siblings && !little || two_families() || !stands_out() {
        return Reason::Template;
    }
    let perhaps_form = has_siblings && reason == Reason::NearlyIdentical;
    if perhaps_form { Reason::PerhapsForm } else { reason }
}

/// The numbers of one text that the other has not, also not joined: of the side that has fewer.
fn other_numbers(left: &Profile, right: &Profile) -> u64 {
    let missing =
        |own: &[u64], other: &[u64]| own.iter().filter(|number| other.binary_search(number).is_err()).count() as u64;
    missing(&left.numbers, &right.joined).min(missing(&right.numbers, &left.joined))
}

/// What a pair shares, and what is in dispute between it and its neighbours.
struct Dispute {
    /// The features of both.
    shared: Vec<u64>,
    /// Features that only one of the two has: the smaller side.
    differing: u64,
    /// Those of them that other documents have.
    leftover: u64,
}

impl Dispute {
    fn of(left: &Profile, right: &Profile, measures: &Measures) -> Dispute {
        let mut shared = memory::room_for(measures.shared as usize);
        let own = left.features.hashes();
        right.features.for_each(own, |at, _| memory::push(&mut shared, own[at]));
        let differing = left.all.min(right.all).saturating_sub(shared.len() as u64);
        let leftover = own.len().min(right.features.hashes().len()).saturating_sub(shared.len()) as u64;
        Dispute { shared, differing, leftover }
    }

    /// Whether enough rivals keep nearly all the two share, and differ from both as much as these from
    /// each other.
    fn has_siblings(&self, left: &Profile, right: &Profile, rule: &Rule, rivals: &Rivals<'_>) -> bool {
        if self.differing == 0 || self.differing * rule.fine_slot < self.shared.len() as u64 {
            return rule.siblings == 0;
        }
        let is_sibling = |rival: &&&Profile| self.is_sibling(left, right, rival);
        rivals.all.iter().filter(is_sibling).take(rule.siblings).count() == rule.siblings
    }

    fn is_sibling(&self, left: &Profile, right: &Profile, rival: &Profile) -> bool {
        let differs = |side: &Profile| {
            let apart = side.all.min(rival.all).saturating_sub(rival.features.count(side.features.hashes()));
            apart * 4 >= self.differing * 3
        };
        rival.features.lacks_fewer(&self.shared, self.differing.div_ceil(4)) && differs(left) && differs(right)
    }

    /// Whether at least *share* of what is in dispute is the pair's own: of what both have, what few groups
    /// of rivals have. Against it stands what only one has, or, if that is too much, *least* of it.
    fn stands_out(&self, groups: &[&Profile], share: u64, least: impl Fn() -> u64) -> bool {
        let own = if self.leftover == 0 { self.shared.len() as u64 } else { held_by_few(&self.shared, groups) };
        let is_enough = |leftover: u64| own * WHOLE >= (own + leftover) * share;
        is_enough(self.leftover) || own > 0 && is_enough(least())
    }
}

/// Features that only one of the two has, and few groups of rivals: the smaller side. What more of them
/// have is their frame; that one of the two lacks a piece of it tells of an edit, not of other content.
fn lone(left: &Profile, right: &Profile, groups: &[&Profile]) -> u64 {
    let few = |own: &Directory, other: &Directory| {
        let mut both = memory::zeros::<bool>(own.hashes().len());
        other.for_each(own.hashes(), |at, _| both[at] = true);
        let only = own.hashes().iter().zip(both).filter(|(_, both)| !both).map(|(hash, _)| *hash);
        held_by_few(&memory::collected(only), groups)
    };
    few(&left.features, &right.features).min(few(&right.features, &left.features))
}

/// How many of the *features* fewer than two of the *groups* hold.
fn held_by_few(features: &[u64], groups: &[&Profile]) -> u64 {
    let mut holders = memory::zeros::<u8>(features.len());
    for group in groups {
        group.features.for_each(features, |at, _| holders[at] = holders[at].saturating_add(1));
    }
    holders.iter().filter(|holders| **holders < 2).count() as u64
}

/// Hashes that were met, in an open table that is at most half full. 0 marks a free place: it is never held.
struct Set(Vec<u64>, Spread);

impl Set {
    fn with_room(count: usize) -> Set {
        Set(memory::zeros((count * 2).next_power_of_two().max(2)), Spread::own())
    }

    /// Where the hash is, or would be.
    fn place(&self, hash: u64) -> usize {
        let mask = self.0.len() - 1;
        let mut at = self.1.of(hash) as usize & mask;
        while self.0[at] != hash && self.0[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    fn insert(&mut self, hash: u64) {
        let at = self.place(hash);
        self.0[at] = hash;
    }

    fn holds(&self, hash: u64) -> bool {
        hash != 0 && self.0[self.place(hash)] == hash
    }
}

/// The words of a text that stand in no pair of neighbouring words that the other text has.
struct Gaps {
    words: u64,
    runs: u64,
    longest: u64,
}

impl Gaps {
    fn of(own: &[u64], other: &[u64]) -> Gaps {
        let pair = |two: &[u64]| crate::mix::finish(two[0] ^ two[1].rotate_left(32));
        let mut known = Set::with_room(other.len());
        other.windows(2).for_each(|two| known.insert(pair(two)));
        let mut covered = memory::zeros::<bool>(own.len());
        for (at, two) in own.windows(2).enumerate() {
            if known.holds(pair(two)) {
                covered[at] = true;
                covered[at + 1] = true;
            }
        }
        let mut gaps = Gaps { words: 0, runs: 0, longest: 0 };
        for run in covered.split(|covered| *covered).filter(|run| !run.is_empty()) {
            gaps.words += run.len() as u64;
            gaps.runs += 1;
            gaps.longest = gaps.longest.max(run.len() as u64);
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_rounded_down() {
        assert_eq!(cosine(1, 1, 1), 10_000);
        assert_eq!(cosine(1, 2, 1), 7071);
        assert_eq!(cosine(0, 0, 1), 0);
    }

    #[test]
    fn values_in_common_are_counted_as_often_as_both_have_them() {
        let (one, other) = ([[1, 2], [1, 2], [3, 4]], [[0, 9], [1, 2], [3, 4], [3, 4]]);
        assert_eq!((in_common(&one, &other), in_common(&other, &one), in_common(&one, &[])), (2, 2, 0));
    }

    #[test]
    fn gaps_are_words_in_no_known_pair() {
        let gaps = Gaps::of(&[1, 2, 3, 9, 8, 4, 5, 7], &[1, 2, 3, 4, 5]);
        assert_eq!((gaps.words, gaps.runs, gaps.longest), (3, 2, 2));
    }
}
