//! Packet captures as pcapng: one interface, nanosecond timestamps.
//!
//! A [`Capture`] writes in a thread of its own, so that the caller never waits for a disk. Packets
//! that the disk is too slow for are dropped and counted.

use std::fs::File;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;

/// Link type of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 or IPv6 header.
    Ip,
}

/// Direction of a packet relative to the capturing host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received.
    Inbound,
    /// Sent.
    Outbound,
}

/// The two blocks at the start of a file.
pub fn header(link_type: LinkType, interface: &str, out: &mut Vec<u8>) {
    // Section header: byte order, version 1.0, length unknown.
    block(out, 0x0a0d_0d0a, |out| {
        out.extend(0x1a2b_3c4d_u32.to_le_bytes());
        out.extend([1, 0, 0, 0]);
        out.extend((-1i64).to_le_bytes());
    });
    // Interface description: link type, no limit, name (option 2), 10⁻⁹ s (option 9).
    block(out, 1, |out| {
        let number: u16 = match link_type {
            LinkType::Ethernet => 1,
            LinkType::Ip => 101,
        };
        out.extend(number.to_le_bytes());
        out.extend([0, 0, 0, 0, 0, 0]);
        option(out, 2, interface.as_bytes());
        option(out, 9, &[9]);
        option(out, 0, &[]);
    });
}

/// One packet with its octets in `parts` and a timestamp in nanoseconds since 1970.
pub fn packet(unix_ns: u64, direction: Direction, parts: &[&[u8]], out: &mut Vec<u8>) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    block(out, 6, |out| {
        out.extend([0; 4]);
        out.extend(((unix_ns >> 32) as u32).to_le_bytes());
        out.extend((unix_ns as u32).to_le_bytes());
        out.extend((len as u32).to_le_bytes());
        out.extend((len as u32).to_le_bytes());
        for part in parts {
            out.extend_from_slice(part);
        }
        pad(out, len);
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        option(out, 2, &flags.to_le_bytes());
        option(out, 0, &[]);
    });
}

/// A name resolution block, for the packets that follow.
pub fn names(names: &[(Ipv4Addr, &str)], out: &mut Vec<u8>) {
    block(out, 4, |out| {
        for (address, name) in names {
            let name: Vec<u8> = name.bytes().filter(|&byte| byte != 0).take(250).collect();
            out.extend(1u16.to_le_bytes());
            out.extend((name.len() as u16 + 5).to_le_bytes());
            out.extend(address.octets());
            out.extend(&name);
            out.push(0);
            pad(out, name.len() + 5);
        }
        out.extend([0; 4]);
    });
}

/// An interface statistics block at the end: packets of the interface until `unix_ns`, and how many
/// are not in the file.
pub fn statistics(unix_ns: u64, packets: u64, dropped: u64, out: &mut Vec<u8>) {
    block(out, 5, |out| {
        out.extend([0; 4]);
        out.extend(((unix_ns >> 32) as u32).to_le_bytes());
        out.extend((unix_ns as u32).to_le_bytes());
        option(out, 4, &packets.to_le_bytes());
        option(out, 5, &dropped.to_le_bytes());
        option(out, 0, &[]);
    });
}

fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = (out.len() + 4 - start) as u32;
    out[start + 4..start + 8].copy_from_slice(&len.to_le_bytes());
    out.extend(len.to_le_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len() + (len.next_multiple_of(4) - len), 0);
}

/// Size at which buffers are passed to the writing thread.
const BUFFER: usize = 256 << 10;
/// Maximum buffers that wait for the disk: 16 MB.
const BUFFERS: usize = 64;

/// A capture being written to a file.
pub struct Capture {
    buffer: Vec<u8>,
    in_buffer: u64,
    omitted: u64,
    /// `None` once the capture has ended.
    sender: Option<SyncSender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Capture {
    /// Starts a capture in the file `path`, replacing an existing one.
    ///
    /// # Errors
    /// The error of creating the file.
    pub fn create(path: &Path, link_type: LinkType, interface: &str) -> io::Result<Self> {
        let file = File::create(path)?;
        let (sender, receiver) = mpsc::sync_channel(BUFFERS);
        let writer = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || write_all(file, &receiver))?;
        let mut buffer = Vec::with_capacity(BUFFER + 2048);
        header(link_type, interface, &mut buffer);
        Ok(Self { buffer, in_buffer: 0, omitted: 0, sender: Some(sender), writer: Some(writer) })
    }

    /// Records a packet without blocking.
    pub fn record(&mut self, unix_ns: u64, direction: Direction, parts: &[&[u8]]) {
        packet(unix_ns, direction, parts, &mut self.buffer);
        self.in_buffer += 1;
        if self.buffer.len() >= BUFFER {
            self.hand_over();
        }
    }

    /// Passes the recorded packets to the writing thread without blocking, so that a reader sees
    /// them.
    pub fn hand_over(&mut self) {
        let Some(sender) = self.sender.as_ref().filter(|_| !self.buffer.is_empty()) else {
            return;
        };
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER + 2048));
        match sender.try_send(full) {
            Ok(()) => {}
            // A gap between two whole blocks: the file stays valid.
            Err(TrySendError::Full(mut buffer)) => {
                self.omitted += self.in_buffer;
                buffer.clear();
                self.buffer = buffer;
            }
            // The writer has failed; the error is returned at the end.
            Err(TrySendError::Disconnected(_)) => self.omitted += self.in_buffer,
        }
        self.in_buffer = 0;
    }

    /// Waits until everything is written. Returns the number of packets dropped because the disk
    /// was too slow.
    ///
    /// # Errors
    /// The error of writing the file.
    pub fn finish(mut self) -> io::Result<u64> {
        self.end().map(|()| self.omitted)
    }

    fn end(&mut self) -> io::Result<()> {
        if let Some(sender) = self.sender.take() {
            // Blocking is allowed here. The error of a failed writer is returned below.
            let _ = sender.send(std::mem::take(&mut self.buffer));
        }
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the capture's writer panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Capture {
    /// Writes the recorded packets even if the result is not requested.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn write_all(mut file: File, buffers: &Receiver<Vec<u8>>) -> io::Result<()> {
    for buffer in buffers {
        file.write_all(&buffer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::DataLink;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn packets_and_timestamps_can_be_parsed() {
        let path = std::env::temp_dir().join(format!("capture-{}.pcapng", std::process::id()));
        let mut capture = Capture::create(&path, LinkType::Ip, "terminal").unwrap();
        let stamp = |n: u64| 1_763_000_000_000_000_000 + n * 999_999_937;
        // Enough for several buffers, and all four paddings.
        for n in 0..2_000u64 {
            let body = vec![n as u8; 300 + n as usize % 4];
            let direction = if n % 2 == 0 { Direction::Inbound } else { Direction::Outbound };
            capture.record(stamp(n), direction, &[b"head", &body]);
        }
        assert_eq!(capture.finish().unwrap(), 0);

        let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        let mut count = 0;
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!(interface.linktype, DataLink::RAW);
                }
                Block::EnhancedPacket(packet) => {
                    assert_eq!(packet.timestamp.as_nanos(), u128::from(stamp(count)));
                    assert_eq!(packet.data.len() as u64, 304 + count % 4);
                    assert_eq!(&packet.data[..5], [b'h', b'e', b'a', b'd', count as u8]);
                    let direction = 1 + (count % 2) as u32;
                    assert_eq!(packet.options[0], EnhancedPacketOption::Flags(direction));
                    count += 1;
                }
                other => panic!("unexpected block {other:?}"),
            }
        }
        assert_eq!(count, 2_000);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn names_and_statistics_can_be_parsed() {
        use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption;
        let mut bytes = Vec::new();
        header(LinkType::Ip, "inner", &mut bytes);
        names(&[(Ipv4Addr::new(192, 0, 2, 1), "hub"), (Ipv4Addr::LOCALHOST, "b")], &mut bytes);
        statistics(77, 9, 2, &mut bytes);
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        reader.next_block().unwrap().unwrap();
        let Some(Ok(Block::NameResolution(found))) = reader.next_block() else { panic!("names") };
        assert_eq!(found.records.len(), 2, "{found:?}");
        let Some(Ok(Block::InterfaceStatistics(found))) = reader.next_block() else {
            panic!("statistics")
        };
        assert!(found.options.contains(&InterfaceStatisticsOption::IsbIfRecv(9)));
        assert!(found.options.contains(&InterfaceStatisticsOption::IsbIfDrop(2)));
    }

    #[test]
    fn write_errors_are_returned() {
        let path = Path::new("/dev/full");
        let mut capture = Capture::create(path, LinkType::Ethernet, "eth0").unwrap();
        capture.record(0, Direction::Inbound, &[&[0; 60]]);
        assert_eq!(capture.finish().unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
