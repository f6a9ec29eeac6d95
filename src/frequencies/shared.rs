#![forbid(unsafe_code)]
//! Frequencies that several threads count into, and what was made of them while nothing was counted.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};

use crate::frequencies::{Frequencies, Frozen, MOST_FEATURES};
use crate::system::fault::Fault;

/// Every call may have to wait for another thread.
pub struct SharedFrequencies {
    /// Several threads may count into it at once.
    table: RwLock<Frequencies>,
    /// What was made of the table; changed only by the holder of its lock.
    frozen: Mutex<Option<Arc<Frozen>>>,
}

impl SharedFrequencies {
    pub fn new(max_features: usize) -> Result<SharedFrequencies, Fault> {
        if max_features as u64 > MOST_FEATURES {
            return Err(Fault::Value(format!("max_features must be at most {MOST_FEATURES}")));
        }
        Ok(SharedFrequencies::of(Frequencies::new(max_features)))
    }

    pub fn of(table: Frequencies) -> SharedFrequencies {
        SharedFrequencies { table: RwLock::new(table), frozen: Mutex::default() }
    }

    fn remember(&self, frozen: Option<Arc<Frozen>>) {
        *self.frozen.lock().unwrap_or_else(PoisonError::into_inner) = frozen;
    }

    fn locked(&self) -> RwLockWriteGuard<'_, Frequencies> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Let *count* count into the table.
    pub fn counting<T>(&self, count: impl FnOnce(&Frequencies) -> T) -> T {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let done = count(&table);
        self.remember(None);
        let is_full = table.is_full();
        drop(table);
        if is_full {
            self.locked().limit();
        }
        done
    }

    /// What *ask* says of the table with all that was counted.
    pub fn settled<T>(&self, ask: impl FnOnce(&mut Frequencies) -> T) -> T {
        let mut table = self.locked();
        table.settle();
        ask(&mut table)
    }

    /// The frozen table, if it is known without waiting for those who count.
    pub fn known(&self) -> Option<Arc<Frozen>> {
        self.frozen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The table frozen, once for as long as nothing is counted.
    pub fn frozen(&self) -> Arc<Frozen> {
        self.known().unwrap_or_else(|| {
            self.settled(|table| {
                let frozen = self.known().unwrap_or_else(|| Arc::new(table.freeze()));
                self.remember(Some(frozen.clone()));
                frozen
            })
        })
    }

    /// Add what another one counted.
    pub fn merge(&self, other: &SharedFrequencies) -> Result<(), Fault> {
        if std::ptr::eq(self, other) {
            return Err(Fault::value("a table cannot be added to itself; count into another one"));
        }
        // In a fixed order, so that two threads that merge to and fro never wait for each other.
        let (mut own, mut theirs);
        if std::ptr::from_ref(self) < std::ptr::from_ref(other) {
            (own, theirs) = (self.locked(), other.locked());
        } else {
            (theirs, own) = (other.locked(), self.locked());
        }
        own.settle();
        theirs.settle();
        self.remember(None);
        own.merge(&theirs).map_err(Fault::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequencies::grams::Grams;

    fn count(table: &SharedFrequencies, hashes: &[u64]) {
        table.counting(|table| table.counter().add(hashes, Grams::NONE));
    }

    #[test]
    fn what_was_frozen_is_kept_until_more_is_counted() {
        let table = SharedFrequencies::new(100).unwrap();
        count(&table, &[3 << 40, 5 << 40]);
        assert!(table.known().is_none());
        let first = table.frozen();
        assert!(Arc::ptr_eq(&first, &table.frozen()));
        count(&table, &[3 << 40]);
        assert!(table.known().is_none());
        assert_ne!(first.digest, table.frozen().digest);
        assert_eq!(table.settled(|table| (table.documents(), table.get(3 << 40))), (2, 2));
    }

    #[test]
    fn a_table_that_is_full_is_a_sketch_after_the_call() {
        let table = SharedFrequencies::new(3).unwrap();
        count(&table, &[1 << 40, 2 << 40, 3 << 40, 4 << 40]);
        assert!(table.table.read().unwrap().features().is_none());
    }

    #[test]
    fn a_table_is_not_added_to_itself_nor_to_one_of_another_size() {
        let (one, other) = (SharedFrequencies::new(100).unwrap(), SharedFrequencies::new(100).unwrap());
        count(&other, &[7 << 40]);
        one.merge(&other).unwrap();
        assert_eq!(one.settled(|table| table.get(7 << 40)), 1);
        let itself = "a table cannot be added to itself; count into another one";
        assert_eq!(one.merge(&one), Err(Fault::value(itself)));
        assert!(one.merge(&SharedFrequencies::new(7).unwrap()).is_err());
        assert!(SharedFrequencies::new(usize::MAX).is_err());
    }

    #[test]
    fn two_threads_that_merge_to_and_fro_end() {
        let (one, other) = (SharedFrequencies::new(100).unwrap(), SharedFrequencies::new(100).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200).for_each(|_| one.merge(&other).unwrap()));
            (0..200).for_each(|_| other.merge(&one).unwrap());
        });
    }
}
