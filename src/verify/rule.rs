#![forbid(unsafe_code)]
//! The rule: its settings, its reasons, and the tests that it makes of a pair by itself, a row each.
//!
//! The tests are made in their order; the first that holds gives the reason. An accepting one holds only if
//! the neighbours do not object (`contest`). `neardup.verifiers` has rows of the same names, which tests compare.

use std::cell::OnceCell;

use crate::verify::gaps::Gaps;
use crate::verify::measures::Measures;
use crate::verify::profile::Profile;
use crate::verify::subjects::{Titles, compare, other_subject};

/// The type of a setting: Python and tables know it as a number.
pub trait Setting: Sized {
    fn of(number: u64) -> Self;
    fn number(self) -> u64;
}

impl Setting for u64 {
    fn of(number: u64) -> u64 {
        number
    }
    fn number(self) -> u64 {
        self
    }
}

impl Setting for usize {
    fn of(number: u64) -> usize {
        usize::try_from(number).unwrap_or(usize::MAX)
    }
    fn number(self) -> u64 {
        self as u64
    }
}

impl Setting for bool {
    fn of(number: u64) -> bool {
        number != 0
    }
    fn number(self) -> u64 {
        u64::from(self)
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $value:expr,)*) => {
        /// The settings of the rule; similarities and shares in ten-thousandths.
        #[derive(Clone, Copy, Debug)]
        pub struct Rule {
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Rule {
            pub const DEFAULT: Rule = Rule { $($name: $value,)* };

            /// The rule of which *setting* knows each setting by its name.
            pub fn read<E>(mut setting: impl FnMut(&'static str) -> Result<u64, E>) -> Result<Rule, E> {
                Ok(Rule { $($name: Setting::of(setting(stringify!($name))?),)* })
            }

            /// The settings by name.
            pub fn settings(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), Setting::number(self.$name))),*]
            }
        }
    };
}

settings! {
    /// Below this plain similarity a pair is too different.
    floor: u64 = 6400,
    /// From this plain similarity on a pair is nearly identical.
    high: u64 = 9000,
    /// Least share of what is in dispute that only the two have, for a nearly identical pair.
    high_contrast: u64 = 7500,
    /// Whether pairs between `floor` and `high` can be accepted at all.
    grey: bool = true,
    /// Least similarity where common text counts little.
    weighted: u64 = 7000,
    /// Least similarity over rare text.
    rare: u64 = 3400,
    /// Least share of what is in dispute that only the two have.
    contrast: u64 = 6000,
    /// Texts of at most this many words are short.
    short: usize = 28,
    /// Least similarity over rare text of two short texts.
    short_rare: u64 = 5800,
    /// Texts of at least this many words are long.
    long: usize = 140,
    /// Whether texts that are neither can be accepted between `floor` and `high`.
    grey_middle: bool = false,
    /// Texts that are neither need this plain similarity, or differ in few words.
    middle_high: u64 = 9600,
    /// One word in this many is few; twice as many where what differs is common text. Of texts below `high` that
    /// differ in so few, those are accepted whose rare text is as good as the same, and common text differs.
    middle_words: u64 = 40,
    /// A passage of more than one in this many words that was replaced is too long.
    passage: u64 = 10,
    /// More words than this a gap, and the difference is in passages, not in words.
    gap: u64 = 3,
    /// How much lower the similarity may be where common text counts little, if rare text or the shape of
    /// the difference speaks against the pair.
    drop: u64 = 500,
    /// One number in this many words may differ.
    numbers: u64 = 56,
    /// This many siblings make a template.
    siblings: usize = 2,
    /// Below one feature in this many the difference is too small to speak of a template.
    slot: u64 = 16,
    /// Below one in this many not even of a form with little filled in.
    fine_slot: u64 = 64,
    /// Among this many first words a text names its subject, and a family what the other lacks; 0: not tested.
    subject: usize = 24,
    /// Whether titles tell what a text is about.
    titles: bool = true,
    /// Whether both are known to be about the same subject.
    same: bool = false,
    /// From `high` on, a passage of this many words that only one of two long texts has is a clause; 0: not tested.
    clause: usize = 24,
}

macro_rules! reasons {
    ($($reason:ident = $name:literal $accepts:literal,)*) => {
        /// Why a pair was accepted or rejected.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Reason {
            $($reason,)*
        }

        impl Reason {
            pub const ALL: &[Reason] = &[$(Reason::$reason),*];

            pub fn name(self) -> &'static str {
                match self { $(Reason::$reason => $name,)* }
            }

            pub fn accepts(self) -> bool {
                match self { $(Reason::$reason => $accepts,)* }
            }
        }
    };
}

reasons! {
    NearlyIdentical = "nearly-identical" true,
    ShortEdited = "short-edited" true,
    Revision = "revision" true,
    PerhapsForm = "perhaps-form" true,
    SameSubject = "same-subject" true,
    TooDifferent = "too-different" false,
    OtherNumbers = "other-numbers" false,
    Template = "template" false,
    CommonText = "common-text" false,
    Unclear = "unclear" false,
    Passage = "passage" false,
    Frame = "frame" false,
    NotStrict = "not-strict" false,
    OtherSubject = "other-subject" false,
    OtherTitle = "other-title" false,
    Clause = "clause" false,
}

/// A pair as the tests see it.
pub struct Pair<'a> {
    pub left: &'a Profile,
    pub right: &'a Profile,
    pub measures: &'a Measures,
    pub rule: &'a Rule,
    /// Whether it is similar enough to be nearly identical.
    pub high: bool,
    /// Words of the text that has fewer.
    shorter: u64,
    /// Both are short; both are long.
    short: bool,
    long: bool,
    /// It is clearly less similar where common text counts little.
    drops: bool,
    gaps: OnceCell<(Gaps, Gaps)>,
    same: OnceCell<bool>,
}

impl<'a> Pair<'a> {
    pub fn new(left: &'a Profile, right: &'a Profile, measures: &'a Measures, rule: &'a Rule) -> Pair<'a> {
        let shorter = left.tokens.len().min(right.tokens.len());
        let longer = left.tokens.len().max(right.tokens.len());
        Pair {
            left,
            right,
            measures,
            rule,
            high: measures.plain >= rule.high,
            shorter: shorter as u64,
            short: longer <= rule.short,
            long: shorter >= rule.long,
            drops: measures.weighted + rule.drop < measures.plain,
            gaps: OnceCell::new(),
            same: OnceCell::new(),
        }
    }

    /// Whether both are about the same subject, by their titles or by what the user says.
    pub fn same_subject(&self) -> bool {
        let by_title = || {
            let Pair { left, right, rule, .. } = self;
            rule.titles
                && self.shorter > rule.short as u64
                && left.title.is_rare()
                && compare(left, right) == Titles::Equal
        };
        self.rule.same || *self.same.get_or_init(by_title)
    }

    /// What of each text is not in the other one.
    fn gaps(&self) -> &(Gaps, Gaps) {
        let (left, right) = (&self.left.tokens, &self.right.tokens);
        self.gaps.get_or_init(|| (Gaps::of(left, right), Gaps::of(right, left)))
    }

    /// Words in gaps, of the side that has fewer.
    fn words_in_gaps(&self) -> u64 {
        let (one, other) = self.gaps();
        one.words.min(other.words)
    }

    pub fn is_long(&self) -> bool {
        self.long
    }

    /// Whether the titles say that both are about the same.
    pub fn has_one_title(&self) -> bool {
        self.rule.same || self.rule.titles && compare(self.left, self.right) == Titles::Equal
    }

    fn is_middling(&self) -> bool {
        !self.short && !self.long
    }
}

/// One test of a pair by itself.
pub struct Test {
    pub name: &'static str,
    pub reason: Reason,
    /// Whether it means nothing where both are about the same subject.
    overruled: bool,
    holds: fn(&Pair<'_>) -> bool,
}

/// In the order in which they are made; the last one always holds.
pub const TESTS: &[Test] = &[
    Test {
        name: "similarity",
        reason: Reason::TooDifferent,
        overruled: false,
        holds: |pair| pair.measures.plain < pair.rule.floor,
    },
    Test { name: "strict", reason: Reason::NotStrict, overruled: false, holds: |pair| !pair.high && !pair.rule.grey },
    Test { name: "common", reason: Reason::CommonText, overruled: false, holds: is_common },
    Test { name: "numbers", reason: Reason::OtherNumbers, overruled: false, holds: has_other_numbers },
    Test { name: "middle-high", reason: Reason::Unclear, overruled: true, holds: is_unclear },
    Test { name: "high", reason: Reason::NearlyIdentical, overruled: false, holds: |pair| pair.high },
    Test {
        name: "short-rare",
        reason: Reason::CommonText,
        overruled: false,
        holds: |pair| pair.short && pair.measures.rare < pair.rule.short_rare,
    },
    Test { name: "titles", reason: Reason::Unclear, overruled: true, holds: are_titled_differently },
    Test { name: "short", reason: Reason::ShortEdited, overruled: false, holds: |pair| pair.short },
    Test { name: "passage", reason: Reason::Passage, overruled: true, holds: has_other_passage },
    Test { name: "frame", reason: Reason::Frame, overruled: true, holds: is_frame },
    Test { name: "long", reason: Reason::Revision, overruled: false, holds: |pair| pair.long },
    Test { name: "middle", reason: Reason::Revision, overruled: false, holds: is_middling_revision },
    Test { name: "title", reason: Reason::SameSubject, overruled: false, holds: |pair| pair.same_subject() },
    Test { name: "rest", reason: Reason::Unclear, overruled: false, holds: |_| true },
];

/// Made of those that are accepted.
pub const SUBJECTS: &[Test] = &[
    Test { name: "other-title", reason: Reason::OtherTitle, overruled: true, holds: has_other_title },
    Test {
        name: "subject",
        reason: Reason::OtherSubject,
        overruled: true,
        holds: |pair| other_subject(pair.left, pair.right, pair.rule.subject),
    },
];

/// Judge a pair by itself. An accepting reason holds only if the neighbours do not object.
pub fn judge(left: &Profile, right: &Profile, measures: &Measures, rule: &Rule) -> Reason {
    let pair = Pair::new(left, right, measures, rule);
    let holds = |test: &&Test| (test.holds)(&pair) && !(test.overruled && pair.same_subject());
    let reason = TESTS.iter().find(holds).map_or(Reason::Unclear, |test| test.reason);
    if !reason.accepts() {
        return reason;
    }
    SUBJECTS.iter().find(holds).map_or(reason, |test| test.reason)
}

/// Whether two texts that are not long have titles, and not the same one.
fn are_titled_differently(pair: &Pair<'_>) -> bool {
    let titled = |text: &Profile| !text.title.words.is_empty();
    let asks = pair.rule.titles && !pair.rule.grey_middle && !pair.long;
    asks && titled(pair.left) && titled(pair.right) && !pair.has_one_title()
}

fn has_other_title(pair: &Pair<'_>) -> bool {
    pair.rule.titles && compare(pair.left, pair.right) == Titles::Other
}

fn is_common(pair: &Pair<'_>) -> bool {
    let (measures, rule) = (pair.measures, pair.rule);
    // In a long text a little is enough: what few have would show.
    let drop = if pair.long && pair.high { rule.drop / 2 } else { rule.drop };
    let drops = measures.weighted + drop < measures.plain;
    measures.rare < rule.rare && (drops || !pair.high) || measures.weighted < rule.weighted && !pair.high
}

fn has_other_numbers(pair: &Pair<'_>) -> bool {
    // Numbers that many documents have are furniture: the year of a copyright, the number of a release.
    let furniture = pair.same_subject() || pair.high && pair.shorter > pair.rule.short as u64;
    other_numbers(pair.left, pair.right, furniture) * pair.rule.numbers > pair.shorter
}

/// The numbers of one text that the other lacks, joined or not, or the *rare* ones: of the side that has fewer.
fn other_numbers(left: &Profile, right: &Profile, rare: bool) -> u64 {
    let missing = |own: &Profile, other: &Profile| {
        let numbers = if rare { &own.rare_numbers } else { &own.numbers };
        numbers.iter().filter(|number| other.joined.binary_search(number).is_err()).count() as u64
    };
    missing(left, right).min(missing(right, left))
}

fn is_unclear(pair: &Pair<'_>) -> bool {
    let (measures, rule) = (pair.measures, pair.rule);
    if !pair.high || !pair.is_middling() || measures.plain >= rule.middle_high {
        return false;
    }
    let few = if measures.weighted < measures.plain { rule.middle_words } else { rule.middle_words / 2 };
    pair.words_in_gaps() * few > pair.shorter
}

fn has_other_passage(pair: &Pair<'_>) -> bool {
    let longest = || {
        let (one, other) = pair.gaps();
        one.longest.min(other.longest)
    };
    pair.long && longest() * pair.rule.passage > pair.shorter
}

fn is_frame(pair: &Pair<'_>) -> bool {
    let is_scattered = || {
        let (one, other) = pair.gaps();
        one.words + other.words <= pair.rule.gap * (one.runs + other.runs)
    };
    // Where rare text agrees as well as the rest, what differs is a frame, and not the content.
    pair.long && pair.drops && pair.measures.rare < pair.measures.weighted && !is_scattered()
}

/// Of texts that are neither short nor long.
fn is_middling_revision(pair: &Pair<'_>) -> bool {
    let (measures, rule) = (pair.measures, pair.rule);
    let rises = measures.weighted >= measures.plain + rule.drop && measures.rare >= rule.high;
    rule.grey_middle || rises && pair.words_in_gaps() * (rule.middle_words / 2) <= pair.shorter
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "one change of several words")]
mod tests {
    use super::*;

    /// A text of *count* words, one hash each, with the *changes* made: from which word on others follow.
    fn text(count: u64, changes: &[std::ops::Range<u64>]) -> Profile {
        let word = |at: u64| 1 + at + if changes.iter().any(|change| change.contains(&at)) { 1_000_000 } else { 0 };
        Profile { tokens: (0..count).map(word).collect(), ..Profile::default() }
    }

    fn measures(plain: u64, weighted: u64, rare: u64) -> Measures {
        Measures { plain, weighted, rare, shared: 0 }
    }

    fn reason(left: &Profile, right: &Profile, measures: Measures, rule: Rule) -> Reason {
        judge(left, right, &measures, &rule)
    }

    /// The verdict on two texts of this many words, the second with *changes*.
    fn judged(count: u64, changes: &[std::ops::Range<u64>], measured: Measures) -> Reason {
        reason(&text(count, &[]), &text(count, changes), measured, Rule::DEFAULT)
    }

    #[test]
    fn a_pair_below_the_floor_is_too_different() {
        assert_eq!(judged(200, &[], measures(6399, 9000, 9000)), Reason::TooDifferent);
        assert_eq!(judged(200, &[], measures(6400, 9000, 9000)), Reason::Revision);
    }

    #[test]
    fn a_strict_rule_wants_nearly_identical_pairs_only() {
        let strict = Rule { high: 9500, grey: false, ..Rule::DEFAULT };
        let one = text(200, &[]);
        assert_eq!(reason(&one, &one, measures(9499, 9499, 9499), strict), Reason::NotStrict);
        assert_eq!(reason(&one, &one, measures(9500, 9500, 9500), strict), Reason::NearlyIdentical);
    }

    #[test]
    fn what_many_have_is_no_evidence() {
        for (measured, expected) in [
            (measures(8000, 6999, 9000), Reason::CommonText),
            (measures(8000, 7500, 3399), Reason::CommonText),
            (measures(8000, 7500, 3400), Reason::Revision),
            // Nearly identical ones, if they are less similar in what few have.
            (measures(9500, 9249, 3399), Reason::CommonText),
            (measures(9500, 9250, 3399), Reason::NearlyIdentical),
        ] {
            assert_eq!(judged(200, &[], measured), expected, "{measured:?}");
        }
    }

    #[test]
    fn numbers_on_both_sides_are_another_record() {
        let with = |numbers: &[u64]| Profile {
            numbers: numbers.into(),
            rare_numbers: numbers.into(),
            joined: numbers.into(),
            ..text(100, &[])
        };
        let high = measures(9700, 9700, 9700);
        assert_eq!(reason(&with(&[1, 2]), &with(&[3, 4]), high, Rule::DEFAULT), Reason::OtherNumbers);
        assert_eq!(reason(&with(&[1, 2]), &with(&[2, 4]), high, Rule::DEFAULT), Reason::NearlyIdentical);
        assert_eq!(reason(&with(&[1, 2]), &with(&[]), high, Rule::DEFAULT), Reason::NearlyIdentical);
        let joined = Profile { joined: vec![1, 2, 12], ..with(&[1, 2]) };
        assert_eq!(reason(&joined, &with(&[12, 13, 14]), high, Rule::DEFAULT), Reason::OtherNumbers);
        assert_eq!(reason(&joined, &with(&[12, 13]), high, Rule::DEFAULT), Reason::NearlyIdentical);
    }

    #[test]
    fn numbers_that_many_have_are_no_difference_where_the_rest_agrees() {
        let with = |first: u64, rare: usize| {
            let numbers: Vec<u64> = (first..first + 5).collect();
            let rare_numbers = numbers[..rare].to_vec();
            Profile { numbers: numbers.clone(), rare_numbers, joined: numbers, ..text(160, &[]) }
        };
        for (plain, rare, expected) in
            [(9000, 3, Reason::OtherNumbers), (9000, 2, Reason::NearlyIdentical), (8999, 2, Reason::OtherNumbers)]
        {
            let found = reason(&with(1000, rare), &with(2000, rare), measures(plain, plain, plain), Rule::DEFAULT);
            assert_eq!(found, expected, "{plain} {rare}");
            let same = Rule { same: true, ..Rule::DEFAULT };
            let found = reason(&with(1000, rare), &with(2000, rare), measures(8000, 8000, 8000), same);
            assert_eq!(found.accepts(), rare == 2, "of one subject");
        }
    }

    #[test]
    fn a_middling_text_may_differ_in_few_words() {
        // A word that changed leaves no gap but itself: 1 in 40, or 1 in 20 where common text changed.
        let change = |words: u64| -> Vec<std::ops::Range<u64>> { vec![50..50 + words] };
        for (words, weighted, expected) in [
            (2, 9000, Reason::NearlyIdentical),
            (3, 9000, Reason::Unclear),
            (5, 9100, Reason::NearlyIdentical),
            (6, 9100, Reason::Unclear),
        ] {
            assert_eq!(judged(100, &change(words), measures(9100, weighted, 9100)), expected, "{words} {weighted}");
        }
        assert_eq!(judged(100, &change(9), measures(9600, 9000, 9100)), Reason::NearlyIdentical);
    }

    #[test]
    fn short_texts_share_something_rare_or_too_little() {
        assert_eq!(judged(28, &[], measures(8000, 8000, 5800)), Reason::ShortEdited);
        assert_eq!(judged(28, &[], measures(8000, 8000, 5799)), Reason::CommonText);
        assert_eq!(judged(29, &[], measures(8000, 8000, 6500)), Reason::Unclear);
    }

    #[test]
    fn in_a_long_text_a_tenth_in_one_piece_is_another_passage() {
        let long = measures(8000, 8000, 8000);
        assert_eq!(judged(200, &[50..70], long), Reason::Revision);
        assert_eq!(judged(200, &[50..71], long), Reason::Passage);
    }

    #[test]
    fn passages_of_its_own_in_a_common_frame_are_other_content() {
        let pieces = [20..26, 60..66, 100..106, 140..146];
        assert_eq!(judged(200, &pieces, measures(8000, 7499, 7498)), Reason::Frame);
        assert_eq!(judged(200, &pieces, measures(8000, 7500, 7498)), Reason::Revision);
        // Rare text agrees as well as the rest.
        assert_eq!(judged(200, &pieces, measures(8000, 7499, 7499)), Reason::Revision);
        // The same in single words all over is an edit.
        let words: Vec<_> = (0..24).map(|at| at * 8..at * 8 + 1).collect();
        assert_eq!(judged(200, &words, measures(8000, 7499, 7498)), Reason::Revision);
    }

    #[test]
    fn a_middling_text_with_furniture_added_is_a_revision_and_else_unclear() {
        for (words, weighted, rare, expected) in [
            (5, 8500, 9000, Reason::Revision),
            (6, 8500, 9000, Reason::Unclear),
            (5, 8499, 9000, Reason::Unclear),
            (5, 8500, 8999, Reason::Unclear),
        ] {
            assert_eq!(judged(100, &[50..50 + words], measures(8000, weighted, rare)), expected);
        }
        let loose = Rule { grey_middle: true, ..Rule::DEFAULT };
        let (one, other) = (text(100, &[]), text(100, &[50..80]));
        assert_eq!(reason(&one, &other, measures(8000, 8000, 8000), loose), Reason::Revision);
    }

    #[test]
    fn another_word_wherever_the_subject_stands_is_another_subject() {
        let about = |subject: u64, places: &[usize]| {
            let mut text = text(200, &[]);
            places.iter().for_each(|place| text.tokens[*place] = subject);
            text
        };
        let high = measures(9700, 9700, 9700);
        let twice = |places: &[usize]| {
            // The same words are around each place.
            let mut texts = [about(7_000_001, places), about(7_000_002, places)];
            for text in &mut texts {
                places.iter().for_each(|place| (text.tokens[place - 1], text.tokens[place + 1]) = (501, 502));
            }
            texts
        };
        for (places, expected) in [
            (vec![5, 60], Reason::OtherSubject),
            (vec![5], Reason::NearlyIdentical),
            (vec![60, 120], Reason::NearlyIdentical),
        ] {
            let [one, other] = twice(&places);
            assert_eq!(reason(&one, &other, high, Rule::DEFAULT), expected, "{places:?}");
        }
    }

    #[test]
    fn a_rule_is_read_by_the_names_of_its_settings() {
        let names: Vec<&str> = Rule::DEFAULT.settings().into_iter().map(|(name, _)| name).collect();
        let read = Rule::read(|name| Ok::<u64, ()>(names.iter().position(|one| *one == name).unwrap() as u64)).unwrap();
        assert!(read.settings().into_iter().map(|(_, value)| value).eq((0..names.len() as u64).map(|at| {
            // Flags are 0 or 1, and the first setting is 0.
            if ["grey", "grey_middle", "titles", "same"].contains(&names[at as usize]) { 1 } else { at }
        })));
    }
}
