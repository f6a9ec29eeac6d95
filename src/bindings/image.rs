#![forbid(unsafe_code)]
//! Python's view of images: thumbnails in, fingerprints and agreements out.

use numpy::{IntoPyArray, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use super::arrays::{Numbers, Row, Table, rows, table};
use super::errors::InvalidValue;
use super::interrupt::{answered, interruptible};
use crate::image::corners::{self, UNFIT};
use crate::image::thumbs::{self, BITS, BLOCKS, Map, NUMBERS, PIXELS};

/// From this many images or pairs on, work may take long.
const FEW: usize = 64;

/// Thumbnails one after the other, if each has all its pixels.
fn thumbs_of(thumbs: &PyReadonlyArray2<'_, u8>) -> Option<Vec<u8>> {
    (thumbs.shape()[1] == PIXELS).then(|| thumbs.as_array().iter().copied().collect())
}

/// The fingerprints of every thumbnail through views and symmetries, image by image.
#[pyfunction]
#[pyo3(signature = (thumbs, views, symmetries, least, threads=None))]
pub fn image_fingerprints<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    views: PyReadonlyArray2<'py, i64>,
    symmetries: PyReadonlyArray1<'py, u8>,
    least: i64,
    threads: Option<usize>,
) -> PyResult<(Table<'py, u64>, Row<'py, bool>)> {
    let views = rows::<_, 6>(views.as_array()).filter(|views| views.len() == symmetries.len());
    let (Some(thumbs), Some(views)) = (thumbs_of(&thumbs), views) else {
        return Err(InvalidValue::new_err("thumbnails have 16384 bytes and views 6 numbers"));
    };
    let views: Vec<_> = views.into_iter().zip(symmetries.as_array().iter().copied()).collect();
    let (words, valid) = answered(py, thumbs.len() > FEW * PIXELS, |cancel| {
        thumbs::fingerprints_of(&thumbs, &views, least, threads, cancel)
    })?;
    Ok((table(py, words, BITS / 64)?, valid.into_pyarray(py)))
}

/// How far pairs of thumbnails agree: a row of 18 numbers a pair, the map first, and of 64 marks of blocks.
#[pyfunction]
#[pyo3(signature = (thumbs, left, right, maps, threads=None))]
pub fn image_agreements<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    left: Numbers<'py>,
    right: Numbers<'py>,
    maps: PyReadonlyArray2<'py, f64>,
    threads: Option<usize>,
) -> PyResult<(Table<'py, f64>, Table<'py, u8>)> {
    let (Some(thumbs), Some(maps)) = (thumbs_of(&thumbs), rows(maps.as_array())) else {
        return Err(InvalidValue::new_err("one left, one right and one map a pair"));
    };
    let (left, right) = (left.as_array().to_vec(), right.as_array().to_vec());
    let (numbers, marks) =
        answered(py, left.len() > FEW, |cancel| thumbs::agreements(&thumbs, &left, &right, &maps, threads, cancel))?;
    Ok((table(py, numbers.into_flattened(), NUMBERS)?, table(py, marks.into_flattened(), BLOCKS * BLOCKS)?))
}

/// The corners of every thumbnail: whose each is, its place in the unit square, and its 256 bits.
#[pyfunction]
#[pyo3(signature = (thumbs, most, threads=None))]
pub fn image_corners<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    most: usize,
    threads: Option<usize>,
) -> PyResult<(Row<'py, i64>, Table<'py, f32>, Table<'py, u64>)> {
    let thumbs = thumbs_of(&thumbs).ok_or_else(|| InvalidValue::new_err("thumbnails have 16384 bytes"))?;
    let (images, places, words) =
        interruptible(py, thumbs.len() > FEW * PIXELS, |cancel| corners::corners_of(&thumbs, most, threads, cancel))?;
    Ok((images.into_pyarray(py), table(py, places.into_flattened(), 2)?, table(py, words.into_flattened(), 4)?))
}

/// For each run of matching corners, ending where `ends` says, the map they elect and its votes; 0 for none.
#[pyfunction]
#[pyo3(signature = (matches, ends, least, threads=None))]
pub fn image_maps<'py>(
    py: Python<'py>,
    matches: PyReadonlyArray2<'py, f32>,
    ends: Numbers<'py>,
    least: usize,
    threads: Option<usize>,
) -> PyResult<(Table<'py, f64>, Row<'py, i64>)> {
    let matches = rows(matches.as_array()).ok_or_else(|| InvalidValue::new_err(UNFIT))?;
    let ends = ends.as_array().to_vec();
    let (maps, votes): (Vec<Map>, _) =
        answered(py, ends.len() > FEW, |cancel| corners::elected_of(&matches, &ends, least, threads, cancel))?;
    Ok((table(py, maps.into_flattened(), 6)?, votes.into_pyarray(py)))
}
