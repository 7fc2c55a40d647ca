//! Scripts against the control socket and the metrics: clients connect, more than permitted, send
//! words whole, in parts and many at once, read or do not, and close at any moment.

use super::control::{self, Control, Desk};
use super::metrics::{self, Http};
use super::{Identity, LoopStatus, question};
use crate::driver::Driver;
use crate::engine::single::Single;
use crate::engine::{EngineView, Machine};
use crate::{Config, Role};
use mio::{Events, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{Instant, Span};

/// Clients that a script has, more than either server takes.
const CLIENTS: usize = control::MAX_CLIENTS + 4;
/// Number of turns after which a server is idle: a request takes one.
const TURNS: usize = 64;
/// What may wait for one client: one answer, or one page.
const MOST_PENDING: usize = 1 << 20;
/// A page that fits into no socket's buffer with certainty.
const PAGE: usize = 256 << 10;
/// Time after which either server has removed a client that sends nothing.
const SILENCE: Span = Span::from_secs(301);

/// Words for the control socket, which make questions also when they are put together.
const QUESTIONS: &[&[u8]] = &[
    b"{\"ask\":\"status\"}\n",
    b"{\"ask\":\"connections\",\"after\":7}\n",
    b"{\"ask\":\"capture\"}\n",
    b"{\"ask\":\"sta",
    b"tus\"}\n",
    b"{}\n",
    b"\n",
    &[b'x'; 3_000],
];

/// Words for the metrics.
const REQUESTS: &[&[u8]] = &[
    b"GET /metrics HTTP/1.1\r\n",
    b"GET /metrics HTTP/1.1\r\n\r\n",
    b"Accept: application/openmetrics-text\r\n",
    b"\r\n",
    b"HEAD / HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\n\r\n",
    b"\xff\0",
    &[b'x'; 3_000],
];

/// A client, and the octets exchanged with it.
struct Client<S> {
    stream: S,
    /// What it has sent of a line, and how many lines that were not empty.
    line: Vec<u8>,
    lines: usize,
    got: Vec<u8>,
    /// The server has closed, or the client will send no more.
    over: bool,
}

/// Operations of both servers that a script uses.
trait Server {
    type Stream: Read + Write;
    const WORDS: &'static [&'static [u8]];
    fn connect(&mut self) -> Option<Self::Stream>;
    fn shut(stream: &Self::Stream);
    /// Handles events of the kernel; returns false if there were none.
    fn turn(&mut self, now: Instant) -> bool;
    /// How many clients there are, and how many there may be.
    fn clients(&self) -> [usize; 2];
    /// Maximum octets of pending input and output of any client.
    fn waiting(&self) -> [usize; 2];
    fn poll_timeout(&self) -> Option<Instant>;
    /// Checks that a client's responses are correct.
    fn check(client: &Client<Self::Stream>);
}

/// Plays `script`, three octets a step, to the control socket.
///
/// # Panics
/// When a client has more or fewer answers than questions, or one that is no line of JSON; when
/// there are more clients or more octets of one than may be, or one that has closed is kept.
pub(crate) fn control(script: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("bentpipe-{}-{number}", std::process::id()));
    let config = Config::parse("fuzz.toml", "role = \"single\"\n[single]\nsatellite = [\"lo\"]\n");
    let config = config.expect("a configuration");
    let Role::Single(section) = &config.role else { panic!("role = \"single\" was parsed") };
    let mut control = Control::listen(&path).expect("a place for a socket");
    let poll = Poll::new().expect("a poll");
    control.register(poll.registry(), Token(0), 1).expect("registered");
    let platform = Driver::new().and_then(|driver| driver.platform()).expect("a kernel");
    let single = Single::new((platform, Instant::ZERO), section, &config.limits, Vec::new())
        .expect("an engine");
    play(Controlled { control, poll, path, single }, script);
}

/// Plays `script` to the metrics.
///
/// # Panics
/// Panics if a response does not end or is not HTTP, if a limit on clients or octets is exceeded, or
/// if a closed client is not removed.
pub(crate) fn metrics(script: &[u8]) {
    let mut http = Http::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let poll = Poll::new().expect("a poll");
    http.register(poll.registry(), Token(0), 1).expect("registered");
    play(Scraped { http, poll }, script);
}

fn play<V: Server>(mut server: V, script: &[u8]) {
    let mut now = Instant::ZERO + Span::from_secs(1);
    let mut clients: Vec<Option<Client<V::Stream>>> = (0..CLIENTS).map(|_| None).collect();
    for step in script.chunks_exact(3) {
        let [kind, which, value] = [step[0], step[1], step[2]].map(usize::from);
        let place = &mut clients[which % CLIENTS];
        match (kind % 8, place) {
            (0 | 1, place @ None) => *place = server.connect().map(Client::new),
            (2, place) => *place = None,
            (3, Some(client)) => {
                V::shut(&client.stream);
                client.over = true;
            }
            (4, Some(client)) => client.read(value << 4),
            (5, _) => now += Span::from_millis(1 << (value % 19)),
            (_, Some(client)) => {
                let word = V::WORDS[value % V::WORDS.len()];
                let part = if kind & 8 == 0 { word } else { &word[..value % (word.len() + 1)] };
                (0..=kind >> 4).for_each(|_| client.write(part));
            }
            (_, None) => {}
        }
        serve(&mut server, now);
    }
    // Clients that read receive an answer to each line.
    let lines: usize = clients.iter().flatten().map(|client| client.lines).sum();
    for _ in 0..lines + TURNS {
        clients.iter_mut().flatten().for_each(|client| client.read(usize::MAX));
        serve(&mut server, now);
    }
    clients.iter().flatten().for_each(V::check);
    serve(&mut server, now + SILENCE);
    assert_eq!(server.clients()[0], 0, "closed clients are kept");
}

/// Runs all pending work, and checks the limits.
fn serve<V: Server>(server: &mut V, now: Instant) {
    for _ in 0..TURNS {
        if !server.turn(now) {
            break;
        }
    }
    let [clients, most] = server.clients();
    assert!(clients <= most, "{clients} clients of {most}");
    let [input, output] = server.waiting();
    assert!(input <= 2 * question::MAX_LINE, "{input} octets of input");
    assert!(output <= MOST_PENDING, "{output} octets of output");
    let due = server.poll_timeout();
    assert!(due.is_none_or(|due| due > now), "what was due is due still");
}

impl<S: Read + Write> Client<S> {
    fn new(stream: S) -> Self {
        Self { stream, line: Vec::new(), lines: 0, got: Vec::new(), over: false }
    }

    fn write(&mut self, word: &[u8]) {
        // Octets without room, or after the end, are not sent.
        let Ok(sent) = self.stream.write(word) else { return };
        for &octet in &word[..sent] {
            if octet == b'\n' {
                self.lines += usize::from(!self.line.trim_ascii().is_empty());
                self.line.clear();
            } else {
                self.line.push(octet);
            }
        }
    }

    fn read(&mut self, most: usize) {
        let mut room = [0; 4_096];
        let mut left = most;
        while left > 0 {
            let len = left.min(room.len());
            match self.stream.read(&mut room[..len]) {
                Ok(0) => return self.over = true,
                Ok(count) => {
                    self.got.extend_from_slice(&room[..count]);
                    left -= count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.over = true,
            }
        }
    }
}

/// Hands events of the kernel to `ready`; true if there were any.
fn events(poll: &mut Poll, mut ready: impl FnMut(usize, &mio::event::Event)) -> bool {
    let mut events = Events::with_capacity(64);
    poll.poll(&mut events, Some(Duration::ZERO)).expect("polled");
    events.iter().for_each(|event| ready(event.token().0, event));
    !events.is_empty()
}

struct Controlled {
    control: Control,
    poll: Poll,
    path: std::path::PathBuf,
    single: Single,
}

impl Server for Controlled {
    type Stream = UnixStream;
    const WORDS: &'static [&'static [u8]] = QUESTIONS;

    fn connect(&mut self) -> Option<UnixStream> {
        let stream = UnixStream::connect(&self.path).ok()?;
        stream.set_nonblocking(true).expect("set");
        Some(stream)
    }

    fn shut(stream: &UnixStream) {
        // The server may have closed.
        let _ = stream.shutdown(Shutdown::Write);
    }

    fn turn(&mut self, now: Instant) -> bool {
        let control = &mut self.control;
        let news = events(&mut self.poll, |token, event| match token.checked_sub(1) {
            None => control.is_ready(),
            Some(key) => control.client_is_ready(key, event),
        });
        let identity =
            Identity { role: "single", name: "x".into(), controller: "tcp", started: now };
        let rounds = LoopStatus::default();
        let mut status = |view: &mut EngineView<'_>| super::status(&identity, &rounds, view);
        let mut view = self.single.view(now, 0);
        let mut desk = Desk { identity: &identity, view: &mut view, status: &mut status };
        control.turn(self.poll.registry(), &mut desk) || news
    }

    fn clients(&self) -> [usize; 2] {
        [self.control.waiting().count(), control::MAX_CLIENTS]
    }

    fn waiting(&self) -> [usize; 2] {
        most(self.control.waiting())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.control.poll_timeout()
    }

    fn check(client: &Client<UnixStream>) {
        let lines: Vec<&[u8]> = client.got.split_inclusive(|&octet| octet == b'\n').collect();
        for line in &lines {
            let value: serde_json::Value = serde_json::from_slice(line).expect("a line of JSON");
            assert_eq!(value["version"], question::VERSION);
        }
        // One refusal is of the client itself, or of a line without an end.
        assert!(lines.len() <= client.lines + 1, "{} of {} answers", lines.len(), client.lines);
        assert!(client.over || lines.len() == client.lines, "{} of {}", lines.len(), client.lines);
    }
}

struct Scraped {
    http: Http,
    poll: Poll,
}

impl Server for Scraped {
    type Stream = TcpStream;
    const WORDS: &'static [&'static [u8]] = REQUESTS;

    fn connect(&mut self) -> Option<TcpStream> {
        let stream = TcpStream::connect(self.http.address().ok()?).ok()?;
        stream.set_nonblocking(true).expect("set");
        Some(stream)
    }

    fn shut(stream: &TcpStream) {
        // As above.
        let _ = stream.shutdown(Shutdown::Write);
    }

    fn turn(&mut self, now: Instant) -> bool {
        let http = &mut self.http;
        let news = events(&mut self.poll, |token, event| match token.checked_sub(1) {
            None => http.is_ready(),
            Some(key) => http.client_is_ready(key, event),
        });
        http.turn(now, self.poll.registry(), |_| "x".repeat(PAGE));
        news
    }

    fn clients(&self) -> [usize; 2] {
        [self.http.waiting().count(), metrics::MAX_CLIENTS]
    }

    fn waiting(&self) -> [usize; 2] {
        most(self.http.waiting())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.http.poll_timeout()
    }

    fn check(client: &Client<TcpStream>) {
        let got = &client.got;
        let begin = b"HTTP/1.1 ";
        let len = got.len().min(begin.len());
        assert_eq!(&got[..len], &begin[..len], "an answer begins so");
        assert!(got.len() <= PAGE + 1_024, "one answer a connection, not {} octets", got.len());
    }
}

fn most(waiting: impl Iterator<Item = [usize; 2]>) -> [usize; 2] {
    waiting.fold([0; 2], |most, one| [most[0].max(one[0]), most[1].max(one[1])])
}
