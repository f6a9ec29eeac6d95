//! Work on many pieces with many threads, until it is done or called off.
//!
//! Threads live for one call, so a process may fork between two calls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of threads that *wanted* means: all cores where nothing was said.
pub fn threads(wanted: Option<usize>) -> usize {
    wanted
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
        .max(1)
}

/// Call *work* once with each of *pieces* on *threads* threads, each of which has a state of
/// its own; the states. Stops early when *cancel* is set.
pub fn each<Piece, State: Send>(
    pieces: impl Iterator<Item = Piece> + Send,
    threads: usize,
    cancel: &AtomicBool,
    state: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, Piece) + Sync,
) -> Vec<State> {
    let pieces = Mutex::new(pieces);
    let run = || {
        let mut own = state();
        while !cancel.load(Ordering::Relaxed) {
            // A poisoned lock means a panic in another thread, which the scope passes on.
            let next = pieces
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .next();
            match next {
                Some(piece) => work(&mut own, piece),
                None => break,
            }
        }
        own
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        for helper in helpers {
            match helper.join() {
                Ok(own) => states.push(own),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}
