#![forbid(unsafe_code)]
//! The loop over pairs, but for AVX-512: one row with several columns at once, or several rows with several columns.
//!
//! Nearly all pairs are too far apart, so all that has to be said of some of them is that none is near; where one is,
//! they are compared one by one. For a small radius rows are folded first, onto 32 bits by XOR, which brings no two of
//! them further apart. Folds are not counted: a number of at most k bits is 0 once its lowest bit was cleared k times.
//!
//! ```text
//! radius small: for each tile of columns, for 8 rows, for 8 columns: in eight turns, each row with another column:
//!                   if a fold is near: compare these one by one
//! else:         for each row, for 8 columns: if one is near: compare these one by one
//! ```
//!
//! The turns are plain loops over eight numbers, which the compiler makes vectors of, at each level.

use std::ops::Range;

use crate::hamming::planes::{Planes, distance, row};
use crate::system::memory::push;

/// Up to this radius rows are compared by their folds first, as with AVX-512.
pub const FOLDED: u32 = 5;
/// Columns whose folds are made at a time: so few that making room for them costs nothing in a small bucket.
const TILE: usize = 64;
/// Columns that are compared at a time.
pub const COLUMNS: usize = 8;
/// Rows, and columns, whose folds are compared at a time.
const FOLDS: usize = 8;
/// Fewer columns than this are not worth folding.
const FEW: usize = 6;

/// What instructions are needed for.
pub trait Near: Copy {
    /// Whether one of `COLUMNS` columns from *j* on, all of which exist, may be within the radius of a row.
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool;
}

/// Pairs `i < j` of the range within the radius.
#[inline(always)]
pub fn pairs_within<const W: usize, N: Near>(
    cpu: N,
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    if radius > FOLDED || range.len() < FEW {
        for i in range.clone() {
            count(cpu, &Row::of(planes, i), planes, i + 1..range.end, radius, hits);
        }
        return;
    }
    for columns in tiles(range.clone()) {
        let folds = Folds::new(planes, columns.clone());
        for i in (range.start..columns.start).step_by(FOLDS) {
            let rows = i..columns.start.min(i + FOLDS);
            folds.compare(planes, rows, planes, columns.clone(), radius, hits);
        }
        for i in columns.clone().step_by(FOLDS) {
            let rows = i..columns.end.min(i + FOLDS);
            // Half of the turns are enough: the others are these, seen from the other side.
            if near(&folds.turned(i), &folds.turned(i), 1..FOLDS / 2 + 1, radius) {
                for i in rows.clone() {
                    plainly(&Row::of(planes, i), planes, i + 1..rows.end, radius, hits);
                }
            }
            folds.compare(planes, rows.clone(), planes, rows.end..columns.end, radius, hits);
        }
    }
}

/// Pairs (`i` of the left range, `j` of the right range) within the radius.
#[inline(always)]
pub fn pairs_between<const W: usize, N: Near>(
    cpu: N,
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    if radius > FOLDED || rows.len() < 2 || columns.len() < FEW {
        for i in rows {
            count(cpu, &Row::of(left, i), right, columns.clone(), radius, hits);
        }
        return;
    }
    for columns in tiles(columns) {
        let folds = Folds::new(right, columns.clone());
        for i in rows.clone().step_by(FOLDS) {
            folds.compare(left, i..rows.end.min(i + FOLDS), right, columns.clone(), radius, hits);
        }
    }
}

/// A row that is compared with others, and which one it is.
struct Row<const W: usize> {
    number: usize,
    words: [u64; W],
}

impl<const W: usize> Row<W> {
    #[inline(always)]
    fn of(planes: &Planes<'_, W>, number: usize) -> Row<W> {
        Row { number, words: row(planes, number) }
    }
}

fn tiles(columns: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = columns.end;
    columns.step_by(TILE).map(move |begin| begin..end.min(begin + TILE))
}

/// Compare row *i* with columns by counting bits.
#[inline(always)]
fn count<const W: usize, N: Near>(
    cpu: N,
    one: &Row<W>,
    planes: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let mut j = columns.start;
    while columns.end - j >= COLUMNS {
        if cpu.columns(&one.words, planes, j, radius) {
            plainly(one, planes, j..j + COLUMNS, radius, hits);
        }
        j += COLUMNS;
    }
    plainly(one, planes, j..columns.end, radius, hits);
}

#[inline(always)]
fn plainly<const W: usize>(
    one: &Row<W>,
    planes: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    for j in columns {
        if distance(&one.words, &row(planes, j)) <= radius {
            push(hits, [one.number as u32, j as u32]);
        }
    }
}

/// The words of each row of a tile, folded onto 32 bits. Behind its end there is room for the last look.
struct Folds {
    begin: usize,
    end: usize,
    folds: [u32; TILE + FOLDS],
}

/// Folds where there are no columns, and where there are no rows: all of them far from each other.
const NO_COLUMNS: [u32; FOLDS] = pads([0, 0xffff, 0x00ff_00ff, 0x00ff_ff00]);
const NO_ROWS: [u32; FOLDS] = pads([0x0f0f_0f0f, 0x0f0f_f0f0, 0x0ff0_0ff0, 0x0ff0_f00f]);

/// These and their complements, away from zero, which rows may well be.
const fn pads(four: [u32; FOLDS / 2]) -> [u32; FOLDS] {
    let mut pads = [0x9e37_79b9; FOLDS];
    let mut at = 0;
    while at < FOLDS {
        pads[at] ^= if at < FOLDS / 2 { four[at] } else { !four[at - FOLDS / 2] };
        at += 1;
    }
    pads
}

impl Folds {
    #[inline(always)]
    fn new<const W: usize>(planes: &Planes<'_, W>, columns: Range<usize>) -> Folds {
        let mut folds = [0; TILE + FOLDS];
        for (fold, j) in folds.iter_mut().zip(columns.clone()) {
            *fold = folded(&row(planes, j));
        }
        folds[columns.len()..columns.len() + FOLDS].copy_from_slice(&NO_COLUMNS);
        Folds { begin: columns.start, end: columns.end, folds }
    }

    /// Some folds from column *j* on, twice, so that each turn of them is a slice.
    #[inline(always)]
    fn turned(&self, j: usize) -> [u32; 2 * FOLDS] {
        let some = self.folds[j - self.begin..].first_chunk::<FOLDS>().unwrap_or(&NO_COLUMNS);
        std::array::from_fn(|at| some[at % FOLDS])
    }

    /// Compare up to `FOLDS` rows with the columns from one on.
    #[inline(always)]
    fn compare<const W: usize>(
        &self,
        left: &Planes<'_, W>,
        rows: Range<usize>,
        right: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        let mut folds = NO_ROWS;
        for (fold, i) in folds.iter_mut().zip(rows.clone()) {
            *fold = folded(&row(left, i));
        }
        let folds: [u32; 2 * FOLDS] = std::array::from_fn(|at| folds[at % FOLDS]);
        for j in columns.step_by(FOLDS) {
            if near(&self.turned(j), &folds, 0..FOLDS, radius) {
                for i in rows.clone() {
                    plainly(&Row::of(left, i), right, j..self.end.min(j + FOLDS), radius, hits);
                }
            }
        }
    }
}

/// Whether one of some folds is within the radius, which is at most `FOLDED`, of one of others, in some of the turns.
#[inline(always)]
fn near(some: &[u32; 2 * FOLDS], others: &[u32; 2 * FOLDS], turns: Range<usize>, radius: u32) -> bool {
    match radius {
        0 => near_within::<0>(some, others, turns),
        1 => near_within::<1>(some, others, turns),
        2 => near_within::<2>(some, others, turns),
        3 => near_within::<3>(some, others, turns),
        4 => near_within::<4>(some, others, turns),
        _ => near_within::<FOLDED>(some, others, turns),
    }
}

#[inline(always)]
fn near_within<const K: u32>(some: &[u32; 2 * FOLDS], others: &[u32; 2 * FOLDS], turns: Range<usize>) -> bool {
    let mut found = [0u32; FOLDS];
    for turn in turns {
        for at in 0..FOLDS {
            let mut x = some[at] ^ others[at + turn];
            for _ in 0..K {
                x &= x.wrapping_sub(1); // of 0 stays 0
            }
            found[at] |= u32::from(x == 0);
        }
    }
    found.iter().fold(0, |all, one| all | one) != 0
}

#[inline(always)]
fn folded<const W: usize>(row: &[u64; W]) -> u32 {
    let word = row.iter().fold(0, |all, word| all ^ word);
    (word ^ word >> 32) as u32
}
