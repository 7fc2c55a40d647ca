//! The queue of commands to a running emulator.

use crate::Clock;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use units::Instant;

/// Maximum queued commands.
pub(super) const CAPACITY: usize = 64;

/// The end of the threads that control the emulator.
#[derive(Clone, Debug)]
pub(super) struct CommandSender<C> {
    queue: SyncSender<(Instant, C)>,
    clock: Clock,
    notification: Arc<Notification>,
}

/// The emulator's end.
pub(super) struct CommandReceiver<C> {
    queue: Receiver<(Instant, C)>,
    notification: Arc<Notification>,
}

/// Creates a queue whose commands get their times from `clock`.
pub(super) fn channel<C>(clock: Clock) -> io::Result<(CommandSender<C>, CommandReceiver<C>)> {
    let (sender, queue) = mpsc::sync_channel(CAPACITY);
    let notification = Arc::new(Notification::new()?);
    let receiver = CommandReceiver { queue, notification: Arc::clone(&notification) };
    Ok((CommandSender { queue: sender, clock, notification }, receiver))
}

impl<C> CommandSender<C> {
    /// Queues a command with the current time.
    ///
    /// # Errors
    /// If the queue is full or the emulator has ended.
    pub(super) fn send(&self, command: C) -> Result<(), TrySendError<(Instant, C)>> {
        self.queue.try_send((self.clock.now(), command))?;
        self.notification.notify();
        Ok(())
    }
}

impl<C> CommandReceiver<C> {
    /// The commands received since the last call, with their times.
    pub(super) fn fetch(&self) -> impl Iterator<Item = (Instant, C)> {
        self.queue.try_iter()
    }

    /// A descriptor that is readable while a command is queued.
    pub(super) fn descriptor(&self) -> RawFd {
        self.notification.descriptor()
    }

    /// Resets the descriptor until the next command.
    pub(super) fn reset(&self) {
        self.notification.reset();
    }
}

/// An eventfd that wakes a thread waiting on descriptors.
#[derive(Debug)]
struct Notification(OwnedFd);

impl Notification {
    fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn notify(&self) {
        let one = 1u64;
        // An overflow needs no further notification.
        // SAFETY: an eventfd takes eight bytes, which `one` is.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// A descriptor that is readable after a notification.
    fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Resets the descriptor until the next notification.
    fn reset(&self) {
        let mut count = 0u64;
        // SAFETY: an eventfd gives eight bytes, and `count` has room for them.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}
