#![forbid(unsafe_code)]
//! Votes: every feature votes on every bit, for it where its hash has a 1, against where a 0.
//!
//! Only the weight in favour is summed: a bit is set when twice that exceeds the total (or
//! reaches it, where a tie gives 1). Everything is integers, so no order changes a bit.

use crate::mix;
#[cfg(target_arch = "x86_64")]
use crate::{avx2::Avx2, avx512::Avx512};

/// Features between two rounds of voting.
pub const BATCH: usize = 512;

/// Hashes between two flushes of byte-wide counters.
const BYTE_ROUNDS: usize = 255;

/// Bit i of a byte at byte i of a word.
const SPREAD: [u64; 256] = spread();

const fn spread() -> [u64; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// Add to *ones* how many of *hashes* have each bit.
pub fn count(hashes: &[u64], ones: &mut [u32; 64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.count(hashes, ones);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.count(hashes, ones);
    }
    count_plain(hashes, ones);
}

fn count_plain(hashes: &[u64], ones: &mut [u32; 64]) {
    for round in hashes.chunks(BYTE_ROUNDS) {
        let mut lanes = [0u64; 8];
        for hash in round {
            for (lane, byte) in lanes.iter_mut().zip(hash.to_le_bytes()) {
                *lane += SPREAD[byte as usize];
            }
        }
        for (lane, counters) in lanes.iter().zip(ones.chunks_exact_mut(8)) {
            for (counter, byte) in counters.iter_mut().zip(lane.to_le_bytes()) {
                *counter += u32::from(byte);
            }
        }
    }
}

/// Add to *ones* how many of the hashes of the first *windows* runs of *width* bytes of *text*
/// have each bit; one array for each word of the hashes. *text* is padded.
pub fn count_windows(text: &[u8], windows: usize, width: usize, seed: u64, ones: &mut [[u32; 64]]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force()
        && cpu.count_windows(text, windows, width, seed, ones)
    {
        return;
    }
    let mut hashes = [0; BATCH];
    for at in (0..windows).step_by(BATCH) {
        let hashes = &mut hashes[..BATCH.min(windows - at)];
        mix::hash_windows(text, at, width, seed, hashes);
        count_words(hashes, ones);
    }
}

/// The same of the parts `text[starts[i]..ends[i]]`.
pub fn count_parts(text: &[u8], starts: &[u32], ends: &[u32], seed: u64, ones: &mut [[u32; 64]]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force()
        && cpu.count_parts(text, starts, ends, seed, ones)
    {
        return;
    }
    let mut hashes = [0; BATCH];
    for (starts, ends) in starts.chunks(BATCH).zip(ends.chunks(BATCH)) {
        let hashes = &mut hashes[..starts.len()];
        mix::hash_parts(text, starts, ends, seed, hashes);
        count_words(hashes, ones);
    }
}

/// Add to *ones* how many of *hashes* and of the words that follow from them have each bit.
pub fn count_words(hashes: &[u64], ones: &mut [[u32; 64]]) {
    let mut further = [0; BATCH];
    for hashes in hashes.chunks(BATCH) {
        for (j, ones) in ones.iter_mut().enumerate() {
            if j == 0 {
                count(hashes, ones);
            } else {
                let further = &mut further[..hashes.len()];
                mix::words(hashes, j, further);
                count(further, ones);
            }
        }
    }
}

/// Add to *ones* the weight of those of *hashes* that have each bit.
pub fn weigh(hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force()
        && cpu.weigh(hashes, weights, ones)
    {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.weigh(hashes, weights, ones);
    }
    weigh_plain(hashes, weights, ones);
}

#[inline(always)]
pub fn weigh_plain(hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) {
    for (hash, weight) in hashes.iter().zip(weights) {
        for (bit, sum) in ones.iter_mut().enumerate() {
            *sum += u64::from(*weight) & (hash >> bit & 1).wrapping_neg();
        }
    }
}

/// Set the bits of *out* that *total* votes without weights favour.
pub fn decide_counts(ones: &[[u32; 64]], total: usize, tie_gives_one: bool, bits: usize, out: &mut [u64]) {
    // Twice the ones exceed (or reach) the total where the ones reach this.
    let least = if tie_gives_one { total.div_ceil(2) } else { total / 2 + 1 };
    match u32::try_from(least) {
        Ok(least) => {
            for (word, ones) in out.iter_mut().zip(ones) {
                *word = at_least(ones, least);
            }
            trim(bits, out);
        }
        Err(_) => out.fill(0),
    }
}

/// Set the bits of *out* that votes of *total* weight favour.
pub fn decide_sums(sums: &[[u64; 64]], total: u64, tie_gives_one: bool, bits: usize, out: &mut [u64]) {
    let least = if tie_gives_one { total.div_ceil(2) } else { total / 2 + 1 };
    for (word, sums) in out.iter_mut().zip(sums) {
        *word = sums.iter().enumerate().fold(0, |word, (bit, sum)| word | u64::from(*sum >= least) << bit);
    }
    trim(bits, out);
}

/// Clear what stands above the fingerprint's bits.
fn trim(bits: usize, out: &mut [u64]) {
    if !bits.is_multiple_of(64)
        && let Some(last) = out.last_mut()
    {
        *last &= (1 << (bits % 64)) - 1;
    }
}

/// Bit i where `ones[i]` is at least *least*.
fn at_least(ones: &[u32; 64], least: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512::in_force() {
        return cpu.at_least(ones, least);
    }
    ones.iter().enumerate().fold(0, |word, (bit, sum)| word | u64::from(*sum >= least) << bit)
}

/// Set the bits of *out* that the votes favour.
pub fn decide<T>(ones: &[T], total: i128, tie_gives_one: bool, out: &mut [u64])
where
    T: Copy + Into<i128>,
{
    out.fill(0);
    for (bit, sum) in ones.iter().enumerate() {
        let twice = 2 * (*sum).into();
        if twice > total || (tie_gives_one && twice == total) {
            out[bit / 64] |= 1 << (bit % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_weighing_by_one() {
        let hashes: Vec<u64> = (0..1000).map(crate::mix::finish).collect();
        let (mut ones, mut sums) = ([0u32; 64], [0u64; 64]);
        count(&hashes, &mut ones);
        weigh(&hashes, &vec![1; 1000], &mut sums);
        assert!(ones.iter().zip(&sums).all(|(one, sum)| u64::from(*one) == *sum));
    }

    #[test]
    fn a_tie_is_what_the_rule_says() {
        let mut out = [0];
        decide(&[1u32, 2, 0], 2, false, &mut out);
        assert_eq!(out, [0b010]);
        decide(&[1u32, 2, 0], 2, true, &mut out);
        assert_eq!(out, [0b011]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_kernels_count_what_the_plain_code_counts() {
        let Some(cpu) = Avx512::in_force() else { return };
        for length in (0..70).chain([247, 248, 249, 255, 256, 511, 1000, 40_000]) {
            let hashes: Vec<u64> = (0..length).map(|n| mix::finish(n) | (n % 3).wrapping_mul(u64::MAX / 2)).collect();
            let (mut one, mut other) = ([7; 64], [7; 64]);
            count_plain(&hashes, &mut one);
            cpu.count(&hashes, &mut other);
            assert_eq!(one, other);
            if let Some(cpu) = Avx2::in_force() {
                other = [7; 64];
                cpu.count(&hashes, &mut other);
                assert_eq!(one, other);
            }
            for bits in [1, 3, 5, 8, 9, 11, 12, 16] {
                let weights: Vec<u32> = hashes.iter().map(|hash| (hash >> 7) as u32 & ((1 << bits) - 1)).collect();
                let (mut one, mut other) = ([3; 64], [3; 64]);
                weigh_plain(&hashes, &weights, &mut one);
                assert!(cpu.weigh(&hashes, &weights, &mut other));
                assert_eq!(one, other);
            }
        }
        assert!(!cpu.weigh(&[1], &[1 << 16], &mut [0; 64]));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn windows_vote_as_their_hashes_do() {
        let Some(cpu) = Avx512::in_force() else { return };
        for width in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40, 64] {
            for windows in (1..30).chain([63, 64, 65, 247, 248, 249, 600]) {
                let text: Vec<u8> =
                    (0..windows + width - 1 + mix::PADDING).map(|n| mix::finish(n as u64) as u8).collect();
                let starts: Vec<u32> = (0..windows as u32).collect();
                let ends: Vec<u32> = starts.iter().map(|start| start + width as u32).collect();
                let mut hashes = vec![0; windows];
                mix::hash_parts(&text, &starts, &ends, 5, &mut hashes);
                for words in [1, 2, 4] {
                    let (mut one, mut other) = (vec![[0; 64]; words], vec![[0; 64]; words]);
                    count_words(&hashes, &mut one);
                    assert!(cpu.count_windows(&text, windows, width, 5, &mut other));
                    assert_eq!(one, other, "{windows} of {width}");
                }
            }
        }
    }

    #[test]
    fn both_ways_to_decide_agree() {
        for total in 0..20usize {
            let counts: [u32; 64] = std::array::from_fn(|bit| (bit % (total + 1)) as u32);
            let sums = counts.map(u64::from);
            for tie in [false, true] {
                for bits in [1, 63, 64] {
                    let (mut one, mut other, mut third) = ([0], [0], [0]);
                    decide(&sums.map(i128::from)[..bits], total as i128, tie, &mut one);
                    decide_counts(&[counts], total, tie, bits, &mut other);
                    decide_sums(&[sums], total as u64, tie, bits, &mut third);
                    assert_eq!((one, one), (other, third));
                }
            }
        }
    }
}
