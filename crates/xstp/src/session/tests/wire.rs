//! Two sessions and a scripted network, with a log of the segments at the client.

use super::*;
use alloc::format;
use alloc::string::{String, ToString};

/// Client, server and a scripted network.
pub(super) struct Wire {
    pub(super) now: Instant,
    pub(super) ends: [Peer; 2],
    /// One-way delays, each from a point in time on.
    pub(super) delays: Vec<(Instant, Span)>,
    /// Sender and time of losses.
    pub(super) lost: Vec<(usize, Instant, Instant)>,
    /// Packet of the client that is lost once.
    pub(super) only_lost: Option<Seq24>,
    in_flight: BTreeMap<(Instant, usize), (usize, Vec<u8>)>,
    log: Vec<String>,
}

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

impl Wire {
    pub(super) fn new(config: &SessionConfig) -> Self {
        let mut client = Peer::client(config);
        client.upper.push_many(10_000, 1_000);
        Self {
            now: at(0),
            ends: [client, Peer::server(config)],
            delays: alloc::vec![(at(0), Span::from_millis(100))],
            lost: Vec::new(),
            only_lost: None,
            in_flight: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, until: Instant) {
        loop {
            for from in [CLIENT, SERVER] {
                for octets in self.ends[from].send(self.now) {
                    self.enter(from, octets);
                }
            }
            let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
            let timers = self.ends.iter().filter_map(|end| end.session.poll_timeout());
            let next = timers.chain(arrival).min().filter(|&next| next < until);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.in_flight.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, octets) = entry.remove();
                if to == CLIENT {
                    self.write('<', &octets, false);
                }
                self.ends[to].receive_all(self.now, &[octets]);
            }
        }
        self.now = until;
    }

    /// Logs a segment that the client sends or receives, with the time in milliseconds.
    fn write(&mut self, arrow: char, octets: &[u8], lost: bool) {
        let profile = self.ends[CLIENT].session.config.profile;
        let what = describe(&Segment::decode(&profile, octets).unwrap());
        let note = if lost { " lost" } else { "" };
        let millis = (self.now.as_nanos() + 500_000) / 1_000_000;
        self.log.push(format!("{millis} {arrow} {what}{note}"));
    }

    fn enter(&mut self, from: usize, octets: Vec<u8>) {
        let now = self.now;
        let mut lost =
            self.lost.iter().any(|&(f, start, end)| f == from && now >= start && now < end);
        let segment = Segment::decode(&self.ends[from].session.config.profile, &octets).unwrap();
        if from == CLIENT && segment.payload().is_some() && self.only_lost == Some(segment.number())
        {
            self.only_lost = None;
            lost = true;
        }
        if from == CLIENT {
            self.write('>', &octets, lost);
        }
        if !lost {
            let delay = self.delays.iter().rev().find(|&&(from, _)| now >= from).unwrap().1;
            self.in_flight.insert((now + delay, self.in_flight.len()), (1 - from, octets));
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.ends[CLIENT].session
    }

    /// Takes the log, and returns its lines from `millis` on.
    pub(super) fn since(&mut self, millis: u64) -> Vec<String> {
        let log = core::mem::take(&mut self.log);
        let time = |line: &String| line.split(' ').next().unwrap().parse::<u64>().unwrap();
        log.into_iter().filter(|line| time(line) >= millis).collect()
    }

    /// RTTs of the probing map in milliseconds: `-` for an unanswered probe, `pre` for the empty
    /// reserved slot.
    pub(super) fn map(&self) -> Vec<String> {
        let text = |slot: Option<(u32, Option<Span>)>| match slot {
            None => "pre".to_string(),
            Some((_, None)) => "-".to_string(),
            Some((_, Some(round_trip))) => round_trip.as_millis().to_string(),
        };
        self.session().probing.map().into_iter().map(text).collect()
    }
}
