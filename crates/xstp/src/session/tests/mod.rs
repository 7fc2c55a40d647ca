//! Tests of sessions: with constructed segments, and in pairs over a simulated path.

mod figure_8;
mod gateway;
mod lifecycle;
mod low_rates;
mod pipe;
mod probing;
mod probing_clauses;
mod random;
mod regressions;
mod repair;
mod scripts;
mod states;
mod windows;
mod wire;

use super::*;
use crate::seq::Seq24;
use crate::wire::{Profile, Segment};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::BitRate;

/// Upper layer that sends packets from a queue and records all calls.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    sent: BTreeMap<u64, Vec<u8>>,
    handles: u64,
    delivered: Vec<(u32, Vec<u8>)>,
    released: Vec<u32>,
    /// A packet is shortened to the available room, as a stream is; otherwise it stays queued.
    cut: bool,
    /// Length of retransmissions, if they are shorter than the packet.
    shrink_to: Option<usize>,
    urgent: bool,
    note: Vec<u8>,
    received_notes: Vec<Vec<u8>>,
}

impl Queue {
    fn push(&mut self, packet: &[u8]) {
        self.waiting.push_back(packet.to_vec());
    }

    /// `count` packets of `size` bytes, numbered in their first four.
    fn push_many(&mut self, count: u32, size: usize) {
        for n in 0..count {
            let mut packet = alloc::vec![0; size.max(4)];
            packet[..4].copy_from_slice(&n.to_be_bytes());
            self.waiting.push_back(packet);
        }
    }

    /// First four octets of the delivered packets as numbers, sorted.
    fn delivered_sorted(&self) -> Vec<u32> {
        let first = |p: &Vec<u8>| u32::from_be_bytes(p[..4].try_into().unwrap());
        let mut all: Vec<u32> = self.delivered.iter().map(|(_, p)| first(p)).collect();
        all.sort_unstable();
        all
    }
}

impl UpperLayer for Queue {
    fn has_new_data(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn has_urgent_data(&self) -> bool {
        self.urgent && self.has_new_data()
    }

    fn fill_new(&mut self, _: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        let fits = |packet: &&mut Vec<u8>| self.cut || packet.len() <= room.len();
        self.waiting.front_mut().filter(fits)?.truncate(room.len());
        let packet = self.waiting.pop_front()?;
        room[..packet.len()].copy_from_slice(&packet);
        let len = packet.len();
        self.handles += 1;
        self.sent.insert(self.handles, packet);
        Some(NewPacket { len, handle: self.handles })
    }

    fn fill_retransmission(&mut self, _: Seq24, handle: u64, room: &mut [u8]) -> usize {
        let packet = &self.sent[&handle];
        let len = self.shrink_to.unwrap_or(packet.len()).min(packet.len());
        room[..len].copy_from_slice(&packet[..len]);
        len
    }

    fn on_acknowledged(&mut self, number: Seq24, handle: u64) {
        assert!(self.sent.remove(&handle).is_some(), "released twice");
        self.released.push(number.value());
    }

    fn deliver(&mut self, number: Seq24, payload: &[u8]) {
        self.delivered.push((number.value(), payload.to_vec()));
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        let len = self.note.len().min(room.len());
        room[..len].copy_from_slice(&self.note[..len]);
        len
    }

    fn on_note(&mut self, note: &[u8]) {
        self.received_notes.push(note.to_vec());
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Preset of a gateway at 10 Mbit/s.
fn gateway() -> SessionConfig {
    SessionConfig::gateway(BitRate::from_mbps(10))
}

/// One session with its upper layer.
struct Peer {
    session: Session,
    upper: Queue,
}

impl Peer {
    fn client(config: &SessionConfig) -> Self {
        Self { session: Session::connect(config, at(0), 1), upper: Queue::default() }
    }

    fn server(config: &SessionConfig) -> Self {
        Self { session: Session::listen(config), upper: Queue::default() }
    }

    /// Sends all segments that are due at `now`.
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.session.handle_timeout(now);
        let mut out = [0; 2000];
        let mut all = Vec::new();
        while let Some(len) = self.session.poll_transmit(now, &mut self.upper, &mut out) {
            all.push(out[..len].to_vec());
            assert!(all.len() < 10_000, "does not terminate");
        }
        all
    }

    /// As [`Peer::send`], as text: types, number, and the contents of POLL, STAT and USTAT.
    fn send_text(&mut self, now: Instant) -> Vec<alloc::string::String> {
        let profile = self.session.config.profile;
        let all = self.send(now);
        all.iter().map(|octets| describe(&Segment::decode(&profile, octets).unwrap())).collect()
    }

    fn receive(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), ReceiveError> {
        let mut octets = [0; 2000];
        let profile = match self.session.config.profile {
            Profile::Sealed => Profile::Sealed,
            Profile::Published(ends) => Profile::Published(crate::wire::Endpoints {
                local: ends.remote,
                remote: ends.local,
            }),
        };
        let len = segment.encode(&profile, &mut octets).unwrap();
        self.session.handle_segment(now, &octets[..len], &mut self.upper)
    }

    fn receive_all(&mut self, now: Instant, segments: &[Vec<u8>]) {
        for octets in segments {
            self.session.handle_segment(now, octets, &mut self.upper).unwrap();
        }
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.session.poll_event()).collect()
    }
}

/// A pair after the handshake, with an RTT of 600 ms and no segment in flight.
fn established(config: &SessionConfig) -> (Peer, Peer) {
    let mut client = Peer::client(config);
    let mut server = Peer::server(config);
    let begin = client.send(at(0));
    server.receive_all(at(300), &begin);
    let response = server.send(at(300));
    client.receive_all(at(600), &response);
    assert_eq!(client.session.state(), State::Established);
    assert_eq!(server.session.state(), State::Established);
    client.events();
    server.events();
    (client, server)
}

fn describe(segment: &Segment<'_>) -> alloc::string::String {
    use core::fmt::Write;
    let mut text = alloc::format!("{}", segment.kinds());
    if segment.payload().is_some() {
        write!(text, " {}", segment.number()).unwrap();
    }
    if let Some(poll) = segment.poll_part() {
        write!(text, " poll<{}", poll.next).unwrap();
    }
    if let Some(stat) = segment.stat_part() {
        write!(text, " have<{}", stat.received_below).unwrap();
        for run in stat.runs().filter(|run| run.missing) {
            write!(text, " miss {}+{}", run.start, run.len).unwrap();
        }
    }
    if let Some(ustat) = segment.ustat_part() {
        for gap in ustat.gaps() {
            write!(text, " miss {}+{}", gap.start, gap.len).unwrap();
        }
    }
    text
}
