#![forbid(unsafe_code)]
//! Python's view of pictures: thumbnails in, fingerprints and agreements out.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::bindings::InvalidValue;
use crate::bindings::interrupt::interruptible;
use crate::image::corners;
use crate::image::picture::{self, BITS, BLOCKS, Map, PIXELS, Tables, View};
use crate::system::parallel::{share, thread_count};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(picture_fingerprints, module)?)?;
    module.add_function(wrap_pyfunction!(picture_agreements, module)?)?;
    module.add_function(wrap_pyfunction!(picture_corners, module)?)?;
    module.add_function(wrap_pyfunction!(picture_maps, module)?)?;
    Ok(())
}

type Prints<'py> = (Bound<'py, PyArray2<u64>>, Bound<'py, PyArray1<bool>>);

/// The fingerprints of every thumbnail through views and symmetries, picture by picture.
#[pyfunction]
#[pyo3(signature = (thumbs, views, symmetries, least, threads=None))]
fn picture_fingerprints<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    views: PyReadonlyArray2<'py, i64>,
    symmetries: PyReadonlyArray1<'py, u8>,
    least: i64,
    threads: Option<usize>,
) -> PyResult<Prints<'py>> {
    let thumbs = thumbs.as_array();
    let (views, symmetries) = (views.as_array(), symmetries.as_array());
    if thumbs.ncols() != PIXELS || views.ncols() != 6 || views.nrows() != symmetries.len() {
        return Err(InvalidValue::new_err("thumbnails have 16384 bytes and views 6 numbers"));
    }
    if views.iter().any(|value| value.abs() > 1 << 32) {
        return Err(InvalidValue::new_err("a view lies too far outside of the picture"));
    }
    let thumbs: Vec<u8> = thumbs.iter().copied().collect();
    let views: Vec<(View, u8)> = views
        .rows()
        .into_iter()
        .zip(symmetries)
        .map(|(row, &symmetry)| (View(std::array::from_fn(|at| row[at])), symmetry))
        .collect();
    let threads = thread_count(threads);
    let count = thumbs.len() / PIXELS;
    let each: usize = views.iter().map(|(_, symmetries)| symmetries.count_ones() as usize).sum();
    let parts = interruptible(py, false, |_| {
        let tables = Tables::new();
        share(threads, count, Vec::new, |found: &mut Vec<(usize, Vec<Option<[u64; 4]>>)>, task| {
            let mut prints = Vec::with_capacity(each);
            let thumb = &thumbs[task * PIXELS..(task + 1) * PIXELS];
            picture::fingerprints(&tables, thumb, &views, least, |print| prints.push(print));
            found.push((task, prints));
        })
    })?;
    let mut words = vec![0u64; count * each * (BITS / 64)];
    let mut valid = vec![false; count * each];
    for (task, prints) in parts.into_iter().flatten() {
        for (at, print) in prints.into_iter().enumerate() {
            if let Some(print) = print {
                let row = task * each + at;
                valid[row] = true;
                words[row * 4..row * 4 + 4].copy_from_slice(&print);
            }
        }
    }
    let words = Array2::from_shape_vec((count * each, BITS / 64), words).expect("four words a row");
    Ok((words.into_pyarray(py), valid.into_pyarray(py)))
}

type Agreements<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<u8>>);

/// How far pairs of thumbnails agree: a row of 18 numbers a pair, the map first, and of 64 marks of blocks.
#[pyfunction]
#[pyo3(signature = (thumbs, left, right, maps, threads=None))]
fn picture_agreements<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    left: PyReadonlyArray1<'py, i64>,
    right: PyReadonlyArray1<'py, i64>,
    maps: PyReadonlyArray2<'py, f64>,
    threads: Option<usize>,
) -> PyResult<Agreements<'py>> {
    let thumbs = thumbs.as_array();
    let count = thumbs.nrows();
    let row = |values: PyReadonlyArray1<'py, i64>| -> PyResult<Vec<usize>> {
        values
            .as_array()
            .iter()
            .map(|&value| usize::try_from(value).ok().filter(|&value| value < count))
            .collect::<Option<_>>()
            .ok_or_else(|| InvalidValue::new_err("a pair names a picture that is not there"))
    };
    let (left, right) = (row(left)?, row(right)?);
    let maps: Vec<Map> = maps.as_array().rows().into_iter().map(|row| std::array::from_fn(|at| row[at])).collect();
    if thumbs.ncols() != PIXELS || left.len() != right.len() || left.len() != maps.len() {
        return Err(InvalidValue::new_err("one left, one right and one map a pair"));
    }
    let thumbs: Vec<u8> = thumbs.iter().copied().collect();
    let threads = thread_count(threads);
    let found = interruptible(py, false, |_| picture::agreements(&thumbs, &left, &right, &maps, threads))?;
    let numbers: Vec<f64> = found
        .iter()
        .flat_map(|one| {
            let first = [one.covered, one.covering, one.whole, one.mean, one.share];
            let last = [one.fine_mean, one.fine_share, one.blocks, one.strong];
            let inner = [one.inner_mean, one.inner_share, one.inner_blocks];
            one.map.into_iter().chain(first).chain(last).chain(inner)
        })
        .collect();
    let marks: Vec<u8> = found.iter().flat_map(|one| one.marks.map(|mark| mark as u8)).collect();
    let numbers = Array2::from_shape_vec((found.len(), 18), numbers).expect("eighteen numbers a row");
    let marks = Array2::from_shape_vec((found.len(), BLOCKS * BLOCKS), marks).expect("a mark for each block");
    Ok((numbers.into_pyarray(py), marks.into_pyarray(py)))
}

type Corners<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<u64>>);

/// The corners of every thumbnail: whose each is, its place in the unit square, and its 256 bits.
#[pyfunction]
#[pyo3(signature = (thumbs, most, threads=None))]
fn picture_corners<'py>(
    py: Python<'py>,
    thumbs: PyReadonlyArray2<'py, u8>,
    most: usize,
    threads: Option<usize>,
) -> PyResult<Corners<'py>> {
    let thumbs = thumbs.as_array();
    if thumbs.ncols() != PIXELS {
        return Err(InvalidValue::new_err("thumbnails have 16384 bytes"));
    }
    let thumbs: Vec<u8> = thumbs.iter().copied().collect();
    let threads = thread_count(threads);
    let found = interruptible(py, false, |_| corners::corners_of(&thumbs, most, threads))?;
    let pictures: Vec<i64> = found.iter().map(|&(picture, _)| picture as i64).collect();
    let places: Vec<f32> = found.iter().flat_map(|(_, one)| [one.x, one.y]).collect();
    let words: Vec<u64> = found.iter().flat_map(|(_, one)| one.words).collect();
    let places = Array2::from_shape_vec((found.len(), 2), places).expect("two numbers a row");
    let words = Array2::from_shape_vec((found.len(), 4), words).expect("four words a row");
    Ok((pictures.into_pyarray(py), places.into_pyarray(py), words.into_pyarray(py)))
}

type Maps<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<i64>>);

/// For each run of matching corners, ending where `ends` says, the map they elect and its votes; 0 for none.
#[pyfunction]
#[pyo3(signature = (matches, ends, least, threads=None))]
fn picture_maps<'py>(
    py: Python<'py>,
    matches: PyReadonlyArray2<'py, f32>,
    ends: PyReadonlyArray1<'py, i64>,
    least: usize,
    threads: Option<usize>,
) -> PyResult<Maps<'py>> {
    let matches = matches.as_array();
    let ends: Vec<usize> = ends.as_array().iter().map(|&end| usize::try_from(end).unwrap_or(usize::MAX)).collect();
    if matches.ncols() != 4 || !ends.is_sorted() || ends.last().is_some_and(|&end| end > matches.nrows()) {
        return Err(InvalidValue::new_err("a match has 4 numbers, and the ends rise up to their number"));
    }
    let matches: Vec<corners::Match> =
        matches.rows().into_iter().map(|row| std::array::from_fn(|at| row[at])).collect();
    let threads = thread_count(threads);
    let parts = interruptible(py, false, |_| {
        share(threads, ends.len(), Vec::new, |found: &mut Vec<(usize, Option<(Map, usize)>)>, task| {
            let begin = if task == 0 { 0 } else { ends[task - 1] };
            found.push((task, corners::elected(&matches[begin..ends[task]], least)));
        })
    })?;
    let mut maps = Array2::zeros((ends.len(), 6));
    let mut votes = vec![0i64; ends.len()];
    for (task, one) in parts.into_iter().flatten() {
        if let Some((map, count)) = one {
            maps.row_mut(task).iter_mut().zip(map).for_each(|(cell, value)| *cell = value);
            votes[task] = count as i64;
        }
    }
    Ok((maps.into_pyarray(py), votes.into_pyarray(py)))
}
