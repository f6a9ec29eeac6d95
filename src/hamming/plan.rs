#![forbid(unsafe_code)]
//! Plans: which tables find all pairs within a radius, and at what cost.
//!
//! The general pigeonhole: cut the bits into blocks `i` with radii `r_i` such that
//! `sum(r_i + 1) = radius + 1`. A pair within the radius is then within `r_i` in some block `i`.
//! Cut that block into `r_i + e` parts: at least `e` parts agree. So one table for each choice
//! of `e` parts, keyed on them, sees the pair. `e = 1` and `r_i = 0` is the classic "one more
//! block than the radius"; one block and `e > 1` is Manku's choice of blocks.
//!
//! Real fingerprints are far from uniform, so the rate at which keys agree is measured on a
//! sample, and bits with little information are dealt out evenly over the parts.

use crate::hamming::keys::Key;
use crate::hamming::tiles::FOLDED;
use crate::system::fault::Fault;
use crate::system::memory::room_for;
use crate::system::simd::{Level, level};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Brute,
    Blocks,
    Sampling,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Brute => "brute",
            Method::Blocks => "blocks",
            Method::Sampling => "sampling",
        }
    }
}

/// Bits that are compared together: a pair may differ in `radius` of `parts` parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub bits: u32,
    pub radius: u32,
    pub parts: u32,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub method: Method,
    pub blocks: Vec<Block>,
    /// The bits each table is keyed on; a pair is seen by a table where they all agree.
    pub masks: Vec<Vec<u64>>,
    /// How often two fingerprints of the sample agree in a key, on average over tables.
    pub collision: f64,
    pub seconds: f64,
    pub bytes: u64,
    pub recall: f64,
}

impl Plan {
    /// Bits that the first table is keyed on; 0 without tables.
    pub fn key_bits(&self) -> u32 {
        self.masks.first().map_or(0, |mask| mask.iter().map(|word| word.count_ones()).sum())
    }
}

/// What is to be joined.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub rows: usize,
    /// Rows of the second set, if there is one.
    pub other: Option<usize>,
    pub words: usize,
    pub radius: u32,
    pub recall: f64,
    pub threads: usize,
}

/// What the caller insists on; `Any` lets cost decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    Any,
    Brute,
    Blocks,
    /// This many blocks, and this many parts more than each block's radius.
    Cut {
        blocks: u32,
        extra: u32,
    },
    Sampling,
}

impl Force {
    /// What a caller says: nothing, or one of the names.
    pub fn of(text: Option<&str>) -> Result<Force, Fault> {
        let unknown =
            |text| Fault::Value(format!("unknown plan '{text}'; known: brute, blocks, blocks:COUNT,EXTRA, sampling"));
        text.map_or(Ok(Force::Any), |text| Force::parse(text).ok_or_else(|| unknown(text)))
    }

    /// `brute`, `blocks`, `blocks:4,1` (four blocks, one part more than the radius), `sampling`.
    fn parse(text: &str) -> Option<Force> {
        Some(match text {
            "brute" => Force::Brute,
            "blocks" => Force::Blocks,
            "sampling" => Force::Sampling,
            text => {
                let (blocks, extra) = text.strip_prefix("blocks:")?.split_once(',')?;
                match (blocks.parse(), extra.parse()) {
                    (Ok(blocks @ 1..=4096), Ok(extra @ 1..=16)) => Force::Cut { blocks, extra },
                    _ => return None,
                }
            }
        })
    }
}

/// Nanoseconds of one core: moving a row through one table. Tables that share a move are charged as others.
const MOVE: f64 = 9.0;
const MOVE_WORD: f64 = 3.0;

/// Nanoseconds of one core for one pair, as measured at a level: within a bucket, and among all.
#[derive(Clone, Copy, Debug)]
struct Costs {
    compare: f64,
    compare_word: f64,
    brute: f64,
    brute_word: f64,
}

/// Those of AVX-512, by which all levels choose where an answer depends on the tables.
const FIXED: Costs = Costs { compare: 0.03, compare_word: 0.075, brute: 0.035, brute_word: 0.065 };

impl Costs {
    /// The costs at the level in use, for a radius that is small enough for folds or not.
    fn here(radius: u32) -> Costs {
        let (folded, compare, word) = match level() {
            Level::Avx512 => return FIXED,
            Level::Avx512Base => (0.11, 0.10, 0.28),
            Level::Avx2 => (0.12, 0.15, 0.36),
            Level::Neon => (0.18, 0.20, 0.50),
            Level::Scalar => (0.25, 0.30, 1.00),
        };
        let (compare, word) = if radius <= FOLDED { (folded, 0.0) } else { (compare, word) };
        Costs { compare, compare_word: word, brute: compare, brute_word: word }
    }
}

const MAX_TABLES: f64 = 3000.0;
const MAX_KEY: usize = 28;
/// Buckets of about this many rows cost least.
const BUCKET: f64 = 8.0;
/// Bits with less information than this are not worth their place in a key.
const TELLING: f64 = 1.0 / 64.0;

/// Some rows of the data, equal ones once.
pub struct Sample {
    words: usize,
    rows: Vec<u64>,
    /// Bits that may differ, most informative first, with their information.
    bits: Vec<(u32, f64)>,
    /// So many of them are as good as each other, in the order of their places, and the others tell nothing; or none.
    alike: usize,
    /// The information of all bits together.
    information: f64,
}

impl Sample {
    /// Rows picked at seeded places of `data`; only bits in `free` are ever used for keys.
    pub fn new(data: &[u64], words: usize, free: &[u64]) -> Sample {
        let total = data.len() / words.max(1);
        let wanted = (total / 256).clamp(1024, 16384).min(total);
        let mut picked: Vec<&[u64]> = if wanted == total {
            data.chunks_exact(words).collect()
        } else {
            let mut state = 0x6e65_6172_6475_7001;
            (0..wanted)
                .map(|_| {
                    let at = ((u128::from(split_mix(&mut state)) * total as u128) >> 64) as usize;
                    &data[at * words..(at + 1) * words]
                })
                .collect()
        };
        picked.sort_unstable();
        picked.dedup();
        let count = picked.len();
        let mut rows: Vec<u64> = room_for(count * words);
        picked.into_iter().for_each(|row| rows.extend_from_slice(row));
        let mut ones = vec![0u32; words * 64];
        for row in rows.chunks_exact(words) {
            for (word, &value) in row.iter().enumerate() {
                for (bit, one) in ones[word * 64..word * 64 + 64].iter_mut().enumerate() {
                    *one += (value >> bit & 1) as u32;
                }
            }
        }
        let mut bits: Vec<(u32, f64)> = (0..words as u32 * 64)
            .filter(|&bit| free[bit as usize / 64] >> (bit % 64) & 1 == 1)
            .map(|bit| {
                let share = f64::from(ones[bit as usize]) / (count.max(1) as f64);
                (bit, -(share * share + (1.0 - share) * (1.0 - share)).log2())
            })
            .collect();
        let good = |information: f64| count < 64 || information > 0.9;
        let mut alike = 0;
        if bits.iter().all(|&(_, information)| good(information) || information < TELLING) {
            for bit in bits.iter_mut().filter(|bit| good(bit.1)) {
                bit.1 = 1.0;
                alike += 1;
            }
        }
        bits.sort_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
        let information = bits.iter().map(|bit| bit.1).sum();
        Sample { words, rows, bits, alike, information }
    }

    pub fn len(&self) -> usize {
        self.rows.len() / self.words.max(1)
    }

    pub fn words(&self) -> usize {
        self.words
    }

    /// A row of the sample; they are in order.
    pub fn row(&self, at: usize) -> &[u64] {
        &self.rows[at * self.words..(at + 1) * self.words]
    }

    /// The bits that are worth their place in a key, most informative first, with their information.
    pub fn telling(&self) -> &[(u32, f64)] {
        &self.bits[..self.bits.partition_point(|bit| bit.1 >= TELLING)]
    }

    /// Whether these are as good as each other, and in the order of their places.
    pub fn is_even(&self) -> bool {
        self.alike > 0 && self.alike == self.telling().len()
    }

    /// The share of pairs of sample rows that agree in all bits of `mask`.
    fn collision(&self, mask: &[u64]) -> f64 {
        let count = self.len();
        let bits: u32 = mask.iter().map(|word| word.count_ones()).sum();
        let least = 0.5f64.powi(bits as i32);
        if count < 2 {
            return least;
        }
        let mut keys: Vec<u64> = if bits <= 32 {
            let key = Key::new(mask);
            match self.words {
                1 => self.rows.as_chunks::<1>().0.iter().map(|row| key.of(row).into()).collect(),
                2 => self.rows.as_chunks::<2>().0.iter().map(|row| key.of(row).into()).collect(),
                _ => self.masked(mask),
            }
        } else {
            self.masked(mask)
        };
        keys.sort_unstable();
        let equal: f64 =
            keys.chunk_by(|one, two| one == two).map(|run| run.len() as f64 * (run.len() as f64 - 1.0) / 2.0).sum();
        (equal / (count as f64 * (count as f64 - 1.0) / 2.0)).max(least)
    }

    /// Masks that share the bits: in runs if they are equally informative, else the informative ones in turn.
    fn dealt(&self, parts: usize) -> Vec<Vec<u64>> {
        let mut masks = vec![vec![0; self.words]; parts];
        let mut deal = |bits: &[(u32, f64)], part: &dyn Fn(usize) -> usize| {
            for (place, &(bit, _)) in bits.iter().enumerate() {
                masks[part(place)][bit as usize / 64] |= 1 << (bit % 64);
            }
        };
        if self.alike >= parts {
            let (alike, others) = self.bits.split_at(self.alike);
            deal(alike, &|place| place * parts / alike.len());
            deal(others, &|place| place * parts / others.len());
        } else {
            deal(&self.bits, &|place| {
                let (lap, step) = (place / parts, place % parts);
                if lap.is_multiple_of(2) { step } else { parts - 1 - step }
            });
        }
        masks
    }

    fn masked(&self, mask: &[u64]) -> Vec<u64> {
        let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.rows
            .chunks_exact(self.words)
            .map(|row| row.iter().zip(mask).fold(0, |state, (word, mask)| mix(state, word & mask)))
            .collect()
    }
}

/// The cheapest plan that `force` allows.
///
/// The choice never depends on the number of threads, nor, where not all pairs need to be found, on the level: so
/// neither does a sampled answer.
pub fn plan(sample: &Sample, task: &Task, force: Force) -> Plan {
    let costs = if task.recall < 1.0 { FIXED } else { Costs::here(task.radius) };
    let mut plan = cheapest(sample, task, force, &costs);
    plan.seconds /= task.threads as f64;
    plan
}

fn cheapest(sample: &Sample, task: &Task, force: Force, costs: &Costs) -> Plan {
    let brute = brute(task, costs);
    match force {
        Force::Brute => return brute,
        Force::Cut { blocks, extra } => {
            return blocks_plan(sample, task, blocks, extra, costs).unwrap_or(brute);
        }
        Force::Sampling if task.recall < 1.0 => return sampling(sample, task, costs).unwrap_or(brute),
        _ => {}
    }
    let mut best = if force == Force::Any { Some(brute.clone()) } else { None };
    // The model's cost orders the candidates; the few best are measured.
    let mut cuts: Vec<(f64, u32, u32)> = Vec::new();
    // Whatever the cut, there are more tables than the radius.
    let most = if f64::from(task.radius) < MAX_TABLES { task.radius + 1 } else { 0 };
    for blocks in (1..=most).rev() {
        for extra in 1..=6 {
            if let Some(cost) = modelled(sample, task, blocks, extra, costs) {
                cuts.push((cost, blocks, extra));
            }
        }
    }
    cuts.sort_by(|one, two| one.0.total_cmp(&two.0));
    for &(cost, blocks, extra) in cuts.iter().take(6) {
        // Biased bits only make a plan dearer than its model.
        if best.as_ref().is_some_and(|best| best.seconds < cost) {
            break;
        }
        if let Some(plan) = blocks_plan(sample, task, blocks, extra, costs)
            && best.as_ref().is_none_or(|best| plan.seconds < best.seconds)
        {
            best = Some(plan);
        }
    }
    if task.recall < 1.0
        && force == Force::Any
        && let Some(plan) = sampling(sample, task, costs)
        && best.as_ref().is_none_or(|best| plan.seconds < best.seconds / 2.0)
    {
        // An exact answer for less than twice the cost is the better bargain.
        best = Some(plan);
    }
    best.unwrap_or(brute)
}

fn pairs_of(task: &Task) -> f64 {
    let rows = task.rows as f64;
    match task.other {
        Some(other) => rows * other as f64,
        None => rows * (rows - 1.0).max(0.0) / 2.0,
    }
}

fn rows_of(task: &Task) -> f64 {
    (task.rows + task.other.unwrap_or(0)) as f64
}

fn brute(task: &Task, costs: &Costs) -> Plan {
    let words = task.words as f64;
    Plan {
        method: Method::Brute,
        blocks: Vec::new(),
        masks: Vec::new(),
        collision: 1.0,
        seconds: (pairs_of(task) * (costs.brute + costs.brute_word * words) + rows_of(task) * 60.0 * words) * 1e-9,
        bytes: (rows_of(task) * words * 16.0) as u64,
        recall: 1.0,
    }
}

fn cost(task: &Task, tables: f64, collision: f64, costs: &Costs) -> f64 {
    let words = task.words as f64;
    let moved = rows_of(task) * (MOVE + MOVE_WORD * words) * (tables + 1.0);
    let compared = pairs_of(task) * collision * tables * (costs.compare + costs.compare_word * words);
    (moved + compared) * 1e-9 + tables * 20e-6
}

fn cut_of(task: &Task, blocks: u32, extra: u32) -> (Vec<(u32, u32)>, u32) {
    // (radius, parts) of each block; all parts together.
    let (each, more) = ((task.radius + 1) / blocks, (task.radius + 1) % blocks);
    let cut: Vec<(u32, u32)> = (0..blocks)
        .map(|block| {
            let radius = each + u32::from(block < more) - 1;
            (radius, radius + extra)
        })
        .collect();
    let parts = cut.iter().map(|part| part.1).sum();
    (cut, parts)
}

fn modelled(sample: &Sample, task: &Task, blocks: u32, extra: u32, costs: &Costs) -> Option<f64> {
    let (cut, parts) = cut_of(task, blocks, extra);
    if parts as usize > sample.bits.len() {
        return None;
    }
    let tables: f64 = cut.iter().map(|&(_, parts)| choose(parts, extra)).sum();
    if tables > MAX_TABLES {
        return None;
    }
    let information = sample.information * f64::from(extra) / f64::from(parts);
    let least = (BUCKET / rows_of(task).max(1.0)).max(0.5f64.powi(MAX_KEY as i32));
    Some(cost(task, tables, 0.5f64.powf(information).max(least), costs))
}

fn blocks_plan(sample: &Sample, task: &Task, blocks: u32, extra: u32, costs: &Costs) -> Option<Plan> {
    let (cut, parts) = cut_of(task, blocks, extra);
    let tables: f64 = cut.iter().map(|&(_, parts)| choose(parts, extra)).sum();
    if parts as usize > sample.bits.len() || tables > MAX_TABLES {
        return None;
    }
    let dealt = sample.dealt(parts as usize);
    let mut masks = Vec::new();
    let mut shown = Vec::new();
    let mut first = 0;
    for &(radius, parts) in &cut {
        let own = &dealt[first as usize..(first + parts) as usize];
        first += parts;
        choices(parts, extra, &mut |chosen| {
            let mut mask = vec![0; task.words];
            for &part in chosen {
                for (word, bits) in mask.iter_mut().zip(&own[part as usize]) {
                    *word |= bits;
                }
            }
            masks.push(mask);
        });
        let bits = own.iter().flatten().map(|word| word.count_ones()).sum();
        shown.push(Block { bits, radius, parts });
    }
    Some(finished(sample, task, shown, masks, costs))
}

fn finished(sample: &Sample, task: &Task, blocks: Vec<Block>, mut masks: Vec<Vec<u64>>, costs: &Costs) -> Plan {
    // Keys longer than needed only spread the rows thinner: three masks say how long is enough.
    let step = (masks.len() / 3).max(1);
    let rows = rows_of(task).max(2.0);
    let mut width = (rows.log2() - BUCKET.log2()).ceil().clamp(1.0, MAX_KEY as f64) as usize;
    // More counters than eight for each row would cost more to clear than they save.
    let most = (rows.log2().ceil() as usize + 3).min(MAX_KEY);
    let longest = masks.iter().map(|mask| ones(&shortened(sample, mask, most))).max().unwrap_or(0);
    let mut collision;
    loop {
        let (mut sum, mut count) = (0.0, 0.0);
        for mask in masks.iter().step_by(step) {
            sum += sample.collision(&shortened(sample, mask, width));
            count += 1.0;
        }
        collision = sum / count;
        if width >= longest || rows * collision <= 3.0 * BUCKET {
            break;
        }
        width += 2;
    }
    for mask in &mut masks {
        *mask = shortened(sample, mask, width.min(most));
    }
    Plan {
        method: Method::Blocks,
        blocks,
        collision,
        seconds: cost(task, masks.len() as f64, collision, costs),
        bytes: (rows * task.words as f64 * 16.0) as u64,
        recall: 1.0,
        masks,
    }
}

/// `mask` cut to its `width` most informative bits. Bits that hardly ever differ are left out except for
/// one: at the upper end of a key they would leave most parts of the rows empty, and few very full.
fn shortened(sample: &Sample, mask: &[u64], width: usize) -> Vec<u64> {
    let mut short = vec![0; mask.len()];
    let own = sample.bits.iter().filter(|(bit, _)| mask[*bit as usize / 64] >> (bit % 64) & 1 == 1);
    for (place, &(bit, information)) in own.take(width).enumerate() {
        if place == 0 || information >= TELLING {
            short[bit as usize / 64] |= 1 << (bit % 64);
        }
    }
    short
}

/// Tables keyed on random bits: a pair at the radius is seen by one of them with the asked recall.
fn sampling(sample: &Sample, task: &Task, costs: &Costs) -> Option<Plan> {
    let bits = sample.bits.len();
    let radius = task.radius as usize;
    if radius >= bits || !(task.recall > 0.0 && task.recall < 1.0) {
        return None;
    }
    let mean = sample.information / bits as f64;
    let mut seen = 1.0; // P(all `width` random bits agree) for a pair at the radius
    let mut best: Option<(f64, usize, usize)> = None;
    let most = (rows_of(task).max(2.0).log2().ceil() as usize + 1).min(MAX_KEY);
    for width in 1..=most.min(bits - radius) {
        seen *= (bits - radius - (width - 1)) as f64 / (bits - (width - 1)) as f64;
        let tables = ((1.0 - task.recall).ln() / (1.0 - seen).ln()).ceil().max(1.0);
        if tables > MAX_TABLES {
            break;
        }
        let collision = if width >= 4 {
            sample.collision(&random_masks(sample, task.words, width, 1)[0])
        } else {
            0.5f64.powf(mean * width as f64)
        };
        let seconds = cost(task, tables, collision, costs);
        if best.is_none_or(|best| seconds < best.0) {
            best = Some((seconds, width, tables as usize));
        }
    }
    let (seconds, width, tables) = best?;
    let masks = random_masks(sample, task.words, width, tables);
    let step = (tables / 3).max(1);
    let measured: Vec<f64> = masks.iter().step_by(step).map(|mask| sample.collision(mask)).collect();
    let collision = measured.iter().sum::<f64>() / measured.len() as f64;
    Some(Plan {
        method: Method::Sampling,
        blocks: Vec::new(),
        collision,
        seconds: cost(task, tables as f64, collision, costs).max(seconds * 0.5),
        bytes: (rows_of(task) * task.words as f64 * (8.0 + 8.0 * task.threads as f64)) as u64,
        recall: task.recall,
        masks,
    })
}

/// Masks of `width` bits: the bits in a random order, cut into as many as they give, again and
/// again. Disjoint masks miss a pair together less often than independent ones would.
fn random_masks(sample: &Sample, words: usize, width: usize, count: usize) -> Vec<Vec<u64>> {
    let mut order: Vec<u32> = sample.bits.iter().map(|bit| bit.0).collect();
    order.sort_unstable();
    let mut state = 0x6e65_6172_6475_7002;
    let mut masks = Vec::with_capacity(count);
    while masks.len() < count {
        for last in (1..order.len()).rev() {
            let other = ((u128::from(split_mix(&mut state)) * (last as u128 + 1)) >> 64) as usize;
            order.swap(last, other);
        }
        for chosen in order.chunks_exact(width).take(count - masks.len()) {
            let mut mask = vec![0; words];
            for &bit in chosen {
                mask[bit as usize / 64] |= 1 << (bit % 64);
            }
            masks.push(mask);
        }
    }
    masks
}

/// The next number of a seeded sequence (SplitMix64).
pub fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

pub fn choose(n: u32, k: u32) -> f64 {
    (0..k.min(n)).fold(1.0, |product, i| product * f64::from(n - i) / f64::from(i + 1)).round()
}

fn choices(n: u32, k: u32, each: &mut impl FnMut(&[u32])) {
    let mut chosen: Vec<u32> = (0..k).collect();
    if k > n {
        return;
    }
    loop {
        each(&chosen);
        let Some(place) = (0..k as usize).rev().find(|&i| chosen[i] < n - k + i as u32) else {
            return;
        };
        chosen[place] += 1;
        for later in place + 1..k as usize {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}

fn ones(mask: &[u64]) -> usize {
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

/// The bits below `bits`, as words.
pub fn all_bits(bits: usize, words: usize) -> Vec<u64> {
    (0..words)
        .map(|word| match bits.saturating_sub(word * 64) {
            0 => 0,
            64.. => u64::MAX,
            some => (1 << some) - 1,
        })
        .collect()
}

/// Index tables: blocks with a radius each, probed by flipping up to that many key bits.
#[derive(Clone, Debug)]
pub struct Probe {
    pub mask: Vec<u64>,
    pub radius: u32,
}

/// Nanoseconds: one look into a table, and each word of a fingerprint compared in a bucket.
const LOOK: f64 = 12.0;
const SCAN_WORD: f64 = 0.12;

/// Nanoseconds for a fingerprint of so many words that is compared because all are.
fn scan(words: usize) -> f64 {
    let (own, word) = match level() {
        Level::Avx512 => (0.1, 0.04),
        Level::Avx512Base => (0.15, 0.1),
        Level::Avx2 | Level::Neon => (0.2, 0.1),
        Level::Scalar => (0.6, 0.6),
    };
    own + word * words as f64
}

/// The tables with which one fingerprint is found among `rows` for the least cost, and that in nanoseconds; no table
/// means: look at all.
pub fn probes(sample: &Sample, rows: usize, words: usize, radius: u32, most_tables: usize) -> (f64, Vec<Probe>) {
    let count = rows as f64;
    let mut best: (f64, Vec<Probe>) = (count * scan(words), Vec::new());
    let cap = ((count.max(2.0).log2() - 1.0).floor() as usize).clamp(4, 26);
    for blocks in 1..=(radius + 1).min(most_tables as u32) {
        if blocks as usize > sample.bits.len() {
            break;
        }
        let task = Task { rows, other: None, words, radius, recall: 1.0, threads: 1 };
        let (cut, _) = cut_of(&task, blocks, 1);
        let widest = cut.iter().map(|part| part.0).max().unwrap_or(0);
        if widest > 4 {
            continue;
        }
        let dealt = sample.dealt(blocks as usize);
        let mut cost = 0.0;
        let mut tables = Vec::new();
        for (mask, &(radius, _)) in dealt.iter().zip(&cut) {
            // Shorter keys need fewer flips; longer ones give smaller buckets: try some.
            let most = ones(mask).min(cap);
            let mut chosen: Option<(f64, Vec<u64>)> = None;
            for width in [most, most.saturating_sub(2), most.saturating_sub(4)] {
                if width == 0 {
                    continue;
                }
                let mask = shortened(sample, mask, width);
                let looks: f64 = (0..=radius).map(|flips| choose(width as u32, flips)).sum();
                let collision = sample.collision(&mask);
                let own = looks * (LOOK + count * collision * SCAN_WORD * words as f64);
                if chosen.as_ref().is_none_or(|chosen| own < chosen.0) {
                    chosen = Some((own, mask));
                }
            }
            let Some((own, mask)) = chosen else { continue };
            cost += own;
            tables.push(Probe { mask, radius });
        }
        if tables.len() == blocks as usize && cost < best.0 {
            best = (cost, tables);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_named_as_it_is_written() {
        assert_eq!(Force::parse("blocks:4,1"), Some(Force::Cut { blocks: 4, extra: 1 }));
        assert_eq!(Force::parse("sampling"), Some(Force::Sampling));
        for wrong in ["", "any", "blocks:", "blocks:4", "blocks:0,1", "blocks:4,17", "blocks:4,1,1"] {
            assert_eq!(Force::parse(wrong), None);
        }
    }

    fn uniform(rows: usize, words: usize) -> Vec<u64> {
        let mut state = 7;
        (0..rows * words).map(|_| split_mix(&mut state)).collect()
    }

    #[test]
    fn every_pair_within_the_radius_is_seen_by_a_table() {
        let data = uniform(3000, 1);
        let sample = Sample::new(&data, 1, &[u64::MAX]);
        let mut state = 1;
        for radius in 0..8 {
            for blocks in 1..=radius + 1 {
                for extra in 1..4 {
                    let task = Task { rows: 3000, other: None, words: 1, radius, recall: 1.0, threads: 1 };
                    let plan = plan(&sample, &task, Force::Cut { blocks, extra });
                    for _ in 0..200 {
                        let mut difference = 0u64;
                        for _ in 0..radius {
                            difference |= 1 << (split_mix(&mut state) % 64);
                        }
                        assert!(
                            plan.masks.iter().any(|mask| difference & mask[0] == 0),
                            "radius {radius}, {blocks} blocks, {extra} extra"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn few_rows_are_compared_one_by_one_and_many_in_tables() {
        let few = uniform(300, 1);
        let task = |rows| Task { rows, other: None, words: 1, radius: 3, recall: 1.0, threads: 2 };
        let sample = Sample::new(&few, 1, &[u64::MAX]);
        assert_eq!(plan(&sample, &task(300), Force::Any).method, Method::Brute);
        let many = uniform(200_000, 1);
        let sample = Sample::new(&many, 1, &[u64::MAX]);
        let plan = plan(&sample, &task(200_000), Force::Any);
        assert_eq!((plan.method, plan.masks.len()), (Method::Blocks, 4));
    }

    #[test]
    fn constant_bits_are_dealt_evenly_over_the_blocks() {
        // The low 16 bits never vary: a block made of them would hold everything.
        let data: Vec<u64> = uniform(20_000, 1).iter().map(|word| word << 16).collect();
        let sample = Sample::new(&data, 1, &[u64::MAX]);
        let task = Task { rows: 20_000, other: None, words: 1, radius: 3, recall: 1.0, threads: 1 };
        let plan = plan(&sample, &task, Force::Cut { blocks: 4, extra: 1 });
        for mask in &plan.masks {
            assert!((mask[0] >> 16).count_ones() >= 10, "{mask:x?}");
            // The others are as good as each other: adjacent ones make the cheaper keys.
            let telling = mask[0] >> 16;
            assert_eq!(telling >> telling.trailing_zeros(), (1 << telling.count_ones()) - 1, "{mask:x?}");
        }
        // No part is left without bits, whatever their number.
        for parts in 1..=64 {
            assert!(sample.dealt(parts).iter().all(|mask| mask[0] != 0), "{parts} parts");
        }
    }
}
