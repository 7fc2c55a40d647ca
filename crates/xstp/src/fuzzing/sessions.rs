//! Two sessions and a network that a script commands.

use crate::seq::Seq24;
use crate::session::{NewPacket, Session, SessionConfig, State, UpperLayer};
use crate::wire::{Endpoints, Profile, Segment};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use units::{BitRate, Instant, Span};

/// Segments that the network holds in one direction; more are lost.
const MAX_HELD: usize = 64;
/// Segments that leave an end within one call, whatever has come: pacing and windows hold them.
const MAX_BURST: usize = 2_000;
/// Packets that a script sends at most, by far.
const MAX_SENT: u32 = 1 << 20;

/// Plays `script` to a client, a server and a network that loses, repeats and reorders segments,
/// and leaves what it damages recognisable; then lets the network be, and expects every packet
/// to arrive unless a session has ended.
///
/// # Panics
/// When a packet arrives twice or is not what was sent, when one is released that has not
/// arrived, when an end is busy without anything to do, or when packets do not arrive.
pub(super) fn faulty(script: &[u8]) {
    let mut world = World::new(script, false);
    world.play(script);
    world.heal();
}

/// Plays `script` to both, with a network that also changes and invents sealed segments as it
/// likes, which no association would let pass: what ends do then is not defined, but they stay
/// in one piece.
///
/// # Panics
/// When an end is busy without anything to do.
pub(super) fn hostile(script: &[u8]) {
    World::new(script, true).play(script);
}

struct World {
    now: Instant,
    hostile: bool,
    ends: [Hand; 2],
    /// Towards the server, and towards the client.
    held: [VecDeque<Vec<u8>>; 2],
}

struct Hand {
    session: Session,
    upper: Packets,
}

/// The layer above: packets whose payloads are numbers.
#[derive(Default)]
struct Packets {
    to_send: u32,
    sent: u32,
    /// Of each packet that was sent, the number it has while the session has not released it.
    kept: Vec<Option<Seq24>>,
    /// Packets released and not yet held against what the peer has.
    released_lately: Vec<u32>,
    /// Whether each packet of the peer has come, and how many have.
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
                SessionConfig::gateway(BitRate::from_kbps(100 << (setting >> 5)))
            }
        };
        let client = Session::connect(&config(1, 2), Instant::ZERO, 1);
        let server = Session::listen(&config(2, 1));
        let ends = [client, server]
            .map(|session| Hand { session, upper: Packets { hostile, ..Packets::default() } });
        Self { now: Instant::ZERO, hostile, ends, held: Default::default() }
    }

    fn play(&mut self, script: &[u8]) {
        let mut rest = script.get(1..).unwrap_or_default();
        while let Some((&[kind, a, b], after)) = rest.split_first_chunk::<3>() {
            rest = after;
            let direction = usize::from(a & 1);
            match kind % 16 {
                0..2 => {
                    let hand = &mut self.ends[direction];
                    hand.upper.to_send += u32::from(b % 32);
                    hand.session.wake();
                }
                2..6 => self.wait(u64::from(a) << (b % 5)),
                6..10 => self.arrive(direction, 0),
                10 => self.arrive(direction, usize::from(b)),
                11 => {
                    let copy = self.held[direction].front().cloned();
                    self.hold(direction, copy.unwrap_or_default());
                }
                12 => drop(self.held[direction].pop_front()),
                13 => self.damage(direction, a, b),
                14 if self.hostile => {
                    let len = usize::from(b % 48).min(rest.len());
                    self.held[direction].push_front(rest[..len].to_vec());
                    rest = &rest[len..];
                    self.arrive(direction, 0);
                }
                _ => self.command(direction, a, b),
            }
        }
    }

    /// Whatever an owner may do.
    fn command(&mut self, direction: usize, a: u8, b: u8) {
        let session = &mut self.ends[direction].session;
        match a >> 1 & 15 {
            // Rare, so that most scripts get somewhere.
            0 if b < 32 => session.end(self.now),
            1 if b < 8 => session.abort(self.now),
            0..8 => session.set_max_segment(usize::from(b) * 8),
            _ => session.set_receive_window(u32::from(b)),
        }
    }

    /// Time passes; each end speaks when it is due, or late.
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

    /// Does what a driver does after anything has happened.
    fn serve(&mut self) {
        for direction in 0..2 {
            let hand = &mut self.ends[direction];
            hand.session.handle_timeout(self.now);
            let mut out = [0; 2048];
            let mut burst = 0;
            while let Some(len) = hand.session.poll_transmit(self.now, &mut hand.upper, &mut out) {
                assert!(len > 0 && len <= hand.session.max_segment().max(128), "{len} octets");
                burst += 1;
                assert!(burst < MAX_BURST, "there is no end to it");
                if self.held[direction].len() < MAX_HELD {
                    self.held[direction].push_back(out[..len].to_vec());
                }
            }
            while hand.session.poll_event().is_some() {}
            let due = hand.session.poll_timeout();
            assert!(due.is_none_or(|due| due > self.now), "busy: {due:?} at {:?}", self.now);
        }
        if !self.hostile {
            for (from, to) in [(0, 1), (1, 0)] {
                let lately = core::mem::take(&mut self.ends[from].upper.released_lately);
                let delivered = &self.ends[to].upper.delivered;
                let has = |number: &u32| delivered.get(*number as usize) == Some(&true);
                let early = lately.into_iter().find(|number| !has(number));
                assert_eq!(early, None, "released too early");
            }
        }
    }

    fn hold(&mut self, direction: usize, segment: Vec<u8>) {
        if self.held[direction].len() < MAX_HELD {
            self.held[direction].push_back(segment);
        }
    }

    fn arrive(&mut self, direction: usize, position: usize) {
        let held = &mut self.held[direction];
        if held.is_empty() {
            return;
        }
        let Some(segment) = held.remove(position % held.len()) else { return };
        // No path is shorter.
        self.now += Span::from_millis(1);
        let hand = &mut self.ends[1 - direction];
        let _ = hand.session.handle_segment(self.now, &segment, &mut hand.upper);
        self.serve();
    }

    /// Changes one octet; one segment may be met more than once. Where nothing below finds that
    /// out, as sealed segments rely on, the segment is lost instead.
    fn damage(&mut self, direction: usize, a: u8, b: u8) {
        let guarded = matches!(self.ends[0].session.config().profile, Profile::Published(_));
        let Some(segment) = self.held[direction].front_mut() else { return };
        if !guarded && !self.hostile {
            self.held[direction].pop_front();
            return;
        }
        let len = segment.len().max(1);
        if let Some(octet) = segment.get_mut(usize::from(a >> 1) % len) {
            *octet = octet.wrapping_add(b | 1);
        }
        if self.hostile && b >= 192 {
            segment.truncate(usize::from(a >> 1));
        }
        // Changes that add up to nothing in the checksum nobody could have known of: lost too.
        let profile = self.ends[1 - direction].session.config().profile;
        if !self.hostile && Segment::decode(&profile, segment).is_ok() {
            self.held[direction].pop_front();
        }
    }

    /// From here on everything arrives, 50 ms after it was sent.
    fn heal(&mut self) {
        self.held = Default::default();
        let unheard = self.now;
        for end in &mut self.ends {
            end.session.set_receive_window(1000);
            end.session.set_max_segment(usize::MAX);
            end.session.wake();
        }
        while self.now < unheard + Span::from_secs(3600) {
            self.serve();
            if self.is_settled() {
                return;
            }
            let flying = core::mem::take(&mut self.held);
            let due = self.ends.iter().filter_map(|end| end.session.poll_timeout()).min();
            if flying.iter().all(VecDeque::is_empty) {
                let Some(due) = due else { break };
                self.now = self.now.max(due);
                continue;
            }
            self.now += Span::from_millis(50);
            for (direction, segments) in flying.into_iter().enumerate() {
                let hand = &mut self.ends[1 - direction];
                for segment in segments {
                    let _ = hand.session.handle_segment(self.now, &segment, &mut hand.upper);
                }
            }
        }
        panic!("packets did not arrive: {:?}", self.ends.each_ref().map(|end| end.session.state()));
    }

    /// Whether all is there, or one of the sessions is over.
    fn is_settled(&self) -> bool {
        let over = |end: &Hand| matches!(end.session.state(), State::Closed);
        let through = |from: usize| {
            let upper = &self.ends[from].upper;
            // What is written after an end or a reset is not sent.
            upper.sent == self.ends[1 - from].upper.arrived
                && (upper.sent == upper.to_send || !may_send(self.ends[from].session.state()))
        };
        let begun = self.ends[0].session.state() != State::Opening;
        self.ends.iter().any(over) || begun && through(0) && through(1)
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
        assert!(!self.delivered[index], "{number} came twice");
        self.delivered[index] = true;
        self.arrived += 1;
    }
}

impl UpperLayer for Packets {
    fn has_new_data(&self) -> bool {
        self.sent < self.to_send
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
        assert_eq!(self.kept.get(handle as usize), Some(&Some(number)), "not there any more");
        Self::write(handle as u32, room)
    }

    fn on_acknowledged(&mut self, number: Seq24, handle: u64) {
        let kept = self.kept.get_mut(handle as usize).and_then(Option::take);
        assert_eq!(kept, Some(number), "released twice");
        self.released_lately.push(handle as u32);
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
