//! Memory for many rows.
//!
//! A process gets its memory page by page, as each is first touched, and every access goes through
//! a small table of pages. A large page (2 MB instead of 4 kB) takes one fault and one entry for
//! what would be 512. Linux gives them to those who ask; elsewhere memory stays as it is.

/// An empty vector with room for so many values.
pub fn room_for<T>(count: usize) -> Vec<T> {
    let mut room = Vec::with_capacity(count);
    in_large_pages(&mut room);
    room
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
