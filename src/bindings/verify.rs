#![forbid(unsafe_code)]
//! Candidate pairs to verdicts.

use std::path::PathBuf;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::arrow::ArrowTexts;
use super::interrupt::{caught, interruptible};
use super::text::{NativeFrequencies, NativeRecipe};
use super::texts::{Texts, text_or_empty};
use super::{InvalidValue, LimitReached};
use crate::frequencies::Frozen;
use crate::memory::{collected, filled, gathered, give_back, push, zeros};
use crate::neighbours::{Neighbours, walk};
use crate::normalize::Text;
use crate::parallel;
use crate::profile::{Bench, Profile};
use crate::ranks::Ranks;
use crate::texts::TextStore;
use crate::verify::{Measures, Reason, Rivals, Rule, contest, judge, measure};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(walk_pairs, module)?)?;
    module.add_class::<Verifier>()
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
    let found = interruptible(py, false, |_| walk(documents, &numbered(left, right), least))?;
    Ok((found.order.into_pyarray(py), found.ends))
}

/// Pairs of known documents, of which there are fewer than 2^32.
fn numbered(left: &[i64], right: &[i64]) -> Vec<(u32, u32)> {
    gathered(left.iter().zip(right).map(|(one, other)| (*one as u32, *other as u32)))
}

/// A reason, and the measures that it rests on.
type Verdict = (Reason, Measures);
/// Pairs that a thread takes at a time.
const PIECE: usize = 16;
/// Profiles that a thread makes at a time.
const MADE: usize = 4;
/// Most pairs that are looked at together.
const ROUND: usize = 1 << 14;
/// Fewer pairs, or profiles, than this are left to the calling thread.
const FEW: usize = 64;
/// Of a document without a text.
const NONE: u32 = u32::MAX;
/// A profile takes about so many bytes for each of the text.
const SIZE: usize = 8;

/// How many threads to use for so many pairs, or profiles.
fn threads_for(count: usize, threads: Option<usize>) -> usize {
    if count > FEW { parallel::thread_count(threads) } else { 1 }
}

/// Measures and judges pairs of documents, whose texts were set aside.
#[pyclass(module = "neardup._native")]
pub struct Verifier {
    recipe: Py<NativeRecipe>,
    frequencies: Option<Arc<Frozen>>,
    texts: TextStore,
    documents: usize,
    /// Of those documents whose texts are set aside; what is known of each stands in its order.
    ranks: Ranks,
    /// The number of the text of each, or NONE.
    text_of: Vec<u32>,
    profiles: Profiles,
    neighbours: Option<Arc<Neighbours>>,
}

type Verdicts<'py> =
    (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>, Bound<'py, PyArray1<u16>>);

#[pymethods]
impl Verifier {
    /// For *documents* documents, all of which *frequencies* count, and of which the texts of the *wanted* ones are
    /// set aside; texts beyond *memory* bytes go to a file at *path*.
    #[new]
    fn new(
        py: Python<'_>,
        recipe: Py<NativeRecipe>,
        frequencies: Option<PyRef<'_, NativeFrequencies>>,
        documents: usize,
        wanted: PyReadonlyArray1<'_, i64>,
        path: PathBuf,
        memory: usize,
    ) -> PyResult<Verifier> {
        let wanted = wanted.as_slice()?;
        if wanted.iter().any(|number| !usize::try_from(*number).is_ok_and(|at| at < documents)) {
            return Err(InvalidValue::new_err("an unknown document is wanted"));
        }
        caught(|| {
            let ranks = Ranks::new(documents, wanted.iter().map(|number| *number as usize));
            let count = ranks.len();
            Ok(Verifier {
                recipe,
                frequencies: frequencies.map(|table| table.frozen(py)).transpose()?,
                texts: TextStore::new(path, memory / 8),
                documents,
                ranks,
                text_of: filled(count, NONE),
                profiles: Profiles::new(count, memory / 8 * 5),
                neighbours: None,
            })
        })
    }

    /// Set aside the texts of an Arrow array where *numbers* names a document (-1: none).
    fn add(&mut self, py: Python<'_>, numbers: PyReadonlyArray1<'_, i64>, texts: ArrowTexts) -> PyResult<()> {
        let numbers = numbers.as_slice()?;
        if numbers.len() != texts.len() {
            return Err(InvalidValue::new_err("one number for each text is needed"));
        }
        let texts = caught(|| Texts::from_arrow(&texts))?;
        let (ranks, text_of, store) = (&self.ranks, &mut self.text_of, &mut self.texts);
        let added: std::io::Result<()> = interruptible(py, false, |_| {
            let mut room = Vec::new();
            for (number, text) in numbers.iter().zip(&texts.items) {
                if let Some(rank) = u32::try_from(*number).ok().and_then(|number| ranks.of(number)) {
                    let number = store.len() as u32;
                    store.push(text_or_empty(text, &mut room).bytes())?;
                    text_of[rank] = number;
                }
            }
            Ok(())
        })?;
        added.map_err(os_error)
    }

    /// How many bytes of texts are set aside.
    #[getter]
    fn text_bytes(&self) -> PyResult<u64> {
        caught(|| Ok(self.texts.bytes()))
    }

    /// Plain, common and rare similarity, and shared and all features, of each pair.
    fn measure<'py>(
        &mut self,
        py: Python<'py>,
        left: PyReadonlyArray1<'py, i64>,
        right: PyReadonlyArray1<'py, i64>,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
        caught(|| {
            let pairs = self.pairs(&left, &right)?;
            let mut found = zeros::<[u32; 6]>(pairs.len());
            self.each(py, &pairs, &mut found, threads, |one, other, row| {
                let m = measure(one, other);
                *row = [m.plain, m.common, m.rare, m.shared, one.all, other.all].map(|number| number as u32);
            })?;
            let count = found.len();
            found.into_flattened().into_pyarray(py).reshape([count, 6])
        })
    }

    /// Say which documents are near each other, and how near (in ten-thousandths).
    fn set_neighbours(
        &mut self,
        left: PyReadonlyArray1<'_, i64>,
        right: PyReadonlyArray1<'_, i64>,
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
            self.neighbours = Some(Arc::new(Neighbours::new(self.documents, &near, same)));
            Ok(())
        })
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
        caught(|| {
            let pairs = self.pairs(&left, &right)?;
            let rule = Rule::from(rule);
            let mut found = self.judge_alone(py, &pairs, &rule, threads)?;
            if let Some(neighbours) = self.neighbours.clone() {
                self.ask(py, &neighbours, &pairs, &rule, threads, &mut found)?;
            }
            Ok(columns(py, &found))
        })
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
        caught(|| {
            let pairs = self.pairs(&left, &right)?;
            let rule = Rule::from(rule);
            let mut found = self.judge_alone(py, &pairs, &rule, threads)?;
            let plain = found.iter().map(|(_, measures)| measures.plain as u16);
            let near = collected(pairs.iter().copied().zip(plain).filter(|(_, plain)| *plain >= bounds.0));
            let neighbours = py.detach(|| Neighbours::new(self.documents, &near, bounds.1));
            self.ask(py, &neighbours, &pairs, &rule, threads, &mut found)?;
            Ok(columns(py, &found))
        })
    }

    /// The text of a document, as it was set aside.
    fn text(&mut self, document: usize) -> PyResult<String> {
        caught(|| {
            self.texts.finish().map_err(os_error)?;
            match u32::try_from(document).ok().and_then(|document| self.text_number(document)) {
                Some(number) => {
                    let mut text = Vec::new();
                    self.texts.read(number, &mut text).map_err(os_error)?;
                    Ok(String::from_utf8_lossy(&text).into_owned())
                }
                None => Err(InvalidValue::new_err(format!("no text was set aside for document {document}"))),
            }
        })
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        self.profiles = Profiles::new(0, 0);
        give_back();
    }
}

impl Verifier {
    fn pairs(&self, left: &PyReadonlyArray1<'_, i64>, right: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<(u32, u32)>> {
        let (left, right) = (left.as_slice()?, right.as_slice()?);
        let known = |number: &i64| usize::try_from(*number).is_ok_and(|at| at < self.documents);
        if left.len() != right.len() || !left.iter().chain(right).all(known) {
            return Err(InvalidValue::new_err("pairs must be two equally long lists of known documents"));
        }
        // A text that is not there must never be taken for an empty one.
        if let Some(number) = left.iter().chain(right).find(|number| self.text_number(**number as u32).is_none()) {
            return Err(InvalidValue::new_err(format!("no text was set aside for document {number}")));
        }
        Ok(numbered(left, right))
    }

    /// The number of the text that was set aside for a document.
    fn text_number(&self, document: u32) -> Option<usize> {
        let number = self.text_of[self.ranks.of(document)?];
        (number != NONE).then_some(number as usize)
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
            self.prepare(py, pairs.iter().flat_map(|pair| [pair.0, pair.1]), threads)?;
            let profile = |document: u32| self.profiles.get(self.ranks.of(document));
            interruptible(py, pairs.len() > FEW, |cancel| {
                let pieces = pairs.chunks(PIECE).zip(found[at..end].chunks_mut(PIECE));
                parallel::drain(
                    pieces,
                    threads_for(pairs.len(), threads),
                    cancel,
                    || (),
                    |(), (pairs, found)| {
                        for ((left, right), found) in pairs.iter().zip(found) {
                            work(profile(*left), profile(*right), found);
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
        let mut found = filled(pairs.len(), (Reason::TooDifferent, Measures::default()));
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
        let open_of = |(pair, verdict): (&(u32, u32), _)| {
            let (groups, all) = neighbours.rivals(pair.0, pair.1);
            let both_have_copies = neighbours.are_two_groups(pair.0, pair.1);
            Open { pair: *pair, verdict, groups, all, both_have_copies }
        };
        let parts: Vec<_> = pairs.chunks(ROUND / 16).zip(found.chunks_mut(ROUND / 16)).collect();
        let threads_used = threads_for(pairs.len(), threads);
        let open: Vec<Vec<Open<'_>>> = py.detach(|| {
            parallel::map(threads_used, parts, |(pairs, found)| {
                pairs.iter().zip(found).filter(|(_, verdict)| verdict.0.accepts()).map(open_of).collect()
            })
        });
        let mut open: Vec<Open<'_>> = collected(open.into_iter().flatten());
        let mut at = 0;
        while at < open.len() {
            let end = at + self.round(open[at..].iter().map(Open::documents));
            let open = &mut open[at..end];
            self.prepare(py, open.iter().flat_map(Open::documents), threads)?;
            let profile = |document: u32| self.profiles.get(self.ranks.of(document));
            let look_up = |numbers: &[u32]| numbers.iter().map(|number| profile(*number)).collect();
            interruptible(py, open.len() > FEW, |cancel| {
                let threads = threads_for(open.len(), threads);
                parallel::drain(
                    open.chunks_mut(PIECE),
                    threads,
                    cancel,
                    || (),
                    |(), open| {
                        for Open { pair, verdict, groups, all, both_have_copies } in open {
                            let (groups, all) = (look_up(groups), look_up(all));
                            let rivals = Rivals { groups, all, both_have_copies: *both_have_copies };
                            let (one, other) = (profile(pair.0), profile(pair.1));
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
    fn round<Need: IntoIterator<Item = u32>>(&mut self, needs: impl Iterator<Item = Need>) -> usize {
        let Verifier { ranks, text_of, texts, profiles, .. } = self;
        let (limit, mut bytes) = (profiles.limit / 4, 0);
        profiles.now += 1;
        let fits = |need: Need| {
            for rank in need.into_iter().filter_map(|number| ranks.of(number)) {
                if profiles.want(rank) && text_of[rank] != NONE {
                    bytes += texts.length(text_of[rank] as usize) * SIZE;
                }
            }
            bytes <= limit
        };
        needs.take(ROUND).map(fits).take_while(|fits| *fits).count().max(1)
    }

    /// Have the profiles of all *needed* documents at hand.
    fn prepare(&mut self, py: Python<'_>, needed: impl Iterator<Item = u32>, threads: Option<usize>) -> PyResult<()> {
        self.texts.finish().map_err(os_error)?;
        let missing = self.profiles.missing(needed.filter_map(|number| self.ranks.of(number)));
        let recipe = &self.recipe.get().0;
        let (texts, text_of, frequencies) = (&self.texts, &self.text_of, self.frequencies.as_deref());
        let mut made: Vec<Option<std::io::Result<Box<Profile>>>> = gathered(missing.iter().map(|_| None));
        interruptible(py, missing.len() > FEW, |cancel| {
            parallel::drain(
                missing.chunks(MADE).zip(made.chunks_mut(MADE)),
                threads_for(missing.len(), threads),
                cancel,
                || (Bench::default(), Vec::new()),
                |(bench, text), (ranks, made)| {
                    for (rank, profile) in ranks.iter().zip(made) {
                        text.clear();
                        let read = match text_of[*rank as usize] {
                            NONE => Ok(()),
                            number => texts.read(number as usize, text),
                        };
                        let of_text = |()| Box::new(Profile::of(Text::Unchecked(text), recipe, frequencies, bench));
                        *profile = Some(read.map(of_text));
                    }
                },
            );
        })?;
        for (rank, profile) in missing.into_iter().zip(made) {
            if let Some(profile) = profile {
                self.profiles.insert(rank, profile.map_err(os_error)?);
            }
        }
        Ok(())
    }
}

/// Profiles at hand; those that were not wanted for longest go when they take too much memory.
struct Profiles {
    /// By the rank of the document.
    held: Vec<Option<Box<Profile>>>,
    /// When each was last wanted.
    used: Vec<u32>,
    /// The ranks of those at hand.
    ranks: Vec<u32>,
    /// How often profiles were wanted.
    now: u32,
    bytes: usize,
    limit: usize,
    /// Of documents that have none.
    nothing: Profile,
}

impl Profiles {
    fn new(count: usize, limit: usize) -> Profiles {
        Profiles {
            held: gathered((0..count).map(|_| None)),
            used: zeros(count),
            ranks: Vec::new(),
            now: 0,
            bytes: 0,
            limit,
            nothing: Profile::default(),
        }
    }

    /// A profile that is at hand.
    fn get(&self, rank: Option<usize>) -> &Profile {
        rank.and_then(|rank| self.held[rank].as_deref()).unwrap_or(&self.nothing)
    }

    /// Say that a profile is wanted now; whether nobody said so before.
    fn want(&mut self, rank: usize) -> bool {
        std::mem::replace(&mut self.used[rank], self.now) != self.now
    }

    /// Those of *needed* that are not at hand, in ascending order; the others stay.
    fn missing(&mut self, needed: impl Iterator<Item = usize>) -> Vec<u32> {
        self.now += 1;
        let mut missing = Vec::new();
        for rank in needed {
            if self.want(rank) && self.held[rank].is_none() {
                push(&mut missing, rank as u32);
            }
        }
        missing.sort_unstable();
        if self.bytes > self.limit / 4 * 3 {
            self.forget();
        }
        missing
    }

    fn insert(&mut self, rank: u32, profile: Box<Profile>) {
        push(&mut self.ranks, rank);
        self.bytes += profile.bytes();
        self.held[rank as usize] = Some(profile);
    }

    fn forget(&mut self) {
        let size = |rank: &u32| self.held[*rank as usize].as_ref().map_or(0, |profile| profile.bytes());
        let mut ages: Vec<(u32, usize)> =
            self.ranks.iter().map(|rank| (self.used[*rank as usize], size(rank))).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let mut kept = 0;
        let oldest = ages.iter().find_map(|(used, bytes)| {
            kept += bytes;
            (kept > self.limit / 2).then_some(*used)
        });
        let oldest = oldest.unwrap_or(0);
        let mut old = Vec::new();
        self.ranks.retain(|rank| {
            let used = self.used[*rank as usize];
            let stays = used > oldest || used == self.now;
            if !stays && let Some(profile) = self.held[*rank as usize].take() {
                self.bytes -= profile.bytes();
                old.push(profile);
            }
            stays
        });
        // To free many small pieces takes a while, for which nobody needs to wait. Where the system gives no
        // thread, they are freed with the closure.
        drop(std::thread::Builder::new().spawn(move || drop(old)));
    }
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
