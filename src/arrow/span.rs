//! Bytes that are held for us, and that somebody may write while we read.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use crate::system::memory;
use crate::system::simd;

/// Bytes that can be read for `'a`, and that somebody may write. It is an address, so that it can be sent about;
/// an empty one has any.
#[derive(Clone, Copy, Default)]
pub struct Span<'a> {
    start: usize,
    size: usize,
    held: PhantomData<&'a u8>,
}

impl<'a> Span<'a> {
    /// The bytes from *start* on; none where there are none, or they would pass the end of all addresses.
    ///
    /// # Safety
    /// Unless *start* is null, this many bytes from it on can be read for `'a`, and there is no reference to them that
    /// promises that nobody writes them: atomic loads are of what may be written.
    pub unsafe fn new(start: *const u8, size: usize) -> Span<'a> {
        let start = start.expose_provenance();
        if start == 0 || start.checked_add(size).is_none() {
            return Span::default();
        }
        Span { start, size, held: PhantomData }
    }

    pub fn len(self) -> usize {
        self.size
    }

    /// Some of the bytes, if they are among these.
    pub fn part(self, begin: usize, size: usize) -> Option<Span<'a>> {
        let end = begin.checked_add(size)?;
        (end <= self.size).then(|| Span { start: self.start + begin, size, held: PhantomData })
    }

    /// The bytes from *begin* on.
    pub fn read<const N: usize>(self, begin: usize) -> Option<[u8; N]> {
        let mut found = [0; N];
        self.part(begin, N)?.copy(&mut found);
        Some(found)
    }

    /// The bytes as they are now, in *room*.
    pub fn copied(self, room: &mut Vec<u8>) -> &[u8] {
        memory::at_least(room, self.size);
        self.copy(&mut room[..self.size]);
        &room[..self.size]
    }

    /// Ask for the first of its memory before it is needed.
    pub fn prefetch(self) {
        for at in (0..self.size).step_by(64).take(64) {
            simd::prefetch_at(self.start + at);
        }
    }

    /// Words where they are aligned, bytes before and after.
    fn copy(self, out: &mut [u8]) {
        const WORD: usize = size_of::<usize>();
        assert_eq!(out.len(), self.size, "room for all");
        let head = (self.start.wrapping_neg() % WORD).min(self.size);
        let (first, rest) = out.split_at_mut(head);
        let (words, last) = rest.as_chunks_mut::<WORD>();
        let middle = self.start + head;
        let tail = middle + words.len() * WORD;
        // SAFETY: who made the span said that its bytes can be read for `'a`, and `part` stays inside of them.
        // Relaxed loads of at most a word may be of memory that cannot be written.
        let byte = |at: usize| unsafe { AtomicU8::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }.load(Relaxed);
        // SAFETY: as above; from `middle` on addresses are those of whole words, up to `tail`.
        let word = |at| unsafe { AtomicUsize::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }.load(Relaxed);
        first.iter_mut().enumerate().for_each(|(at, out)| *out = byte(self.start + at));
        words.iter_mut().enumerate().for_each(|(at, out)| *out = word(middle + at * WORD).to_ne_bytes());
        last.iter_mut().enumerate().for_each(|(at, out)| *out = byte(tail + at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_from_every_alignment_in_every_length() {
        let expected: Vec<u8> = (0..64).collect();
        let mut bytes = expected.clone();
        // SAFETY: the vector outlives the span, and may be written.
        let whole = unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) };
        let mut room = Vec::new();
        let (begins, sizes) = if cfg!(miri) { (9, 26) } else { (20, 40) };
        for begin in 0..begins {
            for size in 0..sizes {
                assert_eq!(whole.part(begin, size).unwrap().copied(&mut room), &expected[begin..begin + size]);
            }
        }
    }

    #[test]
    fn nothing_outside_is_a_part() {
        let mut bytes = [1, 2, 3];
        // SAFETY: the array outlives the span, and may be written.
        let whole = unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) };
        assert_eq!(whole.read(1), Some([2, 3]));
        assert_eq!(whole.read::<2>(2), None);
        assert!(whole.part(usize::MAX, 2).is_none());
        assert!(whole.part(4, 0).is_none());
    }

    #[test]
    fn no_address_is_no_bytes() {
        // SAFETY: the address is null.
        let none: Span<'_> = unsafe { Span::new(std::ptr::null(), 9) };
        assert_eq!((none.len(), none.read::<1>(0)), (0, None));
    }
}
