#![forbid(unsafe_code)]
//! Work shared among scoped threads, and the wish to stop it.
//!
//! Threads live only as long as the call: nothing is left behind that a fork could break.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::system::cores::{Cores, Thread};
use crate::system::memory;

/// What a long call and its caller tell each other. It is set from outside to stop the call, which
/// looks at it between small pieces of work, and may say how many of those it has done.
#[derive(Default)]
pub struct Cancel {
    set: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    /// The share that was done before work started again, as bits.
    before: AtomicU64,
}

/// The call was cancelled; its partial work is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled;

impl Cancel {
    pub fn new() -> Cancel {
        Cancel::default()
    }

    pub fn set(&self) {
        self.set.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.set.load(Ordering::Relaxed)
    }

    /// So much more is to be done.
    pub fn expect(&self, work: u64) {
        self.total.fetch_add(work, Ordering::Relaxed);
    }

    /// So much more is done.
    pub fn advance(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    /// The work starts again, in another way; the share that was done keeps rising from where it is.
    pub fn begin_anew(&self) {
        let before = self.share().to_bits();
        // Who asks meanwhile may see too little, which is not passed on (the highest share so far is), but never too much.
        self.done.store(0, Ordering::Release);
        self.total.store(0, Ordering::Release);
        self.before.store(before, Ordering::Release);
    }

    /// The share of the work that is done, as far as it is known.
    pub fn share(&self) -> f64 {
        let before = f64::from_bits(self.before.load(Ordering::Acquire));
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        let since = if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) };
        before + (1.0 - before) * since
    }

    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_set() { Err(Cancelled) } else { Ok(()) }
    }
}

/// Run `work(worker state, task)` for every task, on up to `threads` threads; the states, in order.
pub fn share<S: Send>(
    threads: usize,
    tasks: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = start();
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= tasks {
                return state;
            }
            work(&mut state, task);
        }
    };
    on_threads(threads.min(tasks), run)
}

/// Call *run* on *threads* threads, this one among them; what each returned. A system that has no
/// more threads to give still gets the work done, with fewer.
fn on_threads<S: Send>(threads: usize, run: impl Fn() -> S + Sync) -> Vec<S> {
    if threads <= 1 {
        return vec![run()];
    }
    let states = Mutex::new((0..threads).map(|_| None).collect::<Vec<Option<S>>>());
    call_on_threads(threads, &|number| {
        let state = run();
        states.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(state);
    });
    states.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

/// The same with the number of each thread. Not generic: this much code for each kind of work took a fifth of
/// the time to compile the core.
fn call_on_threads(threads: usize, run: &(dyn Fn(usize) + Sync)) {
    let cores = Cores::own();
    std::thread::scope(|scope| {
        let start = |number| {
            if !memory::has(memory::THREAD) {
                return None; // those that run will report it
            }
            let (here, is_here) = channel();
            let (go, wait) = channel::<()>();
            let helper = std::thread::Builder::new().spawn_scoped(scope, move || {
                let own = Thread::own();
                let _ = here.send(own);
                let _ = wait.recv(); // it is only dropped, which says enough
                cores.allow(own);
                run(number);
            });
            if let Ok(thread) = is_here.recv() {
                cores.send(thread);
            }
            drop(go);
            helper.ok()
        };
        let helpers: Vec<_> = (1..threads).map_while(start).collect();
        run(0);
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Run `work` once for each input, on a thread for each; the results in the order of the inputs.
pub fn each<I: Send, T: Send>(inputs: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    map(inputs.len(), inputs, work)
}

/// Run `work` once for each input on up to `threads` threads, whichever is free; the results in the
/// order of the inputs.
pub fn map<I: Send, T: Send>(threads: usize, inputs: Vec<I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let count = inputs.len();
    let queue = Mutex::new(inputs.into_iter().enumerate());
    let done = share(threads, count, Vec::new, |own, _| {
        // A poisoned lock means a panic in another thread, which the scope passes on.
        let next = queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
        own.extend(next.map(|(place, input)| (place, work(input))));
    });
    let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
    for (place, result) in done.into_iter().flatten() {
        results[place] = Some(result);
    }
    results.into_iter().flatten().collect()
}

/// How many threads to use: as many as requested, or as the machine has.
pub fn thread_count(asked: Option<usize>) -> usize {
    // Asking the system reads files; an index asks at every entry.
    static MACHINE: OnceLock<usize> = OnceLock::new();
    let machine = || *MACHINE.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
    asked.unwrap_or_else(machine).clamp(1, 256)
}

/// Call *work* once with each of *pieces* on *threads* threads, each of which has a state of
/// its own; the states. Stops early when *cancel* is set.
pub fn drain<Piece, State: Send>(
    pieces: impl Iterator<Item = Piece> + Send,
    threads: usize,
    cancel: &Cancel,
    state: impl Fn() -> State + Sync,
    work: impl Fn(&mut State, Piece) + Sync,
) -> Vec<State> {
    let pieces = Mutex::new(pieces);
    let run = || {
        let mut own = state();
        while !cancel.is_set() {
            if memory::is_short() {
                memory::no_room();
            }
            // A poisoned lock means a panic in another thread, which the scope passes on.
            let next = pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
            match next {
                Some(piece) => work(&mut own, piece),
                None => break,
            }
        }
        own
    };
    on_threads(threads, run)
}
