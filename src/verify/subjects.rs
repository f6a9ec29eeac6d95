#![forbid(unsafe_code)]
//! Subjects: what two texts are about, by their titles, or by what each names in its first words.

use crate::system::memory;
use crate::verify::profile::Profile;
use crate::verify::titles::Title;

/// A word that stands this often in a text, and more than this many times as often as in the other, is its subject.
const OFTEN: u32 = 3;
/// In a shorter text no word stands often.
const LEAST: usize = 29;

/// What the titles of two texts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Titles {
    Unknown,
    Equal,
    Other,
}

/// What the titles of two texts say of their subjects.
pub fn compare(left: &Profile, right: &Profile) -> Titles {
    let (one, other) = (&left.title, &right.title);
    if one.words.is_empty() || other.words.is_empty() {
        return Titles::Unknown;
    }
    let other_number = lacks_number(one, right) && lacks_number(other, left);
    if !other_number && are_equal(one, other) {
        return Titles::Equal;
    }
    let is_long = left.tokens.len().min(right.tokens.len()) >= LEAST;
    let other_word = || names_its_own(left, right) && names_its_own(right, left);
    if is_long && !one.cjk && !other.cjk && (other_number || other_word()) { Titles::Other } else { Titles::Unknown }
}

/// Whether two titles have the same words; or the same in the line with a rare word, and before it only furniture.
fn are_equal(one: &Title, other: &Title) -> bool {
    let furniture = || one.has_furniture_only_beside(other) && other.has_furniture_only_beside(one);
    let words = |title: &Title| -> Vec<u64> { memory::collected(title.words.iter().map(|(word, _)| *word)) };
    words(one) == words(other) || one.is_rare() && one.last == other.last && furniture()
}

/// Whether the title has a number that the other text lacks, joined or not.
fn lacks_number(title: &Title, other: &Profile) -> bool {
    title.numbers.iter().any(|number| other.joined.binary_search(number).is_err())
}

/// Whether a word of the title of one text, which the other title lacks, stands often in it, and much less often in
/// the other.
fn names_its_own(own: &Profile, other: &Profile) -> bool {
    own.title.words.iter().any(|(word, count)| {
        *count >= OFTEN && !other.title.has(*word) && {
            let there = other.tokens.iter().filter(|token| *token == word).count();
            u64::from(*count) > u64::from(OFTEN) * there as u64
        }
    })
}

/// Whether one text names a subject in its first words, again and again, where the other names another: a word
/// that the other never has, and one that takes its place between the same two words.
pub fn other_subject(left: &Profile, right: &Profile, first: usize) -> bool {
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

/// Another word must be in the place of a subject this often.
const TWICE: usize = 2;

/// Words among the *first* of one text that the other has nowhere; numbers are none.
pub fn only_in(own: &Profile, other: &Profile, first: usize) -> Vec<u64> {
    let mut found: Vec<u64> = own.tokens.iter().take(first).copied().collect();
    found.sort_unstable();
    found.dedup();
    found.retain(|token| !other.tokens.contains(token) && own.numbers.binary_search(token).is_err());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::profile::{Bench, text_recipe};

    fn profile(text: &str) -> Profile {
        Profile::of(text, &text_recipe(), None, &mut Bench::default())
    }

    fn said(left: &str, right: &str) -> Titles {
        let (left, right) = (profile(left), profile(right));
        assert_eq!(compare(&left, &right), compare(&right, &left));
        compare(&left, &right)
    }

    /// A page of 40 words under a title, which names its subject some times.
    fn page(title: &str, subject: &str, times: usize) -> String {
        let words: Vec<String> = (0..40).map(|at| format!("word{at}")).collect();
        format!("{title}\n{} {}", format!("{subject} ").repeat(times), words.join(" "))
    }

    #[test]
    fn a_title_is_the_first_line_unless_it_is_half_of_the_text() {
        assert_eq!(profile(&page("Zip 3.10: packs", "x", 1)).title.words.len(), 2);
        assert_eq!(profile(&page("\n\r\n***\nZip", "x", 1)).title.words.len(), 1);
        assert!(profile("one line has no title").title.words.is_empty());
        assert!(profile("three words here\nthen two").title.words.is_empty());
    }

    #[test]
    fn titles_of_the_same_words_are_equal_whatever_their_spelling() {
        assert_eq!(said(&page("Zip: packs", "x", 1), &page("packs, ZIP", "x", 1)), Titles::Equal);
        assert_eq!(said(&page("Zip: packs", "x", 1), &page("Zip packs files", "x", 1)), Titles::Unknown);
        assert_eq!(said(&page("Zip", "x", 1), "zip"), Titles::Unknown);
    }

    #[test]
    fn numbers_in_titles_that_the_other_text_lacks_are_another_subject() {
        assert_eq!(said(&page("No. 1234", "x", 1), &page("No. 1235", "x", 1)), Titles::Other);
        assert_eq!(said(&page("No. 1234", "1235", 1), &page("No. 1235", "1234", 1)), Titles::Equal);
        assert_eq!(said(&page("No. 4", "x", 1), &page("No. 5", "x", 1)), Titles::Equal);
        assert_eq!(said(&page("No. 1234", "x", 1), &page("No.", "x", 1)), Titles::Equal);
    }

    #[test]
    fn a_title_names_another_subject_if_the_text_speaks_of_it_and_the_other_does_not() {
        assert_eq!(said(&page("halt", "halt", 2), &page("reboot", "reboot", 2)), Titles::Other);
        assert_eq!(said(&page("halt", "halt", 1), &page("reboot", "reboot", 2)), Titles::Unknown);
        // The other speaks of it, too: three times as often is not enough.
        let both = page("reboot", "reboot halt", 2);
        assert_eq!(said(&page("halt", "halt", 6), &both), Titles::Other);
        assert_eq!(said(&page("halt", "halt", 5), &both), Titles::Unknown);
    }

    #[test]
    fn characters_of_cjk_in_a_title_say_too_little() {
        assert_eq!(said(&page("停", "停", 3), &page("起", "起", 3)), Titles::Unknown);
        assert_eq!(said(&page("停 機", "停", 3), &page("機 停", "停", 3)), Titles::Equal);
    }

    #[test]
    fn values_in_common_are_counted_as_often_as_both_have_them() {
        let (one, other) = ([[1, 2], [1, 2], [3, 4]], [[0, 9], [1, 2], [3, 4], [3, 4]]);
        assert_eq!((in_common(&one, &other), in_common(&other, &one), in_common(&one, &[])), (2, 2, 0));
    }
}
