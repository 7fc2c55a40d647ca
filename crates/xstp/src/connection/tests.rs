use super::*;
use crate::congestion::Controller;
use crate::wire::{Delivery, Endpoints, Kinds, Poll, Profile, Segment};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;
use proptest::prelude::*;
use units::{BitRate, RngStream, Span};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// Configurations of a client and a server in the published profile.
fn published() -> [SessionConfig; 2] {
    let client = SocketAddr::from(([10, 0, 0, 1], 1024));
    let server = SocketAddr::from(([10, 0, 0, 2], 80));
    [(client, server), (server, client)].map(|(local, remote)| SessionConfig {
        profile: Profile::Published(Endpoints { local, remote }),
        ..SessionConfig::stp_1999()
    })
}

/// As [`published`], with the preset of XSTP.
fn xstp() -> [SessionConfig; 2] {
    published()
        .map(|config| SessionConfig { profile: config.profile, ..SessionConfig::xstp_2003() })
}

/// The sealed profile with delivery in order.
fn sealed() -> [SessionConfig; 2] {
    let config = SessionConfig {
        delivery: Delivery::InOrder,
        receive_window: 400,
        ..SessionConfig::gateway(BitRate::from_mbps(2))
    };
    [config.clone(), config]
}

struct Pair {
    ends: [Connection; 2],
    profiles: [Profile; 2],
    now: Instant,
    delay: Span,
    loss: f64,
    rng: RngStream,
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    /// Time, sender and types of every segment.
    log: Vec<(Instant, usize, Kinds)>,
    read: [Vec<u8>; 2],
    /// Whether each end reads received data.
    reads: [bool; 2],
    count: u64,
}

impl Pair {
    fn new(configs: &[SessionConfig; 2], delay: Span, loss: f64, seed: u64) -> Self {
        Self {
            ends: [Connection::connect(&configs[0], at(0), 1), Connection::listen(&configs[1])],
            profiles: [configs[0].profile, configs[1].profile],
            now: at(0),
            delay,
            loss,
            rng: RngStream::new(seed, 0, "pipe"),
            in_flight: BTreeMap::new(),
            log: Vec::new(),
            read: [Vec::new(), Vec::new()],
            reads: [true, true],
            count: 0,
        }
    }

    fn run(&mut self, until: Instant, done: impl Fn(&Self) -> bool) -> bool {
        let mut out = [0; 2000];
        loop {
            for from in 0..2 {
                self.ends[from].handle_timeout(self.now);
                while let Some(len) = self.ends[from].poll_transmit(self.now, &mut out) {
                    let to = 1 - from;
                    let segment = Segment::decode(&self.profiles[to], &out[..len]).unwrap();
                    self.log.push((self.now, from, segment.kinds()));
                    if !self.rng.chance(self.loss) {
                        self.count += 1;
                        let key = (self.now + self.delay, self.count);
                        self.in_flight.insert(key, (to, out[..len].to_vec()));
                    }
                }
                while self.reads[from] {
                    let len = self.ends[from].read(&mut out);
                    if len == 0 {
                        break;
                    }
                    self.read[from].extend(&out[..len]);
                }
                while self.ends[from].poll_event().is_some() {}
            }
            if done(self) {
                return true;
            }
            let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
            let next = self.ends.iter().filter_map(Connection::poll_timeout).chain(arrival).min();
            let Some(next) = next.filter(|&next| next <= until) else {
                self.now = until;
                return false;
            };
            self.now = self.now.max(next);
            while let Some(entry) = self.in_flight.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (to, octets) = entry.remove();
                let _ = self.ends[to].handle_segment(self.now, &octets);
            }
        }
    }

    fn sent(&self, from: usize, kinds: Kinds) -> Vec<Instant> {
        let own =
            self.log.iter().filter(|(_, sender, types)| *sender == from && types.contains(kinds));
        own.map(|&(at, _, _)| at).collect()
    }
}

fn bytes(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(31).wrapping_add((n >> 8) as u8 ^ seed)).collect()
}

/// Writes `data` on both ends as room permits, ends both directions, and waits for the close.
fn exchange(pair: &mut Pair, data: [&[u8]; 2], until: Instant) {
    let mut written = [0, 0];
    let closed = |pair: &Pair| {
        pair.ends.iter().all(|end| end.session().state() == State::Closed && end.is_finished())
    };
    while pair.now < until {
        for side in 0..2 {
            if written[side] < data[side].len() {
                written[side] += pair.ends[side].write(&data[side][written[side]..]).unwrap();
                if written[side] == data[side].len() {
                    let now = pair.now;
                    pair.ends[side].end(now);
                }
            } else if data[side].is_empty() {
                let now = pair.now;
                pair.ends[side].end(now);
            }
        }
        let next = pair.now + Span::from_millis(100);
        if pair.run(next, closed) {
            break;
        }
    }
    assert!(pair.read[1] == data[0], "{} of {}", pair.read[1].len(), data[0].len());
    assert!(pair.read[0] == data[1], "{} of {}", pair.read[0].len(), data[1].len());
    assert!(closed(pair), "{:?}", pair.ends.each_ref().map(|end| end.session().state()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// XSTP-11.1.1, XSTP-1.1.1, XSTP-1.1.2: in both profiles, with both controllers, across the wrap of
    /// sequence numbers.
    #[test]
    fn octets_are_delivered_in_order(
        seed in any::<u64>(),
        loss in 0.0..0.3_f64,
        delay in 1..300_u64,
        lengths in [0..120_000_usize, 0..40_000_usize],
        which in 0..3,
        start in prop_oneof![Just(0), Seq24::MODULUS - 30..Seq24::MODULUS],
    ) {
        let configs = match which {
            0 => sealed(),
            1 => published(),
            _ => xstp(),
        };
        let configs = configs.map(|config| SessionConfig {
            no_response: None,
            handshake_tries: 1_000,
            first_number: Seq24::new(start),
            ..config
        });
        let mut pair = Pair::new(&configs, Span::from_millis(delay), loss, seed);
        let data = [bytes(lengths[0], 1), bytes(lengths[1], 2)];
        exchange(&mut pair, [&data[0], &data[1]], at(40_000_000));
    }
}

/// XSTP-11.2.1, XSTP-10.4.3
#[test]
fn a_stopped_reader_closes_the_window() {
    let [client, server] = published();
    let configs = [client, SessionConfig { receive_window: 10, ..server }];
    let mut pair = Pair::new(&configs, Span::from_millis(50), 0.0, 1);
    pair.reads[1] = false;
    let data = bytes(100_000, 3);
    assert_eq!(pair.ends[0].write(&data), Ok(100_000));
    pair.run(at(60_000), |_| false);
    let sent = pair.ends[0].session().statistics().data_bytes_sent;
    assert!(sent <= 10 * 1461, "{sent} octets for a window of ten packets");
    assert_eq!(pair.ends[0].session().statistics().windows_closed, 1);
    let polls = pair.sent(0, Kinds::POLL).iter().filter(|&&sent| sent > at(30_000)).count();
    assert!((100..=310).contains(&polls), "{polls} in 30 s at 100 ms");
    pair.reads[1] = true;
    let complete = |pair: &Pair| pair.read[1].len() == 100_000;
    assert!(pair.run(at(90_000), complete));
    assert!(pair.read[1] == data);
}

/// XSTP-11.2.2
#[test]
fn a_full_send_buffer_accepts_nothing() {
    let [client, _] = published();
    let mut connection = Connection::connect(&client, at(0), 1);
    assert_eq!(connection.write(&bytes(300_000, 0)), Ok(240_000));
    assert_eq!(connection.room(), 0);
    assert_eq!(connection.write(b"more"), Ok(0));
    connection.end(at(0));
    assert_eq!(connection.write(b"more"), Err(WriteError::Ended));
    let mut aborted = Connection::connect(&client, at(0), 1);
    aborted.abort(at(0));
    assert_eq!(aborted.write(b"more"), Err(WriteError::Closed));
}

/// XSTP-10.3.1, XSTP-8.2.1: each burst is spread over one RTT, its last SD carries the POLL, and the
/// timer sends none.
#[test]
fn the_last_packet_of_a_burst_polls_in_small_window_mode() {
    let mut pair = Pair::new(&published(), Span::from_millis(300), 0.0, 1);
    pair.ends[0].write(&bytes(7 * 1461, 4)).unwrap();
    assert!(pair.run(at(20_000), |pair| pair.read[1].len() == 7 * 1461));
    // Slow start from one segment: bursts of 1, 2 and 4, each after the STAT for the last one. The
    // first packet is shorter because of BGN, so an eighth one carries three octets.
    let data = pair.sent(0, Kinds::SD);
    let polls = pair.sent(0, Kinds::SD.and(Kinds::POLL));
    assert_eq!(data.len(), 8);
    assert_eq!(polls, [data[0], data[2], data[6], data[7]]);
    assert_eq!(pair.sent(0, Kinds::POLL), polls, "no standalone POLL");
    assert_eq!(pair.sent(1, Kinds::STAT).len(), 4);
    assert_eq!(data[0], at(0));
    assert_eq!([data[1], data[2]], [at(600), at(900)], "two per RTT of 600 ms");
    assert_eq!(data[3], at(1_500));
    assert_eq!(data[6], at(1_500 + 450));
    assert_eq!(data[7], at(2_550));
}

/// XSTP-10.3.4
#[test]
fn the_fallback_timer_replaces_a_lost_burst_poll() {
    let mut pair = Pair::new(&published(), Span::from_millis(300), 0.0, 1);
    pair.ends[0].write(&bytes(100, 5)).unwrap();
    assert!(pair.run(at(5_000), |pair| pair.read[1].len() == 100));
    pair.run(at(5_000), |_| false);
    pair.loss = 1.0;
    pair.ends[0].write(&bytes(100, 6)).unwrap();
    pair.run(at(5_100), |_| false);
    pair.loss = 0.0;
    assert!(pair.run(at(9_000), |pair| pair.read[1].len() == 200));
    // max(SRTT, 2 ticks) and two ticks, then 1.5 RTTs for POLL, STAT and the retransmission.
    assert_eq!(pair.now, at(5_000 + 620 + 900));
}

/// XSTP-10.2.1, XSTP-10.2.2: three POLLs per RTT, piggybacked on data.
#[test]
fn large_windows_are_polled_by_the_timer() {
    let configs = published().map(|mut config| {
        config.stp.poll_after_bytes = None;
        config
    });
    let mut pair = Pair::new(&configs, Span::from_millis(300), 0.0, 1);
    let data = bytes(9_000_000, 7);
    let mut written = 0;
    while pair.now < at(20_000) && pair.read[1].len() < data.len() {
        written += pair.ends[0].write(&data[written..]).unwrap();
        let next = pair.now + Span::from_millis(50);
        pair.run(next, |_| false);
    }
    let window = pair.ends[0].session().congestion_window().unwrap();
    assert!(window > 10 * 1461, "{window}");
    let polls = pair.sent(0, Kinds::POLL).iter().filter(|&&sent| sent > at(10_000)).count();
    assert!((45..=52).contains(&polls), "{polls} in 10 s at 5 per second");
    let standalone = pair.ends[0].session().statistics().polls_sent_standalone;
    assert!(standalone * 10 < pair.ends[0].session().statistics().polls_sent, "{standalone}");
}

/// XSTP-9.2.3
#[test]
fn newreno_halves_once_per_window() {
    let configs = published().map(|config| SessionConfig { initial_window: 32, ..config });
    assert_eq!(configs[0].controller, Controller::NewReno);
    let mut pair = Pair::new(&configs, Span::from_millis(100), 0.0, 1);
    pair.ends[0].write(&bytes(32 * 1461, 8)).unwrap();
    pair.loss = 0.2;
    pair.run(at(150), |_| false);
    pair.loss = 0.0;
    assert!(pair.run(at(20_000), |pair| pair.read[1].len() == 32 * 1461));
    let lost = pair.ends[0].session().statistics().reported_missing;
    assert!(lost >= 2, "{lost}");
    let window = pair.ends[0].session().congestion_window().unwrap();
    assert!(window >= 16 * 1461, "{window} after one loss in a window of 32 segments");
}

/// XSTP-4.1.4: segments of an earlier incarnation arrive in a later one.
#[test]
fn segments_of_an_old_incarnation_are_discarded() {
    let [client, server] = published();
    let mut out = [0; 2000];
    let mut send = |connection: &mut Connection, now: Instant| -> Vec<Vec<u8>> {
        connection.handle_timeout(now);
        core::iter::from_fn(|| {
            let len = connection.poll_transmit(now, &mut out)?;
            Some(out[..len].to_vec())
        })
        .collect()
    };
    // Segments of the old incarnation are delayed.
    let config = SessionConfig { initial_window: 4, ..client };
    let mut old = Connection::connect(&config, at(0), 1);
    old.write(&bytes(3_000, 9)).unwrap();
    let late = send(&mut old, at(0));
    assert_eq!(late.len(), 3);
    // The new incarnation has the same addresses and sequence numbers.
    let mut new = Connection::connect(&config, at(10), 2);
    new.write(b"new").unwrap();
    let mut peer = Connection::listen(&server);
    for octets in send(&mut new, at(10)) {
        peer.handle_segment(at(60), &octets).unwrap();
    }
    for octets in &late {
        assert_eq!(peer.handle_segment(at(61), octets), Err(ReceiveError::OtherIncarnation));
    }
    assert_eq!(peer.session().statistics().other_incarnation, 3);
    let mut read = [0; 100];
    let len = peer.read(&mut read);
    assert_eq!(&read[..len], b"new");
    // A packet of the old server arrives before BGNAK.
    let old_reply = Segment::data(Seq24::ZERO, b"old").with_timestamp(5);
    let profile = server.profile;
    let len = old_reply.encode(&profile, &mut read).unwrap();
    assert_eq!(new.handle_segment(at(70), &read[..len]), Err(ReceiveError::OtherIncarnation));
}

/// XSTP-4.1.4: a connection may last longer than the timestamps need to wrap.
#[test]
fn timestamps_may_wrap_in_a_long_connection() {
    const DAY: u32 = 86_400_000;
    let [client, server] = published();
    let mut out = [0; 2000];
    let mut new = Connection::connect(&client, at(10), 2);
    let mut peer = Connection::listen(&server);
    let len = new.poll_transmit(at(10), &mut out).unwrap();
    peer.handle_segment(at(60), &out[..len]).unwrap();
    let mut poll = |timestamp: u32| {
        let segment = Segment::poll(timestamp, Poll { seq: timestamp, next: Seq24::ZERO });
        let len = segment.encode(&client.profile, &mut out).unwrap();
        peer.handle_segment(at(60), &out[..len])
    };
    for day in (0..100).step_by(5) {
        let timestamp = DAY.wrapping_mul(day).wrapping_add(10);
        assert_eq!(poll(timestamp), Ok(()), "day {day}");
    }
    // A timestamp 14 days back belongs to an earlier connection.
    assert_eq!(poll(DAY.wrapping_mul(81)), Err(ReceiveError::OtherIncarnation));
}

/// XSTP-11.3.1
#[test]
fn nagle_delays_partial_packets() {
    let configs = published().map(|mut config| {
        (config.stp.nagle, config.initial_window) = (true, 20);
        config
    });
    let mut pair = Pair::new(&configs, Span::from_millis(100), 0.0, 1);
    pair.run(at(1_000), |_| false);
    let sent = |pair: &Pair| pair.sent(0, Kinds::SD).into_iter().map(|sent| sent.since(at(0)));
    // The first octets are sent immediately; the others are sent in one packet when those are
    // acknowledged.
    for _ in 0..5 {
        pair.ends[0].write(b"word ").unwrap();
        let next = pair.now + Span::from_millis(10);
        pair.run(next, |_| false);
    }
    pair.run(at(2_000), |_| false);
    assert_eq!(sent(&pair).map(Span::as_millis).collect::<Vec<_>>(), [1_000, 1_200]);
    assert_eq!(pair.read[1], b"word word word word word ");
    // A full packet is not delayed, nor is the last one of the stream.
    pair.ends[0].write(&bytes(1_461 * 2 + 10, 1)).unwrap();
    pair.run(at(2_150), |_| false);
    assert_eq!(sent(&pair).count(), 4, "all but ten octets");
    pair.ends[0].end(at(2_150));
    pair.run(at(2_190), |_| false);
    assert_eq!(sent(&pair).count(), 5);
}
