//! Reference model of the receiver.
//!
//! It stores a flag for each packet that is known to have been sent, and iterates over all of them.
//! [`check`] runs a script of octets on both: property tests and a fuzz target provide the scripts.

use super::{Accept, Receiver, ReceiverConfig};
use crate::seq::Seq24;
use crate::wire::{Endpoints, Poll, Profile, Run, Segment};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::ops::Range;
use units::{Instant, Span};

/// Runs `script` on both receivers.
///
/// # Panics
/// When they differ.
pub(crate) fn check(script: &[u8]) {
    let Some((setting, steps)) = script.split_at_checked(4) else { return };
    let mut comparison = Comparison::new(setting);
    for step in steps.chunks_exact(3) {
        comparison.step(step[0], step[1], step[2]);
        comparison.compare();
    }
}

/// The model. Packets are numbered from the first one of the connection, without wrap.
struct Model {
    /// Whether each packet below VR(H) was received.
    received: Vec<bool>,
    /// Whether the next USTAT reports each packet below VR(H), if it is still missing.
    pending: Vec<bool>,
    suspected: Option<(Range<usize>, u32)>,
    due: Option<Instant>,
    edge: usize,
    window: usize,
    threshold: u32,
    hold: Span,
}

impl Model {
    fn next(&self) -> usize {
        self.received.iter().position(|received| !received).unwrap_or(self.received.len())
    }

    fn extend_to(&mut self, end: usize) {
        let len = self.received.len().max(end);
        self.received.resize(len, false);
        self.pending.resize(len, false);
    }

    fn on_data(&mut self, now: Instant, number: usize) -> Accept {
        if number >= self.edge {
            return Accept::BeyondWindow;
        }
        let highest = self.received.len();
        if number < highest && self.received[number] {
            return Accept::Duplicate;
        }
        self.extend_to(number + 1);
        self.received[number] = true;
        if number > highest {
            self.promote(now);
            self.suspected = Some((highest..number, 0));
        }
        if let Some((gap, later)) = &mut self.suspected {
            if self.received[gap.clone()].iter().all(|&received| received) {
                self.suspected = None;
            } else if number >= gap.end {
                *later += 1;
                if *later >= self.threshold {
                    self.promote(now);
                }
            }
        }
        Accept::New
    }

    fn on_poll(&mut self, sent_below: usize) {
        let sent_below = sent_below.min(self.edge);
        self.extend_to(sent_below);
        if self.hold == Span::ZERO {
            return;
        }
        self.pending[..sent_below].fill(false);
        if !self.pending.contains(&true) {
            self.due = None;
        }
        if let Some((gap, _)) = &mut self.suspected {
            gap.start = gap.start.max(sent_below);
            if gap.start >= gap.end {
                self.suspected = None;
            }
        }
    }

    fn promote(&mut self, now: Instant) {
        if let Some((gap, _)) = self.suspected.take() {
            self.pending[gap].fill(true);
            self.due = self.due.or(Some(now + self.hold));
        }
    }

    /// Packets that a USTAT reports now.
    fn reportable(&self) -> Vec<usize> {
        (0..self.received.len()).filter(|&n| self.pending[n] && !self.received[n]).collect()
    }
}

/// Receiver and model, and the peer that the script controls.
struct Comparison {
    real: Receiver,
    model: Model,
    /// Profile with which the peer decodes, and the one with which this side encodes.
    read: Profile,
    write: Profile,
    first: Seq24,
    now: Instant,
    /// Sequence number of the last POLL.
    poll_seq: u32,
    has_polled: bool,
}

impl Comparison {
    fn new(setting: &[u8]) -> Self {
        let end = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let published = |local, remote| {
            Profile::Published(Endpoints { local: end(local), remote: end(remote) })
        };
        let (read, write) = if setting[0] & 1 == 0 {
            (Profile::Sealed, Profile::Sealed)
        } else {
            (published(1, 2), published(2, 1))
        };
        let hold = Span::from_millis(if setting[0] & 2 == 0 { 0 } else { 20 });
        let first = Seq24::new(Seq24::MODULUS - u32::from(setting[1]));
        let window = u32::from(setting[2]) + 1;
        let threshold = u32::from(setting[3] % 6);
        let config = ReceiverConfig { first, window, ustat_threshold: threshold, ustat_hold: hold };
        let window = window as usize;
        let model = Model {
            received: vec![],
            pending: vec![],
            suspected: None,
            due: None,
            edge: window,
            window,
            threshold,
            hold,
        };
        let (now, real) = (Instant::ZERO, Receiver::new(&config));
        Self { real, model, read, write, first, now, poll_seq: u32::MAX - 3, has_polled: false }
    }

    fn step(&mut self, kind: u8, a: u8, b: u8) {
        let (near, far) = (usize::from(a), usize::from(a) << 8 | usize::from(b));
        let (next, highest) = (self.model.next(), self.model.received.len());
        match kind % 14 {
            0..4 => self.data(next + near % 40),
            4..6 => self.data(highest + near % 4),
            6 => self.data(next.saturating_sub(near % 20)),
            7 => self.data((self.model.edge + near % 5).saturating_sub(2)),
            8 => self.data(next + far),
            9 => self.poll(highest + near % 5, 1 + u32::from(b % 3)),
            10 => self.poll(next + far, u32::from(b)),
            11 => self.take_stats(64 + near),
            12 => self.take_ustat(64 + near),
            _ => {
                self.now += Span::from_millis(u64::from(b % 16));
                self.real.set_window(u32::from(a));
                self.model.window = near;
            }
        }
    }

    fn number(&self, count: usize) -> Seq24 {
        self.first.add(count as u32)
    }

    fn data(&mut self, count: usize) {
        let real = self.real.on_data(self.now, self.number(count));
        assert_eq!(real, self.model.on_data(self.now, count), "number {count}");
    }

    fn poll(&mut self, sent_below: usize, step: u32) {
        let seq = self.poll_seq.wrapping_add(step);
        let poll = Poll { seq, next: self.number(sent_below) };
        let newer = self.real.on_poll(self.now, 77, poll);
        assert_eq!(newer, step != 0 || !self.has_polled, "the first one is newer");
        if newer {
            (self.poll_seq, self.has_polled) = (seq, true);
            self.model.on_poll(sent_below);
        }
    }

    /// Takes all STATs of a list, and compares their union.
    fn take_stats(&mut self, room: usize) {
        if !self.real.stat_due() {
            return;
        }
        let (next, highest) = (self.model.next(), self.model.received.len());
        let mut reported = vec![None; highest];
        let (read, write, first) = (self.read, self.write, self.first);
        let mut parts = 0;
        while let Some(stat) = self.real.take_stat(&write, room) {
            parts += 1;
            let mut out = [0; 1024];
            let len = Segment::stat(first, stat).encode(&write, &mut out).unwrap();
            assert!(len <= room + 16, "{len} octets in {room}");
            let seen = Segment::decode(&read, &out[..len]).unwrap().stat_part().unwrap();
            assert_eq!(seen.echo.seq, self.poll_seq);
            assert_eq!(seen.received_below, first.add(next as u32));
            self.model.edge = self.model.edge.max(next + self.model.window);
            assert_eq!(seen.window as usize, self.model.edge - next);
            for run in seen.runs() {
                let start = run.start.distance(first) as usize;
                reported[start..start + run.len as usize].fill(Some(!run.missing));
            }
        }
        assert!(parts > 0 && !self.real.stat_due());
        let received = self.model.received[next..].iter().map(|&received| Some(received));
        assert!(received.eq(reported[next..].iter().copied()), "{reported:?}");
    }

    /// Takes one USTAT, and compares its gaps.
    fn take_ustat(&mut self, room: usize) {
        let expected = self.model.reportable();
        let due = self.model.due.is_some_and(|due| due <= self.now);
        let (read, write, first) = (self.read, self.write, self.first);
        let Some(ustat) = self.real.take_ustat(self.now, &write, room) else {
            assert!(!due || expected.is_empty());
            if due {
                self.model.pending.fill(false);
                self.model.due = None;
            }
            return;
        };
        assert!(due);
        let mut out = [0; 1024];
        let len = Segment::ustat(first, ustat).encode(&write, &mut out).unwrap();
        assert!(len <= room + 16, "{len} octets in {room}");
        let seen = Segment::decode(&read, &out[..len]).unwrap().ustat_part().unwrap();
        let numbers = |run: Run| {
            let start = run.start.distance(first) as usize;
            start..start + run.len as usize
        };
        let reported: Vec<usize> = seen.gaps().flat_map(numbers).collect();
        assert!(
            !reported.is_empty() && expected.starts_with(&reported),
            "{reported:?} of {expected:?}"
        );
        match expected.get(reported.len()) {
            Some(&rest) => self.model.pending[..rest].fill(false),
            None => {
                self.model.pending.fill(false);
                self.model.due = None;
            }
        }
    }

    fn compare(&self) {
        let next = self.model.next();
        assert_eq!(self.real.received_below(), self.number(next));
        assert_eq!(self.real.highest(), self.number(self.model.received.len()));
        assert_eq!(self.real.is_complete(), next == self.model.received.len());
        assert_eq!(self.real.poll_timeout(), self.model.due);
        let received = self.model.received.iter().filter(|&&received| received).count();
        assert_eq!(self.real.statistics().packets, received as u64);
    }
}
