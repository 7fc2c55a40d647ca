//! The start of a process that replaces another one of the same gateway.
//!
//! ```text
//!   old process                        new process
//!   sockets ──inherited descriptors──▶ opens the configuration with them
//!           ◀──────ready (R)────────── waits
//!   stops receiving ────go (G)───────▶ receives and accepts
//! ```
//!
//! The descriptors are in `BENTPIPE_HANDOVER`: `control=5 socket=7,9 socket=8 filter=10`, where the
//! second number of a datagram socket is that of the channel to the old process.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

/// Name of the environment variable.
const VARIABLE: &str = "BENTPIPE_HANDOVER";
/// Maximum time for which the new process waits for the old one.
const PATIENCE: Duration = Duration::from_secs(30);

static RECEIVED: Mutex<Option<Received>> = Mutex::new(None);
static ASKED: Once = Once::new();

/// What the old process has passed to this one.
#[derive(Debug, Default)]
struct Received {
    control: Option<UnixStream>,
    /// Sockets, and the channels to the old process.
    sockets: Vec<(OwnedFd, Option<OwnedFd>)>,
    /// Connections to the packet filter, to which its tables belong.
    filters: Vec<OwnedFd>,
}

fn received<T>(take: impl FnOnce(&mut Received) -> T) -> Option<T> {
    let mut received = RECEIVED.lock().unwrap_or_else(PoisonError::into_inner);
    ASKED.call_once(|| *received = std::env::var(VARIABLE).ok().map(|text| parse(&text)));
    received.as_mut().map(take)
}

/// Whether this process replaces another one.
pub(crate) fn is_replacing() -> bool {
    received(|_| ()).is_some()
}

/// Takes the sockets, and the channels to the old process.
pub(super) fn sockets() -> Vec<(OwnedFd, Option<OwnedFd>)> {
    received(|all| std::mem::take(&mut all.sockets)).unwrap_or_default()
}

/// Takes the next connection to the packet filter.
pub(crate) fn filter() -> Option<OwnedFd> {
    received(|all| (!all.filters.is_empty()).then(|| all.filters.remove(0))).flatten()
}

/// Informs the old process that this one is ready, and waits until the old one has stopped
/// receiving.
///
/// # Errors
/// If the old process has ended or given up.
pub(crate) fn take_over() -> io::Result<()> {
    let Some(mut control) = received(|all| all.control.take()).flatten() else { return Ok(()) };
    control.set_nonblocking(false)?;
    control.set_read_timeout(Some(PATIENCE))?;
    control.write_all(b"R")?;
    let mut answer = [0];
    control.read_exact(&mut answer)?;
    Ok(())
}

fn parse(text: &str) -> Received {
    let mut all = Received::default();
    for word in text.split(' ') {
        let Some((key, numbers)) = word.split_once('=') else { continue };
        // What another release may add is not a descriptor of this one.
        if !["control", "socket", "filter"].contains(&key) {
            continue;
        }
        let mut numbers = numbers.split(',').filter_map(|number| number.parse().ok()).map(own);
        match (key, numbers.next()) {
            ("control", Some(control)) => all.control = Some(control.into()),
            ("socket", Some(socket)) => all.sockets.push((socket, numbers.next())),
            ("filter", Some(filter)) => all.filters.push(filter),
            (_, _) => {}
        }
    }
    all
}

fn own(number: RawFd) -> OwnedFd {
    // SAFETY: the old process has opened it for this one, which takes each only here, once.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    set_inherited(&descriptor, false);
    descriptor
}

fn set_inherited(descriptor: &impl AsRawFd, is_inherited: bool) {
    let flags = if is_inherited { 0 } else { libc::FD_CLOEXEC };
    // SAFETY: fcntl with these arguments touches no memory.
    unsafe { libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFD, flags) };
}

/// A new process that is starting.
#[derive(Debug)]
pub(crate) struct Starting {
    child: Child,
    control: UnixStream,
    /// The channels to it, with the numbers of their UDP sockets.
    pub(crate) channels: Vec<(usize, OwnedFd)>,
}

/// Sockets for a new process, which get the channels to it.
#[derive(Debug, Default)]
pub(crate) struct Passed<'s> {
    /// UDP sockets with their numbers.
    pub(crate) datagrams: Vec<(usize, BorrowedFd<'s>)>,
    pub(crate) listeners: Vec<BorrowedFd<'s>>,
    pub(crate) filters: Vec<BorrowedFd<'s>>,
}

impl Starting {
    /// Starts the program that now has this one's name, with this one's arguments, and passes the
    /// sockets to it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn start(passed: &Passed<'_>) -> io::Result<Self> {
        let (control, theirs) = UnixStream::pair()?;
        control.set_nonblocking(true)?;
        let mut words = vec![format!("control={}", theirs.as_raw_fd())];
        let mut inherited = vec![theirs.as_raw_fd()];
        let (mut channels, mut their_ends) = (Vec::new(), Vec::new());
        for (number, socket) in &passed.datagrams {
            let (ours, theirs) = crate::driver::channel()?;
            words.push(format!("socket={},{}", socket.as_raw_fd(), theirs.as_raw_fd()));
            inherited.extend([socket.as_raw_fd(), theirs.as_raw_fd()]);
            channels.push((*number, ours));
            their_ends.push(theirs);
        }
        let others = [("socket", &passed.listeners), ("filter", &passed.filters)];
        for (key, descriptor) in
            others.iter().flat_map(|(key, all)| all.iter().map(move |d| (key, d)))
        {
            words.push(format!("{key}={}", descriptor.as_raw_fd()));
            inherited.push(descriptor.as_raw_fd());
        }
        // A package manager has replaced the file by renaming.
        let program = std::env::current_exe()?;
        let program = program.to_string_lossy();
        let mut command = Command::new(program.trim_end_matches(" (deleted)"));
        command.args(std::env::args_os().skip(1)).env(VARIABLE, words.join(" "));
        for variable in ["WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] {
            command.env_remove(variable);
        }
        inherited.iter().for_each(|descriptor| set_inherited(descriptor, true));
        let child = command.spawn();
        inherited.iter().for_each(|descriptor| set_inherited(descriptor, false));
        Ok(Self { child: child?, control, channels })
    }

    /// Returns the descriptor that becomes readable when it is ready or has failed.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.control.as_raw_fd()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it is ready; `None` while it starts.
    ///
    /// # Errors
    /// If it has failed.
    pub(crate) fn poll_ready(&mut self) -> Option<io::Result<()>> {
        match (&self.control).read(&mut [0]) {
            Ok(1..) => Some(Ok(())),
            Ok(0) => Some(Err(io::Error::other("the new process has ended, see its messages"))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Lets it receive.
    ///
    /// # Errors
    /// If it has ended.
    pub(crate) fn go(&mut self) -> io::Result<()> {
        (&self.control).write_all(b"G")
    }

    /// Ends it.
    pub(crate) fn give_up(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::IntoRawFd;

    #[test]
    fn descriptors_are_read_from_the_variable() {
        let open = || UnixStream::pair().expect("a pair").0.into_raw_fd();
        let [control, socket, channel, listener] = std::array::from_fn(|_| open());
        let text = format!("control={control} socket={socket},{channel} later=1 socket={listener}");
        let all = parse(&text);
        assert_eq!(all.control.map(|control| control.as_raw_fd()), Some(control));
        let sockets: Vec<(RawFd, Option<RawFd>)> = all
            .sockets
            .iter()
            .map(|(socket, channel)| (socket.as_raw_fd(), channel.as_ref().map(AsRawFd::as_raw_fd)))
            .collect();
        assert_eq!(sockets, [(socket, Some(channel)), (listener, None)]);
    }
}
