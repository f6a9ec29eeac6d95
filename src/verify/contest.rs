#![forbid(unsafe_code)]
//! The contest: what the neighbours of a pair say that was accepted by itself.
//!
//! What both share must be their own, and must not be the frame of a family.

use std::ops::Range;

use crate::system::memory;
use crate::verify::directory::Directory;
use crate::verify::gaps::{Gaps, passages};
use crate::verify::measures::{Measures, WHOLE};
use crate::verify::profile::Profile;
use crate::verify::rule::{Pair, Reason, Rule};
use crate::verify::subjects::only_in;

/// The neighbours of a pair that are considered.
#[derive(Default)]
pub struct Rivals<'a> {
    /// The nearest one of each group of nearly identical texts that neither of the two is in.
    pub groups: Vec<&'a Profile>,
    /// The nearest ones of any group.
    pub all: Vec<&'a Profile>,
    /// Whether each of the two is nearly identical to others, of another group than the other one.
    pub both_have_copies: bool,
}

/// A pair that was accepted by itself, and what is in dispute between it and its neighbours.
struct Contested<'a> {
    pair: Pair<'a>,
    rivals: &'a Rivals<'a>,
    reason: Reason,
    dispute: Dispute,
    has_siblings: bool,
}

/// One objection, and what the pair is called then.
pub struct Objection {
    pub name: &'static str,
    pub reason: Reason,
    /// Whether it means nothing where both are about the same subject.
    overruled: bool,
    holds: fn(&Contested<'_>) -> bool,
}

/// In the order in which they are made; the first that holds gives the reason.
pub const OBJECTIONS: &[Objection] = &[
    Objection {
        name: "siblings",
        reason: Reason::Template,
        overruled: true,
        holds: |contested| contested.has_siblings && !contested.differs_little(),
    },
    Objection { name: "families", reason: Reason::Template, overruled: true, holds: are_two_families },
    Objection { name: "own", reason: Reason::Template, overruled: true, holds: |contested| !contested.stands_out() },
    Objection { name: "clause", reason: Reason::Clause, overruled: true, holds: differ_in_a_clause },
    Objection {
        name: "form",
        reason: Reason::PerhapsForm,
        overruled: true,
        holds: |contested| contested.has_siblings && contested.reason == Reason::NearlyIdentical,
    },
];

/// Ask the neighbours of a pair that was accepted by itself, for *reason*.
pub fn contest(
    left: &Profile,
    right: &Profile,
    measures: &Measures,
    rule: &Rule,
    rivals: &Rivals<'_>,
    reason: Reason,
) -> Reason {
    let dispute = Dispute::of(left, right, measures);
    let has_siblings = dispute.has_siblings(left, right, rule, rivals);
    let pair = Pair::new(left, right, measures, rule);
    let contested = Contested { pair, rivals, reason, dispute, has_siblings };
    let holds = |one: &&Objection| {
        (one.holds)(&contested) && !(one.overruled && contested.pair.same_subject() && contested.pair.high)
    };
    OBJECTIONS.iter().find(holds).map_or(reason, |objection| objection.reason)
}

impl Contested<'_> {
    /// Whether the difference is too small to speak of a template.
    fn differs_little(&self) -> bool {
        self.dispute.differing * self.pair.rule.slot < self.dispute.shared.len() as u64
    }

    fn stands_out(&self) -> bool {
        let (pair, dispute, groups) = (&self.pair, &self.dispute, &self.rivals.groups);
        if pair.high {
            dispute.stands_out(groups, pair.rule.high_contrast, || lone(pair.left, pair.right, groups))
        } else {
            dispute.stands_out(groups, pair.rule.contrast, || dispute.leftover)
        }
    }
}

fn are_two_families(contested: &Contested<'_>) -> bool {
    let Pair { left, right, rule, high, .. } = contested.pair;
    let names = |own, other| !only_in(own, other, rule.subject).is_empty();
    !high && contested.rivals.both_have_copies && names(left, right) && names(right, left)
}

/// Whether only one of two long texts has a passage, between words of both, that a neighbour has as well: a clause.
fn differ_in_a_clause(contested: &Contested<'_>) -> bool {
    let pair = &contested.pair;
    let (least, edge) = (pair.rule.clause, pair.rule.long / 2);
    if !pair.high || !pair.is_long() || least == 0 || contested.rivals.all.is_empty() || pair.has_one_title() {
        return false;
    }
    let held = |own: &Profile, other: &Profile| {
        let inner = |passage: &Range<usize>| passage.start >= edge && passage.end + edge <= own.tokens.len();
        passages(&own.tokens, &other.tokens, least).into_iter().filter(inner).any(|passage| {
            let words = &own.tokens[passage];
            let has = |rival: &&Profile| Gaps::of(words, &rival.tokens).words * 4 <= words.len() as u64;
            contested.rivals.all.iter().any(has)
        })
    };
    held(pair.left, pair.right) || held(pair.right, pair.left)
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
    /// of rivals have. Against it counts what only one has, or, if that is too much, *least* of it.
    fn stands_out(&self, groups: &[&Profile], share: u64, least: impl Fn() -> u64) -> bool {
        let own = if self.leftover == 0 { self.shared.len() as u64 } else { held_by_few(&self.shared, groups) };
        let is_enough = |leftover: u64| own * WHOLE >= (own + leftover) * share;
        is_enough(self.leftover) || own > 0 && is_enough(least())
    }
}

/// Features that only one of the two has, and few groups of rivals: the smaller side. What more of them
/// have is their frame; that one of the two lacks a piece of it points to an edit, not to other content.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::profile::Fact;

    /// A text with these features, and as many more that no other text has.
    fn text(features: impl IntoIterator<Item = u64>, alone: u64) -> Profile {
        let hashes: Vec<u64> = features.into_iter().map(crate::hash::mix::finish).collect();
        let (features, facts) = Directory::new(&hashes, &vec![Fact::default(); hashes.len()]);
        Profile { all: hashes.len() as u64 + alone, features, facts, ..Profile::default() }
    }

    fn contested(left: &Profile, right: &Profile, plain: u64, rule: &Rule, rivals: &Rivals<'_>) -> Reason {
        let shared = right.features.count(left.features.hashes());
        let measures = Measures { plain, weighted: plain, rare: plain, shared };
        let reason = if plain >= rule.high { Reason::NearlyIdentical } else { Reason::Revision };
        contest(left, right, &measures, rule, rivals, reason)
    }

    #[test]
    fn without_neighbours_nobody_objects() {
        let (one, other) = (text(0..100, 20), text(0..100, 20));
        for (plain, expected) in [(8000, Reason::Revision), (9500, Reason::NearlyIdentical)] {
            assert_eq!(contested(&one, &other, plain, &Rule::DEFAULT, &Rivals::default()), expected);
        }
    }

    #[test]
    fn two_that_vary_in_the_same_places_make_a_template() {
        let (one, other) = (text(0..100, 20), text(0..100, 20));
        let siblings = [text(0..100, 20), text(0..96, 24)];
        let rivals = |count| Rivals { all: siblings.iter().take(count).collect(), ..Rivals::default() };
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals(1)), Reason::Revision);
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals(2)), Reason::Template);
        // One that lacks a quarter of what differs, in what they share, is an edited copy.
        let edited = [text(0..100, 20), text(0..95, 25)];
        let rivals = Rivals { all: edited.iter().collect(), ..Rivals::default() };
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals), Reason::Revision);
    }

    #[test]
    fn of_texts_that_differ_in_little_it_is_perhaps_a_form() {
        let (one, other) = (text(0..200, 10), text(0..200, 10));
        let siblings = [text(0..200, 10), text(0..200, 10)];
        let rivals = Rivals { all: siblings.iter().collect(), ..Rivals::default() };
        assert_eq!(contested(&one, &other, 9500, &Rule::DEFAULT, &rivals), Reason::PerhapsForm);
        let strict = Rule { slot: 64, ..Rule::DEFAULT };
        assert_eq!(contested(&one, &other, 9500, &strict, &rivals), Reason::Template);
        let (one, other) = (text(0..200, 3), text(0..200, 3));
        assert_eq!(contested(&one, &other, 9500, &strict, &rivals), Reason::NearlyIdentical);
    }

    #[test]
    fn what_two_groups_of_neighbours_have_is_not_the_pairs_own() {
        // 40 of 100 are theirs alone, against 30 that only one has.
        let (one, other) = (text((0..100).chain(100..130), 0), text((0..100).chain(200..230), 0));
        let groups = [text(0..60, 0), text((0..60).chain(100..130).chain(200..230), 0)];
        let rivals = |count| Rivals { groups: groups.iter().take(count).collect(), ..Rivals::default() };
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals(1)), Reason::Revision);
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals(2)), Reason::Template);
        // Of nearly identical ones, what two groups have does not count against them.
        let groups = [&groups[1], &groups[1]];
        let rivals = Rivals { groups: groups.to_vec(), ..Rivals::default() };
        assert_eq!(contested(&one, &other, 9500, &Rule::DEFAULT, &rivals), Reason::NearlyIdentical);
        assert_eq!(contested(&one, &other, 8000, &Rule::DEFAULT, &rivals), Reason::Template);
    }

    #[test]
    fn two_families_that_name_different_things_are_not_joined() {
        let named = |word: u64| Profile { tokens: vec![word, 2, 3], ..text(0..100, 20) };
        let rivals = Rivals { both_have_copies: true, ..Rivals::default() };
        assert_eq!(contested(&named(1), &named(9), 8000, &Rule::DEFAULT, &rivals), Reason::Template);
        assert_eq!(contested(&named(1), &named(1), 8000, &Rule::DEFAULT, &rivals), Reason::Revision);
        assert_eq!(contested(&named(1), &named(9), 9500, &Rule::DEFAULT, &rivals), Reason::NearlyIdentical);
        let alone = Rivals::default();
        assert_eq!(contested(&named(1), &named(9), 8000, &Rule::DEFAULT, &alone), Reason::Revision);
    }
}
