#![forbid(unsafe_code)]
//! A sparse segment of an index: fingerprints once, and tables that name their places by key.
//!
//! For wide fingerprints and large radii, a query has to look at hundreds of keys in a dozen tables, and most keys
//! have no fingerprint. So a table begins with a bit for each key, and one look at a word of them decides 64 keys:
//! those that differ only in their low six bits. The keys that are there are numbered, and a slot for each says
//! where its fingerprint lies.
//!
//! ```text
//! for each table: for each query: for each upper part of a key within the radius of the query's:
//!     keys = present[upper] & those whose low part differs in no more bits than are left
//!     for each of these keys: for each place of its slot: hit if the distance of the row there is within the radius
//! ```
//!
//! All steps are done for many keys at a time, and each asks the memory for what the next one reads. The bits of one
//! table stay in the cache of a core while all queries look at them.

use crate::hamming::distance::listed::near_listed;
use crate::hamming::keys::Key;
use crate::hamming::plan::Probe;
use crate::index::segment::enough;
use crate::system::column::{Column, prefetch};
use crate::system::memory::{push, room_for, zeros};
use crate::system::parallel::each;

/// Keys that one word of bits is about.
const LOW: u32 = 6;
/// A slot is a place, or has this bit and says where in `crowds` the places are.
pub const MANY: u32 = 1 << 31;
/// More rows might have crowds that lie beyond `MANY`.
pub const MOST_ROWS: usize = 1 << 30;
/// The largest radius of a block.
pub const MOST_RADIUS: u32 = 4;
/// Rows that are compared together at most.
const MOST_LISTED: usize = 1 << 15;

pub struct Table<const W: usize> {
    pub key: Key,
    pub mask: [u64; W],
    pub radius: u32,
    /// Upper parts to flip, and in how many bits the low part may differ then.
    flips: Vec<(u32, u8)>,
    /// For each key whether it is there.
    pub present: Column<u64>,
    /// How many keys are there before those of each word.
    pub before: Column<u32>,
    /// For each key that is there its place, or where in `crowds` its places are.
    pub slots: Column<u32>,
    /// For each key that several have their number, and their places.
    pub crowds: Column<u32>,
}

pub struct Sparse<const W: usize> {
    /// All words of each fingerprint, one fingerprint after another.
    pub rows: Column<u64>,
    pub entries: Column<u32>,
    pub tables: Vec<Table<W>>,
}

/// How many words of bits a table has whose keys have this many bits.
pub fn words_of(width: u32) -> usize {
    1 << width.saturating_sub(LOW)
}

/// `BALLS[left][low]` are the keys of a word that differ from `low` in at most `left` bits.
const BALLS: [[u64; 64]; MOST_RADIUS as usize + 1] = {
    let mut balls = [[0; 64]; MOST_RADIUS as usize + 1];
    let mut pair = 0usize;
    while pair < 64 * 64 {
        let (low, other) = (pair % 64, pair / 64);
        let mut left = (low ^ other).count_ones() as usize;
        while left < balls.len() {
            balls[left][low] |= 1 << other;
            left += 1;
        }
        pair += 1;
    }
    balls
};

/// What a search needs room for.
#[derive(Default)]
struct Scratch {
    /// Words with keys that are near, and these keys.
    words: Vec<(u32, u64)>,
    /// Slots of such keys.
    slots: Vec<u32>,
    places: Vec<u32>,
}

impl<const W: usize> Table<W> {
    /// A table without anything in it.
    pub fn new(probe: &Probe) -> Table<W> {
        let mut mask = [0; W];
        mask[..probe.mask.len()].copy_from_slice(&probe.mask);
        let key = Key::new(&mask);
        let upper = key.width.saturating_sub(LOW);
        let mut flips = vec![(0, probe.radius as u8)];
        let mut start = 0;
        for left in (0..probe.radius as u8).rev() {
            let end = flips.len();
            for known in start..end {
                let flip: u32 = flips[known].0;
                flips.extend((32 - flip.leading_zeros()..upper).map(|bit| (flip | 1 << bit, left)));
            }
            start = end;
        }
        Table {
            key,
            mask,
            radius: probe.radius,
            flips,
            present: Column::default(),
            before: Column::default(),
            slots: Column::default(),
            crowds: Column::default(),
        }
    }

    fn of_rows(probe: &Probe, rows: &[[u64; W]]) -> Table<W> {
        let mut table = Table::new(probe);
        let mut keyed: Vec<u64> = room_for(rows.len());
        keyed.extend((0..).zip(rows).map(|(place, row)| u64::from(table.key.of(row)) << 32 | place));
        keyed.sort_unstable();
        let same = |one: &u64, two: &u64| one >> 32 == two >> 32;
        let (mut distinct, mut crowded) = (0, 0);
        for run in keyed.chunk_by(same) {
            distinct += 1;
            crowded += if run.len() > 1 { run.len() + 1 } else { 0 };
        }
        let mut present = zeros::<u64>(words_of(table.key.width));
        let (mut slots, mut crowds) = (room_for(distinct), room_for(crowded));
        for run in keyed.chunk_by(same) {
            let key = run[0] >> 32;
            present[(key >> LOW) as usize] |= 1 << (key & 63);
            if let [one] = run {
                slots.push(*one as u32);
            } else {
                slots.push(MANY | crowds.len() as u32);
                crowds.push(run.len() as u32);
                crowds.extend(run.iter().map(|&place| place as u32));
            }
        }
        let mut before = room_for(present.len());
        let mut count = 0;
        for word in &present {
            before.push(count);
            count += word.count_ones();
        }
        table.present = Column::Owned(present);
        table.before = Column::Owned(before);
        table.slots = Column::Owned(slots);
        table.crowds = Column::Owned(crowds);
        table
    }

    /// Call *compare* with the places of all rows whose keys are within the radius of that of *asked*.
    #[inline(always)]
    fn look(&self, asked: &[u64; W], rows: &[[u64; W]], scratch: &mut Scratch, compare: &mut impl FnMut(&[u32])) {
        let Scratch { words, slots, places } = scratch;
        let (present, before, all) = (self.present.slice(), self.before.slice(), self.slots.slice());
        let key = self.key.of(asked);
        let (upper, low) = (key >> LOW, (key % 64) as usize);
        for &(flip, _) in &self.flips {
            prefetch(present, (upper ^ flip) as usize);
        }
        words.clear();
        for &(flip, left) in &self.flips {
            let word = upper ^ flip;
            let there = present[word as usize] & BALLS[left as usize][low];
            if there != 0 {
                prefetch(before, word as usize);
                push(words, (word, there));
            }
        }
        slots.clear();
        for &(word, mut there) in &*words {
            let (present, first) = (present[word as usize], before[word as usize]);
            while there != 0 {
                let below = (there & there.wrapping_neg()).wrapping_sub(1);
                let slot = first + (present & below).count_ones();
                prefetch(all, slot as usize);
                push(slots, slot);
                there &= there.wrapping_sub(1);
            }
        }
        places.clear();
        for slot in &*slots {
            for some in self.places(&all[*slot as usize]).chunks(MOST_LISTED) {
                if places.len() + some.len() > MOST_LISTED {
                    compare(places);
                    places.clear();
                }
                for &place in some {
                    prefetch(rows, place as usize);
                    push(places, place);
                }
            }
        }
        compare(places);
    }

    /// The places of a slot.
    #[inline(always)]
    fn places<'a>(&'a self, slot: &'a u32) -> &'a [u32] {
        if slot & MANY == 0 {
            return std::slice::from_ref(slot);
        }
        let crowds = self.crowds.slice();
        let at = (slot & !MANY) as usize;
        &crowds[at + 1..][..crowds[at] as usize]
    }

    /// Whether this table shows two fingerprints to each other.
    fn sees(&self, one: &[u64; W], two: &[u64; W]) -> bool {
        let differ = (0..W).map(|word| ((one[word] ^ two[word]) & self.mask[word]).count_ones());
        differ.sum::<u32>() <= self.radius
    }

    pub fn bytes(&self) -> usize {
        let numbers = self.before.slice().len() + self.slots.slice().len() + self.crowds.slice().len();
        self.present.slice().len() * 8 + numbers * 4
    }
}

/// Whether the columns of a table fit together, and name places below *rows* only, as many as there are.
pub fn is_sound(width: u32, [before, slots, crowds]: [&[u8]; 3], present: &[u8], rows: usize) -> bool {
    fn number(bytes: &[u8]) -> u32 {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
    let mut count = 0u32;
    for (word, before) in present.chunks_exact(8).zip(before.chunks_exact(4)) {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        if number(before) != count || (width < LOW && word >> (1 << width) != 0) {
            return false;
        }
        count = match count.checked_add(word.count_ones()) {
            Some(count) => count,
            None => return false,
        };
    }
    if slots.len() / 4 != count as usize {
        return false;
    }
    let (mut at, mut places) = (0, 0);
    for slot in slots.chunks_exact(4).map(number) {
        if slot & MANY == 0 {
            places += 1;
            if slot as usize >= rows {
                return false;
            }
            continue;
        }
        // The crowds come in the order of their slots, without a gap.
        if (slot & !MANY) as usize != at || crowds.len() / 4 <= at {
            return false;
        }
        let size = number(&crowds[at * 4..]) as usize;
        let Some(own) = crowds[at * 4 + 4..].get(..size * 4) else { return false };
        if own.chunks_exact(4).any(|place| number(place) as usize >= rows) {
            return false;
        }
        places += size;
        at += size + 1;
    }
    at == crowds.len() / 4 && places == rows
}

impl<const W: usize> Sparse<W> {
    /// About how many bytes it takes to build one of so many rows.
    pub fn needed(rows: usize, probes: &[Probe], threads: usize) -> usize {
        let width = |probe: &Probe| probe.mask.iter().map(|word| word.count_ones()).sum();
        let tables: usize = probes.iter().map(|probe| words_of(width(probe)) * 12 + rows * 6).sum();
        rows * (W * 8 + 8 * threads.clamp(1, probes.len())) + tables
    }

    /// Of rows and their entry numbers.
    pub fn build(rows: &[[u64; W]], entries: Vec<u32>, probes: &[Probe], threads: usize) -> Sparse<W> {
        let mut tables = Vec::new();
        for some in probes.chunks(threads.max(1)) {
            tables.extend(each(some.to_vec(), |probe| Table::of_rows(&probe, rows)));
        }
        let mut words = room_for(rows.len() * W);
        words.extend_from_slice(rows.as_flattened());
        Sparse { rows: Column::Owned(words), entries: Column::Owned(entries), tables }
    }

    pub fn rows(&self) -> &[[u64; W]] {
        self.rows.slice().as_chunks().0
    }

    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        self.rows.slice().len() * 8 + self.entries.slice().len() * 4 + tables
    }

    /// What is within the radius of each query: its number, the entry and the distance.
    pub fn search(&self, queries: &[(u32, [u64; W])], radius: u32, hits: &mut impl FnMut(u32, u32, u32)) {
        let tables = enough(&self.tables, radius, |table| table.radius);
        let (rows, entries) = (self.rows(), self.entries.slice());
        let (mut scratch, mut near) = (Scratch::default(), Vec::new());
        // Table by table: the bits of one stay near while all queries look at them.
        for (table, earlier) in tables.iter().zip((0..).map(|number| &tables[..number])) {
            for (query, asked) in queries {
                table.look(asked, rows, &mut scratch, &mut |places| {
                    near_listed(asked, rows, places, radius, &mut near);
                    for [at, far] in near.drain(..) {
                        let place = places[at as usize] as usize;
                        // Equal fingerprints meet in every table: the first to see one tells of it.
                        if !earlier.iter().any(|earlier| earlier.sees(asked, &rows[place])) {
                            hits(*query, entries[place], far);
                        }
                    }
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::distance::distance;
    use crate::hamming::plan::split_mix;
    use crate::system::simd::tests::at_every_level;

    /// Rows of which many share most bits, some are near others, and some are equal.
    fn rows(count: usize, mask: u64) -> Vec<[u64; 2]> {
        let mut state = 3;
        let mut rows: Vec<[u64; 2]> = Vec::new();
        for at in 0..count {
            let mut row = [split_mix(&mut state) & mask, split_mix(&mut state) & mask];
            if at > 0 && at % 3 > 0 {
                row = rows[split_mix(&mut state) as usize % at];
                for _ in 0..(at % 3 - 1) * 5 {
                    let bit = split_mix(&mut state) as usize % 128;
                    row[bit / 64] ^= 1 << (bit % 64);
                }
            }
            rows.push(row);
        }
        rows
    }

    fn probe(mask: [u64; 2], radius: u32) -> Probe {
        Probe { mask: mask.to_vec(), radius }
    }

    #[test]
    fn all_that_is_within_a_radius_is_found_once() {
        let cuts = [
            vec![probe([0x3ff, 0], 0)],
            vec![probe([0x7, 0], 2), probe([0xffff_0000, 0x1], 1)],
            vec![probe([0x1_ffff, 0], 4), probe([0xfff << 40, 0], 0), probe([0, 0x00ff_f0ff], 3)],
        ];
        for mask in [u64::MAX, 0x11_f0ff, 0] {
            let rows = rows(700, mask);
            let entries: Vec<u32> = (0..700).map(|place| 5000 - place).collect();
            for probes in &cuts {
                let reach: u32 = probes.iter().map(|probe| probe.radius + 1).sum();
                let sparse = Sparse::build(&rows, entries.clone(), probes, 2);
                for radius in 0..reach {
                    let asked: Vec<(u32, [u64; 2])> = (0..).zip(rows.iter().step_by(23).copied()).collect();
                    let mut expected = Vec::new();
                    for &(query, one) in &asked {
                        for (row, &entry) in rows.iter().zip(&entries) {
                            if distance(&one, row) <= radius {
                                expected.push((query, entry, distance(&one, row)));
                            }
                        }
                    }
                    expected.sort_unstable();
                    at_every_level(|name| {
                        let mut found = Vec::new();
                        sparse.search(&asked, radius, &mut |query, entry, far| found.push((query, entry, far)));
                        found.sort_unstable();
                        assert_eq!(found, expected, "{name}, radius {radius} of {reach}");
                    });
                }
            }
        }
    }

    #[test]
    fn a_crowd_is_compared_in_parts() {
        let rows = vec![[9, 9]; 2 * MOST_LISTED + 7];
        let probes = [probe([0xff, 0], 0), probe([0, 0xff], 1)];
        let sparse = Sparse::build(&rows, (0..rows.len() as u32).collect(), &probes, 1);
        let mut found = Vec::new();
        sparse.search(&[(0, [9, 8])], 2, &mut |_, entry, far| found.push((entry, far)));
        assert_eq!(found, (0..rows.len() as u32).map(|entry| (entry, 1)).collect::<Vec<_>>());
    }

    #[test]
    fn a_table_that_does_not_fit_together_is_not_sound() {
        let rows = rows(300, u64::MAX);
        let table = Table::of_rows(&probe([0xff, 0], 1), &rows);
        let bytes = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let present: Vec<u8> = table.present.slice().iter().flat_map(|word| word.to_le_bytes()).collect();
        let own = [table.before.slice(), table.slots.slice(), table.crowds.slice()].map(bytes);
        let sound = |columns: &[Vec<u8>; 3], present: &[u8], rows: usize| {
            is_sound(8, columns.each_ref().map(|column| &column[..]), present, rows)
        };
        assert!(sound(&own, &present, 300) && !sound(&own, &present, 299) && !sound(&own, &present, 301));
        for column in 0..3 {
            for at in 0..own[column].len() / 4 {
                let mut wrong = own.clone();
                wrong[column][at * 4 + 3] ^= 0x80;
                assert!(!sound(&wrong, &present, 300), "column {column} at {at}");
            }
            let mut short = own.clone();
            short[column].truncate(own[column].len() - 4);
            assert!(!sound(&short, &present, 300) || column == 0);
        }
        let mut wrong = present.clone();
        wrong[3] ^= 1;
        assert!(!sound(&own, &wrong, 300));
    }
}
