#![forbid(unsafe_code)]
//! Candidate pairs to verdicts.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrow::ArrowTexts;
use super::interrupt::{caught, interruptible};
use super::text::{NativeFrequencies, NativeRecipe};
use super::texts::{Texts, text_or_empty};
use super::{InvalidValue, LimitReached};
use crate::system::memory::{gathered, give_back};
use crate::system::parallel::Cancel;
use crate::verify::contest::OBJECTIONS;
use crate::verify::measures::Measures;
use crate::verify::neighbours::walk;
use crate::verify::rule::{Reason, Rule, SUBJECT, TESTS};
use crate::verify::verifier::{FEW, Stop, Verdict, Verifier};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(walk_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(text_rule, module)?)?;
    module.add_class::<NativeVerifier>()
}

/// Settings with their values, reasons and whether each accepts, tests with their reasons.
type Tables = (Vec<(&'static str, u64)>, Vec<(&'static str, bool)>, Vec<(&'static str, &'static str)>);

/// What the rule is made of: its settings, its reasons and whether each accepts, its tests and the reason
/// that each gives.
#[pyfunction]
fn text_rule() -> PyResult<Tables> {
    caught(|| {
        let reasons = Reason::ALL.iter().map(|reason| (reason.name(), reason.accepts()));
        let tests = TESTS.iter().chain([&SUBJECT]).map(|test| (test.name, test.reason.name()));
        let objections = OBJECTIONS.iter().map(|objection| (objection.name, objection.reason.name()));
        Ok((Rule::DEFAULT.settings(), reasons.collect(), tests.chain(objections).collect()))
    })
}

/// An order of *pairs* in which those of near documents are together, and where its parts end: no
/// document has pairs in two parts, each of which has at least *least* pairs.
#[pyfunction]
fn walk_pairs<'py>(
    py: Python<'py>,
    documents: usize,
    left: PyReadonlyArray1<'py, i64>,
    right: PyReadonlyArray1<'py, i64>,
    least: usize,
) -> PyResult<(Bound<'py, PyArray1<u32>>, Vec<usize>)> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let known = |number: &i64| usize::try_from(*number).is_ok_and(|at| at < documents);
    if left.len() != right.len() || !left.iter().chain(right).all(known) {
        return Err(InvalidValue::new_err("pairs must be two equally long lists of known documents"));
    }
    if u32::try_from(left.len() * 2).is_err() || u32::try_from(documents).is_err() {
        let count = left.len();
        return Err(LimitReached::new_err(format!(
            "{count} candidate pairs are too many, the limit is 2147483647; ask for a higher similarity or a smaller radius"
        )));
    }
    let found = interruptible(py, false, |_| walk(documents, &numbered(left, right), least))?;
    Ok((found.order.into_pyarray(py), found.ends))
}

/// Pairs of known documents, of which there are fewer than 2^32.
fn numbered(left: &[i64], right: &[i64]) -> Vec<(u32, u32)> {
    gathered(left.iter().zip(right).map(|(one, other)| (*one as u32, *other as u32)))
}

type Numbers<'py> = PyReadonlyArray1<'py, i64>;
type Verdicts<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>);

/// Measures and judges pairs of texts that were set aside.
#[pyclass(module = "neardup._native", name = "Verifier")]
pub struct NativeVerifier(Verifier);

#[pymethods]
impl NativeVerifier {
    /// For texts that *frequencies* have counted; what takes more than *memory* bytes goes to a file at *spill*.
    #[new]
    fn new(
        py: Python<'_>,
        recipe: PyRef<'_, NativeRecipe>,
        frequencies: Option<PyRef<'_, NativeFrequencies>>,
        memory: usize,
        spill: Option<PathBuf>,
    ) -> PyResult<NativeVerifier> {
        caught(|| {
            let frequencies = frequencies.map(|table| table.frozen(py)).transpose()?;
            Ok(NativeVerifier(Verifier::new(recipe.0.clone(), frequencies, memory, spill)))
        })
    }

    /// From now on texts of the *wanted* numbers, below *count*, are expected, and no others.
    fn expect(&mut self, count: usize, wanted: Numbers<'_>) -> PyResult<()> {
        let wanted = wanted.as_slice()?;
        if wanted.iter().any(|number| !usize::try_from(*number).is_ok_and(|at| at < count)) {
            return Err(InvalidValue::new_err("an unknown document is wanted"));
        }
        caught(|| {
            self.0.expect(count, wanted.iter().map(|number| *number as usize));
            Ok(())
        })
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, py: Python<'_>, numbers: Numbers<'_>, texts: ArrowTexts) -> PyResult<()> {
        let numbers = numbers.as_slice()?;
        if numbers.len() != texts.len() {
            return Err(InvalidValue::new_err("one number for each text is needed"));
        }
        if let Some(number) = numbers.iter().find(|number| **number >= i64::from(u32::MAX)) {
            return Err(InvalidValue::new_err(format!("{number} is no number of a text: it must be below 2^32 - 1")));
        }
        let texts = caught(|| Texts::from_arrow(&texts))?;
        let added: std::io::Result<()> = interruptible(py, false, |_| {
            let mut room = Vec::new();
            for (number, text) in numbers.iter().zip(&texts.items) {
                if let Ok(number) = u32::try_from(*number) {
                    self.0.add(number, text_or_empty(text, &mut room).bytes())?;
                }
            }
            Ok(())
        })?;
        added.map_err(os_error)
    }

    /// Forget the texts of these numbers.
    fn remove(&mut self, py: Python<'_>, numbers: Numbers<'_>) -> PyResult<usize> {
        let numbers: Vec<u32> = numbers.as_slice()?.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
        interruptible(py, false, |_| self.0.remove(&numbers))?.map_err(os_error)
    }

    /// How many bytes of texts are set aside.
    #[getter]
    fn text_bytes(&self) -> PyResult<u64> {
        caught(|| Ok(self.0.text_bytes()))
    }

    /// Plain, common and rare similarity, and shared and all features, of each pair.
    fn measure<'py>(
        &mut self,
        py: Python<'py>,
        left: Numbers<'py>,
        right: Numbers<'py>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyArray2<u32>>> {
        let found = self.run(py, &left, &right, |verifier, pairs, cancel| verifier.measure(pairs, threads, cancel))?;
        let count = found.len();
        found.into_flattened().into_pyarray(py).reshape([count, 6])
    }

    /// Say which documents are near each other, and how near (in ten-thousandths).
    fn set_neighbours(
        &mut self,
        left: Numbers<'_>,
        right: Numbers<'_>,
        plain: PyReadonlyArray1<'_, u16>,
        same: u16,
    ) -> PyResult<()> {
        caught(|| {
            let pairs = self.pairs(&left, &right)?;
            let plain = plain.as_slice()?;
            if plain.len() != pairs.len() {
                return Err(InvalidValue::new_err("one similarity for each pair is needed"));
            }
            let near: Vec<_> = gathered(pairs.into_iter().zip(plain.iter().copied()));
            self.0.meet(&near, same);
            Ok(())
        })
    }

    /// The reason of each pair's verdict, and its plain, common and rare similarity.
    fn judge<'py>(
        &mut self,
        py: Python<'py>,
        left: Numbers<'py>,
        right: Numbers<'py>,
        rule: &Bound<'py, PyDict>,
        threads: Option<usize>,
    ) -> PyResult<Verdicts<'py>> {
        let rule = rule_of(rule)?;
        let judge = |verifier: &mut Verifier, pairs: &[_], cancel: &_| verifier.judge(pairs, &rule, threads, cancel);
        let found = self.run(py, &left, &right, judge)?;
        caught(|| Ok(columns(py, &found)))
    }

    /// The same of pairs that are all there are of their documents: from *near* on two of them are
    /// neighbours, from *same* on nearly identical.
    fn judge_together<'py>(
        &mut self,
        py: Python<'py>,
        left: Numbers<'py>,
        right: Numbers<'py>,
        rule: &Bound<'py, PyDict>,
        bounds: (u16, u16),
        threads: Option<usize>,
    ) -> PyResult<Verdicts<'py>> {
        let rule = rule_of(rule)?;
        let found = self.run(py, &left, &right, |verifier, pairs, cancel| {
            verifier.judge_together(pairs, &rule, bounds, threads, cancel)
        })?;
        caught(|| Ok(columns(py, &found)))
    }
}

impl Drop for NativeVerifier {
    fn drop(&mut self) {
        self.0.clear();
        give_back();
    }
}

impl NativeVerifier {
    fn pairs(&self, left: &Numbers<'_>, right: &Numbers<'_>) -> PyResult<Vec<(u32, u32)>> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        if left.len() != right.len() {
            return Err(InvalidValue::new_err("pairs must be two equally long lists of known documents"));
        }
        // A text that is not there must never be taken for an empty one.
        let is_there = |number: &i64| u32::try_from(*number).is_ok_and(|number| self.0.has(number));
        match left.iter().chain(right).find(|number| !is_there(number)) {
            Some(number) => Err(InvalidValue::new_err(format!("no text was set aside for document {number}"))),
            None => Ok(numbered(left, right)),
        }
    }

    /// What *work* finds of pairs, without the interpreter.
    fn run<T: Send>(
        &mut self,
        py: Python<'_>,
        left: &Numbers<'_>,
        right: &Numbers<'_>,
        work: impl FnOnce(&mut Verifier, &[(u32, u32)], &Cancel) -> Result<T, Stop> + Send,
    ) -> PyResult<T> {
        let pairs = caught(|| self.pairs(left, right))?;
        let verifier = &mut self.0;
        match interruptible(py, pairs.len() > FEW, |cancel| work(verifier, &pairs, cancel))? {
            Ok(found) => Ok(found),
            Err(Stop::Io(error)) => Err(os_error(error)),
            // Only by an exception, which `interruptible` has raised.
            Err(Stop::Cancelled) => Err(InvalidValue::new_err("cancelled")),
        }
    }
}

/// The rule, of which Python gives each setting by name.
fn rule_of(settings: &Bound<'_, PyDict>) -> PyResult<Rule> {
    Rule::read(|name| settings.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name))?.extract())
}

fn columns<'py>(py: Python<'py>, found: &[Verdict]) -> Verdicts<'py> {
    let column =
        |pick: fn(&Measures) -> u64| -> Vec<u16> { gathered(found.iter().map(|(_, measures)| pick(measures) as u16)) };
    let reasons: Vec<u8> = gathered(found.iter().map(|(reason, _)| *reason as u8));
    (
        reasons.into_pyarray(py),
        column(|m| m.plain).into_pyarray(py),
        column(|m| m.common).into_pyarray(py),
        column(|m| m.rare).into_pyarray(py),
    )
}

fn os_error(error: std::io::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}
