//! Candidate pairs to verdicts.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::InvalidValue;
use super::interrupt::interruptible;
use super::text::{NativeFrequencies, NativeRecipe};
use super::texts::{ArrowChunk, Texts, text_or_empty};
use crate::frequencies::Frozen;
use crate::parallel;
use crate::profile::Profile;
use crate::recipe::Scratch;
use crate::texts::TextStore;
use crate::verify::{Measures, RIVALS, Reason, Rivals, Rule, contest, judge, measure};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nearest_pairs, module)?)?;
    module.add_class::<Verifier>()
}

/// Which pairs, sorted by left and right, are among the *most* nearest of either side.
#[pyfunction]
fn nearest_pairs<'py>(
    py: Python<'py>,
    rows: usize,
    left: PyReadonlyArray1<'py, u32>,
    right: PyReadonlyArray1<'py, u32>,
    distance: PyReadonlyArray1<'py, u16>,
    most: u32,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let (left, right, distance) = (left.to_vec()?, right.to_vec()?, distance.to_vec()?);
    let known = left.iter().chain(&right).all(|row| (*row as usize) < rows);
    if left.len() != right.len() || left.len() != distance.len() || !known {
        return Err(InvalidValue::new_err("pairs must be three equally long lists of known rows"));
    }
    Ok(py.detach(|| crate::nearest::nearest(rows, &left, &right, &distance, most)).into_pyarray(py))
}

const NONE: u32 = u32::MAX;
/// A reason, and the measures that it rests on.
type Verdict = (Reason, Measures);
/// Pairs that a thread takes at a time.
const PIECE: usize = 16;

/// Measures and judges pairs of documents, whose texts were set aside.
#[pyclass(module = "neardup._native")]
pub struct Verifier {
    recipe: Py<NativeRecipe>,
    frequencies: Option<Arc<Frozen>>,
    texts: TextStore,
    /// The text of each document, or NONE.
    slots: Vec<u32>,
    profiles: HashMap<u32, Arc<Profile>>,
    profile_bytes: usize,
    profile_limit: usize,
    neighbours: Neighbours,
}

/// The candidates of each document that are near it, and groups of nearly identical ones.
#[derive(Default)]
struct Neighbours {
    begins: Vec<usize>,
    entries: Vec<(u32, u16)>,
    group: Vec<u32>,
}

impl Neighbours {
    fn of(&self, document: u32) -> &[(u32, u16)] {
        match self.begins.get(document as usize..document as usize + 2) {
            Some(range) => &self.entries[range[0]..range[1]],
            None => &[],
        }
    }

    /// Rivals of a pair: the nearest of every other group, and the nearest of all.
    fn rivals(&self, left: u32, right: u32) -> (Vec<u32>, Vec<u32>) {
        let mut all: Vec<(u16, u32)> = Vec::new();
        for &(other, similarity) in self.of(left).iter().chain(self.of(right)) {
            if other != left && other != right {
                all.push((u16::MAX - similarity, other));
            }
        }
        // The nearest first; of equally near ones the one to be kept.
        all.sort_unstable();
        let mut seen = Vec::new();
        all.retain(|(_, other)| {
            !seen.contains(other) && {
                seen.push(*other);
                true
            }
        });
        let own = [self.group[left as usize], self.group[right as usize]];
        let mut groups: Vec<u32> = Vec::new();
        let mut met: Vec<u32> = Vec::new();
        for (_, other) in &all {
            let group = self.group[*other as usize];
            if groups.len() < RIVALS && !own.contains(&group) && !met.contains(&group) {
                met.push(group);
                groups.push(*other);
            }
        }
        (groups, all.iter().take(RIVALS).map(|(_, other)| *other).collect())
    }
}

type Verdicts<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>);

#[pymethods]
impl Verifier {
    /// For *documents* documents; texts beyond *memory* bytes go to a file at *path*.
    #[new]
    fn new(
        recipe: Py<NativeRecipe>,
        frequencies: Option<PyRef<'_, NativeFrequencies>>,
        documents: usize,
        path: PathBuf,
        memory: usize,
    ) -> Verifier {
        Verifier {
            recipe,
            frequencies: frequencies.map(|table| table.frozen()),
            texts: TextStore::new(path, memory / 2),
            slots: vec![NONE; documents],
            profiles: HashMap::new(),
            profile_bytes: 0,
            profile_limit: memory / 2,
            neighbours: Neighbours::default(),
        }
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, numbers: PyReadonlyArray1<'_, i64>, chunk: ArrowChunk) -> PyResult<()> {
        chunk.check()?;
        // SAFETY: the Python side passes the buffers of an Arrow array that it holds; Arrow
        // memory is immutable.
        let texts = unsafe { Texts::from_arrow(&chunk) }?;
        let numbers = numbers.as_slice()?;
        if numbers.len() != texts.items.len() {
            return Err(InvalidValue::new_err("one number for each text is needed"));
        }
        for (number, text) in numbers.iter().zip(&texts.items) {
            if let Some(slot) = usize::try_from(*number).ok().and_then(|at| self.slots.get_mut(at)) {
                *slot = self.texts.len() as u32;
                self.texts.push(&text_or_empty(text)).map_err(os_error)?;
            }
        }
        Ok(())
    }

    /// Plain, common and rare similarity, and shared and all features, of each pair.
    fn measure<'py>(
        &mut self,
        py: Python<'py>,
        left: PyReadonlyArray1<'py, i64>,
        right: PyReadonlyArray1<'py, i64>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
        let pairs = self.pairs(&left, &right)?;
        let needed: Vec<u32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        self.prepare(py, &needed, threads)?;
        let mut found = vec![[0u32; 6]; pairs.len()];
        let profiles = &self.profiles;
        interruptible(py, pairs.len() > 1000, |cancel| {
            let pieces = pairs.chunks(PIECE).zip(found.chunks_mut(PIECE));
            parallel::drain(
                pieces,
                parallel::thread_count(threads),
                cancel,
                || (),
                |(), (pairs, found)| {
                    for ((left, right), row) in pairs.iter().zip(found) {
                        let (one, other) = (&profiles[left], &profiles[right]);
                        let m = measure(one, other);
                        *row = [
                            m.plain,
                            m.common,
                            m.rare,
                            m.shared,
                            one.features.len() as u64,
                            other.features.len() as u64,
                        ]
                        .map(|number| number as u32);
                    }
                },
            );
        })?;
        self.forget();
        let count = found.len();
        found.into_flattened().into_pyarray(py).reshape([count, 6])
    }

    /// Say which documents are near each other, and how near (in ten-thousandths).
    fn set_neighbours(
        &mut self,
        left: PyReadonlyArray1<'_, i64>,
        right: PyReadonlyArray1<'_, i64>,
        plain: PyReadonlyArray1<'_, u32>,
        same: u32,
    ) -> PyResult<()> {
        let pairs = self.pairs(&left, &right)?;
        let plain = plain.as_slice()?;
        if plain.len() != pairs.len() {
            return Err(InvalidValue::new_err("one similarity for each pair is needed"));
        }
        let count = self.slots.len();
        let mut group: Vec<u32> = (0..count as u32).collect();
        fn root(group: &mut [u32], mut at: u32) -> u32 {
            while group[at as usize] != at {
                group[at as usize] = group[group[at as usize] as usize];
                at = group[at as usize];
            }
            at
        }
        let mut begins = vec![0usize; count + 1];
        for ((left, right), similarity) in pairs.iter().zip(plain) {
            begins[*left as usize + 1] += 1;
            begins[*right as usize + 1] += 1;
            if *similarity >= same {
                let (one, other) = (root(&mut group, *left), root(&mut group, *right));
                group[one.max(other) as usize] = one.min(other);
            }
        }
        for at in 0..count {
            begins[at + 1] += begins[at];
        }
        let mut next = begins.clone();
        let mut entries = vec![(0, 0); pairs.len() * 2];
        for ((left, right), similarity) in pairs.iter().zip(plain) {
            for (one, other) in [(left, right), (right, left)] {
                entries[next[*one as usize]] = (*other, *similarity as u16);
                next[*one as usize] += 1;
            }
        }
        for at in 0..count as u32 {
            let top = root(&mut group, at);
            group[at as usize] = top;
        }
        self.neighbours = Neighbours { begins, entries, group };
        Ok(())
    }

    /// The reason of each pair's verdict, and its plain, common and rare similarity.
    fn judge<'py>(
        &mut self,
        py: Python<'py>,
        left: PyReadonlyArray1<'py, i64>,
        right: PyReadonlyArray1<'py, i64>,
        rule: NativeRule,
        threads: Option<usize>,
    ) -> PyResult<Verdicts<'py>> {
        let pairs = self.pairs(&left, &right)?;
        let rule = Rule::from(rule);
        let needed: Vec<u32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
        self.prepare(py, &needed, threads)?;
        let threads = parallel::thread_count(threads);
        let mut found = vec![(Reason::TooDifferent, Measures::default()); pairs.len()];
        let profiles = &self.profiles;
        interruptible(py, pairs.len() > 100, |cancel| {
            let pieces = pairs.chunks(PIECE).zip(found.chunks_mut(PIECE));
            parallel::drain(
                pieces,
                threads,
                cancel,
                || (),
                |(), (pairs, found)| {
                    for ((left, right), verdict) in pairs.iter().zip(found) {
                        let (one, other) = (&profiles[left], &profiles[right]);
                        let measures = measure(one, other);
                        *verdict = (judge(one, other, &measures, &rule), measures);
                    }
                },
            );
        })?;
        if !self.neighbours.begins.is_empty() {
            self.ask_neighbours(py, &pairs, &rule, threads, &mut found)?;
        }
        self.forget();
        let column = |pick: fn(&Measures) -> u64| -> Vec<u16> {
            found.iter().map(|(_, measures)| pick(measures) as u16).collect()
        };
        let reasons: Vec<u8> = found.iter().map(|(reason, _)| *reason as u8).collect();
        Ok((
            reasons.into_pyarray(py),
            column(|m| m.plain).into_pyarray(py),
            column(|m| m.common).into_pyarray(py),
            column(|m| m.rare).into_pyarray(py),
        ))
    }

    /// The text of a document, as it was set aside.
    fn text(&self, document: usize) -> PyResult<String> {
        match self.slots.get(document) {
            Some(slot) if *slot != NONE => self.texts.get(*slot as usize).map_err(os_error),
            _ => Err(InvalidValue::new_err(format!("no text was set aside for document {document}"))),
        }
    }
}

impl Verifier {
    fn pairs(&self, left: &PyReadonlyArray1<'_, i64>, right: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<(u32, u32)>> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        let known = |number: &i64| usize::try_from(*number).is_ok_and(|at| at < self.slots.len());
        if left.len() != right.len() || !left.iter().chain(right).all(known) {
            return Err(InvalidValue::new_err("pairs must be two equally long lists of known documents"));
        }
        Ok(left.iter().zip(right).map(|(one, other)| (*one as u32, *other as u32)).collect())
    }

    /// Let the neighbours of accepted pairs object.
    fn ask_neighbours(
        &mut self,
        py: Python<'_>,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: usize,
        found: &mut [Verdict],
    ) -> PyResult<()> {
        let mut open: Vec<(&(u32, u32), &mut Verdict)> =
            pairs.iter().zip(found).filter(|(_, verdict)| verdict.0.accepts()).collect();
        let rivals: Vec<(Vec<u32>, Vec<u32>)> =
            open.iter().map(|(pair, _)| self.neighbours.rivals(pair.0, pair.1)).collect();
        let needed: Vec<u32> = rivals.iter().flat_map(|(groups, all)| groups.iter().chain(all)).copied().collect();
        self.prepare(py, &needed, Some(threads))?;
        let profiles = &self.profiles;
        let look_up = |numbers: &[u32]| numbers.iter().map(|number| &*profiles[number]).collect();
        interruptible(py, open.len() > 100, |cancel| {
            let pieces = open.chunks_mut(PIECE).zip(rivals.chunks(PIECE));
            parallel::drain(
                pieces,
                threads,
                cancel,
                || (),
                |(), (open, rivals)| {
                    for ((pair, verdict), rivals) in open.iter_mut().zip(rivals) {
                        let rivals = Rivals { groups: look_up(&rivals.0), all: look_up(&rivals.1) };
                        let (one, other) = (&profiles[&pair.0], &profiles[&pair.1]);
                        verdict.0 = contest(one, other, &verdict.1, rule, &rivals, verdict.0);
                    }
                },
            );
        })
    }

    /// Have the profiles of all *needed* documents at hand.
    fn prepare(&mut self, py: Python<'_>, needed: &[u32], threads: Option<usize>) -> PyResult<()> {
        let mut missing: Vec<u32> =
            needed.iter().copied().filter(|number| !self.profiles.contains_key(number)).collect();
        missing.sort_unstable();
        missing.dedup();
        let recipe = &self.recipe.get().0;
        let (texts, slots, frequencies) = (&self.texts, &self.slots, self.frequencies.as_deref());
        let mut made: Vec<Option<std::io::Result<Profile>>> = missing.iter().map(|_| None).collect();
        interruptible(py, missing.len() > 100, |cancel: &AtomicBool| {
            let pieces = missing.chunks(PIECE).zip(made.chunks_mut(PIECE));
            parallel::drain(
                pieces,
                parallel::thread_count(threads),
                cancel,
                Scratch::default,
                |scratch, (numbers, made)| {
                    for (number, profile) in numbers.iter().zip(made) {
                        let slot = slots[*number as usize];
                        let text = if slot == NONE { Ok(String::new()) } else { texts.get(slot as usize) };
                        *profile = Some(text.map(|text| Profile::of(&text, recipe, frequencies, scratch)));
                    }
                },
            );
        })?;
        for (number, profile) in missing.into_iter().zip(made) {
            if let Some(profile) = profile {
                let profile = profile.map_err(os_error)?;
                self.profile_bytes += profile.bytes();
                self.profiles.insert(number, Arc::new(profile));
            }
        }
        Ok(())
    }

    /// Drop the profiles when they take too much memory.
    fn forget(&mut self) {
        if self.profile_bytes > self.profile_limit {
            self.profiles.clear();
            self.profile_bytes = 0;
        }
    }
}

fn os_error(error: std::io::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// The settings of the rule, as Python gives them.
#[derive(FromPyObject)]
pub struct NativeRule {
    #[pyo3(item)]
    floor: u64,
    #[pyo3(item)]
    high: u64,
    #[pyo3(item)]
    high_contrast: u64,
    #[pyo3(item)]
    grey: bool,
    #[pyo3(item)]
    common: u64,
    #[pyo3(item)]
    rare: u64,
    #[pyo3(item)]
    contrast: u64,
    #[pyo3(item)]
    short: usize,
    #[pyo3(item)]
    short_rare: u64,
    #[pyo3(item)]
    long: usize,
    #[pyo3(item)]
    grey_middle: bool,
    #[pyo3(item)]
    middle_high: u64,
    #[pyo3(item)]
    middle_words: u64,
    #[pyo3(item)]
    passage: u64,
    #[pyo3(item)]
    gap: u64,
    #[pyo3(item)]
    drop: u64,
    #[pyo3(item)]
    numbers: u64,
    #[pyo3(item)]
    siblings: usize,
    #[pyo3(item)]
    slot: u64,
}

impl From<NativeRule> for Rule {
    fn from(r: NativeRule) -> Rule {
        Rule {
            floor: r.floor,
            high: r.high,
            high_contrast: r.high_contrast,
            grey: r.grey,
            common: r.common,
            rare: r.rare,
            contrast: r.contrast,
            short: r.short,
            short_rare: r.short_rare,
            long: r.long,
            grey_middle: r.grey_middle,
            middle_high: r.middle_high,
            middle_words: r.middle_words,
            passage: r.passage,
            gap: r.gap,
            drop: r.drop,
            numbers: r.numbers,
            siblings: r.siblings,
            slot: r.slot,
        }
    }
}
