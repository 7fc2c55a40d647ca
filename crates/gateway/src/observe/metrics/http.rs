//! Minimal HTTP for scrapers: GET of one page, one request per connection.
//!
//! A client that is slow, silent or sends too much is disconnected. A new client is always
//! accepted, in place of the oldest one if necessary.

use super::super::pipe::Pipe;
use super::Format;
use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use slab::Slab;
use std::io;
use std::net::SocketAddr;
use units::{Instant, Span};

/// Maximum number of concurrent clients.
pub(in super::super) const MAX_CLIENTS: usize = 8;
/// Maximum size of a request's head in bytes.
const MAX_HEAD: usize = 8192;
/// Maximum time from connecting to the end of the response.
const PATIENCE: Span = Span::from_secs(10);
/// Maximum number of clients accepted in one round.
const ACCEPTS: usize = 4;

/// The listener and its clients.
#[derive(Debug)]
pub(in super::super) struct Http {
    listener: TcpListener,
    ready: bool,
    clients: Slab<Client>,
    /// Token of the first client; the others follow.
    first: usize,
}

#[derive(Debug)]
struct Client {
    pipe: Pipe<TcpStream>,
    until: Instant,
    answered: bool,
}

/// Response to a client.
enum Wanted {
    /// The request's head is incomplete.
    More,
    /// The metrics, or only their header fields.
    Metrics { format: Format, body: bool },
    /// Another response with its status.
    Other { status: &'static str, text: &'static str },
}

impl Http {
    pub(in super::super) fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::from_std(crate::driver::listen_on(address, false)?);
        Ok(Self { listener, ready: true, clients: Slab::new(), first: 0 })
    }

    /// Registers the listener with `token`; clients have those from `first` on.
    pub(in super::super) fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        first: usize,
    ) -> io::Result<()> {
        self.first = first;
        registry.register(&mut self.listener, token, Interest::READABLE)
    }

    pub(in super::super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(in super::super) fn is_ready(&mut self) {
        self.ready = true;
    }

    pub(in super::super) fn client_is_ready(&mut self, key: usize, event: &mio::event::Event) {
        if let Some(client) = self.clients.get_mut(key) {
            client.pipe.is_ready(event);
        }
    }

    pub(in super::super) fn has_work(&self, now: Instant) -> bool {
        self.ready
            || self.clients.iter().any(|(_, client)| client.pipe.has_work() || client.until <= now)
    }

    /// Returns the next deadline of a client.
    pub(in super::super) fn poll_timeout(&self) -> Option<Instant> {
        self.clients.iter().map(|(_, client)| client.until).min()
    }

    /// For fuzzing: octets of pending input and output of each client.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(in super::super) fn waiting(&self) -> impl Iterator<Item = [usize; 2]> {
        self.clients.iter().map(|(_, one)| [one.pipe.input.len(), one.pipe.pending()])
    }

    /// Serves the clients; `metrics` creates the page.
    pub(in super::super) fn turn(
        &mut self,
        now: Instant,
        registry: &Registry,
        mut metrics: impl FnMut(Format) -> String,
    ) {
        self.accept(now, registry);
        let keys: Vec<usize> = self.clients.iter().map(|(key, _)| key).collect();
        for key in keys {
            let client = &mut self.clients[key];
            let over = client.until <= now || client.serve(&mut metrics).unwrap_or(true);
            if over {
                self.clients.remove(key);
            }
        }
    }

    fn accept(&mut self, now: Instant, registry: &Registry) {
        for _ in 0..ACCEPTS {
            if !self.ready {
                return;
            }
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.ready = false;
                    return;
                }
                Err(error) => {
                    // Possibly no descriptors: the scraper retries.
                    tracing::debug!(%error, "accepting a metrics client failed");
                    self.ready = false;
                    return;
                }
            };
            if self.clients.len() >= MAX_CLIENTS {
                let oldest = self.clients.iter().min_by_key(|(_, client)| client.until);
                if let Some(key) = oldest.map(|(key, _)| key) {
                    self.clients.remove(key);
                }
            }
            let place = self.clients.vacant_entry();
            if let Ok(pipe) = Pipe::new(stream, registry, Token(self.first + place.key())) {
                place.insert(Client { pipe, until: now + PATIENCE, answered: false });
            }
        }
    }
}

impl Client {
    /// Serves one client; returns whether it is finished.
    fn serve(&mut self, metrics: &mut impl FnMut(Format) -> String) -> io::Result<bool> {
        if self.answered {
            // Further input is read so that closing does not send a reset.
            self.pipe.ignore()?;
        } else {
            self.pipe.fill(MAX_HEAD)?;
            match wanted(&self.pipe.input) {
                Wanted::More if self.pipe.has_ended() => return Ok(true),
                Wanted::More => return Ok(false),
                Wanted::Metrics { format, body } => {
                    let page = metrics(format);
                    self.answer("200 OK", format.content_type(), &page, body);
                }
                Wanted::Other { status, text } => {
                    self.answer(status, "text/plain; charset=utf-8", text, true);
                }
            }
        }
        self.pipe.flush()?;
        if self.answered && self.pipe.pending() == 0 {
            // The client receives the end, and closes.
            let _ = self.pipe.stream().shutdown(std::net::Shutdown::Write);
            return Ok(true);
        }
        Ok(false)
    }

    fn answer(&mut self, status: &str, content_type: &str, body: &str, with_body: bool) {
        self.answered = true;
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
             Connection: close\r\nCache-Control: no-store\r\n\r\n",
            body.len()
        );
        let out = self.pipe.output();
        out.extend_from_slice(head.as_bytes());
        if with_body {
            out.extend_from_slice(body.as_bytes());
        }
    }
}

/// For fuzzing: whether a request's head is complete or malformed.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn read_request(head: &[u8]) -> bool {
    match wanted(head) {
        Wanted::More => false,
        Wanted::Metrics { .. } | Wanted::Other { .. } => true,
    }
}

fn wanted(head: &[u8]) -> Wanted {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => return Wanted::More,
        Ok(httparse::Status::Partial) => {
            let status = "431 Request Header Fields Too Large";
            return Wanted::Other { status, text: "The request's head is too long.\n" };
        }
        Err(_) => {
            return Wanted::Other { status: "400 Bad Request", text: "This is no HTTP request.\n" };
        }
    }
    let method = request.method.unwrap_or_default();
    if method != "GET" && method != "HEAD" {
        return Wanted::Other {
            status: "405 Method Not Allowed\r\nAllow: GET, HEAD",
            text: "There is nothing to do here but GET.\n",
        };
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    match path {
        "/metrics" => {
            let open = request.headers.iter().any(|header| {
                header.name.eq_ignore_ascii_case("accept")
                    && std::str::from_utf8(header.value)
                        .is_ok_and(|value| value.contains("application/openmetrics-text"))
            });
            let format = if open { Format::Open } else { Format::Text };
            Wanted::Metrics { format, body: method == "GET" }
        }
        "/" => Wanted::Other { status: "200 OK", text: "bentpipe: metrics are at /metrics\n" },
        _ => Wanted::Other { status: "404 Not Found", text: "Metrics are at /metrics.\n" },
    }
}
