//! Arrow arrays of texts, through the C data interface.
//!
//! The array is held while the call lasts, and not believed: the interface carries no sizes of buffers, so the Python
//! side says them, and every range is compared with those before it is read. Nor is the memory: Arrow calls it
//! immutable, yet a numpy array or a bytearray may be behind it. Each byte is read once, at any alignment, into
//! memory that nothing else has; writing to the array meanwhile changes a text, and nothing else.

use std::cmp::Ordering::{self, Equal};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use super::interrupt::no_memory;
use super::{InvalidType, InvalidValue};
use crate::documents::order::Name;
use crate::system::memory;
use crate::system::simd;

/// <https://arrow.apache.org/docs/format/CDataInterface.html#structure-definitions>
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

/// An array that was moved here: it is released when this is dropped.
struct Held(CArray);

// SAFETY: what is shared are addresses; the array itself is touched only where it is made and dropped.
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: nobody else has the array, and it was not released before.
            unsafe { release(&raw mut self.0) };
        }
    }
}

#[derive(Clone, Copy)]
enum Layout {
    /// Offsets of 32 bits into one buffer.
    Short,
    /// Offsets of 64 bits into one buffer.
    Long,
    /// Views of 16 bytes: a short text itself, or its place in one of several buffers.
    Views,
}

/// An Arrow array of texts, or of bytes that may be texts.
pub struct ArrowTexts {
    _held: Held,
    layout: Layout,
    length: usize,
    offset: usize,
    /// The validity bits, if there are any.
    validity: Option<Span<'static>>,
    /// The offsets, or the views.
    index: Span<'static>,
    /// Where the texts are.
    data: Vec<Span<'static>>,
}

/// What the Python side passes: the array, and the size of each of its buffers.
#[derive(FromPyObject)]
struct Given<'py> {
    #[pyo3(attribute)]
    array: Bound<'py, PyAny>,
    #[pyo3(attribute)]
    sizes: Vec<usize>,
}

impl<'py> FromPyObject<'_, 'py> for ArrowTexts {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<ArrowTexts> {
        let Given { array, sizes } =
            given.extract().map_err(|_| InvalidType::new_err("not an Arrow array of texts"))?;
        // Arrow ends the process where it gets no memory for a capsule.
        let Some(capsules) = memory::lent(|| array.call_method0("__arrow_c_array__")) else {
            return Err(no_memory());
        };
        let capsules: (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>) = capsules?.extract()?;
        let schema = capsules.0.pointer_checked(Some(c"arrow_schema"))?.cast::<CSchema>();
        let array = capsules.1.pointer_checked(Some(c"arrow_array"))?.cast::<CArray>();
        // SAFETY: capsules of these names hold these structures, and live until the end of this function.
        let (layout, held) = unsafe { (layout_of(schema.as_ref())?, taken(array.as_ptr())?) };
        ArrowTexts::checked(layout, held, &sizes)
    }
}

/// # Safety
/// The schema must be one of the C data interface.
unsafe fn layout_of(schema: &CSchema) -> PyResult<Layout> {
    if schema.release.is_none() || schema.format.is_null() {
        return Err(InvalidValue::new_err("the Arrow schema was released"));
    }
    // SAFETY: a schema that was not released has a format that ends with 0.
    let format = unsafe { CStr::from_ptr(schema.format) };
    match format.to_bytes() {
        b"u" | b"z" => Ok(Layout::Short),
        b"U" | b"Z" => Ok(Layout::Long),
        b"vu" | b"vz" => Ok(Layout::Views),
        _ => Err(InvalidType::new_err(format!("not an Arrow array of texts: its format is {format:?}"))),
    }
}

/// Move an array here, as the interface has it: the source is marked as released.
///
/// # Safety
/// The array must be one of the C data interface, which nobody else uses meanwhile.
unsafe fn taken(array: *mut CArray) -> PyResult<Held> {
    // SAFETY: the caller guarantees it.
    let held = unsafe { Held(std::ptr::read(array)) };
    // SAFETY: as above.
    unsafe { (*array).release = None };
    match held.0.release {
        Some(_) => Ok(held),
        None => Err(InvalidValue::new_err("the Arrow array was released")),
    }
}

impl ArrowTexts {
    /// Refuse what is shorter than it says, before anything of it is read.
    fn checked(layout: Layout, held: Held, sizes: &[usize]) -> PyResult<ArrowTexts> {
        let short = || InvalidValue::new_err("the Arrow array is shorter than it says");
        let number = |value: i64| usize::try_from(value).map_err(|_| short());
        let (length, offset, count) = (number(held.0.length)?, number(held.0.offset)?, number(held.0.n_buffers)?);
        // A view array has one buffer more: the sizes of the others.
        let own = count - usize::from(matches!(layout, Layout::Views)).min(count);
        let enough = if matches!(layout, Layout::Views) { own >= 2 } else { own == 3 };
        if !enough || sizes.len() != own || held.0.buffers.is_null() {
            return Err(InvalidValue::new_err("the Arrow array has not the buffers of an array of texts"));
        }
        let mut spans = sizes.iter().enumerate().map(|(at, size)| {
            // SAFETY: there are this many buffers.
            let start = unsafe { *held.0.buffers.add(at) };
            let fits = !start.is_null() && start.addr().checked_add(*size).is_some();
            if fits { Span::new(start.addr(), *size) } else { Span::new(0, 0) }
        });
        let (validity, index) = (spans.next().unwrap_or_default(), spans.next().unwrap_or_default());
        let data = spans.collect();
        let (width, ends) = match layout {
            Layout::Short => (4, 1),
            Layout::Long => (8, 1),
            Layout::Views => (16, 0),
        };
        let rows = offset.checked_add(length).ok_or_else(short)?;
        let needed =
            if length == 0 { Some(0) } else { rows.checked_add(ends).and_then(|rows| rows.checked_mul(width)) };
        // SAFETY: there are two buffers at least.
        let has_nulls = length > 0 && !unsafe { *held.0.buffers }.is_null();
        if needed.is_none_or(|needed| needed > index.size) || (has_nulls && rows.div_ceil(8) > validity.size) {
            return Err(short());
        }
        let validity = has_nulls.then_some(validity);
        Ok(ArrowTexts { _held: held, layout, length, offset, validity, index, data })
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The place of an item that is below the length, or None for a null.
    pub fn item(&self, at: usize) -> PyResult<Option<Span<'_>>> {
        self.row(self.offset + at)
    }

    fn row(&self, row: usize) -> PyResult<Option<Span<'_>>> {
        let broken = || InvalidValue::new_err(format!("row {row} of the Arrow array lies outside its buffers"));
        if let Some(validity) = self.validity {
            let [byte] = validity.read(row / 8).ok_or_else(broken)?;
            if byte >> (row % 8) & 1 == 0 {
                return Ok(None);
            }
        }
        let (buffer, start, length) = match self.layout {
            Layout::Short => {
                let offset = |row: usize| self.index.read(4 * row).map(i32::from_ne_bytes).map(i64::from);
                let (start, end) = (offset(row).ok_or_else(broken)?, offset(row + 1).ok_or_else(broken)?);
                (0, start, end - start)
            }
            Layout::Long => {
                let offset = |row: usize| self.index.read(8 * row).map(i64::from_ne_bytes);
                let (start, end) = (offset(row).ok_or_else(broken)?, offset(row + 1).ok_or_else(broken)?);
                (0, start, end.wrapping_sub(start))
            }
            Layout::Views => {
                let part = |part: usize| self.index.read(16 * row + 4 * part).map(i32::from_ne_bytes);
                let length = part(0).ok_or_else(broken)?;
                if (0..=12).contains(&length) {
                    return self.index.part(16 * row + 4, length as usize).map(Some).ok_or_else(broken);
                }
                let (buffer, start) = (part(2).ok_or_else(broken)?, part(3).ok_or_else(broken)?);
                (buffer, i64::from(start), i64::from(length))
            }
        };
        let number = |value: i64| usize::try_from(value).map_err(|_| broken());
        let (buffer, start, length) = (number(i64::from(buffer))?, number(start)?, number(length)?);
        if length == 0 && start == 0 {
            return Ok(Some(Span::default()));
        }
        self.data.get(buffer).and_then(|data| data.part(start, length)).map(Some).ok_or_else(broken)
    }
}

/// Bytes of an array that is held, and that somebody may write.
#[derive(Clone, Copy, Default)]
pub struct Span<'a> {
    start: usize,
    size: usize,
    held: PhantomData<&'a ArrowTexts>,
}

impl<'a> Span<'a> {
    /// Only of memory that can be read as long as the array is held.
    fn new(start: usize, size: usize) -> Span<'a> {
        Span { start, size, held: PhantomData }
    }

    pub fn len(self) -> usize {
        self.size
    }

    fn part(self, begin: usize, size: usize) -> Option<Span<'a>> {
        let end = begin.checked_add(size)?;
        (end <= self.size).then(|| Span::new(self.start + begin, size))
    }

    /// The bytes from *begin* on.
    fn read<const N: usize>(self, begin: usize) -> Option<[u8; N]> {
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
        let tail = self.start + head + words.len() * WORD;
        // SAFETY: the span can be read while the array is held; words are aligned. Loads of this size and order need
        // no memory that can be written.
        unsafe {
            let byte = |at: usize| AtomicU8::from_ptr(at as *mut u8).load(Relaxed);
            let word = |at: usize| AtomicUsize::from_ptr(at as *mut usize).load(Relaxed);
            first.iter_mut().enumerate().for_each(|(at, out)| *out = byte(self.start + at));
            let middle = self.start + head;
            words.iter_mut().enumerate().for_each(|(at, out)| *out = word(middle + at * WORD).to_ne_bytes());
            last.iter_mut().enumerate().for_each(|(at, out)| *out = byte(tail + at));
        }
    }
}

impl Name for Span<'_> {
    fn size(self) -> usize {
        self.size
    }

    fn byte(self, at: usize) -> u8 {
        self.read(at).map_or(0, |[byte]| byte)
    }

    fn compare(self, other: Self) -> Ordering {
        let bytes = (0..self.size.min(other.size)).map(|at| self.byte(at).cmp(&other.byte(at)));
        bytes.into_iter().find(|found| *found != Equal).unwrap_or(self.size.cmp(&other.size))
    }
}
