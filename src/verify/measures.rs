#![forbid(unsafe_code)]
//! How similar two texts are, whatever else there is in the collection.

use crate::verify::profile::Profile;

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
    pub weighted: u64,
    /// The same over text that few documents have.
    pub rare: u64,
    /// How many features both have.
    pub shared: u64,
}

pub fn measure(left: &Profile, right: &Profile) -> Measures {
    let (mut plain, mut weighted, mut rare, mut shared) = (0, 0, 0, 0);
    right.features.for_each(left.features.hashes(), |at, other| {
        let (one, other) = (left.facts[at], right.facts[other]);
        let product = one.weight() * other.weight();
        let weight = one.common_weight();
        plain += product;
        weighted += product * weight * weight;
        rare += if one.is_rare() { product } else { 0 };
        shared += 1;
    });
    Measures {
        plain: cosine(plain, left.plain, right.plain),
        weighted: cosine(weighted, left.weighted, right.weighted),
        rare: cosine(rare, left.rare, right.rare),
        shared,
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
}
