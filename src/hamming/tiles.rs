#![forbid(unsafe_code)]
//! The loop over pairs, but for AVX-512: one row with several columns at once, or several rows with several columns.
//!
//! Nearly all pairs are too far apart, so all that has to be said of some of them is that none is near; where one is,
//! they are compared one by one. For a small radius rows are folded first, onto 32 bits by XOR, which brings no two of
//! them further apart. Folds are not counted: a number of at most k bits is 0 once its lowest bit was cleared k times.
//!
//! ```text
//! radius small: for each tile of columns, for 8 rows, for 8 columns: if a fold is near: compare these one by one
//! else:         for each row, for 8 columns: if one is near: compare these one by one
//! ```
//!
//! Folds stay in registers where a level has its own form of them; the portable one are plain loops over eight numbers.

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
pub const FOLDS: usize = 8;
/// Fewer columns than this are not worth folding.
const FEW: usize = 6;

/// What instructions are needed for.
pub trait Near: Copy {
    type Folds: Folds;

    /// Whether one of `COLUMNS` columns from *j* on, all of which exist, may be within the radius of a row.
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool;
}

/// `FOLDS` rows or columns, each folded onto 32 bits. Lanes may stand in any order.
pub trait Folds: Copy {
    /// The folds of the rows of the range, at most `FOLDS`; pads in the lanes that are left.
    fn of<N: Near<Folds = Self>, const W: usize>(
        cpu: N,
        planes: &Planes<'_, W>,
        rows: Range<usize>,
        pads: &[u32; FOLDS],
    ) -> Self;

    /// Whether one of them is within the radius, which is at most `FOLDED`, of one of the others.
    fn near(self, others: Self, radius: u32) -> bool;

    /// Whether two of them are within the radius of each other.
    fn near_each_other(self, radius: u32) -> bool;
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
    for columns in parts::<TILE>(range.clone()) {
        let folds = Tile::new(cpu, planes, columns.clone());
        for rows in parts::<FOLDS>(range.start..columns.start) {
            let own = N::Folds::of(cpu, planes, rows.clone(), &NO_ROWS);
            folds.compare(own, planes, rows, planes, columns.clone(), radius, hits);
        }
        for rows in parts::<FOLDS>(columns.clone()) {
            let own = folds.at(rows.start);
            if own.near_each_other(radius) {
                for i in rows.clone() {
                    plainly(&Row::of(planes, i), planes, i + 1..rows.end, radius, hits);
                }
            }
            folds.compare(own, planes, rows.clone(), planes, rows.end..columns.end, radius, hits);
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
    for columns in parts::<TILE>(columns) {
        let folds = Tile::new(cpu, right, columns.clone());
        for rows in parts::<FOLDS>(rows.clone()) {
            let own = N::Folds::of(cpu, left, rows.clone(), &NO_ROWS);
            folds.compare(own, left, rows, right, columns.clone(), radius, hits);
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

#[inline(always)]
fn parts<const SIZE: usize>(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(SIZE).map(move |begin| begin..end.min(begin + SIZE))
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

/// The folds of columns.
struct Tile<F> {
    begin: usize,
    folds: [F; TILE / FOLDS],
}

impl<F: Folds> Tile<F> {
    #[inline(always)]
    fn new<N: Near<Folds = F>, const W: usize>(cpu: N, planes: &Planes<'_, W>, columns: Range<usize>) -> Tile<F> {
        let begin = columns.start;
        let mut parts = parts::<FOLDS>(columns);
        let first = F::of(cpu, planes, parts.next().unwrap_or(begin..begin), &NO_COLUMNS);
        let mut folds = [first; TILE / FOLDS];
        for (folds, columns) in folds[1..].iter_mut().zip(parts) {
            *folds = F::of(cpu, planes, columns, &NO_COLUMNS);
        }
        Tile { begin, folds }
    }

    /// The folds of the columns from *j* on, which begins a part.
    #[inline(always)]
    fn at(&self, j: usize) -> F {
        self.folds[(j - self.begin) / FOLDS]
    }

    /// Compare rows, at most `FOLDS`, with some columns of the tile.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn compare<const W: usize>(
        &self,
        own: F,
        left: &Planes<'_, W>,
        rows: Range<usize>,
        right: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        for columns in parts::<FOLDS>(columns) {
            if own.near(self.at(columns.start), radius) {
                for i in rows.clone() {
                    plainly(&Row::of(left, i), right, columns.clone(), radius, hits);
                }
            }
        }
    }
}

/// The portable folds. In each of eight turns a lane meets another one.
impl Folds for [u32; FOLDS] {
    #[inline(always)]
    fn of<N: Near<Folds = Self>, const W: usize>(
        _: N,
        planes: &Planes<'_, W>,
        rows: Range<usize>,
        pads: &[u32; FOLDS],
    ) -> Self {
        let mut folds = *pads;
        for (fold, i) in folds.iter_mut().zip(rows) {
            let word = row(planes, i).iter().fold(0, |all, word| all ^ word);
            *fold = (word ^ word >> 32) as u32;
        }
        folds
    }

    #[inline(always)]
    fn near(self, others: Self, radius: u32) -> bool {
        near(&self, &others, 0..FOLDS, radius)
    }

    #[inline(always)]
    fn near_each_other(self, radius: u32) -> bool {
        // Half of the turns are enough: the others are these, seen from the other side.
        near(&self, &self, 1..FOLDS / 2 + 1, radius)
    }
}

#[inline(always)]
fn near(some: &[u32; FOLDS], others: &[u32; FOLDS], turns: Range<usize>, radius: u32) -> bool {
    // Twice, so that each turn of them is a slice.
    let others: [u32; 2 * FOLDS] = std::array::from_fn(|at| others[at % FOLDS]);
    match radius {
        0 => near_within::<0>(some, &others, turns),
        1 => near_within::<1>(some, &others, turns),
        2 => near_within::<2>(some, &others, turns),
        3 => near_within::<3>(some, &others, turns),
        4 => near_within::<4>(some, &others, turns),
        _ => near_within::<FOLDED>(some, &others, turns),
    }
}

#[inline(always)]
fn near_within<const K: u32>(some: &[u32; FOLDS], others: &[u32; 2 * FOLDS], turns: Range<usize>) -> bool {
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
