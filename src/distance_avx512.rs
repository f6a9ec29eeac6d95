//! The AVX-512 form of `distance`: eight columns a vector, several rows kept in registers.
//!
//! For each vector of columns the smallest distance to any of the rows is taken first; only
//! when that is within the radius are the rows looked at one by one. Nearly all vectors hold
//! no hit, so the loop is one XOR, one population count and one minimum per eight pairs.

use std::arch::x86_64::*;
use std::ops::Range;

use crate::distance::Planes;

/// Pairs `i < j` of the range within the radius; `range.end` must lie in every plane.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
pub fn pairs_within<const W: usize>(
    planes: &Planes<'_, W>,
    range: Range<usize>,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let mut i = range.start;
    let many = match W {
        1 => 16,
        2 => 8,
        _ => 4,
    };
    while i < range.end {
        let left = range.end - i;
        if many == 16 && left >= 48 {
            triangle::<W, 16>(planes, i, range.end, radius, hits);
            i += 16;
        } else if many >= 8 && left >= 24 {
            triangle::<W, 8>(planes, i, range.end, radius, hits);
            i += 8;
        } else {
            triangle::<W, 4>(planes, i, range.end, radius, hits);
            i += 4;
        }
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

/// `R` rows from `i` against all later columns; fewer rows if the range ends.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn triangle<const W: usize, const R: usize>(
    planes: &Planes<'_, W>,
    i: usize,
    end: usize,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let queries = broadcast::<W, R>(planes, i, end);
    let limit = _mm512_set1_epi64(i64::from(radius));
    // Columns that may be rows themselves: a row looks only at what stands after it.
    let mut j = i + 1;
    while j < end && j < i + R {
        let inside = lanes(end - j);
        let columns = load(planes, j, inside);
        for (r, query) in queries.iter().enumerate() {
            if i + r >= end {
                break;
            }
            let after = if i + r >= j { 0xffu32 << (i + r + 1 - j) } else { 0xff };
            let wanted = inside & after as __mmask8;
            let near = _mm512_mask_cmple_epu64_mask(wanted, measure(query, &columns), limit);
            if near != 0 {
                emit(near, i + r, j, hits);
            }
        }
        j += 8;
    }
    sweep(&queries, i, planes, j, end, limit, hits);
}

/// `R` rows from `i` against a range of columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn rectangle<const W: usize, const R: usize>(
    left: &Planes<'_, W>,
    i: usize,
    right: &Planes<'_, W>,
    start: usize,
    end: usize,
    radius: u32,
    hits: &mut Vec<[u32; 2]>,
) {
    let queries = broadcast::<W, R>(left, i, i + R);
    let limit = _mm512_set1_epi64(i64::from(radius));
    sweep(&queries, i, right, start, end, limit, hits);
}

/// All rows of `queries`, the first being number `i`, against the columns `j..end`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,bmi1,bmi2,popcnt")]
fn sweep<const W: usize, const R: usize>(
    queries: &[[__m512i; W]; R],
    i: usize,
    planes: &Planes<'_, W>,
    mut j: usize,
    end: usize,
    limit: __m512i,
    hits: &mut Vec<[u32; 2]>,
) {
    while j + 8 <= end {
        let columns = load_full(planes, j);
        let mut least = measure(&queries[0], &columns);
        for query in &queries[1..] {
            least = _mm512_min_epu64(least, measure(query, &columns));
        }
        if _mm512_cmple_epu64_mask(least, limit) != 0 {
            for (r, query) in queries.iter().enumerate() {
                let near = _mm512_cmple_epu64_mask(measure(query, &columns), limit);
                if near != 0 {
                    emit(near, i + r, j, hits);
                }
            }
        }
        j += 8;
    }
    if j < end {
        let inside = lanes(end - j);
        let columns = load(planes, j, inside);
        for (r, query) in queries.iter().enumerate() {
            let near = _mm512_mask_cmple_epu64_mask(inside, measure(query, &columns), limit);
            if near != 0 {
                emit(near, i + r, j, hits);
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast<const W: usize, const R: usize>(planes: &Planes<'_, W>, i: usize, end: usize) -> [[__m512i; W]; R] {
    let mut queries = [[_mm512_setzero_si512(); W]; R];
    for (r, query) in queries.iter_mut().enumerate() {
        let index = (i + r).min(end - 1);
        for word in 0..W {
            query[word] = _mm512_set1_epi64(planes[word][index] as i64);
        }
    }
    queries
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

#[inline]
#[target_feature(enable = "avx512f")]
fn load_full<const W: usize>(planes: &Planes<'_, W>, j: usize) -> [__m512i; W] {
    let mut columns = [_mm512_setzero_si512(); W];
    for word in 0..W {
        let eight = &planes[word][j..j + 8];
        // SAFETY: the slice above holds the eight words that are read.
        columns[word] = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
    }
    columns
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load<const W: usize>(planes: &Planes<'_, W>, j: usize, inside: __mmask8) -> [__m512i; W] {
    let mut columns = [_mm512_setzero_si512(); W];
    let count = inside.count_ones() as usize;
    for word in 0..W {
        let some = &planes[word][j..j + count];
        // SAFETY: the mask has as many lanes as the slice has words; other lanes are not read.
        columns[word] = unsafe { _mm512_maskz_loadu_epi64(inside, some.as_ptr().cast()) };
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
        hits.push([i as u32, (j + left.trailing_zeros() as usize) as u32]);
        left &= left - 1;
    }
}
