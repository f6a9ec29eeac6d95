//! Memory for many rows.
//!
//! A process gets its memory page by page, as each is first touched, and every access goes through
//! a small table of pages. A large page (2 MB instead of 4 kB) takes one fault and one entry for
//! what would be 512. Linux gives them on request; elsewhere memory stays as it is.
//!
//! Anything that grows with the input is allocated here. If the system has no more, the work
//! unwinds with `NoRoom` to the border, which raises MemoryError; the standard library would end the process.

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed, dealloc};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What unwinds where memory ends.
pub struct NoRoom;

/// End the work that needs more memory than there is. No panic is reported: it is not the code's fault.
#[cold]
pub fn no_room() -> ! {
    std::panic::resume_unwind(Box::new(NoRoom))
}

/// What *work* returns; nothing where memory ended.
pub fn attempt<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(thrown) if thrown.is::<NoRoom>() => None,
        Err(thrown) => resume_unwind(thrown),
    }
}

/// An empty vector with room for this many values.
pub fn room_for<T>(count: usize) -> Vec<T> {
    let mut room = Vec::new();
    if room.try_reserve_exact(count).is_err() || is_short() {
        no_room();
    }
    in_large_pages(&mut room);
    room
}

/// Make room for this many more values.
pub fn more_room<T>(values: &mut Vec<T>, count: usize) {
    if values.capacity() - values.len() < count && (values.try_reserve(count).is_err() || is_short()) {
        no_room();
    }
}

/// The same of a map.
pub fn more_keys<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>, count: usize) {
    if map.try_reserve(count).is_err() || is_short() {
        no_room();
    }
}

/// `Vec::push`, for vectors that grow with the input.
#[inline(always)]
pub fn push<T>(values: &mut Vec<T>, value: T) {
    if values.len() == values.capacity() {
        more_room(values, 1);
    }
    values.push(value);
}

/// `Vec::extend_from_slice`, for vectors that grow with the input.
pub fn append<T: Copy>(values: &mut Vec<T>, more: &[T]) {
    more_room(values, more.len());
    values.extend_from_slice(more);
}

/// A copy of *values*.
pub fn copied<T: Copy>(values: &[T]) -> Vec<T> {
    let mut copy = room_for(values.len());
    copy.extend_from_slice(values);
    copy
}

/// Everything that *values* yield, whose stated length is exact.
pub fn gathered<T>(values: impl ExactSizeIterator<Item = T>) -> Vec<T> {
    let mut all = room_for(values.len());
    all.extend(values);
    all
}

/// So many times *value*.
pub fn filled<T: Copy>(count: usize, value: T) -> Vec<T> {
    let mut all = room_for(count);
    all.resize(count, value);
    all
}

/// Numbers, of which zero is all zero bits.
///
/// # Safety
/// Bytes that are all zero must be a value of the type.
pub unsafe trait Number: Copy {}
// SAFETY: zero bits are the number zero.
unsafe impl Number for u16 {}
// SAFETY: as above.
unsafe impl Number for u32 {}
// SAFETY: as above.
unsafe impl Number for u64 {}
// SAFETY: as above.
unsafe impl Number for usize {}
// SAFETY: as above.
unsafe impl Number for u8 {}
// SAFETY: as above.
unsafe impl Number for i32 {}
// SAFETY: as above.
unsafe impl Number for i64 {}
// SAFETY: zero bits are false.
unsafe impl Number for bool {}
// SAFETY: each of them is a number.
unsafe impl<const N: usize, T: Number> Number for [T; N] {}

/// So many zeros. The system gives pages that are zero, so that none is touched before it is used.
pub fn zeros<T: Number>(count: usize) -> Vec<T> {
    let Ok(layout) = Layout::array::<T>(count) else { no_room() };
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        no_room();
    }
    if is_short() {
        // SAFETY: it was given for this layout, and nobody has it.
        unsafe { dealloc(start, layout) };
        no_room();
    }
    // SAFETY: the memory is that of a vector of this many values, all of which are zero, and nothing else has it.
    let mut all = unsafe { Vec::from_raw_parts(start.cast::<T>(), count, count) };
    in_large_pages(&mut all);
    all
}

/// Resize it to this many values; new ones are *value*.
#[inline(always)]
pub fn resize<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    more_room(values, count.saturating_sub(values.len()));
    values.resize(count, value);
}

/// Resize it to at least this many values.
#[inline(always)]
pub fn at_least<T: Clone + Default>(values: &mut Vec<T>, count: usize) {
    if values.len() < count {
        resize(values, count, T::default());
    }
}

/// Add letters at the end.
pub fn letters(text: &mut String, more: impl Iterator<Item = char>) {
    for letter in more {
        if text.try_reserve(letter.len_utf8()).is_err() {
            no_room();
        }
        text.push(letter);
    }
}

/// All that *values* give, however many.
pub fn collected<T>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in values {
        push(&mut all, value);
    }
    all
}

/// The system's allocator, and a reserve for what is too small to be requested above: a name, a thread, a closure.
/// Such an allocation ends the process where it fails. So some memory is set aside before every call, which is given
/// back when one would fail; the call continues to where it checks `is_short`, and ends there.
struct Reserved;

#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

/// So much is set aside. Nobody touches it, so that it takes room among the addresses, and no memory.
const RESERVE: usize = 8 << 20;
/// At most this much of it is given at once.
const SMALL: usize = 1 << 20;
/// What a new thread may take for itself before it can say that there is no memory. Miri would really take it.
pub const THREAD: usize = if cfg!(miri) { 1 << 16 } else { 16 << 20 };

/// Addresses that nothing uses; null if there are none. Miri knows no memory that cannot be read.
#[cfg(all(target_os = "linux", not(miri)))]
fn taken(size: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new addresses, which nobody can read or write.
    let start = unsafe { libc::mmap(null_mut(), size, libc::PROT_NONE, flags, -1, 0) };
    if start == libc::MAP_FAILED { null_mut() } else { start.cast() }
}

/// # Safety
/// *start* is what `taken` gave for this size, and was not given back.
#[cfg(all(target_os = "linux", not(miri)))]
unsafe fn given_back(start: *mut u8, size: usize) {
    // SAFETY: the caller guarantees it.
    unsafe { libc::munmap(start.cast(), size) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn taken(size: usize) -> *mut u8 {
    // SAFETY: nobody takes nothing.
    Layout::array::<u64>(size / 8).map_or(null_mut(), |layout| unsafe { System.alloc(layout) })
}

/// # Safety
/// *start* is what `taken` gave for this size, and was not given back.
#[cfg(not(all(target_os = "linux", not(miri))))]
unsafe fn given_back(start: *mut u8, size: usize) {
    if let Ok(layout) = Layout::array::<u64>(size / 8) {
        // SAFETY: the caller guarantees it.
        unsafe { System.dealloc(start, layout) };
    }
}

/// Whether this much could be allocated now.
pub fn has(size: usize) -> bool {
    let start = taken(size);
    if !start.is_null() {
        // SAFETY: it was taken a moment ago.
        unsafe { given_back(start, size) };
    }
    !start.is_null()
}

static RESERVE_START: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// Whether it was spent, and not set aside again.
static SPENT: AtomicBool = AtomicBool::new(false);

// SAFETY: all memory is the system's.
unsafe impl GlobalAlloc for Reserved {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's duties are those of the system's allocator.
        let ask = || unsafe { System.alloc(layout) };
        or_from_reserve(ask(), layout.size(), ask)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let ask = || unsafe { System.alloc_zeroed(layout) };
        or_from_reserve(ask(), layout.size(), ask)
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; where it fails, the old memory is as it was.
        let ask = || unsafe { System.realloc(start, layout, size) };
        or_from_reserve(ask(), size, ask)
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) };
    }
}

/// *got*, or where that is nothing what the reserve leaves to ask for.
#[inline]
fn or_from_reserve(got: *mut u8, size: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    if !got.is_null() || size > SMALL {
        return got;
    }
    let reserve = RESERVE_START.swap(null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        SPENT.store(true, Ordering::Relaxed);
        // SAFETY: the caller that takes it out gives it back, once.
        unsafe { given_back(reserve, RESERVE) };
    }
    ask() // also where another thread gave it back a moment ago
}

/// Set memory aside, unless it is there; whether it is.
pub fn set_aside() -> bool {
    #[cfg(test)]
    ending::after(None);
    if !RESERVE_START.load(Ordering::Relaxed).is_null() {
        return true;
    }
    let reserve = taken(RESERVE);
    let others = RESERVE_START.compare_exchange(null_mut(), reserve, Ordering::AcqRel, Ordering::Acquire);
    if others.is_err() && !reserve.is_null() {
        // SAFETY: another thread was first, and nobody has this one.
        unsafe { given_back(reserve, RESERVE) };
    }
    let is_there = others.is_err() || !reserve.is_null();
    if is_there {
        SPENT.store(false, Ordering::Relaxed);
    }
    is_there
}

/// What *work* returns, a call of code that ends the process where memory ends: meanwhile the reserve is free for it.
/// Nothing if there is no reserve, and then nothing was done.
pub fn lent<T>(work: impl FnOnce() -> T) -> Option<T> {
    if !set_aside() {
        return None;
    }
    let reserve = RESERVE_START.swap(null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        // SAFETY: the caller that takes it out gives it back, once.
        unsafe { given_back(reserve, RESERVE) };
    }
    let done = work();
    set_aside();
    Some(done)
}

/// Whether the reserve is gone: the caller then ends its work.
#[inline]
pub fn is_short() -> bool {
    #[cfg(test)]
    if ending::ended() {
        return true;
    }
    SPENT.load(Ordering::Relaxed)
}

/// Memory that ends where a test wants it, for its own thread.
#[cfg(test)]
pub mod ending {
    use std::cell::Cell;

    thread_local! {
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// From now on, this many requests are granted until `set_aside`; all if none is said.
    pub fn after(requests: Option<usize>) {
        LEFT.set(requests);
    }

    pub fn ended() -> bool {
        let left = LEFT.get();
        LEFT.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }
}

/// Ask for large pages under *room*, if it is large and not yet touched.
#[cfg(all(target_os = "linux", not(miri)))]
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

#[cfg(not(all(target_os = "linux", not(miri))))]
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
    use std::panic::catch_unwind;

    #[test]
    fn zeros_are_zero_and_can_grow() {
        let mut some: Vec<u32> = zeros(5);
        push(&mut some, 7);
        append(&mut some, &[8, 9]);
        assert_eq!(some, [0, 0, 0, 0, 0, 7, 8, 9]);
        assert_eq!(zeros::<[u64; 2]>(2), [[0; 2]; 2]);
        assert!(zeros::<u64>(0).is_empty());
        assert_eq!(
            (filled(2, 'a'), copied(&[1, 2]), gathered([3, 4].iter())),
            (vec!['a'; 2], vec![1, 2], vec![&3, &4])
        );
    }

    #[test]
    fn more_than_there_is_unwinds_as_no_room() {
        let asked: [fn(); 4] = [
            || drop(room_for::<u64>(usize::MAX / 16)),
            || drop(zeros::<u64>(usize::MAX / 16)),
            || drop(filled(usize::MAX, 0u64)),
            || more_room(&mut vec![1u64], usize::MAX / 16),
        ];
        for ask in asked {
            assert!(catch_unwind(ask).is_err_and(|why| why.is::<NoRoom>()));
        }
    }
}
