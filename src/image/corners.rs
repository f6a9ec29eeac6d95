#![forbid(unsafe_code)]
//! Corners of images: where a thumbnail has something to hold on to, and 256 bits that describe each.
//!
//! A part of an image, or an image within a page, has the corners of the whole at other places and
//! sizes. Corners are looked for at several sizes of the thumbnail; a corner's bits say which of two
//! places near it is darker, for 256 pairs of places. Matching corners of two images vote for the
//! map between them: two matches make a guess, the others agree with it or do not.

use crate::image::thumbs::{Map, PIXELS, SIDE};
use crate::system::fault::{Fault, require};
use crate::system::memory::collected;
use crate::system::parallel::{Cancel, map, thread_count};

/// Sides of the thumbnail at which corners are looked for.
const SIDES: [usize; 5] = [128, 102, 81, 64, 51];
/// How far from its corner a place of a pair may be, and the least distance of two corners, in pixels.
const REACH: i32 = 10;
const APART: usize = 3;
/// Least response of a corner.
const LEAST: f32 = 5.0;

/// A corner: its place in the unit square and its bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corner {
    pub x: f32,
    pub y: f32,
    pub words: [u64; 4],
}

/// The pairs of places that are compared, always the same.
pub fn places() -> Vec<[i32; 4]> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        // The sum of four even numbers is nearly normal: places near the corner are taken more often.
        let mut sum = 0i32;
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            sum += ((state >> 33) % 10) as i32;
        }
        (sum - 18).clamp(-REACH, REACH)
    };
    let mut found = Vec::with_capacity(256);
    while found.len() < 256 {
        let four = [next(), next(), next(), next()];
        if (four[0] - four[2]).abs() + (four[1] - four[3]).abs() >= 3 {
            found.push(four);
        }
    }
    found
}

/// The thumbnail at another side, by the mean of what each pixel covers.
fn resized(image: &[f32], side: usize) -> Vec<f32> {
    let scale = SIDE as f32 / side as f32;
    let weights: Vec<Vec<(usize, f32)>> = (0..side)
        .map(|at| {
            let (from, to) = (at as f32 * scale, (at + 1) as f32 * scale);
            (from as usize..(to.ceil() as usize).min(SIDE))
                .map(|pixel| (pixel, (to.min(pixel as f32 + 1.0) - from.max(pixel as f32)) / scale))
                .collect()
        })
        .collect();
    let mut across = vec![0.0; SIDE * side];
    for row in 0..SIDE {
        for (x, parts) in weights.iter().enumerate() {
            across[row * side + x] = parts.iter().map(|&(at, weight)| image[row * SIDE + at] * weight).sum();
        }
    }
    let mut found = vec![0.0; side * side];
    for (y, parts) in weights.iter().enumerate() {
        for &(row, weight) in parts {
            for x in 0..side {
                found[y * side + x] += across[row * side + x] * weight;
            }
        }
    }
    found
}

/// Blurred by 1 2 1 in both directions; the edge is continued outside.
fn blurred(image: &[f32], side: usize) -> Vec<f32> {
    let mut across = vec![0.0; side * side];
    for y in 0..side {
        for x in 0..side {
            let at = |x: usize| image[y * side + x];
            across[y * side + x] = 0.25 * (at(x.max(1) - 1) + 2.0 * at(x) + at((x + 1).min(side - 1)));
        }
    }
    let mut found = vec![0.0; side * side];
    for y in 0..side {
        for x in 0..side {
            let at = |y: usize| across[y * side + x];
            found[y * side + x] = 0.25 * (at(y.max(1) - 1) + 2.0 * at(y) + at((y + 1).min(side - 1)));
        }
    }
    found
}

/// How much of a corner each pixel is: the smaller of the two strengths of change around it.
fn responses(image: &[f32], side: usize) -> Vec<f32> {
    let mut squares = [vec![0.0; side * side], vec![0.0; side * side], vec![0.0; side * side]];
    for y in 1..side - 1 {
        for x in 1..side - 1 {
            let at = y * side + x;
            let across = 0.5 * (image[at + 1] - image[at - 1]);
            let down = 0.5 * (image[at + side] - image[at - side]);
            squares[0][at] = across * across;
            squares[1][at] = down * down;
            squares[2][at] = across * down;
        }
    }
    let [xx, yy, xy] = squares.map(|square| blurred(&blurred(&square, side), side));
    (0..side * side)
        .map(|at| {
            let half = 0.5 * (xx[at] - yy[at]);
            0.5 * (xx[at] + yy[at]) - (half * half + xy[at] * xy[at]).sqrt()
        })
        .collect()
}

/// The strongest corners of a thumbnail, at most `most`, spread over its sizes.
pub fn corners(thumb: &[u8], places: &[[i32; 4]], most: usize) -> Vec<Corner> {
    let fine: Vec<f32> = thumb.iter().map(|&value| f32::from(value)).collect();
    let mut found = Vec::with_capacity(most);
    let margin = REACH as usize + 1;
    for side in SIDES {
        let image = blurred(&resized(&fine, side), side);
        let response = responses(&image, side);
        let smooth = blurred(&image, side);
        let mut best: Vec<(f32, usize)> = Vec::new();
        for y in margin..side - margin {
            for x in margin..side - margin {
                let value = response[y * side + x];
                let highest = value >= LEAST
                    && (y - APART..=y + APART).all(|row| {
                        (x - APART..=x + APART).all(|column| {
                            let other = response[row * side + column];
                            other < value || (other == value && row * side + column >= y * side + x)
                        })
                    });
                if highest {
                    best.push((value, y * side + x));
                }
            }
        }
        best.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        // Each size has its share of the area.
        let share = most * side * side / SIDES.iter().map(|side| side * side).sum::<usize>();
        for &(_, at) in best.iter().take(share.max(1)) {
            let (x, y) = ((at % side) as i32, (at / side) as i32);
            let value = |dx: i32, dy: i32| smooth[((y + dy) as usize) * side + (x + dx) as usize];
            let mut words = [0u64; 4];
            for (bit, &[ax, ay, bx, by]) in places.iter().enumerate() {
                if value(ax, ay) < value(bx, by) {
                    words[bit / 64] |= 1 << (bit % 64);
                }
            }
            let unit = |pixel: i32| (pixel as f32 + 0.5) / side as f32;
            found.push(Corner { x: unit(x), y: unit(y), words });
        }
    }
    found
}

/// Matching corners: x and y in the left image, x and y in the right one.
pub type Match = [f32; 4];

/// How far a match may be from where a map takes it, in the unit square.
const NEAR: f32 = 0.04;

/// The map that most of the matches agree with, and how many; None if fewer than `least` do.
pub fn elected(matches: &[Match], least: usize) -> Option<(Map, usize)> {
    let mut best: Option<([f32; 4], usize)> = None;
    for (at, one) in matches.iter().enumerate() {
        for other in &matches[at + 1..] {
            let Some(guess) = guessed(one, other) else { continue };
            let votes = supporters(matches, &guess).count();
            if best.is_none_or(|(_, most)| votes > most) {
                best = Some((guess, votes));
            }
        }
    }
    let (guess, votes) = best.filter(|&(_, votes)| votes >= least)?;
    let [sx, tx, sy, ty] = guess.map(f64::from);
    Some(([sx, 0.0, tx, 0.0, sy, ty], votes))
}

/// Sizes and shifts that take the left corners of two matches to the right ones.
fn guessed(one: &Match, other: &Match) -> Option<[f32; 4]> {
    let axis = |at: usize| {
        let (left, right) = (other[at] - one[at], other[at + 2] - one[at + 2]);
        if left.abs() < 0.1 || right.abs() < 0.05 {
            return None;
        }
        let size = right / left;
        (0.4..=2.5).contains(&size).then_some((size, one[at + 2] - size * one[at]))
    };
    let ((sx, tx), (sy, ty)) = (axis(0)?, axis(1)?);
    (0.4..=2.5).contains(&(sx / sy)).then_some([sx, tx, sy, ty])
}

/// The matches that agree with a guess, each corner of the left image once.
fn supporters<'a>(matches: &'a [Match], guess: &'a [f32; 4]) -> impl Iterator<Item = &'a Match> {
    let [sx, tx, sy, ty] = *guess;
    let mut seen: Vec<[f32; 2]> = Vec::new();
    matches.iter().filter(move |one| {
        let near = (sx * one[0] + tx - one[2]).abs() <= NEAR && (sy * one[1] + ty - one[3]).abs() <= NEAR;
        // The same corner at two sizes is one voice.
        let fresh = near && seen.iter().all(|two| (two[0] - one[0]).abs() + (two[1] - one[1]).abs() > 0.04);
        if fresh {
            seen.push([one[0], one[1]]);
        }
        fresh
    })
}

/// Corners by column: whose each is, its place and its bits.
pub type Columns = (Vec<i64>, Vec<[f32; 2]>, Vec<[u64; 4]>);

/// The corners of many thumbnails, one after the other in *thumbs*. Ends early when *cancel* is set.
pub fn corners_of(thumbs: &[u8], most: usize, threads: Option<usize>, cancel: &Cancel) -> Columns {
    let places = places();
    let found = map(thread_count(threads), thumbs.chunks_exact(PIXELS).collect(), |thumb| {
        if cancel.is_set() { Vec::new() } else { corners(thumb, &places, most) }
    });
    let all = || found.iter().flatten();
    let images = (0..).zip(&found).flat_map(|(image, own)| own.iter().map(move |_| image));
    (collected(images), collected(all().map(|one| [one.x, one.y])), collected(all().map(|one| one.words)))
}

/// For each run of matches, which end where *ends* says, the map that they elect and its votes; zeros for none.
pub fn elected_of(
    matches: &[Match],
    ends: &[i64],
    least: usize,
    threads: Option<usize>,
    cancel: &Cancel,
) -> Result<(Vec<Map>, Vec<i64>), Fault> {
    let fits = ends.is_sorted() && ends.iter().all(|end| usize::try_from(*end).is_ok_and(|end| end <= matches.len()));
    require(fits, UNFIT)?;
    let begins = std::iter::once(&0).chain(ends);
    let runs = begins.zip(ends).map(|(begin, end)| &matches[*begin as usize..*end as usize]).collect();
    let elect = |run| if cancel.is_set() { None } else { elected(run, least) };
    let found = map(thread_count(threads), runs, elect);
    Ok(found.into_iter().map(|found| found.map_or(([0.0; 6], 0), |(map, votes)| (map, votes as i64))).unzip())
}

pub const UNFIT: &str = "a match has 4 numbers, and the ends rise up to their number";

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as f32
        };
        let raw: Vec<f32> = (0..PIXELS).map(|_| next()).collect();
        (0..6).fold(raw, |image, _| blurred(&image, SIDE)).iter().map(|value| (value - 127.0) * 6.0 + 127.0).collect()
    }

    fn bytes(image: &[f32]) -> Vec<u8> {
        image.iter().map(|&value| value.clamp(0.0, 255.0) as u8).collect()
    }

    #[test]
    fn a_flat_image_has_no_corners() {
        assert!(corners(&[7; PIXELS], &places(), 60).is_empty());
    }

    #[test]
    fn corners_move_with_the_image() {
        let image = noise(3);
        let moved: Vec<f32> =
            (0..PIXELS).map(|at| image[(at / SIDE) * SIDE + (at % SIDE + 10).min(SIDE - 1)]).collect();
        let (one, other) = (corners(&bytes(&image), &places(), 80), corners(&bytes(&moved), &places(), 80));
        let mut matches = Vec::new();
        for a in &one {
            for b in &other {
                let distance: u32 = a.words.iter().zip(b.words).map(|(a, b)| (a ^ b).count_ones()).sum();
                if distance <= 40 {
                    matches.push([a.x, a.y, b.x, b.y]);
                }
            }
        }
        let (map, votes) = elected(&matches, 4).expect("a map");
        assert!(votes >= 6, "{votes}");
        assert!((map[0] - 1.0).abs() < 0.06 && (map[2] + 10.0 / 128.0).abs() < 0.05, "{map:?}");
    }

    #[test]
    fn matches_that_agree_outvote_the_others() {
        let mut matches: Vec<Match> = [[0.1, 0.1], [0.9, 0.2], [0.4, 0.8], [0.7, 0.6]]
            .map(|[x, y]: [f32; 2]| [x, y, 0.5 * x + 0.3, 0.5 * y])
            .to_vec();
        matches.extend([[0.2, 0.3, 0.9, 0.9], [0.6, 0.1, 0.1, 0.8], [0.3, 0.9, 0.5, 0.1]]);
        let (map, votes) = elected(&matches, 4).expect("a map");
        assert_eq!(votes, 4);
        for (found, wanted) in map.iter().zip([0.5, 0.0, 0.3, 0.0, 0.5, 0.0]) {
            assert!((found - wanted).abs() < 1e-5);
        }
        assert!(elected(&matches, 5).is_none());
    }

    #[test]
    fn corners_of_many_are_those_of_each_in_their_order() {
        let thumbs = [bytes(&noise(3)), vec![7; PIXELS], bytes(&noise(4))].concat();
        for threads in [1, 3] {
            let (images, spots, words) = corners_of(&thumbs, 20, Some(threads), &Cancel::new());
            let first = corners(&thumbs[..PIXELS], &places(), 20);
            assert!(images.is_sorted() && !images.contains(&1) && images.contains(&2));
            assert_eq!(spots[..first.len()], first.iter().map(|one| [one.x, one.y]).collect::<Vec<_>>());
            assert_eq!((images.len(), spots.len()), (words.len(), words.len()));
        }
    }

    #[test]
    fn each_run_of_matches_elects_its_own_map() {
        let run = [[0.1, 0.1], [0.9, 0.2], [0.4, 0.8], [0.7, 0.6]].map(|[x, y]: [f32; 2]| [x, y, x, y]);
        let elect = |ends: &[i64]| elected_of(&run, ends, 4, Some(2), &Cancel::new());
        let (maps, votes) = elect(&[0, 4, 4]).unwrap();
        assert_eq!(votes, [0, 4, 0]);
        assert_eq!(maps[0], [0.0; 6]);
        for ends in [&[5][..], &[3, 2], &[-1]] {
            assert_eq!(elect(ends), Err(Fault::value(UNFIT)));
        }
    }
}
