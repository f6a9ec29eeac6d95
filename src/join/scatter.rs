//! Rows moved to the parts that they belong to, a line of the cache at a time.

use std::ops::Range;

use crate::hamming::keys::BATCH;
use crate::join::family::Family;
use crate::join::job::{Job, Stop};
use crate::system::memory::zeros;
use crate::system::parallel::map;

pub const LINE: usize = 8;

/// The slices cut into a few chunks for each thread, so that none waits long for another.
pub fn chunks<'a, const W: usize>(slices: &[&'a [[u64; W]]], threads: usize) -> Vec<&'a [[u64; W]]> {
    let total: usize = slices.iter().map(|slice| slice.len()).sum();
    let wanted = if threads == 1 { 1 } else { 4 * threads };
    let size = total.div_ceil(wanted).max(1 << 14);
    slices.iter().flat_map(|slice| slice.chunks(size)).collect()
}

/// Rows on their way to their parts. The first is at the start of a cache line.
#[derive(Default)]
pub struct Scratch<const W: usize> {
    pub words: Vec<u64>,
}

impl<const W: usize> Scratch<W> {
    /// Make room for this many rows; what was there is lost.
    pub fn hold(&mut self, rows: usize) {
        let words = rows * W + LINE;
        if self.words.len() < words {
            self.words = Vec::new(); // freed before more is allocated
            self.words = zeros(words);
        }
    }

    pub fn first(&self) -> usize {
        self.words.as_ptr().align_offset(64).min(self.words.len())
    }

    pub fn rows(&self) -> &[[u64; W]] {
        self.words[self.first()..].as_chunks().0
    }

    pub fn rows_mut(&mut self) -> &mut [[u64; W]] {
        let first = self.first();
        self.words[first..].as_chunks_mut().0
    }
}

/// Where the parts of one chunk lie in the scratch rows.
pub struct ScatteredChunk {
    pub start: usize,
    pub bounds: Vec<usize>,
}

pub fn pieces_of<'a, const W: usize>(
    scratch: &'a [[u64; W]],
    pieces: &[ScatteredChunk],
    part: usize,
) -> Vec<&'a [[u64; W]]> {
    pieces
        .iter()
        .map(|piece| &scratch[piece.start + piece.bounds[part]..piece.start + piece.bounds[part + 1]])
        .filter(|slice| !slice.is_empty())
        .collect()
}

/// For each family the rows of `chunk` in each of its parts, counted in one pass.
pub fn count_parts<const W: usize>(chunk: &[[u64; W]], families: &[Family]) -> Vec<Vec<usize>> {
    let mut counts: Vec<Vec<usize>> = families.iter().map(|family| vec![0; family.parts]).collect();
    let mut keys = [0; BATCH];
    for rows in chunk.chunks(BATCH) {
        for (family, counts) in families.iter().zip(&mut counts) {
            family.split.extract(rows, &mut keys);
            for key in &keys[..rows.len()] {
                counts[*key as usize & (family.parts - 1)] += 1;
            }
        }
    }
    counts
}

/// Move the rows of `chunk` whose part is in `wanted` to `target`, part by part.
pub fn scatter<const W: usize>(
    chunk: &[[u64; W]],
    family: &Family,
    wanted: &Range<usize>,
    bounds: &[usize],
    target: &mut [[u64; W]],
) {
    let mut places = bounds.to_vec();
    let mut keys = [0; BATCH];
    let all = wanted.len() == family.parts;
    if family.parts <= 64 {
        for rows in chunk.chunks(BATCH) {
            family.split.extract(rows, &mut keys);
            for (row, key) in rows.iter().zip(&keys) {
                let part = *key as usize & (family.parts - 1);
                if all || wanted.contains(&part) {
                    target[places[part]] = *row;
                    places[part] += 1;
                }
            }
        }
        return;
    }
    // Write-combining: a part's rows wait in a line of their own until it is full, so that memory
    // is written a line at a time and never read for it. A row waits at its place in the target,
    // modulo the line.
    let mut lines: Vec<[u64; W]> = zeros(family.parts * LINE);
    for rows in chunk.chunks(BATCH) {
        family.split.extract(rows, &mut keys);
        for (row, key) in rows.iter().zip(&keys) {
            let part = *key as usize & (family.parts - 1);
            if !all && !wanted.contains(&part) {
                continue;
            }
            let place = places[part];
            let slot = place % LINE;
            let line = &mut lines[part * LINE..][..LINE];
            line[slot] = *row;
            places[part] = place.wrapping_add(1);
            if slot == LINE - 1 {
                let first = (place - slot).max(bounds[part]);
                match (target[first..=place].first_chunk_mut::<LINE>(), line.first_chunk::<LINE>()) {
                    (Some(target), Some(line)) => stream(line, target),
                    _ => target[first..=place].copy_from_slice(&line[first % LINE..]),
                }
            }
        }
    }
    for part in wanted.clone() {
        let place = places[part];
        let first = (place - place % LINE).max(bounds[part]);
        let line = &lines[part * LINE..][..LINE];
        target[first..place].copy_from_slice(&line[first % LINE..][..place - first]);
    }
    finish_streams();
}

/// Write a line of rows past the caches, where the machine can. Miri knows no such writing.
#[inline(always)]
pub fn stream<const W: usize>(line: &[[u64; W]; LINE], target: &mut [[u64; W]; LINE]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if target.as_ptr().addr().is_multiple_of(16) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let (line, target): (*const __m128i, *mut __m128i) = (line.as_ptr().cast(), target.as_mut_ptr().cast());
        for at in 0..size_of::<[[u64; W]; LINE]>() / 16 {
            // SAFETY: both are this many times 16 bytes, and the target is aligned to 16.
            unsafe { _mm_stream_si128(target.add(at), _mm_loadu_si128(line.add(at))) };
        }
        return;
    }
    *target = *line;
}

/// Lines written past the caches are there for other threads after this.
pub fn finish_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Scatter all chunks, each into its own stretch of the scratch rows.
pub fn spread<const W: usize>(
    chunks: &[&[[u64; W]]],
    family: &Family,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
) -> Result<Vec<ScatteredChunk>, Stop> {
    let counts = map(job.threads, chunks.to_vec(), |chunk| count_parts(chunk, std::slice::from_ref(family)).remove(0));
    let counts: Vec<&[usize]> = counts.iter().map(|counts| &counts[..]).collect();
    spread_counted(chunks, &counts, family, &(0..family.parts), scratch, job)
}

pub fn spread_counted<const W: usize>(
    chunks: &[&[[u64; W]]],
    counts: &[&[usize]],
    family: &Family,
    wanted: &Range<usize>,
    scratch: &mut Scratch<W>,
    job: &Job<'_>,
) -> Result<Vec<ScatteredChunk>, Stop> {
    job.check()?;
    let mut pieces = Vec::with_capacity(chunks.len());
    let mut start = 0;
    for counts in counts {
        let mut bounds = vec![0; family.parts + 1];
        for part in 0..family.parts {
            bounds[part + 1] = bounds[part] + if wanted.contains(&part) { counts[part] } else { 0 };
        }
        let length = bounds[family.parts];
        pieces.push(ScatteredChunk { start, bounds });
        start += length.next_multiple_of(LINE);
    }
    scratch.hold(start);
    let mut inputs = Vec::with_capacity(chunks.len());
    let mut left = scratch.rows_mut();
    for (chunk, piece) in chunks.iter().zip(&pieces) {
        let (own, others) = left.split_at_mut(piece.bounds[family.parts].next_multiple_of(LINE));
        inputs.push((*chunk, &piece.bounds, own));
        left = others;
    }
    map(job.threads, inputs, |(chunk, bounds, own)| scatter(chunk, family, wanted, bounds, own));
    job.check()?;
    Ok(pieces)
}
