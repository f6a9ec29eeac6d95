#![forbid(unsafe_code)]
//! The first look at documents: what identifies each, and what all of them share.

use crate::documents::identity::Identity;
use crate::frequencies::Frequencies;
use crate::recipe::Recipe;
use crate::recipe::batches::Bench;
use crate::system::memory::{gathered, zeros};
use crate::system::parallel::{self, Cancel};
use crate::text::texts::{Texts, text_or_empty};

/// What was seen of each text.
pub struct Survey {
    /// 128 bits that identify its normalised form; 0 without information.
    pub content: Vec<[u64; 2]>,
    /// Whether there is information in it.
    pub informative: Vec<bool>,
    /// Its characters.
    pub lengths: Vec<i64>,
    /// 32 bits that tell its spellings apart.
    pub spellings: Vec<u32>,
}

/// Look at each text; its features are counted into *table*. Ends early when *cancel* is set.
pub fn survey(
    recipe: &Recipe,
    texts: &Texts<'_>,
    table: Option<&Frequencies>,
    key: [u8; 32],
    threads: Option<usize>,
    cancel: &Cancel,
) -> Survey {
    let identity = Identity::new(key);
    let (count, piece) = (texts.items().len(), texts.piece());
    let mut found =
        Survey { content: zeros(count), informative: zeros(count), lengths: zeros(count), spellings: zeros(count) };
    let threads = parallel::thread_count(threads).min(count.div_ceil(piece));
    let rows = found.content.chunks_mut(piece).zip(found.informative.chunks_mut(piece));
    let rows = rows.zip(found.lengths.chunks_mut(piece).zip(found.spellings.chunks_mut(piece)));
    parallel::drain(
        texts.items().chunks(piece).zip(rows),
        threads,
        cancel,
        || (Bench::default(), table.map(Frequencies::counter)),
        |((scratch, room), counter), (texts, ((content, informative), (lengths, spellings)))| {
            let rows = content.iter_mut().zip(informative).zip(lengths.iter_mut().zip(spellings));
            for (text, ((content, informative), (length, spelling))) in texts.iter().zip(rows) {
                let text = text_or_empty(text, room);
                *length = characters(text.bytes());
                *spelling = identity.spelling(text.bytes());
                let (found, hashes, grams) =
                    recipe.survey(text, scratch, table.is_some(), |text| identity.content(text));
                if let Some(found) = found {
                    (*content, *informative) = (found, true);
                }
                if let Some(counter) = counter {
                    counter.add(hashes, grams);
                }
            }
        },
    );
    found
}

/// The spellings of texts, as `survey` has them. Ends early when *cancel* is set.
pub fn spellings(texts: &Texts<'_>, key: [u8; 32], cancel: &Cancel) -> Vec<u32> {
    let (identity, mut room) = (Identity::new(key), Vec::new());
    let mut spelling = |text| identity.spelling(text_or_empty(text, &mut room).bytes());
    gathered(texts.items().iter().map(|text| if cancel.is_set() { 0 } else { spelling(text) }))
}

/// The characters of a text in UTF-8: all bytes but those that continue one.
fn characters(text: &[u8]) -> i64 {
    let begins = |bytes: &[u8]| bytes.iter().map(|&byte| u8::from(byte as i8 >= -64)).sum::<u8>();
    text.chunks(192).map(|bytes| i64::from(begins(bytes))).sum()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::arrow::array::tests::array_of;
    use crate::recipe::Spec;

    fn recipe() -> Recipe {
        let spec = Spec {
            normalize: "text",
            features: "words:1",
            weights: "log",
            hash: "mix",
            key: None,
            bits: 64,
            digest_slice: "first",
            bit_order: "little",
            tie: "zero",
            empty: "none",
        };
        Recipe::parse(&spec, None).unwrap()
    }

    #[test]
    fn texts_that_differ_in_spelling_only_have_one_content() {
        let array = array_of(&[Some("A Text"), Some("a  text!"), None, Some("zwölf")]);
        let texts = Texts::of_arrow(&array).unwrap();
        let found = survey(&recipe(), &texts, None, [7; 32], Some(1), &Cancel::new());
        assert_eq!(found.content[0], found.content[1]);
        assert_ne!(found.content[0], found.content[3]);
        assert_ne!(found.spellings[0], found.spellings[1]);
        assert_eq!(found.informative, [true, true, false, true]);
        assert_eq!(found.content[2], [0, 0]);
        assert_eq!(found.lengths, [6, 8, 0, 5]);
        assert_eq!(spellings(&texts, [7; 32], &Cancel::new()), found.spellings);
    }

    #[test]
    fn a_survey_counts_as_counting_does_on_any_number_of_threads() {
        let strings: Vec<String> = (0..3000).map(|at| format!("number {at} among {}", at % 77)).collect();
        let texts = Texts::of_strings(strings.iter().map(|text| Cow::Borrowed(text.as_str())));
        let (recipe, mut counted) = (recipe(), Frequencies::new(1 << 20));
        recipe.count(&texts, &counted, Some(1), &Cancel::new());
        counted.settle();
        for threads in [1, 4] {
            let mut table = Frequencies::new(1 << 20);
            let found = survey(&recipe, &texts, Some(&table), [1; 32], Some(threads), &Cancel::new());
            table.settle();
            assert_eq!(table.to_bytes(), counted.to_bytes());
            assert_eq!(found.content, survey(&recipe, &texts, None, [1; 32], None, &Cancel::new()).content);
        }
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        assert_eq!(characters("a ä 文 😀".repeat(100).as_bytes()), 700);
    }
}
