#![forbid(unsafe_code)]
//! Ids: what a user calls the entries of an index, integers or texts.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::system::column::Column;
use crate::system::memory::{append, copied, more_keys, more_room, push, room_for};

pub enum Ids {
    /// Entry `i` is called `i`, for this many entries.
    Counted(usize),
    Numbers(Column<i64>),
    /// All texts one after another, and where each ends.
    Texts {
        bytes: Column<u8>,
        ends: Column<u64>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id<'a> {
    Number(i64),
    Text(&'a [u8]),
}

fn owned<T: crate::system::column::Number>(column: &mut Column<T>) -> &mut Vec<T> {
    if let Column::Mapped { .. } = column {
        *column = Column::Owned(copied(column.slice()));
    }
    match column {
        Column::Owned(values) => values,
        Column::Mapped { .. } => unreachable!("the column was made owned above"),
    }
}

impl Ids {
    /// No ids yet, of which all will be texts.
    pub fn texts() -> Ids {
        Ids::Texts { bytes: Column::default(), ends: Column::default() }
    }

    pub fn len(&self) -> usize {
        match self {
            Ids::Counted(count) => *count,
            Ids::Numbers(numbers) => numbers.slice().len(),
            Ids::Texts { ends, .. } => ends.slice().len(),
        }
    }

    pub fn get(&self, entry: u32) -> Id<'_> {
        match self {
            Ids::Counted(_) => Id::Number(i64::from(entry)),
            Ids::Numbers(numbers) => Id::Number(numbers.slice()[entry as usize]),
            Ids::Texts { bytes, ends } => {
                let ends = ends.slice();
                let start = if entry == 0 { 0 } else { ends[entry as usize - 1] as usize };
                Id::Text(&bytes.slice()[start..ends[entry as usize] as usize])
            }
        }
    }

    /// Add an id; false if it is of the other kind.
    pub fn push(&mut self, id: Id<'_>) -> bool {
        if self.len() == 0 && matches!(id, Id::Text(_)) && !matches!(self, Ids::Texts { .. }) {
            *self = Ids::texts();
        } else if self.len() == 0 && matches!(id, Id::Number(_)) && matches!(self, Ids::Texts { .. }) {
            *self = Ids::Counted(0);
        }
        match (&mut *self, id) {
            (Ids::Counted(count), Id::Number(number)) => {
                if usize::try_from(number) == Ok(*count) {
                    *count += 1;
                } else {
                    let mut numbers: Vec<i64> = room_for(*count + 1);
                    numbers.extend(0..*count as i64);
                    numbers.push(number);
                    *self = Ids::Numbers(Column::Owned(numbers));
                }
            }
            (Ids::Numbers(numbers), Id::Number(number)) => push(owned(numbers), number),
            (Ids::Texts { bytes, ends }, Id::Text(text)) => {
                let (bytes, ends) = (owned(bytes), owned(ends));
                more_room(ends, 1);
                append(bytes, text);
                ends.push(bytes.len() as u64);
            }
            _ => return false,
        }
        true
    }

    /// Add many integers; false if the ids are texts.
    pub fn extend(&mut self, numbers: &[i64]) -> bool {
        if let (Ids::Counted(count), true) = (&mut *self, numbers.len() > 1) {
            let next = *count as i64;
            if (next..).zip(numbers).all(|(expected, &number)| expected == number) {
                *count += numbers.len();
                return true;
            }
        }
        numbers.iter().all(|&number| self.push(Id::Number(number)))
    }

    /// Only the first ids: what was added after them could not be used.
    pub fn truncate(&mut self, count: usize) {
        match self {
            Ids::Counted(known) => *known = count.min(*known),
            Ids::Numbers(numbers) if numbers.slice().len() > count => owned(numbers).truncate(count),
            Ids::Texts { bytes, ends } if ends.slice().len() > count => {
                let end = if count == 0 { 0 } else { ends.slice()[count - 1] as usize };
                owned(ends).truncate(count);
                owned(bytes).truncate(end);
            }
            _ => {}
        }
    }

    /// Only the ids of these entries, in this order.
    pub fn only(&self, entries: impl Iterator<Item = u32>) -> Ids {
        let mut ids = match self {
            Ids::Texts { .. } => Ids::texts(),
            _ => Ids::Counted(0),
        };
        for entry in entries {
            ids.push(self.get(entry));
        }
        ids
    }

    pub fn bytes(&self) -> usize {
        match self {
            Ids::Counted(_) => 0,
            Ids::Numbers(numbers) => numbers.slice().len() * 8,
            Ids::Texts { bytes, ends } => bytes.slice().len() + ends.slice().len() * 8,
        }
    }
}

/// From id to entries; made when it is first needed. The hash is keyed, so ids cannot flood it.
pub struct Lookup {
    state: RandomState,
    last: HashMap<u64, u32>,
    before: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Lookup {
    pub fn of(ids: &Ids) -> Lookup {
        let mut lookup = Lookup { state: RandomState::new(), last: HashMap::new(), before: Vec::new() };
        lookup.extend(ids);
        lookup
    }

    /// Take in the entries that are new in `ids`.
    pub fn extend(&mut self, ids: &Ids) {
        let new = ids.len().saturating_sub(self.before.len());
        more_room(&mut self.before, new);
        more_keys(&mut self.last, new);
        for entry in self.before.len()..ids.len() {
            let hash = self.hash(ids.get(entry as u32));
            let before = self.last.insert(hash, entry as u32).unwrap_or(NONE);
            self.before.push(before);
        }
    }

    fn hash(&self, id: Id<'_>) -> u64 {
        match id {
            Id::Number(number) => self.state.hash_one(number),
            Id::Text(text) => self.state.hash_one(text),
        }
    }

    /// All entries that are called `id`.
    pub fn entries(&self, ids: &Ids, id: Id<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        let mut entry = self.last.get(&self.hash(id)).copied().unwrap_or(NONE);
        while entry != NONE {
            if ids.get(entry) == id {
                push(&mut found, entry);
            }
            entry = self.before[entry as usize];
        }
        found
    }
}
