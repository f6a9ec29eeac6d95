#![forbid(unsafe_code)]
//! An index as its users have it: of any width, its entries under ids, and undone where a change of it is unwound.

use std::io;

use crate::hamming::widths::padded;
use crate::index::file::{self, About, Out, Stamp};
use crate::index::frozen::Frozen;
use crate::index::ids::{Id, Ids, Named};
use crate::index::{Hit, Index};
use crate::join::rows::Given;
use crate::system::fault::Fault;
use crate::system::memory::{append, attempt, gathered, room_for};
use crate::system::parallel::{Cancel, Cancelled, share, thread_count};

/// An index of some width. Rows have as many words as its fingerprints, or are padded already.
pub trait Entries: Send + Sync {
    /// Entries that are not removed.
    fn living(&self) -> usize;
    /// Entries ever numbered, also removed ones.
    fn numbered(&self) -> u32;
    fn bytes(&self) -> usize;
    /// For each segment its rows, and its tables as (bits of the key, radius).
    fn segments(&self) -> Vec<(usize, Vec<(u32, u32)>)>;
    fn torn(&self) -> bool;
    /// Whether some of them lie in a file.
    fn are_mapped(&self) -> bool;
    fn put(&mut self, rows: Given<'_>, threads: usize);
    fn forget_from(&mut self, entry: u32);
    fn take_out(&mut self, entry: u32) -> bool;
    fn worn(&self) -> bool;
    /// All that is within the radius of one fingerprint, in no order.
    fn near(&self, value: &[u64], radius: u32) -> Vec<Hit>;
    /// At least the *count* nearest of one fingerprint.
    fn nearest_of(&self, value: &[u64], count: usize) -> Vec<Hit>;
    /// All that is within the radius of each row with information.
    fn found(&self, rows: Given<'_>, radius: u32, threads: usize, cancel: &Cancel) -> Result<Vec<Hit>, Cancelled>;
    /// What lives: the entries in order, and *width* words of each.
    fn listed(&self, width: usize) -> (Vec<u32>, Vec<u64>);
    /// The same entries renumbered without those that were removed; their old numbers.
    fn renewed(&self, threads: usize) -> (Box<dyn Entries>, Vec<u32>);
    /// As `renewed`, to be written.
    fn snapshot(&self, threads: usize) -> (Box<dyn Snapshot>, Vec<u32>);
}

/// Entries to be written, which nobody changes meanwhile.
pub trait Snapshot: Send {
    fn write(&self, out: &mut dyn Out, ids: &Ids, about: &About<'_>) -> io::Result<Stamp>;
}

impl<const W: usize> Snapshot for Frozen<W> {
    fn write(&self, out: &mut dyn Out, ids: &Ids, about: &About<'_>) -> io::Result<Stamp> {
        file::write(out, self, ids, about)
    }
}

impl<const W: usize> Entries for Index<W> {
    fn living(&self) -> usize {
        self.len()
    }

    fn numbered(&self) -> u32 {
        self.entries()
    }

    fn bytes(&self) -> usize {
        Index::bytes(self)
    }

    fn segments(&self) -> Vec<(usize, Vec<(u32, u32)>)> {
        self.segments.iter().map(|segment| (segment.len(), segment.tables())).collect()
    }

    fn torn(&self) -> bool {
        self.torn
    }

    fn are_mapped(&self) -> bool {
        self.segments.iter().any(Frozen::is_mapped)
    }

    fn put(&mut self, rows: Given<'_>, threads: usize) {
        self.add(rows.rows::<W>(None, &mut Vec::new()), threads);
    }

    fn forget_from(&mut self, entry: u32) {
        self.forget(entry);
    }

    fn take_out(&mut self, entry: u32) -> bool {
        self.remove(entry)
    }

    fn worn(&self) -> bool {
        self.is_worn()
    }

    fn near(&self, value: &[u64], radius: u32) -> Vec<Hit> {
        self.hits_of_one(&padded(value), radius)
    }

    fn nearest_of(&self, value: &[u64], count: usize) -> Vec<Hit> {
        self.nearest(&padded(value), count)
    }

    fn found(&self, rows: Given<'_>, radius: u32, threads: usize, cancel: &Cancel) -> Result<Vec<Hit>, Cancelled> {
        let numbers = rows.numbers();
        let mut hits = self.search(rows.rows::<W>(numbers.as_deref(), &mut Vec::new()), radius, threads, cancel)?;
        if let Some(numbers) = numbers {
            hits.iter_mut().for_each(|hit| hit.query = numbers[hit.query as usize]);
        }
        Ok(hits)
    }

    fn listed(&self, width: usize) -> (Vec<u32>, Vec<u64>) {
        let rows = self.rows();
        let mut words = room_for(rows.len() * width);
        rows.iter().for_each(|row| words.extend_from_slice(&row.1[..width]));
        (gathered(rows.iter().map(|row| row.0)), words)
    }

    fn renewed(&self, threads: usize) -> (Box<dyn Entries>, Vec<u32>) {
        let rows = self.rows();
        let old = gathered(rows.iter().map(|row| row.0));
        let mut new = Index::<W>::new(self.bits, self.radius);
        new.add(&gathered(rows.into_iter().map(|row| row.1)), threads);
        (Box::new(new), old)
    }

    fn snapshot(&self, threads: usize) -> (Box<dyn Snapshot>, Vec<u32>) {
        let old = gathered(self.rows().iter().map(|row| row.0));
        (Box::new(self.compacted(threads)), old)
    }
}

/// An empty index of any width.
pub fn entries(bits: usize, radius: u32) -> Box<dyn Entries> {
    with_words!(bits.div_ceil(64), W => Box::new(Index::<W>::new(bits, radius)))
}

/// Why an index did not do what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Integers among texts, or texts among integers.
    Mixed,
    Full,
    Memory,
    Torn,
    Stopped,
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        match refusal {
            Refusal::Mixed => Fault::Type("the ids of an index are all integers or all str; use one kind".into()),
            Refusal::Full => Fault::Limit("an index holds at most 4294967294 fingerprints".into()),
            Refusal::Memory => Fault::Memory("not enough memory for these fingerprints; the index is as it was".into()),
            Refusal::Torn => Fault::Runtime("an error left the index half changed; load it or build it again".into()),
            Refusal::Stopped => Fault::Runtime("stopped".into()),
        }
    }
}

impl From<Cancelled> for Refusal {
    fn from(_: Cancelled) -> Refusal {
        Refusal::Stopped
    }
}

/// Ids as they are handed over.
#[derive(Clone, Copy)]
pub enum Names<'a> {
    One(Id<'a>),
    Numbers(&'a [i64]),
    /// A list of texts, which also an empty one is.
    Texts(&'a Ids),
}

impl<'a> Names<'a> {
    pub const NONE: Names<'static> = Names::Numbers(&[]);

    fn len(&self) -> usize {
        match self {
            Names::One(_) => 1,
            Names::Numbers(numbers) => numbers.len(),
            Names::Texts(texts) => texts.len(),
        }
    }

    fn get(&self, at: usize) -> Id<'a> {
        match *self {
            Names::One(id) => id,
            Names::Numbers(numbers) => Id::Number(numbers[at]),
            Names::Texts(texts) => texts.get(at as u32),
        }
    }

    fn are_texts(&self) -> bool {
        matches!(self, Names::Texts(_) | Names::One(Id::Text(_)))
    }
}

pub struct AnyIndex {
    pub bits: usize,
    pub radius: u32,
    entries: Box<dyn Entries>,
    pub ids: Named,
    /// A change is under way; it stays set when the change did not end.
    torn: bool,
}

impl AnyIndex {
    pub fn new(bits: usize, radius: u32) -> AnyIndex {
        AnyIndex::of(bits, radius, entries(bits, radius), Named::new(Ids::Counted(0)))
    }

    pub fn of(bits: usize, radius: u32, entries: Box<dyn Entries>, ids: Named) -> AnyIndex {
        AnyIndex { bits, radius, entries, ids, torn: false }
    }

    /// An index that was left half changed must not be asked.
    pub fn sound(&self) -> Result<(), Refusal> {
        if self.torn { Err(Refusal::Torn) } else { Ok(()) }
    }

    pub fn len(&self) -> usize {
        self.entries.living()
    }

    /// Bytes of the entries and the ids.
    pub fn bytes(&self) -> usize {
        self.entries.bytes() + self.ids.bytes()
    }

    pub fn segments(&self) -> Vec<(usize, Vec<(u32, u32)>)> {
        self.entries.segments()
    }

    /// Make a change. Where it is unwound, the index is torn.
    fn change<T>(&mut self, work: impl FnOnce(&mut AnyIndex) -> T) -> T {
        self.torn = true;
        let done = work(self);
        self.torn = false;
        done
    }

    /// Put in a row for each id, in place of all that *replaced* have; what was wrong, and then nothing is changed.
    pub fn add(
        &mut self,
        named: Names<'_>,
        rows: Given<'_>,
        replaced: Names<'_>,
        threads: usize,
    ) -> Result<(), Refusal> {
        self.sound()?;
        let gone = self.entries_of(replaced);
        self.put(named, rows, threads)?;
        self.take_out(&gone);
        Ok(())
    }

    fn put(&mut self, named: Names<'_>, rows: Given<'_>, threads: usize) -> Result<(), Refusal> {
        let (count, texts) = (named.len(), named.are_texts());
        if self.ids.len() > 0 && count > 0 && self.ids.are_texts() != texts {
            return Err(Refusal::Mixed);
        }
        let entries = self.entries.numbered();
        if count as u64 > u64::from(u32::MAX - 1 - entries) {
            return Err(Refusal::Full);
        }
        self.change(|own| {
            let known = own.ids.len();
            let done = attempt(|| {
                match named {
                    Names::Numbers(numbers) => _ = own.ids.extend(numbers),
                    _ => (0..count).for_each(|at| _ = own.ids.push(named.get(at))),
                }
                own.entries.put(rows, threads);
            });
            if done.is_some() {
                if own.ids.are_mapped() && !own.entries.are_mapped() {
                    attempt(|| own.ids.take_home());
                }
                return Ok(());
            }
            own.ids.truncate(known);
            own.entries.forget_from(entries);
            Err(if own.entries.torn() { Refusal::Torn } else { Refusal::Memory })
        })
        .inspect_err(|refusal| self.torn = matches!(refusal, Refusal::Torn))
    }

    /// Put in one row.
    pub fn add_one(&mut self, id: Id<'_>, value: &[u64]) -> Result<(), Refusal> {
        self.add(Names::One(id), Given::whole(value, value.len()), Names::NONE, thread_count(None))
    }

    /// Order hits by query, distance, id.
    fn order(&self, hits: &mut [Hit]) {
        if self.ids.are_counted() {
            hits.sort_unstable();
        } else {
            hits.sort_unstable_by_key(|hit| (hit.query, hit.distance, self.ids.get(hit.entry), hit.entry));
        }
    }

    /// All that is within the radius of one fingerprint.
    pub fn search_one(&self, value: &[u64], radius: u32) -> Vec<Hit> {
        let mut hits = self.entries.near(value, radius);
        self.order(&mut hits);
        hits
    }

    /// All that is within the radius of each row.
    pub fn search(&self, rows: Given<'_>, radius: u32, threads: usize, cancel: &Cancel) -> Result<Vec<Hit>, Cancelled> {
        let mut hits = self.entries.found(rows, radius, threads, cancel)?;
        if !self.ids.are_counted() {
            self.order(&mut hits);
        }
        Ok(hits)
    }

    /// The *count* nearest of each row.
    pub fn nearest(
        &self,
        rows: Given<'_>,
        count: usize,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Vec<Hit>, Cancelled> {
        let workers = share(threads, rows.len(), Vec::new, |found: &mut Vec<Hit>, query| {
            if cancel.is_set() || rows.valid.is_some_and(|valid| !valid[query]) {
                return;
            }
            let mut hits = self.entries.nearest_of(rows.row(query), count);
            hits.iter_mut().for_each(|hit| hit.query = query as u32);
            self.order(&mut hits);
            hits.truncate(count);
            append(found, &hits);
        });
        cancel.check()?;
        let mut hits = room_for(workers.iter().map(Vec::len).sum());
        workers.iter().for_each(|found| hits.extend_from_slice(found));
        self.order(&mut hits);
        Ok(hits)
    }

    /// What the index holds: the entries, and the words of each.
    pub fn items(&self) -> (Vec<u32>, Vec<u64>) {
        self.entries.listed(self.bits.div_ceil(64))
    }

    /// All entries that these ids have.
    fn entries_of(&mut self, named: Names<'_>) -> Vec<u32> {
        let mut entries = Vec::new();
        (0..named.len()).for_each(|at| append(&mut entries, &self.ids.entries(named.get(at))));
        entries
    }

    /// Remove all entries of each id; how many went.
    pub fn remove(&mut self, ids: Names<'_>) -> Result<usize, Refusal> {
        self.sound()?;
        let gone = self.entries_of(ids);
        Ok(self.take_out(&gone))
    }

    /// Remove the entries of one id that have one value; how many went.
    pub fn remove_one(&mut self, id: Id<'_>, value: &[u64]) -> Result<usize, Refusal> {
        self.sound()?;
        let hits = self.entries.near(value, 0);
        let gone: Vec<u32> = hits.iter().map(|hit| hit.entry).filter(|&entry| self.ids.get(entry) == id).collect();
        Ok(self.take_out(&gone))
    }

    fn take_out(&mut self, entries: &[u32]) -> usize {
        self.change(|own| {
            let gone = entries.iter().filter(|&&entry| own.entries.take_out(entry)).count();
            if own.entries.worn() {
                own.compact(thread_count(None));
            }
            gone
        })
    }

    /// Drop removed entries for good.
    fn compact(&mut self, threads: usize) {
        let made = attempt(|| {
            let (new, old) = self.entries.renewed(threads);
            (new, self.ids.only(old.into_iter()))
        });
        // If there is no memory for it, what was removed stays marked.
        if let Some((entries, ids)) = made {
            (self.entries, self.ids) = (entries, Named::new(ids));
        }
    }

    /// What is to be written now, though the index may change meanwhile.
    pub fn snapshot(&self) -> Result<(Box<dyn Snapshot>, Ids), Refusal> {
        self.sound()?;
        let (snapshot, old) = self.entries.snapshot(thread_count(None));
        Ok((snapshot, self.ids.only(old.into_iter())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(names: &[&str]) -> Ids {
        let mut ids = Ids::texts();
        names.iter().for_each(|name| assert!(ids.push(Id::Text(name.as_bytes()))));
        ids
    }

    fn found(index: &AnyIndex, value: &[u64], radius: u32) -> Vec<(u32, u32)> {
        index.search_one(value, radius).iter().map(|hit| (hit.entry, hit.distance)).collect()
    }

    #[test]
    fn an_index_of_any_width_finds_what_was_put_in() {
        for words in [1, 3, 16, 17, 64, 200, 1024] {
            let mut index = AnyIndex::new(64 * words, 2);
            let mut rows = vec![9; 2 * words];
            rows[words] = 8;
            index.add(Names::Numbers(&[5, 4]), Given::whole(&rows, words), Names::NONE, 1).unwrap();
            assert_eq!(found(&index, &rows[..words], 2), [(0, 0), (1, 1)]);
            assert_eq!(index.items().1, rows);
        }
    }

    #[test]
    fn equally_near_entries_come_in_the_order_of_their_ids() {
        let mut index = AnyIndex::new(64, 3);
        index.add(Names::Texts(&texts(&["b", "a"])), Given::whole(&[1, 1], 1), Names::NONE, 1).unwrap();
        assert_eq!(found(&index, &[1], 0), [(1, 0), (0, 0)]);
    }

    #[test]
    fn numbers_and_texts_are_not_mixed() {
        let mut index = AnyIndex::new(64, 3);
        index.add_one(Id::Number(7), &[1]).unwrap();
        assert_eq!(index.add_one(Id::Text(b"a"), &[2]), Err(Refusal::Mixed));
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn what_is_replaced_goes_when_its_successor_comes() {
        let mut index = AnyIndex::new(64, 0);
        index.add_one(Id::Number(7), &[1]).unwrap();
        index.add(Names::Numbers(&[7]), Given::whole(&[2], 1), Names::One(Id::Number(7)), 1).unwrap();
        assert_eq!((found(&index, &[1], 0), found(&index, &[2], 0)), (vec![], vec![(1, 0)]));
    }

    #[test]
    fn only_the_entries_of_an_id_with_a_value_go() {
        let mut index = AnyIndex::new(64, 0);
        index.add(Names::Numbers(&[7, 7, 8]), Given::whole(&[1, 2, 1], 1), Names::NONE, 1).unwrap();
        assert_eq!(index.remove_one(Id::Number(7), &[1]), Ok(1));
        assert_eq!(found(&index, &[1], 0), [(2, 0)]);
        assert_eq!(index.remove(Names::Numbers(&[7, 9])), Ok(1));
        assert_eq!(index.len(), 1);
    }

    #[test]
    fn removed_entries_are_dropped_when_they_are_many() {
        let count = 10_000;
        let mut index = AnyIndex::new(64, 0);
        let (ids, rows): (Vec<i64>, Vec<u64>) = (0..count).map(|row| (row, row as u64)).unzip();
        index.add(Names::Numbers(&ids), Given::whole(&rows, 1), Names::NONE, 2).unwrap();
        assert_eq!(index.remove(Names::Numbers(&ids[1..])), Ok(count as usize - 1));
        assert_eq!(index.ids.len(), 1, "the others are gone for good");
        assert_eq!(found(&index, &[0], 0), [(0, 0)]);
    }

    #[test]
    fn the_nearest_are_found_beyond_the_radius() {
        let mut index = AnyIndex::new(64, 0);
        index.add(Names::Numbers(&[0, 1, 2]), Given::whole(&[0, 1, 7], 1), Names::NONE, 1).unwrap();
        let rows = Given { words: &[0, 7], width: 1, valid: Some(&[true, false]) };
        let hits = index.nearest(rows, 2, 2, &Cancel::new()).unwrap();
        let hits: Vec<_> = hits.iter().map(|hit| (hit.query, hit.distance, hit.entry)).collect();
        assert_eq!(hits, [(0, 0, 0), (0, 1, 1)]);
    }

    #[test]
    fn a_torn_index_refuses() {
        let mut index = AnyIndex::new(64, 0);
        index.torn = true;
        assert_eq!(index.add_one(Id::Number(1), &[1]), Err(Refusal::Torn));
        assert_eq!(index.remove(Names::NONE), Err(Refusal::Torn));
        assert!(index.snapshot().is_err());
    }
}
