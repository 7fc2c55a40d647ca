//! Objects of one size over HTTP/1.1: a server, and users who request one object after the other on
//! a persistent connection, with a think time between them.

use super::http::Incoming;
use super::server::Service;
use super::{Way, connect};
use crate::content::Content;
use crate::{Host, TestbedError};
use rt::Clock;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use units::{Instant, Span};

/// The shortest request that names a page and a host.
pub const SHORTEST_REQUEST: usize = 27;

/// Serves one object for every request.
#[derive(Debug)]
pub struct ObjectServer {
    service: Service,
}

impl ObjectServer {
    /// Listens on `address`, on `host`; every response has a body of `bytes`.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn start(
        host: Option<&Host>,
        address: SocketAddr,
        bytes: usize,
    ) -> Result<Self, TestbedError> {
        let answer = answer(bytes);
        let service = Service::start(host, address, move |stream| serve(stream, &answer))?;
        Ok(Self { service })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }
}

/// A user's requests.
#[derive(Clone, Copy, Debug)]
pub struct Browsing {
    /// The server.
    pub server: SocketAddr,
    /// The path to the server.
    pub way: Way,
    /// Octets of a request, at least [`SHORTEST_REQUEST`].
    pub request: usize,
    /// Bytes of an object.
    pub object: usize,
    /// When to stop; an outstanding object does not count.
    pub until: Instant,
}

/// Results of a user.
#[derive(Clone, Debug, Default)]
pub struct Browsed {
    /// Complete and valid objects: time of arrival in the time of [`rt::Clock::new`], and response
    /// time.
    pub responses: Vec<(Instant, Span)>,
    /// Why it stopped early.
    pub error: Option<String>,
}

/// Requests one object after the other until the end; `think` returns the delay before each. The
/// first request also waits for its connection.
pub fn browse(browsing: &Browsing, mut think: impl FnMut() -> Span) -> Browsed {
    let mut browsed = Browsed::default();
    let expected = body(browsing.object);
    let mut open: Option<(TcpStream, Incoming)> = None;
    let clock = Clock::new();
    loop {
        let asking = clock.now() + think();
        if asking >= browsing.until {
            return browsed;
        }
        clock.sleep_until(asking);
        let asked = clock.now();
        match ask(browsing, &mut open, clock) {
            Ok(body) if body == expected => {
                let now = clock.now();
                if now >= browsing.until {
                    return browsed;
                }
                browsed.responses.push((now, now.since(asked)));
            }
            Ok(_) => browsed.error = Some("not the object that was asked for".into()),
            Err(_) if clock.now() >= browsing.until => return browsed,
            Err(error) => browsed.error = Some(error.to_string()),
        }
        if browsed.error.is_some() {
            return browsed;
        }
    }
}

fn ask(
    browsing: &Browsing,
    open: &mut Option<(TcpStream, Incoming)>,
    clock: Clock,
) -> io::Result<Vec<u8>> {
    // An outstanding object at the end is not awaited.
    let left = Duration::from_nanos(browsing.until.since(clock.now()).as_nanos().max(1_000_000));
    let (stream, incoming) = match open {
        Some(open) => open,
        None => open.insert((connect(browsing.way, browsing.server, left)?, Incoming::default())),
    };
    stream.set_read_timeout(Some(left))?;
    stream.write_all(request(browsing.request).as_bytes())?;
    incoming.response(stream)
}

/// A request of this length in octets.
fn request(bytes: usize) -> String {
    let path = "o".repeat(bytes.saturating_sub(SHORTEST_REQUEST));
    format!("GET /{path} HTTP/1.1\r\nHost: s\r\n\r\n")
}

fn body(bytes: usize) -> Vec<u8> {
    let mut body = vec![0; bytes];
    Content::new(bytes as u64).fill(0, &mut body);
    body
}

fn answer(bytes: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    [head.into_bytes(), body(bytes)].concat()
}

fn serve(mut stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    let mut incoming = Incoming::default();
    while incoming.request(&mut stream)?.is_some() {
        stream.write_all(answer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_configured_length() {
        for bytes in [SHORTEST_REQUEST, 43, 80] {
            assert_eq!(request(bytes).len(), bytes);
        }
    }

    #[test]
    fn users_send_requests_until_the_end() {
        let server = ObjectServer::start(None, "127.0.0.1:0".parse().unwrap(), 4_096).unwrap();
        let clock = Clock::new();
        let browsing = Browsing {
            server: server.address(),
            way: Way::Direct,
            request: 43,
            object: 4_096,
            until: clock.now() + Span::from_millis(300),
        };
        let browsed = browse(&browsing, || Span::from_millis(5));
        assert_eq!(browsed.error, None);
        assert!(!browsed.responses.is_empty());
        assert!(browsed.responses.iter().all(|&(at, _)| at < browsing.until));
        // A think time beyond the end.
        let none = browse(&browsing, || Span::from_secs(9));
        assert!(none.responses.is_empty() && none.error.is_none());
        let other = Browsing { object: 4_097, until: clock.now() + Span::from_secs(5), ..browsing };
        assert!(browse(&other, || Span::ZERO).error.unwrap().contains("not the object"));
    }
}
