#![forbid(unsafe_code)]
//! Neighbourhoods: which documents are near each other, and an order of pairs in which neighbours meet soon.

use crate::system::fault::{Fault, require};
use crate::system::memory;
use crate::verify::measures::WHOLE;
use crate::verify::ranks::Ranks;

/// Rivals that are considered, for each pair and test.
pub const RIVALS: usize = 16;

/// Pairs in the order of a walk: documents that share candidates are together.
pub struct Walk {
    /// The pairs, by number.
    pub order: Vec<u32>,
    /// Where parts of the order end. No document has pairs in two of them.
    pub ends: Vec<usize>,
}

/// Walk from document to document along pairs; a part ends when it has at least *least* pairs.
pub fn walk(documents: usize, pairs: &[(u32, u32)], least: usize) -> Walk {
    let mut begins = memory::zeros::<u32>(documents + 1);
    for (left, right) in pairs {
        begins[*left as usize + 1] += 1;
        begins[*right as usize + 1] += 1;
    }
    for at in 0..documents {
        begins[at + 1] += begins[at];
    }
    let mut next = memory::copied(&begins);
    let mut links = memory::filled(pairs.len() * 2, (0u32, 0u32));
    for (number, (left, right)) in pairs.iter().enumerate() {
        for (one, other) in [(*left, *right), (*right, *left)] {
            links[next[one as usize] as usize] = (other, number as u32);
            next[one as usize] += 1;
        }
    }
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Met,
        Passed,
    }
    let mut state = memory::filled(documents, State::New);
    let mut found = Walk { order: memory::room_for(pairs.len()), ends: Vec::new() };
    // Continue with the last one met, which stays longest among the same neighbours.
    let mut met = Vec::new();
    for start in 0..documents {
        if state[start] != State::New || begins[start] == begins[start + 1] {
            continue;
        }
        met.push(start);
        while let Some(at) = met.pop() {
            for (other, number) in &links[begins[at] as usize..begins[at + 1] as usize] {
                let there = &mut state[*other as usize];
                if *there == State::Passed {
                    found.order.push(*number);
                } else if *there == State::New {
                    *there = State::Met;
                    memory::push(&mut met, *other as usize);
                }
            }
            state[at] = State::Passed;
        }
        if found.order.len() - found.ends.last().unwrap_or(&0) >= least {
            memory::push(&mut found.ends, found.order.len());
        }
    }
    if found.ends.last().unwrap_or(&0) < &found.order.len() {
        found.ends.push(found.order.len());
    }
    found
}

/// The same of pairs as they are handed over: two numbers of documents each.
pub fn walk_of(documents: usize, left: &[i64], right: &[i64], least: usize) -> Result<Walk, Fault> {
    let known = |number: &i64| usize::try_from(*number).is_ok_and(|at| at < documents);
    require(left.len() == right.len() && left.iter().chain(right).all(known), UNEQUAL)?;
    let count = left.len();
    if u32::try_from(count * 2).is_err() || u32::try_from(documents).is_err() {
        return Err(Fault::Limit(format!(
            "{count} candidate pairs are too many, the limit is 2147483647; ask for a higher similarity or a smaller radius"
        )));
    }
    Ok(walk(documents, &numbered(left, right), least))
}

pub const UNEQUAL: &str = "pairs must be two equally long lists of known documents";

/// Pairs of known documents, of which there are fewer than 2^32.
pub fn numbered(left: &[i64], right: &[i64]) -> Vec<(u32, u32)> {
    memory::gathered(left.iter().zip(right).map(|(one, other)| (*one as u32, *other as u32)))
}

/// The candidates of each document that are near it, and groups of nearly identical ones.
pub struct Neighbours {
    /// The documents that have any; what is known of each is in their order.
    ranks: Ranks,
    begins: Vec<usize>,
    entries: Vec<(u32, u16)>,
    group: Vec<u32>,
    /// From this similarity on two are of one group.
    same: u16,
}

impl Neighbours {
    /// From pairs of this many *documents*, each with its similarity; from *same* on two are nearly identical.
    pub fn new(documents: usize, pairs: &[((u32, u32), u16)], same: u16) -> Neighbours {
        let met = pairs.iter().flat_map(|((left, right), _)| [*left as usize, *right as usize]);
        let ranks = Ranks::new(documents, met);
        let place = |document: u32| ranks.of(document).unwrap_or_default(); // all are there
        let count = ranks.len();
        let mut group: Vec<u32> = memory::gathered(0..count as u32);
        let mut begins = memory::zeros::<usize>(count + 1);
        for ((left, right), similarity) in pairs {
            let (left, right) = (place(*left), place(*right));
            begins[left + 1] += 1;
            begins[right + 1] += 1;
            if *similarity >= same {
                let (one, other) = (root(&mut group, left as u32), root(&mut group, right as u32));
                group[one.max(other) as usize] = one.min(other);
            }
        }
        for at in 0..count {
            begins[at + 1] += begins[at];
        }
        let mut next = memory::copied(&begins);
        let mut entries = memory::filled(pairs.len() * 2, (0, 0));
        for ((left, right), similarity) in pairs {
            for (one, other) in [(*left, *right), (*right, *left)] {
                let next = &mut next[place(one)];
                entries[*next] = (other, *similarity);
                *next += 1;
            }
        }
        for at in 0..count as u32 {
            group[at as usize] = root(&mut group, at);
        }
        Neighbours { ranks, begins, entries, group, same }
    }

    fn of(&self, document: u32) -> &[(u32, u16)] {
        match self.ranks.of(document) {
            Some(at) => &self.entries[self.begins[at]..self.begins[at + 1]],
            None => &[],
        }
    }

    fn group(&self, document: u32) -> Option<u32> {
        self.ranks.of(document).map(|at| self.group[at])
    }

    /// Whether each of a pair is in a group with others, and not in one with the other. Who is wholly alike is no
    /// other: where sources are compared with each other, equal texts are there once in each.
    pub fn are_two_groups(&self, left: u32, right: u32) -> bool {
        let others = self.same..WHOLE as u16;
        let near = |document| self.of(document).iter().any(|(_, similarity)| others.contains(similarity));
        self.group(left) != self.group(right) && near(left) && near(right)
    }

    /// Rivals of a pair: the nearest of every other group, and the nearest of all.
    pub fn rivals(&self, left: u32, right: u32) -> (Vec<u32>, Vec<u32>) {
        let near = self.of(left).iter().chain(self.of(right));
        let others = near.filter(|(other, _)| *other != left && *other != right);
        let mut all: Vec<(u16, u32)> =
            memory::collected(others.map(|(other, similarity)| (u16::MAX - similarity, *other)));
        // What is near both is there once, as near as to the nearer.
        all.sort_unstable_by_key(|(apart, other)| (*other, *apart));
        all.dedup_by_key(|(_, other)| *other);
        // The nearest first; of equally near ones the one to be kept.
        all.sort_unstable();
        let own = [self.group(left), self.group(right)];
        let mut groups: Vec<u32> = Vec::new();
        let mut met = Vec::new();
        for (_, other) in &all {
            let group = self.group(*other);
            if groups.len() < RIVALS && !own.contains(&group) && !met.contains(&group) {
                met.push(group);
                groups.push(*other);
            }
        }
        (groups, all.iter().take(RIVALS).map(|(_, other)| *other).collect())
    }
}

fn root(group: &mut [u32], mut at: u32) -> u32 {
    while group[at as usize] != at {
        group[at as usize] = group[group[at as usize] as usize];
        at = group[at as usize];
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_takes_every_pair_once_and_parts_share_no_document() {
        let pairs = [(0, 5), (1, 2), (2, 4), (3, 5), (1, 4)];
        let found = walk(6, &pairs, 1);
        assert_eq!(found.ends, [2, 5]);
        let mut first = found.order[..2].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 3]);
        assert_eq!(walk(6, &pairs, 9).ends, [5]);
        assert!(walk(3, &[], 1).ends.is_empty());
    }

    #[test]
    fn rivals_are_the_nearest_of_other_groups() {
        let pairs = [((0, 1), 9500), ((1, 7), 9200), ((0, 3), 7000), ((0, 9), 8000), ((3, 9), 9900)];
        let near = Neighbours::new(10, &pairs, 9000);
        assert_eq!(near.rivals(0, 1), (vec![9], vec![7, 9, 3]));
        assert_eq!(near.rivals(4, 5), (vec![], vec![]));
        assert!(near.are_two_groups(0, 9));
        assert!(!near.are_two_groups(0, 7) && !near.are_two_groups(0, 4));
        let copies = [((0, 1), 10_000), ((2, 3), 10_000), ((0, 2), 8000)];
        assert!(!Neighbours::new(4, &copies, 9000).are_two_groups(0, 2));
    }

    #[test]
    fn pairs_of_unknown_documents_are_refused() {
        assert_eq!(walk_of(3, &[0, 1], &[1, 2], 9).unwrap().ends, [2]);
        for (left, right) in [(&[0, 1][..], &[1][..]), (&[0], &[3]), (&[-1], &[1])] {
            assert_eq!(walk_of(3, left, right, 9).err(), Some(Fault::value(UNEQUAL)));
        }
        assert!(matches!(walk_of(1 << 32, &[], &[], 9), Err(Fault::Limit(_))));
    }
}
