#![forbid(unsafe_code)]
//! Tokens: the words of a text, and every CJK character, in order.

use crate::text::features::spaces;
use crate::text::unicode::{CJK, Properties};

/// Call *found* with the words of a normalised text outside CJK, and every CJK character, in order; *edges* is
/// room to work in.
pub fn for_each_token<'a>(text: &'a str, edges: &mut Vec<u32>, mut found: impl FnMut(&'a str)) {
    if text.is_ascii() {
        edges.clear();
        spaces(text.as_bytes(), 0..text.len(), edges);
        let mut begin = 0;
        for at in edges.iter().map(|at| *at as usize).chain([text.len()]) {
            if begin < at {
                found(&text[begin..at]);
            }
            begin = at + 1;
        }
        return;
    }
    let table = Properties::get();
    let is_cjk = |letter: char| table.entry(letter as u32) & CJK != 0;
    let mut rest = text.trim_start_matches(' ');
    while let Some(first) = rest.chars().next() {
        let end = if is_cjk(first) {
            first.len_utf8()
        } else {
            rest.find(|letter: char| letter == ' ' || is_cjk(letter)).unwrap_or(rest.len())
        };
        let (token, after) = rest.split_at(end);
        found(token);
        rest = after.trim_start_matches(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_and_cjk_characters() {
        let tokens = |text| {
            let mut found = Vec::new();
            for_each_token(text, &mut Vec::new(), |token| found.push(token));
            found
        };
        assert_eq!(tokens("ab 12 漢字x"), ["ab", "12", "漢", "字", "x"]);
        assert_eq!(tokens(" ab  12"), ["ab", "12"]);
    }
}
