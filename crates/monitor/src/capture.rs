//! Captures the traffic of a gateway into a file or for another program.

use crate::{Client, Error, Question};
use serde::Serialize;
use serde_json::Value;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum size of a pcapng block of a gateway in octets.
const MAX_BLOCK: usize = 1 << 20;
/// Interval between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// Parameters of a capture.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Request {
    /// Only traffic between the hub and this terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// Maximum number of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Maximum duration in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Summary of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that the gateway dropped because they were not read fast enough; `None` if it ended
    /// without a statistics block.
    pub missing: Option<u64>,
}

/// Captures into the file at `path`, which only its owner can read; `-` is standard output. Ends at
/// the limits of the request, when `stop` is set, or with the gateway.
///
/// # Errors
/// Errors of the gateway or the file.
pub fn capture(
    mut client: Client,
    request: Request,
    path: &Path,
    stop: &AtomicBool,
) -> Result<Captured, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    // The file is opened first, because a capture without a file is useless.
    let mut out: Box<dyn Write> = if path == Path::new("-") {
        Box::new(io::stdout().lock())
    } else {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(failed)?;
        // An existing file would keep its mode. Devices and pipes keep theirs.
        if file.metadata().map_err(failed)?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(failed)?;
        }
        Box::new(file)
    };
    let _: Value = client.ask_value(&Question::Capture(request))?;
    let mut stream = client.into_stream();
    stream.get_ref().set_read_timeout(Some(LOOK))?;
    let mut blocks = Blocks::default();
    let mut requested = false;
    let mut chunk = vec![0; 256 << 10];
    loop {
        if stop.load(Ordering::Relaxed) && !requested {
            requested = true;
            end(stream.get_ref());
        }
        let count = match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_later(&error) => continue,
            Err(error) => return Err(error.into()),
        };
        let whole = blocks.take(&chunk[..count])?;
        match out.write_all(whole).and_then(|()| out.flush()) {
            Ok(()) => {}
            // The reader has closed the pipe.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
            Err(error) => return Err(failed(error)),
        }
        blocks.forget();
    }
    Ok(blocks.captured)
}

/// Requests the last block, after which the gateway closes.
fn end(stream: &UnixStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A buffer from which only complete blocks are written.
#[derive(Debug, Default)]
struct Blocks {
    bytes: Vec<u8>,
    /// Octets of complete blocks.
    whole: usize,
    captured: Captured,
}

impl Blocks {
    /// Adds octets; returns the complete blocks that were not returned yet.
    fn take(&mut self, bytes: &[u8]) -> io::Result<&[u8]> {
        self.bytes.extend_from_slice(bytes);
        while let Some(head) = self.bytes[self.whole..].first_chunk::<8>() {
            let [kind, len] = [0, 4]
                .map(|at| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]));
            let len = len as usize;
            if len < 12 || !len.is_multiple_of(4) || len > MAX_BLOCK {
                return Err(io::Error::new(ErrorKind::InvalidData, "this is no capture"));
            }
            let Some(block) = self.bytes[self.whole..].get(..len) else { break };
            match kind {
                6 => self.captured.packets += 1,
                5 => self.captured.missing = dropped(block),
                _ => {}
            }
            self.whole += len;
        }
        Ok(&self.bytes[..self.whole])
    }

    fn forget(&mut self) {
        self.bytes.drain(..self.whole);
        self.whole = 0;
    }
}

/// Returns the dropped packets of a statistics block (option 5).
fn dropped(block: &[u8]) -> Option<u64> {
    let mut rest = block.get(20..)?;
    loop {
        let head = rest.first_chunk::<4>()?;
        let code = u16::from_le_bytes([head[0], head[1]]);
        let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let value = rest.get(4..4 + len)?;
        match code {
            0 => return None,
            5 => return value.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)),
            _ => rest = rest.get(4 + len.next_multiple_of(4)..)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::pcap;

    #[test]
    fn only_complete_blocks_are_written_and_the_statistics_read() {
        let mut file = Vec::new();
        pcap::header(pcap::LinkType::Ip, "inner", &mut file);
        for number in 0..5u8 {
            pcap::packet(7, pcap::Direction::Inbound, &[&[number; 33]], &mut file);
        }
        pcap::statistics(8, 9, 4, &mut file);
        let mut blocks = Blocks::default();
        let mut out = Vec::new();
        for piece in file.chunks(7) {
            out.extend_from_slice(blocks.take(piece).unwrap());
            blocks.forget();
        }
        assert!(out == file);
        assert_eq!(blocks.captured, Captured { packets: 5, missing: Some(4) });
        // Split anywhere, the output ends with a complete block.
        let mut blocks = Blocks::default();
        let cut = blocks.take(&file[..file.len() - 60]).unwrap().len();
        assert!(cut < file.len() - 60 && file[cut..].starts_with(&6u32.to_le_bytes()));
        assert!(Blocks::default().take(b"HTTP/1.1 200 OK\r\n").is_err());
    }
}
