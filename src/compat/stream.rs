#![forbid(unsafe_code)]
//! A stream index: named fingerprints are added, removed and queried one by one; each pair is there once.

use std::collections::HashSet;

use crate::compat::names::Names;

/// This many entries are added in a few milliseconds.
const MANY: usize = 1 << 16;

/// A stream index of some width. Values have as many words as it.
pub trait Stream: Send {
    /// Add a pair; false if there is no room.
    fn add(&mut self, id: &[u8], value: &[u64]) -> bool;

    /// Take out a pair, if it is there.
    fn delete(&mut self, id: &[u8], value: &[u64]);

    /// How many wait.
    fn waiting(&self) -> usize;

    /// Whether taking up what waits is worth letting other threads run meanwhile.
    fn is_behind(&self) -> bool {
        self.waiting() > MANY
    }

    /// Take up what waits.
    fn settle(&mut self);

    /// Ask for what `near` reads first.
    fn prefetch(&self, value: &[u64]);

    /// Call `name` once with each id that is within the radius, by distance, then id; the blocks that
    /// are crowded, and how many share them.
    fn near(&mut self, value: &[u64], name: &mut dyn FnMut(&[u8])) -> Vec<(usize, u32)>;

    /// Call `work` with every pair.
    fn each(&mut self, work: &mut dyn FnMut(&[u8], &[u64]));

    /// Call `work` with everything that was deleted, or queried and not found, once.
    fn each_asked(&mut self, work: &mut dyn FnMut(&[u64]));
}

/// Call `name` once with each id of `near`, which is put in order: by distance, then id.
#[inline]
pub fn tell(near: &mut [(u32, u32)], names: &Names, name: &mut dyn FnMut(&[u8])) {
    near.sort_unstable_by(|one, two| {
        one.0.cmp(&two.0).then_with(|| (names.get(one.1), one.1).cmp(&(names.get(two.1), two.1)))
    });
    let mut known = None;
    for (at, &(_, entry)) in near.iter().enumerate() {
        let own = names.get(entry);
        let new = if near.len() > 8 {
            known.get_or_insert_with(HashSet::new).insert(own)
        } else {
            near[..at].iter().all(|&(_, earlier)| names.get(earlier) != own)
        };
        if new {
            name(own);
        }
    }
}
