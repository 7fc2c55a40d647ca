//! Helpers for threads.

use rt::Clock;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use units::Span;

/// Returns the result of a joined thread, or continues its panic.
pub(crate) fn joined<T>(result: thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// Sleeps for `span`.
pub(crate) fn sleep(span: Span) {
    let clock = Clock::new();
    clock.sleep_until(clock.now() + span);
}

type Job<T> = Box<dyn FnOnce(&mut T) -> bool + Send>;

/// A value on a thread of its own, such as one that is not `Send`. Jobs use it one after another; the
/// thread ends when this is dropped and all jobs are done.
#[derive(Debug)]
pub struct Apart<T> {
    jobs: Sender<Job<T>>,
}

impl<T: Default + 'static> Default for Apart<T> {
    fn default() -> Self {
        let (jobs, todo) = mpsc::channel::<Job<T>>();
        thread::spawn(move || {
            let mut value = T::default();
            while let Ok(job) = todo.recv() {
                if !job(&mut value) {
                    break;
                }
            }
        });
        Self { jobs }
    }
}

impl<T: 'static> Apart<T> {
    /// Starts a job. The receiver gets its result, or the message of its panic. After a panic the value
    /// is not used again, and the receivers of further jobs are disconnected.
    pub fn start<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Receiver<Result<R, String>> {
        let (send, receive) = mpsc::channel();
        let job = move |value: &mut T| {
            let result = catch_unwind(AssertUnwindSafe(|| job(value)));
            let result = result.map_err(|panic| panic_message(&*panic).to_owned());
            let goes_on = result.is_ok();
            // Nobody may wait for it.
            let _ = send.send(result);
            goes_on
        };
        // It fails after a panic; `send` is dropped then.
        let _ = self.jobs.send(Box::new(job));
        receive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_in_order_until_one_panics() {
        let counter = Apart::<u32>::default();
        let add = |by| counter.start(move |value| *value += by);
        let _unheard = add(1);
        assert_eq!(add(2).recv(), Ok(Ok(())));
        assert_eq!(counter.start(|value| *value).recv(), Ok(Ok(3)));
        let panicked = counter.start(|value| assert_eq!(*value, 4, "on purpose"));
        assert!(panicked.recv().unwrap().unwrap_err().contains("on purpose"));
        assert!(counter.start(|value| *value).recv().is_err(), "the value is not used again");
    }
}
