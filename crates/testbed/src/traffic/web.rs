//! The page of ITU-R S.1711 (tables 21 and 22, "China2008"): 30 objects, 212,207 bytes.
//!
//! The recommendation gives the number of objects and the total; the objects here are equal.

use super::http::Incoming;
use super::server::{Service, lock};
use super::{Way, connect};
use crate::content::Content;
use crate::{Host, TestbedError};
use rt::Clock;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;
use units::Span;

/// Objects of the page, the index included.
pub const PAGE_OBJECTS: usize = 30;
/// Octets of all objects, without HTTP headers.
pub const PAGE_BYTES: usize = 212_207;

/// Timeout of a client's single operation.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves the page over HTTP/1.1, with persistent connections and pipelining.
#[derive(Debug)]
pub struct WebServer {
    service: Service,
}

impl WebServer {
    /// Listens on `address`: on `host`, or on the machine itself for `None`.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn start(host: Option<&Host>, address: SocketAddr) -> Result<Self, TestbedError> {
        Ok(Self { service: Service::start(host, address, serve)? })
    }

    /// As [`WebServer::start`], with the congestion control `name`.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn start_with(
        host: Option<&Host>,
        address: SocketAddr,
        name: &str,
    ) -> Result<Self, TestbedError> {
        let name = name.to_owned();
        let serve = move |stream: &TcpStream| {
            super::set_congestion(stream, &name)?;
            serve(stream)
        };
        Ok(Self { service: Service::start(host, address, serve)? })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }
}

/// Results of loading the page.
#[derive(Clone, Debug)]
pub struct Page {
    /// From the first `connect` to the last octet; `None` if it failed.
    pub took: Option<Span>,
    /// Whether every object arrived and was valid.
    pub matches: bool,
    /// The error.
    pub error: Option<String>,
}

/// Loads the page as browsers do without HTTP/2: the index first, then the other objects over
/// `connections` connections, the index's included, one object at a time on each.
pub fn load_page(way: Way, server: SocketAddr, connections: usize) -> Page {
    timed(|| {
        let mut first = Browser::open(way, server)?;
        let index = first.fetch("/")?;
        let mut left = objects_of(&index)?;
        let mut matches = index == object(0);
        left.reverse();
        let left = Mutex::new(left);
        let results: Vec<io::Result<bool>> = thread::scope(|scope| {
            let mut tasks = vec![scope.spawn(|| first.fetch_all(&left))];
            for _ in 1..connections.max(1) {
                tasks.push(scope.spawn(|| Browser::open(way, server)?.fetch_all(&left)));
            }
            let join = |task: thread::ScopedJoinHandle<'_, _>| {
                task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            tasks.into_iter().map(join).collect()
        });
        for result in results {
            matches &= result?;
        }
        Ok(matches)
    })
}

/// Loads the page over one connection: the index, then all other requests pipelined.
pub fn load_page_pipelined(way: Way, server: SocketAddr) -> Page {
    timed(|| {
        let mut browser = Browser::open(way, server)?;
        let index = browser.fetch("/")?;
        let mut matches = index == object(0);
        let numbers = objects_of(&index)?;
        let requests: String =
            numbers.iter().map(|number| request(&format!("/object/{number}"))).collect();
        browser.stream.write_all(requests.as_bytes())?;
        for number in numbers {
            matches &= browser.incoming.response(&mut browser.stream)? == object(number);
        }
        Ok(matches)
    })
}

fn timed(load: impl FnOnce() -> io::Result<bool>) -> Page {
    let clock = Clock::from_here();
    match load() {
        Ok(matches) => {
            let took = clock.now().since(units::Instant::ZERO);
            Page { took: Some(took), matches, error: None }
        }
        Err(error) => Page { took: None, matches: false, error: Some(error.to_string()) },
    }
}

/// One connection of a client.
struct Browser {
    stream: TcpStream,
    incoming: Incoming,
}

impl Browser {
    fn open(way: Way, server: SocketAddr) -> io::Result<Self> {
        let stream = connect(way, server, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, incoming: Incoming::default() })
    }

    fn fetch(&mut self, path: &str) -> io::Result<Vec<u8>> {
        self.stream.write_all(request(path).as_bytes())?;
        self.incoming.response(&mut self.stream)
    }

    /// Fetches objects from the back of `left` until none are left; true if all were valid.
    fn fetch_all(&mut self, left: &Mutex<Vec<usize>>) -> io::Result<bool> {
        let mut matches = true;
        loop {
            let Some(number) = lock(left).pop() else { return Ok(matches) };
            matches &= self.fetch(&format!("/object/{number}"))? == object(number);
        }
    }
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: page.test\r\nAccept: */*\r\n\r\n")
}

fn serve(mut stream: &TcpStream) -> io::Result<()> {
    let mut incoming = Incoming::default();
    while let Some(path) = incoming.request(&mut stream)? {
        let number = match path.as_str() {
            "/" => Some(0),
            other => other.strip_prefix("/object/").and_then(|number| number.parse().ok()),
        };
        let response = match number.filter(|number| *number < PAGE_OBJECTS) {
            Some(number) => {
                let body = object(number);
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                [head.into_bytes(), body].concat()
            }
            None => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
        };
        stream.write_all(&response)?;
    }
    Ok(())
}

/// The object `number`; 0 is the index, which lists the others.
fn object(number: usize) -> Vec<u8> {
    let extra = usize::from(number < PAGE_BYTES % PAGE_OBJECTS);
    let mut body = vec![b'\n'; PAGE_BYTES / PAGE_OBJECTS + extra];
    if number == 0 {
        let mut text = String::from("<!doctype html><title>Page</title>");
        for other in 1..PAGE_OBJECTS {
            text += &format!("<img src=\"/object/{other}\">");
        }
        body[..text.len()].copy_from_slice(text.as_bytes());
    } else {
        Content::new(number as u64).fill(0, &mut body);
    }
    body
}

/// The objects listed in an index.
fn objects_of(index: &[u8]) -> io::Result<Vec<usize>> {
    let text = String::from_utf8_lossy(index);
    let numbers: Vec<usize> = text
        .split("src=\"/object/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.parse().ok())
        .collect();
    match numbers.is_empty() {
        false => Ok(numbers),
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the index names no objects")),
    }
}
