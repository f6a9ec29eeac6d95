//! The kernels for CPUs with AVX-512 (with VBMI, VBMI2, BITALG and GFNI).
//!
//! Each has a portable twin that gives the same bits.

mod directory;
mod grams;
mod hash;
mod lookup;
mod md5;
mod normalize;
mod offsets;
mod tally;
mod votes;

use crate::bytes::{Rules, Tables};
use crate::directory::{Directory, MATCHES};
use crate::frequencies::{Bucket, Slots};
use crate::grams::{GRAMS, Grams};
use crate::md5::LANES;
use crate::simd::{self, Level};
use crate::spread::Spread;

pub use normalize::State;

/// Stands for the instructions: whoever has one may use the kernels.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Avx512 {
    /// The kernels, where the level in force has them.
    #[inline]
    pub fn in_force() -> Option<Avx512> {
        (simd::level() == Level::Avx512).then_some(Avx512(()))
    }

    /// See `votes::count`.
    pub fn count(self, hashes: &[u64], ones: &mut [u32; 64]) {
        // SAFETY: `in_force` found the instructions; the same holds in all functions below.
        unsafe { votes::count(hashes, ones) }
    }

    /// See `votes::count_windows`; false, with nothing done, for an uncommon number of words.
    pub fn count_windows(self, text: &[u8], windows: usize, width: usize, seed: u64, ones: &mut [[u32; 64]]) -> bool {
        // SAFETY: as in `count`.
        unsafe { votes::count_windows(text, windows, width, seed, ones) }
    }

    /// See `votes::count_parts`; false, with nothing done, for an uncommon number of words.
    pub fn count_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, ones: &mut [[u32; 64]]) -> bool {
        // SAFETY: as in `count`.
        unsafe { votes::count_parts(text, starts, ends, seed, ones) }
    }

    /// See `votes::weigh`; false, with nothing done, where a weight has more than 16 bits.
    pub fn weigh(self, hashes: &[u64], weights: &[u32], ones: &mut [u64; 64]) -> bool {
        // SAFETY: as in `count`.
        unsafe { votes::weigh(hashes, weights, ones) }
    }

    /// Bit i where `ones[i]` is at least *least*.
    pub fn at_least(self, ones: &[u32; 64], least: u32) -> u64 {
        // SAFETY: as in `count`.
        unsafe { votes::at_least(ones, least) }
    }

    /// See `tally::first_round`.
    pub fn first_round(self, all: &[u64], table: &mut [u16], tallies: &mut [u16], waiting: &mut [u16]) -> usize {
        // SAFETY: as in `count`.
        unsafe { tally::first_round(all, table, tallies, waiting) }
    }

    /// See `tally::gather`.
    pub fn gather(self, all: &[u64], tallies: &[u16], values: &mut [u64], counts: &mut [u32]) -> usize {
        // SAFETY: as in `count`.
        unsafe { tally::gather(all, tallies, values, counts) }
    }

    /// See `tally::first_round`.
    pub fn first_round_of_grams(
        self,
        all: Grams<'_>,
        table: &mut [u16],
        tallies: &mut [u16],
        waiting: &mut [u16],
    ) -> usize {
        // SAFETY: as in `count`.
        unsafe { tally::first_round(all, table, tallies, waiting) }
    }

    /// See `tally::gather`.
    pub fn gather_grams(self, all: Grams<'_>, tallies: &[u16], values: &mut [u32], counts: &mut [u32]) -> usize {
        // SAFETY: as in `count`.
        unsafe { tally::gather_grams(all, tallies, values, counts) }
    }

    /// See `grams::Census::add`.
    pub fn count_grams(self, grams: Grams<'_>, document: u32, seen: &mut [u32; GRAMS]) {
        // SAFETY: as in `count`.
        unsafe { grams::count(grams, document, seen) }
    }

    /// See `grams::look_up`.
    pub fn look_up_grams(self, table: &[u8; GRAMS], grams: &[u32], out: &mut [u8]) {
        // SAFETY: as in `count`.
        unsafe { grams::look_up(table, grams, out) }
    }

    /// See `grams::hashes`.
    pub fn gram_hashes(self, grams: &[u32], out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { grams::hashes(grams, out) }
    }

    /// See `mix::hash_parts`.
    pub fn hash_parts(self, text: &[u8], starts: &[u32], ends: &[u32], seed: u64, out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { hash::hash_parts(text, starts, ends, seed, out) }
    }

    /// See `mix::hash_windows`.
    pub fn hash_windows(self, text: &[u8], from: usize, width: usize, seed: u64, out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { hash::hash_windows(text, from, width, seed, out) }
    }

    /// `finish(hash + step)` of each hash.
    pub fn words(self, hashes: &[u64], step: u64, out: &mut [u64]) {
        // SAFETY: as in `count`.
        unsafe { hash::words(hashes, step, out) }
    }

    /// Count each of *keys* once, until there is no *room* for a new one; how many are done, and how many were new.
    pub fn add_counts(self, lines: &mut [Slots], keys: &[u64], room: usize, spread: Spread) -> (usize, usize) {
        // SAFETY: as in `count`.
        unsafe { lookup::add_counts(lines, keys, room, spread) }
    }

    /// Write the class of each feature, as `Frozen::look_up` does.
    pub fn classes(self, buckets: &[Bucket], hashes: &[u64], spread: Spread, out: &mut [u8]) {
        // SAFETY: as in `count`.
        unsafe { lookup::classes(buckets, hashes, spread, out) }
    }

    /// See `Directory::find`.
    pub fn find_in(self, directory: &Directory, wanted: &[u64], out: &mut [(u32, u32); MATCHES]) -> usize {
        // SAFETY: as in `count`.
        unsafe { directory::find(directory, wanted, out) }
    }

    /// Append *base* plus the offsets of the bytes of *text* that are spaces.
    pub fn spaces(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: as in `count`.
        unsafe { offsets::spaces(text, base, out) }
    }

    /// Append *base* plus the offsets of the bytes of *text* that begin a character.
    pub fn characters(self, text: &[u8], base: u32, out: &mut Vec<u32>) {
        // SAFETY: as in `count`.
        unsafe { offsets::characters(text, base, out) }
    }

    /// See `md5::digests` there: word j of digest i in `out[j][i]`.
    pub fn md5(self, text: &[u8], starts: &[u32], ends: &[u32], out: &mut [[u32; LANES]; 4]) {
        // SAFETY: as in `count`.
        unsafe { md5::digests(text, starts, ends, out) }
    }

    /// Normalise *text* while it is ASCII; whether the end was reached.
    pub fn normalize_ascii(self, rules: Rules, text: &[u8], state: &mut State, out: &mut Vec<u8>) -> bool {
        // SAFETY: as in `count`.
        unsafe { normalize::run_ascii(rules, text, state, out) }
    }

    /// Normalise on from *state*; whether the end was reached.
    pub fn normalize(self, rules: Rules, text: &[u8], tables: &Tables, state: &mut State, out: &mut Vec<u8>) -> bool {
        // SAFETY: as in `count`.
        unsafe { normalize::run(rules, text, tables, state, out) }
    }
}
