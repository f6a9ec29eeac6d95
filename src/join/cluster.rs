#![forbid(unsafe_code)]
//! Groups: greedy stars, and connected components.
//!
//! Greedy stars, plainly:
//!
//! ```text
//! for item in order: if it is in no group: it becomes a centre, and takes every item that is
//!     in no group and within the radius of it
//! ```
//!
//! Rows with equal fingerprints always end in the same group, so the walk is over distinct
//! values in the order of their first rows. Where pairs are few they are joined first and the
//! walk follows them. Where they are many (dense balls) the walk divides: the groups of the
//! first half, whose centres then take what they can from the second half, and only what is
//! left there is grouped on. Then no list of pairs is ever held.

use std::sync::atomic::AtomicUsize;

use crate::hamming::distance::{Planes, distance, pairs_between};
use crate::hamming::plan::{Force, Method, Sample, Task, plan};
use crate::join::resolve::{Values, numbered};
use crate::join::{Job, Stop, self_join};
use crate::system::fault::Fault;
use crate::system::memory::{append, copied, filled, gathered, push, room_for, zeros};
use crate::system::parallel::{Cancel, each};

/// For each row its centre and its distance to it; a centre is its own at distance 0.
pub struct Stars {
    pub center: Vec<u32>,
    pub distance: Vec<u16>,
}

/// The same, group by group.
pub struct Listed {
    /// The number of each row's group, in the order in which centres were made.
    pub label: Vec<u32>,
    pub centers: Vec<u32>,
    /// Rows that are not centres, by group, in order; their centres and distances.
    pub member: Vec<u32>,
    pub center: Vec<u32>,
    pub distance: Vec<u16>,
}

impl Stars {
    /// Each row is its own centre.
    pub fn alone(count: usize) -> Stars {
        let mut stars = Stars { center: room_for(count), distance: room_for(count) };
        stars.center.extend(0..count as u32);
        stars.distance.resize(count, 0);
        stars
    }

    pub fn listed(self, order: Option<&[u32]>) -> Listed {
        let count = self.center.len();
        let row_at = |place: usize| order.map_or(place, |order| order[place] as usize);
        // A row's centre comes before it, so that each can give its place to the number of its group.
        let mut label = self.center;
        let groups = (0u32..).zip(&label).filter(|(row, center)| row == *center).count();
        let (mut centers, mut member) = (room_for(groups), room_for(count - groups));
        let (mut last, mut by_group) = (0, true);
        for row in (0..count).map(row_at) {
            let center = label[row] as usize;
            if center == row {
                label[row] = centers.len() as u32;
                centers.push(row as u32);
            } else {
                let group = label[center];
                label[row] = group;
                member.push(row as u32);
                by_group &= last <= group;
                last = group;
            }
        }
        if !by_group {
            member = counted_by(&member, |row| label[row as usize] as usize, groups);
        }
        let (mut center, mut distance) = (room_for(member.len()), room_for(member.len()));
        center.extend(member.iter().map(|&row| centers[label[row as usize] as usize]));
        distance.extend(member.iter().map(|&row| self.distance[row as usize]));
        Listed { label, centers, member, center, distance }
    }
}

/// The rows by the group of each; those of a group stay in their order.
fn counted_by(rows: &[u32], group_of: impl Fn(u32) -> usize, groups: usize) -> Vec<u32> {
    let mut places: Vec<u32> = zeros(groups);
    for &row in rows {
        places[group_of(row)] += 1;
    }
    let mut start = 0;
    for place in &mut places {
        start += std::mem::replace(place, start);
    }
    let mut sorted = zeros(rows.len());
    for &row in rows {
        let place = &mut places[group_of(row)];
        sorted[*place as usize] = row;
        *place += 1;
    }
    sorted
}

/// The greedy stars of `rows`. `order` lists row numbers, the first to become a centre first.
pub fn stars<const W: usize>(
    rows: &[[u64; W]],
    bits: &[u64],
    order: Option<&[u32]>,
    force: Force,
    job: &Job<'_>,
) -> Result<Stars, Stop> {
    let count = rows.len();
    let mut result = Stars::alone(count);
    if count < 2 {
        return Ok(result);
    }
    let sample = Sample::new(rows.as_flattened(), W, bits);
    let task = Task { rows: count, other: None, words: W, radius: job.radius, recall: 1.0, threads: job.threads };
    let plan = plan(&sample, &task, force);
    let budget = job.budget.min(count.saturating_mul(16).saturating_add(1 << 20));
    let bounded = Job { budget, held: AtomicUsize::new(0), ..*job };
    // A quadratic plan is only worth its while when the walk itself would be as dear.
    let dear = plan.method == Method::Brute && count > 50_000;
    let found = if dear { Err(Stop::TooMany) } else { self_join(rows, &plan, &bounded) };
    match found {
        Ok(found) => {
            let (values, pairs) = numbered(&found.pairs, &found.repeated);
            follow(rows, order, &values, &pairs, job, &mut result)?;
        }
        Err(Stop::TooMany) => divide(rows, order, bits, job, &mut result)?,
        Err(stop) => return Err(stop),
    }
    Ok(result)
}

/// Ranks: the place of each row in the order.
fn ranks(count: usize, order: Option<&[u32]>) -> Option<Vec<u32>> {
    order.map(|order| {
        let mut rank = zeros(count);
        for (place, &row) in order.iter().enumerate() {
            rank[row as usize] = place as u32;
        }
        rank
    })
}

/// Walk the values of pairs in order, each taking its later neighbours.
fn follow<const W: usize>(
    rows: &[[u64; W]],
    order: Option<&[u32]>,
    values: &Values<W>,
    pairs: &[[u32; 3]],
    job: &Job<'_>,
    result: &mut Stars,
) -> Result<(), Stop> {
    let held = values.rows(rows, None, job.threads, job.cancel).map_err(|_| Stop::Cancelled)?;
    let rank = ranks(rows.len(), order);
    let rank_of = |row: u32| rank.as_ref().map_or(row, |rank| rank[row as usize]);
    let count = values.values.len();
    // The row of each value that comes first, and the values in that order.
    let first_of = |value| held.of(value).iter().copied().min_by_key(|&row| rank_of(row)).unwrap_or(0);
    let firsts: Vec<u32> = gathered((0..count as u32).map(first_of));
    let mut walk: Vec<u32> = gathered(0..count as u32);
    walk.sort_unstable_by_key(|&value| rank_of(firsts[value as usize]));
    let mut place: Vec<u32> = zeros(count);
    for (at, &value) in walk.iter().enumerate() {
        place[value as usize] = at as u32;
    }
    // Neighbours that come later, by place.
    let mut starts: Vec<usize> = zeros(count + 1);
    for [a, b, _] in pairs {
        starts[place[*a as usize].min(place[*b as usize]) as usize + 1] += 1;
    }
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    let mut ends = copied(&starts);
    let mut neighbours: Vec<[u32; 2]> = zeros(pairs.len());
    for [a, b, distance] in pairs {
        let (a, b) = (place[*a as usize], place[*b as usize]);
        let end = &mut ends[a.min(b) as usize];
        neighbours[*end] = [a.max(b), *distance];
        *end += 1;
    }
    const FREE: u32 = u32::MAX;
    let mut center = filled(count, FREE);
    let mut far: Vec<u32> = zeros(count);
    for at in 0..count {
        if center[at] != FREE {
            continue;
        }
        center[at] = at as u32;
        for [other, distance] in &neighbours[starts[at]..starts[at + 1]] {
            let other = *other as usize;
            if center[other] == FREE {
                center[other] = at as u32;
                far[other] = *distance;
            }
        }
    }
    for at in 0..count {
        let row = firsts[walk[center[at] as usize] as usize];
        for &member in held.of(walk[at]) {
            result.center[member as usize] = row;
            result.distance[member as usize] = far[at] as u16;
        }
    }
    Ok(())
}

/// The dividing walk over distinct values.
fn divide<const W: usize>(
    rows: &[[u64; W]],
    order: Option<&[u32]>,
    bits: &[u64],
    job: &Job<'_>,
    result: &mut Stars,
) -> Result<(), Stop> {
    let mut values = Values::<W>::with_room(0);
    let mut firsts = Vec::new();
    // Until the centres are known, the numbers of values are in their places.
    for place in 0..rows.len() {
        let row = order.map_or(place as u32, |order| order[place]);
        let value = values.number(&rows[row as usize]);
        if value as usize == firsts.len() {
            push(&mut firsts, row);
        }
        result.center[row as usize] = value;
    }
    let mut center: Vec<u32> = gathered(0..values.values.len() as u32);
    let mut far = zeros(values.values.len());
    let all: Vec<u32> = copied(&center);
    let mut walk = Walk { values: &values.values, bits, job, center: &mut center, far: &mut far };
    walk.group(all)?;
    for (own, distance) in result.center.iter_mut().zip(&mut result.distance) {
        let value = *own as usize;
        *own = firsts[center[value] as usize];
        *distance = far[value] as u16;
    }
    Ok(())
}

struct Walk<'a, const W: usize> {
    values: &'a [[u64; W]],
    bits: &'a [u64],
    job: &'a Job<'a>,
    center: &'a mut [u32],
    far: &'a mut [u32],
}

const SMALL: usize = 1024;

impl<const W: usize> Walk<'_, W> {
    /// Group the members, which are in order; the centres among them.
    fn group(&mut self, members: Vec<u32>) -> Result<Vec<u32>, Stop> {
        if members.len() <= SMALL {
            return Ok(self.plain(members));
        }
        if self.job.cancel.is_set() {
            return Err(Stop::Cancelled);
        }
        let (first, second) = members.split_at(members.len() / 2);
        let mut centers = self.group(copied(first))?;
        let left = self.take(&centers, second)?;
        append(&mut centers, &self.group(left)?);
        Ok(centers)
    }

    fn plain(&mut self, mut members: Vec<u32>) -> Vec<u32> {
        let mut centers = Vec::new();
        while let Some(&center) = members.first() {
            push(&mut centers, center);
            let value = self.values[center as usize];
            members.retain(|&member| {
                let far = distance(&value, &self.values[member as usize]);
                if far <= self.job.radius {
                    self.center[member as usize] = center;
                    self.far[member as usize] = far;
                }
                far > self.job.radius
            });
        }
        centers
    }

    /// Give each member within the radius of a centre to the first such centre; the others.
    fn take(&mut self, centers: &[u32], members: &[u32]) -> Result<Vec<u32>, Stop> {
        let first = first_within(
            &gathered(centers.iter().map(|&value| self.values[value as usize])),
            &gathered(members.iter().map(|&value| self.values[value as usize])),
            self.bits,
            self.job,
        )?;
        let mut left = Vec::new();
        for (&member, &center) in members.iter().zip(&first) {
            if center == u32::MAX {
                push(&mut left, member);
            } else {
                let center = centers[center as usize];
                self.center[member as usize] = center;
                self.far[member as usize] = distance(&self.values[center as usize], &self.values[member as usize]);
            }
        }
        Ok(left)
    }
}

/// For each item the first centre within the radius, or `u32::MAX`.
///
/// Centres are further apart than the radius, so few of them are near one item.
fn first_within<const W: usize>(
    centers: &[[u64; W]],
    items: &[[u64; W]],
    bits: &[u64],
    job: &Job<'_>,
) -> Result<Vec<u32>, Stop> {
    let mut first = filled(items.len(), u32::MAX);
    let mut both: Vec<u64> = room_for((centers.len() + items.len()) * W);
    both.extend(centers.iter().chain(items).flatten());
    let sample = Sample::new(&both, W, bits);
    let task = Task {
        rows: centers.len(),
        other: Some(items.len()),
        words: W,
        radius: job.radius,
        recall: 1.0,
        threads: job.threads,
    };
    let plan = plan(&sample, &task, Force::Any);
    drop(both);
    if plan.method == Method::Brute {
        brute_first(centers, items, job, &mut first)?;
        return Ok(first);
    }
    let budget = centers.len().saturating_add(items.len()).saturating_mul(32).saturating_add(1 << 20);
    let bounded = Job { budget, held: AtomicUsize::new(0), ..*job };
    match crate::join::cross_join(centers, items, &plan, &bounded) {
        Ok(pairs) => {
            let mut numbers = Values::<W>::with_room(centers.len());
            centers.iter().for_each(|center| {
                numbers.number(center);
            });
            let mut places = Values::<W>::with_room(items.len());
            items.iter().for_each(|item| {
                places.number(item);
            });
            for [center, item] in &pairs {
                if let (Some(center), Some(item)) = (numbers.find(center), places.find(item)) {
                    let best = &mut first[item as usize];
                    *best = (*best).min(center);
                }
            }
        }
        Err(Stop::TooMany) => brute_first(centers, items, job, &mut first)?,
        Err(stop) => return Err(stop),
    }
    Ok(first)
}

fn brute_first<const W: usize>(
    centers: &[[u64; W]],
    items: &[[u64; W]],
    job: &Job<'_>,
    first: &mut [u32],
) -> Result<(), Stop> {
    const ITEMS: usize = 2048;
    let planes: Vec<Vec<u64>> = (0..W).map(|word| gathered(centers.iter().map(|center| center[word]))).collect();
    let planes: Planes<'_, W> = std::array::from_fn(|word| &planes[word][..]);
    let size = items.len().div_ceil(job.threads).max(1);
    let inputs: Vec<_> = items.chunks(size).zip(first.chunks_mut(size)).collect();
    each(inputs, |(items, first)| {
        let mut hits = Vec::new();
        for (items, first) in items.chunks(ITEMS).zip(first.chunks_mut(ITEMS)) {
            // Centres in runs, in order: items that are taken need not be asked again.
            let mut open: Vec<u32> = (0..items.len() as u32).collect();
            for start in (0..centers.len()).step_by(256) {
                if open.is_empty() || job.cancel.is_set() {
                    break;
                }
                let own: Vec<Vec<u64>> =
                    (0..W).map(|word| open.iter().map(|&item| items[item as usize][word]).collect()).collect();
                let own: Planes<'_, W> = std::array::from_fn(|word| &own[word][..]);
                let run = start..(start + 256).min(centers.len());
                pairs_between(&own, 0..open.len(), &planes, run, job.radius, &mut hits);
                if hits.is_empty() {
                    continue;
                }
                for [item, center] in hits.drain(..) {
                    let best = &mut first[open[item as usize] as usize];
                    *best = (*best).min(center);
                }
                open.retain(|&item| first[item as usize] == u32::MAX);
            }
        }
    });
    if job.cancel.is_set() { Err(Stop::Cancelled) } else { Ok(()) }
}

/// Pairs that are looked at in some milliseconds.
pub const MANY: usize = 1 << 20;

/// Labels of connected components: the smallest row of each, for all rows.
pub fn components(left: &[u32], right: &[u32], count: usize, cancel: &Cancel) -> Result<Vec<u32>, Fault> {
    let mut parent: Vec<u32> = room_for(count);
    parent.extend(0..count as u32);
    fn root(parent: &mut [u32], mut item: u32) -> u32 {
        while parent[item as usize] != item {
            parent[item as usize] = parent[parent[item as usize] as usize];
            item = parent[item as usize];
        }
        item
    }
    let parts = left.chunks(MANY).zip(right.chunks(MANY)).take_while(|_| !cancel.is_set());
    for (&left, &right) in parts.flat_map(|(left, right)| left.iter().zip(right)) {
        if left.max(right) as usize >= count {
            return Err(Fault::Value(format!(
                "a pair names a row beyond the {count} rows; pass n = the number of rows joined"
            )));
        }
        let (one, two) = (root(&mut parent, left), root(&mut parent, right));
        // The smaller row is the root, so that labels do not depend on the order of pairs.
        let (low, high) = (one.min(two), one.max(two));
        parent[high as usize] = low;
    }
    // Nobody's parent is larger, and the smaller ones already have their root.
    for item in 0..count {
        parent[item] = parent[parent[item] as usize];
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::split_mix;
    use crate::system::parallel::share;

    fn naive(rows: &[[u64; 1]], order: &[u32], radius: u32) -> (Vec<u32>, Vec<u16>) {
        let mut center = vec![u32::MAX; rows.len()];
        let mut far = vec![0; rows.len()];
        for &item in order {
            if center[item as usize] != u32::MAX {
                continue;
            }
            for &other in order {
                let apart = distance(&rows[item as usize], &rows[other as usize]);
                if center[other as usize] == u32::MAX && apart <= radius {
                    center[other as usize] = item;
                    far[other as usize] = apart as u16;
                }
            }
        }
        (center, far)
    }

    #[test]
    fn both_walks_give_the_groups_of_the_plain_loop() {
        let mut state = 1;
        let rows: Vec<[u64; 1]> = (0..3000)
            .map(|_| {
                let mut row = [0xabcd, 0x1234_5678_9abc, u64::MAX][split_mix(&mut state) as usize % 3];
                for _ in 0..split_mix(&mut state) % 7 {
                    row ^= 1 << (split_mix(&mut state) % 64);
                }
                [row]
            })
            .collect();
        let mut order: Vec<u32> = (0..3000).collect();
        order.sort_by_key(|&row| u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let cancel = Cancel::new();
        for radius in [0, 1, 3, 5] {
            let expected = naive(&rows, &order, radius);
            for budget in [0, usize::MAX] {
                let mut job = Job::new(radius, 2, &cancel);
                job.budget = budget;
                let stars = stars(&rows, &[u64::MAX], Some(&order), Force::Any, &job).unwrap();
                assert_eq!((stars.center, stars.distance), expected, "radius {radius}, budget {budget}");
            }
        }
    }

    #[test]
    fn groups_are_listed_in_the_order_of_their_centres() {
        let stars = Stars { center: vec![4, 1, 4, 1, 4, 5], distance: vec![2, 0, 1, 3, 0, 0] };
        let listed = stars.listed(Some(&[4, 2, 1, 5, 0, 3]));
        assert_eq!(listed.centers, [4, 1, 5]);
        assert_eq!(listed.label, [0, 1, 0, 1, 0, 2]);
        assert_eq!((listed.member, listed.center, listed.distance), (vec![2, 0, 3], vec![4, 4, 1], vec![1, 2, 3]));
    }

    #[test]
    fn a_chain_of_pairs_is_one_component() {
        let labels = components(&[3, 1, 5], &[2, 2, 4], 6, &Cancel::new()).unwrap();
        assert_eq!(labels, [0, 1, 1, 1, 4, 4]);
        let beyond = "a pair names a row beyond the 6 rows; pass n = the number of rows joined";
        assert_eq!(components(&[0], &[6], 6, &Cancel::new()), Err(Fault::value(beyond)));
    }

    #[test]
    fn sharing_runs_every_task_once() {
        let sums = share(3, 100, || 0, |sum, task| *sum += task);
        assert_eq!(sums.iter().sum::<usize>(), 4950);
    }
}
