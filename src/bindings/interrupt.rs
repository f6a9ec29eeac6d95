//! Long work that Ctrl-C can stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use super::LimitReached;

const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Do *work* with the interpreter released. *long* work goes on in a second thread, while this
/// one looks for signals; when one raises, *work* is told through its flag, and ends.
pub fn interruptible<T: Send>(py: Python<'_>, long: bool, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let cancel = AtomicBool::new(false);
    if !long {
        return Ok(py.detach(|| work(&cancel)));
    }
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, wait) = channel();
            let cancel = &cancel;
            let worker = std::thread::Builder::new()
                .spawn_scoped(scope, move || {
                    let result = work(cancel);
                    // The other side hangs up only when this scope ends.
                    let _ = done.send(());
                    result
                })
                .map_err(|error| LimitReached::new_err(format!("the system gives no thread: {error}")))?;
            let mut raised = None;
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(LOOK_EVERY) {
                if raised.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    cancel.store(true, Ordering::Relaxed);
                    raised = Some(error);
                }
            }
            match (worker.join(), raised) {
                (Err(panic), _) => std::panic::resume_unwind(panic),
                (Ok(_), Some(error)) => Err(error),
                (Ok(result), None) => Ok(result),
            }
        })
    })
}
