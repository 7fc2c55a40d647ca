//! A receiver that is slow and obvious, held against the real one.
//!
//! It keeps one flag for each number that was ever known, and answers every question by walking
//! over all of them. [`check`] plays a script of octets to both: property tests draw scripts at
//! random, and a fuzz target looks for worse ones.

use super::{Accept, Receiver, ReceiverConfig};
use crate::seq::Seq24;
use crate::wire::{Endpoints, Poll, Profile, Run, Segment};
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::ops::Range;
use units::{Instant, Span};

/// Plays `script` to both receivers.
///
/// # Panics
/// When they differ.
pub(crate) fn check(script: &[u8]) {
    let Some((setting, steps)) = script.split_at_checked(4) else { return };
    let mut bench = Bench::new(setting);
    for step in steps.chunks_exact(3) {
        bench.step(step[0], step[1], step[2]);
        bench.compare();
    }
}

/// The obvious receiver. Numbers count from the first one of the connection.
struct Model {
    /// For each number below VR(H), whether it is here.
    here: Vec<bool>,
    /// For each number below VR(H), whether a USTAT is to tell of it if it is missing then.
    ripe: Vec<bool>,
    growing: Option<(Range<usize>, u32)>,
    due: Option<Instant>,
    edge: usize,
    window: usize,
    threshold: u32,
    hold: Span,
}

impl Model {
    fn next(&self) -> usize {
        self.here.iter().position(|here| !here).unwrap_or(self.here.len())
    }

    fn extend_to(&mut self, end: usize) {
        let len = self.here.len().max(end);
        self.here.resize(len, false);
        self.ripe.resize(len, false);
    }

    fn on_data(&mut self, now: Instant, number: usize) -> Accept {
        if number >= self.edge {
            return Accept::BeyondWindow;
        }
        let highest = self.here.len();
        if number < highest && self.here[number] {
            return Accept::Duplicate;
        }
        self.extend_to(number + 1);
        self.here[number] = true;
        if number > highest {
            self.ripen(now);
            self.growing = Some((highest..number, 0));
        }
        if let Some((gap, later)) = &mut self.growing {
            if self.here[gap.clone()].iter().all(|&here| here) {
                self.growing = None;
            } else if number >= gap.end {
                *later += 1;
                if *later >= self.threshold {
                    self.ripen(now);
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
        self.ripe[..sent_below].fill(false);
        if !self.ripe.contains(&true) {
            self.due = None;
        }
        if let Some((gap, _)) = &mut self.growing {
            gap.start = gap.start.max(sent_below);
            if gap.start >= gap.end {
                self.growing = None;
            }
        }
    }

    fn ripen(&mut self, now: Instant) {
        if let Some((gap, _)) = self.growing.take() {
            self.ripe[gap].fill(true);
            self.due = self.due.or(Some(now + self.hold));
        }
    }

    /// What a USTAT should tell now, number by number.
    fn to_tell(&self) -> Vec<usize> {
        (0..self.here.len()).filter(|&n| self.ripe[n] && !self.here[n]).collect()
    }
}

/// Both receivers, and the peer that the script plays.
struct Bench {
    real: Receiver,
    model: Model,
    /// How the peer reads, and how this end writes.
    read: Profile,
    write: Profile,
    first: Seq24,
    now: Instant,
    /// The count of the last POLL, or where counts start.
    polls: u32,
    polled: bool,
}

impl Bench {
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
            here: vec![],
            ripe: vec![],
            growing: None,
            due: None,
            edge: window,
            window,
            threshold,
            hold,
        };
        let (now, real) = (Instant::ZERO, Receiver::new(&config));
        Self { real, model, read, write, first, now, polls: u32::MAX - 3, polled: false }
    }

    fn step(&mut self, kind: u8, a: u8, b: u8) {
        let (near, far) = (usize::from(a), usize::from(a) << 8 | usize::from(b));
        let (next, highest) = (self.model.next(), self.model.here.len());
        match kind % 14 {
            0..4 => self.data(next + near % 40),
            4..6 => self.data(highest + near % 4),
            6 => self.data(next.saturating_sub(near % 20)),
            7 => self.data((self.model.edge + near % 5).saturating_sub(2)),
            8 => self.data(next + far),
            9 => self.poll(highest + near % 5, 1 + u32::from(b % 3)),
            10 => self.poll(next + far, u32::from(b)),
            11 => self.tell_all(64 + near),
            12 => self.tell_gaps(64 + near),
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
        let count = self.polls.wrapping_add(step);
        let poll = Poll { seq: count, next: self.number(sent_below) };
        let newer = self.real.on_poll(self.now, 77, poll);
        assert_eq!(newer, step != 0 || !self.polled, "the first one is newer than none");
        if newer {
            (self.polls, self.polled) = (count, true);
            self.model.on_poll(sent_below);
        }
    }

    /// Takes all parts of a STAT, and compares what they add up to.
    fn tell_all(&mut self, room: usize) {
        if !self.real.stat_due() {
            return;
        }
        let (next, highest) = (self.model.next(), self.model.here.len());
        let mut told = vec![None; highest];
        let (read, write, first) = (self.read, self.write, self.first);
        let mut parts = 0;
        while let Some(stat) = self.real.take_stat(&write, room) {
            parts += 1;
            let mut out = [0; 1024];
            let len = Segment::stat(first, stat).encode(&write, &mut out).unwrap();
            assert!(len <= room + 16, "{len} octets in {room}");
            let seen = Segment::decode(&read, &out[..len]).unwrap().stat_part().unwrap();
            assert_eq!(seen.echo.seq, self.polls);
            assert_eq!(seen.received_below, first.add(next as u32));
            self.model.edge = self.model.edge.max(next + self.model.window);
            assert_eq!(seen.window as usize, self.model.edge - next);
            for run in seen.runs() {
                let start = run.start.distance(first) as usize;
                told[start..start + run.len as usize].fill(Some(!run.missing));
            }
        }
        assert!(parts > 0 && !self.real.stat_due());
        let here = self.model.here[next..].iter().map(|&here| Some(here));
        assert!(here.eq(told[next..].iter().copied()), "{told:?}");
    }

    /// Takes one USTAT, and compares its gaps.
    fn tell_gaps(&mut self, room: usize) {
        let expected = self.model.to_tell();
        let due = self.model.due.is_some_and(|due| due <= self.now);
        let (read, write, first) = (self.read, self.write, self.first);
        let Some(ustat) = self.real.take_ustat(self.now, &write, room) else {
            assert!(!due || expected.is_empty());
            if due {
                self.model.ripe.fill(false);
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
        let told: Vec<usize> = seen.gaps().flat_map(numbers).collect();
        assert!(!told.is_empty() && expected.starts_with(&told), "{told:?} of {expected:?}");
        match expected.get(told.len()) {
            Some(&rest) => self.model.ripe[..rest].fill(false),
            None => {
                self.model.ripe.fill(false);
                self.model.due = None;
            }
        }
    }

    fn compare(&self) {
        let next = self.model.next();
        assert_eq!(self.real.received_below(), self.number(next));
        assert_eq!(self.real.highest(), self.number(self.model.here.len()));
        assert_eq!(self.real.is_complete(), next == self.model.here.len());
        assert_eq!(self.real.poll_timeout(), self.model.due);
        let here = self.model.here.iter().filter(|&&here| here).count();
        assert_eq!(self.real.statistics().packets, here as u64);
    }
}
