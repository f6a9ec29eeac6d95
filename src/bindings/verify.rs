//! Candidate pairs to verdicts.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::interrupt::interruptible;
use super::text::{NativeFrequencies, NativeRecipe};
use super::texts::{ArrowChunk, Texts, text_or_empty};
use super::{InvalidValue, LimitReached};
use crate::frequencies::Frozen;
use crate::memory::give_back;
use crate::neighbours::{Neighbours, walk};
use crate::parallel;
use crate::profile::{Bench, Profile};
use crate::texts::TextStore;
use crate::verify::{Measures, Reason, Rivals, Rule, contest, judge, measure};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(nearest_pairs, module)?)?;
    module.add_function(wrap_pyfunction!(walk_pairs, module)?)?;
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

/// An order of *pairs* in which those of near documents stand together, and where its parts end: no
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
    let pairs: Vec<_> = left.iter().zip(right).map(|(one, other)| (*one as u32, *other as u32)).collect();
    let found = py.detach(|| walk(documents, &pairs, least));
    Ok((found.order.into_pyarray(py), found.ends))
}

const NONE: u32 = u32::MAX;
/// A reason, and the measures that it rests on.
type Verdict = (Reason, Measures);
/// Pairs that a thread takes at a time.
const PIECE: usize = 16;
/// Most pairs that are looked at together.
const ROUND: usize = 4096;
/// A profile takes about so many bytes for each of the text.
const SIZE: usize = 8;

/// Measures and judges pairs of documents, whose texts were set aside.
#[pyclass(module = "neardup._native")]
pub struct Verifier {
    recipe: Py<NativeRecipe>,
    frequencies: Option<Arc<Frozen>>,
    texts: TextStore,
    /// The text of each document, or NONE.
    slots: Vec<u32>,
    profiles: Profiles,
    neighbours: Option<Arc<Neighbours>>,
}

type Verdicts<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>);

#[pymethods]
impl Verifier {
    /// For *documents* documents, all of which *frequencies* count; texts beyond *memory* bytes go to a file
    /// at *path*.
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
            texts: TextStore::new(path, memory / 8),
            slots: vec![NONE; documents],
            profiles: Profiles { limit: memory / 8 * 7, ..Profiles::default() },
            neighbours: None,
        }
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, py: Python<'_>, numbers: PyReadonlyArray1<'_, i64>, chunk: ArrowChunk) -> PyResult<()> {
        chunk.check()?;
        // SAFETY: the Python side passes the buffers of an Arrow array that it holds; Arrow
        // memory is immutable.
        let texts = unsafe { Texts::from_arrow(&chunk) }?;
        let numbers = numbers.as_slice()?;
        if numbers.len() != texts.items.len() {
            return Err(InvalidValue::new_err("one number for each text is needed"));
        }
        let (slots, store) = (&mut self.slots, &mut self.texts);
        py.detach(|| {
            for (number, text) in numbers.iter().zip(&texts.items) {
                if let Some(slot) = usize::try_from(*number).ok().and_then(|at| slots.get_mut(at)) {
                    *slot = store.len() as u32;
                    store.push(&text_or_empty(text).checked())?;
                }
            }
            Ok(())
        })
        .map_err(os_error)
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
        let mut found = vec![[0u32; 6]; pairs.len()];
        self.each(py, &pairs, &mut found, threads, |one, other, row| {
            let m = measure(one, other);
            *row = [m.plain, m.common, m.rare, m.shared, one.all, other.all].map(|number| number as u32);
        })?;
        let count = found.len();
        found.into_flattened().into_pyarray(py).reshape([count, 6])
    }

    /// Say which documents are near each other, and how near (in ten-thousandths).
    fn set_neighbours(
        &mut self,
        left: PyReadonlyArray1<'_, i64>,
        right: PyReadonlyArray1<'_, i64>,
        plain: PyReadonlyArray1<'_, u16>,
        same: u16,
    ) -> PyResult<()> {
        let pairs = self.pairs(&left, &right)?;
        let plain = plain.as_slice()?;
        if plain.len() != pairs.len() {
            return Err(InvalidValue::new_err("one similarity for each pair is needed"));
        }
        let near: Vec<_> = pairs.into_iter().zip(plain.iter().copied()).collect();
        self.neighbours = Some(Arc::new(Neighbours::new(&near, same)));
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
        let mut found = self.judge_alone(py, &pairs, &rule, threads)?;
        if let Some(neighbours) = self.neighbours.clone() {
            self.ask(py, &neighbours, &pairs, &rule, threads, &mut found)?;
        }
        Ok(columns(py, &found))
    }

    /// The same of pairs that are all there are of their documents: from *near* on two of them are
    /// neighbours, from *same* on nearly identical.
    fn judge_together<'py>(
        &mut self,
        py: Python<'py>,
        left: PyReadonlyArray1<'py, i64>,
        right: PyReadonlyArray1<'py, i64>,
        rule: NativeRule,
        bounds: (u16, u16),
        threads: Option<usize>,
    ) -> PyResult<Verdicts<'py>> {
        let pairs = self.pairs(&left, &right)?;
        let rule = Rule::from(rule);
        let mut found = self.judge_alone(py, &pairs, &rule, threads)?;
        let plain = found.iter().map(|(_, measures)| measures.plain as u16);
        let near: Vec<_> = pairs.iter().copied().zip(plain).filter(|(_, plain)| *plain >= bounds.0).collect();
        self.ask(py, &Neighbours::new(&near, bounds.1), &pairs, &rule, threads, &mut found)?;
        Ok(columns(py, &found))
    }

    /// The text of a document, as it was set aside.
    fn text(&mut self, document: usize) -> PyResult<String> {
        self.texts.finish().map_err(os_error)?;
        match self.slots.get(document) {
            Some(slot) if *slot != NONE => self.texts.get(*slot as usize).map_err(os_error),
            _ => Err(InvalidValue::new_err(format!("no text was set aside for document {document}"))),
        }
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        self.profiles = Profiles::default();
        give_back();
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

    /// Call *work* with the profiles of each pair and its place in *found*, as many pairs at a time as
    /// memory allows.
    fn each<T: Send>(
        &mut self,
        py: Python<'_>,
        pairs: &[(u32, u32)],
        found: &mut [T],
        threads: Option<usize>,
        work: impl Fn(&Profile, &Profile, &mut T) + Sync,
    ) -> PyResult<()> {
        let mut at = 0;
        while at < pairs.len() {
            let end = at + self.round(pairs[at..].iter().map(|pair| [pair.0, pair.1]));
            let pairs = &pairs[at..end];
            let needed: Vec<u32> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).collect();
            self.prepare(py, &needed, threads)?;
            let profiles = &self.profiles;
            interruptible(py, pairs.len() > 100, |cancel| {
                let pieces = pairs.chunks(PIECE).zip(found[at..end].chunks_mut(PIECE));
                parallel::drain(
                    pieces,
                    parallel::thread_count(threads),
                    cancel,
                    || (),
                    |(), (pairs, found)| {
                        for ((left, right), found) in pairs.iter().zip(found) {
                            work(profiles.get(*left), profiles.get(*right), found);
                        }
                    },
                );
            })?;
            at = end;
        }
        Ok(())
    }

    /// Judge pairs by themselves.
    fn judge_alone(
        &mut self,
        py: Python<'_>,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: Option<usize>,
    ) -> PyResult<Vec<Verdict>> {
        let mut found = vec![(Reason::TooDifferent, Measures::default()); pairs.len()];
        self.each(py, pairs, &mut found, threads, |one, other, verdict| {
            let measures = measure(one, other);
            *verdict = (judge(one, other, &measures, rule), measures);
        })?;
        Ok(found)
    }

    /// Let the neighbours of accepted pairs object.
    fn ask(
        &mut self,
        py: Python<'_>,
        neighbours: &Neighbours,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: Option<usize>,
        found: &mut [Verdict],
    ) -> PyResult<()> {
        struct Open<'a> {
            pair: (u32, u32),
            verdict: &'a mut Verdict,
            groups: Vec<u32>,
            all: Vec<u32>,
            both_have_copies: bool,
        }
        impl Open<'_> {
            fn documents(&self) -> impl Iterator<Item = u32> {
                [self.pair.0, self.pair.1]
                    .into_iter()
                    .chain(self.groups.iter().copied())
                    .chain(self.all.iter().copied())
            }
        }
        let accepted = pairs.iter().zip(found).filter(|(_, verdict)| verdict.0.accepts());
        let mut open: Vec<Open<'_>> = accepted
            .map(|(pair, verdict)| {
                let (groups, all) = neighbours.rivals(pair.0, pair.1);
                let both_have_copies = neighbours.are_two_groups(pair.0, pair.1);
                Open { pair: *pair, verdict, groups, all, both_have_copies }
            })
            .collect();
        let mut at = 0;
        while at < open.len() {
            let end = at + self.round(open[at..].iter().map(Open::documents));
            let open = &mut open[at..end];
            let needed: Vec<u32> = open.iter().flat_map(Open::documents).collect();
            self.prepare(py, &needed, threads)?;
            let profiles = &self.profiles;
            let look_up = |numbers: &[u32]| numbers.iter().map(|number| profiles.get(*number)).collect();
            interruptible(py, open.len() > 100, |cancel| {
                parallel::drain(
                    open.chunks_mut(PIECE),
                    parallel::thread_count(threads),
                    cancel,
                    || (),
                    |(), open| {
                        for Open { pair, verdict, groups, all, both_have_copies } in open {
                            let (groups, all) = (look_up(groups), look_up(all));
                            let rivals = Rivals { groups, all, both_have_copies: *both_have_copies };
                            let (one, other) = (profiles.get(pair.0), profiles.get(pair.1));
                            verdict.0 = contest(one, other, &verdict.1, rule, &rivals, verdict.0);
                        }
                    },
                );
            })?;
            at = end;
        }
        Ok(())
    }

    /// How many of the first *needs*, each some documents, may have their profiles in memory at once.
    fn round<Need: IntoIterator<Item = u32>>(&self, needs: impl Iterator<Item = Need>) -> usize {
        let (mut known, mut bytes) = (HashSet::<u32, BuildHasherDefault<Numbers>>::default(), 0);
        let fits = |need: Need| {
            let fresh = need.into_iter().filter(|number| known.insert(*number));
            let texts = fresh.map(|number| self.slots[number as usize]).filter(|slot| *slot != NONE);
            bytes += texts.map(|slot| self.texts.length(slot as usize) * SIZE).sum::<usize>();
            bytes <= self.profiles.limit / 4
        };
        needs.take(ROUND).map(fits).take_while(|fits| *fits).count().max(1)
    }

    /// Have the profiles of all *needed* documents at hand.
    fn prepare(&mut self, py: Python<'_>, needed: &[u32], threads: Option<usize>) -> PyResult<()> {
        self.texts.finish().map_err(os_error)?;
        let missing = self.profiles.missing(needed);
        let recipe = &self.recipe.get().0;
        let (texts, slots, frequencies) = (&self.texts, &self.slots, self.frequencies.as_deref());
        let mut made: Vec<Option<std::io::Result<Profile>>> = missing.iter().map(|_| None).collect();
        interruptible(py, missing.len() > 100, |cancel| {
            let pieces = missing.chunks(PIECE).zip(made.chunks_mut(PIECE));
            parallel::drain(
                pieces,
                parallel::thread_count(threads),
                cancel,
                Bench::default,
                |bench, (numbers, made)| {
                    for (number, profile) in numbers.iter().zip(made) {
                        let slot = slots[*number as usize];
                        let text = if slot == NONE { Ok(String::new()) } else { texts.get(slot as usize) };
                        *profile = Some(text.map(|text| Profile::of(&text, recipe, frequencies, bench)));
                    }
                },
            );
        })?;
        for (number, profile) in missing.into_iter().zip(made) {
            if let Some(profile) = profile {
                self.profiles.insert(number, profile.map_err(os_error)?);
            }
        }
        Ok(())
    }
}

/// Hashes the numbers of documents, which nobody chooses.
#[derive(Default)]
struct Numbers(u64);

impl Hasher for Numbers {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Profiles at hand; those that were not wanted for longest go when they take too much memory.
#[derive(Default)]
struct Profiles {
    held: HashMap<u32, (Profile, u64), BuildHasherDefault<Numbers>>,
    /// How often profiles were wanted; each remembers when it last was.
    now: u64,
    bytes: usize,
    limit: usize,
}

impl Profiles {
    /// A profile that is at hand.
    fn get(&self, document: u32) -> &Profile {
        &self.held[&document].0
    }

    /// Those of *needed* that are not at hand; the others stay.
    fn missing(&mut self, needed: &[u32]) -> Vec<u32> {
        self.now += 1;
        let mut missing = Vec::new();
        for number in needed {
            match self.held.get_mut(number) {
                Some((_, used)) => *used = self.now,
                None => missing.push(*number),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        if self.bytes > self.limit / 4 * 3 {
            self.forget();
        }
        missing
    }

    fn insert(&mut self, document: u32, profile: Profile) {
        self.bytes += profile.bytes();
        self.held.insert(document, (profile, self.now));
    }

    fn forget(&mut self) {
        let mut ages: Vec<(u64, usize)> = self.held.values().map(|(profile, used)| (*used, profile.bytes())).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let mut kept = 0;
        let oldest = ages.iter().find_map(|(used, bytes)| {
            kept += bytes;
            (kept > self.limit / 2).then_some(*used)
        });
        let oldest = oldest.unwrap_or(0);
        let old: Vec<_> = self.held.extract_if(|_, (_, used)| *used <= oldest && *used != self.now).collect();
        // To free many small pieces takes a while, for which nobody needs to wait. Where the system gives no
        // thread, they are freed with the closure.
        drop(std::thread::Builder::new().spawn(move || drop(old)));
        self.bytes = self.held.values().map(|(profile, _)| profile.bytes()).sum();
    }
}

fn columns<'py>(py: Python<'py>, found: &[Verdict]) -> Verdicts<'py> {
    let column =
        |pick: fn(&Measures) -> u64| -> Vec<u16> { found.iter().map(|(_, measures)| pick(measures) as u16).collect() };
    let reasons: Vec<u8> = found.iter().map(|(reason, _)| *reason as u8).collect();
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
    #[pyo3(item)]
    fine_slot: u64,
    #[pyo3(item)]
    near: u64,
    #[pyo3(item)]
    near_numbers: u64,
    #[pyo3(item)]
    middle_common: u64,
    #[pyo3(item)]
    middle_rare: u64,
    #[pyo3(item)]
    subject: usize,
    #[pyo3(item)]
    families: usize,
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
            fine_slot: r.fine_slot,
            near: r.near,
            near_numbers: r.near_numbers,
            middle_common: r.middle_common,
            middle_rare: r.middle_rare,
            subject: r.subject,
            families: r.families,
        }
    }
}
