//! Texts from Python without a copy: strings, or the buffers of an Arrow string array.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::{InvalidType, InvalidValue};
use crate::{normalize, simd};

/// Texts as the core reads them, and what keeps them alive. None stands for a null.
pub struct Texts<'a> {
    pub items: Vec<Option<Text<'a>>>,
    pub bytes: usize,
}

/// A text that may still have to be looked at: whoever uses it does, in a thread of its own.
pub enum Text<'a> {
    Valid(Cow<'a, str>),
    Unchecked(&'a [u8]),
}

impl Text<'_> {
    /// The text as the core takes it.
    pub fn get(&self) -> normalize::Text<'_> {
        match self {
            Text::Valid(text) => normalize::Text::Valid(text),
            Text::Unchecked(bytes) => normalize::Text::Unchecked(bytes),
        }
    }

    /// Ask for its memory, as much of it as is worth having before it is needed.
    pub fn prefetch(&self) {
        self.get().bytes().iter().step_by(64).take(64).for_each(simd::prefetch);
    }
}

/// The text, empty for a null.
pub fn text_or_empty<'a>(text: &'a Option<Text<'_>>) -> normalize::Text<'a> {
    text.as_ref().map_or(normalize::Text::Valid(""), Text::get)
}

impl<'a> Texts<'a> {
    fn new(items: Vec<Option<Text<'a>>>) -> Texts<'a> {
        let bytes = items.iter().flatten().map(|text| text.get().bytes().len()).sum();
        Texts { items, bytes }
    }

    /// The strings of a list, which the caller must not change before it drops these.
    pub fn from_list(list: &'a [Bound<'_, PyString>]) -> PyResult<Texts<'a>> {
        Ok(Texts::new(list.iter().map(|string| Some(Text::Valid(text_of(string)))).collect()))
    }

    /// The strings of one Arrow array.
    ///
    /// # Safety
    /// The addresses in *chunk* are those of the buffers of a live Arrow array, whose owner is
    /// kept by the caller and whose memory nobody writes.
    pub unsafe fn from_arrow(chunk: &ArrowChunk) -> PyResult<Texts<'a>> {
        let mut items = Vec::with_capacity(chunk.length);
        for at in 0..chunk.length {
            // SAFETY: the caller vouches for the buffers; items are within the array.
            items.push(unsafe { chunk.item(at) }?.map(Text::Unchecked));
        }
        Ok(Texts::new(items))
    }
}

/// The text of a Python string; lone surrogates become U+FFFD.
pub fn text_of<'a>(string: &'a Bound<'_, PyString>) -> Cow<'a, str> {
    match string.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            // Encoded with the surrogates let through, each is three bytes that are no UTF-8.
            let encoded = string.call_method1("encode", ("utf-8", "surrogatepass"));
            match encoded.and_then(|bytes| bytes.extract::<Vec<u8>>()) {
                Ok(bytes) => Cow::Owned(replace_surrogates(&bytes)),
                Err(_) => Cow::Owned(string.to_string_lossy().into_owned()),
            }
        }
    }
}

/// UTF-8 with encoded surrogates, each of them made one U+FFFD.
fn replace_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return text;
            }
            Err(error) => {
                let (valid, invalid) = rest.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(valid));
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &invalid[invalid.len().min(3)..];
            }
        }
    }
}

/// Where the buffers of an Arrow string array stand in memory.
#[derive(FromPyObject)]
pub struct ArrowChunk {
    #[pyo3(item)]
    layout: String,
    #[pyo3(item)]
    length: usize,
    #[pyo3(item)]
    offset: usize,
    /// Address of the validity bits, 0 where there are no nulls.
    #[pyo3(item)]
    validity: usize,
    /// Address of the offsets (or views), and how many bytes they take.
    #[pyo3(item)]
    index: (usize, usize),
    /// Addresses and sizes of the text buffers.
    #[pyo3(item)]
    data: Vec<(usize, usize)>,
}

impl ArrowChunk {
    /// Refuse what is not the shape of a string array, before anything is read.
    pub fn check(&self) -> PyResult<()> {
        let size = match self.layout.as_str() {
            "string" => 4,
            "large_string" => 8,
            "string_view" => 16,
            other => return Err(InvalidType::new_err(format!("not an Arrow string layout: {other}"))),
        };
        let rows = self.offset.checked_add(self.length);
        let ends = usize::from(size != 16 && self.length > 0);
        let needed = rows.and_then(|rows| (rows + ends).checked_mul(size));
        if needed.is_none_or(|needed| needed > self.index.1) {
            return Err(InvalidValue::new_err("the Arrow array is shorter than it says"));
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The bytes of an item, or None for a null.
    ///
    /// # Safety
    /// As for `Texts::from_arrow`; `check` was called and *at* is below the length.
    pub unsafe fn item<'a>(&self, at: usize) -> PyResult<Option<&'a [u8]>> {
        // SAFETY: as above.
        unsafe { self.row(self.offset + at) }
    }

    /// The bytes of a row of the buffers, or None for a null.
    ///
    /// # Safety
    /// As for `Texts::from_arrow`; `check` was called and *row* is below offset + length.
    unsafe fn row<'a>(&self, row: usize) -> PyResult<Option<&'a [u8]>> {
        if self.validity != 0 {
            // SAFETY: validity bits cover every row of the array.
            let byte = unsafe { *((self.validity + row / 8) as *const u8) };
            if byte >> (row % 8) & 1 == 0 {
                return Ok(None);
            }
        }
        // SAFETY: `check` found the index buffer long enough for this row and the next.
        let (buffer, start, length) = unsafe {
            match self.layout.as_str() {
                "string" => {
                    let offsets = self.index.0 as *const i32;
                    let (start, end) = (*offsets.add(row), *offsets.add(row + 1));
                    (0, i64::from(start), i64::from(end) - i64::from(start))
                }
                "large_string" => {
                    let offsets = self.index.0 as *const i64;
                    let (start, end) = (*offsets.add(row), *offsets.add(row + 1));
                    (0, start, end.wrapping_sub(start))
                }
                _ => {
                    let view = (self.index.0 + 16 * row) as *const i32;
                    let length = *view;
                    if (0..=12).contains(&length) {
                        let inline = view.add(1).cast::<u8>();
                        return Ok(Some(std::slice::from_raw_parts(inline, length as usize)));
                    }
                    (*view.add(2), i64::from(*view.add(3)), i64::from(length))
                }
            }
        };
        let broken = || InvalidValue::new_err(format!("row {row} of the Arrow array lies outside its buffers"));
        let (address, size) = match self.data.get(usize::try_from(buffer).map_err(|_| broken())?) {
            Some(found) => *found,
            None if length == 0 => return Ok(Some(b"")),
            None => return Err(broken()),
        };
        let (start, length) =
            (usize::try_from(start).map_err(|_| broken())?, usize::try_from(length).map_err(|_| broken())?);
        if start.checked_add(length).is_none_or(|end| end > size) {
            return Err(broken());
        }
        if length == 0 {
            return Ok(Some(b""));
        }
        // SAFETY: the range was found to lie within a buffer that the caller keeps alive.
        Ok(Some(unsafe { std::slice::from_raw_parts((address + start) as *const u8, length) }))
    }
}

/// The strings of a list of str; a clear error for anything else.
pub fn strings<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyString>>> {
    list.iter()
        .enumerate()
        .map(|(row, item)| {
            item.cast_into::<PyString>().map_err(|error| {
                let kind = error.into_inner().get_type();
                InvalidType::new_err(format!("text {row} must be a str, not {kind}"))
            })
        })
        .collect()
}
