//! HTTP CONNECT (RFC 9110, section 9.3.6; syntax of RFC 9112) at the proxy.
//!
//! ```text
//! CONNECT host:port HTTP/1.1 CRLF         ──▶   HTTP/1.1 200 Connection established CRLF CRLF
//! field: value CRLF ...                         (from here on the connection is a tunnel)
//! CRLF
//! ```
//!
//! Every refusal is an ordinary response with a plain-text body that states the cause, and a
//! `Proxy-Status` field (RFC 9209) for programs.

use super::{Destination, MAX_HEAD, Progress, RefuseReason, destination};

/// Maximum number of header fields of a request.
const MAX_FIELDS: usize = 64;
/// Maximum length of empty lines before the request, which are ignored (RFC 9112, section 2.2), in
/// bytes.
const MAX_LEADING: usize = 4;

/// One client's CONNECT request.
#[derive(Debug)]
pub(super) struct HttpConnect {
    /// The request so far, at most `MAX_HEAD` bytes.
    head: Vec<u8>,
    /// Bytes of empty lines before it.
    leading: usize,
    /// Length at which an incomplete request is parsed for errors. It doubles each time, so that
    /// input in small pieces costs no more than input in one.
    next_look: usize,
    over: bool,
}

impl HttpConnect {
    pub(super) fn new() -> Self {
        Self { head: Vec::new(), leading: 0, next_look: 1, over: false }
    }

    pub(super) fn feed(&mut self, input: &[u8]) -> Progress {
        if self.over {
            let message = "bytes after the end of the CONNECT request".into();
            return Progress::Bad { reply: Vec::new(), message };
        }
        for (index, &byte) in input.iter().enumerate() {
            if self.head.is_empty() && matches!(byte, b'\r' | b'\n') {
                self.leading += 1;
                if self.leading > MAX_LEADING {
                    return self.over(bad(400, "empty lines instead of a request"));
                }
                continue;
            }
            if self.head.len() == MAX_HEAD {
                return self.over(bad(431, "the request's header is longer than 16 KB"));
            }
            self.head.push(byte);
            if byte == b'\n' && (self.head.ends_with(b"\n\r\n") || self.head.ends_with(b"\n\n")) {
                let progress = read_request(&self.head, index + 1);
                return self.over(progress);
            }
        }
        if self.head.len() >= self.next_look {
            self.next_look = self.head.len() * 2;
            if let Some(wrong) = hopeless(&self.head) {
                return self.over(wrong);
            }
        }
        Progress::NeedMore
    }

    fn over(&mut self, progress: Progress) -> Progress {
        self.over = true;
        self.head = Vec::new();
        progress
    }
}

/// Returns the error of an incomplete request that no further bytes can complete.
fn hopeless(head: &[u8]) -> Option<Progress> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    httparse::Request::new(&mut fields).parse(head).err().map(|error| malformed(head, error))
}

fn malformed(head: &[u8], error: httparse::Error) -> Progress {
    let what = match (head.first(), error) {
        (Some(0x16), _) => "the client speaks TLS to the proxy; give its address as http://",
        (Some(4 | 5), _) => "the client speaks SOCKS on an HTTP CONNECT port",
        (_, httparse::Error::Version) => {
            return bad(505, "the request is not HTTP/1.1 or HTTP/1.0");
        }
        (_, httparse::Error::TooManyHeaders) => {
            return bad(431, "the request has more than 64 header fields");
        }
        (_, httparse::Error::HeaderName) => "a header field's name is malformed",
        (_, httparse::Error::HeaderValue) => "a header field's value is malformed",
        (_, httparse::Error::NewLine) => "a line does not end in CRLF",
        (_, httparse::Error::Token) => "the request line is malformed; CONNECT host:port HTTP/1.1",
        (_, httparse::Error::Status) => "the request line is malformed",
    };
    bad(400, what)
}

/// Reads a request that ends in an empty line.
fn read_request(head: &[u8], used: usize) -> Progress {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return bad(400, "the request has an empty line where none belongs"),
        Err(error) => return malformed(head, error),
    }
    let method = request.method.unwrap_or_default();
    let target = request.path.unwrap_or_default();
    if method != "CONNECT" {
        return wrong_method(method, target);
    }
    let hosts = request.headers.iter().filter(|f| f.name.eq_ignore_ascii_case("host")).count();
    // RFC 9112, section 3.2: HTTP/1.1 requires exactly one; HTTP/1.0 has none.
    if hosts > 1 || (hosts == 0 && request.version == Some(1)) {
        return bad(400, &format!("the request has {hosts} Host fields; HTTP/1.1 wants one"));
    }
    match authority(target.as_bytes()) {
        Ok(destination) => Progress::Request { destination, used },
        Err(what) => bad(400, &format!("CONNECT {}: {what}", shown(target))),
    }
}

/// Parses `host:port` (RFC 9112, section 3.2.3); an IPv6 address is in brackets.
fn authority(target: &[u8]) -> Result<Destination, String> {
    if target.contains(&b'@') {
        return Err("user names have no place in it; host:port is wanted".into());
    }
    let colon = target.iter().rposition(|b| *b == b':').ok_or("the port is missing")?;
    let (host, port) = (&target[..colon], &target[colon + 1..]);
    let port = match port {
        [] => return Err("the port is missing".into()),
        digits if digits.iter().all(u8::is_ascii_digit) && digits.len() <= 5 => digits
            .iter()
            .try_fold(0u16, |n, d| n.checked_mul(10)?.checked_add(u16::from(d - b'0')))
            .ok_or("the port is above 65535")?,
        other => {
            return Err(match host.contains(&b':') {
                true => "an IPv6 address stands in brackets, and a port after it".into(),
                false => format!("{} is not a port", shown(&String::from_utf8_lossy(other))),
            });
        }
    };
    match host {
        [b'[', inside @ .., b']'] => {
            let text = str::from_utf8(inside).unwrap_or_default();
            match text.parse::<std::net::Ipv6Addr>() {
                Ok(address) => destination(address.to_string().as_bytes(), port),
                Err(_) => Err("what stands in brackets is not an IPv6 address".into()),
            }
        }
        host if host.contains(&b':') => Err("an IPv6 address stands in brackets".into()),
        host => destination(host, port),
    }
}

fn wrong_method(method: &str, target: &str) -> Progress {
    let (method, target) = (shown(method), shown(target));
    let message = format!("{method} {target}: this proxy serves only CONNECT");
    let body = format!(
        "{message}, which makes a tunnel to host:port.\n\
         For http:// addresses use the SOCKS5 proxy, or have the client tunnel them too\n\
         (curl: --proxytunnel).\n"
    );
    let reply = response(
        405,
        "Allow: CONNECT\r\nProxy-Status: bentpipe; error=http_request_denied\r\n",
        &body,
    );
    Progress::Bad { reply, message }
}

/// Returns the response to a granted request. It has no length: the tunnel follows it.
pub(super) fn granted() -> Vec<u8> {
    b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec()
}

/// Returns the response to a refused request.
pub(super) fn refused(reason: RefuseReason, detail: &str) -> Vec<u8> {
    let (status, error) = match reason {
        RefuseReason::ConnectionRefused => (502, "connection_refused"),
        RefuseReason::HostUnreachable => (502, "destination_unavailable"),
        RefuseReason::NetworkUnreachable => (502, "destination_ip_unroutable"),
        RefuseReason::TimedOut => (504, "connection_timeout"),
        RefuseReason::Policy => (403, "http_request_denied"),
        RefuseReason::NameNotFound => (502, "dns_error"),
        RefuseReason::Limit => (503, "connection_limit_reached"),
        RefuseReason::Other => (502, "proxy_internal_error"),
    };
    let mut body = reason.words().to_string();
    if !detail.is_empty() {
        body.push_str(": ");
        body.push_str(&shown(detail));
    }
    body.push('\n');
    response(status, &format!("Proxy-Status: bentpipe; error={error}\r\n"), &body)
}

fn bad(status: u16, message: &str) -> Progress {
    let fields = "Proxy-Status: bentpipe; error=http_request_error\r\n";
    let reply = response(status, fields, &format!("{message}\n"));
    Progress::Bad { reply, message: message.into() }
}

fn response(status: u16, fields: &str, body: &str) -> Vec<u8> {
    let phrase = match status {
        400 => "Bad Request",
        403 => "Forbidden",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Error",
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n{fields}\r\n{body}"
    )
    .into_bytes()
}

/// Returns a client's text for display: without control characters, and truncated.
fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut out: String = text.chars().take(LONGEST).map(clean).collect();
    if text.chars().count() > LONGEST {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
