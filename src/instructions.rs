//! The kernels, each called once in a fixed way, so that valgrind can count their instructions
//! (`benchmarks/instructions.py`).
//!
//! Every input is made here from fixed numbers, there is one thread, and places in tables are not drawn
//! (`system::spread`): the counts are the same in every process. A kernel is called once before it is counted, for the
//! tables and buffers that are made only once.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

use crate::compat;
use crate::documents::{jsonl, survey};
use crate::frequencies::{DEFAULT_MAX_FEATURES, Frequencies, Frozen};
use crate::hamming::distance::{pairs_between, pairs_within};
use crate::image::corners;
use crate::image::thumbs::{self, PIXELS, UNIT};
use crate::index::any::{AnyIndex, Names};
use crate::join::lists::Comparable;
use crate::join::rows::{Ask, Given, groups_of_rows, join_rows, nearest_rows};
use crate::recipe::{Recipe, Scratch, Spec};
use crate::system::parallel::Cancel;
use crate::system::simd;
use crate::text::features::{Features, Parts};
use crate::text::normalize::Normalization;
use crate::text::texts::Texts;
use crate::verify::rule::Rule;
use crate::verify::verifier::Verifier;

const ONE: Option<usize> = Some(1);
const TEXT: Spec<'_> = Spec {
    normalize: "text",
    features: "mixed:4",
    weights: "log-df",
    hash: "mix",
    key: None,
    bits: 64,
    digest_slice: "first",
    bit_order: "little",
    tie: "zero",
    empty: "none",
};

/// Call every kernel, and have valgrind count each by its name.
pub fn run() {
    println!("level {}", simd::level().name());
    texts();
    fingerprints();
    images();
}

/// Count the instructions of *work*.
fn counted<T>(name: &str, mut work: impl FnMut() -> T) {
    black_box(work());
    request(Request::Start, 0);
    black_box(work());
    request(Request::Stop, 0);
    let name = format!("{name}\0");
    request(Request::DumpAt, name.as_ptr().addr());
}

/// What a program can ask callgrind for (`callgrind.h`).
#[derive(Clone, Copy)]
enum Request {
    DumpAt = 0x4354_0003,
    Start = 0x4354_0004,
    Stop = 0x4354_0005,
}

#[cfg(target_arch = "x86_64")]
fn request(request: Request, argument: usize) {
    let words: [usize; 6] = [request as usize, argument, 0, 0, 0, 0];
    // SAFETY: valgrind takes this sequence for a request and reads the words, and a text that ends with 0. For a
    // processor it is nothing: a register turned by 128 bits, and one exchanged with itself.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") 0usize => _,
            options(nostack),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_: Request, _: usize) {
    panic!("instructions are counted on x86-64 only");
}

/// Numbers that look random and are always the same.
struct Chance(u64);

impl Chance {
    fn word(&mut self) -> u64 {
        crate::hamming::plan::split_mix(&mut self.0)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.word() % count as u64) as usize
    }
}

/// Documents of about 3 kB, every eighth an edited copy of the one before it.
fn documents(count: usize, mixed: bool) -> Vec<String> {
    const SYLLABLES: [&str; 24] = [
        "an", "ber", "con", "dis", "el", "for", "gra", "hi", "in", "jo", "ka", "lo", "men", "ne", "or", "per", "qui",
        "re", "sta", "ti", "un", "ver", "wi", "yl",
    ];
    let mut chance = Chance(7);
    let mut made: Vec<String> = Vec::new();
    for at in 0..count {
        if at % 8 == 7 {
            let copy = made[at - 1].replace("men", "man").replacen(". ", ", ", 3);
            made.push(copy);
            continue;
        }
        let mut text = String::new();
        while text.len() < 3000 {
            // Few words are frequent, and many are rare: the number of a word is a product of two chances.
            let mut word = chance.below(60) * chance.below(60);
            let begins = text.is_empty() || text.ends_with(". ");
            for place in 0..1 + word % 3 {
                let syllable = SYLLABLES[word % SYLLABLES.len()];
                let (first, rest) = syllable.split_at(usize::from(begins && place == 0));
                text.push_str(&first.to_ascii_uppercase());
                text.push_str(rest);
                word /= 5;
            }
            match chance.below(40) {
                0 => text.push_str(&format!(" {}", chance.below(3000))),
                1 if mixed => text.push_str("\u{2019}s caf\u{e9}"),
                2 if mixed => text.push_str(" \u{6f22}\u{5b57}\u{304b}"),
                _ => (),
            }
            text.push_str(["", "", "", "", "", "", "", ",", ";", "."][chance.below(10)]);
            text.push(' ');
        }
        made.push(text);
    }
    made
}

fn borrowed(texts: &[String]) -> Texts<'_> {
    Texts::of_strings(texts.iter().map(|text| Cow::Borrowed(text.as_str())))
}

fn recipe(spec: &Spec<'_>, frequencies: Option<Arc<Frozen>>) -> Recipe {
    Recipe::parse(spec, frequencies).unwrap_or_else(|fault| panic!("{fault:?}"))
}

fn texts() {
    let (ascii, mixed) = (documents(32, false), documents(32, true));
    let cancel = Cancel::new();
    let mut out = Vec::new();
    for (name, texts) in [("normalise, ASCII", &ascii), ("normalise, mixed", &mixed)] {
        counted(name, || {
            texts.iter().filter(|text| Normalization::Text.apply(text.as_str(), black_box(&mut out))).count()
        });
    }
    for (name, features) in [("cut, words:3", Features::Words(3)), ("cut, mixed:4", Features::Mixed(4))] {
        let mut parts = Parts::default();
        let normalized: Vec<Vec<u8>> = ascii
            .iter()
            .map(|text| {
                Normalization::Text.apply(text.as_str(), &mut out);
                out.clone()
            })
            .collect();
        counted(name, || {
            for text in &normalized {
                out.clear();
                out.extend_from_slice(text);
                features.cut(&mut out, true, false, black_box(&mut parts));
            }
        });
    }
    let compat = Spec { digest_slice: "last", bit_order: "big", empty: "feature", ..TEXT };
    for (name, spec, texts) in [
        ("chars:4, ASCII", Spec { features: "chars:4", weights: "count", ..TEXT }, &ascii),
        ("chars:4, 1,024 bits", Spec { features: "chars:4", weights: "count", bits: 1024, ..TEXT }, &ascii),
        ("chars:4, mixed", Spec { features: "chars:4", weights: "count", ..TEXT }, &mixed),
        ("words:3, ASCII", Spec { features: "words:3", weights: "count", ..TEXT }, &ascii),
        ("text, unfitted, 64 bits", Spec { weights: "log", ..TEXT }, &ascii),
        (
            "simhash",
            Spec { normalize: "word-chars", features: "chars:4", weights: "count", hash: "md5", ..compat },
            &ascii,
        ),
        (
            "news",
            Spec { normalize: "ascii-words", features: "words:1", weights: "count", hash: "fnv1a64", ..TEXT },
            &ascii,
        ),
    ] {
        let recipe = recipe(&spec, None);
        counted(name, || recipe.fingerprints(&borrowed(texts), ONE, &cancel));
    }

    let plain = recipe(&TEXT, None);
    counted("survey", || survey::survey(&plain, &borrowed(&ascii), None, [1; 32], ONE, &cancel));
    counted("count features into a table", || {
        let table = Frequencies::new(DEFAULT_MAX_FEATURES);
        plain.count(&borrowed(&ascii), &table, ONE, &cancel);
        table
    });
    let many = documents(256, false);
    let mut table = Frequencies::new(DEFAULT_MAX_FEATURES);
    plain.count(&borrowed(&many), &table, ONE, &cancel);
    table.settle();
    counted("freeze a table", || table.freeze());
    let frozen = Arc::new(table.freeze());
    // In the widest ones votes are nearly all there is to do.
    for (name, bits) in [
        ("text, fitted, 64 bits", 64),
        ("text, fitted, 128 bits", 128),
        ("text, fitted, 256 bits", 256),
        ("text, fitted, 1,024 bits", 1024),
    ] {
        let recipe = recipe(&Spec { bits, ..TEXT }, Some(frozen.clone()));
        counted(name, || recipe.fingerprints(&borrowed(&ascii), ONE, &cancel));
    }

    let mut scratch = Scratch::default();
    counted("tally", || {
        ascii.iter().map(|text| plain.counted(text.as_str(), &mut scratch).1.hashes.len()).sum::<usize>()
    });
    let found: Vec<(Vec<u64>, Vec<u32>)> = ascii
        .iter()
        .map(|text| {
            let found = plain.counted(text.as_str(), &mut scratch).1;
            (found.hashes.to_vec(), found.grams.to_vec())
        })
        .collect();
    let mut classes = Vec::new();
    counted("look up frequencies", || {
        for (hashes, grams) in &found {
            frozen.classes(hashes, grams, black_box(&mut classes));
        }
    });

    let all: Vec<(u32, u32)> = (0..32).flat_map(|left| (left + 1..32).map(move |right| (left, right))).collect();
    let verifier = || {
        let mut verifier = Verifier::new(Arc::new(recipe(&TEXT, None)), Some(frozen.clone()), false, 1 << 28, None);
        for (number, text) in (0..).zip(&ascii) {
            verifier.add(number, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
        verifier
    };
    // Two of the three pairs have all the profiles made; the rest is measuring.
    let ends: Vec<(u32, u32)> = (0..31).map(|left| (left, left + 1)).collect();
    counted("profiles", || verifier().measure(&ends, ONE, &cancel).is_ok());
    let mut known = verifier();
    counted("measure pairs", || known.measure(&all, ONE, &cancel).is_ok());
    counted("judge and contest pairs", || {
        known.judge_together(&all, &Rule::DEFAULT, (2000, 9000), ONE, &cancel).is_ok()
    });

    let lines: String = (0..)
        .zip(&mixed)
        .map(|(at, text)| format!("{{\"id\": \"{at}\", \"n\": [1.5, null], \"text\": \"{text}\"}}\n"))
        .collect();
    counted("read JSON Lines", || jsonl::records_of(lines.as_bytes(), "text", "id").is_some());
}

/// Random rows of *width* words; every tenth is another one with *flips* bits changed.
fn rows(count: usize, width: usize, flips: usize) -> Vec<u64> {
    let mut chance = Chance(11);
    let mut words: Vec<u64> = Vec::new();
    for at in 0..count {
        if at % 10 == 9 {
            let from = chance.below(at) * width;
            let mut copy = words[from..from + width].to_vec();
            for _ in 0..flips {
                let bit = chance.below(64 * width);
                copy[bit / 64] ^= 1 << (bit % 64);
            }
            words.extend(copy);
        } else {
            words.extend((0..width).map(|_| chance.word()));
        }
    }
    words
}

fn ask(bits: usize, radius: u32, plan: Option<&str>) -> Ask {
    Ask::new((bits, radius, 1.0), ONE, plan, None).unwrap_or_else(|fault| panic!("{fault:?}"))
}

fn distances<const W: usize>(name: &str, count: usize, radius: u32) {
    let (rows, mut hits) = (rows(count, W, 3), Vec::new());
    let planes: Vec<Vec<u64>> = (0..W).map(|word| rows.iter().skip(word).step_by(W).copied().collect()).collect();
    let planes: [&[u64]; W] = std::array::from_fn(|word| planes[word].as_slice());
    counted(name, || {
        hits.clear();
        pairs_within(&planes, 0..count, radius, black_box(&mut hits));
        pairs_between(&planes, 0..count / 2, &planes, count / 2..count, radius, black_box(&mut hits));
    });
}

fn fingerprints() {
    let cancel = Cancel::new();
    distances::<1>("distances, 64 bits, radius 3", 1000, 3);
    distances::<1>("distances, 64 bits, radius 12", 1000, 12);
    distances::<2>("distances, 128 bits", 1000, 32);
    distances::<4>("distances, 256 bits", 1000, 84);
    distances::<16>("distances, 1,024 bits", 300, 300);
    for (name, count, width, radius, plan) in [
        ("join, 64 bits, radius 3", 40_000, 1, 3, None),
        ("join, 128 bits, radius 12", 20_000, 2, 12, None),
        ("join, 256 bits, radius 84, brute", 1_500, 4, 84, Some("brute")),
        ("join, 256 bits, radius 31", 10_000, 4, 31, None),
    ] {
        let words = rows(count, width, radius.min(8) as usize);
        counted(name, || join_rows(Given::whole(&words, width), &ask(64 * width, radius, plan), &cancel));
    }
    let words = rows(40_000, 1, 3);
    let given = Given::whole(&words, 1);
    counted("groups, 64 bits, radius 3", || groups_of_rows(given, None, &ask(64, 3, None), &cancel).is_ok());
    counted("nearest, 64 bits, radius 3", || {
        let any = Comparable { within: None, across: None, fixed: None };
        nearest_rows(given, 8, any, &ask(64, 3, None), &cancel)
    });

    for (bits, radius, count, [build, search, one]) in [
        (64, 3, 40_000, ["index 64 bits, build", "index 64 bits, search many", "index 64 bits, search one"]),
        (256, 31, 20_000, ["index 256 bits, build", "index 256 bits, search many", "index 256 bits, search one"]),
    ] {
        let width = bits / 64;
        let words = rows(count, width, radius as usize / 2);
        let ids: Vec<i64> = (0..count as i64).collect();
        let built = || {
            let mut index = AnyIndex::new(bits, radius);
            let added = index.add(Names::Numbers(&ids), Given::whole(&words, width), Names::NONE, 1);
            assert_eq!(added, Ok(()));
            index
        };
        counted(build, built);
        let index = built();
        let some = Given::whole(&words[..width * 500], width);
        counted(search, || index.search(some, radius, 1, &cancel).map(|hits| hits.len()));
        counted(one, || (0..200).map(|at| index.search_one(some.row(at), radius).len()).sum::<usize>());
    }

    let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let values = rows(names.len(), 1, 2);
    counted("SimhashIndex", || {
        let mut stream = compat::stream(64, 2, &[0..21, 21..42, 42..64], u32::MAX);
        for (name, value) in names.iter().zip(&values) {
            stream.add(name.as_bytes(), &[*value]);
        }
        stream.settle();
        let mut near = 0;
        for value in &values {
            stream.near(&[*value], &mut |_| near += 1);
        }
        near
    });
}

/// Eight thumbnails: blocks of light and dark, and noise; each the one before it, changed a little.
fn thumbs() -> Vec<u8> {
    let mut chance = Chance(13);
    let blocks: Vec<u8> = (0..256).map(|_| chance.word() as u8).collect();
    let pixel = |at: usize| blocks[at / 128 / 8 * 16 + at % 128 / 8] / 2 + (chance.word() % 64) as u8;
    let mut own: Vec<u8> = (0..PIXELS).map(pixel).collect();
    let mut all = Vec::new();
    for shift in 0..8 {
        all.extend(&own);
        own.rotate_left(128 * (shift % 3) + 1);
    }
    all
}

fn images() {
    let (thumbs, cancel) = (thumbs(), Cancel::new());
    let whole = [([UNIT, 0, 0, 0, UNIT, 0], 1)];
    counted("image, fingerprints", || thumbs::fingerprints_of(&thumbs, &whole, 0, ONE, &cancel).is_ok());
    counted("image, corners", || corners::corners_of(&thumbs[..2 * PIXELS], 100, ONE, &cancel));
    let (left, right) = ([0i64, 1, 2, 3], [1i64, 2, 3, 7]);
    let maps = [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]; 4];
    counted("image, agreement", || thumbs::agreements(&thumbs, &left, &right, &maps, ONE, &cancel).is_ok());
}
