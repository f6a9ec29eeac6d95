#![forbid(unsafe_code)]
//! Images: fingerprints of thumbnails, and the measured agreement of two of them.
//!
//! An image is a grey thumbnail of 128 x 128 bytes, whatever its shape was. Its fingerprint is the
//! signs of the 256 lowest frequencies of its cosine transform, in integers. Two images are aligned
//! by an affine map that is improved step by step (Gauss-Newton, with weights that make parts that
//! differ count little); then block after block says whether the same is to be seen there.

use crate::system::fault::{Fault, require};
use crate::system::memory::{filled, zeros};
use crate::system::parallel::{Cancel, drain, thread_count};

pub const SIDE: usize = 128;
pub const PIXELS: usize = SIDE * SIDE;
pub const BITS: usize = 256;
const GRID: usize = 64;
const CELLS: usize = GRID * GRID;
/// Frequencies from 0 to this one, in each direction.
const TOP: usize = 22;
/// Fixed point of the maps of `View`.
pub const UNIT: i64 = 1 << 16;

/// A way to look at an image: where the samples of a 64 x 64 grid lie in its thumbnail, in 1/65536 pixels.
#[derive(Clone, Copy, Debug)]
pub struct View(pub [i64; 6]);

/// The frequencies of the 256 bits: all with a sum of at most 21 but 0,0, and four of 22.
fn frequencies() -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = (1..TOP).flat_map(|sum| (0..=sum).map(move |u| (u, sum - u))).collect();
    found.extend([(10, 12), (12, 10), (9, 13), (13, 9)]);
    found
}

/// What every fingerprint needs: the cosines in 1/4096, and which frequency is which bit.
pub struct Tables {
    cosines: Vec<[i16; GRID]>,
    frequencies: Vec<(usize, usize)>,
}

impl Tables {
    pub fn new() -> Tables {
        let cosine = |k: usize, x: usize| {
            let angle = std::f64::consts::PI * ((2 * x + 1) * k % 256) as f64 / 128.0;
            (angle.cos() * 4096.0).round() as i16
        };
        let cosines = (0..TOP).map(|k| std::array::from_fn(|x| cosine(k, x))).collect();
        Tables { cosines, frequencies: frequencies() }
    }

    /// The transform of 64 x 64 samples of at most 10 bits: `[v][u]`, v down, u across.
    ///
    /// Sums of the first step stay below 2^29, those of the second below 2^47: exact in 64-bit floats.
    fn transform(&self, samples: &[i16; CELLS]) -> [[f64; TOP]; TOP] {
        let mut rows = [[0f64; TOP]; GRID];
        for (row, line) in rows.iter_mut().zip(samples.chunks_exact(GRID)) {
            for (value, cosine) in row.iter_mut().zip(&self.cosines) {
                let products = line.iter().zip(cosine).map(|(&a, &b)| i32::from(a) * i32::from(b));
                *value = f64::from(products.fold(0i32, i32::wrapping_add));
            }
        }
        let mut found = [[0f64; TOP]; TOP];
        for (line, cosine) in found.iter_mut().zip(&self.cosines) {
            for (row, &factor) in rows.iter().zip(cosine) {
                let factor = f64::from(factor);
                for (value, &part) in line.iter_mut().zip(row) {
                    *value += factor * part;
                }
            }
        }
        found
    }

    /// The bits of the image seen through a symmetry: 1 mirrors across, 2 down, 4 swaps the axes first.
    fn bits(&self, transform: &[[f64; TOP]; TOP], symmetry: u8) -> [u64; 4] {
        let mut words = [0u64; 4];
        for (at, &(u, v)) in self.frequencies.iter().enumerate() {
            let (u, v) = if symmetry & 4 != 0 { (v, u) } else { (u, v) };
            let odd = (symmetry & 1 != 0 && u % 2 == 1) != (symmetry & 2 != 0 && v % 2 == 1);
            let value = if odd { -transform[v][u] } else { transform[v][u] };
            if value > 0.0 {
                words[at / 64] |= 1 << (at % 64);
            }
        }
        words
    }
}

/// A place along an axis: the pixel before it, the one behind it, and how far it is to that, in 1/256.
fn between(place: i64) -> (usize, usize, i32) {
    let place = place.clamp(0, (SIDE as i64 - 1) * UNIT);
    let before = (place / UNIT) as usize;
    (before, (before + 1).min(SIDE - 1), ((place % UNIT) >> 8) as i32)
}

/// The samples of a view, in quarters of a grey level; the edge is continued outside of the image.
fn look(thumb: &[u8], view: &View) -> [i16; CELLS] {
    let [xx, xy, x0, yx, yy, y0] = view.0;
    let mut samples = [0i16; CELLS];
    let columns: [_; GRID] = std::array::from_fn(|x| between(xx * x as i64 + x0));
    for (y, line) in samples.chunks_exact_mut(GRID).enumerate() {
        let across = between(yy * y as i64 + y0);
        for (x, sample) in line.iter_mut().enumerate() {
            let ((left, right, fx), (above, below, fy)) = if xy == 0 && yx == 0 {
                (columns[x], across)
            } else {
                let (x, y) = (x as i64, y as i64);
                (between(xx * x + xy * y + x0), between(yx * x + yy * y + y0))
            };
            let pixel = |row: usize, column: usize| i32::from(thumb[row * SIDE + column]);
            let high = pixel(above, left) * (256 - fx) + pixel(above, right) * fx;
            let low = pixel(below, left) * (256 - fx) + pixel(below, right) * fx;
            *sample = ((high * (256 - fy) + low * fy) >> 14) as i16;
        }
    }
    samples
}

/// The fingerprints of one image through some views, each with the symmetries whose bits are set in
/// `symmetries`; None where a view deviates from its mean by less than `least` quarters of a grey level.
pub fn fingerprints(
    tables: &Tables,
    thumb: &[u8],
    views: &[(View, u8)],
    least: i64,
    mut put: impl FnMut(Option<[u64; 4]>),
) {
    for (view, symmetries) in views {
        let samples = look(thumb, view);
        let count = CELLS as i64;
        let sum: i64 = samples.iter().map(|&value| i64::from(value)).sum();
        let squares: i64 = samples.iter().map(|&value| i64::from(i32::from(value) * i32::from(value))).sum();
        let told = count * squares - sum * sum >= least * least * count * count;
        let transform = told.then(|| tables.transform(&samples));
        for symmetry in (0..8u8).filter(|symmetry| symmetries >> symmetry & 1 == 1) {
            put(transform.as_ref().map(|transform| tables.bits(transform, symmetry)));
        }
    }
}

/// The words of the fingerprints of many thumbnails, one after the other in *thumbs*, and which are there: for each
/// thumbnail those of all views. Ends early when *cancel* is set.
pub fn fingerprints_of(
    thumbs: &[u8],
    views: &[([i64; 6], u8)],
    least: i64,
    threads: Option<usize>,
    cancel: &Cancel,
) -> Result<(Vec<u64>, Vec<bool>), Fault> {
    let too_far = views.iter().any(|(view, _)| view.iter().any(|value| value.unsigned_abs() > 1 << 32));
    require(!too_far, "a view lies too far outside of the image")?;
    let views: Vec<(View, u8)> = views.iter().map(|(view, symmetries)| (View(*view), *symmetries)).collect();
    let each: usize = views.iter().map(|(_, symmetries)| symmetries.count_ones() as usize).sum();
    let (count, tables) = (thumbs.len() / PIXELS, Tables::new());
    let (mut words, mut valid) = (zeros::<[u64; BITS / 64]>(count * each), zeros(count * each));
    if each > 0 {
        let rows = words.chunks_mut(each).zip(valid.chunks_mut(each));
        let threads = thread_count(threads).min(count);
        drain(
            thumbs.chunks_exact(PIXELS).zip(rows),
            threads,
            cancel,
            || (),
            |(), (thumb, (words, valid))| {
                let mut rows = words.iter_mut().zip(valid);
                fingerprints(&tables, thumb, &views, least, |print| {
                    if let (Some((words, valid)), Some(print)) = (rows.next(), print) {
                        (*words, *valid) = (print, true);
                    }
                });
            },
        );
    }
    Ok((words.into_flattened(), valid))
}

/// An affine map of unit squares: x' = m0 x + m1 y + m2, y' = m3 x + m4 y + m5.
pub type Map = [f64; 6];

/// What was found of two images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    pub map: Map,
    /// How the image leans away, beside what the map says: see `Warp`.
    pub lean: [f64; 2],
    /// Shares of the two images that the other one shows as well.
    pub covered: f64,
    pub covering: f64,
    /// Correlation of all of it.
    pub whole: f64,
    /// Mean correlation of the blocks that show something, and the share of them that agree; coarse and fine.
    pub mean: f64,
    pub share: f64,
    pub fine_mean: f64,
    pub fine_share: f64,
    /// How many blocks show something.
    pub blocks: f64,
    /// The share of the blocks not at the rim that agree nearly wholly, in the coarse image: equal frames say
    /// little.
    pub strong: f64,
    /// Mean, share and number of the blocks not at the rim alone, as if there were no others; the share is the
    /// smaller one of the coarse and the fine image.
    pub inner_mean: f64,
    pub inner_share: f64,
    pub inner_blocks: f64,
    /// What each block of the first image says, in the coarse image.
    pub marks: [Mark; BLOCKS * BLOCKS],
}

/// What a block says: that both show the same there or not, that there is nothing to tell by, or that the
/// other image does not show that place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(u8)]
pub enum Mark {
    Agrees,
    Differs,
    #[default]
    Unseen,
    Plain,
}

/// An image at 32, 64 and 128 pixels a side.
struct Levels([Vec<f32>; 3]);

impl Levels {
    fn of(thumb: &[u8]) -> Levels {
        let fine: Vec<f32> = thumb.iter().map(|&value| f32::from(value)).collect();
        let middle = halved(&fine, SIDE);
        let coarse = halved(&middle, SIDE / 2);
        Levels([coarse, middle, fine])
    }
}

fn halved(image: &[f32], side: usize) -> Vec<f32> {
    let half = side / 2;
    let mut found = Vec::with_capacity(half * half);
    for y in 0..half {
        for x in 0..half {
            let at = 2 * y * side + 2 * x;
            found.push((image[at] + image[at + 1] + image[at + side] + image[at + side + 1]) * 0.25);
        }
    }
    found
}

/// Value and slopes (a unit square) at a place of an image; None outside.
fn sample(image: &[f32], side: usize, u: f64, v: f64) -> Option<(f64, f64, f64)> {
    if !(0.0..=1.0).contains(&u) || !(0.0..=1.0).contains(&v) {
        return None;
    }
    let most = (side - 1) as f64;
    let x = (u * side as f64 - 0.5).clamp(0.0, most);
    let y = (v * side as f64 - 0.5).clamp(0.0, most);
    let (column, row) = ((x as usize).min(side - 2), (y as usize).min(side - 2));
    let (fx, fy) = (x - column as f64, y - row as f64);
    let at = row * side + column;
    let (p00, p10) = (f64::from(image[at]), f64::from(image[at + 1]));
    let (p01, p11) = (f64::from(image[at + side]), f64::from(image[at + side + 1]));
    let above = p00 + (p10 - p00) * fx;
    let below = p01 + (p11 - p01) * fx;
    let across = (p10 - p00) * (1.0 - fy) + (p11 - p01) * fy;
    Some((above + (below - above) * fy, across * side as f64, (below - above) * side as f64))
}

fn place(map: &Map, u: f64, v: f64) -> (f64, f64) {
    (map[0] * u + map[1] * v + map[2], map[3] * u + map[4] * v + map[5])
}

/// A map, and how much nearer the right and the lower side of the image were to the eye: what a picture on a
/// wall or a screen is seen by that is not straight ahead. The middle stays where the map has it.
#[derive(Clone, Copy)]
pub struct Warp {
    pub map: Map,
    pub lean: [f64; 2],
}

impl Warp {
    fn flat(map: Map) -> Warp {
        Warp { map, lean: [0.0; 2] }
    }

    pub fn place(&self, u: f64, v: f64) -> (f64, f64) {
        let (x, y) = place(&self.map, u, v);
        if self.lean == [0.0; 2] {
            return (x, y);
        }
        let (middle_x, middle_y) = place(&self.map, 0.5, 0.5);
        let depth = 1.0 + self.lean[0] * (u - 0.5) + self.lean[1] * (v - 0.5);
        (middle_x + (x - middle_x) / depth, middle_y + (y - middle_y) / depth)
    }
}

/// Improve `map`, and the gain and offset of the light, until nothing moves; false if it went astray.
fn improve(one: &[f32], other: &[f32], side: usize, map: &mut Map, light: &mut [f64; 2], rounds: usize) -> bool {
    let step = 1.0 / side as f64;
    let mut points = Vec::with_capacity(side * side);
    for _ in 0..rounds {
        // How far off the values are decides how much a difference counts.
        let (mut seen, mut off) = (0.0, 0.0);
        points.clear();
        for (at, &value) in one.iter().enumerate() {
            // Every second point of the finer image will do.
            if side > SIDE / 4 && (at / side + at) % 2 == 1 {
                continue;
            }
            let (u, v) = (((at % side) as f64 + 0.5) * step, ((at / side) as f64 + 0.5) * step);
            let (x, y) = place(map, u, v);
            if let Some((found, dx, dy)) = sample(other, side, x, y) {
                let rest = f64::from(value) - light[0] * found - light[1];
                seen += 1.0;
                off += rest.abs();
                points.push((u - 0.5, v - 0.5, found, dx, dy, rest));
            }
        }
        if seen < 0.03 * (side * side) as f64 {
            return false;
        }
        let scale = (1.5 * off / seen).max(4.0);
        let mut normal = [[0.0f64; 9]; 8];
        for &(u, v, found, dx, dy, rest) in &points {
            let part = 1.0 / (1.0 + (rest / scale) * (rest / scale));
            let weight = part * part;
            let (gx, gy) = (light[0] * dx, light[0] * dy);
            let row = [gx * u, gx * v, gx, gy * u, gy * v, gy, found, 1.0];
            for (i, line) in normal.iter_mut().enumerate() {
                let scaled = weight * row[i];
                // The whole line: half of it is in vain, but it is one run without a jump.
                for (value, &other) in line.iter_mut().zip(&row) {
                    *value += scaled * other;
                }
                line[8] += scaled * rest;
            }
        }
        for (at, line) in normal.iter_mut().enumerate() {
            line[at] = line[at] * 1.001 + 1e-3;
        }
        let Some(change) = solved(&mut normal) else { return false };
        let moved = change[..6].iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let damp = if moved > 0.1 { 0.1 / moved } else { 1.0 };
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|at| change[at] * damp);
        map[0] += a;
        map[1] += b;
        map[2] += c - 0.5 * (a + b);
        map[3] += d;
        map[4] += e;
        map[5] += f - 0.5 * (d + e);
        light[0] = (light[0] + change[6]).clamp(0.1, 10.0);
        light[1] += change[7];
        let size = (map[0] * map[4] - map[1] * map[3]).abs();
        if !(0.04..=25.0).contains(&size) || map.iter().any(|value| !value.is_finite()) {
            return false;
        }
        if moved < 0.12 * step {
            break;
        }
    }
    true
}

/// Rounds in which a warp is improved, and the most that it may lean.
const LEANING: usize = 6;
const LEAN: f64 = 0.6;

/// Improve a warp as `improve` does a map; false if it went astray.
fn improve_warp(one: &[f32], other: &[f32], side: usize, warp: &mut Warp, light: &mut [f64; 2]) -> bool {
    let step = 1.0 / side as f64;
    let mut points = Vec::with_capacity(side * side / 2);
    for _ in 0..LEANING {
        let (mut seen, mut off) = (0.0, 0.0);
        points.clear();
        let middle = place(&warp.map, 0.5, 0.5);
        for (at, &value) in one.iter().enumerate() {
            if (at / side + at) % 2 == 1 {
                continue;
            }
            let (u, v) = (((at % side) as f64 + 0.5) * step, ((at / side) as f64 + 0.5) * step);
            let (x, y) = warp.place(u, v);
            if let Some((found, dx, dy)) = sample(other, side, x, y) {
                let rest = f64::from(value) - light[0] * found - light[1];
                seen += 1.0;
                off += rest.abs();
                points.push((u - 0.5, v - 0.5, x - middle.0, y - middle.1, found, dx, dy, rest));
            }
        }
        if seen < 0.03 * (side * side) as f64 {
            return false;
        }
        let scale = (1.5 * off / seen).max(4.0);
        let mut normal = [[0.0f64; 11]; 10];
        for &(u, v, x, y, found, dx, dy, rest) in &points {
            let part = 1.0 / (1.0 + (rest / scale) * (rest / scale));
            let weight = part * part;
            let depth = 1.0 / (1.0 + warp.lean[0] * u + warp.lean[1] * v);
            let (gx, gy) = (light[0] * dx, light[0] * dy);
            let away = -(gx * x + gy * y) * depth;
            let (nx, ny) = (gx * depth, gy * depth);
            let row = [nx * u, nx * v, gx, ny * u, ny * v, gy, away * u, away * v, found, 1.0];
            for (i, line) in normal.iter_mut().enumerate() {
                let scaled = weight * row[i];
                for (value, &other) in line.iter_mut().zip(&row) {
                    *value += scaled * other;
                }
                line[10] += scaled * rest;
            }
        }
        for (at, line) in normal.iter_mut().enumerate() {
            line[at] = line[at] * 1.001 + 1e-3;
        }
        let Some(change) = solved(&mut normal) else { return false };
        let moved = change[..8].iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let damp = if moved > 0.1 { 0.1 / moved } else { 1.0 };
        let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| change[at] * damp);
        let map = &mut warp.map;
        map[0] += a;
        map[1] += b;
        map[2] += c - 0.5 * (a + b);
        map[3] += d;
        map[4] += e;
        map[5] += f - 0.5 * (d + e);
        warp.lean = [warp.lean[0] + g, warp.lean[1] + h];
        light[0] = (light[0] + change[8]).clamp(0.1, 10.0);
        light[1] += change[9];
        let size = (map[0] * map[4] - map[1] * map[3]).abs();
        let astray = map.iter().chain(&warp.lean).any(|value| !value.is_finite());
        if astray || !(0.04..=25.0).contains(&size) || warp.lean.iter().any(|lean| lean.abs() > LEAN) {
            return false;
        }
        if moved < 0.12 * step {
            break;
        }
    }
    true
}

/// The solution of N equations, column N being the right side.
fn solved<const N: usize, const WIDE: usize>(rows: &mut [[f64; WIDE]; N]) -> Option<[f64; N]> {
    for at in 0..N {
        let best = (at..N).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))?;
        rows.swap(at, best);
        if rows[at][at].abs() < 1e-12 {
            return None;
        }
        let (done, rest) = rows.split_at_mut(at + 1);
        for below in rest {
            let factor = below[at] / done[at][at];
            for (value, &above) in below[at..].iter_mut().zip(&done[at][at..]) {
                *value -= factor * above;
            }
        }
    }
    let mut found = [0.0; N];
    for at in (0..N).rev() {
        let rest: f64 = (at + 1..N).map(|column| rows[at][column] * found[column]).sum();
        found[at] = (rows[at][N] - rest) / rows[at][at];
    }
    Some(found)
}

#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    a: f64,
    b: f64,
    aa: f64,
    bb: f64,
    ab: f64,
}

impl Sums {
    fn add(&mut self, a: f64, b: f64) {
        self.count += 1.0;
        self.a += a;
        self.b += b;
        self.aa += a * a;
        self.bb += b * b;
        self.ab += a * b;
    }

    fn plus(&mut self, other: &Sums) {
        self.count += other.count;
        self.a += other.a;
        self.b += other.b;
        self.aa += other.aa;
        self.bb += other.bb;
        self.ab += other.ab;
    }

    /// Both deviations and the covariance.
    fn spread(&self) -> (f64, f64, f64) {
        let n = self.count.max(1.0);
        let (a, b) = (self.a / n, self.b / n);
        ((self.aa / n - a * a).max(0.0).sqrt(), (self.bb / n - b * b).max(0.0).sqrt(), self.ab / n - a * b)
    }

    fn correlation(&self, noise: f64) -> f64 {
        let (a, b, ab) = self.spread();
        ab / ((a * a + noise) * (b * b + noise)).sqrt()
    }
}

/// Blocks of an image a side.
pub const BLOCKS: usize = 8;
/// Variance that is taken for noise, and the least deviation of a block that shows something.
const NOISE: f64 = 4.0;
const TOLD: f64 = 0.15;
const AGREES: f64 = 0.5;
const STRONG: f64 = 0.9;

/// What some blocks say together.
#[derive(Clone, Copy, Default)]
struct Told {
    whole: f64,
    mean: f64,
    share: f64,
    count: f64,
    /// The share of them that agree nearly wholly.
    strong: f64,
}

/// Two images laid upon each other: all blocks, those not at the rim, and the share of `one` that is seen.
#[derive(Clone, Copy)]
struct Compared {
    all: Told,
    inner: Told,
    seen: f64,
    marks: [Mark; BLOCKS * BLOCKS],
}

fn compare(one: &[f32], other: &[f32], side: usize, map: &Map) -> Compared {
    compare_warped(one, other, side, &Warp::flat(*map))
}

fn compare_warped(one: &[f32], other: &[f32], side: usize, warp: &Warp) -> Compared {
    let step = 1.0 / side as f64;
    let mut blocks = [Sums::default(); BLOCKS * BLOCKS];
    for (at, &value) in one.iter().enumerate() {
        let (column, row) = (at % side, at / side);
        let (x, y) = warp.place((column as f64 + 0.5) * step, (row as f64 + 0.5) * step);
        if let Some((found, _, _)) = sample(other, side, x, y) {
            blocks[row * BLOCKS / side * BLOCKS + column * BLOCKS / side].add(f64::from(value), found);
        }
    }
    let full = (side / BLOCKS * (side / BLOCKS)) as f64;
    let inner = |at: usize| [at / BLOCKS, at % BLOCKS].iter().all(|line| (1..BLOCKS - 1).contains(line));
    let seen = blocks.iter().map(|block| block.count).sum::<f64>() / (side * side) as f64;
    let mut marks = [Mark::Unseen; BLOCKS * BLOCKS];
    let all = told(&blocks, full, |_| true, |at, mark| marks[at] = mark);
    Compared { all, inner: told(&blocks, full, inner, |_, _| ()), seen, marks }
}

/// The figures of the wanted blocks, those with at least half of `full` points; `mark` is called with each.
fn told(blocks: &[Sums], full: f64, wanted: impl Fn(usize) -> bool, mut mark: impl FnMut(usize, Mark)) -> Told {
    let chosen = || blocks.iter().enumerate().filter(|&(at, _)| wanted(at));
    let mut all = Sums::default();
    chosen().for_each(|(_, block)| all.plus(block));
    let (deviation, behind, _) = all.spread();
    let gain = deviation / behind.max(1e-6);
    let (mut weights, mut found) = (0.0, Told { whole: all.correlation(NOISE), ..Told::default() });
    for (at, block) in chosen().filter(|(_, block)| block.count >= 0.5 * full) {
        let (a, b, _) = block.spread();
        let told = a.max(b * gain);
        if told < (TOLD * deviation).max(2.0) {
            mark(at, Mark::Plain);
            continue;
        }
        let weight = told.min(deviation) * block.count / full;
        let agrees = block.correlation(NOISE);
        mark(at, if agrees >= AGREES { Mark::Agrees } else { Mark::Differs });
        weights += weight;
        found.mean += weight * agrees.max(0.0);
        found.share += if agrees >= AGREES { weight } else { 0.0 };
        found.strong += if agrees >= STRONG { weight } else { 0.0 };
        found.count += 1.0;
    }
    let weights = f64::max(weights, 1e-9);
    found.mean /= weights;
    found.share /= weights;
    found.strong /= weights;
    found
}

/// The agreement of two thumbnails, `map` being where the first is thought to lie in the second.
pub fn agreement(one: &[u8], other: &[u8], map: &Map) -> Agreement {
    let (first, second) = (Levels::of(one), Levels::of(other));
    let mut best = *map;
    let start = compare(&first.0[0], &second.0[0], SIDE / 4, &best);
    let mut light = [1.0, 0.0];
    let mut found = best;
    if improve(&first.0[0], &second.0[0], SIDE / 4, &mut found, &mut light, 9) {
        let now = compare(&first.0[0], &second.0[0], SIDE / 4, &found);
        if now.all.mean >= start.all.mean {
            best = found;
        }
        if now.all.mean.max(start.all.mean) < 0.45 {
            return summed(&Warp::flat(best), compare(&first.0[0], &second.0[0], SIDE / 4, &best), None);
        }
    }
    let before = compare(&first.0[1], &second.0[1], SIDE / 2, &best);
    let mut found = best;
    let mut coarse = before;
    if improve(&first.0[1], &second.0[1], SIDE / 2, &mut found, &mut light, 4) {
        let now = compare(&first.0[1], &second.0[1], SIDE / 2, &found);
        if now.all.mean >= before.all.mean {
            (best, coarse) = (found, now);
        }
    }
    let mut warp = Warp::flat(best);
    if LEANS.contains(&coarse.all.mean) {
        let mut found = warp;
        if improve_warp(&first.0[1], &second.0[1], SIDE / 2, &mut found, &mut light) {
            let now = compare_warped(&first.0[1], &second.0[1], SIDE / 2, &found);
            if now.all.mean >= coarse.all.mean + BETTER {
                (warp, coarse) = (found, now);
            }
        }
    }
    summed(&warp, coarse, Some(compare_warped(&first.0[2], &second.0[2], SIDE, &warp)))
}

/// Between which means a lean is looked for, and by how much it must raise the mean.
const LEANS: std::ops::Range<f64> = 0.45..0.93;
const BETTER: f64 = 0.02;

fn summed(warp: &Warp, coarse: Compared, fine: Option<Compared>) -> Agreement {
    let (fine, inner) = fine.map_or_else(Default::default, |fine| (fine.all, fine.inner));
    let map = warp.map;
    let size = (map[0] * map[4] - map[1] * map[3]).abs();
    Agreement {
        map,
        lean: warp.lean,
        covered: coarse.seen,
        covering: (coarse.seen * size).min(1.0),
        whole: coarse.all.whole,
        mean: coarse.all.mean,
        share: coarse.all.share,
        blocks: coarse.all.count,
        strong: coarse.inner.strong,
        fine_mean: fine.mean,
        fine_share: fine.share,
        inner_mean: coarse.inner.mean,
        inner_share: coarse.inner.share.min(inner.share),
        inner_blocks: coarse.inner.count,
        marks: coarse.marks,
    }
}

/// How many numbers say of an agreement what it is.
pub const NUMBERS: usize = 20;

impl Agreement {
    /// The map, then all the figures.
    fn numbers(&self) -> [f64; NUMBERS] {
        let [xx, xy, x, yx, yy, y] = self.map;
        let first = [xx, xy, x, yx, yy, y, self.covered, self.covering, self.whole, self.mean, self.share];
        let last = [self.fine_mean, self.fine_share, self.blocks, self.strong];
        let inner = [self.inner_mean, self.inner_share, self.inner_blocks, self.lean[0], self.lean[1]];
        let all = first.into_iter().chain(last).chain(inner);
        let mut numbers = [0.0; NUMBERS];
        numbers.iter_mut().zip(all).for_each(|(number, value)| *number = value);
        numbers
    }
}

/// Numbers, and marks of blocks, for each pair.
pub type Agreements = (Vec<[f64; NUMBERS]>, Vec<[u8; BLOCKS * BLOCKS]>);

/// The agreements of pairs of thumbnails, one after the other in *thumbs*. Ends early when *cancel* is set.
pub fn agreements(
    thumbs: &[u8],
    left: &[i64],
    right: &[i64],
    maps: &[Map],
    threads: Option<usize>,
    cancel: &Cancel,
) -> Result<Agreements, Fault> {
    let known = |value: &i64| usize::try_from(*value).is_ok_and(|value| value < thumbs.len() / PIXELS);
    require(left.iter().chain(right).all(known), "a pair names an image that is not there")?;
    require(left.len() == right.len() && left.len() == maps.len(), "one left, one right and one map a pair")?;
    let thumb = |row: i64| &thumbs[row as usize * PIXELS..][..PIXELS];
    let (mut numbers, mut marks) = (filled(left.len(), [0.0; NUMBERS]), filled(left.len(), [0; BLOCKS * BLOCKS]));
    let rows = numbers.chunks_mut(TOGETHER).zip(marks.chunks_mut(TOGETHER));
    let pairs = left.chunks(TOGETHER).zip(right.chunks(TOGETHER)).zip(maps.chunks(TOGETHER));
    let threads = thread_count(threads).min(left.len().div_ceil(TOGETHER));
    drain(
        pairs.zip(rows),
        threads,
        cancel,
        || (),
        |(), (((left, right), maps), (numbers, marks))| {
            let pairs = left.iter().zip(right).zip(maps);
            for (((left, right), map), (numbers, marks)) in pairs.zip(numbers.iter_mut().zip(marks)) {
                let found = agreement(thumb(*left), thumb(*right), map);
                (*numbers, *marks) = (found.numbers(), found.marks.map(|mark| mark as u8));
            }
        },
    );
    Ok((numbers, marks))
}

/// Pairs that a thread takes at a time.
const TOGETHER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn thumbs() -> Vec<u8> {
        let value = |at: usize| (crate::hash::mix::finish(at as u64 / 64) >> 56) as u8;
        (0..PIXELS).map(value).chain([9; PIXELS]).chain((0..PIXELS).map(|at| value(at + PIXELS))).collect()
    }

    /// The whole of an image, as it is and mirrored across.
    const VIEWS: [([i64; 6], u8); 1] = [([2 * UNIT, 0, 0, 0, 2 * UNIT, 0], 0b11)];

    #[test]
    fn a_flat_image_has_no_fingerprints_and_the_others_one_for_each_symmetry() {
        for threads in [1, 3] {
            let (words, valid) = fingerprints_of(&thumbs(), &VIEWS, 8, Some(threads), &Cancel::new()).unwrap();
            assert_eq!(valid, [true, true, false, false, true, true]);
            assert_eq!(words.len(), 6 * BITS / 64);
            let mut expected = Vec::new();
            let views = VIEWS.map(|(view, symmetries)| (View(view), symmetries));
            for thumb in thumbs().chunks(PIXELS) {
                fingerprints(&Tables::new(), thumb, &views, 8, |print| expected.extend(print.unwrap_or_default()));
            }
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn a_view_far_outside_is_refused_and_none_gives_nothing() {
        let view = |value| fingerprints_of(&thumbs(), &[([value, 0, 0, 0, 0, 0], 1)], 8, None, &Cancel::new());
        assert!(view((1 << 32) + 1).is_err());
        assert!(view(i64::MIN).is_err());
        assert_eq!(fingerprints_of(&thumbs(), &[], 8, None, &Cancel::new()), Ok((vec![], vec![])));
    }

    #[test]
    fn an_image_agrees_with_itself_and_pairs_keep_their_places() {
        let map = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        let agree = |left: &[i64], right: &[i64], maps: &[Map]| {
            agreements(&thumbs(), left, right, maps, Some(2), &Cancel::new())
        };
        let left: Vec<i64> = (0..40).map(|at| at % 2 * 2).collect();
        let (numbers, marks) = agree(&left, &[0; 40], &[map; 40]).unwrap();
        for at in 0..40 {
            assert_eq!((numbers[at], marks[at]), (numbers[at % 2], marks[at % 2]));
        }
        assert!(numbers[0][9] > 0.99 && numbers[1][9] < 0.5, "{} and {}", numbers[0][9], numbers[1][9]);
        assert!(agree(&[3], &[0], &[map]).is_err());
        assert!(agree(&[-1], &[0], &[map]).is_err());
        assert!(agree(&[1], &[0], &[]).is_err());
    }
}
