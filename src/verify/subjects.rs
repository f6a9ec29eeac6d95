#![forbid(unsafe_code)]
//! Subjects: what a text names in its first words and the other text never says.

use crate::system::memory;
use crate::verify::profile::Profile;

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

    #[test]
    fn values_in_common_are_counted_as_often_as_both_have_them() {
        let (one, other) = ([[1, 2], [1, 2], [3, 4]], [[0, 9], [1, 2], [3, 4], [3, 4]]);
        assert_eq!((in_common(&one, &other), in_common(&other, &one), in_common(&one, &[])), (2, 2, 0));
    }
}
