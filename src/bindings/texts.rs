#![forbid(unsafe_code)]
//! Texts from Python: strings as they are, and those of Arrow arrays, each copied when its turn comes.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::InvalidType;
use super::arrow::{ArrowTexts, Span};
use crate::system::memory;
use crate::system::simd;
use crate::text::normalize;

/// Texts as the core reads them, and what keeps them alive. None for a null.
pub struct Texts<'a> {
    pub items: Vec<Option<Text<'a>>>,
    pub bytes: usize,
}

/// A text of Python's: a string, which nobody can write, or bytes in an Arrow array, which somebody may.
pub enum Text<'a> {
    Valid(Cow<'a, str>),
    Foreign(Span<'a>),
}

impl Text<'_> {
    fn size(&self) -> usize {
        match self {
            Text::Valid(text) => text.len(),
            Text::Foreign(span) => span.len(),
        }
    }

    /// The text as the core takes it; *room* is there for a copy.
    pub fn get<'r>(&'r self, room: &'r mut Vec<u8>) -> normalize::Text<'r> {
        match self {
            Text::Valid(text) => normalize::Text::Valid(text),
            Text::Foreign(span) => normalize::Text::Unchecked(span.copied(room)),
        }
    }

    /// Ask for its memory, as much of it as is worth having before it is needed.
    pub fn prefetch(&self) {
        match self {
            Text::Valid(text) => text.as_bytes().iter().step_by(64).take(64).for_each(simd::prefetch),
            Text::Foreign(span) => span.prefetch(),
        }
    }
}

/// The text, empty for a null; *room* is there for a copy.
pub fn text_or_empty<'a>(text: &'a Option<Text<'_>>, room: &'a mut Vec<u8>) -> normalize::Text<'a> {
    text.as_ref().map_or(normalize::Text::Valid(""), |text| text.get(room))
}

impl<'a> Texts<'a> {
    fn new(items: Vec<Option<Text<'a>>>) -> Texts<'a> {
        let bytes = items.iter().flatten().map(Text::size).sum();
        Texts { items, bytes }
    }

    /// The strings of a list, which the caller must not change before it drops these.
    pub fn from_list(list: &'a [Bound<'_, PyString>]) -> Texts<'a> {
        Texts::new(memory::gathered(list.iter().map(|string| Some(Text::Valid(text_of(string))))))
    }

    /// The strings of one Arrow array.
    pub fn from_arrow(array: &'a ArrowTexts) -> PyResult<Texts<'a>> {
        let mut items = memory::room_for(array.len());
        for at in 0..array.len() {
            items.push(array.item(at)?.map(Text::Foreign));
        }
        Ok(Texts::new(items))
    }
}

/// The text of a Python string; lone surrogates become U+FFFD.
pub fn text_of<'a>(string: &'a Bound<'_, PyString>) -> Cow<'a, str> {
    match string.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            // Encoded with the surrogates let through, each is three bytes that are not UTF-8.
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

/// The strings of a list of str; a clear error for anything else.
pub fn strings<'py>(list: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyString>>> {
    let mut found = memory::room_for(list.len());
    for (row, item) in list.iter().enumerate() {
        let string = item.cast_into::<PyString>().map_err(|error| {
            let kind = error.into_inner().get_type();
            InvalidType::new_err(format!("text {row} must be a str, not {kind}"))
        })?;
        memory::push(&mut found, string);
    }
    Ok(found)
}
