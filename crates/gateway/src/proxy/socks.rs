//! SOCKS version 5 (RFC 1928) at the server: no authentication, CONNECT only.
//!
//! ```text
//! greeting   VER=5  NMETHODS  METHODS...            ──▶   VER=5  METHOD
//! request    VER=5  CMD  RSV  ATYP  DST.ADDR  PORT  ──▶   VER=5  REP  RSV  ATYP  BND.ADDR  PORT
//!
//! ATYP 1: 4 bytes · ATYP 3: length, name · ATYP 4: 16 bytes
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Progress, RefuseReason, destination};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;

const COMMAND_CONNECT: u8 = 1;
const COMMAND_BIND: u8 = 2;
const COMMAND_UDP_ASSOCIATE: u8 = 3;

const ADDRESS_IPV4: u8 = 1;
const ADDRESS_NAME: u8 = 3;
const ADDRESS_IPV6: u8 = 4;

const REPLY_SUCCEEDED: u8 = 0;
const REPLY_GENERAL_FAILURE: u8 = 1;
const REPLY_NOT_ALLOWED: u8 = 2;
const REPLY_NETWORK_UNREACHABLE: u8 = 3;
const REPLY_HOST_UNREACHABLE: u8 = 4;
const REPLY_CONNECTION_REFUSED: u8 = 5;
const REPLY_TTL_EXPIRED: u8 = 6;
const REPLY_COMMAND_NOT_SUPPORTED: u8 = 7;
const REPLY_ADDRESS_TYPE_NOT_SUPPORTED: u8 = 8;

/// One client's SOCKS5 handshake.
#[derive(Debug)]
pub(super) struct Socks5 {
    state: State,
    /// The message being read, never more than its own length: 262 bytes at most.
    message: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Request,
    Over,
}

impl Socks5 {
    pub(super) fn new() -> Self {
        Self { state: State::Greeting, message: Vec::new() }
    }

    pub(super) fn feed(&mut self, input: &[u8]) -> Progress {
        let mut used = 0;
        loop {
            let needed = match self.state {
                State::Greeting => greeting_length(&self.message),
                State::Request => request_length(&self.message),
                State::Over => Err(bad(vec![], "bytes after the end of the SOCKS handshake")),
            };
            let needed = match needed {
                Ok(needed) => needed,
                Err(progress) => return self.over(progress),
            };
            if self.message.len() == needed {
                return self.complete(used);
            }
            let more = (needed - self.message.len()).min(input.len() - used);
            if more == 0 {
                return Progress::NeedMore;
            }
            self.message.extend_from_slice(&input[used..used + more]);
            used += more;
        }
    }

    fn complete(&mut self, used: usize) -> Progress {
        let message = std::mem::take(&mut self.message);
        match self.state {
            State::Greeting => match choose_method(&message) {
                Ok(bytes) => {
                    self.state = State::Request;
                    Progress::Reply { bytes, used }
                }
                Err(progress) => self.over(progress),
            },
            State::Request | State::Over => {
                let progress = read_request(&message, used);
                self.over(progress)
            }
        }
    }

    fn over(&mut self, progress: Progress) -> Progress {
        self.state = State::Over;
        self.message = Vec::new();
        progress
    }
}

/// Returns the length of the greeting as far as `message` contains it, or its error.
fn greeting_length(message: &[u8]) -> Result<usize, Progress> {
    match *message {
        [] => Ok(1),
        [VERSION] => Ok(2),
        [VERSION, 0, ..] => Err(bad(
            vec![VERSION, NO_ACCEPTABLE_METHOD],
            "the SOCKS5 greeting offers no authentication method at all",
        )),
        [VERSION, methods, ..] => Ok(2 + usize::from(methods)),
        // A SOCKS4 reply: version 0, "request rejected", and six unused bytes.
        [4, ..] => Err(bad(
            vec![0, 91, 0, 0, 0, 0, 0, 0],
            "the client speaks SOCKS version 4; only version 5 is served (try socks5h://)",
        )),
        [first, ..] if first.is_ascii_alphabetic() => Err(bad(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
              This port speaks SOCKS5, not HTTP: use socks5h:// in the proxy's address.\n"
                .to_vec(),
            "the client speaks HTTP or another text protocol on a SOCKS5 port",
        )),
        [0x16, ..] => Err(bad(vec![], "the client speaks TLS on a SOCKS5 port")),
        [first, ..] => {
            Err(bad(vec![], &format!("the first byte is {first}, which no SOCKS version uses")))
        }
    }
}

fn choose_method(greeting: &[u8]) -> Result<Vec<u8>, Progress> {
    let methods = &greeting[2..];
    if methods.contains(&NO_AUTHENTICATION) {
        return Ok(vec![VERSION, NO_AUTHENTICATION]);
    }
    let offered: Vec<String> = methods.iter().take(8).map(|m| method_name(*m)).collect();
    let message = format!(
        "the client insists on authentication ({}); this proxy has none",
        offered.join(", ")
    );
    Err(bad(vec![VERSION, NO_ACCEPTABLE_METHOD], &message))
}

fn method_name(method: u8) -> String {
    match method {
        1 => "GSSAPI".into(),
        2 => "user name and password".into(),
        other => format!("method {other}"),
    }
}

/// Returns the length of the request as far as `message` determines it, or its error.
fn request_length(message: &[u8]) -> Result<usize, Progress> {
    let fail = |code, text: &str| Err(bad(reply(code, None), text));
    match *message {
        [] => Ok(1),
        [VERSION] | [VERSION, _] | [VERSION, _, _] => Ok(4),
        [VERSION, _, _, ADDRESS_IPV4, ..] => Ok(4 + 4 + 2),
        [VERSION, _, _, ADDRESS_IPV6, ..] => Ok(4 + 16 + 2),
        [VERSION, _, _, ADDRESS_NAME] => Ok(5),
        [VERSION, _, _, ADDRESS_NAME, 0, ..] => {
            fail(REPLY_GENERAL_FAILURE, "the SOCKS5 request has an empty host name")
        }
        [VERSION, _, _, ADDRESS_NAME, length, ..] => Ok(5 + usize::from(length) + 2),
        [VERSION, _, _, kind, ..] => fail(
            REPLY_ADDRESS_TYPE_NOT_SUPPORTED,
            &format!("the SOCKS5 request has address type {kind}; known are 1, 3 and 4"),
        ),
        [version, ..] => fail(
            REPLY_GENERAL_FAILURE,
            &format!("the SOCKS5 request says version {version} after a greeting of version 5"),
        ),
    }
}

/// Reads a request whose length was checked.
fn read_request(message: &[u8], used: usize) -> Progress {
    let (body, port) = message.split_at(message.len() - 2);
    let port = u16::from_be_bytes([port[0], port[1]]);
    let refused = match message[1] {
        COMMAND_CONNECT => None,
        COMMAND_BIND => Some("BIND (2)".to_string()),
        COMMAND_UDP_ASSOCIATE => Some("UDP ASSOCIATE (3)".to_string()),
        other => Some(other.to_string()),
    };
    if let Some(command) = refused {
        let message =
            format!("the client asked for SOCKS5 command {command}; only CONNECT is served");
        return bad(reply(REPLY_COMMAND_NOT_SUPPORTED, None), &message);
    }
    let found = match message[3] {
        ADDRESS_IPV4 => {
            let octets: [u8; 4] = body[4..].try_into().unwrap_or_default();
            destination(IpAddr::from(octets).to_string().as_bytes(), port)
        }
        ADDRESS_IPV6 => {
            let octets: [u8; 16] = body[4..].try_into().unwrap_or_default();
            destination(IpAddr::from(octets).to_string().as_bytes(), port)
        }
        _ => destination(&body[5..], port),
    };
    match found {
        Ok(destination) => Progress::Request { destination, used },
        Err(what) => bad(reply(REPLY_GENERAL_FAILURE, None), &format!("SOCKS5 request: {what}")),
    }
}

/// The reply to a request that was granted.
pub(super) fn granted(bound: Option<SocketAddr>) -> Vec<u8> {
    reply(REPLY_SUCCEEDED, bound)
}

/// The reply to a request that was refused.
pub(super) fn refused(reason: RefuseReason) -> Vec<u8> {
    let code = match reason {
        RefuseReason::ConnectionRefused => REPLY_CONNECTION_REFUSED,
        RefuseReason::HostUnreachable | RefuseReason::NameNotFound => REPLY_HOST_UNREACHABLE,
        RefuseReason::NetworkUnreachable => REPLY_NETWORK_UNREACHABLE,
        // The nearest that RFC 1928 has, and what other proxies answer.
        RefuseReason::TimedOut => REPLY_TTL_EXPIRED,
        RefuseReason::Policy => REPLY_NOT_ALLOWED,
        RefuseReason::Limit | RefuseReason::Other => REPLY_GENERAL_FAILURE,
    };
    reply(code, None)
}

fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let bound = bound.unwrap_or(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
    let mut bytes = vec![VERSION, code, 0];
    match bound.ip() {
        IpAddr::V4(ip) => {
            bytes.push(ADDRESS_IPV4);
            bytes.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(ADDRESS_IPV6);
            bytes.extend_from_slice(&Ipv6Addr::octets(&ip));
        }
    }
    bytes.extend_from_slice(&bound.port().to_be_bytes());
    bytes
}

fn bad(reply: Vec<u8>, message: &str) -> Progress {
    Progress::Bad { reply, message: message.into() }
}

#[cfg(test)]
mod tests;
