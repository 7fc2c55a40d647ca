//! The queue between the threads that log and the thread that writes.
//!
//! ```text
//!   formatted lines ──▶ pending, at most 256 KiB ──▶ writer thread ──▶ standard error
//!                         └── full: the line is dropped and counted
//! ```
//!
//! Standard error may be a pipe that is not read, a stopped terminal, a journal that hangs, or a
//! file on a disk that does not respond. A thread that logs never waits for it: it copies a line
//! into memory, under a lock that is never held during a write.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum octets that are queued for the writer, which holds as many at most.
const MAX_PENDING: usize = 256 * 1024;
/// Size above which a buffer is freed after use, in octets.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Queued lines.
#[derive(Debug, Default)]
pub(super) struct LogQueue {
    state: Mutex<State>,
    /// Signals queued lines.
    filled: Condvar,
    /// Signals that all lines are written.
    drained: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    /// Whether the writer is writing lines that it has dequeued.
    writing: bool,
    /// Whether writing the last lines failed.
    failing: bool,
    /// Number of dropped lines.
    dropped: u64,
    /// Number of dropped lines that the log has reported.
    reported: u64,
}

impl LogQueue {
    /// Queues one line, or several that belong together; drops and counts them when the queue is
    /// full.
    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.pending.len() + line.len() > MAX_PENDING {
            state.dropped += 1;
            return;
        }
        state.pending.extend_from_slice(line);
        self.filled.notify_one();
    }

    /// Returns the number of lines dropped since the process started.
    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Returns the number of dropped lines that the log has not reported; `None` while there are
    /// none, or while the report would probably be dropped as well.
    pub(super) fn take_unreported(&self) -> Option<u64> {
        let mut state = self.lock();
        let flows = !state.failing && state.pending.len() < MAX_PENDING / 2;
        let lines = state.dropped - state.reported;
        if lines == 0 || !flows {
            return None;
        }
        state.reported = state.dropped;
        Some(lines)
    }

    /// Waits until all lines are written, for `limit` at most.
    pub(super) fn flush(&self, limit: Duration) {
        let waits = |state: &mut State| state.writing || !state.pending.is_empty();
        let _ = self
            .drained
            .wait_timeout_while(self.lock(), limit, waits)
            .unwrap_or_else(PoisonError::into_inner);
    }

    /// Writes queued lines to `out`. Never returns.
    pub(super) fn write_all_to(&self, mut out: File) -> ! {
        let mut lines = Vec::new();
        loop {
            self.take(&mut lines);
            let lost = write_lines(&mut out, &lines);
            let mut state = self.lock();
            state.dropped += lost;
            state.failing = lost > 0;
            state.writing = false;
            if state.pending.is_empty() {
                self.drained.notify_all();
            }
        }
    }

    /// Waits for lines, and exchanges them for the empty `lines`.
    fn take(&self, lines: &mut Vec<u8>) {
        lines.clear();
        lines.shrink_to(KEPT_CAPACITY);
        let mut state = self
            .filled
            .wait_while(self.lock(), |state| state.pending.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut state.pending, lines);
        state.writing = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The formatter's output: one call for each event.
impl Write for &LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes `lines`; returns how many of them failed.
fn write_lines(out: &mut File, mut lines: &[u8]) -> u64 {
    while !lines.is_empty() {
        match out.write(lines) {
            Ok(written @ 1..) => lines = &lines[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process with the same terminal has set O_NONBLOCK.
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait_until_writable(out),
            Ok(_) | Err(_) => return lines.iter().filter(|&&octet| octet == b'\n').count() as u64,
        }
    }
    0
}

fn wait_until_writable(out: &File) {
    let mut poll = libc::pollfd { fd: out.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: `poll` is valid for reads and writes, and is one element. An error only means that
    // the next attempt to write is early.
    unsafe { libc::poll(&raw mut poll, 1, -1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    const NO_TIME: Duration = Duration::from_millis(20);
    const ENOUGH: Duration = Duration::from_secs(30);

    /// A queue with a writer, and the reading end.
    fn piped() -> (Arc<LogQueue>, BufReader<io::PipeReader>) {
        let (reader, writer) = io::pipe().unwrap();
        let queue = Arc::new(LogQueue::default());
        let writing = Arc::clone(&queue);
        std::thread::spawn(move || writing.write_all_to(File::from(OwnedFd::from(writer))));
        (queue, BufReader::new(reader))
    }

    fn log(queue: &LogQueue, number: usize) {
        let mut out = queue;
        out.write_all(format!("{number:>99}\n").as_bytes()).unwrap();
    }

    #[test]
    fn a_blocked_reader_costs_lines_and_never_time() {
        let (queue, mut reader) = piped();
        // A pipe holds 64 KiB, the writer and the queue 256 KiB each: 100 octets a line.
        let lines = 50_000;
        (0..lines).for_each(|number| log(&queue, number));
        let dropped = queue.dropped();
        assert!(dropped > 20_000, "{dropped}");
        assert_eq!(queue.take_unreported(), None, "a report would be dropped as well");
        queue.flush(NO_TIME);
        // When it is read again, all lines that were not dropped arrive, complete and in order.
        let kept = lines - dropped as usize;
        let mut numbers = Vec::new();
        for line in reader.by_ref().lines().take(kept) {
            numbers.push(line.unwrap().trim().parse::<usize>().unwrap());
        }
        assert!(numbers.is_sorted() && numbers.len() == kept);
        queue.flush(ENOUGH);
        assert_eq!(queue.take_unreported(), Some(dropped));
        assert_eq!(queue.take_unreported(), None, "reported once");
        log(&queue, 7);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "7");
    }

    #[test]
    fn refused_lines_are_counted_and_reported_once_lines_are_written_again() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let queue = Arc::new(LogQueue::default());
        let writing = Arc::clone(&queue);
        std::thread::spawn(move || writing.write_all_to(full));
        (0..3).for_each(|number| log(&queue, number));
        queue.flush(ENOUGH);
        assert_eq!((queue.dropped(), queue.take_unreported()), (3, None));
        queue.lock().failing = false;
        assert_eq!(queue.take_unreported(), Some(3));
    }

    #[test]
    fn a_closed_reader_does_not_stop_the_writer() {
        let (queue, reader) = piped();
        drop(reader);
        log(&queue, 1);
        queue.flush(ENOUGH);
        assert_eq!(queue.dropped(), 1);
    }

    #[test]
    fn a_non_blocking_descriptor_is_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let writer = File::from(OwnedFd::from(writer));
        nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
            .unwrap();
        let queue = Arc::new(LogQueue::default());
        let writing = Arc::clone(&queue);
        std::thread::spawn(move || writing.write_all_to(writer));
        // More than the pipe holds, and no more than the queue does.
        let lines = 2_500;
        (0..lines).for_each(|number| log(&queue, number));
        let read = BufReader::new(reader).lines().take(lines).map_while(Result::ok).count();
        queue.flush(ENOUGH);
        assert_eq!((read, queue.dropped()), (lines, 0));
    }
}
