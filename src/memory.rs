//! Memory for many rows.
//!
//! A process gets its memory page by page, as each is first touched, and every access goes through
//! a small table of pages. A large page (2 MB instead of 4 kB) takes one fault and one entry for
//! what would be 512. Linux gives them to those who ask; elsewhere memory stays as it is.
//!
//! What grows with the input asks for its memory here. Where there is none, the work is unwound with
//! `OutOfMemory`, which the bindings turn into Python's MemoryError; the allocator itself would abort.

use std::collections::TryReserveError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What the work is unwound with when there is no memory for it.
pub struct OutOfMemory;

/// Go on if there was memory, else unwind; without the message of a panic.
#[inline(always)]
pub fn had(memory: Result<(), TryReserveError>) {
    if memory.is_err() {
        resume_unwind(Box::new(OutOfMemory));
    }
}

/// What *work* returns; nothing if there was no memory for it.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(thrown) if thrown.is::<OutOfMemory>() => None,
        Err(thrown) => resume_unwind(thrown),
    }
}

/// An empty vector with room for so many values.
pub fn room_for<T>(count: usize) -> Vec<T> {
    let mut room = Vec::new();
    had(room.try_reserve_exact(count));
    in_large_pages(&mut room);
    room
}

/// Make room for so many more values, and then some.
#[inline]
pub fn reserve<T>(values: &mut Vec<T>, more: usize) {
    had(values.try_reserve(more));
}

/// Append a value.
#[inline(always)]
pub fn push<T>(values: &mut Vec<T>, value: T) {
    if values.len() == values.capacity() {
        reserve(values, 1);
    }
    values.push(value);
}

/// Append many values.
pub fn extend<T: Copy>(values: &mut Vec<T>, more: &[T]) {
    reserve(values, more.len());
    values.extend_from_slice(more);
}

/// So many equal values.
pub fn filled<T: Clone>(count: usize, value: T) -> Vec<T> {
    let mut values = room_for(count);
    values.resize(count, value);
    values
}

/// The values of an iterator that knows how many it has.
pub fn gathered<T>(values: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut all = room_for(values.len());
    all.extend(values);
    all
}

/// Ask for large pages under *room*, if it is large and not yet touched.
#[cfg(target_os = "linux")]
pub fn in_large_pages<T>(room: &mut Vec<T>) {
    const LARGE: usize = 2 << 20;
    let start = room.as_ptr().addr();
    let end = start + room.capacity() * size_of::<T>();
    let (first, last) = (start.next_multiple_of(LARGE), end & !(LARGE - 1));
    if first < last {
        // SAFETY: whole pages inside memory that the vector alone owns; the advice changes no value.
        unsafe { libc::madvise(room.as_mut_ptr().byte_add(first - start).cast(), last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
pub fn in_large_pages<T>(_: &mut Vec<T>) {}

/// Give memory that was freed back to the system, where the allocator would keep it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back() {
    // SAFETY: it only looks at what is free.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_not_given() {
        assert!(attempt(|| room_for::<u64>(usize::MAX / 16)).is_none());
        assert!(attempt(|| filled(usize::MAX / 16, 0u64)).is_none());
        let mut values = vec![1, 2];
        assert!(attempt(|| reserve::<u64>(&mut values, usize::MAX / 16)).is_none());
        push(&mut values, 3);
        extend(&mut values, &[4]);
        assert_eq!((values, attempt(|| gathered(0..3))), (vec![1, 2, 3, 4], Some(vec![0, 1, 2])));
    }
}
