#![forbid(unsafe_code)]
//! Text without what nobody reads in it: scripts, styles, addresses and the targets of links.
//!
//! ```text
//! at each place, the first of these that matches becomes one space:
//!   <script ...>...</script ...>, and the same with style
//!   a Markdown target: (...) on one line, without a bracket in it, right behind ]
//!   http://, https://, ftp:// or www. where a word begins, up to white space, < > or "
//!   href= or src= behind white space, and the quoted value
//! ```
//! Letters of these are ASCII, in either case.

use crate::system::memory;

const ELEMENTS: [&str; 2] = ["script", "style"];

/// The *text* without them.
pub fn without_links(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = memory::room_for::<u8>(bytes.len());
    let mut at = 0;
    // Elements of which no end follows: it is not looked for again.
    let mut endless = [false; ELEMENTS.len()];
    while at < bytes.len() {
        match matched(bytes, at, &mut endless) {
            Some(end) => {
                memory::push(&mut out, b' ');
                at = end;
            }
            None => {
                memory::push(&mut out, bytes[at]);
                at += 1;
            }
        }
    }
    // Whole characters are left out, so the rest is UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// Where what begins at *at* ends, if it is to be left out.
fn matched(bytes: &[u8], at: usize, endless: &mut [bool; ELEMENTS.len()]) -> Option<usize> {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    match bytes[at] {
        b'<' => ELEMENTS.iter().zip(endless).find_map(|(name, endless)| element(bytes, at, name, endless)),
        b'(' if before == Some(b']') => {
            let length = bytes[at + 1..].iter().position(|byte| matches!(byte, b'(' | b')' | b'\n'))?;
            let end = at + 1 + length;
            (bytes[end] == b')').then_some(end + 1)
        }
        b'h' | b'H' | b's' | b'S' if before.is_some_and(is_space) => {
            attribute(bytes, at).or_else(|| address(bytes, at))
        }
        b'h' | b'H' | b'f' | b'F' | b'w' | b'W' if !before.is_some_and(is_word) => address(bytes, at),
        _ => None,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the *words* end that are at *at*, in either case.
fn follows(bytes: &[u8], at: usize, words: &str) -> Option<usize> {
    let end = at + words.len();
    bytes.get(at..end).is_some_and(|own| own.eq_ignore_ascii_case(words.as_bytes())).then_some(end)
}

fn element(bytes: &[u8], at: usize, name: &str, endless: &mut bool) -> Option<usize> {
    let open = follows(bytes, at + 1, name)?;
    if *endless || bytes.get(open).is_some_and(|byte| is_word(*byte)) {
        return None;
    }
    let end = (open..bytes.len()).filter(|at| bytes[*at] == b'<' && bytes.get(at + 1) == Some(&b'/')).find_map(|at| {
        let mut end = follows(bytes, at + 2, name)?;
        while bytes.get(end).is_some_and(|byte| is_space(*byte)) {
            end += 1;
        }
        (bytes.get(end) == Some(&b'>')).then_some(end + 1)
    });
    *endless = end.is_none();
    end
}

fn address(bytes: &[u8], at: usize) -> Option<usize> {
    let begin = ["http://", "https://", "ftp://", "www."].iter().find_map(|words| follows(bytes, at, words))?;
    let end = |byte: &u8| is_space(*byte) || matches!(byte, b'<' | b'>' | b'"');
    Some(bytes[begin..].iter().position(end).map_or(bytes.len(), |length| begin + length))
}

fn attribute(bytes: &[u8], at: usize) -> Option<usize> {
    let begin = ["href=", "src="].iter().find_map(|words| follows(bytes, at, words))?;
    let quote = *bytes.get(begin).filter(|byte| matches!(byte, b'"' | b'\''))?;
    bytes[begin + 1..].iter().position(|byte| *byte == quote).map(|length| begin + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reads_is_left_out() {
        for (text, expected) in [
            ("see https://a.b/c?d=é, then", "see   then"),
            ("(www.a.b) xhttp://a wwwx", "(  xhttp://a wwwx"),
            ("[name](../a \"b\") (c) [x](a(b))", "[name]  (c) [x](a(b))"),
            ("a<script x>b < c</SCRIPT >d<STYLE>e", "a d<STYLE>e"),
            ("<scripts>a</scripts> <a href='b' SRC=\"c\">d", "<scripts>a</scripts> <a    >d"),
            ("href=\"a\" href=b ftp://", "href=\"a\" href=b  "),
            ("", ""),
        ] {
            assert_eq!(without_links(text), expected, "{text}");
        }
    }
}
