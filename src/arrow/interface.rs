//! The C data interface: two structures, as <https://arrow.apache.org/docs/format/CDataInterface.html> has them.

use std::ffi::{CStr, c_char, c_void};

use crate::arrow::span::Span;
use crate::system::fault::Fault;

#[repr(C)]
pub struct CSchema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub n_children: i64,
    pub children: *mut *mut CSchema,
    pub dictionary: *mut CSchema,
    pub release: Option<unsafe extern "C" fn(*mut CSchema)>,
    pub private_data: *mut c_void,
}

#[repr(C)]
pub struct CArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    pub n_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut CArray,
    pub dictionary: *mut CArray,
    pub release: Option<unsafe extern "C" fn(*mut CArray)>,
    pub private_data: *mut c_void,
}

/// How the texts of an array lie in its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Offsets of 32 bits into one buffer.
    Short,
    /// Offsets of 64 bits into one buffer.
    Long,
    /// Views of 16 bytes: a short text itself, or its place in one of several buffers.
    Views,
}

impl Layout {
    /// The layout that a schema names.
    ///
    /// # Safety
    /// The schema is one of the C data interface.
    pub unsafe fn of(schema: &CSchema) -> Result<Layout, Fault> {
        if schema.release.is_none() || schema.format.is_null() {
            return Err(Fault::value("the Arrow schema was released"));
        }
        // SAFETY: a schema that was not released has a format that ends with 0.
        let format = unsafe { CStr::from_ptr(schema.format) };
        match format.to_bytes() {
            b"u" | b"z" => Ok(Layout::Short),
            b"U" | b"Z" => Ok(Layout::Long),
            b"vu" | b"vz" => Ok(Layout::Views),
            _ => Err(Fault::Type(format!("not an Arrow array of texts: its format is {format:?}"))),
        }
    }
}

/// An array that was moved here: it is released when this is dropped.
pub struct Held(CArray);

// SAFETY: what threads share are its addresses; the array itself is touched only where it is made and dropped.
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: it was moved here, so nobody else has it, and it was not released before.
            unsafe { release(&raw mut self.0) };
        }
    }
}

impl Held {
    /// Move an array here, as the interface has it: the source is marked as released.
    ///
    /// # Safety
    /// The array is one of the C data interface, which nobody else uses meanwhile.
    pub unsafe fn taken(array: *mut CArray) -> Result<Held, Fault> {
        // SAFETY: the caller guarantees that it can be read; what is read is used only if it was not released.
        let held = unsafe { Held(std::ptr::read(array)) };
        // SAFETY: the caller guarantees that nobody else uses it.
        unsafe { (*array).release = None };
        match held.0.release {
            Some(_) => Ok(held),
            None => Err(Fault::value("the Arrow array was released")),
        }
    }

    /// Items, the first of them, and buffers; None where one is negative.
    pub fn counts(&self) -> Option<(usize, usize, usize)> {
        let number = |value: i64| usize::try_from(value).ok();
        Some((number(self.0.length)?, number(self.0.offset)?, number(self.0.n_buffers)?))
    }

    pub fn has_buffers(&self) -> bool {
        !self.0.buffers.is_null()
    }

    /// The bytes of a buffer; None where the array has none in its place.
    ///
    /// # Safety
    /// The array has such a buffer, of at least *size* bytes, and the span is not used after this is dropped.
    pub unsafe fn buffer(&self, at: usize, size: usize) -> Option<Span<'static>> {
        // SAFETY: the caller guarantees that there are more buffers than *at*, and the array is not released.
        let start = unsafe { *self.0.buffers.add(at) }.cast::<u8>();
        // SAFETY: the buffers of an array can be read until it is released, which `drop` does.
        (!start.is_null()).then(|| unsafe { Span::new(start, size) })
    }
}
