#![forbid(unsafe_code)]
//! A join whose pairs come in batches: rows ask an index of the distinct values, in order.

use crate::index::Hit;
use crate::index::any::{Entries, entries};
use crate::join::resolve::{Pair, Rows, Values};
use crate::join::rows::{Failure, Given};
use crate::system::memory::{copied, more_room, room_for};
use crate::system::parallel::Cancel;

/// Rows that ask together.
const BLOCK: usize = 4096;

pub struct PairBatches {
    index: Box<dyn Entries>,
    held: Rows,
    /// The rows that ask, without those that have no information; their numbers, if some went.
    words: Vec<u64>,
    numbers: Option<Vec<u32>>,
    width: usize,
    radius: u32,
    threads: usize,
    /// Rows ask those of their own set.
    own: bool,
    next: usize,
    hits: Vec<Hit>,
    hits_at: usize,
    block_end: usize,
}

impl PairBatches {
    /// The pairs of *rows* within the radius, or those with *other* ones.
    pub fn new(
        rows: Given<'_>,
        other: Option<Given<'_>>,
        bits: usize,
        radius: u32,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<PairBatches, Failure> {
        let mut index = entries(bits, radius);
        let asked = other.unwrap_or(rows);
        let held = with_words!(asked.width, W => {
            let numbers = asked.numbers();
            let mut room = Vec::new();
            let rows = asked.rows::<W>(numbers.as_deref(), &mut room);
            let mut values = Values::<W>::with_room(rows.len());
            for row in rows {
                values.number(row);
            }
            index.put(Given::whole(values.values.as_flattened(), W), threads);
            values.rows(rows, numbers.as_deref(), threads, cancel)?
        });
        let numbers = rows.numbers();
        let words = match &numbers {
            None => copied(rows.words),
            Some(numbers) => {
                let mut words = room_for(numbers.len() * rows.width);
                numbers.iter().for_each(|&row| words.extend_from_slice(rows.row(row as usize)));
                words
            }
        };
        Ok(PairBatches {
            index,
            held,
            words,
            numbers,
            width: rows.width,
            radius,
            threads,
            own: other.is_none(),
            next: 0,
            hits: Vec::new(),
            hits_at: 0,
            block_end: 0,
        })
    }

    /// The next pairs, about *most* of them; none at the end.
    pub fn take(&mut self, most: usize, cancel: &Cancel) -> Result<Vec<Pair>, Failure> {
        let mut pairs = Vec::new();
        let rows = self.words.len() / self.width;
        while pairs.len() < most && self.next < rows {
            cancel.check()?;
            if self.next == self.block_end {
                let end = (self.next + BLOCK).min(rows);
                let asked = Given::whole(&self.words[self.next * self.width..end * self.width], self.width);
                self.hits = self.index.found(asked, self.radius, self.threads, cancel)?;
                self.hits_at = 0;
                self.block_end = end;
            }
            let block_start = self.block_end - (self.block_end - 1) % BLOCK - 1;
            let query = (self.next - block_start) as u32;
            let left = self.numbers.as_ref().map_or(self.next as u32, |numbers| numbers[self.next]);
            let first = pairs.len();
            while self.hits_at < self.hits.len() && self.hits[self.hits_at].query == query {
                let hit = self.hits[self.hits_at];
                self.hits_at += 1;
                let rows = self.held.of(hit.entry);
                let rows = if self.own { &rows[rows.partition_point(|&row| row <= left)..] } else { rows };
                more_room(&mut pairs, rows.len());
                pairs.extend(rows.iter().map(|&right| Pair { left, right, distance: hit.distance }));
            }
            pairs[first..].sort_unstable();
            self.next += 1;
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::Force;
    use crate::join::clustered;
    use crate::join::rows::{Ask, cross_rows, join_rows};

    fn all(mut batches: PairBatches, most: usize) -> Vec<Pair> {
        let mut pairs = Vec::new();
        loop {
            let some = batches.take(most, &Cancel::new()).unwrap();
            if some.is_empty() {
                return pairs;
            }
            pairs.extend(some);
        }
    }

    #[test]
    fn batches_hold_together_what_one_join_holds() {
        let rows = clustered::<3>(5000, 7);
        let valid: Vec<bool> = (0..5000).map(|row| row % 11 != 3).collect();
        let given = Given { words: rows.as_flattened(), width: 3, valid: Some(&valid) };
        let other = Given::whole(&rows.as_flattened()[..900], 3);
        let ask = Ask { bits: 192, radius: 3, recall: 1.0, threads: 2, force: Force::Any, memory: None };
        let cancel = Cancel::new();
        let batches = |other| PairBatches::new(given, other, 192, 3, 2, &cancel).unwrap();
        let expected = join_rows(given, &ask, &cancel).unwrap();
        assert!(expected.len() > 1000);
        assert!(all(batches(None), 100) == expected);
        assert!(all(batches(Some(other)), 1 << 20) == cross_rows(given, other, &ask, &cancel).unwrap());
    }
}
