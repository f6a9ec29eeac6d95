#![forbid(unsafe_code)]
//! Blocks: which tables of places find everything within a radius, and at what cost.
//!
//! The general pigeonhole, as in `plan`: blocks whose radii plus one add up to more than the radius. Few blocks have
//! long keys and large radii, so that a query looks at many keys that are seldom there; many blocks have short
//! keys, and each look finds rows. Two radii that follow each other are enough, but the keys of the two need not be
//! equally long: what the nearer blocks save in bits makes the keys of the others rarer.
//!
//! Bits of real fingerprints are neither balanced nor independent. So the best cuts by the model are measured:
//! how many pairs of a sample are within the radius of a block's key.

use crate::hamming::keys::Key;
use crate::hamming::plan::{Probe, Sample, choose};
use crate::index::sparse::{MOST_RADIUS, MOST_ROWS};
use crate::system::memory::room_for;

/// Nanoseconds: what a query costs whatever it looks at, a look at a word of keys, and a row that is compared. The
/// last two wait for memory, so the level makes no difference.
const QUERY: f64 = 200.0;
const LOOK: f64 = 5.0;
const ROW: f64 = 16.0;
const MOST_TABLES: u32 = 64;
/// Keys longer than needed only take room: there are at most sixteen for each row.
const SPARE: usize = 4;
const LEAST_KEY: usize = 6;
const MOST_KEY: usize = 28;
/// So many cuts are measured, the cheapest by the model.
const MEASURED: usize = 4;

/// So many blocks that keys of so many bits, and the same for blocks with a radius larger by one.
#[derive(Clone, Copy)]
struct Cut {
    near: (u32, usize),
    far: (u32, usize),
    radius: u32,
}

/// Words that a query looks at in a table.
fn looks(width: usize, radius: u32) -> f64 {
    (0..=radius).map(|flips| choose(width.saturating_sub(6) as u32, flips)).sum()
}

/// The share of random keys within a radius.
fn ball(width: usize, information: f64, radius: u32) -> f64 {
    (0..=radius).map(|flips| choose(width as u32, flips)).sum::<f64>() * 0.5f64.powf(width as f64 * information)
}

/// The tables of places with which one fingerprint is found among `rows` for the least cost, and that in nanoseconds.
pub fn blocks(sample: &Sample, rows: usize, radius: u32) -> Option<(f64, Vec<Probe>)> {
    let bits = sample.telling();
    if rows > MOST_ROWS || bits.is_empty() {
        return None;
    }
    let count = rows as f64;
    let information = bits.iter().map(|bit| bit.1).sum::<f64>() / bits.len() as f64;
    let longest = (count.max(2.0).log2().ceil() as usize + SPARE).min(MOST_KEY);
    let cost = |width: usize, radius: u32| looks(width, radius) * LOOK + count * ball(width, information, radius) * ROW;
    let mut cuts: Vec<(f64, Cut)> = Vec::new();
    for tables in 1..=(radius + 1).min(MOST_TABLES) {
        let (each, far) = ((radius + 1) / tables, (radius + 1) % tables);
        let near = tables - far;
        if each - 1 + u32::from(far > 0) > MOST_RADIUS {
            continue;
        }
        for width in LEAST_KEY..=if far > 0 { longest } else { LEAST_KEY } {
            let Some(left) = bits.len().checked_sub(far as usize * width) else { break };
            let own = (left / near as usize).min(longest);
            if own >= LEAST_KEY {
                let cut = Cut { near: (near, own), far: (far, width), radius: each - 1 };
                cuts.push((f64::from(near) * cost(own, each - 1) + f64::from(far) * cost(width, each), cut));
            }
        }
    }
    cuts.sort_by(|one, two| one.0.total_cmp(&two.0));
    let measured = cuts.iter().take(MEASURED).map(|&(_, cut)| {
        let probes = dealt(sample, cut);
        let cost = |probe: &Probe| {
            let width = probe.mask.iter().map(|word| word.count_ones() as usize).sum();
            let share = within(sample, rows, probe).max(ball(width, 1.0, probe.radius));
            looks(width, probe.radius) * LOOK + count * share * ROW
        };
        (QUERY + probes.iter().map(cost).sum::<f64>(), probes)
    });
    measured.min_by(|one: &(f64, _), two| one.0.total_cmp(&two.0))
}

/// The keys of a cut: the most informative bits, so that all blocks of a radius know about the same. Bits that are as
/// good as each other are dealt in runs.
fn dealt(sample: &Sample, cut: Cut) -> Vec<Probe> {
    let widths = || {
        let far = (0..cut.far.0).map(|_| (cut.far.1, cut.radius + 1));
        far.chain((0..cut.near.0).map(|_| (cut.near.1, cut.radius)))
    };
    let mut probes: Vec<Probe> = widths().map(|(_, radius)| Probe { mask: vec![0; sample.words()], radius }).collect();
    let mut give = |block: usize, bit: u32| probes[block].mask[bit as usize / 64] |= 1 << (bit % 64);
    let all: usize = widths().map(|block| block.0).sum();
    let bits = &sample.telling()[..all];
    if sample.is_even() {
        let owners = widths().enumerate().flat_map(|(block, (width, _))| std::iter::repeat_n(block, width));
        owners.zip(bits).for_each(|(block, bit)| give(block, bit.0));
        return probes;
    }
    let mut filled: Vec<(usize, usize)> = widths().map(|block| (0, block.0)).collect();
    for (bit, _) in bits {
        // The block of which the least share is filled.
        let block = (0..filled.len()).min_by_key(|&block| {
            let (has, width) = filled[block];
            if has == width { u64::MAX } else { ((has as u64) << 32) / width as u64 }
        });
        if let Some(block) = block {
            filled[block].0 += 1;
            give(block, *bit);
        }
    }
    probes
}

/// The share of pairs of the sample whose keys are within the radius.
fn within(sample: &Sample, rows: usize, probe: &Probe) -> f64 {
    // More for more rows: what is built later takes longer, too.
    let count = sample.len().min((rows / 2048).clamp(128, 512));
    let key = Key::new(&probe.mask);
    let mut keys: Vec<u32> = room_for(count);
    // The sample is in order; some of all of it.
    keys.extend((0..count).map(|at| key.of_words(sample.row(at * sample.len() / count.max(1)))));
    let mut near = 0u64;
    for (at, one) in keys.iter().enumerate() {
        near += keys[at + 1..].iter().filter(|two| (one ^ *two).count_ones() <= probe.radius).count() as u64;
    }
    near as f64 / (count * count.saturating_sub(1) / 2).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::{all_bits, split_mix};

    fn sample(rows: usize, words: usize, mask: u64) -> Sample {
        let mut state = 7;
        let data: Vec<u64> = (0..rows * words).map(|_| split_mix(&mut state) & mask).collect();
        Sample::new(&data, words, &all_bits(words * 64, words))
    }

    #[test]
    fn blocks_share_no_bit_and_their_radii_reach_beyond_the_radius() {
        for (words, mask) in [(1, u64::MAX), (2, u64::MAX), (4, u64::MAX), (4, 0x0f0f_ffff_0f0f_ffff)] {
            let sample = sample(5000, words, mask);
            for radius in [0, 1, 3, 7, 15, 20, 31, 40] {
                for rows in [5000, 1_000_000, 100_000_000] {
                    let Some((_, probes)) = blocks(&sample, rows, radius) else { continue };
                    let reach: u32 = probes.iter().map(|probe| probe.radius + 1).sum();
                    assert_eq!(reach, radius + 1);
                    for word in 0..words {
                        let bits: u32 = probes.iter().map(|probe| probe.mask[word].count_ones()).sum();
                        let together = probes.iter().fold(0, |all, probe| all | probe.mask[word]);
                        assert_eq!((bits, together & !mask), (together.count_ones(), 0));
                    }
                }
            }
        }
    }

    #[test]
    fn more_rows_get_longer_keys() {
        let sample = sample(5000, 4, u64::MAX);
        let keys = |rows| {
            let (_, probes) = blocks(&sample, rows, 31).unwrap();
            probes[0].mask.iter().map(|word| word.count_ones()).sum::<u32>()
        };
        assert!(keys(20_000) < keys(1_000_000) && keys(1_000_000) < keys(100_000_000));
    }

    #[test]
    fn bits_that_always_agree_make_what_is_found_by_them_dear() {
        let even = blocks(&sample(5000, 4, u64::MAX), 1_000_000, 31).unwrap().0;
        let half = blocks(&sample(5000, 4, 0xffff_ffff), 1_000_000, 31).unwrap().0;
        assert!(half > 4.0 * even);
    }
}
