//! An array of texts: where each lies, compared with the sizes of the buffers before it is read.

use crate::arrow::interface::{Held, Layout};
use crate::arrow::span::Span;
use crate::system::fault::Fault;

/// An Arrow array of texts, or of bytes that may be texts.
pub struct ArrowTexts {
    /// What the spans are of.
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

impl ArrowTexts {
    /// Refuse what is shorter than it says, before anything of it is read.
    ///
    /// # Safety
    /// Each buffer that the array has holds as many bytes as *sizes* says.
    pub unsafe fn new(layout: Layout, held: Held, sizes: &[usize]) -> Result<ArrowTexts, Fault> {
        let short = || Fault::value("the Arrow array is shorter than it says");
        let (length, offset, count) = held.counts().ok_or_else(short)?;
        // A view array has one buffer more: the sizes of the others.
        let own = count - usize::from(layout == Layout::Views).min(count);
        let enough = if layout == Layout::Views { own >= 2 } else { own == 3 };
        if !enough || sizes.len() != own || !held.has_buffers() {
            return Err(Fault::value("the Arrow array has not the buffers of an array of texts"));
        }
        // SAFETY: there are at least *own* buffers, of these sizes; the spans are dropped with what holds them, and
        // what they are lent for does not outlive it.
        let mut spans = sizes.iter().enumerate().map(|(at, size)| unsafe { held.buffer(at, *size) });
        let validity = spans.next().flatten().filter(|_| length > 0);
        let index = spans.next().flatten().unwrap_or_default();
        let data = spans.map(Option::unwrap_or_default).collect();
        let (width, ends) = match layout {
            Layout::Short => (4, 1),
            Layout::Long => (8, 1),
            Layout::Views => (16, 0),
        };
        let rows = offset.checked_add(length).ok_or_else(short)?;
        let needed =
            if length == 0 { Some(0) } else { rows.checked_add(ends).and_then(|rows| rows.checked_mul(width)) };
        let holds_index = needed.is_some_and(|needed| needed <= index.len());
        if !holds_index || validity.is_some_and(|validity| rows.div_ceil(8) > validity.len()) {
            return Err(short());
        }
        Ok(ArrowTexts { _held: held, layout, length, offset, validity, index, data })
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// The place of an item that is below the length, or None for a null.
    pub fn item(&self, at: usize) -> Result<Option<Span<'_>>, Fault> {
        let row = self.offset + at;
        self.row(row).ok_or_else(|| Fault::value(format!("row {row} of the Arrow array lies outside its buffers")))
    }

    /// The same of a row, counted from where the buffers begin; None if it lies outside of them.
    fn row(&self, row: usize) -> Option<Option<Span<'_>>> {
        if let Some(validity) = self.validity {
            let [byte] = validity.read(row / 8)?;
            if byte >> (row % 8) & 1 == 0 {
                return Some(None);
            }
        }
        let (buffer, start, length) = match self.layout {
            Layout::Short => {
                let offset = |row: usize| self.index.read(4 * row).map(i32::from_ne_bytes).map(i64::from);
                let (start, end) = (offset(row)?, offset(row + 1)?);
                (0, start, end - start)
            }
            Layout::Long => {
                let offset = |row: usize| self.index.read(8 * row).map(i64::from_ne_bytes);
                let (start, end) = (offset(row)?, offset(row + 1)?);
                (0, start, end.wrapping_sub(start))
            }
            Layout::Views => {
                let part = |part: usize| self.index.read(16 * row + 4 * part).map(i32::from_ne_bytes);
                let length = part(0)?;
                if (0..=12).contains(&length) {
                    return self.index.part(16 * row + 4, length as usize).map(Some);
                }
                (part(2)?, i64::from(part(3)?), i64::from(length))
            }
        };
        let (buffer, start) = (usize::try_from(buffer).ok()?, usize::try_from(start).ok()?);
        let length = usize::try_from(length).ok()?;
        if length == 0 && start == 0 {
            return Some(Some(Span::default()));
        }
        self.data.get(buffer)?.part(start, length).map(Some)
    }
}

#[cfg(test)]
pub mod tests {
    use std::ffi::{CStr, c_void};
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::arrow::interface::{CArray, CSchema};

    /// What an exporter keeps until its array is released: the buffers, and where they begin.
    struct Kept {
        starts: Vec<*const c_void>,
        _buffers: Vec<Vec<u8>>,
        released: Option<&'static AtomicUsize>,
    }

    extern "C" fn release(array: *mut CArray) {
        // SAFETY: `exported` made it, and it is released once.
        let kept = unsafe { Box::from_raw((*array).private_data.cast::<Kept>()) };
        if let Some(released) = kept.released {
            released.fetch_add(1, Relaxed);
        }
        // SAFETY: as above.
        unsafe { (*array).release = None };
    }

    extern "C" fn let_go(schema: *mut CSchema) {
        // SAFETY: it is the caller's.
        unsafe { (*schema).release = None };
    }

    fn exported(
        length: i64,
        offset: i64,
        buffers: Vec<Option<Vec<u8>>>,
        released: Option<&'static AtomicUsize>,
    ) -> CArray {
        let start = |buffer: &Option<Vec<u8>>| buffer.as_ref().map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast());
        let starts = buffers.iter().map(start).collect();
        let mut kept = Box::new(Kept { starts, _buffers: buffers.into_iter().flatten().collect(), released });
        CArray {
            length,
            null_count: -1,
            offset,
            n_buffers: kept.starts.len() as i64,
            n_children: 0,
            buffers: kept.starts.as_mut_ptr(),
            children: null_mut(),
            dictionary: null_mut(),
            release: Some(release),
            private_data: Box::into_raw(kept).cast(),
        }
    }

    fn schema(format: &CStr) -> CSchema {
        CSchema {
            format: format.as_ptr(),
            name: std::ptr::null(),
            metadata: std::ptr::null(),
            flags: 0,
            n_children: 0,
            children: null_mut(),
            dictionary: null_mut(),
            release: Some(let_go),
            private_data: null_mut(),
        }
    }

    fn imported(layout: Layout, mut array: CArray, sizes: &[usize]) -> Result<ArrowTexts, Fault> {
        // SAFETY: the array was made above, with buffers of at least these sizes.
        unsafe { ArrowTexts::new(layout, Held::taken(&raw mut array)?, sizes) }
    }

    fn bytes<const N: usize>(numbers: &[[u8; N]]) -> Vec<u8> {
        numbers.concat()
    }

    fn offsets(ends: &[i32]) -> Vec<u8> {
        bytes(&ends.iter().map(|end| end.to_ne_bytes()).collect::<Vec<_>>())
    }

    /// An array of these strings, with offsets of 32 bits.
    pub fn array_of(texts: &[Option<&str>]) -> ArrowTexts {
        let (mut ends, mut valid, mut data) = (vec![0], vec![0u8; texts.len().div_ceil(8)], Vec::new());
        for (at, text) in texts.iter().enumerate() {
            data.extend_from_slice(text.unwrap_or_default().as_bytes());
            ends.push(data.len() as i32);
            valid[at / 8] |= u8::from(text.is_some()) << (at % 8);
        }
        let sizes = [valid.len(), ends.len() * 4, data.len()];
        let buffers = vec![Some(valid), Some(offsets(&ends)), Some(data)];
        imported(Layout::Short, exported(texts.len() as i64, 0, buffers, None), &sizes).unwrap()
    }

    fn texts(array: &ArrowTexts) -> Vec<Option<Vec<u8>>> {
        let text = |at| array.item(at).unwrap().map(|span: Span<'_>| span.copied(&mut Vec::new()).to_vec());
        (0..array.len()).map(text).collect()
    }

    #[test]
    fn texts_of_every_layout_are_read() {
        let expected = vec![Some(b"b".to_vec()), None, Some(b"".to_vec()), Some(b"a longer text".to_vec())];
        let data = b"xba longer text".to_vec();
        // The first row is left out; the third has no text.
        let short = vec![Some(vec![0b11011]), Some(offsets(&[0, 1, 2, 2, 2, 15])), Some(data.clone())];
        let array = imported(Layout::Short, exported(4, 1, short, None), &[1, 24, 15]).unwrap();
        assert_eq!(texts(&array), expected);
        let ends = bytes(&[0, 1, 2, 2, 2, 15i64].map(i64::to_ne_bytes));
        let long = vec![Some(vec![0b11011]), Some(ends), Some(data.clone())];
        let array = imported(Layout::Long, exported(4, 1, long, None), &[1, 48, 15]).unwrap();
        assert_eq!(texts(&array), expected);
        let mut views = vec![0; 5 * 16];
        (views[16], views[20]) = (1, b'b');
        views[64..68].copy_from_slice(&13i32.to_ne_bytes());
        views[76..80].copy_from_slice(&2i32.to_ne_bytes());
        let sizes = vec![0; 8]; // those of the buffers of texts, which are not believed
        let buffers = vec![Some(vec![0b11011]), Some(views), Some(data), Some(sizes)];
        let array = imported(Layout::Views, exported(4, 1, buffers, None), &[1, 80, 15]).unwrap();
        assert_eq!(texts(&array), expected);
    }

    #[test]
    fn without_validity_all_are_texts() {
        let buffers = vec![None, Some(offsets(&[0, 1, 1])), Some(b"a".to_vec())];
        let array = imported(Layout::Short, exported(2, 0, buffers, None), &[0, 12, 1]).unwrap();
        assert_eq!(texts(&array), [Some(b"a".to_vec()), Some(b"".to_vec())]);
    }

    #[test]
    fn an_array_that_states_more_than_its_buffers_hold_is_refused() {
        let array = |length, offset, n_buffers| {
            let buffers = vec![Some(vec![255]), Some(offsets(&[0, 1, 2])), Some(b"ab".to_vec())];
            CArray { n_buffers, ..exported(length, offset, buffers, None) }
        };
        let short = |array, sizes: &[usize]| imported(Layout::Short, array, sizes).err();
        let expected = Some(Fault::value("the Arrow array is shorter than it says"));
        assert_eq!(short(array(2, 0, 3), &[1, 12, 2]), None);
        for (length, offset) in [(3, 0), (2, 1), (-1, 0), (2, -1), (i64::MAX, i64::MAX), (i64::MAX, 0)] {
            assert_eq!(short(array(length, offset, 3), &[1, 12, 2]), expected, "{length} from {offset}");
        }
        assert_eq!(short(array(2, 0, 3), &[0, 12, 2]), expected);
        assert_eq!(short(array(2, 0, 3), &[1, 11, 2]), expected);
        let other = Some(Fault::value("the Arrow array has not the buffers of an array of texts"));
        assert_eq!(short(array(2, 0, 2), &[1, 12]), other);
        assert_eq!(short(array(2, 0, 3), &[1, 12]), other);
        assert_eq!(short(array(2, 0, 0), &[]), other);
    }

    #[test]
    fn a_text_outside_its_buffer_is_refused() {
        for ends in [[0, 9], [-1, 1], [2, 1], [i32::MIN, i32::MAX]] {
            let buffers = vec![None, Some(offsets(&ends)), Some(b"ab".to_vec())];
            let array = imported(Layout::Short, exported(1, 0, buffers, None), &[0, 8, 2]).unwrap();
            let fault = Fault::value("row 0 of the Arrow array lies outside its buffers");
            assert_eq!(array.item(0).err(), Some(fault));
        }
        for (length, buffer, start) in [(13, 1, 0), (13, -1, 0), (13, 0, 1), (-1, 0, 0), (13, 0, -1)] {
            let view = bytes(&[length, 0, buffer, start].map(i32::to_ne_bytes));
            let buffers = vec![None, Some(view), Some(vec![0; 13]), Some(vec![0; 8])];
            let array = imported(Layout::Views, exported(1, 0, buffers, None), &[0, 16, 13]).unwrap();
            assert!(array.item(0).is_err());
        }
    }

    #[test]
    fn the_array_is_released_once_also_where_it_is_refused() {
        static RELEASED: AtomicUsize = AtomicUsize::new(0);
        let buffers = || vec![None, Some(offsets(&[0, 1])), Some(b"a".to_vec())];
        drop(imported(Layout::Short, exported(1, 0, buffers(), Some(&RELEASED)), &[0, 8, 1]).unwrap());
        assert_eq!(RELEASED.load(Relaxed), 1);
        assert!(imported(Layout::Short, exported(9, 0, buffers(), Some(&RELEASED)), &[0, 8, 1]).is_err());
        assert_eq!(RELEASED.load(Relaxed), 2);
    }

    #[test]
    fn what_was_released_before_is_refused() {
        let mut array = exported(0, 0, vec![None, None, None], None);
        // SAFETY: it was made above, and nobody else has it.
        drop(unsafe { Held::taken(&raw mut array) }.unwrap());
        // SAFETY: as above.
        let again = unsafe { Held::taken(&raw mut array) };
        assert_eq!(again.err(), Some(Fault::value("the Arrow array was released")));
        let mut gone = schema(c"u");
        gone.release = None;
        // SAFETY: it was made above.
        assert_eq!(unsafe { Layout::of(&gone) }, Err(Fault::value("the Arrow schema was released")));
    }

    #[test]
    fn a_format_of_no_texts_is_named() {
        let layout = |format| {
            // SAFETY: it is made here.
            unsafe { Layout::of(&schema(format)) }
        };
        assert_eq!(layout(c"u"), Ok(Layout::Short));
        assert_eq!(layout(c"Z"), Ok(Layout::Long));
        assert_eq!(layout(c"vu"), Ok(Layout::Views));
        assert_eq!(layout(c"i"), Err(Fault::Type("not an Arrow array of texts: its format is \"i\"".into())));
    }
}
