//! The two sides of the emulated link, whatever they are made of.

use super::carried::{Carried, Envelope};
use super::udp::UdpRelay;
use super::{EmulatorError, Side};
use crate::packet::PacketSocket;
use crate::pcap::{Capture, LinkType, Way};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// Packets that one side takes in at a turn.
const TURN: usize = 256;
/// How often a packet is tried that the interface has no room for, a moment apart.
const TRIES: u32 = 4;

/// The emulator's hands.
pub(super) enum Attached {
    /// Two Ethernet interfaces.
    Interfaces {
        /// Where forward frames come in.
        a: Box<PacketSocket>,
        /// Where they go out.
        b: Box<PacketSocket>,
    },
    /// A UDP relay: side A is the target, side B the clients.
    Relay(Box<UdpRelay>),
}

/// What could not be handed on.
#[derive(Clone, Debug, Default)]
pub(super) struct SendFailures {
    pub(super) packets: u64,
    pub(super) last_error: Option<String>,
}

impl Attached {
    /// Takes in what waits at `side`: arrival in nanoseconds since 1970, and the packet. When
    /// more may be waiting, returns the stamp before which nothing is.
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

    /// Hands `packets` on, in order.
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

    /// Every descriptor that becomes readable when something arrives.
    pub(super) fn descriptors(&self, out: &mut Vec<RawFd>) {
        match self {
            Self::Interfaces { a, b } => {
                out.extend([a.as_fd().as_raw_fd(), b.as_fd().as_raw_fd()]);
            }
            Self::Relay(relay) => relay.descriptors(out),
        }
    }

    /// Packets that arrived at `side` and that the kernel dropped before they could be read.
    pub(super) fn kernel_drops(&mut self, side: Side) -> u64 {
        match (self, side) {
            (Self::Interfaces { a, .. }, Side::A) => a.kernel_counts().dropped,
            (Self::Interfaces { b, .. }, Side::B) => b.kernel_counts().dropped,
            (Self::Relay(relay), side) => relay.kernel_drops(side),
        }
    }

    /// What people call `side`.
    pub(super) fn name(&self, side: Side) -> String {
        match (self, side) {
            (Self::Interfaces { a, .. }, Side::A) => a.interface().to_owned(),
            (Self::Interfaces { b, .. }, Side::B) => b.interface().to_owned(),
            (Self::Relay(relay), side) => relay.name(side),
        }
    }

    /// Wishes that the kernel did not grant, for people.
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

    /// What captures of this kind of port hold.
    pub(super) fn link_type(&self) -> LinkType {
        match self {
            Self::Interfaces { .. } => LinkType::Ethernet,
            Self::Relay(_) => LinkType::Ip,
        }
    }

    /// Records `packet`, which came or went at `side`.
    pub(super) fn record(
        &self,
        capture: &mut Capture,
        unix_ns: u64,
        side: Side,
        way: Way,
        packet: &Carried,
    ) {
        match (self, packet.envelope) {
            (Self::Relay(relay), Envelope::Datagram { client, traffic_class }) => {
                let headers = relay.headers(side, way, client, traffic_class, &packet.bytes);
                capture.record(unix_ns, way, &[&headers, &packet.bytes]);
            }
            (Self::Interfaces { .. } | Self::Relay(_), _) => {
                capture.record(unix_ns, way, &[&packet.bytes]);
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

/// Does `send` again, a moment later, when the kernel has no room.
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
        // Whoever empties the queue needs the processor that this thread holds.
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
