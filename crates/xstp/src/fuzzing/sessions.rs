//! Two sessions and a network that a script controls.

use crate::seq::Seq24;
use crate::session::{NewPacket, Session, SessionConfig, State, UpperLayer};
use crate::wire::{Endpoints, Profile, Segment};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{BitRate, Instant, Span};

/// Maximum number of segments in flight per direction; further ones are lost.
const MAX_IN_FLIGHT: usize = 64;
/// Maximum number of segments that an end sends in one call; pacing and windows bound them.
const MAX_BURST: usize = 2_000;
/// Upper bound of the packets that a script sends.
const MAX_SENT: u32 = 1 << 20;

/// Runs `script` on a client, a server and a network that loses, duplicates, reorders and corrupts
/// segments. Then the faults end, and every packet must be delivered unless a session has closed.
///
/// # Panics
/// When a packet is delivered twice or modified, when a packet is released that was not delivered,
/// when a timeout does not advance, or when packets are not delivered.
pub(super) fn faulty(script: &[u8]) {
    let mut world = World::new(script, false);
    world.play(script);
    world.heal();
}

/// Runs `script` on a client, a server and a network that also modifies and invents sealed segments,
/// which an association would reject: the delivery is undefined, but no session panics.
///
/// # Panics
/// When a timeout does not advance.
pub(super) fn hostile(script: &[u8]) {
    World::new(script, true).play(script);
}

struct World {
    now: Instant,
    hostile: bool,
    ends: [Peer; 2],
    /// Segments in flight to the server and to the client.
    in_flight: [VecDeque<Vec<u8>>; 2],
}

struct Peer {
    session: Session,
    upper: Packets,
}

/// Upper layer: each payload contains the index of its packet.
#[derive(Default)]
struct Packets {
    to_send: u32,
    sent: u32,
    /// Sequence number of each packet that was sent and not released.
    kept: Vec<Option<Seq24>>,
    /// Packets released since the last comparison with the deliveries of the peer.
    newly_released: Vec<u32>,
    /// Whether each packet of the peer was delivered, and how many were.
    delivered: Vec<bool>,
    arrived: u32,
    hostile: bool,
}

impl World {
    fn new(script: &[u8], hostile: bool) -> Self {
        let setting = script.first().copied().unwrap_or(0);
        let published = setting & 1 == 1 && !hostile;
        let config = |local, remote| {
            let address = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
            let ends = Endpoints { local: address(local), remote: address(remote) };
            if published {
                SessionConfig { profile: Profile::Published(ends), ..SessionConfig::stp_1999() }
            } else {
                let mut config = SessionConfig::gateway(BitRate::from_kbps(100 << (setting >> 5)));
                config.gateway.repair_percent = (setting & 2 != 0).then_some(50);
                config
            }
        };
        let client = Session::connect(&config(1, 2), Instant::ZERO, 1);
        let server = Session::listen(&config(2, 1));
        let ends = [client, server]
            .map(|session| Peer { session, upper: Packets { hostile, ..Packets::default() } });
        Self { now: Instant::ZERO, hostile, ends, in_flight: Default::default() }
    }

    fn play(&mut self, script: &[u8]) {
        let mut rest = script.get(1..).unwrap_or_default();
        while let Some((&[kind, a, b], after)) = rest.split_first_chunk::<3>() {
            rest = after;
            let direction = usize::from(a & 1);
            match kind % 16 {
                0..2 => {
                    let peer = &mut self.ends[direction];
                    peer.upper.to_send += u32::from(b % 32);
                    peer.session.wake();
                }
                2..6 => self.wait(u64::from(a) << (b % 5)),
                6..10 => self.arrive(direction, 0),
                10 => self.arrive(direction, usize::from(b)),
                11 => {
                    let copy = self.in_flight[direction].front().cloned();
                    self.enqueue(direction, copy.unwrap_or_default());
                }
                12 => drop(self.in_flight[direction].pop_front()),
                13 => self.damage(direction, a, b),
                14 if self.hostile => {
                    let len = usize::from(b % 48).min(rest.len());
                    self.in_flight[direction].push_front(rest[..len].to_vec());
                    rest = &rest[len..];
                    self.arrive(direction, 0);
                }
                _ => self.command(direction, a, b),
            }
        }
    }

    /// Executes a call of the upper layer.
    fn command(&mut self, direction: usize, a: u8, b: u8) {
        let session = &mut self.ends[direction].session;
        match a >> 1 & 15 {
            // Rare, so that most scripts transfer data.
            0 if b < 32 => session.end(self.now),
            1 if b < 8 => session.abort(self.now),
            0..8 => session.set_max_segment(usize::from(b) * 8),
            _ => session.set_receive_window(u32::from(b)),
        }
    }

    /// Advances the time; each end is called when it is due, or later.
    fn wait(&mut self, millis: u64) {
        let until = self.now + Span::from_millis(millis);
        for _ in 0..4 {
            let due = self.ends.iter().filter_map(|end| end.session.poll_timeout()).min();
            let Some(due) = due.filter(|&due| due < until) else { break };
            self.now = self.now.max(due);
            self.serve();
        }
        self.now = until;
        self.serve();
    }

    /// Calls both ends as a driver does after each event.
    fn serve(&mut self) {
        for direction in 0..2 {
            let peer = &mut self.ends[direction];
            peer.session.handle_timeout(self.now);
            let mut out = [0; 2048];
            let mut burst = 0;
            while let Some(len) = peer.session.poll_transmit(self.now, &mut peer.upper, &mut out) {
                assert!(len > 0 && len <= peer.session.max_segment().max(128), "{len} octets");
                burst += 1;
                assert!(burst < MAX_BURST, "does not terminate");
                if self.in_flight[direction].len() < MAX_IN_FLIGHT {
                    self.in_flight[direction].push_back(out[..len].to_vec());
                }
            }
            while peer.session.poll_event().is_some() {}
            let due = peer.session.poll_timeout();
            assert!(
                due.is_none_or(|due| due > self.now),
                "timeout in the past: {due:?} at {:?}",
                self.now
            );
        }
        if !self.hostile {
            for (from, to) in [(0, 1), (1, 0)] {
                let released = core::mem::take(&mut self.ends[from].upper.newly_released);
                let delivered = &self.ends[to].upper.delivered;
                let was_delivered = |number: &u32| delivered.get(*number as usize) == Some(&true);
                let early = released.into_iter().find(|number| !was_delivered(number));
                assert_eq!(early, None, "released too early");
            }
        }
    }

    fn enqueue(&mut self, direction: usize, segment: Vec<u8>) {
        if self.in_flight[direction].len() < MAX_IN_FLIGHT {
            self.in_flight[direction].push_back(segment);
        }
    }

    fn arrive(&mut self, direction: usize, position: usize) {
        let in_flight = &mut self.in_flight[direction];
        if in_flight.is_empty() {
            return;
        }
        let Some(segment) = in_flight.remove(position % in_flight.len()) else { return };
        // Minimum one-way delay.
        self.now += Span::from_millis(1);
        let peer = &mut self.ends[1 - direction];
        let _ = peer.session.handle_segment(self.now, &segment, &mut peer.upper);
        self.serve();
    }

    /// Corrupts one octet. A sealed segment is lost instead, as the association would detect it.
    fn damage(&mut self, direction: usize, a: u8, b: u8) {
        let has_checksum = matches!(self.ends[0].session.config().profile, Profile::Published(_));
        let Some(segment) = self.in_flight[direction].front_mut() else { return };
        if !has_checksum && !self.hostile {
            self.in_flight[direction].pop_front();
            return;
        }
        let len = segment.len().max(1);
        if let Some(octet) = segment.get_mut(usize::from(a >> 1) % len) {
            *octet = octet.wrapping_add(b | 1);
        }
        if self.hostile && b >= 192 {
            segment.truncate(usize::from(a >> 1));
        }
        // Corruption that the checksum does not detect: the segment is lost.
        let profile = self.ends[1 - direction].session.config().profile;
        if !self.hostile && Segment::decode(&profile, segment).is_ok() {
            self.in_flight[direction].pop_front();
        }
    }

    /// Ends the faults: every segment arrives 50 ms after it was sent.
    fn heal(&mut self) {
        self.in_flight = Default::default();
        let start = self.now;
        for end in &mut self.ends {
            end.session.set_receive_window(1000);
            end.session.set_max_segment(usize::MAX);
            end.session.wake();
        }
        while self.now < start + Span::from_secs(3600) {
            self.serve();
            if self.is_settled() {
                return;
            }
            let in_flight = core::mem::take(&mut self.in_flight);
            let due = self.ends.iter().filter_map(|end| end.session.poll_timeout()).min();
            if in_flight.iter().all(VecDeque::is_empty) {
                let Some(due) = due else { break };
                self.now = self.now.max(due);
                continue;
            }
            self.now += Span::from_millis(50);
            for (direction, segments) in in_flight.into_iter().enumerate() {
                let peer = &mut self.ends[1 - direction];
                for segment in segments {
                    let _ = peer.session.handle_segment(self.now, &segment, &mut peer.upper);
                }
            }
        }
        panic!(
            "packets were not delivered: {:?}",
            self.ends.each_ref().map(|end| end.session.state())
        );
    }

    /// Whether all packets are delivered, or a session is closed.
    fn is_settled(&self) -> bool {
        let closed = |end: &Peer| matches!(end.session.state(), State::Closed);
        let complete = |from: usize| {
            let upper = &self.ends[from].upper;
            // Data written after END or RST is not sent.
            upper.sent == self.ends[1 - from].upper.arrived
                && (upper.sent == upper.to_send || !may_send(self.ends[from].session.state()))
        };
        let begun = self.ends[0].session.state() != State::Opening;
        self.ends.iter().any(closed) || begun && complete(0) && complete(1)
    }
}

const fn may_send(state: State) -> bool {
    match state {
        State::Opening | State::Established | State::HalfClosedRemote => true,
        State::Closed | State::Listening | State::Closing => false,
        State::HalfClosedLocal | State::LastClosing => false,
    }
}

impl Packets {
    const fn full_len(number: u32) -> usize {
        4 + number as usize % 60
    }

    fn write(number: u32, room: &mut [u8]) -> usize {
        let octets = number.to_be_bytes();
        room[..4].copy_from_slice(&octets);
        Self::full_len(number).min(room.len())
    }

    fn arrive(&mut self, number: u32) {
        assert!(number < MAX_SENT, "{number} was never sent");
        let index = number as usize;
        if index >= self.delivered.len() {
            self.delivered.resize(index + 1, false);
        }
        assert!(!self.delivered[index], "{number} was delivered twice");
        self.delivered[index] = true;
        self.arrived += 1;
    }
}

impl UpperLayer for Packets {
    fn has_new_data(&self) -> bool {
        self.sent < self.to_send
    }

    fn has_urgent_data(&self) -> bool {
        self.sent.is_multiple_of(2) && self.has_new_data()
    }

    fn fill_new(&mut self, number: Seq24, room: &mut [u8]) -> Option<NewPacket> {
        if self.sent == self.to_send || room.len() < 4 {
            return None;
        }
        let handle = u64::from(self.sent);
        let len = Self::write(self.sent, room);
        self.sent += 1;
        self.kept.push(Some(number));
        Some(NewPacket { len, handle })
    }

    fn fill_retransmission(&mut self, number: Seq24, handle: u64, room: &mut [u8]) -> usize {
        assert_eq!(self.kept.get(handle as usize), Some(&Some(number)), "already released");
        Self::write(handle as u32, room)
    }

    fn on_acknowledged(&mut self, number: Seq24, handle: u64) {
        let kept = self.kept.get_mut(handle as usize).and_then(Option::take);
        assert_eq!(kept, Some(number), "released twice");
        self.newly_released.push(handle as u32);
    }

    fn deliver(&mut self, _number: Seq24, payload: &[u8]) {
        if self.hostile {
            return;
        }
        let (octets, _) = payload.split_first_chunk::<4>().expect("four octets were sent");
        let number = u32::from_be_bytes(*octets);
        assert!(payload.len() <= Self::full_len(number), "{} octets", payload.len());
        self.arrive(number);
    }

    fn fill_note(&mut self, room: &mut [u8]) -> usize {
        let note = self.sent.to_be_bytes();
        match room.get_mut(..note.len()) {
            Some(room) => room.copy_from_slice(&note),
            None => return 0,
        }
        note.len()
    }
}
