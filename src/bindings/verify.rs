#![forbid(unsafe_code)]
//! Candidate pairs to verdicts.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::arrays::{Numbers, Row, Table, Threads};
use super::interrupt::{answered, caught};
use super::text::{NativeFrequencies, NativeRecipe};
use crate::arrow::array::ArrowTexts;
use crate::system::memory::{gathered, give_back};
use crate::system::parallel::Cancel;
use crate::verify::contest::OBJECTIONS;
use crate::verify::figures::NAMES;
use crate::verify::neighbours::walk_of;
use crate::verify::rule::{Reason, Rule, SUBJECTS, TESTS};
use crate::verify::verifier::{FEW, Stop, Verdict, Verifier, columns};

/// Settings with their values, reasons and whether each accepts, tests with their reasons.
type Tables = (Vec<(&'static str, u64)>, Vec<(&'static str, bool)>, Vec<(&'static str, &'static str)>);

/// What the rule is made of: its settings, its reasons and whether each accepts, its tests and the reason
/// that each gives.
#[pyfunction]
pub fn text_rule() -> PyResult<Tables> {
    caught(|| {
        let reasons = Reason::ALL.iter().map(|reason| (reason.name(), reason.accepts()));
        let tests = TESTS.iter().chain(SUBJECTS).map(|test| (test.name, test.reason.name()));
        let objections = OBJECTIONS.iter().map(|objection| (objection.name, objection.reason.name()));
        Ok((Rule::DEFAULT.settings(), reasons.collect(), tests.chain(objections).collect()))
    })
}

/// The names of the figures on which a rule rests that was learned.
#[pyfunction]
pub fn figure_names() -> PyResult<Vec<&'static str>> {
    caught(|| Ok(NAMES.to_vec()))
}

/// An order of *pairs* in which those of near documents are together, and where its parts end: no
/// document has pairs in two parts, each of which has at least *least* pairs.
#[pyfunction]
pub fn walk_pairs(
    py: Python,
    documents: usize,
    left: Numbers,
    right: Numbers,
    least: usize,
) -> PyResult<(Row<u32>, Vec<usize>)> {
    let (left, right) = (left.as_slice()?, right.as_slice()?);
    answered(py, false, |_| walk_of(documents, left, right, least)).map(|found| (Row(found.order), found.ends))
}

/// Verdicts, and a table of the figures of each pair.
type Figures = (Verdicts, Table<u16>);

type Verdicts = (Row<u8>, Row<u16>, Row<u16>, Row<u16>);

/// The rule, of which Python gives each setting by name.
pub struct TextRule(Rule);

impl FromPyObject<'_, '_> for TextRule {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<TextRule> {
        Rule::read(|name| given.get_item(name)?.extract()).map(TextRule)
    }
}

/// Measures and judges pairs of texts that were set aside.
#[pyclass(module = "neardup._native", name = "Verifier")]
pub struct NativeVerifier(Verifier);

#[pymethods]
impl NativeVerifier {
    /// For texts that *frequencies* have counted, or, if *open*, perhaps not; what takes more than *memory* bytes
    /// goes to a file at *spill*.
    #[new]
    #[pyo3(signature = (recipe, frequencies, memory, spill, open = false))]
    fn new(
        py: Python,
        recipe: PyRef<NativeRecipe>,
        frequencies: Option<PyRef<NativeFrequencies>>,
        memory: usize,
        spill: Option<PathBuf>,
        open: bool,
    ) -> PyResult<NativeVerifier> {
        caught(|| {
            let frequencies = frequencies.map(|table| table.frozen(py)).transpose()?;
            Ok(NativeVerifier(Verifier::new(recipe.0.clone(), frequencies, open, memory, spill)))
        })
    }

    /// From now on texts of the *wanted* numbers, below *count*, are expected, and no others.
    fn expect(&mut self, count: usize, wanted: Numbers) -> PyResult<()> {
        caught(|| Ok(self.0.expect(count, wanted.as_slice()?)?))
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, py: Python, numbers: Numbers, texts: ArrowTexts) -> PyResult<()> {
        let numbers = numbers.as_slice()?;
        answered(py, false, |cancel| self.0.add_all(numbers, &texts, cancel))
    }

    /// Forget the texts of these numbers.
    fn remove(&mut self, py: Python, numbers: Numbers) -> PyResult<usize> {
        let numbers = numbers.as_slice()?;
        answered(py, false, |_| self.0.remove(numbers))
    }

    /// How many bytes of texts are set aside.
    #[getter]
    fn text_bytes(&self) -> PyResult<u64> {
        caught(|| Ok(self.0.text_bytes()))
    }

    /// Plain, weighted and rare similarity, and shared and all features, of each pair.
    fn measure(&mut self, py: Python, left: Numbers, right: Numbers, threads: Threads) -> PyResult<Table<u32>> {
        self.run(py, left, right, |own, pairs, cancel| own.measure(pairs, threads, cancel)).map(Table::from)
    }

    /// Of each pair, which one says nothing that the other lacks: 1 for the left one, 2 for the right one, 3 both.
    fn preserved(&mut self, py: Python, left: Numbers, right: Numbers, threads: Threads) -> PyResult<Row<u8>> {
        self.run(py, left, right, |own, pairs, cancel| own.preserved(pairs, threads, cancel)).map(Row)
    }

    /// What the titles of each pair say: nothing (0), that both are about the same (1), or not (2).
    fn titles(&mut self, py: Python, left: Numbers, right: Numbers, threads: Threads) -> PyResult<Row<u8>> {
        self.run(py, left, right, |own, pairs, cancel| own.titles(pairs, threads, cancel)).map(Row)
    }

    /// Say which documents are near each other, and how near (in ten-thousandths).
    fn set_neighbours(
        &mut self,
        left: Numbers,
        right: Numbers,
        plain: PyReadonlyArray1<u16>,
        same: u16,
    ) -> PyResult<()> {
        caught(|| {
            let pairs = self.0.pairs(left.as_slice()?, right.as_slice()?)?;
            Ok(self.0.meet(&pairs, plain.as_slice()?, same)?)
        })
    }

    /// The reason of each pair's verdict, and its plain, weighted and rare similarity.
    fn judge(
        &mut self,
        py: Python,
        left: Numbers,
        right: Numbers,
        rule: TextRule,
        threads: Threads,
    ) -> PyResult<Verdicts> {
        self.run(py, left, right, |own, pairs, cancel| own.judge(pairs, &rule.0, threads, cancel).map(verdicts))
    }

    /// The same of pairs that are all there are of their documents: from *near* on two of them are
    /// neighbours, from *same* on nearly identical.
    fn judge_together(
        &mut self,
        py: Python,
        left: Numbers,
        right: Numbers,
        rule: TextRule,
        bounds: (u16, u16),
        threads: Threads,
    ) -> PyResult<Verdicts> {
        self.run(py, left, right, |own, pairs, cancel| {
            own.judge_together(pairs, &rule.0, bounds, threads, cancel).map(verdicts)
        })
    }

    /// The verdicts of `judge_together`, or without *bounds* of `judge`, and the figures of each pair, a column
    /// each; zeros where the two are too different.
    fn figures(
        &mut self,
        py: Python,
        left: Numbers,
        right: Numbers,
        rule: TextRule,
        bounds: Option<(u16, u16)>,
        threads: Threads,
    ) -> PyResult<Figures> {
        self.run(py, left, right, |own, pairs, cancel| {
            let found = own.figures(pairs, &rule.0, bounds, threads, cancel)?;
            let figures = gathered(found.iter().map(|row| row.figures));
            Ok((verdicts(gathered(found.iter().map(|row| row.verdict))), Table::from(figures)))
        })
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
        py: Python,
        left: Numbers,
        right: Numbers,
        work: impl FnOnce(&mut Verifier, &[(u32, u32)], &Cancel) -> Result<T, Stop> + Send,
    ) -> PyResult<T> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        answered(py, left.len() > FEW, |cancel| {
            let pairs = self.0.pairs(left, right)?;
            work(&mut self.0, &pairs, cancel)
        })
    }
}

fn verdicts(found: Vec<Verdict>) -> Verdicts {
    let (reasons, [plain, weighted, rare]) = columns(&found);
    (Row(reasons), Row(plain), Row(weighted), Row(rare))
}
