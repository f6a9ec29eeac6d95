#![forbid(unsafe_code)]
//! A stream index that several threads ask and change.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::compat::stream::Stream;
use crate::compat::words::Words;
use crate::compat::{stream, stream_of};
use crate::system::fault::Fault;
use crate::system::memory::{append, attempt};

/// One thread has it at a time.
pub struct SharedStream {
    bits: AtomicUsize,
    stream: Mutex<Box<dyn Stream>>,
}

/// Does work that may take long while others go on: Python lets go of its interpreter.
pub type Aside<'a> = &'a dyn Fn(&mut (dyn FnMut() + Send));

type Locked<'a> = MutexGuard<'a, Box<dyn Stream>>;

impl Default for SharedStream {
    fn default() -> SharedStream {
        SharedStream { bits: AtomicUsize::new(64), stream: Mutex::new(stream(64, 0, &[], 0)) }
    }
}

impl SharedStream {
    /// Of its fingerprints.
    #[inline(always)]
    pub fn bits(&self) -> usize {
        self.bits.load(Ordering::Relaxed)
    }

    /// Start again. A block is given by its first bit and the one after it.
    pub fn start(
        &self,
        bits: usize,
        radius: u32,
        blocks: &[(usize, usize)],
        limit: u32,
        aside: Aside<'_>,
    ) -> Result<(), Fault> {
        let fresh = stream_of(bits, radius, blocks, limit)?;
        self.stream.clear_poison(); // nothing of what was there stays
        let mut own = self.lock(aside)?;
        self.bits.store(bits, Ordering::Relaxed);
        *own = fresh;
        Ok(())
    }

    fn lock(&self, aside: Aside<'_>) -> Result<Locked<'_>, Fault> {
        loop {
            match self.stream.try_lock() {
                Ok(stream) => return Ok(stream),
                // What was under way when the work was unwound may be there by half.
                Err(TryLockError::Poisoned(_)) => {
                    return Err(Fault::Runtime("an error left the index half changed; build it again".into()));
                }
                Err(TryLockError::WouldBlock) => aside(&mut || drop(self.stream.lock())),
            }
        }
    }

    fn settled(&self, aside: Aside<'_>) -> Result<Locked<'_>, Fault> {
        let mut stream = self.lock(aside)?;
        if stream.is_behind() {
            let waiting = &mut *stream;
            aside(&mut || waiting.settle());
        }
        Ok(stream)
    }

    pub fn add(&self, name: &[u8], value: &Words, aside: Aside<'_>) -> Result<(), Fault> {
        let mut stream = self.lock(aside)?;
        match attempt(|| stream.add(name, value)) {
            Some(true) => Ok(()),
            Some(false) => Err(Fault::Limit("an index holds at most 4294967294 fingerprints".into())),
            None => Err(Fault::Memory("not enough memory for this fingerprint".into())),
        }
    }

    /// Take out a pair, if it is there.
    pub fn delete(&self, name: &[u8], value: &Words, aside: Aside<'_>) -> Result<(), Fault> {
        self.settled(aside)?.delete(name, value);
        Ok(())
    }

    /// Ask for what `near` reads first.
    pub fn prefetch(&self, value: &Words, aside: Aside<'_>) -> Result<(), Fault> {
        self.lock(aside)?.prefetch(value);
        Ok(())
    }

    /// Call `name` with each id that is within the radius, the nearest first; the crowded blocks, and how many
    /// share them. `name` must not come back here: the lock is held.
    pub fn near(
        &self,
        value: &Words,
        name: &mut dyn FnMut(&[u8]),
        aside: Aside<'_>,
    ) -> Result<Vec<(usize, u32)>, Fault> {
        Ok(self.settled(aside)?.near(value, name))
    }

    /// Call `name` with the id of every entry, as above; the words of all.
    pub fn entries(&self, name: &mut dyn FnMut(&[u8]), aside: Aside<'_>) -> Result<Vec<u64>, Fault> {
        let (mut words, width) = (Vec::new(), self.bits().div_ceil(64));
        self.settled(aside)?.each(&mut |id, row| {
            name(id);
            append(&mut words, &row[..width]);
        });
        Ok(words)
    }

    /// The words of everything that was removed, or queried and not found.
    pub fn asked(&self, aside: Aside<'_>) -> Result<Vec<u64>, Fault> {
        let (mut words, width) = (Vec::new(), self.bits().div_ceil(64));
        self.lock(aside)?.each_asked(&mut |row| append(&mut words, &row[..width]));
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::words::lowest;

    const HERE: Aside<'static> = &|work| work();

    #[test]
    fn entries_are_found_until_they_are_deleted() {
        let shared = SharedStream::default();
        shared.start(8, 1, &[(0, 4), (4, 8)], 9, HERE).unwrap();
        assert_eq!(shared.bits(), 8);
        for (name, word) in [(b"one", 1), (b"two", 2)] {
            shared.add(name, &lowest(word, 8), HERE).unwrap();
        }
        let near = || {
            let mut names = Vec::new();
            shared.near(&lowest(3, 8), &mut |name| names.push(name.to_vec()), HERE).unwrap();
            names
        };
        assert_eq!(near(), [b"one", b"two"]);
        shared.delete(b"one", &lowest(1, 8), HERE).unwrap();
        assert_eq!(near(), [b"two"]);
        let mut names = Vec::new();
        assert_eq!(shared.entries(&mut |name| names.push(name.to_vec()), HERE), Ok(vec![2]));
        assert_eq!(names, [b"two"]);
        assert_eq!(shared.asked(HERE), Ok(vec![1, 3]), "deleted, and twice not found itself");
    }

    #[test]
    fn a_stream_whose_change_panicked_refuses_until_it_starts_again() {
        let shared = SharedStream::default();
        std::thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _own = shared.lock(HERE);
                std::panic::resume_unwind(Box::new("broken"));
            });
            assert!(panics.join().is_err());
        });
        assert!(matches!(shared.add(b"one", &lowest(1, 64), HERE), Err(Fault::Runtime(_))));
        shared.start(64, 3, &[(0, 64)], 9, HERE).unwrap();
        assert_eq!(shared.add(b"one", &lowest(1, 64), HERE), Ok(()));
    }
}
