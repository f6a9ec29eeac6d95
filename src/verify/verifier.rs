#![forbid(unsafe_code)]
//! The verifier: texts that are set aside, and pairs of them measured and judged among their neighbours.
//!
//! Pairs are done in rounds whose profiles fit the memory: a profile takes about eight times its text. It is
//! made once, and again only if it had to be dropped. Texts may be added and removed at any time. If it is known
//! beforehand which will come (`expect`), a text that does not come takes a bit and a half instead of 16 bytes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::arrow::array::ArrowTexts;
use crate::frequencies::Frozen;
use crate::recipe::Recipe;
use crate::system::fault::{Fault, require};
use crate::system::memory::{collected, copied, filled, gathered, resize, zeros};
use crate::system::parallel::{self, Cancel};
use crate::text::normalize::Text;
use crate::text::texts::{Texts, text_or_empty};
use crate::verify::contest::{Rivals, contest};
use crate::verify::figures::{COUNT, figures};
use crate::verify::measures::{Measures, measure};
use crate::verify::neighbours::{Neighbours, UNEQUAL, numbered};
use crate::verify::preserving::{Words, may_hold, sides};
use crate::verify::profile::{Bench, Profile, note_unknown};
use crate::verify::profiles::Profiles;
use crate::verify::ranks::Ranks;
use crate::verify::rule::{Reason, Rule, judge};
use crate::verify::subjects::compare;
use crate::verify::texts::TextStore;

/// A reason, and the measures that it rests on.
pub type Verdict = (Reason, Measures);

/// Verdicts by column: the reasons, and the plain, weighted and rare similarities.
pub fn columns(found: &[Verdict]) -> (Vec<u8>, [Vec<u16>; 3]) {
    let column = |pick: fn(&Measures) -> u64| gathered(found.iter().map(|(_, measures)| pick(measures) as u16));
    let reasons = gathered(found.iter().map(|(reason, _)| *reason as u8));
    (reasons, [column(|m| m.plain), column(|m| m.weighted), column(|m| m.rare)])
}

/// A verdict, and the figures of its pair; zeros where that is too different.
#[derive(Clone, Copy)]
pub struct Figured {
    pub verdict: Verdict,
    pub figures: [u16; COUNT],
    /// Whether the pair was accepted by itself.
    alone: bool,
}

/// Fewer pairs, or profiles, than this are left to the calling thread.
pub const FEW: usize = 64;
/// Pairs that a thread takes at a time.
const PIECE: usize = 16;
/// Profiles that a thread makes at a time.
const MADE: usize = 4;
/// Most pairs that are judged together.
const ROUND: usize = 1 << 14;
/// The mark of a place without a text.
const NONE: u32 = u32::MAX;
/// A profile takes about this many bytes for each of the text.
const SIZE: usize = 8;
/// Bytes of removed texts that are not worth the work of rewriting the others.
const WASTE: u64 = 1 << 20;

/// Why verification ended early.
#[derive(Debug)]
pub enum Stop {
    Cancelled,
    Io(io::Error),
    Wrong(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Wrong(fault)
    }
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Fault {
        match stop {
            Stop::Io(error) => Fault::System(None, error.to_string(), String::new()),
            Stop::Wrong(fault) => fault,
            // Only by an exception, which Python has raised.
            Stop::Cancelled => Fault::value("cancelled"),
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

/// Where what is known of a text is, by its number.
enum Places {
    /// In the order of those that are expected.
    Expected(Ranks),
    /// At its number.
    Any,
}

/// Measures and judges pairs of texts that were set aside. Texts have numbers, which need not be dense where
/// it was stated which ones are expected.
pub struct Verifier {
    recipe: Arc<Recipe>,
    frequencies: Option<Arc<Frozen>>,
    /// Whether there are texts that the frequencies did not count.
    open: bool,
    /// What those share that the frequencies do not know, until texts come or go.
    shared: Option<Arc<Vec<u64>>>,
    texts: TextStore,
    /// Bytes in `texts` of those that were removed or replaced.
    removed: u64,
    places: Places,
    /// Numbers are below it.
    numbers: usize,
    /// Which of `texts` each place has, or NONE.
    text_of: Vec<u32>,
    profiles: Profiles,
    neighbours: Option<Arc<Neighbours>>,
}

/// How many threads to use for this many pairs, or profiles.
fn threads_for(count: usize, threads: Option<usize>) -> usize {
    if count > FEW { parallel::thread_count(threads) } else { 1 }
}

impl Verifier {
    /// Features are as common as *frequencies* say, which must have counted every text, unless *open*: then a
    /// feature that they do not know is rare if two of the texts have it. Of *memory* bytes an eighth is for
    /// texts: what is more goes to a file at *spill*, if there is one.
    pub fn new(
        recipe: Arc<Recipe>,
        frequencies: Option<Arc<Frozen>>,
        open: bool,
        memory: usize,
        spill: Option<PathBuf>,
    ) -> Verifier {
        Verifier {
            recipe,
            frequencies,
            open,
            shared: None,
            texts: TextStore::new(spill, memory / 8),
            removed: 0,
            places: Places::Any,
            numbers: 0,
            text_of: Vec::new(),
            profiles: Profiles::new(memory / 8 * 5),
            neighbours: None,
        }
    }

    /// From now on texts of these numbers, below *count*, are expected, and no others; it begins empty.
    pub fn expect(&mut self, count: usize, numbers: &[i64]) -> Result<(), Fault> {
        let known = numbers.iter().all(|number| usize::try_from(*number).is_ok_and(|at| at < count));
        require(known, "an unknown document is wanted")?;
        let ranks = Ranks::new(count, numbers.iter().map(|number| *number as usize));
        self.text_of = filled(ranks.len(), NONE);
        self.profiles = Profiles::new(self.profiles.limit());
        self.profiles.grow(ranks.len());
        (self.places, self.numbers, self.neighbours) = (Places::Expected(ranks), count, None);
        Ok(())
    }

    /// Where the text of that number has its place, if there is one for it.
    fn place(&self, number: u32) -> Option<usize> {
        match &self.places {
            Places::Expected(ranks) => ranks.of(number),
            Places::Any => Some(number as usize).filter(|place| *place < self.text_of.len()),
        }
    }

    /// Whether a text of that number was set aside.
    pub fn has(&self, number: u32) -> bool {
        self.place(number).is_some_and(|place| self.text_of[place] != NONE)
    }

    /// The bytes of all texts.
    pub fn text_bytes(&self) -> u64 {
        self.texts.bytes() - self.removed
    }

    /// Set aside the text of a number, in place of the one that it had; of a number that is not expected: nothing.
    pub fn add(&mut self, number: u32, text: &[u8]) -> io::Result<()> {
        if matches!(self.places, Places::Any) && number as usize >= self.text_of.len() {
            let count = number as usize + 1;
            resize(&mut self.text_of, count, NONE);
            self.profiles.grow(count);
            self.numbers = count;
        }
        let Some(place) = self.place(number) else {
            return Ok(());
        };
        let number = self.texts.len() as u32;
        self.texts.push(text)?;
        self.shared = None;
        self.take_out(place);
        self.text_of[place] = number;
        Ok(())
    }

    /// Set aside the texts of an array where *numbers* has a number and not -1.
    pub fn add_all(&mut self, numbers: &[i64], texts: &ArrowTexts, cancel: &Cancel) -> Result<(), Stop> {
        require(numbers.len() == texts.len(), "one number for each text is needed")?;
        if let Some(number) = numbers.iter().find(|number| **number >= i64::from(u32::MAX)) {
            let what = format!("{number} is not the number of a text: it must be below 2^32 - 1");
            return Err(Fault::Value(what).into());
        }
        let (texts, mut room) = (Texts::of_arrow(texts)?, Vec::new());
        for (number, text) in numbers.iter().zip(texts.items()) {
            if let Ok(number) = u32::try_from(*number) {
                cancel.check().map_err(|_| Stop::Cancelled)?;
                self.add(number, text_or_empty(text, &mut room).bytes())?;
            }
        }
        Ok(())
    }

    /// Forget the text at a place, and what rests on it.
    fn take_out(&mut self, place: usize) -> bool {
        let number = std::mem::replace(&mut self.text_of[place], NONE);
        if number == NONE {
            return false;
        }
        self.removed += self.texts.length(number as usize) as u64;
        self.shared = None;
        self.profiles.remove([place].into_iter());
        // Which texts are near it is asked again.
        self.neighbours = None;
        true
    }

    /// Forget the texts of these numbers; how many there were.
    pub fn remove(&mut self, numbers: &[i64]) -> Result<usize, Stop> {
        let place = |own: &Verifier, number: &i64| u32::try_from(*number).ok().and_then(|number| own.place(number));
        let count = numbers.iter().filter(|number| place(self, number).is_some_and(|at| self.take_out(at))).count();
        if self.removed > WASTE && self.removed > self.texts.bytes() / 2 {
            let kept: Vec<usize> = collected((0..self.text_of.len()).filter(|place| self.text_of[*place] != NONE));
            self.texts.only(kept.iter().map(|place| self.text_of[*place] as usize))?;
            kept.iter().enumerate().for_each(|(number, place)| self.text_of[*place] = number as u32);
            self.removed = 0;
        }
        Ok(count)
    }

    /// Pairs of texts that were set aside: one that is not there must never be taken for an empty one.
    pub fn pairs(&self, left: &[i64], right: &[i64]) -> Result<Vec<(u32, u32)>, Fault> {
        require(left.len() == right.len(), UNEQUAL)?;
        let is_there = |number: &i64| u32::try_from(*number).is_ok_and(|number| self.has(number));
        match left.iter().chain(right).find(|number| !is_there(number)) {
            Some(number) => Err(Fault::Value(format!("no text was set aside for document {number}"))),
            None => Ok(numbered(left, right)),
        }
    }

    /// Let everything go; the profiles on this thread.
    pub fn clear(&mut self) {
        self.profiles = Profiles::new(0);
        self.text_of.clear();
    }

    /// Plain, weighted and rare similarity, and shared and all features, of each pair.
    pub fn measure(
        &mut self,
        pairs: &[(u32, u32)],
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<[u32; 6]>, Stop> {
        let mut found = zeros::<[u32; 6]>(pairs.len());
        self.each(pairs, &mut found, threads, cancel, |one, other, row| {
            let m = measure(one, other);
            *row = [m.plain, m.weighted, m.rare, m.shared, one.all, other.all].map(|number| number as u32);
        })?;
        Ok(found)
    }

    /// Of each pair, which one says nothing that the other lacks (`preserving::sides`).
    pub fn preserved(
        &mut self,
        pairs: &[(u32, u32)],
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<u8>, Stop> {
        let mut found = zeros::<u8>(pairs.len());
        self.each(pairs, &mut found, threads, cancel, |one, other, found| {
            let (left, right) = (may_hold(&one.tokens, &other.tokens), may_hold(&other.tokens, &one.tokens));
            *found = sides(left, right);
        })?;
        // Hashes have rejected; words accept.
        let store = &self.texts;
        let read = |number: u32, text: &mut Vec<u8>, words: &mut Words| {
            text.clear();
            let kept = self.place(number).map_or(NONE, |place| self.text_of[place]);
            if kept != NONE {
                store.read(kept as usize, text)?;
            }
            words.read(text);
            io::Result::Ok(())
        };
        let compare = |pair: &(u32, u32), found: &mut u8, (text, left, right): &mut (Vec<u8>, Words, Words)| {
            read(pair.0, text, left)?;
            read(pair.1, text, right)?;
            *found &= sides(left.stand_in(right), right.stand_in(left));
            io::Result::Ok(())
        };
        let states = parallel::drain(
            pairs.chunks(PIECE).zip(found.chunks_mut(PIECE)),
            threads_for(pairs.len(), threads),
            cancel,
            || (Default::default(), Ok(())),
            |(room, result), (pairs, found)| {
                for (pair, found) in pairs.iter().zip(found).filter(|(_, found)| **found != 0) {
                    if let Err(error) = compare(pair, found, room) {
                        *result = Err(error);
                    }
                }
            },
        );
        cancel.check().map_err(|_| Stop::Cancelled)?;
        states.into_iter().try_for_each(|(_, result)| result)?;
        Ok(found)
    }

    /// What the titles of each pair say.
    pub fn titles(&mut self, pairs: &[(u32, u32)], threads: Option<usize>, cancel: &Cancel) -> Result<Vec<u8>, Stop> {
        let mut found = zeros::<u8>(pairs.len());
        self.each(pairs, &mut found, threads, cancel, |one, other, said| *said = compare(one, other) as u8)?;
        Ok(found)
    }

    /// Learn which texts are near each other, from pairs and their similarities; from *same* on two are nearly identical.
    pub fn meet(&mut self, pairs: &[(u32, u32)], plain: &[u16], same: u16) -> Result<(), Fault> {
        require(plain.len() == pairs.len(), "one similarity for each pair is needed")?;
        let near: Vec<_> = gathered(pairs.iter().copied().zip(plain.iter().copied()));
        self.neighbours = Some(Arc::new(Neighbours::new(self.numbers, &near, same)));
        Ok(())
    }

    /// Judge pairs among the neighbours that it has met.
    pub fn judge(
        &mut self,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<Verdict>, Stop> {
        let mut found = self.judge_alone(pairs, rule, threads, cancel)?;
        if let Some(neighbours) = self.neighbours.clone() {
            self.ask(&neighbours, pairs, rule, threads, cancel, &mut found)?;
        }
        Ok(found)
    }

    /// Judge pairs that are all there are of their texts: from *near* on two of them are neighbours, from *same*
    /// on nearly identical.
    pub fn judge_together(
        &mut self,
        pairs: &[(u32, u32)],
        rule: &Rule,
        (near, same): (u16, u16),
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<Verdict>, Stop> {
        let mut found = self.judge_alone(pairs, rule, threads, cancel)?;
        let neighbours = self.neighbours_in(pairs, &found, (near, same));
        self.ask(&neighbours, pairs, rule, threads, cancel, &mut found)?;
        Ok(found)
    }

    /// Who is near whom in pairs that are all there are of their texts.
    fn neighbours_in(&self, pairs: &[(u32, u32)], found: &[Verdict], (near, same): (u16, u16)) -> Neighbours {
        let plain = found.iter().map(|(_, measures)| measures.plain as u16);
        let met = collected(pairs.iter().copied().zip(plain).filter(|(_, plain)| *plain >= near));
        Neighbours::new(self.numbers, &met, same)
    }

    /// Judge pairs, and say what a rule that was learned rests on: with *bounds* as `judge_together` does, else
    /// as `judge`.
    pub fn figures(
        &mut self,
        pairs: &[(u32, u32)],
        rule: &Rule,
        bounds: Option<(u16, u16)>,
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<Figured>, Stop> {
        let alone = self.judge_alone(pairs, rule, threads, cancel)?;
        let neighbours = match bounds {
            Some(bounds) => Some(Arc::new(self.neighbours_in(pairs, &alone, bounds))),
            None => self.neighbours.clone(),
        };
        let mut found = copied(&alone);
        if let Some(neighbours) = neighbours {
            self.ask(&neighbours, pairs, rule, threads, cancel, &mut found)?;
        }
        let begun = |(before, verdict): (&Verdict, &Verdict)| Figured {
            verdict: *verdict,
            figures: [0; COUNT],
            alone: before.0.accepts(),
        };
        let mut rows = gathered(alone.iter().zip(&found).map(begun));
        self.each(pairs, &mut rows, threads, cancel, |one, other, row| {
            let (reason, measures) = &row.verdict;
            if *reason != Reason::TooDifferent {
                row.figures = figures(one, other, measures, (row.alone, reason.accepts()));
            }
        })?;
        Ok(rows)
    }

    /// Call *work* with the profiles of each pair and its place in *found*, as many pairs at a time as
    /// memory allows.
    fn each<T: Send>(
        &mut self,
        pairs: &[(u32, u32)],
        found: &mut [T],
        threads: Option<usize>,
        cancel: &Cancel,
        work: impl Fn(&Profile, &Profile, &mut T) + Sync,
    ) -> Result<(), Stop> {
        let mut at = 0;
        while at < pairs.len() {
            let end = at + self.round(pairs[at..].iter().map(|pair| [pair.0, pair.1]));
            let pairs = &pairs[at..end];
            self.prepare(pairs.iter().flat_map(|pair| [pair.0, pair.1]), threads, cancel)?;
            let profile = |number: u32| self.profiles.get(self.place(number));
            let pieces = pairs.chunks(PIECE).zip(found[at..end].chunks_mut(PIECE));
            let judge = |(), (pairs, found): (&[(u32, u32)], &mut [T])| {
                for ((left, right), found) in pairs.iter().zip(found) {
                    work(profile(*left), profile(*right), found);
                }
            };
            parallel::drain(pieces, threads_for(pairs.len(), threads), cancel, || (), |_, piece| judge((), piece));
            cancel.check().map_err(|_| Stop::Cancelled)?;
            at = end;
        }
        Ok(())
    }

    /// Judge pairs by themselves.
    fn judge_alone(
        &mut self,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<Vec<Verdict>, Stop> {
        let mut found = filled(pairs.len(), (Reason::TooDifferent, Measures::default()));
        self.each(pairs, &mut found, threads, cancel, |one, other, verdict| {
            let measures = measure(one, other);
            *verdict = (judge(one, other, &measures, rule), measures);
        })?;
        Ok(found)
    }

    /// Let the neighbours of accepted pairs object.
    fn ask(
        &mut self,
        neighbours: &Neighbours,
        pairs: &[(u32, u32)],
        rule: &Rule,
        threads: Option<usize>,
        cancel: &Cancel,
        found: &mut [Verdict],
    ) -> Result<(), Stop> {
        let parts: Vec<_> = pairs.chunks(ROUND / 16).zip(found.chunks_mut(ROUND / 16)).collect();
        let open: Vec<Vec<Open<'_>>> = parallel::map(threads_for(pairs.len(), threads), parts, |(pairs, found)| {
            let accepted = pairs.iter().zip(found).filter(|(_, verdict)| verdict.0.accepts());
            accepted.map(|(pair, verdict)| Open::new(neighbours, *pair, verdict)).collect()
        });
        let mut open: Vec<Open<'_>> = collected(open.into_iter().flatten());
        let mut at = 0;
        while at < open.len() {
            let end = at + self.round(open[at..].iter().map(Open::numbers));
            let open = &mut open[at..end];
            self.prepare(open.iter().flat_map(Open::numbers), threads, cancel)?;
            let profile = |number: u32| self.profiles.get(self.place(number));
            let threads = threads_for(open.len(), threads);
            let contest = |open: &mut [Open<'_>]| open.iter_mut().for_each(|open| open.contest(rule, profile));
            parallel::drain(open.chunks_mut(PIECE), threads, cancel, || (), |(), open| contest(open));
            cancel.check().map_err(|_| Stop::Cancelled)?;
            at = end;
        }
        Ok(())
    }

    /// How many of the first *needs*, each some texts, may have their profiles in memory at once.
    fn round<Need: IntoIterator<Item = u32>>(&mut self, needs: impl Iterator<Item = Need>) -> usize {
        self.profiles.begin();
        let (limit, mut bytes) = (self.profiles.limit() / 4, 0);
        let fits = |need: Need| {
            for number in need {
                let Some(place) = self.place(number) else { continue };
                if self.profiles.want(place) && self.text_of[place] != NONE {
                    bytes += self.texts.length(self.text_of[place] as usize) * SIZE;
                }
            }
            bytes <= limit
        };
        needs.take(ROUND).map(fits).take_while(|fits| *fits).count().max(1)
    }

    /// Find what two of the texts or more share that the frequencies do not know; profiles rest on it.
    fn find_shared(&mut self, cancel: &Cancel) -> Result<(), Stop> {
        let (mut bench, mut text, mut unknown) = (Bench::default(), Vec::new(), Vec::new());
        for number in self.text_of.iter().filter(|number| **number != NONE) {
            cancel.check().map_err(|_| Stop::Cancelled)?;
            text.clear();
            self.texts.read(*number as usize, &mut text)?;
            let frequencies = self.frequencies.as_deref();
            note_unknown(Text::Unchecked(&text), &self.recipe, frequencies, &mut bench, &mut unknown);
        }
        unknown.sort_unstable();
        let (mut kept, mut at) = (0, 0);
        while at < unknown.len() {
            let end = at + unknown[at..].iter().take_while(|hash| **hash == unknown[at]).count();
            if end - at > 1 {
                unknown[kept] = unknown[at];
                kept += 1;
            }
            at = end;
        }
        unknown.truncate(kept);
        self.profiles = Profiles::new(self.profiles.limit());
        self.profiles.grow(self.text_of.len());
        self.shared = Some(Arc::new(unknown));
        Ok(())
    }

    /// Have the profiles of all *needed* texts at hand.
    fn prepare(
        &mut self,
        needed: impl Iterator<Item = u32>,
        threads: Option<usize>,
        cancel: &Cancel,
    ) -> Result<(), Stop> {
        self.texts.finish()?;
        if self.open && self.shared.is_none() {
            self.find_shared(cancel)?;
        }
        let Verifier { places, text_of, profiles, texts, recipe, frequencies, shared, .. } = self;
        let missing = match places {
            Places::Expected(ranks) => profiles.missing(needed.filter_map(|number| ranks.of(number))),
            Places::Any => profiles.missing(needed.map(|number| number as usize).filter(|at| *at < text_of.len())),
        };
        let frequencies = frequencies.as_deref();
        let mut made: Vec<Option<io::Result<Box<Profile>>>> = gathered(missing.iter().map(|_| None));
        parallel::drain(
            missing.chunks(MADE).zip(made.chunks_mut(MADE)),
            threads_for(missing.len(), threads),
            cancel,
            || (Bench::among(shared.clone()), Vec::new()),
            |(bench, text), (places, made)| {
                for (place, profile) in places.iter().zip(made) {
                    text.clear();
                    let read = match text_of[*place as usize] {
                        NONE => Ok(()),
                        number => texts.read(number as usize, text),
                    };
                    let of_text = |()| Box::new(Profile::of(Text::Unchecked(text), recipe, frequencies, bench));
                    *profile = Some(read.map(of_text));
                }
            },
        );
        cancel.check().map_err(|_| Stop::Cancelled)?;
        for (place, profile) in missing.into_iter().zip(made) {
            if let Some(profile) = profile {
                profiles.insert(place, profile?);
            }
        }
        Ok(())
    }
}

/// A pair that was accepted by itself, and whom to ask about it.
struct Open<'a> {
    pair: (u32, u32),
    verdict: &'a mut Verdict,
    groups: Vec<u32>,
    all: Vec<u32>,
    both_have_copies: bool,
}

impl<'a> Open<'a> {
    fn new(neighbours: &Neighbours, pair: (u32, u32), verdict: &'a mut Verdict) -> Open<'a> {
        let (groups, all) = neighbours.rivals(pair.0, pair.1);
        let both_have_copies = neighbours.are_two_groups(pair.0, pair.1);
        Open { pair, verdict, groups, all, both_have_copies }
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        let Open { pair, groups, all, .. } = self;
        [pair.0, pair.1].into_iter().chain(groups.iter().copied()).chain(all.iter().copied())
    }

    fn contest<'p>(&mut self, rule: &Rule, profile: impl Fn(u32) -> &'p Profile) {
        let look_up = |numbers: &[u32]| numbers.iter().map(|number| profile(*number)).collect();
        let (groups, all) = (look_up(&self.groups), look_up(&self.all));
        let rivals = Rivals { groups, all, both_have_copies: self.both_have_copies };
        let (one, other) = (profile(self.pair.0), profile(self.pair.1));
        self.verdict.0 = contest(one, other, &self.verdict.1, rule, &rivals, self.verdict.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::array::tests::array_of;
    use crate::verify::profile::text_recipe;

    const BOUNDS: (u16, u16) = (6000, 9000);

    fn verifier(memory: usize) -> Verifier {
        Verifier::new(Arc::new(text_recipe()), None, false, memory, None)
    }

    /// A text of 200 words, of which those at multiples of *step* are its own, and the others those of *base*.
    fn of_base(base: usize, own: usize, step: usize) -> String {
        let word =
            |at: usize| if at.is_multiple_of(step) { format!("own{own}x{at} ") } else { format!("{base}word{at} ") };
        (0..200).map(word).collect()
    }

    fn text(own: usize, step: usize) -> String {
        of_base(0, own, step)
    }

    fn all_pairs(count: u32) -> Vec<(u32, u32)> {
        (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other))).collect()
    }

    fn together(verifier: &mut Verifier, pairs: &[(u32, u32)]) -> Vec<Verdict> {
        verifier.judge_together(pairs, &Rule::DEFAULT, BOUNDS, None, &Cancel::new()).unwrap()
    }

    #[test]
    fn a_pair_alone_is_a_copy_and_one_among_its_siblings_is_not() {
        let mut verifier = verifier(1 << 24);
        for number in 0..6 {
            verifier.add(number, text(number as usize, 10).as_bytes()).unwrap();
        }
        assert!(together(&mut verifier, &[(0, 1)])[0].0.accepts());
        assert!(together(&mut verifier, &all_pairs(6)).iter().all(|(reason, _)| *reason == Reason::Template));
    }

    #[test]
    fn what_the_frequencies_do_not_know_counts_if_two_of_the_texts_have_it() {
        let counted = |open| Verifier::new(Arc::new(text_recipe()), None, open, 1 << 24, None);
        let (mut every, mut open) = (counted(false), counted(true));
        for verifier in [&mut every, &mut open] {
            verifier.add(0, b"one two three four five six seven").unwrap();
            verifier.add(1, b"one two three four five six eight").unwrap();
        }
        let measured = |verifier: &mut Verifier| verifier.measure(&[(0, 1)], None, &Cancel::new()).unwrap()[0];
        let (rare, shared) = (measured(&mut every), measured(&mut open));
        // The same words in all, but those that one text alone has weigh nothing.
        assert_eq!((rare[0], rare[3]), (shared[0], shared[3]));
        assert!(rare[2] < 10_000 && shared[2] == 10_000, "{rare:?} {shared:?}");
        // A text that comes later may share what was alone before.
        open.add(2, b"seven eight").unwrap();
        assert!(measured(&mut open)[2] < 10_000);
        open.remove(&[2]).unwrap();
        assert_eq!(measured(&mut open), shared);
    }

    #[test]
    fn how_much_memory_there_is_decides_nothing() {
        let mut roomy = verifier(1 << 26);
        let mut narrow = verifier(1 << 15);
        for number in 0..40 {
            let text = of_base(number / 2, number, 4 + number);
            roomy.add(number as u32, text.as_bytes()).unwrap();
            narrow.add(number as u32, text.as_bytes()).unwrap();
        }
        let pairs = all_pairs(40);
        let found = together(&mut roomy, &pairs);
        assert_eq!(together(&mut narrow, &pairs), found);
        assert!(found.iter().any(|(reason, _)| reason.accepts()));
        assert!(found.iter().any(|(reason, _)| !reason.accepts()));
    }

    #[test]
    fn to_meet_first_is_to_judge_together() {
        let mut verifier = verifier(1 << 24);
        for number in 0..6 {
            verifier.add(number, text(number as usize, 10).as_bytes()).unwrap();
        }
        let (pairs, cancel) = (all_pairs(6), Cancel::new());
        let plain = verifier.measure(&pairs, None, &cancel).unwrap();
        let plain: Vec<u16> = plain.iter().map(|row| row[0] as u16).collect();
        verifier.meet(&pairs, &plain, BOUNDS.1).unwrap();
        assert!(verifier.meet(&pairs, &plain[1..], BOUNDS.1).is_err());
        let judged = verifier.judge(&pairs, &Rule::DEFAULT, None, &cancel).unwrap();
        assert_eq!(judged, together(&mut verifier, &pairs));
    }

    #[test]
    fn figures_come_with_the_verdicts_of_the_rule() {
        let mut verifier = verifier(1 << 24);
        for number in 0..6 {
            verifier.add(number, text(number as usize, 10).as_bytes()).unwrap();
        }
        verifier.add(6, b"another text").unwrap();
        let (pairs, cancel) = (all_pairs(7), Cancel::new());
        let judged = together(&mut verifier, &pairs);
        let found = verifier.figures(&pairs, &Rule::DEFAULT, Some(BOUNDS), None, &cancel).unwrap();
        assert_eq!(gathered(found.iter().map(|row| row.verdict)), judged);
        for row in &found {
            let is_zero = row.figures.iter().all(|figure| *figure == 0);
            assert_eq!(is_zero, row.verdict.0 == Reason::TooDifferent);
        }
        // Accepted alone, and not by the neighbours.
        let last = &found[0].figures[COUNT - 2..];
        assert_eq!(last, [10_000, 0]);
        let alone = verifier.figures(&[(0, 1)], &Rule::DEFAULT, None, None, &cancel).unwrap();
        assert_eq!(alone[0].figures[COUNT - 2..], [10_000, 10_000]);
    }

    #[test]
    fn texts_come_and_go_and_are_replaced() {
        let mut verifier = verifier(1 << 24);
        verifier.add(0, text(0, 10).as_bytes()).unwrap();
        verifier.add(7, text(1, 10).as_bytes()).unwrap();
        assert!(verifier.has(7) && !verifier.has(3) && !verifier.has(8));
        let before = together(&mut verifier, &[(0, 7)]);
        verifier.add(7, b"another text").unwrap();
        assert_eq!(together(&mut verifier, &[(0, 7)])[0].0, Reason::TooDifferent);
        assert_eq!(verifier.remove(&[7, 3, 99, -1, i64::MAX]).unwrap(), 1);
        assert!(!verifier.has(7));
        verifier.add(7, text(1, 10).as_bytes()).unwrap();
        assert_eq!(together(&mut verifier, &[(0, 7)]), before);
    }

    #[test]
    fn the_room_of_removed_texts_is_used_again() {
        let mut verifier = verifier(1 << 24);
        let long = text(0, 10).repeat(100);
        for number in 0..20 {
            verifier.add(number, text(number as usize, 10).as_bytes()).unwrap();
            verifier.add(20 + number, long.as_bytes()).unwrap();
        }
        let before = together(&mut verifier, &all_pairs(20));
        let gone: Vec<i64> = (20..40).collect();
        assert_eq!(verifier.remove(&gone).unwrap(), 20);
        assert_eq!(verifier.texts.len(), 20);
        assert_eq!(verifier.text_bytes(), verifier.texts.bytes());
        assert_eq!(together(&mut verifier, &all_pairs(20)), before);
    }

    #[test]
    fn of_expected_texts_only_those_are_set_aside() {
        let mut verifier = verifier(1 << 24);
        verifier.expect(1_000_000, &[5, 999_999]).unwrap();
        for unknown in [-1, 1_000_000] {
            assert!(verifier.expect(1_000_000, &[unknown]).is_err());
        }
        for number in [999_999, 6, 5] {
            verifier.add(number, text(number as usize, 10).as_bytes()).unwrap();
        }
        assert!(verifier.has(5) && verifier.has(999_999) && !verifier.has(6));
        assert_eq!(verifier.text_of.len(), 2);
        assert!(together(&mut verifier, &[(5, 999_999)])[0].0.accepts());
    }

    #[test]
    fn a_cancelled_call_ends_without_an_answer() {
        let mut verifier = verifier(1 << 24);
        (0..2).for_each(|number| verifier.add(number, b"some text").unwrap());
        let cancel = Cancel::new();
        cancel.set();
        assert!(matches!(verifier.measure(&[(0, 1)], None, &cancel), Err(Stop::Cancelled)));
        assert!(verifier.measure(&[(0, 1)], None, &Cancel::new()).is_ok());
    }

    #[test]
    fn the_texts_of_an_array_are_set_aside_under_their_numbers() {
        let mut verifier = verifier(1 << 24);
        let texts = array_of(&[Some("one text"), Some("none"), None, Some("one text")]);
        let mut add = |numbers: &[i64]| verifier.add_all(numbers, &texts, &Cancel::new());
        assert!(matches!(add(&[0, 1]), Err(Stop::Wrong(Fault::Value(_)))));
        let what = "4294967295 is not the number of a text: it must be below 2^32 - 1";
        assert!(matches!(add(&[0, 1, 2, 4_294_967_295]), Err(Stop::Wrong(fault)) if fault == Fault::value(what)));
        add(&[4, -1, 6, 7]).unwrap();
        assert!(verifier.has(4) && verifier.has(6) && verifier.has(7) && !verifier.has(1));
        assert_eq!(verifier.text_bytes(), 16);
    }

    #[test]
    fn pairs_are_of_texts_that_are_there() {
        let mut verifier = verifier(1 << 24);
        verifier.add(0, b"some text").unwrap();
        verifier.add(2, b"some text").unwrap();
        assert_eq!(verifier.pairs(&[0], &[2]), Ok(vec![(0, 2)]));
        assert_eq!(verifier.pairs(&[0], &[]), Err(Fault::value(UNEQUAL)));
        for number in [1, 3, -1, 1 << 33] {
            let what = format!("no text was set aside for document {number}");
            assert_eq!(verifier.pairs(&[0], &[number]), Err(Fault::Value(what)));
        }
    }

    #[test]
    fn columns_are_those_of_each_verdict() {
        let measures = Measures { plain: 7, weighted: 8, rare: 9, ..Measures::default() };
        let (reasons, figures) =
            columns(&[(Reason::TooDifferent, Measures::default()), (Reason::TooDifferent, measures)]);
        assert_eq!(reasons, [Reason::TooDifferent as u8; 2]);
        assert_eq!(figures, [vec![0, 7], vec![0, 8], vec![0, 9]]);
    }
}
