//! Columns: numbers that are owned, or lie in a mapped file.

use std::sync::Arc;

use memmap2::Mmap;

use crate::system::memory::gathered;
use crate::system::simd;

/// A number that has the same bytes in memory and in a file on a little-endian machine.
pub trait Number: Copy + Send + Sync + 'static {
    const SIZE: usize;
    fn put(self, bytes: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Number for $kind {
            const SIZE: usize = size_of::<$kind>();
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$kind>()];
                own.copy_from_slice(&bytes[..size_of::<$kind>()]);
                <$kind>::from_le_bytes(own)
            }
        }
    )*};
}
number!(u8, u32, u64, i64);

pub enum Column<T: Number> {
    Owned(Vec<T>),
    Mapped { map: Arc<Mmap>, offset: usize, count: usize },
}

impl<T: Number> Column<T> {
    /// The column in `map` at `offset`, which must be a multiple of the size and lie inside.
    pub fn mapped(map: &Arc<Mmap>, offset: usize, count: usize) -> Option<Column<T>> {
        let end = offset.checked_add(count.checked_mul(T::SIZE)?)?;
        if end > map.len() || !offset.is_multiple_of(T::SIZE) {
            return None;
        }
        if cfg!(target_endian = "big") {
            return Some(Column::Owned(gathered(map[offset..end].chunks_exact(T::SIZE).map(T::get))));
        }
        Some(Column::Mapped { map: map.clone(), offset, count })
    }

    #[inline(always)]
    pub fn slice(&self) -> &[T] {
        match self {
            Column::Owned(values) => values,
            Column::Mapped { map, offset, count } => {
                // SAFETY: `mapped` checked that the numbers lie in the map and are aligned (maps
                // start at a page); every bit pattern is a number; the map lives as long as self.
                unsafe { std::slice::from_raw_parts(map.as_ptr().add(*offset).cast(), *count) }
            }
        }
    }
}

impl<T: Number> Default for Column<T> {
    fn default() -> Column<T> {
        Column::Owned(Vec::new())
    }
}

/// Ask for the line of memory of a value, if there is one, before it is needed.
#[inline(always)]
pub fn prefetch<T>(values: &[T], index: usize) {
    if let Some(value) = values.get(index) {
        simd::prefetch(value);
    }
}
