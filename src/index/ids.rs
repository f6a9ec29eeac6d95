#![forbid(unsafe_code)]
//! Ids: what a user calls the entries of an index, integers or texts.
//!
//! Those of a file stay where they lie, beside a list of the entries in the order of their ids. Those that come
//! later are kept apart, so that neither an `add` nor a `remove` after a load costs more than what it does.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::xxh3_64;

use crate::system::column::Column;
use crate::system::memory::{append, copied, gathered, more_keys, more_room, push, room_for};

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

    pub fn bytes(&self) -> usize {
        match self {
            Ids::Counted(_) => 0,
            Ids::Numbers(numbers) => numbers.slice().len() * 8,
            Ids::Texts { bytes, ends } => bytes.slice().len() + ends.slice().len() * 8,
        }
    }
}

/// The entries of a list of ids in the order in which `Named` looks them up; empty where an entry's number is its id.
pub fn order(ids: &Ids) -> Vec<u32> {
    let count = ids.len() as u32;
    match ids {
        Ids::Counted(_) => Vec::new(),
        Ids::Numbers(numbers) => {
            let mut all: Vec<(i64, u32)> = room_for(numbers.slice().len());
            all.extend(numbers.slice().iter().copied().zip(0..count));
            all.sort_unstable();
            gathered(all.iter().map(|id| id.1))
        }
        Ids::Texts { .. } => {
            let mut all: Vec<(u64, u32)> = room_for(count as usize);
            all.extend((0..count).map(|entry| (place(ids.get(entry)), entry)));
            // Equal hashes are in the order of the texts: whoever makes many of them gains nothing.
            let text = |one: &(u64, u32)| ids.get(one.1);
            all.sort_unstable_by(|one, two| {
                one.0.cmp(&two.0).then_with(|| text(one).cmp(&text(two))).then_with(|| one.1.cmp(&two.1))
            });
            gathered(all.iter().map(|id| id.1))
        }
    }
}

/// What ids are ordered by before anything else. Texts have much in common where they begin, their hashes do not.
fn place(id: Id<'_>) -> u64 {
    match id {
        Id::Number(_) => 0,
        Id::Text(text) => xxh3_64(text),
    }
}

/// The ids of an index, and which entries have them.
pub struct Named {
    /// Those of the file that the index came from.
    filed: Ids,
    order: Column<u32>,
    /// Those of later entries.
    new: Ids,
    lookup: Option<Lookup>,
}

impl Named {
    /// Ids that are all new.
    pub fn new(ids: Ids) -> Named {
        Named { filed: Ids::Counted(0), order: Column::default(), new: ids, lookup: None }
    }

    /// Ids of a file, and their order.
    pub fn filed(filed: Ids, order: Column<u32>) -> Named {
        let new = match filed {
            _ if filed.len() == 0 => Ids::Counted(0),
            Ids::Texts { .. } => Ids::texts(),
            _ => Ids::Numbers(Column::default()),
        };
        Named { filed, order, new, lookup: None }
    }

    pub fn len(&self) -> usize {
        self.filed.len() + self.new.len()
    }

    pub fn get(&self, entry: u32) -> Id<'_> {
        match (entry as usize).checked_sub(self.filed.len()) {
            None => self.filed.get(entry),
            Some(new) => self.new.get(new as u32),
        }
    }

    pub fn are_texts(&self) -> bool {
        let ids = if self.filed.len() > 0 { &self.filed } else { &self.new };
        matches!(ids, Ids::Texts { .. })
    }

    /// Whether the id of each entry is its number.
    pub fn are_counted(&self) -> bool {
        match (&self.filed, &self.new) {
            (Ids::Counted(0), new) => matches!(new, Ids::Counted(_)),
            (filed, new) => matches!(filed, Ids::Counted(_)) && new.len() == 0,
        }
    }

    /// Add an id; false if it is of the other kind.
    pub fn push(&mut self, id: Id<'_>) -> bool {
        self.new.push(id)
    }

    /// Add many integers; false if the ids are texts.
    pub fn extend(&mut self, numbers: &[i64]) -> bool {
        self.new.extend(numbers)
    }

    /// Only the first ids, among them all that were filed.
    pub fn truncate(&mut self, count: usize) {
        self.new.truncate(count - self.filed.len());
    }

    /// The ids of these entries, in this order.
    pub fn only(&self, entries: impl Iterator<Item = u32>) -> Ids {
        let mut ids = if self.are_texts() { Ids::texts() } else { Ids::Counted(0) };
        for entry in entries {
            ids.push(self.get(entry));
        }
        ids
    }

    pub fn bytes(&self) -> usize {
        self.filed.bytes() + self.order.slice().len() * 4 + self.new.bytes()
    }

    pub fn are_mapped(&self) -> bool {
        matches!(self.filed, Ids::Numbers(Column::Mapped { .. }) | Ids::Texts { bytes: Column::Mapped { .. }, .. })
    }

    /// Need the file no more.
    pub fn take_home(&mut self) {
        match &mut self.filed {
            Ids::Counted(_) => {}
            Ids::Numbers(numbers) => _ = owned(numbers),
            Ids::Texts { bytes, ends } => _ = (owned(bytes), owned(ends)),
        }
        owned(&mut self.order);
    }

    /// All entries that are called `id`.
    pub fn entries(&mut self, id: Id<'_>) -> Vec<u32> {
        let mut found = Vec::new();
        if let (Ids::Counted(count), Id::Number(number)) = (&self.filed, id)
            && (0..*count as i64).contains(&number)
        {
            push(&mut found, number as u32);
        }
        let order = self.order.slice();
        let own = (place(id), id);
        let compared = |entry: u32| -> Ordering {
            let other = self.filed.get(entry);
            (place(other), other).cmp(&own)
        };
        let first = order.partition_point(|&entry| compared(entry) == Ordering::Less);
        let same = order[first..].iter().take_while(|&&entry| compared(entry) == Ordering::Equal);
        same.for_each(|&entry| push(&mut found, entry));
        let lookup = self.lookup.get_or_insert_with(|| Lookup::of(&Ids::Counted(0)));
        lookup.extend(&self.new);
        let filed = self.filed.len() as u32;
        lookup.entries(&self.new, id).iter().for_each(|entry| push(&mut found, filed + entry));
        found
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filed(ids: Ids) -> Named {
        let order = order(&ids);
        Named::filed(ids, Column::Owned(order))
    }

    #[test]
    fn an_id_is_found_whether_it_was_filed_or_came_later() {
        let mut ids = Ids::texts();
        ["b", "a", "", "b", "c"].iter().for_each(|text| _ = ids.push(Id::Text(text.as_bytes())));
        let mut named = filed(ids);
        named.push(Id::Text(b"b"));
        named.push(Id::Text(b"new"));
        for (text, entries) in [("b", vec![0, 3, 5]), ("", vec![2]), ("new", vec![6]), ("d", vec![])] {
            assert_eq!(named.entries(Id::Text(text.as_bytes())), entries, "{text}");
        }
        assert_eq!((named.len(), named.get(4), named.get(6)), (7, Id::Text(b"c"), Id::Text(b"new")));
        named.truncate(6);
        assert_eq!((named.len(), named.entries(Id::Text(b"b"))), (6, vec![0, 3, 5]));

        let mut ids = Ids::Counted(0);
        ids.extend(&[7, -3, 7, i64::MAX]);
        let mut named = filed(ids);
        named.push(Id::Number(-3));
        assert_eq!(named.entries(Id::Number(-3)), [1, 4]);
        assert_eq!(named.entries(Id::Number(7)), [0, 2]);

        let mut named = filed(Ids::Counted(3));
        named.extend(&[3, 1]);
        assert_eq!((named.entries(Id::Number(1)), named.entries(Id::Number(3))), (vec![1, 4], vec![3]));
        assert!(!named.are_counted() && filed(Ids::Counted(3)).are_counted());
    }
}
