#![forbid(unsafe_code)]
//! From pairs of values back to rows: which rows hold each value of a pair.
//!
//! Only values that are in a pair, or occur twice, are looked for, in one scan of the input.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use crate::hamming::distance::distance;
use crate::hamming::keys::BATCH;
use crate::system::column::prefetch;
use crate::system::memory::{copied, filled, gathered, more_room, push, room_for, zeros};
use crate::system::parallel::{Cancel, Cancelled, each};

/// Distinct values with numbers, and a hash table from value to number.
///
/// The hash is keyed again in each process: nobody who chooses fingerprints can choose collisions.
pub struct Values<const W: usize> {
    pub values: Vec<[u64; W]>,
    slots: Vec<u32>,
    /// One bit for each of many hashes: it rules out most values that are not here.
    filter: Vec<u64>,
    keys: [u64; 2],
}

const EMPTY: u32 = u32::MAX;
/// This many values are prefetched before the first is compared.
const AHEAD: usize = 64;

impl<const W: usize> Values<W> {
    /// Room for `most` distinct values; more make it grow.
    pub fn with_room(most: usize) -> Values<W> {
        let state = RandomState::new();
        let keys = [state.hash_one(1u8) | 1, state.hash_one(2u8)];
        let mut values = Values { values: room_for(most), slots: Vec::new(), filter: Vec::new(), keys };
        values.make_room(most);
        values
    }

    fn make_room(&mut self, most: usize) {
        let slots = (most.max(8) * 2).next_power_of_two();
        (self.slots, self.filter) = (filled(slots, EMPTY), zeros(slots / 8));
        for number in 0..self.values.len() {
            let hash = self.hash(&self.values[number]);
            let mut slot = (hash >> 20) as usize & (slots - 1);
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & (slots - 1);
            }
            self.occupy(slot, hash, number as u32);
        }
    }

    fn occupy(&mut self, slot: usize, hash: u64, number: u32) {
        self.slots[slot] = number;
        let bit = hash as usize & (self.filter.len() * 64 - 1);
        self.filter[bit / 64] |= 1 << (bit % 64);
    }

    #[inline(always)]
    fn hash(&self, value: &[u64; W]) -> u64 {
        let mut state = self.keys[1];
        for word in value {
            let product = u128::from(state ^ word) * u128::from(self.keys[0] ^ 0x9e37_79b9_7f4a_7c15);
            state = (product as u64) ^ (product >> 64) as u64;
        }
        let product = u128::from(state) * u128::from(self.keys[0]);
        (product as u64) ^ (product >> 64) as u64
    }

    /// The number of `value`, new if it was not here.
    pub fn number(&mut self, value: &[u64; W]) -> u32 {
        self.number_hashed(value, self.hash(value))
    }

    #[inline(always)]
    fn number_hashed(&mut self, value: &[u64; W], hash: u64) -> u32 {
        let last = self.slots.len() - 1;
        let mut slot = (hash >> 20) as usize & last;
        loop {
            match self.slots[slot] {
                EMPTY => {
                    let number = self.values.len() as u32;
                    push(&mut self.values, *value);
                    self.occupy(slot, hash, number);
                    if self.values.len() * 2 > self.slots.len() {
                        self.make_room(self.slots.len());
                    }
                    return number;
                }
                number if self.values[number as usize] == *value => return number,
                _ => slot = (slot + 1) & last,
            }
        }
    }

    #[inline(always)]
    pub fn find(&self, value: &[u64; W]) -> Option<u32> {
        let hash = self.hash(value);
        if self.may_hold(hash) { self.look_up(value, hash) } else { None }
    }

    /// Ask for what `number_hashed` and `look_up` read first.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        prefetch(&self.slots, (hash >> 20) as usize & (self.slots.len() - 1));
    }

    #[inline(always)]
    fn may_hold(&self, hash: u64) -> bool {
        let bit = hash as usize & (self.filter.len() * 64 - 1);
        self.filter[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline(always)]
    fn look_up(&self, value: &[u64; W], hash: u64) -> Option<u32> {
        let last = self.slots.len() - 1;
        let mut slot = (hash >> 20) as usize & last;
        loop {
            match self.slots[slot] {
                EMPTY => return None,
                number if self.values[number as usize] == *value => return Some(number),
                _ => slot = (slot + 1) & last,
            }
        }
    }

    /// The value and the place of each of `rows` that is here.
    ///
    /// First all that may be here are found without a branch, then they are looked up one after
    /// the other: so a guess that goes wrong never waits for memory.
    fn places(&self, rows: &[[u64; W]], start: usize, found: &mut Vec<[u32; 2]>) {
        let mut likely = [(0, 0); BATCH];
        for (batch, rows) in rows.chunks(BATCH).enumerate() {
            let mut count = 0;
            for (index, row) in rows.iter().enumerate() {
                let hash = self.hash(row);
                likely[count] = (hash, index);
                count += usize::from(self.may_hold(hash));
            }
            for &(hash, _) in &likely[..count] {
                self.prefetch(hash);
            }
            for &(hash, _) in &likely[..count] {
                let number = self.slots[(hash >> 20) as usize & (self.slots.len() - 1)];
                prefetch(&self.values, number as usize);
            }
            for &(hash, index) in &likely[..count] {
                if let Some(value) = self.look_up(&rows[index], hash) {
                    push(found, [value, (start + batch * BATCH + index) as u32]);
                }
            }
        }
    }

    /// For each value the rows that hold it, ascending; `rows[i]` is row number `numbers[i]`.
    pub fn rows(
        &self,
        rows: &[[u64; W]],
        numbers: Option<&[u32]>,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Rows, Cancelled> {
        let size = rows.len().div_ceil(threads).max(4096);
        let chunks: Vec<(usize, &[[u64; W]])> =
            rows.chunks(size).enumerate().map(|(chunk, rows)| (chunk * size, rows)).collect();
        let found = each(chunks, |(start, chunk)| {
            let mut found = Vec::new();
            for (batch, rows) in chunk.chunks(1 << 20).enumerate() {
                if cancel.is_set() {
                    break;
                }
                self.places(rows, start + (batch << 20), &mut found);
            }
            if let Some(numbers) = numbers {
                found.iter_mut().for_each(|[_, row]| *row = numbers[*row as usize]);
            }
            found
        });
        cancel.check()?;
        let mut starts: Vec<u32> = zeros(self.values.len() + 1); // rows are numbered with 32 bits, too
        for [value, _] in found.iter().flatten() {
            starts[*value as usize + 1] += 1;
        }
        for value in 0..self.values.len() {
            starts[value + 1] += starts[value];
        }
        let mut places = copied(&starts);
        let mut held = zeros(starts[self.values.len()] as usize);
        for [value, row] in found.iter().flatten() {
            held[places[*value as usize] as usize] = *row;
            places[*value as usize] += 1;
        }
        Ok(Rows { starts, rows: held })
    }
}

/// Rows by value.
pub struct Rows {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Rows {
    pub fn of(&self, value: u32) -> &[u32] {
        &self.rows[self.starts[value as usize] as usize..self.starts[value as usize + 1] as usize]
    }

    fn values(&self) -> Range<u32> {
        0..(self.starts.len() - 1) as u32
    }

    /// How many pairs of rows these pairs of values are, and all pairs of equal rows.
    pub fn pairs_among(&self, pairs: &[[u32; 3]]) -> u64 {
        let count_of = |value: u32| self.of(value).len() as u64;
        let between: u64 = pairs.iter().map(|[a, b, _]| count_of(*a) * count_of(*b)).sum();
        let equal: u64 = self.values().map(|value| count_of(value) * count_of(value).saturating_sub(1) / 2).sum();
        between + equal
    }

    /// Those pairs, left before right, one after the other.
    pub fn each_pair(&self, pairs: &[[u32; 3]], cancel: &Cancel, mut take: impl FnMut(Pair)) -> Result<(), Cancelled> {
        for &[a, b, distance] in pairs {
            for &one in self.of(a) {
                cancel.check()?;
                for &two in self.of(b) {
                    take(Pair { left: one.min(two), right: one.max(two), distance });
                }
            }
        }
        for value in self.values() {
            let rows = self.of(value);
            for (place, &left) in rows.iter().enumerate() {
                cancel.check()?;
                rows[place + 1..].iter().for_each(|&right| take(Pair { left, right, distance: 0 }));
            }
        }
        Ok(())
    }
}

/// A pair of rows and their distance, in the order in which results are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub left: u32,
    pub right: u32,
    pub distance: u32,
}

/// Pairs by column: left, right, distance.
pub fn columns(pairs: &[Pair]) -> (Vec<u32>, Vec<u32>, Vec<u16>) {
    (
        gathered(pairs.iter().map(|pair| pair.left)),
        gathered(pairs.iter().map(|pair| pair.right)),
        gathered(pairs.iter().map(|pair| pair.distance as u16)),
    )
}

/// Numbered pairs of values, each once. Only pairs with a repeated value may be there more than once.
pub fn numbered<const W: usize>(pairs: &[[[u64; W]; 2]], repeated: &[[u64; W]]) -> (Values<W>, Vec<[u32; 3]>) {
    let mut values = Values::with_room(pairs.len() * 2 + repeated.len());
    for value in repeated {
        values.number(value);
    }
    let many = values.values.len() as u32;
    let (mut unsure, mut numbered) = (Vec::new(), room_for(pairs.len()));
    let mut hashes = [[0; 2]; AHEAD];
    for pairs in pairs.chunks(hashes.len()) {
        for (pair, hashes) in pairs.iter().zip(&mut hashes) {
            *hashes = [values.hash(&pair[0]), values.hash(&pair[1])];
            hashes.iter().for_each(|&hash| values.prefetch(hash));
        }
        for ([one, two], hashes) in pairs.iter().zip(&hashes) {
            let (a, b) = (values.number_hashed(one, hashes[0]), values.number_hashed(two, hashes[1]));
            let pair = [a.min(b), a.max(b), distance(one, two)];
            if pair[0] < many { push(&mut unsure, pair) } else { numbered.push(pair) }
        }
    }
    unsure.sort_unstable();
    unsure.dedup();
    more_room(&mut numbered, unsure.len());
    numbered.append(&mut unsure);
    (values, numbered)
}

/// Sort pairs, each of which is there once, by left, then right, sharing the work.
pub fn sort_pairs(mut pairs: Vec<Pair>, threads: usize) -> Vec<Pair> {
    let place = |pair: &Pair| u64::from(pair.left) << 32 | u64::from(pair.right);
    if threads == 1 || pairs.len() < 1 << 13 {
        pairs.sort_unstable_by_key(place);
        return pairs;
    }
    // Cut at sampled values, sort the pieces side by side.
    let pieces = threads * 4;
    let mut sample: Vec<Pair> = pairs.iter().step_by((pairs.len() / (pieces * 16)).max(1)).copied().collect();
    sample.sort_unstable();
    let cuts: Vec<Pair> = (1..pieces).map(|piece| sample[piece * sample.len() / pieces]).collect();
    let mut parts: Vec<Vec<Pair>> = vec![Vec::new(); pieces];
    for pair in pairs.drain(..) {
        push(&mut parts[cuts.partition_point(|cut| *cut <= pair)], pair);
    }
    drop(pairs);
    let size = parts.len().div_ceil(threads);
    let mut groups: Vec<Vec<Vec<Pair>>> = Vec::new();
    let mut parts = parts.into_iter().peekable();
    while parts.peek().is_some() {
        groups.push(parts.by_ref().take(size).collect());
    }
    let sorted = each(groups, |mut group| {
        group.iter_mut().for_each(|part| part.sort_unstable_by_key(place));
        group
    });
    let mut all = room_for(sorted.iter().flatten().map(Vec::len).sum());
    for part in sorted.into_iter().flatten() {
        all.extend_from_slice(&part);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_value_come_in_order() {
        let (values, pairs) = numbered(&[[[5u64], [7]], [[7], [5]]], &[[5], [9]]);
        assert_eq!(pairs.len(), 1);
        let rows = values.rows(&[[9], [5], [1], [9], [7], [5]], None, 2, &Cancel::new()).unwrap();
        let of = |value| rows.of(values.find(&[value]).unwrap()).to_vec();
        assert_eq!((of(5), of(7), of(9)), (vec![1, 5], vec![4], vec![0, 3]));
        assert_eq!(values.find(&[1]), None);
    }

    #[test]
    fn pairs_are_sorted_the_same_by_any_number_of_threads() {
        let pairs: Vec<Pair> = (0..100_000u32)
            .map(|i| Pair { left: i.wrapping_mul(2_654_435_761) % 1000, right: i, distance: 1 })
            .collect();
        for count in [10_000, pairs.len()] {
            for threads in [3, 256] {
                let some = pairs[..count].to_vec();
                assert_eq!(sort_pairs(some.clone(), 1), sort_pairs(some, threads));
            }
        }
    }
}
