#![forbid(unsafe_code)]
//! The loop over pairs for processors that compare one row with several columns at once.
//!
//! Nearly all pairs are too far apart, so all that instructions are needed for is to say of some columns that none is
//! near; where one is, they are compared one by one. For a small radius rows are folded first, onto 32 bits by XOR,
//! which brings no two of them further apart.
//!
//! ```text
//! radius small: for each tile of columns, for each row, for 32 columns: if a fold is near: compare these one by one
//! else:         for each row, for 8 columns: if one is near: compare these one by one
//! ```

use std::ops::Range;

use crate::hamming::planes::{Planes, distance, row};
use crate::system::memory::push;

/// Up to this radius rows are compared by their folds first, as with AVX-512.
const FOLDED: u32 = 5;
/// Columns whose folds are made at a time: a tile of them stays in the first cache.
const TILE: usize = 1024;
/// Columns that are compared at a time, by their bits and by their folds.
pub const COLUMNS: usize = 8;
pub const FOLDS: usize = 32;
/// Fewer columns than this are not worth folding.
const FEW: usize = 8;
/// Nor are fewer pairs of two ranges: the folds of a tile take room that must be cleared first.
const FEW_PAIRS: usize = 256;

/// What instructions are needed for.
pub trait Near: Copy {
    /// Whether one of `COLUMNS` columns from *j* on, all of which exist, may be within the radius of a row.
    fn columns<const W: usize>(self, one: &[u64; W], planes: &Planes<'_, W>, j: usize, radius: u32) -> bool;

    /// Whether one of the folds is within the radius, which is at most `FOLDED`, of another one.
    fn folds(self, fold: u32, some: &[u32; FOLDS], radius: u32) -> bool;
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
        for i in range.start..columns.end {
            let columns = columns.start.max(i + 1)..columns.end;
            folds.compare(cpu, &Row::of(planes, i), planes, columns, radius, hits);
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
    if radius > FOLDED || rows.len() < 2 || rows.len() * columns.len() < FEW_PAIRS {
        for i in rows {
            count(cpu, &Row::of(left, i), right, columns.clone(), radius, hits);
        }
        return;
    }
    for columns in tiles(columns) {
        let folds = Folds::new(right, columns.clone());
        for i in rows.clone() {
            folds.compare(cpu, &Row::of(left, i), right, columns.clone(), radius, hits);
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
    folds: [u32; TILE + FOLDS],
}

impl Folds {
    #[inline(always)]
    fn new<const W: usize>(planes: &Planes<'_, W>, columns: Range<usize>) -> Folds {
        let mut folds = [0; TILE + FOLDS];
        for (fold, j) in folds.iter_mut().zip(columns.clone()) {
            *fold = folded(&row(planes, j));
        }
        Folds { begin: columns.start, folds }
    }

    /// Compare row *i* with some of the columns.
    #[inline(always)]
    fn compare<const W: usize, N: Near>(
        &self,
        cpu: N,
        one: &Row<W>,
        planes: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        let fold = folded(&one.words);
        let mut j = columns.start;
        while j < columns.end {
            if let Some(some) = self.folds[j - self.begin..].first_chunk()
                && cpu.folds(fold, some, radius)
            {
                plainly(one, planes, j..columns.end.min(j + FOLDS), radius, hits);
            }
            j += FOLDS;
        }
    }
}

#[inline(always)]
fn folded<const W: usize>(row: &[u64; W]) -> u32 {
    let word = row.iter().fold(0, |all, word| all ^ word);
    (word ^ word >> 32) as u32
}
