#![forbid(unsafe_code)]
//! Python's view of images: thumbnails in, fingerprints and agreements out.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::arrays::{Numbers, Row, Rows, Table, Threads};
use super::interrupt::{answered, interruptible};
use crate::image::thumbs::{self, BITS, Map, PIXELS};
use crate::image::{corners, regions};
use crate::system::fault::require;

/// From this many images or pairs on, work may take long.
const FEW: usize = 64;

type Thumbs = Rows<u8, PIXELS>;

/// The fingerprints of every thumbnail through views and symmetries, image by image.
#[pyfunction]
pub fn image_fingerprints(
    py: Python,
    thumbs: Thumbs,
    views: Rows<i64, 6>,
    symmetries: PyReadonlyArray1<u8>,
    least: i64,
    threads: Threads,
) -> PyResult<(Table<u64>, Row<bool>)> {
    let symmetries = symmetries.as_array();
    require(views.0.len() == symmetries.len(), "one symmetry for each view")?;
    let (thumbs, views) = (thumbs.0.as_flattened(), views.0.into_iter().zip(symmetries.iter().copied()));
    let views: Vec<_> = views.collect();
    let made = |cancel: &_| thumbs::fingerprints_of(thumbs, &views, least, threads, cancel);
    let (words, valid) = answered(py, thumbs.len() > FEW * PIXELS, made)?;
    Ok((Table(words, BITS / 64), Row(valid)))
}

/// How far pairs of thumbnails agree: 20 numbers for each pair, the map first, and 64 marks of blocks.
#[pyfunction]
pub fn image_agreements(
    py: Python,
    thumbs: Thumbs,
    left: Numbers,
    right: Numbers,
    maps: Rows<f64, 6>,
    threads: Threads,
) -> PyResult<(Table<f64>, Table<u8>)> {
    let (left, right) = (left.as_array().to_vec(), right.as_array().to_vec());
    let (thumbs, maps) = (thumbs.0.as_flattened(), &maps.0);
    let made = |cancel: &_| thumbs::agreements(thumbs, &left, &right, maps, threads, cancel);
    let (numbers, marks) = answered(py, left.len() > FEW, made)?;
    Ok((numbers.into(), marks.into()))
}

/// What windows say of pairs of thumbnails that lie on each other by a map and a lean: 11 numbers for each pair, those
/// of `Regions`.
#[pyfunction]
pub fn image_regions(
    py: Python,
    thumbs: Thumbs,
    left: Numbers,
    right: Numbers,
    warps: Rows<f64, 8>,
    threads: Threads,
) -> PyResult<Table<i32>> {
    let (left, right) = (left.as_array().to_vec(), right.as_array().to_vec());
    let (thumbs, warps) = (thumbs.0.as_flattened(), &warps.0);
    let made = |cancel: &_| regions::regions_of(thumbs, &left, &right, warps, threads, cancel);
    Ok(answered(py, left.len() > FEW, made)?.into())
}

/// The corners of every thumbnail: whose each is, its place in the unit square, and its 256 bits.
#[pyfunction]
pub fn image_corners(
    py: Python,
    thumbs: Thumbs,
    most: usize,
    threads: Threads,
) -> PyResult<(Row<i64>, Table<f32>, Table<u64>)> {
    let (thumbs, long) = (thumbs.0.as_flattened(), thumbs.0.len() > FEW);
    let found = interruptible(py, long, |cancel| corners::corners_of(thumbs, most, threads, cancel));
    found.map(|(images, places, words)| (Row(images), places.into(), words.into()))
}

/// For each run of matching corners, ending where `ends` says, the map they elect and its votes; 0 for none.
#[pyfunction]
pub fn image_maps(
    py: Python,
    matches: Rows<f32, 4>,
    ends: Numbers,
    least: usize,
    threads: Threads,
) -> PyResult<(Table<f64>, Row<i64>)> {
    let (ends, matches) = (ends.as_array().to_vec(), &matches.0);
    let made = |cancel: &_| corners::elected_of(matches, &ends, least, threads, cancel);
    let (maps, votes): (Vec<Map>, _) = answered(py, ends.len() > FEW, made)?;
    Ok((maps.into(), Row(votes)))
}
