#![deny(unsafe_code)]
//! Hashes in groups by their first bits, so that each is found by a look at one group.
//!
//! Hashes are spread evenly, so groups are small. Where somebody found some that are not, they are
//! sorted instead, and looked for by halving.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

use crate::system::memory;
#[cfg(target_arch = "x86_64")]
use crate::system::simd::{Avx2, Avx512Base};

/// About this many hashes are in a group, or half as many.
const GROUP: usize = 4;
/// So many are compared at once. As many may be read behind the last one.
pub const AT_ONCE: usize = 8;
/// A group of more than this is not by chance.
const CROWD: usize = 32;
/// Matches that are passed on at a time.
pub const MATCHES: usize = 64;

#[derive(Default)]
pub struct Directory {
    /// The hashes, then `AT_ONCE` words that mean nothing.
    hashes: Vec<u64>,
    count: usize,
    /// Where groups begin, and where the last one ends; nothing if the hashes are sorted.
    starts: Vec<u32>,
    /// How far a hash is shifted to give the number of its group.
    shift: u32,
}

impl Directory {
    /// A directory of different *hashes*, and what belongs to each, in its order.
    pub fn new<T: Copy + Default>(hashes: &[u64], facts: &[T]) -> (Directory, Vec<T>) {
        assert_eq!(hashes.len(), facts.len(), "a fact for each hash");
        let bits = (hashes.len() / GROUP).max(1).ilog2() + 1;
        let shift = u64::BITS - bits;
        let mut starts = memory::zeros::<u32>((1 << bits) + 1);
        for hash in hashes {
            starts[(hash >> shift) as usize] += 1;
        }
        if starts.iter().any(|count| *count as usize > CROWD) {
            return Directory::sorted(hashes, facts);
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // From the end of each group to its start, so that the starts are what is left.
        let (mut moved, mut own) = (memory::zeros(hashes.len() + AT_ONCE), memory::filled(hashes.len(), T::default()));
        for (hash, fact) in hashes.iter().zip(facts) {
            let place = &mut starts[(hash >> shift) as usize];
            *place -= 1;
            (moved[*place as usize], own[*place as usize]) = (*hash, *fact);
        }
        (Directory { hashes: moved, count: hashes.len(), starts, shift }, own)
    }

    #[cold]
    fn sorted<T: Copy>(hashes: &[u64], facts: &[T]) -> (Directory, Vec<T>) {
        let mut both: Vec<(u64, T)> = memory::gathered(hashes.iter().copied().zip(facts.iter().copied()));
        both.sort_unstable_by_key(|(hash, _)| *hash);
        let mut sorted = memory::zeros(hashes.len() + AT_ONCE);
        sorted.iter_mut().zip(&both).for_each(|(place, (hash, _))| *place = *hash);
        let facts = memory::gathered(both.iter().map(|(_, fact)| *fact));
        (Directory { hashes: sorted, count: hashes.len(), starts: Vec::new(), shift: 0 }, facts)
    }

    pub fn hashes(&self) -> &[u64] {
        &self.hashes[..self.count]
    }

    /// The hashes and the words behind them, where groups begin, and the shift: see there.
    #[cfg(target_arch = "x86_64")]
    pub fn groups(&self) -> (&[u64], &[u32], u32) {
        (&self.hashes, &self.starts, self.shift)
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.hashes[..]) + size_of_val(&self.starts[..])
    }

    /// Call *found* with the place in *wanted*, and the place here, of each hash that is here.
    #[inline(always)]
    pub fn for_each(&self, wanted: &[u64], mut found: impl FnMut(usize, usize)) {
        let mut matches = [(0, 0); MATCHES];
        let mut begin = 0;
        for part in wanted.chunks(MATCHES) {
            for (at, place) in self.find(part, &mut matches) {
                found(begin + *at as usize, *place as usize);
            }
            begin += part.len();
        }
    }

    /// How many of *wanted* are here.
    pub fn count(&self, wanted: &[u64]) -> u64 {
        let mut count = 0;
        self.for_each(wanted, |_, _| count += 1);
        count
    }

    /// Whether fewer than *limit* of *wanted* are not here.
    pub fn lacks_fewer(&self, wanted: &[u64], limit: u64) -> bool {
        let mut matches = [(0, 0); MATCHES];
        let mut lacking = 0;
        for part in wanted.chunks(MATCHES) {
            lacking += (part.len() - self.find(part, &mut matches).len()) as u64;
            if lacking >= limit {
                return false;
            }
        }
        lacking < limit
    }

    /// The places of up to `MATCHES` hashes that are here: in *wanted*, and here.
    #[inline]
    fn find<'a>(&self, wanted: &[u64], out: &'a mut [(u32, u32); MATCHES]) -> &'a [(u32, u32)] {
        #[cfg(target_arch = "x86_64")]
        if !self.starts.is_empty() {
            if let Some(cpu) = Avx512Base::in_force() {
                let count = cpu.find_in(self, wanted, out);
                return &out[..count];
            }
            if let Some(cpu) = Avx2::in_force() {
                let count = cpu.find_in(self, wanted, out);
                return &out[..count];
            }
        }
        self.find_plain(wanted, out)
    }

    fn find_plain<'a>(&self, wanted: &[u64], out: &'a mut [(u32, u32); MATCHES]) -> &'a [(u32, u32)] {
        let mut count = 0;
        for (at, hash) in (0u32..).zip(wanted) {
            let place = if self.starts.is_empty() { self.find_sorted(*hash) } else { self.find_grouped(*hash) };
            // Whether it is here cannot be foretold, so no branch depends on that.
            out[count] = (at, place.unwrap_or_default());
            count += usize::from(place.is_some());
        }
        &out[..count]
    }

    #[cold]
    fn find_sorted(&self, hash: u64) -> Option<u32> {
        self.hashes().binary_search(&hash).ok().map(|place| place as u32)
    }

    #[inline(always)]
    fn find_grouped(&self, hash: u64) -> Option<u32> {
        let group = (hash >> self.shift) as usize;
        let (mut start, end) = (self.starts[group] as usize, self.starts[group + 1] as usize);
        loop {
            let some: &[u64; GROUP] = self.hashes[start..].first_chunk()?;
            let (mut found, left) = (GROUP, end - start);
            // The first one counts: no hash of another group is equal, but what is behind all may be.
            for (at, own) in some.iter().enumerate().rev() {
                found = if *own == hash { at } else { found };
            }
            if left <= GROUP || found < GROUP {
                return (found < left).then_some((start + found) as u32);
            }
            start += GROUP;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::system::simd::tests::at_every_level;

    #[test]
    fn hashes_are_found_as_in_a_list_at_every_level() {
        at_every_level(|_| hashes_are_found_as_in_a_list());
    }

    fn hashes_are_found_as_in_a_list() {
        for shift in [0, 30, 60] {
            for (own, others) in [(0, 5), (1, 5), (7, 9), (64, 64), (200, 3), (3, 300), (3000, 2000)] {
                let list = |from: u64, count: u64| -> Vec<u64> {
                    let mut list: Vec<_> = (from..from + count).map(|at| mix::finish(at) >> shift).collect();
                    list.sort_unstable();
                    list.dedup();
                    list
                };
                let (own, wanted) = (list(0, own), list(own / 2, others));
                let facts: Vec<u16> = own.iter().map(|hash| *hash as u16).collect();
                let (directory, facts) = Directory::new(&own, &facts);
                assert!(directory.hashes().iter().zip(facts).all(|(hash, fact)| *hash as u16 == fact));
                let (mut found, mut out) = (Vec::new(), [(0, 0); MATCHES]);
                directory.for_each(&wanted, |at, place| {
                    assert_eq!(wanted[at], directory.hashes()[place]);
                    found.push(at);
                });
                let here: Vec<_> = (0..wanted.len()).filter(|at| own.contains(&wanted[*at])).collect();
                assert_eq!(found, here);
                assert_eq!(directory.count(&wanted), here.len() as u64);
                let lacking = (wanted.len() - here.len()) as u64;
                assert!(directory.lacks_fewer(&wanted, lacking + 1) && !directory.lacks_fewer(&wanted, lacking));
                let first = &wanted[..wanted.len().min(MATCHES)];
                let plain = directory.find_plain(first, &mut out).to_vec();
                assert_eq!(directory.find(first, &mut out), plain);
            }
        }
    }
}
