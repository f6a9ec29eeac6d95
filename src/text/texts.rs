#![forbid(unsafe_code)]
//! Many texts as they are handed over: strings, or those of an Arrow array, each copied when its turn comes.

use std::borrow::Cow;

use crate::arrow::array::ArrowTexts;
use crate::arrow::span::Span;
use crate::system::fault::Fault;
use crate::system::memory;
use crate::system::simd;
use crate::text::normalize::Text;

/// Bytes of text that a thread takes at a time.
const PIECE: usize = 1 << 16;
/// With more bytes of text than this a call is worth being watched.
const LONG: usize = 1 << 20;

/// Texts, None for a null.
pub struct Texts<'a> {
    items: Vec<Option<AnyText<'a>>>,
    bytes: usize,
}

/// A text: a string, which nobody can write, or bytes in an Arrow array, which somebody may.
pub enum AnyText<'a> {
    Valid(Cow<'a, str>),
    Foreign(Span<'a>),
}

impl AnyText<'_> {
    fn size(&self) -> usize {
        match self {
            AnyText::Valid(text) => text.len(),
            AnyText::Foreign(span) => span.len(),
        }
    }

    /// The text; *room* is there for a copy.
    pub fn get<'r>(&'r self, room: &'r mut Vec<u8>) -> Text<'r> {
        match self {
            AnyText::Valid(text) => Text::Valid(text),
            AnyText::Foreign(span) => Text::Unchecked(span.copied(room)),
        }
    }

    /// Ask for its memory, as much of it as is worth having before it is needed.
    pub fn prefetch(&self) {
        match self {
            AnyText::Valid(text) => text.as_bytes().iter().step_by(64).take(64).for_each(simd::prefetch),
            AnyText::Foreign(span) => span.prefetch(),
        }
    }
}

/// The text, empty for a null; *room* is there for a copy.
pub fn text_or_empty<'a>(text: &'a Option<AnyText<'_>>, room: &'a mut Vec<u8>) -> Text<'a> {
    text.as_ref().map_or(Text::Valid(""), |text| text.get(room))
}

impl<'a> Texts<'a> {
    fn new(items: Vec<Option<AnyText<'a>>>) -> Texts<'a> {
        let bytes = items.iter().flatten().map(AnyText::size).sum();
        Texts { items, bytes }
    }

    pub fn of_strings(strings: impl ExactSizeIterator<Item = Cow<'a, str>>) -> Texts<'a> {
        Texts::new(memory::gathered(strings.map(|text| Some(AnyText::Valid(text)))))
    }

    pub fn of_arrow(array: &'a ArrowTexts) -> Result<Texts<'a>, Fault> {
        let mut items = memory::room_for(array.len());
        for at in 0..array.len() {
            items.push(array.item(at)?.map(AnyText::Foreign));
        }
        Ok(Texts::new(items))
    }

    pub fn items(&self) -> &[Option<AnyText<'a>>] {
        &self.items
    }

    /// How many texts make a piece of work.
    pub fn piece(&self) -> usize {
        let mean = self.bytes / self.items.len().max(1) + 1;
        (PIECE / mean).clamp(1, 1024)
    }

    /// Whether work on them takes long enough that somebody may want to end it.
    pub fn are_long(&self) -> bool {
        self.bytes > LONG
    }
}

/// UTF-8 in which surrogates may be encoded, each of them made one U+FFFD.
pub fn without_surrogates(bytes: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::array::tests::array_of;

    #[test]
    fn strings_and_those_of_an_array_are_the_same_texts() {
        let (strings, array) = (["one", "", "zwölf"], array_of(&[Some("one"), Some(""), Some("zwölf")]));
        let of_strings = Texts::of_strings(strings.iter().map(|text| Cow::Borrowed(*text)));
        let of_array = Texts::of_arrow(&array).unwrap();
        assert_eq!((of_strings.bytes, of_array.bytes), (9, 9));
        let (mut one, mut two) = (Vec::new(), Vec::new());
        for (given, foreign) in of_strings.items().iter().zip(of_array.items()) {
            assert_eq!(text_or_empty(given, &mut one).bytes(), text_or_empty(foreign, &mut two).bytes());
        }
    }

    #[test]
    fn a_null_is_read_as_an_empty_text() {
        let array = array_of(&[Some("one"), None]);
        let texts = Texts::of_arrow(&array).unwrap();
        assert!(texts.items()[1].is_none());
        assert!(text_or_empty(&texts.items()[1], &mut Vec::new()).bytes().is_empty());
    }

    #[test]
    fn long_texts_are_taken_one_by_one_and_short_ones_together() {
        let piece = |size: usize, count| {
            let text = "a".repeat(size);
            Texts::of_strings(vec![Cow::Borrowed(text.as_str()); count].into_iter()).piece()
        };
        assert_eq!((piece(1 << 20, 3), piece(1 << 12, 3), piece(10, 3), piece(0, 0)), (1, 15, 1024, 1024));
    }

    #[test]
    fn each_surrogate_becomes_one_replacement() {
        assert_eq!(without_surrogates(b"a\xed\xa0\x80\xed\xb0\x80z"), "a\u{fffd}\u{fffd}z");
        assert_eq!(without_surrogates("plain \u{1f600}".as_bytes()), "plain \u{1f600}");
    }
}
