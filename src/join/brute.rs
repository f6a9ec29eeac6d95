#![forbid(unsafe_code)]
//! All pairs compared, tile by tile.

use std::sync::atomic::Ordering;

use crate::hamming::distance::{pairs_between, pairs_within};
use crate::join::buckets::Worker;
use crate::join::job::{COLUMNS, EMIT, Job, ROWS, Stop, planes_of, take_over, views};
use crate::system::memory::more_room;
use crate::system::parallel::share;

pub fn brute_self<const W: usize>(unique: &[[u64; W]], job: &Job<'_>) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let planes = planes_of(unique);
    let planes = views::<W>(&planes);
    let total = unique.len();
    job.cancel.expect((total as u64).pow(2) / 2);
    brute(total.div_ceil(ROWS), job, |task, hits, keep| {
        let rows = task * ROWS..((task + 1) * ROWS).min(total);
        pairs_within(&planes, rows.clone(), job.radius, hits);
        keep(hits, unique, unique)?;
        for start in (rows.end..total).step_by(COLUMNS) {
            let columns = start..(start + COLUMNS).min(total);
            pairs_between(&planes, rows.clone(), &planes, columns, job.radius, hits);
            keep(hits, unique, unique)?;
        }
        job.cancel.advance((rows.len() * (total - rows.start)) as u64);
        Ok(())
    })
}

pub fn brute_cross<const W: usize>(
    left: &[[u64; W]],
    right: &[[u64; W]],
    job: &Job<'_>,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let (left_planes, right_planes) = (planes_of(left), planes_of(right));
    let (left_planes, right_planes) = (views::<W>(&left_planes), views::<W>(&right_planes));
    job.cancel.expect(left.len() as u64);
    brute(left.len().div_ceil(ROWS), job, |task, hits, keep| {
        let rows = task * ROWS..((task + 1) * ROWS).min(left.len());
        for start in (0..right.len()).step_by(COLUMNS) {
            let columns = start..(start + COLUMNS).min(right.len());
            pairs_between(&left_planes, rows.clone(), &right_planes, columns, job.radius, hits);
            keep(hits, left, right)?;
        }
        job.cancel.advance(rows.len() as u64);
        Ok(())
    })
}

pub type Keep<'a, const W: usize> = dyn FnMut(&mut Vec<[u32; 2]>, &[[u64; W]], &[[u64; W]]) -> Result<(), Stop> + 'a;

pub fn brute<const W: usize>(
    tasks: usize,
    job: &Job<'_>,
    work: impl Fn(usize, &mut Vec<[u32; 2]>, &mut Keep<'_, W>) -> Result<(), Stop> + Sync,
) -> Result<Vec<[[u64; W]; 2]>, Stop> {
    let workers = share(job.threads, tasks, Worker::<W>::default, |worker, task| {
        if worker.stop.is_some() {
            return;
        }
        let Worker { hits, pairs, stop, .. } = worker;
        let mut keep = |hits: &mut Vec<[u32; 2]>, left: &[[u64; W]], right: &[[u64; W]]| {
            for some in hits.chunks(EMIT) {
                job.held.fetch_add(some.len(), Ordering::Relaxed);
                job.check()?;
                more_room(pairs, some.len());
                pairs.extend(some.iter().map(|&[i, j]| [left[i as usize], right[j as usize]]));
            }
            hits.clear();
            job.check()
        };
        *stop = work(task, hits, &mut keep).err();
    });
    let mut pairs = Vec::new();
    for worker in workers {
        if let Some(stop) = worker.stop {
            return Err(stop);
        }
        take_over(&mut pairs, worker.pairs);
    }
    Ok(pairs)
}
