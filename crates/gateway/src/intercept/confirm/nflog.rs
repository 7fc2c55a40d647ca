//! Packets that a rule of the packet filter logs to us (`log group N`, NFLOG).

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};

use socket2::Socket;

use super::super::InterceptError;
use super::super::attributes::{Attributes, find};
use super::super::nftables::{errno, nfnetlink, split_message};
use super::syn::Neighbour;

/// The subsystem of `NETLINK_NETFILTER` that this is, in the upper byte of message types.
const SUBSYSTEM: u16 = 4;
const PACKET: u16 = SUBSYSTEM << 8; // NFULNL_MSG_PACKET
const CONFIG: u16 = (SUBSYSTEM << 8) | 1; // NFULNL_MSG_CONFIG
/// `NFULA_PAYLOAD`
const PAYLOAD: u16 = 9;
/// `NFULA_HWADDR`: length of an address, two padding bytes, and the address.
const HARDWARE: u16 = 8;
/// Groups that are tried before giving up: another program may have the first.
const TRIES: u16 = 8;
/// Receive buffer in bytes.
const BUFFER: usize = 1 << 20;

/// An NFLOG group that this process has bound.
#[derive(Debug)]
pub(super) struct Nflog {
    socket: Socket,
    group: u16,
    buffer: Vec<u8>,
}

/// Result of [`SynGate::receive`](super::SynGate::receive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveStatus {
    /// The limit was reached, and more packets may be pending.
    pub(crate) more: bool,
    /// The receive buffer was full, and packets were lost.
    pub(crate) lost: bool,
}

impl Nflog {
    /// Binds the group `first`, or one of the next [`TRIES`].
    pub(super) fn open(first: u16) -> Result<Self, InterceptError> {
        let socket = nfnetlink()?;
        // Clients retransmit SYNs that do not fit.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let mut this = Self { socket, group: first, buffer: vec![0; 64 * 1024] };
        let mut tries = 0..TRIES;
        loop {
            this.group = first.wrapping_add(tries.next().unwrap_or_default());
            let bound = this.bind();
            let is_taken = |source: &io::Error| {
                // EPERM where the group belongs to another user's process.
                matches!(source.raw_os_error(), Some(libc::EBUSY | libc::EPERM))
            };
            match bound {
                Ok(()) => break,
                Err(source) if is_taken(&source) && !tries.is_empty() => {}
                Err(source) => {
                    let call = format!("NFULNL_MSG_CONFIG (group {})", this.group);
                    return Err(InterceptError::refused(call, source, "nfnetlink_log"));
                }
            }
        }
        let refused = |source| InterceptError::refused("O_NONBLOCK", source, "nfnetlink");
        this.socket.set_nonblocking(true).map_err(refused)?;
        Ok(this)
    }

    pub(super) fn group(&self) -> u16 {
        self.group
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Calls `take` for at most `limit` packets, each from its network header on.
    pub(super) fn receive(
        &mut self,
        limit: usize,
        mut take: impl FnMut(&[u8], Option<Neighbour>),
    ) -> ReceiveStatus {
        let Self { socket, buffer, .. } = self;
        read_packets(limit, |buffer| socket.read(buffer), buffer, &mut take)
    }

    /// Binds the group, with whole packets and without batching.
    fn bind(&mut self) -> io::Result<()> {
        const BIND: u8 = 1; // NFULNL_CFG_CMD_BIND
        const WHOLE: u8 = 2; // NFULNL_COPY_PACKET
        self.configure(&Attributes::new().put(1, &[BIND]))?; // NFULA_CFG_CMD
        let mode = [&0xffff_u32.to_be_bytes()[..], &[WHOLE, 0]].concat();
        let how = Attributes::new()
            .put(2, &mode) // NFULA_CFG_MODE
            .number(5, 1); // NFULA_CFG_QTHRESH: one packet per message
        self.configure(&how)
    }

    fn configure(&mut self, body: &Attributes) -> io::Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Vec::new();
        message.extend_from_slice(&(20 + body.as_bytes().len() as u32).to_ne_bytes());
        message.extend_from_slice(&CONFIG.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&[0; 8]); // sequence, port
        message.extend_from_slice(&[0, 0]); // AF_UNSPEC, version
        message.extend_from_slice(&self.group.to_be_bytes());
        message.extend_from_slice(body.as_bytes());
        self.socket.send(&message)?;
        loop {
            let count = self.socket.read(&mut self.buffer)?;
            let mut rest = &self.buffer[..count];
            while let Some((header, payload, next)) = split_message(rest) {
                rest = next;
                if header.kind == libc::NLMSG_ERROR as u16 {
                    return match errno(payload) {
                        0 => Ok(()),
                        code => Err(io::Error::from_raw_os_error(code)),
                    };
                }
            }
        }
    }
}

/// Calls `read` at most `limit` times.
fn read_packets(
    limit: usize,
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    buffer: &mut [u8],
    take: &mut impl FnMut(&[u8], Option<Neighbour>),
) -> ReceiveStatus {
    let mut lost = false;
    for _ in 0..limit {
        match read(buffer) {
            Ok(count) => packets(&buffer[..count], take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The kernel reports an overrun once; the buffered packets follow.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => lost = true,
            Err(error) => {
                // The error may persist: the next packet triggers the next attempt.
                if error.kind() != io::ErrorKind::WouldBlock {
                    tracing::debug!(%error, "reading from NFLOG failed");
                }
                return ReceiveStatus { more: false, lost };
            }
        }
    }
    ReceiveStatus { more: true, lost }
}

/// Calls `take` for the packets of one netlink datagram, each with its link-layer sender.
pub(crate) fn packets(mut rest: &[u8], take: &mut impl FnMut(&[u8], Option<Neighbour>)) {
    while let Some((header, payload, next)) = split_message(rest) {
        rest = next;
        // Behind the family, the version and the group.
        let attributes = payload.get(4..).unwrap_or_default();
        if header.kind == PACKET
            && let Some(packet) = find(attributes, PAYLOAD)
        {
            take(packet, neighbour(attributes));
        }
    }
}

/// The hardware address in `attributes`; some interfaces have none.
fn neighbour(attributes: &[u8]) -> Option<Neighbour> {
    let said = find(attributes, HARDWARE)?;
    let len = usize::from(u16::from_be_bytes([*said.first()?, *said.get(1)?]));
    let address = said.get(4..4 + len).filter(|address| (1..=8).contains(&address.len()))?;
    let mut neighbour = Neighbour::default();
    neighbour[..len].copy_from_slice(address);
    Some(neighbour)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permanent_error_causes_no_busy_loop() {
        let mut reads = 0;
        let mut heard = |code: i32| {
            let read = |_: &mut [u8]| {
                reads += 1;
                Err(io::Error::from_raw_os_error(code))
            };
            (read_packets(64, read, &mut [0; 100], &mut |_, _| {}), std::mem::take(&mut reads))
        };
        let nothing = ReceiveStatus { more: false, lost: false };
        assert_eq!(heard(libc::EBADF), (nothing, 1));
        assert_eq!(heard(libc::EAGAIN), (nothing, 1));
        let mut answers = [libc::ENOBUFS, libc::EINTR, libc::EAGAIN].into_iter();
        let read = |_: &mut [u8]| Err(io::Error::from_raw_os_error(answers.next().unwrap()));
        let heard = read_packets(64, read, &mut [0; 100], &mut |_, _| {});
        assert_eq!(heard, ReceiveStatus { more: false, lost: true });
    }

    #[test]
    fn packets_are_found_in_messages_of_the_kernel() {
        let wire = [0, 6, 0, 0, 2, 0, 0, 0, 0, 9, 0, 0];
        let body = Attributes::new().number(2, 7).put(HARDWARE, &wire).put(PAYLOAD, b"packet");
        let body = body.text(10, "prefix");
        let mut message = Vec::new();
        message.extend_from_slice(&(20 + body.as_bytes().len() as u32).to_ne_bytes());
        message.extend_from_slice(&PACKET.to_ne_bytes());
        message.extend_from_slice(&[0; 10]);
        message.extend_from_slice(&[2, 0, 0, 77]);
        message.extend_from_slice(body.as_bytes());
        let twice = [&message[..], &message].concat();
        let mut found = Vec::new();
        packets(&twice, &mut |packet, from| found.push((packet.to_vec(), from)));
        let one = (b"packet".to_vec(), Some([2, 0, 0, 0, 0, 9, 0, 0]));
        assert_eq!(found, [one.clone(), one]);
        // Anything shorter, or broken, is no packet and no panic.
        for len in 0..message.len() {
            packets(&message[..len], &mut |_, _| panic!("half a message"));
        }
        for at in 0..message.len() {
            let mut broken = message.clone();
            broken[at] ^= 0xff;
            packets(&broken, &mut |_, _| {});
        }
    }
}
