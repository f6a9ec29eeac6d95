#![forbid(unsafe_code)]
//! Names: short texts by number. One of up to 15 bytes is in its slot, so that it is read at once.

use crate::system::column::prefetch;
use crate::system::memory::{append, more_room, room_for};

#[derive(Default)]
pub struct Names {
    /// The length and the text; or `LONG`, then where the text is in `long` and its length.
    slots: Vec<[u8; SLOT]>,
    long: Vec<u8>,
}

const SLOT: usize = 16;
const LONG: u8 = u8::MAX;

impl Names {
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn push(&mut self, name: &[u8]) {
        more_room(&mut self.slots, 1);
        let mut slot = [0; SLOT];
        if name.len() < SLOT {
            slot[0] = name.len() as u8;
            slot[1..=name.len()].copy_from_slice(name);
        } else {
            slot[0] = LONG;
            slot[1..8].copy_from_slice(&(self.long.len() as u64).to_le_bytes()[..7]);
            slot[8..].copy_from_slice(&(name.len() as u64).to_le_bytes());
            append(&mut self.long, name);
        }
        self.slots.push(slot);
    }

    #[inline]
    pub fn get(&self, number: u32) -> &[u8] {
        let slot = &self.slots[number as usize];
        if slot[0] != LONG {
            return &slot[1..=slot[0] as usize];
        }
        let [_, start @ .., _, _, _, _, _, _, _, _] = *slot;
        let mut wide = [0; 8];
        wide[..7].copy_from_slice(&start);
        let start = u64::from_le_bytes(wide) as usize;
        wide.copy_from_slice(&slot[8..]);
        &self.long[start..start + u64::from_le_bytes(wide) as usize]
    }

    /// Ask for a slot before it is needed, if it is there.
    pub fn prefetch(&self, number: u32) {
        prefetch(&self.slots, number as usize);
    }

    /// Only some names, in this order.
    pub fn only(&self, numbers: impl ExactSizeIterator<Item = u32>) -> Names {
        let mut names = Names { slots: room_for(numbers.len()), long: Vec::new() };
        numbers.for_each(|number| names.push(self.get(number)));
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_come_back() {
        let given: Vec<Vec<u8>> = (0..40).map(|length| vec![b'a' + length; length as usize]).collect();
        let mut names = Names::default();
        given.iter().for_each(|name| names.push(name));
        for (number, name) in (0..).zip(&given) {
            assert_eq!(names.get(number), name);
        }
        let some = names.only([20, 3].into_iter());
        assert_eq!((some.get(0), some.get(1), some.len()), (&given[20][..], &given[3][..], 2));
    }
}
