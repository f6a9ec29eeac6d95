#![forbid(unsafe_code)]
//! Candidate pairs to verdicts.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Numbers, Row, Table, table};
use super::interrupt::{answered, caught};
use super::text::{NativeFrequencies, NativeRecipe};
use crate::arrow::array::ArrowTexts;
use crate::system::memory::give_back;
use crate::system::parallel::Cancel;
use crate::verify::contest::OBJECTIONS;
use crate::verify::neighbours::walk_of;
use crate::verify::rule::{Reason, Rule, SUBJECT, TESTS};
use crate::verify::verifier::{FEW, Stop, Verdict, Verifier, columns};

/// Settings with their values, reasons and whether each accepts, tests with their reasons.
type Tables = (Vec<(&'static str, u64)>, Vec<(&'static str, bool)>, Vec<(&'static str, &'static str)>);

/// What the rule is made of: its settings, its reasons and whether each accepts, its tests and the reason
/// that each gives.
#[pyfunction]
pub fn text_rule() -> PyResult<Tables> {
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
pub fn walk_pairs<'py>(
    py: Python<'py>,
    documents: usize,
    left: Numbers<'py>,
    right: Numbers<'py>,
    least: usize,
) -> PyResult<(Row<'py, u32>, Vec<usize>)> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    let found = answered(py, false, |_| walk_of(documents, left, right, least))?;
    Ok((found.order.into_pyarray(py), found.ends))
}

type Verdicts<'py> = (Row<'py, u8>, Row<'py, u16>, Row<'py, u16>, Row<'py, u16>);

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
        caught(|| Ok(self.0.expect(count, wanted.as_slice()?)?))
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, py: Python<'_>, numbers: Numbers<'_>, texts: ArrowTexts) -> PyResult<()> {
        let numbers = numbers.as_slice()?;
        answered(py, false, |cancel| self.0.add_all(numbers, &texts, cancel))
    }

    /// Forget the texts of these numbers.
    fn remove(&mut self, py: Python<'_>, numbers: Numbers<'_>) -> PyResult<usize> {
        let numbers = numbers.as_slice()?;
        answered(py, false, |_| self.0.remove(numbers))
    }

    /// How many bytes of texts are set aside.
    #[getter]
    fn text_bytes(&self) -> PyResult<u64> {
        caught(|| Ok(self.0.text_bytes()))
    }

    /// Plain, weighted and rare similarity, and shared and all features, of each pair.
    fn measure<'py>(
        &mut self,
        py: Python<'py>,
        left: Numbers<'py>,
        right: Numbers<'py>,
        threads: Option<usize>,
    ) -> PyResult<Table<'py, u32>> {
        let found = self.run(py, &left, &right, |verifier, pairs, cancel| verifier.measure(pairs, threads, cancel))?;
        table(py, found.into_flattened(), 6)
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
            let pairs = self.0.pairs(left.as_slice()?, right.as_slice()?)?;
            Ok(self.0.meet(&pairs, plain.as_slice()?, same)?)
        })
    }

    /// The reason of each pair's verdict, and its plain, weighted and rare similarity.
    fn judge<'py>(
        &mut self,
        py: Python<'py>,
        left: Numbers<'py>,
        right: Numbers<'py>,
        rule: &Bound<'py, PyDict>,
        threads: Option<usize>,
    ) -> PyResult<Verdicts<'py>> {
        let rule = rule_of(rule)?;
        self.verdicts(py, &left, &right, |own, pairs, cancel| own.judge(pairs, &rule, threads, cancel))
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
        self.verdicts(py, &left, &right, |own, pairs, cancel| own.judge_together(pairs, &rule, bounds, threads, cancel))
    }
}

impl Drop for NativeVerifier {
    fn drop(&mut self) {
        self.0.clear();
        give_back();
    }
}

impl NativeVerifier {
    /// What *work* finds of pairs, without the interpreter.
    fn run<T: Send>(
        &mut self,
        py: Python<'_>,
        left: &Numbers<'_>,
        right: &Numbers<'_>,
        work: impl FnOnce(&mut Verifier, &[(u32, u32)], &Cancel) -> Result<T, Stop> + Send,
    ) -> PyResult<T> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        answered(py, left.len() > FEW, |cancel| {
            let pairs = self.0.pairs(left, right)?;
            work(&mut self.0, &pairs, cancel)
        })
    }

    fn verdicts<'py>(
        &mut self,
        py: Python<'py>,
        left: &Numbers<'py>,
        right: &Numbers<'py>,
        judge: impl FnOnce(&mut Verifier, &[(u32, u32)], &Cancel) -> Result<Vec<Verdict>, Stop> + Send,
    ) -> PyResult<Verdicts<'py>> {
        let (reasons, [plain, weighted, rare]) =
            self.run(py, left, right, |own, pairs, cancel| judge(own, pairs, cancel).map(|found| columns(&found)))?;
        Ok((reasons.into_pyarray(py), plain.into_pyarray(py), weighted.into_pyarray(py), rare.into_pyarray(py)))
    }
}

/// The rule, of which Python gives each setting by name.
fn rule_of(settings: &Bound<'_, PyDict>) -> PyResult<Rule> {
    Rule::read(|name| settings.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name))?.extract())
}
