#![deny(unsafe_code)]
//! Votes: every feature votes on every bit, for it where its hash has a 1, against where a 0.
//!
//! Only the weight in favour is summed: a bit is set when twice that exceeds the total (or
//! reaches it, where a tie gives 1). Everything is integers, so no order changes a bit. The sums are held in
//! slices, on any CPU; features with a weight are ordered by it, so that each costs little more than one that
//! counts once. Only AVX-512 with GFNI has something faster for features as they come.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

use std::ops::Range;

use crate::hash::mix;
use crate::recipe::slices::{BLOCK, LANES, Row, Sums};
use crate::system::memory;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512, Avx512Base};

/// Features between two rounds of voting.
pub const BATCH: usize = 512;

/// The votes on a fingerprint so far: in numbers where AVX-512 counts faster than slices, else in slices.
#[derive(Default)]
pub struct Votes {
    words: usize,
    slices: Vec<Sums>,
    #[cfg(target_arch = "x86_64")]
    numbers: Option<Numbers>,
}

/// For each word of the fingerprint 64 counts of features, or sums of their weights.
#[cfg(target_arch = "x86_64")]
struct Numbers {
    cpu: Avx512,
    counts: Vec<[u32; 64]>,
    sums: Vec<[u64; 64]>,
}

#[cfg(target_arch = "x86_64")]
impl Numbers {
    fn new(cpu: Avx512) -> Numbers {
        Numbers { cpu, counts: Vec::new(), sums: Vec::new() }
    }
}

impl Votes {
    /// Forget all votes; the next ones are on a fingerprint of this many *words*.
    pub fn begin(&mut self, words: usize) {
        self.words = words;
        #[cfg(target_arch = "x86_64")]
        {
            let before = self.numbers.take();
            self.numbers = Avx512::in_force().map(|cpu| before.unwrap_or_else(|| Numbers::new(cpu)));
            if let Some(numbers) = &mut self.numbers {
                numbers.counts.clear();
                numbers.counts.resize(words, [0; 64]);
                numbers.sums.clear();
                return;
            }
        }
        self.slices.iter_mut().for_each(Sums::clear);
        self.slices.resize_with(words, Sums::default);
    }

    /// Every one of *hashes* votes on word *j* of the fingerprint.
    pub fn count(&mut self, j: usize, hashes: &[u64]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(numbers) = &mut self.numbers {
            return numbers.cpu.count(hashes, &mut numbers.counts[j]);
        }
        count(hashes, &mut self.slices[j]);
    }

    /// The first *windows* runs of *width* bytes of *text*, which is padded, vote on all words.
    pub fn count_windows(&mut self, text: &[u8], windows: usize, width: usize, seed: u64) {
        let counted = self.count_blocks(text, windows, width, seed);
        if counted == windows {
            return;
        }
        let mut hashes = [0; BATCH];
        for at in (counted..windows).step_by(BATCH) {
            let hashes = &mut hashes[..BATCH.min(windows - at)];
            mix::hash_windows(text, at, width, seed, hashes);
            self.count_words(hashes);
        }
    }

    /// Count the hashes of the first windows where they are made, if there is a kernel for that; how many they were.
    fn count_blocks(&mut self, text: &[u8], windows: usize, width: usize, seed: u64) -> usize {
        #[cfg(target_arch = "x86_64")]
        if let Some(numbers) = &mut self.numbers {
            let all = numbers.cpu.count_windows(text, windows, width, seed, &mut numbers.counts);
            return if all { windows } else { 0 };
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx512Base::in_force() {
            return cpu.count_blocks(text, windows, width, seed, &mut self.slices);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(cpu) = Avx2::in_force() {
            return cpu.count_blocks(text, windows, width, seed, &mut self.slices);
        }
        let _ = (text, windows, width, seed);
        0
    }

    /// The same of the parts `text[starts[i]..ends[i]]`.
    pub fn count_parts(&mut self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64) {
        #[cfg(target_arch = "x86_64")]
        if let Some(numbers) = &mut self.numbers
            && numbers.cpu.count_parts(text, starts, ends, seed, &mut numbers.counts)
        {
            return;
        }
        let mut hashes = [0; BATCH];
        for (starts, ends) in starts.chunks(BATCH).zip(ends.chunks(BATCH)) {
            let hashes = &mut hashes[..starts.len()];
            mix::hash_parts(text, starts, ends, seed, hashes);
            self.count_words(hashes);
        }
    }

    /// Up to `BATCH` hashes, and the words that follow from them, vote.
    fn count_words(&mut self, hashes: &[u64]) {
        self.count(0, hashes);
        let mut further = [0; BATCH];
        let further = &mut further[..hashes.len()];
        for j in 1..self.words {
            mix::words(hashes, j, further);
            self.count(j, further);
        }
    }

    /// Each of *items* votes with its weight; the weight of all. *fill* writes word j of some of the items.
    ///
    /// Both lists are put in another order, those that weigh nothing last.
    pub fn weigh<T: Copy + Default>(
        &mut self,
        items: &mut [T],
        weights: &mut [u32],
        ordered: &mut ByWeight<T>,
        fill: impl Fn(&[T], usize, &mut [u64]),
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(numbers) = &mut self.numbers
            && weights.iter().fold(0, |all, weight| all | weight) <= PLANES
        {
            let mut further = [0; BATCH];
            let count = only_weighty(items, weights);
            numbers.sums.resize(self.words, [0; 64]);
            for (items, weights) in items[..count].chunks(BATCH).zip(weights[..count].chunks(BATCH)) {
                let further = &mut further[..items.len()];
                for (j, sums) in numbers.sums.iter_mut().enumerate() {
                    fill(items, j, further);
                    numbers.cpu.weigh(further, weights, sums);
                }
            }
            return weights[..count].iter().map(|weight| u64::from(*weight)).sum();
        }
        self.in_slices();
        ordered.order(items, weights);
        let (mut part, mut rows) = (std::mem::take(&mut ordered.part), std::mem::take(&mut ordered.rows));
        memory::at_least(&mut rows, ROWS + 1);
        for (number, items) in ordered.items().chunks(ROWS * LANES).enumerate() {
            part.set(number * ROWS, &ordered.groups);
            for (j, sums) in self.slices.iter_mut().enumerate() {
                let words = rows.as_flattened_mut();
                fill(items, j, &mut words[..items.len()]);
                part.gaps.iter().for_each(|gap| words[*gap] = 0);
                weigh(&rows, &part, sums);
            }
        }
        (ordered.part, ordered.rows) = (part, rows);
        ordered.total
    }

    /// Votes that AVX-512 has no kernel for are counted in slices.
    fn in_slices(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if self.numbers.take().is_some() {
            self.slices.iter_mut().for_each(Sums::clear);
            self.slices.resize_with(self.words, Sums::default);
        }
    }

    /// Set the bits of *out* that the votes, of *total* weight, favour.
    pub fn decide(&self, total: u64, tie_gives_one: bool, bits: usize, out: &mut [u64]) {
        // Twice the sum exceeds (or reaches) the total where the sum reaches this.
        let least = if tie_gives_one { total.div_ceil(2) } else { total / 2 + 1 };
        for (j, word) in out.iter_mut().enumerate() {
            *word = self.at_least(j, least);
        }
        if !bits.is_multiple_of(64)
            && let Some(last) = out.last_mut()
        {
            *last &= (1 << (bits % 64)) - 1;
        }
    }

    /// Bit i where the sum of bit i of word *j* is at least *least*.
    fn at_least(&self, j: usize, least: u64) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if let Some(numbers) = &self.numbers {
            if let Some(sums) = numbers.sums.get(j) {
                return sums.iter().enumerate().fold(0, |word, (bit, sum)| word | u64::from(*sum >= least) << bit);
            }
            return u32::try_from(least).map_or(0, |least| numbers.cpu.at_least(&numbers.counts[j], least));
        }
        self.slices[j].at_least(least)
    }
}

/// Add to *sums* how many of *words* have each bit.
fn count(words: &[u64], sums: &mut Sums) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.count(words, sums);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.count(words, sums);
    }
    sums.count(words);
}

/// The weights that AVX-512 adds in planes have at most these bits.
#[cfg(target_arch = "x86_64")]
const PLANES: u32 = 0xffff;

/// Move the items that weigh something to the front, with their weights; how many they are.
#[cfg(target_arch = "x86_64")]
fn only_weighty<T: Copy>(items: &mut [T], weights: &mut [u32]) -> usize {
    let mut count = 0;
    for at in 0..items.len().min(weights.len()) {
        let (item, weight) = (items[at], weights[at]);
        (items[count], weights[count]) = (item, weight);
        count += usize::from(weight != 0);
    }
    count
}

/// Rows of features that vote together. A row of no votes is behind them.
const ROWS: usize = 512;

/// Features of one weight, and the places that they leave free in their last row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    weight: u32,
    rows: Range<usize>,
    gaps: Range<usize>,
}

/// Items in the order of their weights, in groups of one weight each; those that weigh nothing are left out.
#[derive(Default)]
pub struct ByWeight<T> {
    /// They fill rows; something may follow them.
    items: Vec<T>,
    groups: Vec<Group>,
    /// What all weigh together.
    total: u64,
    /// For each weight the place of its next item.
    places: Vec<usize>,
    part: Part,
    /// The words of some items.
    rows: Vec<Row>,
}

impl<T: Copy + Default> ByWeight<T> {
    /// Order *items*, each of which has one of the *weights*.
    fn order(&mut self, items: &[T], weights: &[u32]) {
        assert_eq!(items.len(), weights.len(), "a weight for each item");
        let heaviest = weights.iter().fold(0, |most, weight| most.max(*weight)) as usize;
        self.places.clear();
        self.places.resize(heaviest + 1, 0);
        weights.iter().for_each(|weight| self.places[*weight as usize] += 1);
        self.groups.clear();
        self.total = 0;
        let mut end = 0;
        for (weight, place) in self.places.iter_mut().enumerate().skip(1).filter(|(_, count)| **count > 0) {
            self.total += *place as u64 * weight as u64;
            let (begin, behind) = (end, end * LANES + *place);
            end = behind.div_ceil(LANES);
            *place = begin * LANES;
            self.groups.push(Group { weight: weight as u32, rows: begin..end, gaps: behind..end * LANES });
        }
        // What weighs nothing is written behind the others.
        let nothing = std::mem::replace(&mut self.places[0], end * LANES);
        memory::at_least(&mut self.items, end * LANES + nothing);
        for (item, weight) in items.iter().zip(weights) {
            let place = &mut self.places[*weight as usize];
            self.items[*place] = *item;
            *place += 1;
        }
        self.groups.iter().for_each(|group| self.items[group.gaps.clone()].fill(T::default()));
    }

    /// As many as there are rows for, in their order.
    fn items(&self) -> &[T] {
        &self.items[..self.groups.last().map_or(0, |group| group.rows.end) * LANES]
    }
}

/// Up to `ROWS` rows: for each digit of the weights those whose weight has it.
#[derive(Default)]
pub struct Part {
    /// Words that are no item's.
    gaps: Vec<usize>,
    /// For each digit whole blocks of rows, filled up with the row of no votes.
    chosen: Vec<[u16; BLOCK]>,
    /// Where the blocks of each digit end.
    ends: Vec<usize>,
}

impl Part {
    /// Be the part that begins at this row.
    fn set(&mut self, first: usize, groups: &[Group]) {
        let within = |rows: &Range<usize>, size: usize| {
            let bound = |at: usize| at.saturating_sub(first * size).min(ROWS * size);
            bound(rows.start)..bound(rows.end)
        };
        self.gaps.clear();
        groups.iter().for_each(|group| self.gaps.extend(within(&group.gaps, LANES)));
        self.chosen.clear();
        self.ends.clear();
        let all = groups.iter().fold(0, |all, group| all | group.weight);
        for digit in 0..u32::BITS - all.leading_zeros() {
            let (mut block, mut filled) = ([ROWS as u16; BLOCK], 0);
            for group in groups.iter().filter(|group| group.weight >> digit & 1 == 1) {
                for row in within(&group.rows, 1) {
                    block[filled] = row as u16;
                    filled += 1;
                    if filled == BLOCK {
                        self.chosen.push(block);
                        (block, filled) = ([ROWS as u16; BLOCK], 0);
                    }
                }
            }
            if filled > 0 {
                self.chosen.push(block);
            }
            self.ends.push(self.chosen.len());
        }
    }
}

/// Add to *sums* the weights of those of the words in *rows* that have each bit.
fn weigh(rows: &[Row], part: &Part, sums: &mut Sums) {
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx512Base::in_force() {
        return cpu.weigh(rows, part, sums);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Avx2::in_force() {
        return cpu.weigh(rows, part, sums);
    }
    weigh_plain(rows, part, sums);
}

#[inline(always)]
pub fn weigh_plain(rows: &[Row], part: &Part, sums: &mut Sums) {
    let mut begin = 0;
    for (digit, end) in part.ends.iter().enumerate() {
        sums.count_chosen(digit, rows, &part.chosen[begin..*end]);
        begin = *end;
    }
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
    use crate::system::simd::tests::at_every_level;

    fn words(count: u64) -> Vec<u64> {
        (0..count).map(|n| mix::finish(n) | (n % 3).wrapping_mul(u64::MAX / 2)).collect()
    }

    /// The weight in favour of each bit, one after the other.
    fn weighed(words: &[u64], weights: &[u32]) -> [u64; 64] {
        let of = |bit: usize| words.iter().zip(weights).filter(move |(word, _)| **word >> bit & 1 == 1);
        std::array::from_fn(|bit| of(bit).map(|(_, weight)| u64::from(*weight)).sum())
    }

    #[test]
    fn what_weighs_nothing_is_left_out_and_the_rest_is_ordered() {
        let mut ordered = ByWeight::default();
        ordered.order(&[10, 11, 12, 13, 14], &[3, 0, 1, 3, 1]);
        assert_eq!(ordered.items(), [12, 14, 0, 0, 10, 13, 0, 0]);
        let group = |weight, row| Group { weight, rows: row..row + 1, gaps: row * LANES + 2..row * LANES + 4 };
        assert_eq!(ordered.groups, [group(1, 0), group(3, 1)]);
        assert_eq!(ordered.total, 8);
        ordered.part.set(0, &ordered.groups);
        assert_eq!(ordered.part.gaps, [2, 3, 6, 7]);
        let of_both_digits: Vec<_> = ordered.part.chosen.iter().map(|block| &block[..3]).collect();
        assert_eq!(of_both_digits, [[0, 1, ROWS as u16], [1, ROWS as u16, ROWS as u16]]);
        ordered.part.set(1, &ordered.groups);
        assert_eq!((&ordered.part.gaps[..], ordered.part.chosen[1][..2].to_vec()), (&[2, 3][..], vec![0, ROWS as u16]));
        ordered.order(&[7], &[0]);
        assert!(ordered.items().is_empty() && ordered.groups.is_empty() && ordered.total == 0);
    }

    /// The fingerprint that weights in favour of each bit give.
    fn decided(sums: &[[u64; 64]], total: u64, tie: bool) -> Vec<u64> {
        let mut out = vec![0; sums.len()];
        decide(&sums.concat().into_iter().map(i128::from).collect::<Vec<_>>(), i128::from(total), tie, &mut out);
        out
    }

    #[test]
    fn features_vote_with_their_weights_at_every_level() {
        at_every_level(|_| {
            let mut votes = Votes::default();
            for count in (0..70).chain([511, 512, 513, 2047, 2048, 2049, 5000]) {
                for most in [1, 2, 33, 1025, 0xffff, 0x1_0000] {
                    let (mut hashes, n) = (words(count), 3);
                    let mut weights: Vec<u32> =
                        (0..count).map(|n| (mix::finish(n ^ most) % (most + 1)) as u32).collect();
                    let word = |hashes: &[u64], j| hashes.iter().map(|hash| mix::word(*hash, j)).collect::<Vec<_>>();
                    let wanted: Vec<_> = (0..n).map(|j| weighed(&word(&hashes, j), &weights)).collect();
                    let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
                    votes.begin(n);
                    let fill = |hashes: &[u64], j: usize, out: &mut [u64]| mix::words(hashes, j, out);
                    let found = votes.weigh(&mut hashes, &mut weights, &mut ByWeight::default(), fill);
                    assert_eq!(found, total);
                    for tie in [false, true] {
                        let mut out = vec![0; n];
                        votes.decide(total, tie, 64 * n, &mut out);
                        assert_eq!(out, decided(&wanted, total, tie), "{count} features, weights up to {most}");
                    }
                }
            }
        });
    }

    #[test]
    fn windows_and_parts_vote_as_their_hashes_do_at_every_level() {
        at_every_level(|_| {
            let mut votes = Votes::default();
            for width in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 40, 64] {
                for windows in (1..30).chain([63, 64, 65, 247, 248, 249, 600]) {
                    let text: Vec<u8> =
                        (0..windows + width - 1 + mix::PADDING).map(|n| mix::finish(n as u64) as u8).collect();
                    let hashes: Vec<u64> = (0..windows).map(|at| mix::hash(&text[at..at + width], 5)).collect();
                    let (starts, total) = ((0..windows as u32).collect::<Vec<_>>(), windows as u64);
                    let ends: Vec<u32> = starts.iter().map(|start| start + width as u32).collect();
                    for n in [1, 2, 3, 4] {
                        let word = |j| hashes.iter().map(|hash| mix::word(*hash, j)).collect::<Vec<_>>();
                        let wanted: Vec<_> = (0..n).map(|j| weighed(&word(j), &vec![1; windows])).collect();
                        let wanted = decided(&wanted, total, false);
                        let mut out = vec![0; n];
                        votes.begin(n);
                        votes.count_windows(&text, windows, width, 5);
                        votes.decide(total, false, 64 * n, &mut out);
                        assert_eq!(out, wanted, "{windows} windows of {width}");
                        votes.begin(n);
                        votes.count_parts(&text, &starts, &ends, 5);
                        votes.decide(total, false, 64 * n, &mut out);
                        assert_eq!(out, wanted, "{windows} parts of {width}");
                    }
                }
            }
        });
    }

    #[test]
    fn a_tie_is_what_the_rule_says() {
        let mut out = [0];
        decide(&[1u32, 2, 0], 2, false, &mut out);
        assert_eq!(out, [0b010]);
        decide(&[1u32, 2, 0], 2, true, &mut out);
        assert_eq!(out, [0b011]);
        at_every_level(|_| {
            let mut votes = Votes::default();
            votes.begin(1);
            votes.count(0, &[0b011, 0b010]);
            votes.decide(2, false, 3, &mut out);
            assert_eq!(out, [0b010]);
            votes.decide(2, true, 2, &mut out);
            assert_eq!(out, [0b011]);
        });
    }
}
