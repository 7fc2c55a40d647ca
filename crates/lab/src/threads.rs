//! Helpers for threads.

use rt::Clock;
use std::any::Any;
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
