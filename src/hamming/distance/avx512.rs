#![allow(unsafe_code)]
//! The AVX-512 form of `distance`: eight columns a vector, several rows kept in registers.
//!
//! For each vector of columns the smallest distance to any of the rows is taken first; only
//! when that is within the radius are the rows compared one by one. Nearly all vectors hold
//! no hit, so the loop is one XOR, one population count and one minimum per eight pairs.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::hamming::distance::Planes;
use crate::system::memory::{more_room, push};
use crate::system::simd::Avx512;

impl Avx512 {
    /// See `distance::pairs_within`.
    pub fn pairs_within<const W: usize>(
        self,
        planes: &Planes<'_, W>,
        range: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_within(planes, range, radius, hits) }
    }

    /// See `distance::pairs_between`.
    pub fn pairs_between<const W: usize>(
        self,
        left: &Planes<'_, W>,
        rows: Range<usize>,
        right: &Planes<'_, W>,
        columns: Range<usize>,
        radius: u32,
        hits: &mut Vec<[u32; 2]>,
    ) {
        // SAFETY: `in_force` found the instructions.
        unsafe { pairs_between(left, rows, right, columns, radius, hits) }
    }
}

/// Pairs `i < j` of the range within the radius; `range.end` must lie in every plane.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub fn pairs_within<const W: usize>(
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    if radius <= FOLDED {
        return folded_within(planes, range, radius, hits);
    }
    let mut i = range.start;
    while range.end - i >= MANY {
        few(planes, i..i + 16, radius, hits);
        pairs_between(planes, i..i + 16, planes, i + 16..range.end, radius, hits);
        i += 16;
    }
    few(planes, i..range.end, radius, hits);
}

/// From this many rows on, tall tiles pay.
const MANY: usize = 48;
/// Up to this radius rows are compared by their folds first: of random ones 6 in 100,000 pass.
const FOLDED: u32 = 5;

/// `pairs_within` for a small radius. The words of a row are folded onto 32 bits by XOR, which brings no
/// two rows further apart: only where two folds are within the radius are the rows themselves compared.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn folded_within<const W: usize>(planes: &Planes<'_, W>, range: Range<usize>, radius: u32, hits: &mut Vec<[u32; 2]>) {
    let end = range.end;
    let limit = _mm512_set1_epi32(radius as i32);
    let pads = pads();
    let mut i = range.start;
    while i + 1 < end {
        let rows = fold(planes, i, end, pads);
        let own = i..(i + 16).min(end);
        // Half of the turns are enough: the others are these, seen from the other side.
        if folds_near::<1, 9>(rows, rows, limit) {
            few(planes, own.clone(), radius, hits);
        }
        let mut j = i + 16;
        while j < end {
            if folds_near::<0, 16>(rows, fold(planes, j, end, pads), limit) {
                pairs_between(planes, own.clone(), planes, j..(j + 16).min(end), radius, hits);
            }
            j += 16;
        }
        i += 16;
    }
}

/// Whether the fold of a row is within the limit of a column's, in one of the turns.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn folds_near<const FIRST: usize, const LAST: usize>(rows: __m512i, columns: __m512i, limit: __m512i) -> bool {
    let mut least = measure_folds(rows, columns, FIRST);
    for turn in FIRST + 1..LAST {
        least = _mm512_min_epu32(least, measure_folds(rows, columns, turn));
    }
    _mm512_cmple_epu32_mask(least, limit) != 0
}

/// Lane `l` of turn `t` names lane `l + t`, around.
const FOLD_TURNS: [[u32; 16]; 16] = {
    let mut turns = [[0; 16]; 16];
    let mut place = 0;
    while place < 256 {
        turns[place / 16][place % 16] = (place / 16 + place % 16) as u32 % 16;
        place += 1;
    }
    turns
};

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn measure_folds(rows: __m512i, columns: __m512i, turn: usize) -> __m512i {
    // SAFETY: a turn is sixteen numbers.
    let turn = unsafe { _mm512_loadu_si512(FOLD_TURNS[turn].as_ptr().cast()) };
    _mm512_popcnt_epi32(_mm512_xor_si512(rows, _mm512_permutexvar_epi32(turn, columns)))
}

/// The folds of sixteen rows; the pads in lanes beyond the end.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold<const W: usize>(planes: &Planes<'_, W>, i: usize, end: usize, pads: __m512i) -> __m512i {
    let count = end - i;
    let half = |first: usize| {
        let inside = lanes(count.saturating_sub(first));
        let words = load(planes, i + first.min(count), inside, &[_mm512_setzero_si512(); W]);
        let mut sum = words[0];
        for word in &words[1..] {
            sum = _mm512_xor_si512(sum, *word);
        }
        _mm512_cvtepi64_epi32(_mm512_xor_si512(sum, _mm512_srli_epi64::<32>(sum)))
    };
    let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(0)), half(8));
    if count >= 16 {
        return both;
    }
    _mm512_mask_mov_epi32(pads, ((1u32 << count) - 1) as __mmask16, both)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn pads() -> __m512i {
    // SAFETY: sixteen numbers.
    unsafe { _mm512_loadu_si512(PADS.as_ptr().cast()) }
}

/// For lanes without a row: any two of these numbers are sixteen bits apart, so that such lanes seldom look like a hit.
const PADS: [u32; 16] = {
    let mut numbers = [0; 16];
    let mut lane = 0;
    while lane < 16 {
        // The codewords of a Hadamard code of 16 bits, twice.
        let (mut word, mut bit) = (0u32, 0);
        while bit < 16 {
            word |= ((lane as u32 & bit).count_ones() & 1) << bit;
            bit += 1;
        }
        numbers[lane] = word << 16 | (word ^ 0x5a5a);
        lane += 1;
    }
    numbers
};

/// Pairs `i < j` of few rows: eight against eight, one of the two turned lane by lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn few<const W: usize>(planes: &Planes<'_, W>, range: Range<usize>, radius: u32, hits: &mut Vec<[u32; 2]>) {
    if range.len() < 2 {
        return;
    }
    let end = range.end;
    let limit = _mm512_set1_epi64(i64::from(radius));
    // Lanes beyond the end are far from most rows, so that they seldom look like a hit.
    let mut pad = [_mm512_setzero_si512(); W];
    for word in 0..W {
        pad[word] = _mm512_set1_epi64(!planes[word][range.start] as i64);
    }
    let mut i = range.start;
    while i < end {
        let inside = lanes(end - i);
        let rows = load(planes, i, inside, &pad);
        // Half of the turns are enough: the others are these, seen from the other side.
        if turned::<W, 1, 5>(&rows, &rows, inside, limit) {
            for turn in 1..5 {
                let inside = if turn == 4 { inside & 0x0f } else { inside };
                emit_turned(&rows, i, inside, &rows, i, end, turn, limit, hits);
            }
        }
        let mut j = i + 8;
        while j < end {
            let columns = load(planes, j, lanes(end - j), &pad);
            if turned::<W, 0, 8>(&rows, &columns, inside, limit) {
                for turn in 0..8 {
                    emit_turned(&rows, i, inside, &columns, j, end, turn, limit, hits);
                }
            }
            j += 8;
        }
        i += 8;
    }
}

/// Lane `l` of turn `t` names lane `l + t`, around.
const TURNS: [[u64; 8]; 8] = {
    let mut turns = [[0; 8]; 8];
    let mut place = 0;
    while place < 64 {
        turns[place / 8][place % 8] = (place / 8 + place % 8) as u64 % 8;
        place += 1;
    }
    turns
};

/// The distance of each row to the column at its lane after a turn.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn measure_turned<const W: usize>(rows: &[__m512i; W], columns: &[__m512i; W], turn: usize) -> __m512i {
    // SAFETY: a turn is eight words.
    let turn = unsafe { _mm512_loadu_si512(TURNS[turn].as_ptr().cast()) };
    let mut turned = [_mm512_setzero_si512(); W];
    for word in 0..W {
        turned[word] = _mm512_permutexvar_epi64(turn, columns[word]);
    }
    measure(rows, &turned)
}

/// Whether a row inside is within the limit of a column, in one of the turns.
#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn turned<const W: usize, const FIRST: usize, const LAST: usize>(
    rows: &[__m512i; W],
    columns: &[__m512i; W],
    inside: __mmask8,
    limit: __m512i,
) -> bool {
    let mut least = measure_turned(rows, columns, FIRST);
    for turn in FIRST + 1..LAST {
        least = _mm512_min_epu32(least, measure_turned(rows, columns, turn));
    }
    _mm512_mask_cmple_epu64_mask(inside, least, limit) != 0
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
#[allow(clippy::too_many_arguments)]
fn emit_turned<const W: usize>(
    rows: &[__m512i; W],
    i: usize,
    inside: __mmask8,
    columns: &[__m512i; W],
    j: usize,
    end: usize,
    turn: usize,
    limit: __m512i,
    hits: &mut Vec<[u32; 2]>,
) {
    let mut near = _mm512_mask_cmple_epu64_mask(inside, measure_turned(rows, columns, turn), limit);
    while near != 0 {
        let lane = near.trailing_zeros() as usize;
        let (one, two) = (i + lane, j + (lane + turn) % 8);
        if two < end {
            push(hits, [one.min(two) as u32, one.max(two) as u32]);
        }
        near &= near - 1;
    }
}

/// Pairs of two ranges within the radius; both ends must lie in their planes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub fn pairs_between<const W: usize>(
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    match columns.len().div_ceil(8) {
        0 | 1 => return narrow::<W, 1>(left, rows, right, columns, radius, hits),
        2 => return narrow::<W, 2>(left, rows, right, columns, radius, hits),
        3 | 4 if W == 1 => return narrow::<W, 4>(left, rows, right, columns, radius, hits),
        _ => {}
    }
    let mut i = rows.start;
    while i < rows.end {
        let count = rows.end - i;
        if W == 1 && count >= 16 {
            rectangle::<W, 16>(left, i, right, columns.start, columns.end, radius, hits);
            i += 16;
        } else if W <= 2 && count >= 8 {
            rectangle::<W, 8>(left, i, right, columns.start, columns.end, radius, hits);
            i += 8;
        } else if count >= 4 {
            rectangle::<W, 4>(left, i, right, columns.start, columns.end, radius, hits);
            i += 4;
        } else {
            rectangle::<W, 1>(left, i, right, columns.start, columns.end, radius, hits);
            i += 1;
        }
    }
}

/// Rows for whose hits there is room at a time.
const ROOM: usize = 64;

/// `pairs_between` for columns that fit `V` vectors. Where they are so few, a guess whether a row has a hit
/// costs more than to write down what may be nothing: so there is no branch.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn narrow<const W: usize, const V: usize>(
    left: &Planes<'_, W>,
    rows: Range<usize>,
    right: &Planes<'_, W>,
    columns: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let limit = _mm512_set1_epi64(i64::from(radius));
    let zeros = [_mm512_setzero_si512(); W];
    let (mut near, mut inside, mut names) = ([zeros; V], [0; V], [_mm512_setzero_si512(); V]);
    for part in 0..V {
        let first = columns.start + part * 8;
        inside[part] = lanes(columns.end.saturating_sub(first));
        near[part] = load(right, first.min(columns.end), inside[part], &zeros);
        let numbers = _mm512_add_epi64(_mm512_set1_epi64(first as i64), _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0));
        names[part] = _mm512_slli_epi64::<32>(numbers);
    }
    let mut count = hits.len();
    for (at, i) in rows.enumerate() {
        if at % ROOM == 0 {
            // SAFETY: this many were written.
            unsafe { hits.set_len(count) };
            // A vector is written whole, however few of its lanes are hits.
            more_room(hits, ROOM * columns.len() + 8);
        }
        let query = query(left, i);
        let own = _mm512_set1_epi64(i as i64);
        for part in 0..V {
            let found = _mm512_mask_cmple_epu64_mask(inside[part], measure(&query, &near[part]), limit);
            let pairs = _mm512_maskz_compress_epi64(found, _mm512_or_si512(own, names[part]));
            // SAFETY: since room was made at most one pair for each row and column was counted, and there is
            // room for eight more.
            unsafe { _mm512_storeu_si512(hits.as_mut_ptr().add(count).cast(), pairs) };
            count += found.count_ones() as usize;
        }
    }
    // SAFETY: this many were written.
    unsafe { hits.set_len(count) };
}

/// `R` rows from `i` against the columns `j..end`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn rectangle<const W: usize, const R: usize>(
    left: &Planes<'_, W>,
    i: usize,
    right: &Planes<'_, W>,
    mut j: usize,
    end: usize,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let limit = _mm512_set1_epi64(i64::from(radius));
    loop {
        j = next_near::<W, R>(left, i, right, j, end, limit);
        if j == end {
            return;
        }
        let inside = lanes(end - j);
        let columns = load(right, j, inside, &[_mm512_setzero_si512(); W]);
        for r in 0..R {
            let distances = measure(&query(left, i + r), &columns);
            emit(_mm512_mask_cmple_epu64_mask(inside, distances, limit), i + r, j, hits);
        }
        j = (j + 8).min(end);
    }
}

/// The first eight columns from `j` on of which one is within the limit of one of `R` rows; or the last, if they
/// are fewer than eight, or the end.
#[inline(never)] // it calls nothing, so the rows stay in registers: beside `emit` they would not
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn next_near<const W: usize, const R: usize>(
    left: &Planes<'_, W>,
    i: usize,
    right: &Planes<'_, W>,
    mut j: usize,
    end: usize,
    limit: __m512i,
) -> usize {
    assert!(right.iter().all(|plane| plane.len() >= end), "the columns lie in every plane");
    let mut queries = [[_mm512_setzero_si512(); W]; R];
    for (r, own) in queries.iter_mut().enumerate() {
        *own = query(left, i + r);
    }
    while j + 8 <= end {
        let mut columns = [_mm512_setzero_si512(); W];
        for word in 0..W {
            // SAFETY: a plane has `end` words, and the eight from `j` on are among them.
            columns[word] = unsafe { _mm512_loadu_si512(right[word].as_ptr().add(j).cast()) };
        }
        let mut least = measure(&queries[0], &columns);
        for query in &queries[1..] {
            least = _mm512_min_epu32(least, measure(query, &columns));
        }
        if _mm512_cmple_epu64_mask(least, limit) != 0 {
            break;
        }
        j += 8;
    }
    j
}

/// One row in all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn query<const W: usize>(planes: &Planes<'_, W>, i: usize) -> [__m512i; W] {
    let mut query = [_mm512_setzero_si512(); W];
    for word in 0..W {
        query[word] = _mm512_set1_epi64(planes[word][i] as i64);
    }
    query
}

#[inline]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn measure<const W: usize>(query: &[__m512i; W], columns: &[__m512i; W]) -> __m512i {
    let mut sum = _mm512_popcnt_epi64(_mm512_xor_si512(query[0], columns[0]));
    for word in 1..W {
        sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(query[word], columns[word])));
    }
    sum
}

/// The columns from `j` in the lanes inside; the pad in the others.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<const W: usize>(planes: &Planes<'_, W>, j: usize, inside: __mmask8, pad: &[__m512i; W]) -> [__m512i; W] {
    let mut columns = *pad;
    let count = inside.count_ones() as usize;
    for word in 0..W {
        let some = &planes[word][j..j + count];
        // SAFETY: the mask has as many lanes as the slice has words; other lanes are not read.
        columns[word] = unsafe { _mm512_mask_loadu_epi64(pad[word], inside, some.as_ptr().cast()) };
    }
    columns
}

#[inline(always)]
fn lanes(count: usize) -> __mmask8 {
    if count >= 8 { 0xff } else { ((1u32 << count) - 1) as __mmask8 }
}

#[inline(always)]
fn emit(near: __mmask8, i: usize, j: usize, hits: &mut Vec<[u32; 2]>) {
    let mut left = near;
    while left != 0 {
        push(hits, [i as u32, (j + left.trailing_zeros() as usize) as u32]);
        left &= left - 1;
    }
}
