#![forbid(unsafe_code)]
//! Bands: numbers that two texts are likely to have in common if they are similar, and not otherwise.
//!
//! A min-hash names a feature of a text such that two texts have the same one with about the probability
//! J = (weight of the features of both) / (weight of the features of either). A band joins two of them, so two texts
//! share a band with probability J^2: at J = 0.47, which is a cosine of 0.64, more than one of five. Unrelated texts
//! share hardly any: on short texts, one band of 10,000 pairs.
//!
//! ```text
//! for each feature with a weight: its hash names a bin, and its rank there: another part of the hash, halved as often
//!                                 as its squared weight doubles
//! each bin: the feature of the lowest rank; an empty bin takes that of another one
//! ```
//!
//! A text may owe most of its weight to a few features, fewer than there are bins. So a feature of much weight is
//! entered as several that share it: each has a bin and a rank of its own, by a further word of the digest.
//!
//! Weights are squared because a cosine squares them, too. The weights of document frequencies are powers of the root
//! of two, so that doublings say all of them.

use crate::hash::mix;

/// As many as a similarity of 0.64 needs to be found (neardup/radius.py).
pub const BANDS: usize = 16;
/// Two for each band.
const BINS: usize = 2 * BANDS;
const EMPTY: u64 = u64::MAX;
/// A feature whose squared weight doubles more often than this is entered twice for each doubling more, but no more
/// than eight times. The weight of a rare feature, 32, is ten doublings.
const HEAVY: u32 = 7;
const MOST_HALVINGS: u32 = 3;

/// The lowest rank that each bin has seen, above the name of its feature.
#[derive(Debug)]
pub struct Bins([u64; BINS]);

impl Default for Bins {
    fn default() -> Bins {
        Bins([EMPTY; BINS])
    }
}

impl Bins {
    /// Take in the features of a text, by the first words of their digests and their weights.
    pub fn fill(&mut self, hashes: &[u64], weights: &[u32]) {
        self.0.fill(EMPTY);
        for (hash, &weight) in hashes.iter().zip(weights) {
            if weight > 0 {
                let (doublings, name) = (doublings(weight), hash & u64::from(u32::MAX));
                let halvings = doublings.saturating_sub(HEAVY).min(MOST_HALVINGS);
                for copy in 0..1 << halvings {
                    let word = mix::word(*hash, copy);
                    let bin = &mut self.0[word as usize % BINS];
                    *bin = (*bin).min(word >> 32 >> (doublings - halvings) << 32 | name);
                }
            }
        }
    }

    /// The bands of the text; all zero if it has no feature.
    pub fn bands(&self, out: &mut [u32; BANDS]) {
        let full: Vec<usize> = (0..BINS).filter(|&bin| self.0[bin] != EMPTY).collect();
        if full.is_empty() {
            return out.fill(0);
        }
        let name = |bin: usize| {
            let mut from = bin;
            // The same bins follow each other in every text, so two texts take theirs from the same one if they can.
            let mut step = bin as u64;
            while self.0[from] == EMPTY {
                step = step.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
                from = (step >> 32) as usize % BINS;
            }
            self.0[from] & u64::from(u32::MAX)
        };
        for (band, out) in out.iter_mut().enumerate() {
            let both = name(2 * band) << 32 | name(2 * band + 1);
            *out = (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        }
    }
}

/// How often the square of a weight doubles, to the nearest whole number.
#[inline(always)]
fn doublings(weight: u32) -> u32 {
    let square = u64::from(weight).pow(2);
    (square.wrapping_mul(181) >> 7).ilog2().min(31) // 181 / 128 is the root of 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(features: impl IntoIterator<Item = (u64, u32)>) -> [u32; BANDS] {
        let (hashes, weights): (Vec<u64>, Vec<u32>) =
            features.into_iter().map(|(feature, weight)| (mix::finish(feature), weight)).unzip();
        let (mut bins, mut out) = (Bins::default(), [0; BANDS]);
        bins.fill(&hashes, &weights);
        bins.bands(&mut out);
        out
    }

    fn shared(one: [u32; BANDS], other: [u32; BANDS]) -> usize {
        one.iter().zip(other).filter(|(one, other)| **one == *other).count()
    }

    #[test]
    fn squared_weights_are_powers_of_two() {
        assert_eq!([1, 2, 3, 4, 6, 8, 11, 16, 23, 32].map(doublings), [0, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(doublings(u32::MAX), 31);
    }

    #[test]
    fn the_order_of_features_and_those_without_weight_change_nothing() {
        let features: Vec<(u64, u32)> = (0..100).map(|at| (at, at as u32 % 5)).collect();
        let expected = bands(features.iter().copied());
        assert_eq!(bands(features.iter().rev().copied()), expected);
        assert_eq!(bands(features.iter().filter(|feature| feature.1 > 0).copied()), expected);
        assert_eq!(bands([(7, 0)]), [0; BANDS]);
    }

    #[test]
    fn texts_share_bands_as_often_as_they_share_squared_weight() {
        // The number and the weight of the features in common, and how many of weight 4 each text has for itself.
        for (common, own, weight, expected) in [(100, 56, 4, 0.22), (10, 360, 32, 0.22), (0, 100, 4, 0.0)] {
            let mut count = 0;
            for text in 0..2000u64 {
                let first = text * 10_000;
                let of = |from: u64| {
                    let both = (first..first + common).map(|at| (at, weight));
                    both.chain((from..from + own).map(|at| (at, 4)))
                };
                count += shared(bands(of(first + 1000)), bands(of(first + 2000)));
            }
            let share = count as f64 / (2000 * BANDS) as f64;
            assert!((share - expected).abs() < 0.05, "{common} in common: {share}");
        }
    }
}
