//! The subset of HTTP/1.1 that a page needs: requests without bodies, responses with a length.

use std::io::{self, Read};

/// Maximum length of a header section.
const HEAD: usize = 16 << 10;
/// Maximum number of header fields.
const FIELDS: usize = 32;

/// Octets received and not yet parsed.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    buffer: Vec<u8>,
    used: usize,
}

/// Result of parsing the front of the buffer.
enum Parsed<T> {
    /// A head of so many octets.
    Whole(usize, T),
    /// More is needed.
    Partial,
}

impl Incoming {
    /// The path of the next request; `None` when the client has closed.
    pub(super) fn request(&mut self, from: &mut impl Read) -> io::Result<Option<String>> {
        loop {
            if let Parsed::Whole(length, path) = parse_request(&self.buffer[self.used..])? {
                self.used += length;
                return Ok(Some(path));
            }
            if !self.read_more(from)? {
                let clean = self.used == self.buffer.len();
                return if clean { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The next response's body.
    pub(super) fn response(&mut self, from: &mut impl Read) -> io::Result<Vec<u8>> {
        let length = loop {
            if let Parsed::Whole(head, length) = parse_response(&self.buffer[self.used..])? {
                self.used += head;
                break length;
            }
            if !self.read_more(from)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        while self.buffer.len() - self.used < length {
            if !self.read_more(from)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let body = self.buffer[self.used..self.used + length].to_vec();
        self.used += length;
        Ok(body)
    }

    fn read_more(&mut self, from: &mut impl Read) -> io::Result<bool> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + HEAD, 0);
        let read = from.read(&mut self.buffer[old..]);
        self.buffer.truncate(old + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }
}

fn parse_request(bytes: &[u8]) -> io::Result<Parsed<String>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes).map_err(invalid)? {
        httparse::Status::Complete(length) => {
            Ok(Parsed::Whole(length, request.path.unwrap_or("/").to_owned()))
        }
        httparse::Status::Partial => partial(bytes),
    }
}

fn parse_response(bytes: &[u8]) -> io::Result<Parsed<usize>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    match response.parse(bytes).map_err(invalid)? {
        httparse::Status::Complete(head) => {
            if response.code != Some(200) {
                return Err(invalid(format!("status {:?}", response.code)));
            }
            let length = response
                .headers
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case("content-length"))
                .and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok())
                .filter(|length| *length <= 64 << 20)
                .ok_or_else(|| invalid("no usable Content-Length"))?;
            Ok(Parsed::Whole(head, length))
        }
        httparse::Status::Partial => partial(bytes),
    }
}

fn partial<T>(bytes: &[u8]) -> io::Result<Parsed<T>> {
    if bytes.len() < HEAD { Ok(Parsed::Partial) } else { Err(invalid("the head never ends")) }
}

fn invalid<T: Into<Box<dyn std::error::Error + Send + Sync>>>(what: T) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
