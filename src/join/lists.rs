#![forbid(unsafe_code)]
//! The nearest of each row, kept while pairs are met in any order, any number of times, by any thread.
//!
//! A row holds its *most* nearest; of equally near ones the lower number comes first. A pair stays if
//! it is in the list of one of its two; a row is crowded if it met another in vain. All that is held is a
//! list for each row, whatever the number of pairs:
//!
//! ```text
//! meet(a, b, apart):
//!     for (row, other) in (a, b), (b, a):
//!         put (apart, other) into the list of row; what falls out of it, or was never in, has *left* row
//!         if (apart, other) left row and (apart, row) has left other: the pair is cut; both are crowded
//! ```
//!
//! The limit of a list is its last entry once it is full, and only goes down. So what is beyond it has left for
//! good, no entry has to be looked up to know that, and the outcome is that of looking at all pairs at once.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::join::resolve::{Pair, sort_pairs};
use crate::system::fault::{Fault, require};
use crate::system::memory::{copied, filled, gathered, is_short, no_room, push, zeros};

/// Who may be compared with whom: rows of one code, of two, and none that are both fixed.
#[derive(Clone, Copy, Default)]
pub struct Comparable<'a> {
    pub within: Option<&'a [i32]>,
    pub across: Option<&'a [i32]>,
    pub fixed: Option<&'a [bool]>,
}

impl Comparable<'_> {
    /// Refuse codes and flags that are not one for each row, or no neighbours at all.
    pub fn check(&self, rows: usize, most: u32) -> Result<(), Fault> {
        let sizes = [self.within.map(<[_]>::len), self.across.map(<[_]>::len), self.fixed.map(<[_]>::len)];
        let fits = most > 0 && sizes.iter().flatten().all(|&size| size == rows);
        require(fits, "one number and one flag for each row, and at least one neighbour are needed")
    }

    #[inline(always)]
    pub fn allows(&self, one: u32, two: u32) -> bool {
        let (one, two) = (one as usize, two as usize);
        self.within.is_none_or(|code| code[one] == code[two])
            && self.across.is_none_or(|code| code[one] != code[two])
            && self.fixed.is_none_or(|fixed| !(fixed[one] && fixed[two]))
    }
}

/// The lists of all rows.
pub struct Lists {
    most: usize,
    radius: u32,
    nearest: Vec<Mutex<BinaryHeap<u64>>>,
    limits: Vec<AtomicU64>,
    crowded: Vec<AtomicBool>,
}

/// The list of a row, in its order.
#[inline(always)]
fn entry(apart: u32, other: u32) -> u64 {
    u64::from(apart) << 32 | u64::from(other)
}

impl Lists {
    pub fn new(rows: usize, most: usize, radius: u32) -> Lists {
        Lists {
            most,
            radius,
            nearest: gathered((0..rows).map(|_| Mutex::default())),
            limits: gathered((0..rows).map(|_| AtomicU64::new(u64::MAX))),
            crowded: gathered((0..rows).map(|_| AtomicBool::new(false))),
        }
    }

    /// Beyond this distance nothing changes for a row: its list is full of nearer ones, and it is known to be crowded.
    #[inline(always)]
    pub fn reach(&self, row: u32) -> u32 {
        if self.crowded[row as usize].load(Ordering::Relaxed) {
            (self.limits[row as usize].load(Ordering::Relaxed) >> 32) as u32
        } else {
            self.radius
        }
    }

    /// Two rows that may be compared are so far apart.
    #[inline(always)]
    pub fn meet(&self, one: u32, two: u32, apart: u32) {
        let (first, second) = (entry(apart, two), entry(apart, one));
        let beyond = first > self.limits[one as usize].load(Ordering::SeqCst);
        if second > self.limits[two as usize].load(Ordering::SeqCst) {
            if beyond { self.cut(one, two) } else { self.put(one, first) }
        } else {
            if !beyond {
                self.put(one, first);
            }
            self.put(two, second);
        }
    }

    fn cut(&self, one: u32, two: u32) {
        for row in [one, two] {
            let crowded = &self.crowded[row as usize];
            if !crowded.load(Ordering::Relaxed) {
                crowded.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Put what is near enough into the list of *row*.
    fn put(&self, row: u32, near: u64) {
        let left = {
            // A poisoned lock means that memory ended in another thread, which ends the work.
            let mut list = self.nearest[row as usize].lock().unwrap_or_else(PoisonError::into_inner);
            if list.iter().any(|&known| known == near) {
                return; // seen before
            }
            let left = if list.len() < self.most {
                if list.try_reserve(1).is_err() || is_short() {
                    no_room();
                }
                list.push(near);
                None
            } else {
                list.peek_mut().map(|mut last| if near < *last { std::mem::replace(&mut *last, near) } else { near })
            };
            if list.len() == self.most
                && let Some(&last) = list.peek()
            {
                self.limits[row as usize].store(last, Ordering::SeqCst);
            }
            left
        };
        // Of two threads that see a pair leave its two lists, the later sees both limits.
        if let Some(left) = left {
            let other = left as u32;
            if entry((left >> 32) as u32, row) > self.limits[other as usize].load(Ordering::SeqCst) {
                self.cut(row, other);
            }
        }
    }

    /// The pairs that stay, sorted by left, then right, and the rows that have another one, which was cut.
    pub fn pairs(self, threads: usize) -> (Vec<Pair>, Vec<u32>) {
        let Lists { nearest, limits, crowded, .. } = self;
        let crowded = numbers_of(crowded.into_iter().map(AtomicBool::into_inner));
        let limits: Vec<u64> = gathered(limits.into_iter().map(AtomicU64::into_inner));
        let mut pairs = Vec::new();
        for (row, list) in (0u32..).zip(nearest) {
            for near in list.into_inner().unwrap_or_else(PoisonError::into_inner) {
                let (distance, other) = ((near >> 32) as u32, near as u32);
                // What is in both lists is taken from that of the lower row.
                if row < other {
                    push(&mut pairs, Pair { left: row, right: other, distance });
                } else if entry(distance, row) > limits[other as usize] {
                    push(&mut pairs, Pair { left: other, right: row, distance });
                }
            }
        }
        (sort_pairs(pairs, threads), crowded)
    }
}

/// The places of those that are true.
fn numbers_of(flags: impl Iterator<Item = bool>) -> Vec<u32> {
    let mut numbers = Vec::new();
    for (row, _) in (0u32..).zip(flags).filter(|(_, flag)| *flag) {
        push(&mut numbers, row);
    }
    numbers
}

/// The same from all pairs at once, which are sorted by left, then right.
pub fn nearest(rows: usize, mut pairs: Vec<Pair>, most: u32) -> (Vec<Pair>, Vec<u32>) {
    const FEW: u32 = u32::MAX;
    let mut place: Vec<u32> = zeros(rows);
    for pair in &pairs {
        place[pair.left as usize] += 1;
        place[pair.right as usize] += 1;
    }
    // Only rows with more than the most have a limit.
    let (mut starts, mut total) = (Vec::new(), 0);
    for count in &mut place {
        let own = std::mem::replace(count, FEW);
        if own > most {
            *count = starts.len() as u32;
            push(&mut starts, total);
            total += own as usize;
        }
    }
    if starts.is_empty() {
        return (pairs, Vec::new());
    }
    let (mut entries, mut ends) = (zeros::<u64>(total), copied(&starts));
    for &Pair { left, right, distance } in &pairs {
        for (row, other) in [(left, right), (right, left)] {
            if let Some(end) = ends.get_mut(place[row as usize] as usize) {
                entries[*end] = entry(distance, other);
                *end += 1;
            }
        }
    }
    let last = most.saturating_sub(1) as usize;
    let limits: Vec<u64> =
        gathered(starts.iter().zip(&ends).map(|(start, end)| *entries[*start..*end].select_nth_unstable(last).1));
    let near = |row: u32, entry: u64| limits.get(place[row as usize] as usize).is_none_or(|limit| entry <= *limit);
    let mut crowded = filled(rows, false);
    pairs.retain(|&Pair { left, right, distance }| {
        let stays = near(left, entry(distance, right)) || near(right, entry(distance, left));
        if !stays {
            (crowded[left as usize], crowded[right as usize]) = (true, true);
        }
        stays
    });
    (pairs, numbers_of(crowded.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::split_mix;
    use crate::system::parallel::share;

    fn pairs_of(pairs: &[(u32, u32, u32)]) -> Vec<Pair> {
        pairs.iter().map(|&(left, right, distance)| Pair { left, right, distance }).collect()
    }

    #[test]
    fn a_pair_stays_if_it_is_near_for_one_of_the_two() {
        let pairs = pairs_of(&[(0, 1, 1), (0, 2, 1), (0, 3, 2), (1, 2, 5)]);
        assert_eq!(nearest(4, pairs.clone(), 1), (pairs[..3].to_vec(), vec![1, 2]));
        assert_eq!(nearest(4, pairs.clone(), 2), (pairs, vec![]));
    }

    #[test]
    fn of_equally_near_ones_the_lower_numbers_stay() {
        let all: Vec<_> = (0..9).flat_map(|one| (one + 1..10).map(move |two| (one, two, 3))).collect();
        let kept: Vec<_> = all.iter().copied().filter(|pair| pair.0 < 2).collect();
        assert_eq!(nearest(10, pairs_of(&all), 2), (pairs_of(&kept), (2..10).collect()));
    }

    #[test]
    fn lists_keep_what_looking_at_all_pairs_at_once_keeps() {
        let mut state = 3;
        for rows in [0u32, 1, 2, 30, 120] {
            for (share_of_pairs, distances) in [(3, 1), (1, 4), (1, 90)] {
                let mut all = Vec::new();
                for (one, two) in (0..rows).flat_map(|one| (one + 1..rows).map(move |two| (one, two))) {
                    if split_mix(&mut state).is_multiple_of(share_of_pairs) {
                        all.push((one, two, split_mix(&mut state) as u32 % distances));
                    }
                }
                let all = pairs_of(&all);
                for most in [1, 2, 5, 32] {
                    let expected = nearest(rows as usize, all.clone(), most);
                    for threads in [1, 2, 4] {
                        // In another order, and every third one twice.
                        let mut met: Vec<Pair> = all.iter().chain(all.iter().step_by(3)).copied().collect();
                        met.sort_unstable_by_key(|pair| {
                            entry(pair.right, pair.left).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                        });
                        let lists = Lists::new(rows as usize, most as usize, 100);
                        share(
                            threads,
                            met.len(),
                            || (),
                            |(), at| lists.meet(met[at].right, met[at].left, met[at].distance),
                        );
                        for row in 0..rows {
                            assert!(lists.reach(row) == 100 || expected.1.contains(&row));
                        }
                        assert_eq!(lists.pairs(threads), expected, "{rows} rows, {most}, {threads} threads");
                    }
                }
            }
        }
    }
}
