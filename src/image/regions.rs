#![forbid(unsafe_code)]
//! Where two images that lie on each other show something else, and whether that was drawn over one of them.
//!
//! The mean of all blocks hides a small part that differs wholly: another person before the same wall, another
//! print on the same shirt. So overlapping windows are compared one by one, each at the best of nine places
//! next to where the map has it. All of this is counted in integers.

use crate::image::thumbs::{Map, PIXELS, SIDE, Warp};
use crate::system::fault::{Fault, require};
use crate::system::memory::filled;
use crate::system::parallel::{Cancel, drain, thread_count};

/// Images are compared at half the side of a thumbnail.
const HALF: usize = SIDE / 2;
/// Side of a window, how far the next one is, and how many there are in a line.
const WINDOW: usize = 8;
const STEP: usize = 4;
const LINE: usize = (HALF - WINDOW) / STEP + 1;
const COUNT: i64 = (WINDOW * WINDOW) as i64;
/// How far a window may be from where the map has it.
const REACH: i64 = 1;
/// Pixels at the rim of which a window that is inside has none.
const RIM: usize = 8;
/// Pixels of a window that both images must show.
const SHOWN: usize = 60;
/// Deviation from which a window shows something, and from which it surely does, in grey levels.
const TOLD: i64 = 3;
const SURE: i64 = 8;
/// Variance that is taken for noise.
const NOISE: i64 = 4;
/// Correlations, in thousandths: alike from the first on, other below the second, wholly other below the third.
const ALIKE: i64 = 500;
const OTHER: i64 = 400;
const WHOLLY: i64 = 250;

/// What windows say of two images.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Regions {
    /// Windows that both images show, and those of them that show something in both.
    pub seen: i32,
    pub told: i32,
    /// Of the latter, those that are alike, other, and wholly other.
    pub alike: i32,
    pub other: i32,
    pub wholly: i32,
    /// Of those that do not lie at the rim, all, those that are not alike, and other: a frame is no evidence, and a
    /// bar with words no content.
    pub within: i32,
    pub unlike: i32,
    pub inside: i32,
    /// Windows that show something in one image, and nothing in the other.
    pub single: i32,
    /// How much what differs looks drawn: of few grey levels, or of far sharper edges than what it lies on.
    pub drawn: i32,
    /// What looks drawn lies on the first image if this is above 0, on the second if it is below.
    pub side: i32,
}

pub const NUMBERS: usize = 11;

impl Regions {
    fn numbers(&self) -> [i32; NUMBERS] {
        let Regions { seen, told, alike, other, wholly, within, unlike, inside, single, drawn, side } = *self;
        [seen, told, alike, other, wholly, within, unlike, inside, single, drawn, side]
    }
}

/// The second image as the first one shows it, and which pixels it has.
fn laid(other: &[u8], warp: &Warp) -> (Vec<i64>, Vec<bool>) {
    let (mut levels, mut inside) = (vec![0i64; PIXELS], vec![false; PIXELS]);
    let step = 1.0 / SIDE as f64;
    let most = (SIDE as i64 - 1) << 8;
    for at in 0..PIXELS {
        let (x, y) = warp.place(((at % SIDE) as f64 + 0.5) * step, ((at / SIDE) as f64 + 0.5) * step);
        inside[at] = (0.0..=1.0).contains(&x) && (0.0..=1.0).contains(&y);
        let fixed = |unit: f64| (((unit * SIDE as f64 - 0.5) * 256.0).round() as i64).clamp(0, most);
        let (x, y) = (fixed(x), fixed(y));
        let (column, row) = ((x >> 8).min(SIDE as i64 - 2), (y >> 8).min(SIDE as i64 - 2));
        let (fx, fy) = (x - (column << 8), y - (row << 8));
        let first = (row as usize) * SIDE + column as usize;
        let pixel = |at: usize| i64::from(other[at]);
        let above = pixel(first) * (256 - fx) + pixel(first + 1) * fx;
        let below = pixel(first + SIDE) * (256 - fx) + pixel(first + SIDE + 1) * fx;
        levels[at] = (above * (256 - fy) + below * fy + (1 << 15)) >> 16;
    }
    (levels, inside)
}

/// The same at half the side.
fn halved(levels: &[i64]) -> Vec<i64> {
    (0..HALF * HALF)
        .map(|at| {
            let first = at / HALF * 2 * SIDE + at % HALF * 2;
            (levels[first] + levels[first + 1] + levels[first + SIDE] + levels[first + SIDE + 1] + 2) >> 2
        })
        .collect()
}

/// Sum and variance (times the square of the number) of a window; its first pixel is at column, row.
fn spread(levels: &[i64], column: usize, row: usize) -> (i64, i64) {
    let (mut sum, mut squares) = (0, 0);
    for y in row..row + WINDOW {
        for &value in &levels[y * HALF + column..][..WINDOW] {
            sum += value;
            squares += value * value;
        }
    }
    (sum, COUNT * squares - sum * sum)
}

/// The correlation of a window of `one` with that of `other` at another place, in thousandths.
fn correlation(one: &[i64], at: (usize, usize), own: (i64, i64), other: &[i64], there: (usize, usize)) -> i64 {
    let theirs = spread(other, there.0, there.1);
    let mut products = 0;
    for line in 0..WINDOW {
        let left = &one[(at.1 + line) * HALF + at.0..][..WINDOW];
        let right = &other[(there.1 + line) * HALF + there.0..][..WINDOW];
        products += left.iter().zip(right).map(|(a, b)| a * b).sum::<i64>();
    }
    let both = COUNT * products - own.0 * theirs.0;
    let noise = NOISE * COUNT * COUNT;
    // Exact integers; a root and a quotient of such are the same on every machine.
    (1000.0 * both as f64 / (((own.1 + noise) as f64) * ((theirs.1 + noise) as f64)).sqrt()).floor() as i64
}

/// What the windows of two thumbnails say, the first lying on the second as the warp has it.
pub fn regions(one: &[u8], other: &[u8], warp: &Warp) -> Regions {
    let first: Vec<i64> = one.iter().map(|&level| i64::from(level)).collect();
    let (second, inside) = laid(other, warp);
    let (a, b) = (halved(&first), halved(&second));
    let shown: Vec<bool> = (0..HALF * HALF)
        .map(|at| {
            let corner = at / HALF * 2 * SIDE + at % HALF * 2;
            inside[corner] && inside[corner + 1] && inside[corner + SIDE] && inside[corner + SIDE + 1]
        })
        .collect();
    let mut found = Regions::default();
    let mut differs = vec![false; PIXELS];
    let least = |deviation: i64| deviation * deviation * COUNT * COUNT;
    for (row, column) in (0..LINE * LINE).map(|at| (at / LINE * STEP, at % LINE * STEP)) {
        let lines = (row..row + WINDOW).flat_map(|y| &shown[y * HALF + column..][..WINDOW]);
        if lines.filter(|&&pixel| pixel).count() < SHOWN {
            continue;
        }
        found.seen += 1;
        let (own, theirs) = (spread(&a, column, row), spread(&b, column, row));
        if own.1.min(theirs.1) < least(TOLD) {
            found.single += i32::from(own.1.max(theirs.1) >= least(SURE));
            continue;
        }
        found.told += 1;
        let mut best = -1000;
        for (down, across) in (-REACH..=REACH).flat_map(|y| (-REACH..=REACH).map(move |x| (y, x))) {
            let (x, y) = (column as i64 + across, row as i64 + down);
            if (0..=(HALF - WINDOW) as i64).contains(&x) && (0..=(HALF - WINDOW) as i64).contains(&y) {
                best = best.max(correlation(&a, (column, row), own, &b, (x as usize, y as usize)));
            }
        }
        let inner = [row, column].iter().all(|place| (RIM..=HALF - WINDOW - RIM).contains(place));
        found.alike += i32::from(best >= ALIKE);
        found.within += i32::from(inner);
        found.unlike += i32::from(best < ALIKE && inner);
        found.inside += i32::from(best < OTHER && inner);
        found.wholly += i32::from(best < WHOLLY);
        if best < OTHER {
            found.other += 1;
            for y in 2 * row..2 * (row + WINDOW) {
                differs[y * SIDE + 2 * column..][..2 * WINDOW].fill(true);
            }
        }
    }
    if found.other > 0 {
        (found.drawn, found.side) = drawn(&first, &second, &inside, &differs);
    }
    found
}

/// Grey levels that count as one, and from which difference on two levels are not the same.
const LEVEL: usize = 17;
const APART: i64 = 16;
/// Fixed point of gains.
const GAIN: i64 = 4096;

/// How much what differs looks drawn, and on which of the two it lies: see `Regions`.
fn drawn(first: &[i64], second: &[i64], inside: &[bool], differs: &[bool]) -> (i32, i32) {
    let (mut gain, mut offset) = (GAIN, 0);
    let mut limit = i64::MAX;
    let rest = |at: usize, gain: i64, offset: i64| (first[at] * GAIN - gain * second[at] - offset).abs() / GAIN;
    let mut usual = 0;
    for _ in 0..3 {
        // Light: the second image times a gain, plus an offset, is the first one where nothing differs.
        let (mut n, mut a, mut b, mut ab, mut bb) = (0, 0, 0, 0, 0);
        let mut far = [0usize; 512];
        for at in (0..PIXELS).filter(|&at| inside[at] && !differs[at]) {
            if rest(at, gain, offset) <= limit {
                (n, a, b) = (n + 1, a + first[at], b + second[at]);
                (ab, bb) = (ab + first[at] * second[at], bb + second[at] * second[at]);
            }
        }
        if n == 0 {
            return (0, 0);
        }
        gain = (GAIN * (n * ab - a * b) / (n * bb - b * b).max(1)).clamp(GAIN / 5, GAIN * 5);
        offset = (a * GAIN - gain * b) / n;
        let mut count = 0;
        for at in (0..PIXELS).filter(|&at| inside[at] && !differs[at]) {
            far[rest(at, gain, offset).min(511) as usize] += 1;
            count += 1;
        }
        let mut below = 0;
        usual = far
            .iter()
            .take_while(|&&some| {
                below += some;
                2 * below < count
            })
            .count() as i64;
        limit = 3 * usual + 2;
    }
    let apart = APART.max(4 * usual);
    let mut counts = [[0usize; 256]; 2];
    let mut count = 0;
    for at in (0..PIXELS).filter(|&at| inside[at] && differs[at]) {
        if rest(at, gain, offset) > apart {
            counts[0][first[at] as usize] += 1;
            counts[1][second[at] as usize] += 1;
            count += 1;
        }
    }
    if count < 10 {
        return (0, 0);
    }
    let flat = counts.map(|levels| (1000 * two_levels(levels) / count) as i64);
    // Edges, in the light of the first image.
    let edges = |levels: &[i64]| {
        let mut sum = 0;
        for at in (0..PIXELS - SIDE).filter(|&at| at % SIDE < SIDE - 1 && inside[at] && differs[at]) {
            sum += (levels[at + 1] - levels[at]).abs() + (levels[at + SIDE] - levels[at]).abs();
        }
        sum
    };
    let size = differs.iter().filter(|&&pixel| pixel).count() as i64;
    let edges = [edges(first) + size, edges(second) * gain / GAIN + size];
    let sharper = 1000 * edges[0].max(edges[1]) / edges[0].min(edges[1]) - 1000;
    let sharper = (35 * sharper / 100).min(700);
    let side = flat[0] - flat[1] + if edges[0] > edges[1] { sharper } else { -sharper };
    ((flat[0].max(flat[1]) + sharper) as i32, side as i32)
}

/// How many of some levels lie in the best two runs of `LEVEL` levels.
fn two_levels(mut counts: [usize; 256]) -> usize {
    let mut found = 0;
    for _ in 0..2 {
        let sum = |at: usize, counts: &[usize; 256]| counts[at..(at + LEVEL).min(256)].iter().sum::<usize>();
        let best = (0..256).max_by_key(|&at| (sum(at, &counts), std::cmp::Reverse(at))).unwrap_or(0);
        found += sum(best, &counts);
        counts[best..(best + LEVEL).min(256)].fill(0);
    }
    found
}

/// The regions of pairs of thumbnails, one after the other in *thumbs*; six numbers of a map and two of a lean for
/// each. Ends early when *cancel* is set.
pub fn regions_of(
    thumbs: &[u8],
    left: &[i64],
    right: &[i64],
    warps: &[[f64; 8]],
    threads: Option<usize>,
    cancel: &Cancel,
) -> Result<Vec<[i32; NUMBERS]>, Fault> {
    let known = |value: &i64| usize::try_from(*value).is_ok_and(|value| value < thumbs.len() / PIXELS);
    require(left.iter().chain(right).all(known), "a pair names an image that is not there")?;
    require(left.len() == right.len() && left.len() == warps.len(), "one left, one right and one map a pair")?;
    let thumb = |row: i64| &thumbs[row as usize * PIXELS..][..PIXELS];
    let mut found = filled(left.len(), [0; NUMBERS]);
    let threads = thread_count(threads).min(left.len().div_ceil(TOGETHER));
    let pairs = left.chunks(TOGETHER).zip(right.chunks(TOGETHER)).zip(warps.chunks(TOGETHER));
    drain(
        pairs.zip(found.chunks_mut(TOGETHER)),
        threads,
        cancel,
        || (),
        |(), (((left, right), warps), found)| {
            for (((left, right), warp), found) in left.iter().zip(right).zip(warps).zip(found) {
                let [a, b, c, d, e, f, across, down] = *warp;
                let map: Map = [a, b, c, d, e, f];
                *found = regions(thumb(*left), thumb(*right), &Warp { map, lean: [across, down] }).numbers();
            }
        },
    );
    Ok(found)
}

/// Pairs that a thread takes at a time.
const TOGETHER: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const SAME: Map = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

    /// Soft blots from a seed.
    fn blots(seed: u64) -> Vec<u8> {
        let cell = |x: usize, y: usize| (crate::hash::mix::finish(seed << 20 ^ (y * 64 + x) as u64) >> 56) as i64;
        let value = |at: usize| {
            let (x, y) = (at % SIDE, at / SIDE);
            let (fx, fy) = ((x % 8) as i64, (y % 8) as i64);
            let row = |y: usize| cell(x / 8, y) * (8 - fx) + cell(x / 8 + 1, y) * fx;
            ((row(y / 8) * (8 - fy) + row(y / 8 + 1) * fy) / 64) as u8
        };
        (0..PIXELS).map(value).collect()
    }

    fn found(one: &[u8], other: &[u8]) -> Regions {
        regions(one, other, &Warp { map: SAME, lean: [0.0; 2] })
    }

    fn with(under: &[u8], over: impl Fn(usize, usize) -> Option<u8>) -> Vec<u8> {
        let pixel = |at: usize| over(at % SIDE, at / SIDE).unwrap_or(under[at]);
        (0..PIXELS).map(pixel).collect()
    }

    #[test]
    fn all_windows_of_an_image_are_like_its_own() {
        let said = found(&blots(1), &blots(1));
        assert_eq!((said.seen, said.alike, said.other, said.single), (225, said.told, 0, 0));
        assert!(said.told > 200);
    }

    #[test]
    fn brighter_is_not_other() {
        let bright: Vec<u8> = blots(1).iter().map(|&level| 90 + level / 2).collect();
        assert_eq!(found(&blots(1), &bright).other, 0);
    }

    #[test]
    fn another_thing_on_the_same_ground_is_other_and_not_drawn() {
        let moved = blots(2);
        let other =
            with(&blots(1), |x, y| ((40..80).contains(&x) && (40..80).contains(&y)).then(|| moved[y * SIDE + x]));
        let said = found(&blots(1), &other);
        assert!((4..60).contains(&said.other), "{said:?}");
        assert!(said.drawn < 800, "{said:?}");
    }

    #[test]
    fn a_sticker_looks_drawn_and_lies_on_the_image_that_has_it() {
        let stuck = with(&blots(1), |x, y| {
            let inside = (40..76).contains(&x) && (40..76).contains(&y);
            inside.then(|| if (x / 6 + y / 6) % 4 == 0 { 0 } else { 230 })
        });
        let said = found(&stuck, &blots(1));
        assert!(said.other > 4 && said.drawn >= 800 && said.side > 0, "{said:?}");
        assert!(found(&blots(1), &stuck).side < 0);
    }

    #[test]
    fn a_window_is_looked_for_at_the_places_next_to_it() {
        let image = blots(1);
        let moved: Vec<u8> = (0..PIXELS).map(|at| image[at / SIDE * SIDE + (at % SIDE + 2).min(SIDE - 1)]).collect();
        assert_eq!(found(&image, &moved).other, 0);
    }

    #[test]
    fn pairs_keep_their_places_and_numbers_outside_are_refused() {
        let thumbs = [blots(1), blots(2)].concat();
        let warp = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        let left: Vec<i64> = (0..40).map(|at| at % 2).collect();
        let all = |threads| regions_of(&thumbs, &left, &[0; 40], &[warp; 40], Some(threads), &Cancel::new()).unwrap();
        assert_eq!(all(1), all(2));
        assert_eq!(all(1)[2], all(1)[0]);
        assert!(all(1)[0][2] > all(1)[1][2]);
        assert!(regions_of(&thumbs, &[2], &[0], &[warp], None, &Cancel::new()).is_err());
        assert!(regions_of(&thumbs, &[0], &[0], &[], None, &Cancel::new()).is_err());
    }
}
