#![forbid(unsafe_code)]
//! An index that several threads ask and change, and the file under it.

use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use crate::index::Hit;
use crate::index::any::{AnyIndex, Refusal};
use crate::index::ids::Ids;
use crate::index::opened::Watch;
use crate::system::fault::Fault;

/// Readers share it; a writer has it alone.
pub struct SharedIndex {
    index: RwLock<AnyIndex>,
    pub bits: usize,
    pub radius: u32,
    watch: Option<Watch>,
}

fn changed(path: &Path) -> Fault {
    let how = "was changed while it was in use; load it again (map=False reads it into memory)";
    Fault::Changed(format!("'{}' {how}", path.display()))
}

/// Hits, and the id of each.
pub type Found = (Vec<Hit>, Ids);

impl SharedIndex {
    pub fn new(index: AnyIndex, watch: Option<Watch>) -> SharedIndex {
        let (bits, radius) = (index.bits, index.radius);
        SharedIndex { index: RwLock::new(index), bits, radius, watch }
    }

    /// Do *work* on what was checked. A file that changed under its map, before or meanwhile, is a fault.
    pub fn on_what_was_checked<T, E: From<Fault>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let Some(watch) = self.watch.as_ref().filter(|watch| watch.is_needed()) else {
            return work();
        };
        let check = || if watch.is_sound() { Ok(()) } else { Err(changed(&watch.path)) };
        check()?;
        let done = work();
        check()?;
        done
    }

    /// The index, to be read. An index that an error left half changed says so.
    pub fn read(&self) -> Result<RwLockReadGuard<'_, AnyIndex>, Refusal> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.sound().map(|()| index)
    }

    /// The same if nobody has to be waited for.
    pub fn try_read(&self) -> Option<Result<RwLockReadGuard<'_, AnyIndex>, Refusal>> {
        let index = match self.index.try_read() {
            Ok(index) => index,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(index.sound().map(|()| index))
    }

    /// The index, to be changed.
    pub fn write(&self) -> RwLockWriteGuard<'_, AnyIndex> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same if nobody has to be waited for.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, AnyIndex>> {
        self.index.try_write().ok()
    }
}

impl AnyIndex {
    /// Hits with the ids that their entries have now: entries are numbered anew when others change the index.
    pub fn named(&self, hits: Vec<Hit>) -> Found {
        let ids = self.ids.only(hits.iter().map(|hit| hit.entry));
        (hits, ids)
    }

    /// The ids of all entries, and the words of each.
    pub fn named_items(&self) -> (Ids, Vec<u64>) {
        let (entries, words) = self.items();
        (self.ids.only(entries.into_iter()), words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::any::Names;
    use crate::index::ids::Id;

    fn shared() -> SharedIndex {
        let mut index = AnyIndex::new(64, 3);
        index.add_one(Id::Text(b"one"), &[1]).unwrap();
        index.add_one(Id::Text(b"two"), &[2]).unwrap();
        SharedIndex::new(index, None)
    }

    #[test]
    fn hits_keep_their_ids_when_the_index_changes() {
        let shared = shared();
        let (hits, ids) = {
            let index = shared.read().unwrap();
            index.named(index.search_one(&[2], 3))
        };
        shared.write().remove(Names::One(Id::Text(b"one"))).unwrap();
        assert_eq!(hits.iter().map(|hit| hit.distance).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((ids.get(0), ids.get(1)), (Id::Text(b"two"), Id::Text(b"one")));
        let (ids, words) = shared.read().unwrap().named_items();
        assert_eq!((ids.len(), ids.get(0), words), (1, Id::Text(b"two"), vec![2]));
    }

    #[test]
    fn nobody_waits_who_only_tries() {
        let shared = shared();
        let reading = shared.try_read().unwrap().unwrap();
        assert!(shared.try_read().is_some() && shared.try_write().is_none());
        drop(reading);
        let writing = shared.try_write().unwrap();
        assert!(shared.try_read().is_none());
        drop(writing);
        assert!(shared.try_read().is_some());
    }

    #[test]
    fn an_index_whose_change_panicked_can_be_asked_what_it_is() {
        let shared = shared();
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _index = shared.write();
                std::panic::resume_unwind(Box::new("broken"));
            });
            assert!(panics.join().is_err());
        });
        assert_eq!(shared.read().unwrap().len(), 2);
        assert!(shared.try_read().unwrap().is_ok());
    }

    #[test]
    fn without_a_file_nothing_is_looked_at() {
        let answer = shared().on_what_was_checked(|| Ok::<_, Fault>(7));
        assert_eq!(answer, Ok(7));
    }
}
