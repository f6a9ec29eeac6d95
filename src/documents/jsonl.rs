#![forbid(unsafe_code)]
//! JSON Lines, as they mostly are: one object a line with a text, and an id or none.
//!
//! Only what is beyond doubt is read here. A block with a line of another kind (an error, a blank
//! line, a wanted key twice or in escapes, a number that does not fit a float, deep nesting) is left
//! to the reader that tells what is wrong with it.

use crate::system::memory;

/// Deeper nesting is left to the other reader.
const DEPTH: usize = 32;
/// Longer numbers are left to the other reader.
const DIGITS: usize = 17;

/// Strings after each other.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Column {
    pub bytes: Vec<u8>,
    /// Where each begins, and where the last one ends.
    pub offsets: Vec<i64>,
}

impl Column {
    fn new() -> Column {
        Column { bytes: Vec::new(), offsets: vec![0] }
    }

    fn close(&mut self) {
        memory::push(&mut self.offsets, self.bytes.len() as i64);
    }
}

/// The documents of a block of lines.
#[derive(Debug)]
pub struct Records {
    pub texts: Column,
    /// None if no line has one.
    pub ids: Option<Column>,
    /// Where each line begins, and where the last one ends.
    pub lines: Vec<i64>,
}

/// The documents of a block of UTF-8, if each of its lines is one beyond doubt.
pub fn records(block: &str, text: &str, id: &str) -> Option<Records> {
    let data = block.as_bytes();
    let mut found = Records { texts: Column::new(), ids: None, lines: vec![0] };
    memory::more_room(&mut found.texts.bytes, data.len());
    let mut ids = Column::new();
    let mut reader = Reader { data, at: 0 };
    while reader.at < data.len() {
        let (texts_before, ids_before) = (found.texts.offsets.len(), ids.offsets.len());
        reader.object(|reader, key| {
            if key != text.as_bytes() && key != id.as_bytes() {
                return reader.value(1);
            }
            let begin = reader.at;
            if key == text.as_bytes() {
                reader.string(Some(&mut found.texts.bytes))?;
                found.texts.close();
            }
            if key == id.as_bytes() {
                reader.at = begin;
                reader.string(Some(&mut ids.bytes))?;
                ids.close();
            }
            Some(())
        })?;
        reader.line_end()?;
        memory::push(&mut found.lines, reader.at as i64);
        let has_id = ids.offsets.len() - ids_before;
        if found.texts.offsets.len() != texts_before + 1 || has_id > 1 {
            return None;
        }
    }
    found.ids = named(ids, found.lines.len() - 1)?;
    Some(found)
}

/// What a text is made of, where that are several fields.
pub struct Fields<'a> {
    /// Their names, each once.
    pub names: Vec<&'a str>,
    /// The fields of a text in their order, as numbers of names.
    pub order: Vec<usize>,
    /// What is between two fields that say something.
    pub between: &'a str,
    /// The longest text, in bytes.
    pub limit: usize,
}

impl<'a> Fields<'a> {
    /// The fields of a text, which may be there several times.
    pub fn new(fields: &'a [String], between: &'a str, limit: usize) -> Fields<'a> {
        let mut names: Vec<&str> = Vec::new();
        let mut order = Vec::new();
        for field in fields {
            let number = names.iter().position(|name| name == field).unwrap_or_else(|| {
                names.push(field);
                names.len() - 1
            });
            order.push(number);
        }
        Fields { names, order, between, limit }
    }
}

/// The documents of a block of UTF-8 whose texts are made of several fields, if each line is one beyond doubt.
///
/// A line may lack some of the fields, or have null there. Whether a field that no line has is a mistake is
/// for others to say.
pub fn records_of_fields(block: &str, fields: &Fields<'_>, id: &str) -> Option<Records> {
    let data = block.as_bytes();
    let mut found = Records { texts: Column::new(), ids: None, lines: vec![0] };
    memory::more_room(&mut found.texts.bytes, data.len());
    let mut ids = Column::new();
    let mut met = vec![false; fields.names.len()];
    let mut places = vec![Place::Missing; fields.names.len()];
    let mut reader = Reader { data, at: 0 };
    while reader.at < data.len() {
        let ids_before = ids.offsets.len();
        places.fill(Place::Missing);
        reader.object(|reader, key| {
            let begin = reader.at;
            let field = fields.names.iter().position(|name| name.as_bytes() == key);
            if key == id.as_bytes() {
                reader.string(Some(&mut ids.bytes))?;
                ids.close();
            }
            let Some(field) = field else {
                return if key == id.as_bytes() { Some(()) } else { reader.value(1) };
            };
            if places[field] != Place::Missing {
                return None;
            }
            reader.at = begin;
            if reader.peek() == b'n' {
                places[field] = Place::Null;
                return reader.word(b"null");
            }
            places[field] = Place::At(begin);
            reader.string(None)
        })?;
        reader.line_end()?;
        memory::push(&mut found.lines, reader.at as i64);
        if ids.offsets.len() - ids_before > 1 {
            return None;
        }
        for (met, place) in met.iter_mut().zip(&places) {
            *met |= *place != Place::Missing;
        }
        put_together(data, &places, fields, &mut found.texts)?;
    }
    if met.contains(&false) && found.lines.len() > 1 {
        return None;
    }
    found.ids = named(ids, found.lines.len() - 1)?;
    Some(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Missing,
    Null,
    At(usize),
}

/// Adds the text of one line, if it has one that is not too long.
fn put_together(data: &[u8], places: &[Place], fields: &Fields<'_>, texts: &mut Column) -> Option<()> {
    let begin = texts.bytes.len();
    let mut any = false;
    for field in &fields.order {
        let Place::At(at) = places[*field] else { continue };
        any = true;
        let before = texts.bytes.len();
        if before > begin {
            memory::append(&mut texts.bytes, fields.between.as_bytes());
        }
        let empty = texts.bytes.len();
        Reader { data, at }.string(Some(&mut texts.bytes))?;
        if texts.bytes.len() == empty {
            texts.bytes.truncate(before);
        }
        if texts.bytes.len() - begin > fields.limit {
            return None;
        }
    }
    texts.close();
    any.then_some(())
}

/// The ids of so many lines: none or one for each, and none empty.
fn named(ids: Column, lines: usize) -> Option<Option<Column>> {
    match ids.offsets.len() - 1 {
        0 => Some(None),
        some if some == lines && ids.offsets.windows(2).all(|ends| ends[0] < ends[1]) => Some(Some(ids)),
        _ => None,
    }
}

/// The same of bytes, which may be anything.
pub fn records_of_fields_in(block: &[u8], fields: &Fields<'_>, id: &str) -> Option<Records> {
    records_of_fields(simdutf8::basic::from_utf8(block).ok()?, fields, id)
}

/// The same of bytes, which may be anything.
pub fn records_of(block: &[u8], text: &str, id: &str) -> Option<Records> {
    records(simdutf8::basic::from_utf8(block).ok()?, text, id)
}

/// How many LF there are.
pub fn line_ends(data: &[u8]) -> usize {
    // So few at a time that they can be counted in bytes.
    let add = |count: u8, byte: &u8| count.wrapping_add(u8::from(*byte == b'\n'));
    data.chunks(192).map(|some| usize::from(some.iter().fold(0, add))).sum()
}

struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> u8 {
        // A line end cannot be continued.
        self.data.get(self.at).copied().unwrap_or(b'\n')
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == byte && self.at < self.data.len()).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    fn line_end(&mut self) -> Option<()> {
        self.space();
        (self.peek() == b'\n').then(|| self.at = self.data.len().min(self.at + 1))
    }

    /// An object; *value* is called for each key, where its value begins.
    fn object(&mut self, mut value: impl FnMut(&mut Reader<'a>, &'a [u8]) -> Option<()>) -> Option<()> {
        self.space();
        self.take(b'{')?;
        self.space();
        if self.take(b'}').is_some() {
            return Some(());
        }
        loop {
            self.space();
            let key = self.plain_string()?;
            self.space();
            self.take(b':')?;
            self.space();
            value(self, key)?;
            self.space();
            if self.take(b'}').is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        match self.peek() {
            b'"' => self.string(None),
            b'{' => self.object(|reader, _| reader.value(depth + 1)),
            b'[' => self.list(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.take(b'[')?;
        self.space();
        if self.take(b']').is_some() {
            return Some(());
        }
        loop {
            self.space();
            self.value(depth + 1)?;
            self.space();
            if self.take(b']').is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.data[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn digits(&mut self) -> usize {
        let begin = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        self.at - begin
    }

    /// A number without an exponent.
    fn number(&mut self) -> Option<()> {
        let begin = self.at;
        let _ = self.take(b'-');
        let zero = self.peek() == b'0';
        let whole = self.digits();
        let fraction = self.take(b'.').is_none() || self.digits() > 0;
        let fits = whole > 0 && (whole == 1 || !zero) && fraction && self.at - begin <= DIGITS;
        (fits && !matches!(self.peek(), b'e' | b'E')).then_some(())
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let begin = self.at;
        self.at += plain(&self.data[begin..]);
        self.take(b'"')?;
        Some(&self.data[begin..self.at - 1])
    }

    /// A string; what it says is added to *out*.
    fn string(&mut self, mut out: Option<&mut Vec<u8>>) -> Option<()> {
        self.take(b'"')?;
        loop {
            let begin = self.at;
            self.at += plain(&self.data[begin..]);
            if let Some(out) = &mut out {
                memory::append(out, &self.data[begin..self.at]);
            }
            if self.take(b'"').is_some() {
                return Some(());
            }
            self.take(b'\\')?;
            let letter = self.escape()?;
            if let Some(out) = &mut out {
                memory::append(out, letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let kind = self.peek();
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.unit()?;
                let low = if (0xd800..0xdc00).contains(&high) {
                    self.word(b"\\u")?;
                    Some(self.unit()?)
                } else {
                    None
                };
                // A lone surrogate is not a letter.
                char::decode_utf16([high].into_iter().chain(low)).next()?.ok()?
            }
            _ => return None,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.data.get(self.at..self.at + 4)?;
        self.at += 4;
        let value = |digit: &u8| char::from(*digit).to_digit(16);
        digits.iter().try_fold(0, |sum, digit| Some(sum << 4 | value(digit)? as u16))
    }
}

/// How many bytes of a string are before its end, an escape or what must not be there.
fn plain(data: &[u8]) -> usize {
    const STEP: usize = 32;
    let special = |byte: &u8| (*byte == b'"') | (*byte == b'\\') | (*byte < 0x20);
    let mut at = 0;
    for part in data.chunks_exact(STEP) {
        if part.iter().fold(false, |any, byte| any | special(byte)) {
            break;
        }
        at += STEP;
    }
    at + data[at..].iter().position(special).unwrap_or(data.len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(column: &Column) -> Vec<&str> {
        column
            .offsets
            .windows(2)
            .map(|ends| &column.bytes[ends[0] as usize..ends[1] as usize])
            .map(|bytes| std::str::from_utf8(bytes).unwrap())
            .collect()
    }

    #[test]
    fn plain_lines_are_read() {
        let block = concat!(
            r#"{"id": "a", "text": "one \"two\"\n\u00e9\ud83d\ude00/", "n": [1, -2.5, {"id": null}], "x": {}}"#,
            "\n",
            r#" {"text":"","id":"b","ok":true} "#,
        );
        let found = records(block, "text", "id").unwrap();
        assert_eq!(strings(&found.texts), ["one \"two\"\n\u{e9}\u{1f600}/", ""]);
        assert_eq!(strings(&found.ids.unwrap()), ["a", "b"]);
        let second = block.find('\n').unwrap() + 1;
        assert_eq!(found.lines, [0, second, block.len()].map(|at| at as i64));
        assert!(records("{\"text\": \"x\"}\n", "text", "id").unwrap().ids.is_none());
        assert!(records("", "text", "id").unwrap().texts.bytes.is_empty());
    }

    #[test]
    fn doubtful_lines_are_left_to_others() {
        for line in [
            "",
            "\n",
            "{}",
            "[]",
            "{\"text\": 1}",
            "{\"text\": \"a\", \"text\": \"b\"}",
            "{\"text\": \"a\", \"id\": \"\"}",
            "{\"text\": \"a\", \"id\": 3}",
            "{\"text\": \"a\", \"te\\u0078t\": \"b\"}",
            "{\"text\": \"\\ud800\"}",
            "{\"text\": \"\\ud800\\u0041\"}",
            "{\"text\": \"\\x\"}",
            "{\"text\": \"a\tb\"}",
            "{\"text\": \"a\"",
            "{\"text\": \"a\"}}",
            "{\"text\": \"a\",}",
            "{\"text\": \"a\" \"n\": 1}",
            "{\"text\": \"a\", \"n\": 01}",
            "{\"text\": \"a\", \"n\": 1.}",
            "{\"text\": \"a\", \"n\": 1e999}",
            "{\"text\": \"a\", \"n\": NaN}",
            "{\"text\": \"a\", \"n\": 123456789012345678901}",
            "{\"text\": \"a\", \"n\": }",
            "{\"text\": \"a\", \"n\": tru}",
            "{\"text\": \"a",
            "{\"text\": \"a\\",
            "{\"text\": \"a\\u12",
            "\u{feff}{\"text\": \"a\"}",
        ] {
            let block = format!("{{\"text\": \"x\"}}\n{line}\n");
            assert!(records(&block, "text", "id").is_none(), "{line}");
        }
        let deep = format!("{{\"text\": \"a\", \"n\": {}{}}}", "[".repeat(40), "]".repeat(40));
        assert!(records(&deep, "text", "id").is_none());
        let mixed = "{\"text\": \"a\", \"id\": \"x\"}\n{\"text\": \"b\"}\n";
        assert!(records(mixed, "text", "id").is_none());
    }

    fn of_fields(block: &str, fields: &[&str]) -> Option<Vec<String>> {
        let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
        let found = records_of_fields(block, &Fields::new(&fields, "|", 12), "id")?;
        Some(strings(&found.texts).into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn several_fields_make_one_text_in_the_order_that_is_wanted() {
        let block = concat!(
            r#"{"id": "a", "body": "one \"two\"", "title": "T"}"#,
            "\n",
            r#"{"title": null, "n": 1, "body": "b"}"#,
            "\n",
            r#"{"title": "", "body": ""}"#,
        );
        assert!(of_fields(block, &["title", "body"]).is_none(), "one has an id, the others none");
        let block = block.replace(r#""id": "a", "#, "");
        assert_eq!(of_fields(&block, &["title", "body"]).unwrap(), ["T|one \"two\"", "b", ""]);
        assert_eq!(of_fields(&block, &["title", "body", "title"]), None, "longer than 12 bytes");
        assert_eq!(of_fields("{\"a\": \"x\", \"b\": \"y\"}", &["a", "a", "b"]).unwrap(), ["x|x|y"]);
        assert_eq!(of_fields("{\"id\": \"x\", \"b\": \"y\"}", &["id", "b"]).unwrap(), ["x|y"]);
    }

    #[test]
    fn fields_in_doubt_are_left_to_others() {
        for line in [
            "{}",
            "{\"a\": null}",
            "{\"a\": 1, \"b\": \"x\"}",
            "{\"a\": \"x\", \"a\": \"y\"}",
            "{\"a\": null, \"a\": \"y\"}",
            "{\"a\": \"x\", \"b\": nul}",
            "{\"a\": \"x\", \"\\u0061\": \"y\"}",
        ] {
            let block = format!("{{\"a\": \"x\", \"b\": \"y\"}}\n{line}\n");
            assert!(of_fields(&block, &["a", "b"]).is_none(), "{line}");
        }
        assert!(of_fields("{\"a\": \"x\"}\n", &["a", "b"]).is_none(), "no line has b");
    }

    #[test]
    fn line_ends_are_counted_in_long_runs_too() {
        assert_eq!(line_ends(&[b'\n'; 1000]), 1000);
        assert_eq!(line_ends(b"a\r\nb"), 1);
        assert_eq!(line_ends(b""), 0);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_left_to_the_other_reader() {
        assert!(records_of(b"{\"text\": \"\xff\"}\n", "text", "id").is_none());
        assert!(records_of(b"{\"text\": \"a\"}\n", "text", "id").is_some());
    }
}
