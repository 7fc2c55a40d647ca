//! Tests of the controller on a simulated link, and of its functions.

use super::cubic::{CrossTraffic, CubicCurve};
use super::estimator::{Sample, SampleInterval};
mod changes;
mod clocks;
mod low_rates;
mod padding;

use super::*;
use crate::congestion::Controller;
use alloc::collections::VecDeque;

const DATA: u64 = 1_500;
const MBPS: u64 = 1_000_000;
const ONE_WAY: Span = Span::from_millis(300);

/// State of the link at a point in time.
#[derive(Clone, Copy)]
struct Link {
    bps: u64,
    /// One of this number of packets is lost; 0 means none.
    lost: u64,
    /// One-way propagation delay of the forward path.
    delay: Span,
    /// Capacity of the queue, as a delay.
    room: Span,
}

const USUAL: Link = Link { bps: 10 * MBPS, lost: 0, delay: ONE_WAY, room: Span::from_millis(600) };

/// Arrival time and octets of a packet, with the sequence number and transmission time of its POLL.
type Arrival = (Instant, u64, Option<(u32, Instant)>);

struct Rig {
    steady: Steady,
    link: fn(Instant) -> Link,
    now: Instant,
    next_send: Instant,
    free_at: Instant,
    last_poll: Instant,
    last_data: Instant,
    /// Time at which the last data can be acknowledged.
    acknowledged_at: Instant,
    packets: u64,
    sent: u64,
    arrived: u64,
    seq: u32,
    in_flight: VecDeque<Arrival>,
    stats: VecDeque<PollAnswered>,
    longest_queue: Span,
    /// Index of a packet that is lost.
    lost_packet: Option<u64>,
    /// Sequence number of a POLL that the receiver processes late, and the delay.
    late: Option<(u32, Span)>,
    /// One-way delay of the reverse path.
    back: Span,
    /// Transmission time of a STAT on the reverse path, and the end of the last one.
    stat_time: Span,
    back_free_at: Instant,
    /// Minimum interval between STATs; POLLs within it are not answered.
    stat_spacing: Span,
    last_stat_at: Instant,
    /// Time until which there is no data: only padding is sent.
    idle_until: Instant,
    /// Clock of the receiver.
    clock: fn(Instant) -> Instant,
    /// Time at which receiver and sender are scheduled if they are due at the argument.
    scheduled: [fn(Instant) -> Instant; 2],
}

impl Rig {
    fn new(config: &SessionConfig, link: fn(Instant) -> Link) -> Self {
        Self {
            steady: Steady::new(config),
            link,
            now: Instant::ZERO,
            next_send: Instant::ZERO,
            free_at: Instant::ZERO,
            last_poll: Instant::ZERO,
            last_data: Instant::ZERO,
            acknowledged_at: Instant::ZERO,
            packets: 0,
            sent: 0,
            arrived: 0,
            seq: 0,
            in_flight: VecDeque::new(),
            stats: VecDeque::new(),
            longest_queue: Span::ZERO,
            lost_packet: None,
            late: None,
            back: ONE_WAY,
            stat_time: Span::ZERO,
            back_free_at: Instant::ZERO,
            stat_spacing: Span::ZERO,
            last_stat_at: Instant::ZERO,
            idle_until: Instant::ZERO,
            clock: |at| at,
            scheduled: [|at| at; 2],
        }
    }

    fn auto(link: fn(Instant) -> Link) -> Self {
        Self::new(&SessionConfig::gateway_auto(), link)
    }

    fn mbps(&self) -> u64 {
        self.steady.pace(self.now).unwrap().as_bps() / MBPS
    }

    /// Runs until `millis`; returns the delivery rate in kbit/s.
    fn run(&mut self, millis: u64) -> u64 {
        let (from, before) = (self.now, self.arrived);
        let end = at(millis);
        while self.now < end {
            self.step(end);
        }
        (self.arrived - before) * 8 / end.since(from).as_millis().max(1)
    }

    fn step(&mut self, end: Instant) {
        let range = self.steady.poll_range();
        // XSTP-10.2.5
        let spacing = Span::from_millis(5);
        let usual = self.back * 2 / 3;
        let poll_at = self.last_poll + usual.min(range.end).max(spacing).max(range.start);
        let may_send = self.steady.may_send() && !self.steady.is_poll_only();
        let is_idle = self.now < self.idle_until;
        let padding = self.steady.padding().filter(|_| is_idle);
        let send_at = (self.scheduled[1])(match padding {
            Some(_) => self.now,
            None if is_idle => self.idle_until,
            None if may_send => self.next_send,
            None => poll_at,
        });
        let arrival = self.in_flight.front().map_or(end, |first| first.0);
        let answer = self.stats.front().map_or(end, |first| first.now);
        self.now = send_at.min(arrival).min(answer).min(end).max(self.now);
        while self.in_flight.front().is_some_and(|first| first.0 <= self.now) {
            let (at, octets, poll) = self.in_flight.pop_front().unwrap();
            self.arrived += octets;
            let free =
                self.last_stat_at == Instant::ZERO || at >= self.last_stat_at + self.stat_spacing;
            if let Some((seq, sent_at)) = poll.filter(|_| free) {
                self.last_stat_at = at;
                let late = self.late.filter(|late| late.0 == seq);
                let seen_at = (self.scheduled[0])(at) + late.map_or(Span::ZERO, |late| late.1);
                self.back_free_at = (self.scheduled[0])(at).max(self.back_free_at) + self.stat_time;
                self.stats.push_back(PollAnswered {
                    now: self.back_free_at + self.back,
                    seq,
                    timestamp: (sent_at.as_nanos() / 1_000) as u32,
                    arrived_at: ((self.clock)(seen_at).as_nanos() / 1_000) as u32,
                    arrived: self.arrived as u32,
                    min_rtt: self.back * 2,
                });
            }
        }
        while self.stats.front().is_some_and(|first| first.now <= self.now) {
            let answered = self.stats.pop_front().unwrap();
            self.steady.on_poll_answered(&answered);
        }
        if let Some(octets) = padding {
            let poll = self.steady.on_padding(self.now, self.sent);
            self.send(octets.min(DATA as usize - 80) as u64 + 80, poll);
        } else if self.now >= send_at && self.now < end && self.now >= self.idle_until {
            if is_idle {
                self.steady.on_restart(self.now, self.now.since(self.last_data));
                self.next_send = self.now;
            } else if may_send {
                // The burst of a late sender is bounded.
                let planned = self.next_send.max(self.now - Span::from_millis(5));
                if self.sent > 0 && self.now > self.acknowledged_at {
                    self.steady.on_restart(self.now, self.now.since(self.last_data));
                }
                self.last_data = self.now;
                let requested = self.steady.on_data(self.now, self.sent);
                self.next_send = planned + self.steady.pace(self.now).unwrap().time_for(DATA);
                let poll = requested || self.now >= poll_at;
                self.send(DATA, poll);
            } else {
                self.send(80, true);
            }
        }
    }

    fn send(&mut self, octets: u64, poll: bool) {
        let link = (self.link)(self.now);
        self.packets += 1;
        self.sent += octets;
        let poll = poll.then(|| {
            self.seq += 1;
            self.last_poll = self.now;
            let (now, seq, octets) = (self.now, self.seq, self.sent);
            self.steady.on_poll(&PollSent { now, seq, octets });
            (seq, now)
        });
        let waits = self.free_at.since(self.now);
        self.longest_queue = self.longest_queue.max(waits);
        if waits > link.room {
            return;
        }
        self.free_at = self.free_at.max(self.now) + BitRate::from_bps(link.bps).time_for(octets);
        if octets == DATA {
            self.acknowledged_at = self.free_at + link.delay + self.back;
        }
        if self.lost_packet == Some(self.packets) {
            return;
        }
        if link.lost > 0 && self.packets % link.lost == link.lost / 2 {
            return;
        }
        self.in_flight.push_back((self.free_at + link.delay, octets, poll));
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// XSTP-14.2.9
#[test]
fn a_ramp_ends_although_each_packet_is_acknowledged_before_the_next_is_due() {
    let config = SessionConfig {
        initial_rate: Some(BitRate::from_kbps(16)),
        ..SessionConfig::gateway(BitRate::from_kbps(64))
    };
    let link = |_| Link { bps: 64_000, delay: Span::from_millis(20), ..USUAL };
    let mut rig = Rig { back: Span::from_millis(20), ..Rig::new(&config, link) };
    rig.run(30_000);
    assert!(rig.run(60_000) >= 48, "{}", rig.steady.mode(Instant::ZERO));
}

/// XSTP-14.2.1 XSTP-14.2.2 XSTP-14.2.3 XSTP-14.9.1
#[test]
fn train_and_ramp_find_the_rate_in_two_rtts() {
    for (link, mbps) in [
        ((|_| USUAL) as fn(Instant) -> Link, 10),
        (|_| Link { bps: 250 * MBPS, ..USUAL }, 250),
        (|_| Link { bps: MBPS, ..USUAL }, 1),
    ] {
        let mut rig = Rig::auto(link);
        rig.run(550);
        assert_eq!(
            (rig.packets > 10, rig.steady.mode(Instant::ZERO)),
            (true, "train"),
            "POLLs continue"
        );
        assert_eq!(rig.sent / DATA, 10, "ten packets before the first STAT");
        assert_eq!(rig.steady.confirmed_rate(), None);
        rig.run(900);
        assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
        assert!(
            rig.steady.pace(rig.now).unwrap().as_bps() <= mbps * MBPS / 2,
            "half of the estimate at first"
        );
        rig.run(2_000);
        let rate = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(rate.abs_diff(mbps * MBPS) < mbps * MBPS / 10, "{rate}");
        rig.run(2_600);
        assert!(rig.longest_queue < Span::from_millis(130), "{:?}", rig.longest_queue);
        rig.run(5_000);
        let confirmed = rig.steady.confirmed_rate().expect("a rate").as_bps();
        assert!(confirmed.abs_diff(mbps * MBPS) < mbps * MBPS / 20, "{confirmed}");
    }
}

/// XSTP-14.2.4
#[test]
fn a_low_rate_link_gets_only_one_train() {
    let mut rig = Rig::auto(|_| Link { bps: 9_600, room: Span::from_secs(60), ..USUAL });
    rig.run(2_000);
    assert_eq!(rig.sent / DATA, 10);
    rig.run(60_000);
    assert!(rig.longest_queue < Span::from_secs(16), "{:?}", rig.longest_queue);
}

/// XSTP-14.2.5 XSTP-14.2.6
#[test]
fn a_cached_rate_is_used_at_once_and_validated() {
    let config = SessionConfig {
        initial_rate: Some(BitRate::from_mbps(10)),
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config, |_| USUAL);
    assert_eq!(rig.mbps(), 10);
    assert!(rig.run(3_000) > 8_700, "all but the first one-way delay");
    let mut rig = Rig::new(&config, |_| Link { bps: MBPS, ..USUAL });
    rig.run(1_400);
    assert!(rig.mbps() <= 1, "corrected after one RTT");
    rig.run(2_600);
    assert!(rig.free_at < rig.now + Span::from_millis(100), "the queue is drained after two RTTs");
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(rate > 900_000 && rate < 1_100_000, "{rate}");
}

/// XSTP-14.2.5
#[test]
fn a_cached_rate_far_below_the_configured_one_is_ignored() {
    let config = |start| SessionConfig {
        max_rate: Some(BitRate::from_mbps(10)),
        initial_rate: Some(start),
        headroom_millionths: 0,
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config(BitRate::from_kbps(10)), |_| USUAL);
    assert_eq!(rig.steady.mode(Instant::ZERO), "train");
    rig.run(2_600);
    assert!(
        rig.steady.pace(rig.now).unwrap().as_bps() > 9 * MBPS,
        "{:?}",
        rig.steady.pace(rig.now).unwrap()
    );
    let rig = Rig::new(&config(BitRate::from_kbps(700)), |_| USUAL);
    assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
}

/// XSTP-14.9.1
#[test]
fn a_capped_rate_is_not_confirmed() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(5_000);
    assert!(rig.steady.confirmed_rate().is_some());
    let grant = |kbps| Some(BitRate::from_kbps(kbps));
    rig.steady.apply_grant(grant(9));
    assert_eq!(rig.steady.confirmed_rate(), None, "a granted rate is no bottleneck rate");
    rig.steady.apply_grant(grant(20_000));
    assert_eq!(rig.steady.confirmed_rate(), None);
    rig.run(60_000);
    let confirmed = rig.steady.confirmed_rate().expect("a rate that is confirmed again").as_bps();
    assert!(confirmed > 9 * MBPS, "{confirmed}");
}

/// XSTP-14.1.3 XSTP-14.3.5
#[test]
fn a_configured_rate_is_a_rate_cap() {
    let config = SessionConfig {
        max_rate: Some(BitRate::from_mbps(12)),
        headroom_millionths: 0,
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config, |_| Link { bps: 50 * MBPS, ..USUAL });
    for second in 1..20 {
        rig.run(second * 1_000);
        assert_eq!(rig.mbps(), 12, "immediately, and at most");
    }
    let mut rig = Rig::new(&config, |_| USUAL);
    assert!(rig.run(30_000) > 9_600);
    assert!(rig.longest_queue < Span::from_millis(550), "{:?}", rig.longest_queue);
}

/// XSTP-14.1.2 XSTP-14.4.5
#[test]
fn corruption_is_no_congestion() {
    let mut rig = Rig::auto(|_| Link { lost: 5, ..USUAL });
    rig.run(6_000);
    let kbps = rig.run(36_000);
    assert!(kbps > 7_400, "{kbps} of 8000");
    assert!(rig.longest_queue < Span::from_millis(300), "{:?}", rig.longest_queue);
}

/// XSTP-14.3.1 XSTP-14.3.2 XSTP-14.4.2
#[test]
fn the_rate_follows_a_fade_and_its_end() {
    let mut rig = Rig::auto(|now| {
        let faded = now > at(10_000) && now < at(20_000);
        Link { bps: if faded { 4 * MBPS } else { 10 * MBPS }, ..USUAL }
    });
    rig.run(13_500);
    assert!(rig.free_at < rig.now + Span::from_millis(150), "drained");
    assert!(rig.mbps() < 4);
    let kbps = rig.run(20_000);
    assert!(kbps > 3_500, "{kbps}");
    rig.run(40_000);
    let kbps = rig.run(45_000);
    assert!(kbps > 9_000, "{kbps}");
}

/// XSTP-14.3.3
#[test]
fn a_longer_path_delay_becomes_the_base_delay() {
    let mut rig = Rig::auto(|now| {
        let step = if now > at(10_000) { 120 } else { 0 };
        Link { delay: ONE_WAY + Span::from_millis(step), ..USUAL }
    });
    rig.run(9_000);
    let before = rig.steady.base_rate_bps;
    rig.run(14_000);
    assert_eq!(rig.steady.base_rate_bps, before);
    let kbps = rig.run(30_000);
    assert!(kbps > 9_700, "{kbps}");
}

/// XSTP-14.4.1 XSTP-14.4.3
#[test]
fn probes_are_small_and_infrequent() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(30_000);
    let mut probes = 0;
    let mut was = "";
    for step in 0..300 {
        rig.run(30_000 + step * 100);
        let mode = rig.steady.mode(Instant::ZERO);
        probes += u32::from(mode == "probing" && was != "probing");
        was = mode;
    }
    assert!((2..=5).contains(&probes), "{probes} in half a minute");
    assert!(rig.longest_queue < Span::from_millis(60), "{:?}", rig.longest_queue);
}

/// XSTP-14.5.1 XSTP-14.5.2
#[test]
fn two_rates_converge_at_common_events() {
    let mut rates = [8 * MBPS, 2 * MBPS];
    for round in 0..40_u64 {
        let mut curves = rates.map(|rate| {
            let mut curve = CubicCurve::new(CrossTraffic::DelayBased, rate);
            curve.on_event(rate, ONE_WAY * 2, Span::ZERO);
            curve.begin(at(round * 10_000));
            curve
        });
        // Until their sum is the rate of the link.
        let mut now = at(round * 10_000);
        while rates_at(&mut curves, now).iter().sum::<u64>() < 10 * MBPS {
            now += Span::from_millis(10);
        }
        rates = rates_at(&mut curves, now);
    }
    assert!(rates[0] < rates[1] * 11 / 10, "{rates:?}");
}

fn rates_at(curves: &mut [CubicCurve; 2], now: Instant) -> [u64; 2] {
    curves.map(|curve| curve.rate(now, ONE_WAY * 2, Span::ZERO))
}

/// XSTP-14.5.1
#[test]
fn delay_based_growth_is_at_least_that_of_reno() {
    let rise = |rtt, millis| {
        let mut curve = CubicCurve::new(CrossTraffic::DelayBased, 100 * MBPS);
        curve.on_event(100 * MBPS, rtt, Span::ZERO);
        curve.begin(at(0));
        curve.rate(at(millis), rtt, Span::ZERO) - 90 * MBPS
    };
    // 3/19 × 12,000 bits ÷ (1 ms)² = 1,894.7 Mbit/s per second.
    assert_eq!(rise(Span::from_millis(1), 500) / MBPS, 947);
    assert_eq!(rise(Span::from_micros(100), 500) / MBPS, 947, "at least 1 ms");
    assert_eq!(rise(Span::from_millis(600), 10_000) / MBPS, 8, "8 kbit/s × t³");
}

/// XSTP-14.6.1
#[test]
fn loss_based_growth_is_that_of_cubic() {
    // 500 packets in 600 ms: K = ³√(500 × 0.3 / 0.4) = 7.211 s.
    let mut curve = CubicCurve::new(CrossTraffic::LossBased, 10 * MBPS);
    assert_eq!(curve.on_event(10 * MBPS, ONE_WAY * 2, Span::ZERO), 7 * MBPS);
    curve.begin(at(1_000));
    let rate = |millis| curve.rate(at(millis), ONE_WAY * 2, Span::ZERO) / 10_000;
    assert_eq!((rate(1_000), rate(1_000 + 7_211)), (700, 1_000));
    // Five seconds after K: 0.4 × 125 = 50 packets more.
    assert_eq!(rate(1_000 + 12_211), 1_100);
    let slower = curve.rate(at(8_211), ONE_WAY * 2, Span::from_millis(600));
    assert_eq!(slower / 10_000, 500, "a longer RTT reduces the rate of a window");
    // Fast convergence: W_max decreases.
    curve.on_event(8 * MBPS, ONE_WAY * 2, Span::ZERO);
    curve.begin(at(0));
    assert!(curve.rate(at(5_700), ONE_WAY * 2, Span::ZERO) < 7 * MBPS);
}

/// XSTP-14.6.2
#[test]
fn congestion_loss_is_significantly_above_p_err() {
    let window = |lost: u64| {
        let sample = |sent, arrived| Sample {
            sent_at: Instant::ZERO,
            sent,
            arrived_at: 0,
            arrived,
            delay: 0,
            rtt_us: 0,
        };
        SampleInterval::between(&sample(0, 0), &sample(100 * DATA, (100 - lost) * DATA))
    };
    assert!(!window(0).has_congestion_loss(0) && window(1).has_congestion_loss(0));
    assert!(!window(4).has_congestion_loss(10_000), "one expected, and three standard deviations");
    assert!(window(5).has_congestion_loss(10_000));
}

/// XSTP-14.7.1 XSTP-14.7.2
#[test]
fn only_polls_are_sent_in_a_blackout_until_any_segment_arrives() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(9_000);
    let before = rig.steady.pace(rig.now).unwrap();
    rig.steady.on_outage(rig.now);
    assert!(rig.steady.is_poll_only());
    assert!(rig.steady.poll_range().end <= ONE_WAY, "at least twice per RTT");
    rig.steady.on_peer_activity(rig.now);
    assert!(!rig.steady.is_poll_only());
    assert_eq!(rig.steady.pace(rig.now).unwrap(), before, "the rate is unchanged");
}

/// XSTP-14.1.1
#[test]
fn the_bottleneck_rate_excludes_corruption() {
    let sample = |millis: u64, sent, arrived_at, arrived| Sample {
        sent_at: at(millis),
        sent,
        arrived_at,
        arrived,
        delay: 0,
        rtt_us: 0,
    };
    // 1.25 MB are sent in 1 s and arrive in 2 s; a tenth is corrupted behind the bottleneck.
    let window = SampleInterval::between(
        &sample(0, 0, 0, 0),
        &sample(1_000, 1_250_000, 2_000_000, 1_125_000),
    );
    assert_eq!(window.bottleneck_bps(100_000), 5 * MBPS, "the service rate");
    // An overflowing queue: the interval is unchanged, and half of the octets arrive.
    let window =
        SampleInterval::between(&sample(0, 0, 0, 0), &sample(1_000, 1_250_000, 1_000_000, 562_500));
    assert_eq!(window.bottleneck_bps(100_000), 5 * MBPS, "the delivery rate without corruption");
}

/// XSTP-14.3.4
#[test]
fn a_varying_standing_queue_is_cross_traffic() {
    // From 10 s on 200 ms, and 100 ms more per second, independent of the send rate.
    let mut rig = Rig::auto(|now| {
        let since = now.since(at(10_000)).as_millis();
        let more = if now > at(10_000) { 200 + since / 10 } else { 0 };
        Link { delay: ONE_WAY + Span::from_millis(more), ..USUAL }
    });
    rig.run(10_000);
    let mut drains = 0;
    let mut was = "";
    while rig.steady.mode(Instant::ZERO) != "competing" && rig.now < at(30_000) {
        let next = rig.now.as_nanos() / 1_000_000 + 20;
        rig.run(next);
        drains += u32::from(rig.steady.mode(Instant::ZERO) == "draining" && was != "draining");
        was = rig.steady.mode(Instant::ZERO);
    }
    assert_eq!(rig.steady.mode(Instant::ZERO), "competing");
    assert!(drains >= 2, "an ineffective drain is repeated: {drains}");
}

/// XSTP-14.6.3
#[test]
fn a_queue_drained_twice_ends_competing() {
    let mut rig = Rig::auto(|_| USUAL);
    rig.run(5_000);
    let steady = &mut rig.steady;
    steady.enter_competing(rig.now);
    let State::Sharing(curve) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    for (is_drained, is_unmoved, mode) in
        [(true, false, "competing"), (false, false, "competing"), (true, false, "competing")]
    {
        let State::Sharing(curve) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
        steady.after_loss_event(rig.now, curve, is_drained, is_unmoved);
        assert_eq!(steady.mode(Instant::ZERO), mode);
    }
    let State::Sharing(last) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    steady.after_loss_event(rig.now, last, true, false);
    assert_eq!(steady.mode(Instant::ZERO), "sharing", "two consecutive events");
    steady.state = State::Sharing(curve);
    for _ in 0..2 {
        let State::Sharing(curve) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
        steady.after_loss_event(rig.now, curve, false, true);
        assert_eq!(steady.mode(Instant::ZERO), "competing");
    }
    let State::Sharing(curve) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    steady.state = State::Cruise;
    steady.after_loss_event(rig.now, curve, false, true);
    assert_eq!(
        steady.mode(Instant::ZERO),
        "cruise",
        "constant after three events: a longer path delay"
    );
}
