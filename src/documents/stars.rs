#![forbid(unsafe_code)]
//! Stars: a keeper, and the documents that were accepted against it, each of them directly.
//!
//! Documents are numbered in the keep order. In that order each one that nobody took becomes a keeper, and takes
//! whatever it has an accepted pair with and nobody took. Plainly:
//!
//! ```text
//! for each document, first to last: if it is not taken: it takes all that are accepted with it and not taken
//! ```
//!
//! Sorted pairs come in just that order, so one pass over them does it.

use crate::system::fault::{Fault, require};
use crate::system::memory::{gathered, zeros};

/// The keeper of each of *count* documents, itself if it stays. *pairs* are sorted, the first of each before its
/// second; those that *fixed* has are never taken. Nothing if the pairs are not so.
pub fn stars(count: u32, pairs: impl Iterator<Item = (u32, u32)>, fixed: Option<&[bool]>) -> Option<Vec<u32>> {
    assert!(fixed.is_none_or(|fixed| fixed.len() == count as usize), "a flag for each document");
    let mut keeper: Vec<u32> = gathered(0..count);
    let mut taken: Vec<bool> = zeros(count as usize);
    let mut last = (0, 0);
    for (one, other) in pairs {
        if one >= other || other >= count || (one, other) < last {
            return None;
        }
        last = (one, other);
        if !taken[one as usize] && !taken[other as usize] && !fixed.is_some_and(|fixed| fixed[other as usize]) {
            keeper[other as usize] = one;
            taken[other as usize] = true;
        }
    }
    Some(keeper)
}

/// The same of pairs as they are handed over: two numbers each, one flag for each document.
pub fn stars_of(count: u32, left: &[i32], right: &[i32], fixed: Option<&[bool]>) -> Result<Vec<u32>, Fault> {
    let fits = left.len() == right.len() && i32::try_from(count).is_ok();
    require(fits, "a pair needs two sides, and documents numbers below 2^31")?;
    require(fixed.is_none_or(|fixed| fixed.len() == count as usize), "one flag for each document is needed")?;
    // What is negative becomes a number that no document has.
    let pairs = left.iter().zip(right).map(|(&one, &other)| (one as u32, other as u32));
    stars(count, pairs, fixed).ok_or_else(|| Fault::value("pairs must be sorted, of known documents"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix::finish;

    /// The same, document by document, asking each pair again.
    fn plain(count: u32, pairs: &[(u32, u32)], fixed: &[bool]) -> Vec<u32> {
        let mut keeper: Vec<Option<u32>> = vec![None; count as usize];
        for one in 0..count {
            if keeper[one as usize].is_some() {
                continue;
            }
            keeper[one as usize] = Some(one);
            for other in 0..count {
                if pairs.contains(&(one, other)) && keeper[other as usize].is_none() && !fixed[other as usize] {
                    keeper[other as usize] = Some(one);
                }
            }
        }
        keeper.into_iter().map(Option::unwrap).collect()
    }

    fn of(count: u32, pairs: &[(u32, u32)], fixed: Option<&[bool]>) -> Option<Vec<u32>> {
        stars(count, pairs.iter().copied(), fixed)
    }

    #[test]
    fn a_chain_is_no_star() {
        assert_eq!(of(3, &[(0, 1), (1, 2)], None).unwrap(), [0, 0, 2]);
    }

    #[test]
    fn the_first_keeper_takes_what_two_could_take() {
        assert_eq!(of(4, &[(0, 2), (0, 3), (1, 2)], None).unwrap(), [0, 1, 0, 0]);
    }

    #[test]
    fn what_is_fixed_takes_and_is_not_taken() {
        let fixed = [false, true, false];
        assert_eq!(of(3, &[(0, 1), (1, 2)], Some(&fixed)).unwrap(), [0, 1, 1]);
    }

    #[test]
    fn pairs_out_of_order_are_refused() {
        assert_eq!(of(3, &[(1, 2), (0, 1)], None), None);
        assert_eq!(of(3, &[(2, 1)], None), None);
        assert_eq!(of(3, &[(1, 1)], None), None);
        assert_eq!(of(3, &[(1, 3)], None), None);
    }

    #[test]
    fn one_pass_gives_what_the_plain_walk_gives() {
        for round in 0..300 {
            let count = 1 + (finish(round) % 20) as u32;
            let chance = |one: u32, other: u32| finish(finish(round) ^ (u64::from(one) << 32 | u64::from(other)));
            let pairs: Vec<(u32, u32)> = (0..count)
                .flat_map(|one| (one + 1..count).map(move |other| (one, other)))
                .filter(|&(one, other)| chance(one, other).is_multiple_of(1 + round % 9))
                .collect();
            let fixed: Vec<bool> = (0..count).map(|row| chance(row, row).is_multiple_of(5)).collect();
            assert_eq!(of(count, &pairs, Some(&fixed)).unwrap(), plain(count, &pairs, &fixed));
        }
    }

    #[test]
    fn pairs_of_one_side_or_unknown_documents_are_refused() {
        assert_eq!(stars_of(3, &[0], &[2], None), Ok(vec![0, 1, 0]));
        assert!(stars_of(3, &[0], &[], None).is_err());
        assert!(stars_of(3, &[-1], &[2], None).is_err());
        assert!(stars_of(3, &[0], &[3], None).is_err());
        assert!(stars_of(3, &[0], &[2], Some(&[true])).is_err());
        assert!(stars_of(1 << 31, &[], &[], None).is_err());
    }
}
