#![forbid(unsafe_code)]
//! Many texts at once: their fingerprints, their features counted.

use std::cell::RefCell;
use std::iter::repeat_with;

use crate::frequencies::Frequencies;
use crate::recipe::bands::BANDS;
use crate::recipe::{Recipe, Scratch};
use crate::system::fault::{Fault, require};
use crate::system::memory;
use crate::system::parallel::{self, Cancel};
use crate::text::texts::{Texts, text_or_empty};

/// What a thread works with: its buffers, and room for a text.
pub type Bench = (Scratch, Vec<u8>);

/// A text of at most this many bytes takes well below a millisecond.
const SHORT: usize = 1 << 14;

/// Whether the fingerprint of a text is there at once.
pub fn is_short(text: &str) -> bool {
    text.len() <= SHORT
}

/// The words of all fingerprints, and which texts have one.
pub type Made = (Vec<u64>, Vec<bool>);

/// A feature as somebody gives it, and its weight.
pub type Weighted = (String, i64);

fn borrowed(features: &[Weighted]) -> Vec<(&str, i64)> {
    memory::gathered(features.iter().map(|(text, weight)| (text.as_str(), *weight)))
}

impl Recipe {
    /// The fingerprint of one text, if it has one.
    pub fn fingerprint_of_text(&self, text: &str) -> Option<Vec<u64>> {
        thread_local! {
            static SCRATCH: RefCell<Scratch> = RefCell::default();
        }
        let mut out = vec![0; self.words()];
        let mut run = |scratch: &mut Scratch| self.fingerprint(text, scratch, &mut out);
        // What a long text needs is not kept.
        let found = if is_short(text) { SCRATCH.with_borrow_mut(run) } else { run(&mut Scratch::default()) };
        found.then_some(out)
    }

    /// The fingerprint of weighted features, if there are any.
    pub fn fingerprint_of_features(&self, features: &[Weighted]) -> Option<Vec<u64>> {
        let mut out = vec![0; self.words()];
        self.fingerprint_of(&borrowed(features), &mut Scratch::default(), &mut out).then_some(out)
    }

    /// For each bit the weight of the features for it minus the weight of those against it.
    pub fn balances(&self, features: &[Weighted]) -> Result<Vec<i64>, Fault> {
        let (ones, total) = self.weighted_votes(&borrowed(features), &mut Scratch::default());
        let sums: Option<Vec<i64>> = ones.iter().map(|sum| i64::try_from(2 * sum - total).ok()).collect();
        sums.ok_or_else(|| Fault::value("the sum of the weights does not fit 64 bits"))
    }

    /// The words of all fingerprints, and which texts have one. Ends early when *cancel* is set.
    pub fn fingerprints(&self, texts: &Texts<'_>, threads: Option<usize>, cancel: &Cancel) -> Made {
        self.made(texts, &mut [], threads, cancel)
    }

    /// The same, and the bands of each text.
    pub fn banded(
        &self,
        texts: &Texts<'_>,
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<(Made, Vec<u32>), Fault> {
        require(self.has_bands(), "only features of the hash 'mix' that count once have bands")?;
        let mut bands = memory::zeros(texts.items().len().saturating_mul(BANDS));
        Ok((self.made(texts, &mut bands, threads, cancel), bands))
    }

    /// Fingerprints; *bands* has room for those of all texts, or for none.
    fn made(&self, texts: &Texts<'_>, bands: &mut [u32], threads: Option<usize>, cancel: &Cancel) -> Made {
        let (words, count, piece) = (self.words(), texts.items().len(), texts.piece());
        let mut prints = memory::zeros::<u64>(count.saturating_mul(words));
        let mut valid = memory::zeros::<bool>(count);
        let bands = bands.as_chunks_mut::<BANDS>().0.chunks_mut(piece).chain(repeat_with(|| &mut [][..]));
        let outs = prints.chunks_mut(piece * words).zip(valid.chunks_mut(piece)).zip(bands);
        let pieces = texts.items().chunks(piece).zip(outs);
        let threads = parallel::thread_count(threads).min(count.div_ceil(piece));
        parallel::drain(
            pieces,
            threads,
            cancel,
            Bench::default,
            |(scratch, room), (texts, ((prints, valid), bands))| {
                for (at, (print, valid)) in prints.chunks_mut(words).zip(valid).enumerate() {
                    if let Some(Some(next)) = texts.get(at + 1) {
                        next.prefetch();
                    }
                    if let Some(text) = &texts[at] {
                        *valid = self.fingerprint_and_bands(text.get(room), scratch, print, bands.get_mut(at));
                    }
                }
            },
        );
        (prints, valid)
    }

    /// Count the features of each text into *table*. Ends early when *cancel* is set.
    pub fn count(&self, texts: &Texts<'_>, table: &Frequencies, threads: Option<usize>, cancel: &Cancel) {
        let piece = texts.piece();
        let threads = parallel::thread_count(threads).min(texts.items().len().div_ceil(piece));
        parallel::drain(
            texts.items().chunks(piece),
            threads,
            cancel,
            || (Bench::default(), table.counter()),
            |((scratch, room), counter), texts| {
                for text in texts {
                    let (_, hashes, grams) = self.survey(text_or_empty(text, room), scratch, true, |_| ());
                    counter.add(hashes, grams);
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::arrow::array::tests::array_of;
    use crate::recipe::Spec;

    const SPEC: Spec<'_> = Spec {
        normalize: "text",
        features: "words:1",
        weights: "log",
        hash: "mix",
        key: None,
        bits: 128,
        digest_slice: "first",
        bit_order: "little",
        tie: "zero",
        empty: "none",
    };

    fn recipe(weights: &str) -> Recipe {
        Recipe::parse(&Spec { weights, ..SPEC }, None).unwrap()
    }

    fn strings(texts: &[String]) -> Texts<'_> {
        Texts::of_strings(texts.iter().map(|text| Cow::Borrowed(text.as_str())))
    }

    fn some_texts() -> Vec<String> {
        (0..3000).map(|at| format!("text {} of {} words", at % 700, "many ".repeat(at % 50))).collect()
    }

    #[test]
    fn many_texts_have_the_fingerprints_of_each_on_any_number_of_threads() {
        let (recipe, texts) = (recipe("log"), some_texts());
        let expected: Vec<u64> = texts.iter().flat_map(|text| recipe.fingerprint_of_text(text).unwrap()).collect();
        for threads in [1, 2, 5] {
            let (prints, valid) = recipe.fingerprints(&strings(&texts), Some(threads), &Cancel::new());
            assert!(prints == expected, "{threads} threads");
            assert!(valid.iter().all(|valid| *valid));
        }
    }

    #[test]
    fn a_null_and_an_empty_text_have_none() {
        let array = array_of(&[Some("a text"), None, Some("")]);
        let texts = Texts::of_arrow(&array).unwrap();
        let (prints, valid) = recipe("set").fingerprints(&texts, Some(1), &Cancel::new());
        let words = prints.len() / 3;
        assert_eq!(valid, [true, false, false]);
        assert!(prints[words..].iter().all(|word| *word == 0));
        assert_eq!(recipe("set").fingerprint_of_text("a text").unwrap(), prints[..words]);
    }

    #[test]
    fn counting_on_threads_counts_as_one_by_one_and_nulls_too() {
        let (recipe, texts) = (recipe("log"), some_texts());
        let (mut one, mut many) = (Frequencies::new(1 << 20), Frequencies::new(1 << 20));
        for text in &texts {
            recipe.count(&strings(std::slice::from_ref(text)), &one, Some(1), &Cancel::new());
        }
        recipe.count(&strings(&texts), &many, Some(3), &Cancel::new());
        one.settle();
        many.settle();
        assert_eq!(one.to_bytes(), many.to_bytes());
        let array = array_of(&[None, Some("")]);
        recipe.count(&Texts::of_arrow(&array).unwrap(), &many, None, &Cancel::new());
        assert_eq!(many.documents(), 3002);
    }

    #[test]
    fn a_cancelled_call_ends() {
        let (cancel, texts) = (Cancel::new(), some_texts());
        cancel.set();
        let (_, valid) = recipe("set").fingerprints(&strings(&texts), Some(2), &cancel);
        assert!(valid.iter().all(|valid| !valid));
    }

    #[test]
    fn balances_are_for_minus_against() {
        let recipe = recipe("count");
        let balances = recipe.balances(&[("a".into(), 5), ("a".into(), -2)]).unwrap();
        assert!(balances.iter().all(|sum| sum.abs() == 3));
        let print = recipe.fingerprint_of_features(&[("a".into(), 3)]).unwrap();
        for (bit, sum) in balances.iter().enumerate() {
            assert_eq!(*sum > 0, print[bit / 64] >> (bit % 64) & 1 == 1);
        }
        assert!(recipe.balances(&[("a".into(), i64::MAX), ("a".into(), i64::MAX)]).is_err());
        assert_eq!(recipe.fingerprint_of_features(&[]), None);
    }

    #[test]
    fn a_word_that_no_scheme_has_is_named() {
        let fault = |spec: Spec<'_>| Recipe::parse(&spec, None).err();
        let unknown = |what: &str| Some(Fault::value(format!("unknown {what}")));
        assert_eq!(fault(Spec { normalize: "x", ..SPEC }), unknown("normalisation \"x\""));
        assert_eq!(fault(Spec { features: "x", ..SPEC }), unknown("features \"x\""));
        assert_eq!(fault(Spec { weights: "x", ..SPEC }), unknown("weights \"x\""));
        assert_eq!(fault(Spec { hash: "x", ..SPEC }), unknown("hash \"x\""));
        assert_eq!(fault(Spec { hash: "blake3-keyed", ..SPEC }), unknown("hash \"blake3-keyed\""));
        assert_eq!(fault(Spec { empty: "x", ..SPEC }), unknown("empty rule \"x\""));
    }
}
