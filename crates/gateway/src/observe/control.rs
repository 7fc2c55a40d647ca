//! The control socket: local clients send requests, one JSON object per line, which are answered in
//! order.
//!
//! The permissions of the socket, its owner and group, decide which users may connect. A client can
//! read the gateway's status and, by a capture, the data of its users. Nothing blocks: while a
//! client does not read, its requests are not read, and packets without room in a capture are
//! dropped and counted.

use super::capture::{Capture, MAX_PENDING, MAX_ROUND};
use super::pipe::Pipe;
use super::question::{self, MAX_LINE, MAX_PAGE, Question};
use super::socket::{self, Place};
use super::{Identity, Status};
use crate::driver::KernelReserve;
use crate::engine::EngineView;
use crate::engine::Reserve;
use crate::engine::is_out_of_descriptors;
use mio::net::{UnixListener, UnixStream};
use mio::{Interest, Registry, Token};
use relay::Tap;
use serde::Serialize;
use slab::Slab;
use std::io;
use std::path::Path;
use units::{Instant, Span};

/// Maximum number of concurrent clients; a further one receives an error.
pub(super) const MAX_CLIENTS: usize = 16;
/// Maximum number of clients accepted in one round.
const ACCEPTS: usize = 4;
/// Interval of retries to accept a client while no descriptor is available.
const RETRY: Span = Span::from_millis(200);
/// Time without progress after which a client is disconnected.
const IDLE_TIMEOUT: Span = Span::from_secs(300);
/// Maximum duration of a capture.
const MAX_CAPTURE_SECONDS: f64 = 86_400.0;

/// The socket and its clients.
#[derive(Debug)]
pub(super) struct Control {
    listener: UnixListener,
    /// Removes the socket's file when dropped.
    _place: Place,
    ready: bool,
    /// Set when a client has sent more requests than were answered in the last turn.
    more: bool,
    clients: Slab<Client>,
    first: usize,
    capture: Option<Running>,
    /// Used to accept a client while the process has no other descriptor.
    reserve: KernelReserve,
    /// Time of the next attempt to accept after the reserve was insufficient.
    retry: Option<Instant>,
}

#[derive(Debug)]
struct Client {
    pipe: Pipe<UnixStream>,
    /// The client is disconnected at this time if it makes no progress.
    until: Instant,
    /// Set when its capture has ended: the client is disconnected when it has read the rest.
    leaving: bool,
}

/// The running capture; there is at most one.
#[derive(Debug)]
struct Running {
    client: usize,
    capture: Capture,
    until: Option<Instant>,
}

/// The state that requests refer to.
pub(super) struct Desk<'a, 'b> {
    pub(super) identity: &'a Identity,
    pub(super) view: &'a mut EngineView<'b>,
    pub(super) status: &'a mut dyn FnMut(&mut EngineView<'_>) -> Status,
}

impl Control {
    pub(super) fn listen(path: &Path) -> io::Result<Self> {
        let (listener, place) = socket::listen(path)?;
        Ok(Self {
            listener,
            _place: place,
            ready: true,
            more: false,
            clients: Slab::new(),
            first: 0,
            capture: None,
            reserve: KernelReserve::new(),
            retry: None,
        })
    }

    /// Registers the listener as `token`, and clients from `first` on.
    pub(super) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        first: usize,
    ) -> io::Result<()> {
        self.first = first;
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    pub(super) fn is_ready(&mut self) {
        self.ready = true;
    }

    pub(super) fn client_is_ready(&mut self, key: usize, event: &mio::event::Event) {
        if let Some(client) = self.clients.get_mut(key) {
            client.pipe.is_ready(event);
        }
    }

    pub(super) fn has_work(&self, now: Instant) -> bool {
        let due = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        self.ready
            || due(self.retry)
            || self.more
            || self.capture.is_some()
            || self.clients.iter().any(|(_, one)| one.pipe.has_work() || due(Some(one.until)))
    }

    /// Returns when it needs a turn without an event.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let capture = self.capture.as_ref().and_then(|running| running.until);
        self.clients.iter().map(|(_, client)| client.until).chain(capture).chain(self.retry).min()
    }

    /// Returns the octets of queued input and output of each client, for fuzzing.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn waiting(&self) -> impl Iterator<Item = [usize; 2]> {
        self.clients.iter().map(|(_, one)| [one.pipe.input.len(), one.pipe.pending()])
    }

    /// Serves all clients without blocking; returns true if requests remain.
    pub(super) fn turn(&mut self, registry: &Registry, desk: &mut Desk<'_, '_>) -> bool {
        let now = desk.view.now;
        self.accept(now, registry);
        self.pass_capture(desk);
        self.more = false;
        let keys: Vec<usize> = self.clients.iter().map(|(key, _)| key).collect();
        for key in keys {
            match self.serve(key, desk) {
                Ok(Served::Waits) => {}
                Ok(Served::HasMore) => self.more = true,
                Ok(Served::Over) | Err(_) => self.remove(key, desk),
            }
        }
        self.reserve.restore();
        self.more
    }

    /// Ends the capture, so that its file is complete.
    pub(super) fn close(&mut self, desk: &mut Desk<'_, '_>) {
        self.end_capture(desk);
        for (_, client) in &mut self.clients {
            // Output that does not fit into the socket buffer is lost.
            let _ = client.pipe.flush();
        }
    }

    fn accept(&mut self, now: Instant, registry: &Registry) {
        if self.retry.is_some_and(|at| at <= now) {
            (self.ready, self.retry) = (true, None);
        }
        for _ in 0..ACCEPTS {
            if !self.ready {
                return;
            }
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if is_out_of_descriptors(&error) => {
                    if self.reserve.give_up() {
                        continue;
                    }
                    // The reserved descriptor is restored when the client that uses it closes.
                    self.ready = false;
                    self.retry = Some(now + RETRY);
                    return;
                }
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        tracing::warn!(%error, "accepting a control client failed");
                    }
                    self.ready = false;
                    return;
                }
            };
            if self.clients.len() >= MAX_CLIENTS {
                let mut line = Vec::new();
                question::refuse("too many clients of the control socket", &mut line);
                let _ = io::Write::write(&mut stream, &line);
                continue;
            }
            let place = self.clients.vacant_entry();
            if let Ok(pipe) = Pipe::new(stream, registry, Token(self.first + place.key())) {
                place.insert(Client { pipe, until: now + IDLE_TIMEOUT, leaving: false });
            }
        }
    }

    fn serve(&mut self, key: usize, desk: &mut Desk<'_, '_>) -> io::Result<Served> {
        let now = desk.view.now;
        let captures = self.capture.as_ref().is_some_and(|running| running.client == key);
        let client = &mut self.clients[key];
        let before = client.pipe.pending();
        client.pipe.flush()?;
        if client.pipe.pending() < before || captures && client.pipe.pending() == 0 {
            client.until = now + IDLE_TIMEOUT;
        }
        if client.until <= now || client.leaving && client.pipe.pending() == 0 {
            return Ok(Served::Over);
        }
        if client.leaving {
            return Ok(Served::Waits);
        }
        if captures {
            client.pipe.ignore()?;
            if client.pipe.has_ended() {
                // The client needs no more packets; those that are queued are still sent.
                self.end_capture(desk);
            }
            return Ok(Served::Waits);
        }
        client.pipe.fill(MAX_LINE)?;
        if client.pipe.pending() > 0 {
            // The queued response is sent first.
            return Ok(Served::Waits);
        }
        let Some(end) = client.pipe.input.iter().position(|&byte| byte == b'\n') else {
            return Ok(self.without_a_line(key));
        };
        client.until = now + IDLE_TIMEOUT;
        let line: Vec<u8> = client.pipe.input.drain(..=end).collect();
        if !line.trim_ascii().is_empty() {
            self.answer(key, &line, desk);
        }
        let client = &mut self.clients[key];
        client.pipe.flush()?;
        let more = client.pipe.input.contains(&b'\n') && client.pipe.pending() == 0;
        Ok(if more { Served::HasMore } else { Served::Waits })
    }

    fn without_a_line(&mut self, key: usize) -> Served {
        let pipe = &mut self.clients[key].pipe;
        if pipe.input.len() >= MAX_LINE {
            question::refuse("a question has at most 4096 bytes", pipe.output());
            let _ = pipe.flush();
            return Served::Over;
        }
        if pipe.has_ended() { Served::Over } else { Served::Waits }
    }

    fn answer(&mut self, key: usize, line: &[u8], desk: &mut Desk<'_, '_>) {
        let out = self.clients[key].pipe.output();
        match question::parse(line) {
            Err(message) => question::refuse(&message, out),
            Ok(Question::Status {}) => {
                question::answer("status", &(desk.status)(desk.view), out);
            }
            Ok(Question::Connections { after, most, terminal }) => {
                let most = most.clamp(1, MAX_PAGE);
                let page = desk.view.connections(after, most, terminal.as_deref());
                question::answer("connections", &page, out);
            }
            Ok(Question::Capture { terminal, count, seconds }) => {
                self.begin_capture(key, terminal, (count, seconds), desk);
            }
        }
    }

    fn begin_capture(
        &mut self,
        key: usize,
        terminal: Option<String>,
        (count, seconds): (Option<u64>, Option<f64>),
        desk: &mut Desk<'_, '_>,
    ) {
        #[derive(Serialize)]
        struct Begun<'a> {
            terminal: Option<&'a str>,
            format: &'static str,
        }
        let out = self.clients[key].pipe.output();
        if self.capture.is_some() {
            return question::refuse("another capture is running", out);
        }
        if desk.view.taps().is_none() {
            return question::refuse("there is no inner traffic without another gateway", out);
        }
        if seconds.is_some_and(|seconds| !(0.0..=MAX_CAPTURE_SECONDS).contains(&seconds)) {
            return question::refuse("`seconds` is from 0 to 86400", out);
        }
        tracing::warn!(
            client = %who(self.clients[key].pipe.stream()),
            terminal = terminal.as_deref().unwrap_or("all"),
            "capture of user traffic started"
        );
        let out = self.clients[key].pipe.output();
        question::answer(
            "capture",
            &Begun { terminal: terminal.as_deref(), format: "pcapng" },
            out,
        );
        let capture = Capture::new(desk.view.is_hub(), &desk.identity.name, count, out);
        let until = seconds.map(|seconds| desk.view.now + Span::from_secs_f64(seconds));
        if let Some(taps) = desk.view.taps() {
            taps.set_tap(Some(Tap::new(terminal, MAX_ROUND)));
        }
        self.capture = Some(Running { client: key, capture, until });
    }

    /// Writes the packets that were captured since the last round.
    fn pass_capture(&mut self, desk: &mut Desk<'_, '_>) {
        let Some(Running { client, capture, until }) = &mut self.capture else { return };
        let pipe = &mut self.clients[*client].pipe;
        let room = MAX_PENDING.saturating_sub(pipe.pending());
        let out = pipe.output();
        let room = out.len() + room;
        let epoch = desk.view.epoch_unix_ns();
        if let Some(taps) = desk.view.taps() {
            taps.drain_tap(&mut |name, tapped| capture.packet(name, &tapped, epoch, room, out));
        }
        let over = until.is_some_and(|until| until <= desk.view.now);
        if capture.is_complete() || over {
            self.end_capture(desk);
        }
    }

    fn end_capture(&mut self, desk: &mut Desk<'_, '_>) {
        let Some(Running { client, capture, .. }) = self.capture.take() else { return };
        let missed = desk.view.taps().map_or(0, |taps| {
            let missed = taps.drain_tap(&mut |_, _| {});
            taps.set_tap(None);
            missed
        });
        let now = desk.view.epoch_unix_ns() + desk.view.now.as_nanos();
        if let Some(client) = self.clients.get_mut(client) {
            capture.end(now, missed, client.pipe.output());
            client.leaving = true;
        }
        tracing::info!("capture ended");
    }

    fn remove(&mut self, key: usize, desk: &mut Desk<'_, '_>) {
        if self.capture.as_ref().is_some_and(|running| running.client == key) {
            self.end_capture(desk);
        }
        self.clients.remove(key);
    }
}

/// Result of serving a client.
enum Served {
    Waits,
    HasMore,
    Over,
}

/// Describes the client for the log.
fn who(stream: &UnixStream) -> String {
    use std::os::fd::AsRawFd;
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `found` is valid for writes of `len` bytes, and `len` for a read and a write.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut len,
        )
    };
    if status == 0 { format!("uid {} pid {}", found.uid, found.pid) } else { "unknown".into() }
}
