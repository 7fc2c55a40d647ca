//! The explicit proxies' handshakes: SOCKS5 (RFC 1928) and HTTP CONNECT (RFC 9110, RFC 9112).
//!
//! ```text
//!   client's bytes ── feed ──▶ NeedMore                  read on
//!                              Reply { bytes, used }     send, then feed the rest
//!                              Request { .., used }      open a stream; the rest is its data
//!                              Bad { reply, message }    send, log, close
//!   the hub's answer ────────▶ granted / refused         the bytes that tell the client
//! ```
//!
//! Nothing here has a socket or a clock: whoever owns the connection reads, feeds, sends and
//! decides how long a handshake may take. A handshake keeps at most [`MAX_HEAD`] bytes, takes
//! any input, and never panics on it.
//!
//! ```
//! use gateway::proxy::{Destination, Handshake, Progress};
//!
//! let mut handshake = Handshake::either();
//! let input = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n\x16\x03";
//! let Progress::Request { destination, used } = handshake.feed(input) else { panic!() };
//! assert_eq!(destination, Destination::Name("example.com".into(), 443));
//! assert_eq!(&input[used..], b"\x16\x03");
//! assert!(handshake.granted(None).starts_with(b"HTTP/1.1 200 "));
//! ```

mod connect;
mod socks;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use connect::HttpConnect;
pub use relay::{Destination, RefuseReason};
use socks::Socks5;

/// The most bytes of a request that are kept while it is incomplete.
pub const MAX_HEAD: usize = 16 * 1024;

/// How a client reaches a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProtocol {
    /// By SOCKS5.
    Socks5,
    /// By HTTP CONNECT.
    Connect,
    /// By an intercepted connection.
    Intercepted,
}

impl fmt::Display for ClientProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = PROTOCOLS.iter().find(|(_, protocol)| protocol == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// The protocols by the names that the configuration has for them.
pub(crate) const PROTOCOLS: [(&str, ClientProtocol); 3] = [
    ("socks5", ClientProtocol::Socks5),
    ("connect", ClientProtocol::Connect),
    ("intercepted", ClientProtocol::Intercepted),
];

/// What a handshake wants after it was fed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken; more are needed.
    NeedMore,
    /// Send `bytes` to the client, then feed the input again from offset `used` on.
    Reply {
        /// What to send.
        bytes: Vec<u8>,
        /// How many bytes of the input were taken.
        used: usize,
    },
    /// The client wants to be connected. The input from offset `used` on is already data for
    /// the server; the client waits for [`Handshake::granted`] or [`Handshake::refused`].
    Request {
        /// Where to.
        destination: Destination,
        /// How many bytes of the input were taken.
        used: usize,
    },
    /// The client asked for something that is not served, or made no sense: send `reply` (it
    /// may be empty), close, and log `message`.
    Bad {
        /// What to send before closing; empty when nothing that the client would understand fits.
        reply: Vec<u8>,
        /// What was wrong, for people.
        message: String,
    },
}

/// One client's handshake with an explicit proxy.
#[derive(Debug)]
pub struct Handshake {
    protocol: Protocol,
}

#[derive(Debug)]
enum Protocol {
    /// The first byte will tell.
    Either,
    Socks5(Socks5),
    HttpConnect(HttpConnect),
}

impl Handshake {
    /// A client that is expected to speak SOCKS5.
    pub fn socks5() -> Self {
        Self { protocol: Protocol::Socks5(Socks5::new()) }
    }

    /// A client that is expected to speak HTTP and to ask for CONNECT.
    pub fn http_connect() -> Self {
        Self { protocol: Protocol::HttpConnect(HttpConnect::new()) }
    }

    /// A client that may speak either: its first byte tells which.
    pub fn either() -> Self {
        Self { protocol: Protocol::Either }
    }

    /// What the client speaks, or is expected to speak.
    pub(crate) fn protocol(&self) -> ClientProtocol {
        match self.protocol {
            Protocol::Either | Protocol::Socks5(_) => ClientProtocol::Socks5,
            Protocol::HttpConnect(_) => ClientProtocol::Connect,
        }
    }

    /// Takes what the client sent next. See [`Progress`] for what to do then; after a `Request`
    /// or a `Bad` the handshake is over, and what comes later is not for it.
    pub fn feed(&mut self, input: &[u8]) -> Progress {
        if let (Protocol::Either, Some(&first)) = (&self.protocol, input.first()) {
            self.protocol = match first {
                4 | 5 => Protocol::Socks5(Socks5::new()),
                _ => Protocol::HttpConnect(HttpConnect::new()),
            };
        }
        match &mut self.protocol {
            Protocol::Either => Progress::NeedMore,
            Protocol::Socks5(socks) => socks.feed(input),
            Protocol::HttpConnect(http) => http.feed(input),
        }
    }

    /// The reply that tells the client that it is connected. `bound` is the address that the
    /// server sees, where it is known (only SOCKS5 has a place for it).
    pub fn granted(&self, bound: Option<SocketAddr>) -> Vec<u8> {
        match &self.protocol {
            Protocol::Either => Vec::new(),
            Protocol::Socks5(_) => socks::granted(bound),
            Protocol::HttpConnect(_) => connect::granted(),
        }
    }

    /// The reply that tells the client why it is not connected; close after it. `detail` is for
    /// people and may be empty (only HTTP has a place for it).
    pub fn refused(&self, reason: RefuseReason, detail: &str) -> Vec<u8> {
        match &self.protocol {
            Protocol::Either => Vec::new(),
            Protocol::Socks5(_) => socks::refused(reason),
            Protocol::HttpConnect(_) => connect::refused(reason, detail),
        }
    }
}

/// For fuzzing: feeds `data` to a SOCKS5 handshake in pieces whose sizes the first byte chooses.
///
/// # Panics
/// When the parser breaks a promise (takes more than it was given, or never ends).
pub fn fuzz_socks5(data: &[u8]) {
    fuzz(Handshake::socks5(), data);
}

/// For fuzzing: as [`fuzz_socks5`], for HTTP CONNECT.
///
/// # Panics
/// When the parser breaks a promise.
pub fn fuzz_http_connect(data: &[u8]) {
    fuzz(Handshake::http_connect(), data);
}

fn fuzz(mut handshake: Handshake, data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let ending = drive(&mut handshake, data, usize::from(first) + 1);
    match ending {
        Ending::Waiting { .. } | Ending::Bad { .. } => {}
        Ending::Request { destination, taken } => {
            assert!(taken <= data.len() && taken <= MAX_HEAD + 1024, "{taken} bytes taken");
            if let Destination::Name(name, _) = destination {
                assert!(is_name(name.as_bytes()) && name.parse::<IpAddr>().is_err());
            }
        }
    }
}

/// Where a conversation of `drive` ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Waiting { replies: Vec<u8> },
    Request { destination: Destination, taken: usize },
    Bad { reply: Vec<u8>, message: String },
}

/// Plays the part of the socket: hands `data` over in pieces of `step` bytes.
fn drive(handshake: &mut Handshake, data: &[u8], step: usize) -> Ending {
    let mut replies = Vec::new();
    let mut taken = 0;
    for chunk in data.chunks(step) {
        let mut rest = chunk;
        loop {
            match handshake.feed(rest) {
                Progress::NeedMore => {
                    taken += rest.len();
                    break;
                }
                Progress::Reply { bytes, used } => {
                    assert!(used <= rest.len() && !bytes.is_empty());
                    replies.extend_from_slice(&bytes);
                    assert!(replies.len() < 1024, "replies without end");
                    taken += used;
                    rest = &rest[used..];
                }
                Progress::Request { destination, used } => {
                    assert!(used <= rest.len());
                    return Ending::Request { destination, taken: taken + used };
                }
                Progress::Bad { reply, message } => {
                    assert!(!message.is_empty());
                    return Ending::Bad { reply, message };
                }
            }
        }
    }
    Ending::Waiting { replies }
}

/// Checks a host as a client wrote it: an address literal becomes an address, the rest must be a
/// name that a resolver can be asked for. The error is for people.
fn destination(host: &[u8], port: u16) -> Result<Destination, String> {
    if port == 0 {
        return Err("port 0 cannot be connected to".into());
    }
    if let Some(address) = str::from_utf8(host).ok().and_then(|h| h.parse::<IpAddr>().ok()) {
        // To the kernel "no address" means this host, and that is the hub.
        if address.to_canonical().is_unspecified() {
            return Err(format!("{address} is not an address to connect to"));
        }
        return Ok(Destination::Address(SocketAddr::new(address, port)));
    }
    if is_name(host) {
        // Only ASCII passed.
        return Ok(Destination::Name(String::from_utf8_lossy(host).into_owned(), port));
    }
    let shown = host.escape_ascii();
    Err(match host {
        [] => "the host is empty".into(),
        _ if host.len() > 255 => format!("a name of {} bytes; at most 255 are allowed", host.len()),
        _ if !host.is_ascii() => format!("the name {shown} is not ASCII; use its xn-- form"),
        _ => format!("{shown} is not a host name or an address"),
    })
}

/// Whether `host` may be handed to a resolver: letters, digits, `-`, `.` and `_`.
pub(crate) fn is_name(host: &[u8]) -> bool {
    let letter = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    (1..=255).contains(&host.len())
        && host.iter().all(letter)
        && host.iter().any(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests;
