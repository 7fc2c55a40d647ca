//! The part of the web server that answers by itself: reports, uploads, WebSocket and server-sent
//! events. nginx terminates HTTP and TLS in front of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use testbed::Host;
use units::Span;

/// Port on the server's loopback interface.
pub(super) const PORT: u16 = 8080;
/// Largest head of a request, and largest message of a WebSocket, in octets.
const MAX_HEAD: u64 = 16 << 10;
const MAX_MESSAGE: usize = 64 << 10;
/// Server-sent events of one response, and the interval between them.
const EVENTS: usize = 10;
const INTERVAL: Span = Span::from_millis(200);
/// Appended to a client's key before hashing (RFC 6455, section 1.3).
const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A report of the page: its name and content.
pub(super) type Report = (String, Value);

/// Starts the application on `host`; it ends with this process.
pub(super) fn start(host: &Host) -> io::Result<Receiver<Report>> {
    let listener = host.run(|| TcpListener::bind(("127.0.0.1", PORT)))?;
    let (sender, reports) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sender = sender.clone();
            // A client that closes early ends its thread with an error.
            std::thread::spawn(move || answer(&stream, &sender));
        }
    });
    Ok(reports)
}

/// The head of a request.
#[derive(Debug, Default)]
struct Head {
    path: String,
    length: usize,
    websocket_key: String,
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    let mut lines = reader.take(MAX_HEAD).lines();
    let first = lines.next().ok_or(ErrorKind::UnexpectedEof)??;
    let path = first.split(' ').nth(1).ok_or(ErrorKind::InvalidData)?.to_owned();
    let mut head = Head { path, ..Head::default() };
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                head.length = value.trim().parse().map_err(|_| ErrorKind::InvalidData)?;
            }
            "sec-websocket-key" => value.trim().clone_into(&mut head.websocket_key),
            _ => {}
        }
    }
    Ok(head)
}

fn answer(stream: &TcpStream, reports: &Sender<Report>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    let mut writer = stream;
    match head.path.as_str() {
        "/socket" => {
            let accept = STANDARD.encode(digest(
                &SHA1_FOR_LEGACY_USE_ONLY,
                format!("{}{WEBSOCKET_GUID}", head.websocket_key).as_bytes(),
            ));
            write!(
                writer,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            )?;
            while echo_message(&mut reader, &mut writer)? {}
            Ok(())
        }
        "/events" => {
            write!(writer, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
            for number in 0..EVENTS {
                crate::threads::sleep(INTERVAL);
                write!(writer, "data: {number}\n\n")?;
            }
            // The client closes: an end of the response would have it connect again.
            stream.set_read_timeout(Some(Duration::from_secs(60)))?;
            reader.read(&mut [0]).map(drop)
        }
        path => {
            let mut body = vec![0; head.length];
            reader.read_exact(&mut body)?;
            let response = format!("{{\"octets\":{},\"hash\":{}}}", body.len(), hash(&body));
            write!(
                writer,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{response}",
                response.len()
            )?;
            if let Some(name) = path.strip_prefix("/report/") {
                let value = serde_json::from_slice(&body)?;
                // After the last visit the receiver is gone.
                let _ = reports.send((name.to_owned(), value));
            }
            Ok(())
        }
    }
}

/// Returns one message of a WebSocket to its sender; false after a close (RFC 6455, section 5.2).
fn echo_message(reader: &mut impl Read, writer: &mut impl Write) -> io::Result<bool> {
    const CLOSE: u8 = 0x88;
    let mut head = [0; 2];
    reader.read_exact(&mut head)?;
    let length = match head[1] & 0x7f {
        126 => {
            let mut long = [0; 2];
            reader.read_exact(&mut long)?;
            usize::from(u16::from_be_bytes(long))
        }
        127 => return Err(ErrorKind::InvalidData.into()),
        short => usize::from(short),
    };
    if length > MAX_MESSAGE || head[1] & 0x80 == 0 {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut mask = [0; 4];
    reader.read_exact(&mut mask)?;
    let mut message = vec![0; length];
    reader.read_exact(&mut message)?;
    for (octet, mask) in message.iter_mut().zip(mask.iter().cycle()) {
        *octet ^= mask;
    }
    let mut frame = match u8::try_from(length) {
        Ok(short) if short < 126 => vec![head[0], short],
        _ => [&[head[0], 126][..], &(length as u16).to_be_bytes()].concat(),
    };
    frame.extend(message);
    writer.write_all(&frame)?;
    Ok(head[0] != CLOSE)
}

/// FNV-1a of 32 bits, as `page.js` computes it.
fn hash(octets: &[u8]) -> u32 {
    octets
        .iter()
        .fold(0x811c_9dc5, |value, &octet| (value ^ u32::from(octet)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_message_is_returned_unmasked() {
        // RFC 6455, section 5.7: a masked "Hello", and its unmasked form.
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        let mut answer = Vec::new();
        assert!(echo_message(&mut &masked[..], &mut answer).unwrap());
        assert_eq!(answer, [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        let close = [0x88, 0x80, 0, 0, 0, 0];
        assert!(!echo_message(&mut &close[..], &mut Vec::new()).unwrap());
        assert!(echo_message(&mut &[0x81, 0x05][..], &mut Vec::new()).is_err(), "not masked");
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // Values of the algorithm's authors.
        assert_eq!(hash(b""), 0x811c_9dc5);
        assert_eq!(hash(b"foobar"), 0xbf9c_f968);
    }
}
