#![forbid(unsafe_code)]
//! Long work in a second thread, while the calling one looks whether it is still wanted.

use std::any::Any;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::system::parallel::Cancel;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why work ended without an answer.
pub enum Ended<E> {
    /// *look* said so.
    Unwanted(E),
    Panicked(Box<dyn Any + Send>),
}

/// Do *work* once in a second thread. Meanwhile *look* is called every 50 ms with the share that is done, until it
/// fails: then *cancel* is set, and that is the answer. Where the system gives no thread, the work is done in this
/// one. Not generic over the work, so that it is compiled once.
pub fn in_second_thread<E>(
    cancel: &Cancel,
    mut look: impl FnMut(f64) -> Result<(), E>,
    work: &mut (dyn FnMut() + Send),
) -> Result<(), Ended<E>> {
    // Where there is no thread the work is still here.
    let work = Mutex::new(work);
    let run = || work.lock().unwrap_or_else(PoisonError::into_inner)();
    std::thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        let worker = std::thread::Builder::new().spawn_scoped(scope, || {
            let _done = done; // dropped, and so heard, when the work ends
            run();
        });
        let Ok(worker) = worker else {
            run();
            return Ok(());
        };
        let (mut unwanted, mut told) = (None, 0.0);
        while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK_EVERY) {
            told = cancel.share().max(told);
            if unwanted.is_none()
                && let Err(error) = look(told)
            {
                cancel.set();
                unwanted = Some(error);
            }
        }
        match (worker.join(), unwanted) {
            (Err(panic), _) => Err(Ended::Panicked(panic)),
            (Ok(()), Some(error)) => Err(Ended::Unwanted(error)),
            (Ok(()), None) => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn work_is_done_and_its_end_waited_for() {
        let mut done = false;
        assert!(in_second_thread(&Cancel::new(), |_| Ok::<(), ()>(()), &mut || done = true).is_ok());
        assert!(done);
    }

    #[test]
    fn work_that_is_unwanted_is_told_once_and_waited_for() {
        let (cancel, looks) = (Cancel::new(), AtomicUsize::new(0));
        let mut ended = false;
        let look = |_| {
            looks.fetch_add(1, Ordering::Relaxed);
            Err("enough")
        };
        let answer = in_second_thread(&cancel, look, &mut || {
            while !cancel.is_set() {
                std::thread::yield_now();
            }
            ended = true;
        });
        assert!(matches!(answer, Err(Ended::Unwanted("enough"))));
        assert!(ended);
        assert_eq!(looks.into_inner(), 1);
    }

    #[test]
    fn the_share_that_is_told_never_falls() {
        let (cancel, shares) = (Cancel::new(), Mutex::new(Vec::new()));
        cancel.expect(2);
        cancel.advance(1);
        let answer: Result<(), Ended<()>> = in_second_thread(
            &cancel,
            |share| {
                shares.lock().unwrap().push(share);
                cancel.expect(2); // more work than was thought
                Ok(())
            },
            &mut || {
                while shares.lock().unwrap().len() < 2 {
                    std::thread::yield_now();
                }
            },
        );
        assert!(answer.is_ok());
        assert!(shares.into_inner().unwrap().iter().all(|share| *share == 0.5));
    }

    #[test]
    fn a_panic_of_the_work_is_handed_on() {
        let answer: Result<(), Ended<()>> =
            in_second_thread(&Cancel::new(), |_| Ok(()), &mut || std::panic::resume_unwind(Box::new("broken")));
        assert!(matches!(answer, Err(Ended::Panicked(panic)) if panic.is::<&str>()));
    }
}
