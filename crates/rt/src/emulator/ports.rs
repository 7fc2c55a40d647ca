//! The two sides of the emulated link.

use super::carried::{Carried, Envelope};
use super::udp::UdpRelay;
use super::{EmulatorError, Side};
use crate::packet::PacketSocket;
use crate::pcap::{self, Capture, LinkType};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// Packets read from one side per iteration.
const TURN: usize = 256;
/// Attempts to send a packet to an interface with a full queue.
const TRIES: u32 = 4;

/// The ports of the emulator.
pub(super) enum Attached {
    /// Two Ethernet interfaces.
    Interfaces {
        /// Input of the forward direction.
        a: Box<PacketSocket>,
        /// Output of the forward direction.
        b: Box<PacketSocket>,
    },
    /// A UDP relay: side A is the target, side B the clients.
    Relay(Box<UdpRelay>),
}

/// Packets that could not be sent.
#[derive(Clone, Debug, Default)]
pub(super) struct SendFailures {
    pub(super) packets: u64,
    pub(super) last_error: Option<String>,
}

impl Attached {
    /// Reads the packets queued at `side`: arrival in nanoseconds since 1970, and the packet. If
    /// more may be queued, returns the time before which none arrived.
    pub(super) fn receive(
        &mut self,
        side: Side,
        take: &mut impl FnMut(Option<u64>, Carried),
    ) -> Result<Option<u64>, EmulatorError> {
        match self {
            Self::Interfaces { a, b } => {
                let socket = match side {
                    Side::A => a,
                    Side::B => b,
                };
                drain_interface(socket, take)
            }
            Self::Relay(relay) => relay.receive(side, TURN, take).map_err(EmulatorError::Socket),
        }
    }

    /// Sends `packets` in order.
    pub(super) fn send(&mut self, side: Side, packets: &[Carried], failures: &mut SendFailures) {
        match self {
            Self::Interfaces { a, b } => {
                let socket = match side {
                    Side::A => a,
                    Side::B => b,
                };
                send_frames(socket, packets, failures);
            }
            Self::Relay(relay) => {
                for packet in packets {
                    if let Err(error) = retry(|| relay.send(side, packet)) {
                        failures.note(&error);
                    }
                }
            }
        }
    }

    /// The descriptors that become readable when a packet arrives.
    pub(super) fn descriptors(&self, out: &mut Vec<RawFd>) {
        match self {
            Self::Interfaces { a, b } => {
                out.extend([a.as_fd().as_raw_fd(), b.as_fd().as_raw_fd()]);
            }
            Self::Relay(relay) => relay.descriptors(out),
        }
    }

    /// Packets dropped by the kernel at `side` before they could be read.
    pub(super) fn kernel_drops(&mut self, side: Side) -> u64 {
        match (self, side) {
            (Self::Interfaces { a, .. }, Side::A) => a.kernel_counts().dropped,
            (Self::Interfaces { b, .. }, Side::B) => b.kernel_counts().dropped,
            (Self::Relay(relay), side) => relay.kernel_drops(side),
        }
    }

    /// The name of `side` for messages.
    pub(super) fn name(&self, side: Side) -> String {
        match (self, side) {
            (Self::Interfaces { a, .. }, Side::A) => a.interface().to_owned(),
            (Self::Interfaces { b, .. }, Side::B) => b.interface().to_owned(),
            (Self::Relay(relay), side) => relay.name(side),
        }
    }

    /// Requests that the kernel did not grant, for messages.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Interfaces { a, b } => {
                let of = |socket: &PacketSocket| {
                    let name = socket.interface().to_owned();
                    socket.notes().iter().map(move |note| format!("{name}: {note}")).collect()
                };
                let mut notes: Vec<String> = of(a);
                notes.extend::<Vec<String>>(of(b));
                if a.mtu() != b.mtu() {
                    notes.push(format!(
                        "{} has an MTU of {} and {} one of {}: packets larger than the smaller \
                         one will not get through",
                        a.interface(),
                        a.mtu(),
                        b.interface(),
                        b.mtu()
                    ));
                }
                notes
            }
            Self::Relay(relay) => relay.notes().to_vec(),
        }
    }

    /// Link type of captures of this kind of port.
    pub(super) fn link_type(&self) -> LinkType {
        match self {
            Self::Interfaces { .. } => LinkType::Ethernet,
            Self::Relay(_) => LinkType::Ip,
        }
    }

    /// Captures `packet`, received or sent at `side`.
    pub(super) fn record(
        &self,
        capture: &mut Capture,
        unix_ns: u64,
        side: Side,
        direction: pcap::Direction,
        packet: &Carried,
    ) {
        match (self, packet.envelope) {
            (Self::Relay(relay), Envelope::Datagram { client, traffic_class }) => {
                let headers = relay.headers(side, direction, client, traffic_class, &packet.bytes);
                capture.record(unix_ns, direction, &[&headers, &packet.bytes]);
            }
            (Self::Interfaces { .. } | Self::Relay(_), _) => {
                capture.record(unix_ns, direction, &[&packet.bytes]);
            }
        }
    }
}

pub(super) fn drain_interface(
    socket: &mut PacketSocket,
    take: &mut impl FnMut(Option<u64>, Carried),
) -> Result<Option<u64>, EmulatorError> {
    let mut last = None;
    for _ in 0..TURN / 64 {
        let count = socket
            .receive(64, |unix_ns, frame| {
                last = unix_ns.or(last);
                take(unix_ns, Carried::ethernet(frame));
            })
            .map_err(EmulatorError::Packet)?;
        if count < 64 {
            return Ok(None);
        }
    }
    Ok(last)
}

pub(super) fn send_frames(socket: &PacketSocket, packets: &[Carried], failures: &mut SendFailures) {
    let mut left = packets;
    while !left.is_empty() {
        let frames = left.iter().map(|packet| packet.bytes.as_slice());
        match retry(|| socket.send(frames.clone())) {
            Ok(sent) => left = &left[sent.max(1)..],
            Err(error) => {
                failures.note(&error);
                left = &left[1..];
            }
        }
    }
}

/// Retries `send` after a short delay when the kernel has no room.
fn retry<T>(mut send: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut tries = 1;
    loop {
        let error = match send() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let no_room = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN));
        if !no_room && error.kind() != io::ErrorKind::Interrupted || tries == TRIES {
            return Err(error);
        }
        tries += 1;
        // The thread that empties the queue needs this processor.
        let clock = crate::Clock::new();
        clock.sleep_until(clock.now() + units::Span::from_micros(100));
    }
}

impl SendFailures {
    pub(super) fn note(&mut self, error: &io::Error) {
        self.packets += 1;
        self.last_error = Some(error.to_string());
    }
}
