//! The explicit proxies' handshakes: SOCKS5 (RFC 1928) and HTTP CONNECT (RFC 9110, RFC 9112).
//!
//! ```text
//!   client's bytes ── feed ──▶ NeedMore                  read more
//!                              Reply { bytes, used }     send, then feed the rest
//!                              Request { .., used }      open a stream; the rest is its data
//!                              Bad { reply, message }    send, log, close
//!   the hub's answer ────────▶ granted / refused         the reply for the client
//! ```
//!
//! Handshakes are sans-IO: the owner of the connection reads, feeds, sends, and limits the time. A
//! handshake stores at most [`MAX_HEAD`] bytes, accepts any input, and never panics on it.
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

/// Maximum length of an incomplete request, in bytes.
pub const MAX_HEAD: usize = 16 * 1024;

/// Protocol between a client and its terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProtocol {
    /// SOCKS5.
    Socks5,
    /// HTTP CONNECT.
    Connect,
    /// An intercepted connection.
    Intercepted,
}

impl fmt::Display for ClientProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = PROTOCOLS.iter().find(|(_, protocol)| protocol == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// The protocols and their names in configurations.
pub(crate) const PROTOCOLS: [(&str, ClientProtocol); 3] = [
    ("socks5", ClientProtocol::Socks5),
    ("connect", ClientProtocol::Connect),
    ("intercepted", ClientProtocol::Intercepted),
];

/// Result of [`Handshake::feed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were consumed; more are needed.
    NeedMore,
    /// Send `bytes` to the client, then feed the input again from offset `used` on.
    Reply {
        /// Bytes to send.
        bytes: Vec<u8>,
        /// Number of input bytes consumed.
        used: usize,
    },
    /// The request is complete. The input from offset `used` on is data for the server; the client
    /// waits for [`Handshake::granted`] or [`Handshake::refused`].
    Request {
        /// The requested destination.
        destination: Destination,
        /// Number of input bytes consumed.
        used: usize,
    },
    /// The request is malformed or not supported: send `reply` (which may be empty), close, and
    /// log `message`.
    Bad {
        /// Bytes to send before closing; empty if the client's protocol has no fitting reply.
        reply: Vec<u8>,
        /// Description of the error.
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
    /// Determined by the first byte.
    Either,
    Socks5(Socks5),
    HttpConnect(HttpConnect),
}

impl Handshake {
    /// Creates the handshake of a SOCKS5 client.
    pub fn socks5() -> Self {
        Self { protocol: Protocol::Socks5(Socks5::new()) }
    }

    /// Creates the handshake of an HTTP CONNECT client.
    pub fn http_connect() -> Self {
        Self { protocol: Protocol::HttpConnect(HttpConnect::new()) }
    }

    /// Creates the handshake of a client of either protocol, which its first byte determines.
    pub fn either() -> Self {
        Self { protocol: Protocol::Either }
    }

    /// Returns the client's protocol, or the expected one.
    pub(crate) fn protocol(&self) -> ClientProtocol {
        match self.protocol {
            Protocol::Either | Protocol::Socks5(_) => ClientProtocol::Socks5,
            Protocol::HttpConnect(_) => ClientProtocol::Connect,
        }
    }

    /// Processes the next bytes of the client. [`Progress`] determines the next action; after
    /// `Request` or `Bad` the handshake has ended and accepts no more input.
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

    /// Returns the reply that the connection is established. `bound` is the address that the server
    /// sees, if known (only SOCKS5 has a field for it).
    pub fn granted(&self, bound: Option<SocketAddr>) -> Vec<u8> {
        match &self.protocol {
            Protocol::Either => Vec::new(),
            Protocol::Socks5(_) => socks::granted(bound),
            Protocol::HttpConnect(_) => connect::granted(),
        }
    }

    /// Returns the reply that the request is refused; close after it. `detail` is a text that may be
    /// empty (only HTTP has a field for it).
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
/// When the parser violates its contract (consumes more than it was given, or does not end).
pub fn fuzz_socks5(data: &[u8]) {
    fuzz(Handshake::socks5(), data);
}

/// For fuzzing: as [`fuzz_socks5`], for HTTP CONNECT.
///
/// # Panics
/// When the parser violates its contract.
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

/// Result of [`drive`].
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Waiting { replies: Vec<u8> },
    Request { destination: Destination, taken: usize },
    Bad { reply: Vec<u8>, message: String },
}

/// Feeds `data` in pieces of `step` bytes, as a socket would.
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

/// Parses a host as sent by a client: an address literal, or a name that can be resolved.
fn destination(host: &[u8], port: u16) -> Result<Destination, String> {
    if port == 0 {
        return Err("port 0 cannot be connected to".into());
    }
    if let Some(address) = str::from_utf8(host).ok().and_then(|h| h.parse::<IpAddr>().ok()) {
        // The kernel connects the unspecified address to this host, the hub.
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
