//! Sessions against hand-made segments, and against each other over a small pipe.

mod figure_8;
mod gateway;
mod lifecycle;
mod pipe;
mod probing;
mod probing_clauses;
mod random;
mod scripts;
mod silence;
mod states;
mod storms;
mod windows;
mod wire;

use super::*;
use crate::seq::Seq24;
use crate::wire::{Profile, Segment};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use units::BitRate;

/// A layer above that sends packets from a queue and writes everything down.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    sent: BTreeMap<u64, Vec<u8>>,
    handles: u64,
    delivered: Vec<(u32, Vec<u8>)>,
    released: Vec<u32>,
    /// A packet is cut to the room there is, as a stream is; otherwise it waits.
    cut: bool,
    /// What `again` gives instead of the packet.
    shrink_to: Option<usize>,
    note: Vec<u8>,
    noted: Vec<Vec<u8>>,
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

    /// The numbers in the first four bytes of what was delivered, sorted.
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
        self.noted.push(note.to_vec());
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// A gateway's preset at 10 Mbit/s.
fn gateway() -> SessionConfig {
    SessionConfig::gateway(BitRate::from_mbps(10))
}

/// One session with its layer above, driven by hand.
struct Hand {
    session: Session,
    upper: Queue,
}

impl Hand {
    fn client(config: &SessionConfig) -> Self {
        Self { session: Session::connect(config, at(0), 1), upper: Queue::default() }
    }

    fn server(config: &SessionConfig) -> Self {
        Self { session: Session::listen(config), upper: Queue::default() }
    }

    /// Everything that is due at `now`, as octets.
    fn send(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.session.handle_timeout(now);
        let mut out = [0; 2000];
        let mut all = Vec::new();
        while let Some(len) = self.session.poll_transmit(now, &mut self.upper, &mut out) {
            all.push(out[..len].to_vec());
            assert!(all.len() < 10_000, "there must be an end to it");
        }
        all
    }

    /// As [`Hand::send`], as text: the types, the number, and what POLL, STAT and USTAT say.
    fn said(&mut self, now: Instant) -> Vec<alloc::string::String> {
        let profile = self.session.config.profile;
        let all = self.send(now);
        all.iter().map(|octets| describe(&Segment::decode(&profile, octets).unwrap())).collect()
    }

    fn hear(&mut self, now: Instant, segment: &Segment<'_>) -> Result<(), ReceiveError> {
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

    fn hear_all(&mut self, now: Instant, segments: &[Vec<u8>]) {
        for octets in segments {
            self.session.handle_segment(now, octets, &mut self.upper).unwrap();
        }
    }

    fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.session.poll_event()).collect()
    }
}

/// A pair that has just shaken hands, with nothing on its way, at 600 ms round trip.
fn established(config: &SessionConfig) -> (Hand, Hand) {
    let mut client = Hand::client(config);
    let mut server = Hand::server(config);
    let begin = client.send(at(0));
    server.hear_all(at(300), &begin);
    let answer = server.send(at(300));
    client.hear_all(at(600), &answer);
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
