//! The controller on a link made of packets and arithmetic, and its laws by themselves.

use super::cubic::{CrossTraffic, CubicCurve};
use super::estimator::{Sample, SampleInterval};
mod changes;
mod clocks;
mod narrow;

use super::*;
use crate::congestion::Controller;
use alloc::collections::VecDeque;

const DATA: u64 = 1_500;
const MBPS: u64 = 1_000_000;
const BACK: Span = Span::from_millis(300);

/// What the link is like at some time.
#[derive(Clone, Copy)]
struct Link {
    bps: u64,
    /// One packet of so many is lost; 0: none.
    lost: u64,
    /// One way, forward.
    delay: Span,
    /// What fits into its queue.
    room: Span,
}

const GOOD: Link = Link { bps: 10 * MBPS, lost: 0, delay: BACK, room: Span::from_millis(600) };

/// When, how many octets, and with which POLL, sent when.
type Arrival = (Instant, u64, Option<(u32, Instant)>);

struct Rig {
    steady: Steady,
    link: fn(Instant) -> Link,
    now: Instant,
    next_send: Instant,
    free_at: Instant,
    last_poll: Instant,
    packets: u64,
    sent: u64,
    arrived: u64,
    count: u32,
    under_way: VecDeque<Arrival>,
    answers: VecDeque<PollAnswered>,
    longest_queue: Span,
    /// This one packet is lost.
    losing: Option<u64>,
    /// The POLL with this count is seen so much later than it arrives.
    late: Option<(u32, Span)>,
    /// The way back.
    back: Span,
    /// How far apart answers are at least; POLLs between them have none.
    apart: Span,
    answered_at: Instant,
    /// What the reader's clock shows.
    clock: fn(Instant) -> Instant,
    /// When the reader and the sender have their processors, who should have them then.
    awake: [fn(Instant) -> Instant; 2],
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
            packets: 0,
            sent: 0,
            arrived: 0,
            count: 0,
            under_way: VecDeque::new(),
            answers: VecDeque::new(),
            longest_queue: Span::ZERO,
            losing: None,
            late: None,
            back: BACK,
            apart: Span::ZERO,
            answered_at: Instant::ZERO,
            clock: |at| at,
            awake: [|at| at; 2],
        }
    }

    fn auto(link: fn(Instant) -> Link) -> Self {
        Self::new(&SessionConfig::gateway_auto(), link)
    }

    fn mbps(&self) -> u64 {
        self.steady.pace(self.now).unwrap().as_bps() / MBPS
    }

    /// Runs until `millis` and says what arrived since, in kilobits per second.
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
        let usual = (self.back * 2 / 3).max(Span::from_millis(5));
        let poll_at = self.last_poll + usual.min(range.end).max(range.start);
        let may_send = self.steady.may_send() && !self.steady.is_poll_only();
        let send_at = (self.awake[1])(if may_send { self.next_send } else { poll_at });
        let arrival = self.under_way.front().map_or(end, |first| first.0);
        let answer = self.answers.front().map_or(end, |first| first.now);
        self.now = send_at.min(arrival).min(answer).min(end).max(self.now);
        while self.under_way.front().is_some_and(|first| first.0 <= self.now) {
            let (at, octets, poll) = self.under_way.pop_front().unwrap();
            self.arrived += octets;
            let free = self.answered_at == Instant::ZERO || at >= self.answered_at + self.apart;
            if let Some((count, sent_at)) = poll.filter(|_| free) {
                self.answered_at = at;
                let late = self.late.filter(|late| late.0 == count);
                let seen_at = (self.awake[0])(at) + late.map_or(Span::ZERO, |late| late.1);
                self.answers.push_back(PollAnswered {
                    now: (self.awake[0])(at) + self.back,
                    seq: count,
                    timestamp: (sent_at.as_nanos() / 1_000) as u32,
                    arrived_at: ((self.clock)(seen_at).as_nanos() / 1_000) as u32,
                    arrived: self.arrived as u32,
                    min_rtt: self.back * 2,
                });
            }
        }
        while self.answers.front().is_some_and(|first| first.now <= self.now) {
            let answered = self.answers.pop_front().unwrap();
            self.steady.on_poll_answered(&answered);
        }
        if self.now >= send_at && self.now < end {
            if may_send {
                // What a late sender catches up is bounded.
                let planned = self.next_send.max(self.now - Span::from_millis(5));
                self.next_send = planned + self.steady.pace(self.now).unwrap().time_for(DATA);
                let requested = self.steady.on_data(self.now, self.sent);
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
            self.count += 1;
            self.last_poll = self.now;
            let (now, count, octets) = (self.now, self.count, self.sent);
            self.steady.on_poll(&PollSent { now, seq: count, octets });
            (count, now)
        });
        let waits = self.free_at.since(self.now);
        self.longest_queue = self.longest_queue.max(waits);
        if waits > link.room {
            return;
        }
        self.free_at = self.free_at.max(self.now) + BitRate::from_bps(link.bps).time_for(octets);
        if self.losing == Some(self.packets) {
            return;
        }
        if link.lost > 0 && self.packets % link.lost == link.lost / 2 {
            return;
        }
        self.under_way.push_back((self.free_at + link.delay, octets, poll));
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// XSTP-14.2.1 XSTP-14.2.2 XSTP-14.2.3 XSTP-14.9.1
#[test]
fn a_train_and_half_of_what_it_shows_find_the_rate_in_two_round_trips() {
    for (link, mbps) in [
        ((|_| GOOD) as fn(Instant) -> Link, 10),
        (|_| Link { bps: 250 * MBPS, ..GOOD }, 250),
        (|_| Link { bps: MBPS, ..GOOD }, 1),
    ] {
        let mut rig = Rig::auto(link);
        rig.run(550);
        assert_eq!(
            (rig.packets > 10, rig.steady.mode(Instant::ZERO)),
            (true, "train"),
            "POLLs go on"
        );
        assert_eq!(rig.sent / DATA, 10, "ten packets until something is known");
        assert_eq!(rig.steady.confirmed_rate(), None);
        rig.run(900);
        assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
        assert!(
            rig.steady.pace(rig.now).unwrap().as_bps() <= mbps * MBPS / 2,
            "half of it at first"
        );
        rig.run(2_000);
        let found = rig.steady.pace(rig.now).unwrap().as_bps();
        assert!(found.abs_diff(mbps * MBPS) < mbps * MBPS / 10, "{found}");
        rig.run(2_600);
        assert!(rig.longest_queue < Span::from_millis(130), "{:?}", rig.longest_queue);
        rig.run(5_000);
        let learnt = rig.steady.confirmed_rate().expect("a rate").as_bps();
        assert!(learnt.abs_diff(mbps * MBPS) < mbps * MBPS / 20, "{learnt}");
    }
}

/// XSTP-14.2.4
#[test]
fn nothing_but_one_train_goes_into_a_slow_link() {
    let mut rig = Rig::auto(|_| Link { bps: 9_600, room: Span::from_secs(60), ..GOOD });
    rig.run(2_000);
    assert_eq!(rig.sent / DATA, 10);
    rig.run(60_000);
    assert!(rig.longest_queue < Span::from_secs(16), "{:?}", rig.longest_queue);
}

/// XSTP-14.2.5 XSTP-14.2.6
#[test]
fn a_remembered_rate_is_used_at_once_and_given_up_when_it_does_not_hold() {
    let config = SessionConfig {
        initial_rate: Some(BitRate::from_mbps(10)),
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config, |_| GOOD);
    assert_eq!(rig.mbps(), 10);
    assert!(rig.run(3_000) > 8_700, "all but the first flight's way");
    let mut rig = Rig::new(&config, |_| Link { bps: MBPS, ..GOOD });
    rig.run(1_400);
    assert!(rig.mbps() <= 1, "a round trip later it is known");
    rig.run(2_600);
    assert!(rig.free_at < rig.now + Span::from_millis(100), "and drained in two");
    let rate = rig.steady.pace(rig.now).unwrap().as_bps();
    assert!(rate > 900_000 && rate < 1_100_000, "{rate}");
}

/// XSTP-14.2.5
#[test]
fn next_to_nothing_that_is_remembered_is_not_believed_where_more_was_told() {
    let config = |start| SessionConfig {
        max_rate: Some(BitRate::from_mbps(10)),
        initial_rate: Some(start),
        headroom_millionths: 0,
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config(BitRate::from_kbps(10)), |_| GOOD);
    assert_eq!(rig.steady.mode(Instant::ZERO), "train");
    rig.run(2_600);
    assert!(
        rig.steady.pace(rig.now).unwrap().as_bps() > 9 * MBPS,
        "{:?}",
        rig.steady.pace(rig.now).unwrap()
    );
    let rig = Rig::new(&config(BitRate::from_kbps(700)), |_| GOOD);
    assert_eq!(rig.steady.mode(Instant::ZERO), "ramp");
}

/// XSTP-14.9.1
#[test]
fn what_a_ceiling_has_cut_is_not_worth_remembering() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(5_000);
    assert!(rig.steady.confirmed_rate().is_some());
    let most = |kbps| Some(BitRate::from_kbps(kbps));
    rig.steady.apply_grant(most(9));
    assert_eq!(
        rig.steady.confirmed_rate(),
        None,
        "that is what the peer allows, not what the way takes"
    );
    rig.steady.apply_grant(most(20_000));
    assert_eq!(rig.steady.confirmed_rate(), None);
    rig.run(60_000);
    let learnt = rig.steady.confirmed_rate().expect("a rate that was found again").as_bps();
    assert!(learnt > 9 * MBPS, "{learnt}");
}

/// XSTP-14.1.3 XSTP-14.3.5
#[test]
fn a_configured_rate_is_a_ceiling() {
    let config = SessionConfig {
        max_rate: Some(BitRate::from_mbps(12)),
        headroom_millionths: 0,
        ..SessionConfig::gateway_auto()
    };
    let mut rig = Rig::new(&config, |_| Link { bps: 50 * MBPS, ..GOOD });
    for second in 1..20 {
        rig.run(second * 1_000);
        assert_eq!(rig.mbps(), 12, "at once, and never more");
    }
    let mut rig = Rig::new(&config, |_| GOOD);
    assert!(rig.run(30_000) > 9_600);
    assert!(rig.longest_queue < Span::from_millis(550), "{:?}", rig.longest_queue);
}

/// XSTP-14.1.2 XSTP-14.4.5
#[test]
fn errors_are_no_congestion() {
    let mut rig = Rig::auto(|_| Link { lost: 5, ..GOOD });
    rig.run(6_000);
    let arrives = rig.run(36_000);
    assert!(arrives > 7_400, "{arrives} of 8000");
    assert!(rig.longest_queue < Span::from_millis(300), "{:?}", rig.longest_queue);
}

/// XSTP-14.3.1 XSTP-14.3.2 XSTP-14.4.2
#[test]
fn a_fade_is_followed_and_so_is_its_end() {
    let mut rig = Rig::auto(|now| {
        let faded = now > at(10_000) && now < at(20_000);
        Link { bps: if faded { 4 * MBPS } else { 10 * MBPS }, ..GOOD }
    });
    rig.run(13_500);
    assert!(rig.free_at < rig.now + Span::from_millis(150), "drained");
    assert!(rig.mbps() < 4);
    let arrives = rig.run(20_000);
    assert!(arrives > 3_500, "{arrives}");
    rig.run(40_000);
    let arrives = rig.run(45_000);
    assert!(arrives > 9_000, "{arrives}");
}

/// XSTP-14.3.3
#[test]
fn a_longer_way_is_no_queue() {
    let mut rig = Rig::auto(|now| {
        let step = if now > at(10_000) { 120 } else { 0 };
        Link { delay: BACK + Span::from_millis(step), ..GOOD }
    });
    rig.run(9_000);
    let before = rig.steady.base_rate_bps;
    rig.run(14_000);
    assert_eq!(rig.steady.base_rate_bps, before);
    let arrives = rig.run(30_000);
    assert!(arrives > 9_700, "{arrives}");
}

/// XSTP-14.4.1 XSTP-14.4.3
#[test]
fn probes_are_small_and_become_rare() {
    let mut rig = Rig::auto(|_| GOOD);
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
fn of_two_rates_that_meet_the_same_events_the_lower_gains() {
    let mut rates = [8 * MBPS, 2 * MBPS];
    for round in 0..40_u64 {
        let mut laws = rates.map(|rate| {
            let mut law = CubicCurve::new(CrossTraffic::DelayBased, rate);
            law.on_event(rate, BACK * 2, Span::ZERO);
            law.begin(at(round * 10_000));
            law
        });
        // Until both together are what the link takes.
        let mut now = at(round * 10_000);
        while rates_of(&mut laws, now).iter().sum::<u64>() < 10 * MBPS {
            now += Span::from_millis(10);
        }
        rates = rates_of(&mut laws, now);
    }
    assert!(rates[0] < rates[1] * 11 / 10, "{rates:?}");
}

fn rates_of(laws: &mut [CubicCurve; 2], now: Instant) -> [u64; 2] {
    laws.map(|law| law.rate(now, BACK * 2, Span::ZERO))
}

/// XSTP-14.6.1
#[test]
fn the_greedy_law_is_cubics() {
    // 500 packets in 600 ms: K = ³√(500 × 0.3 / 0.4) = 7.211 s.
    let mut law = CubicCurve::new(CrossTraffic::LossBased, 10 * MBPS);
    assert_eq!(law.on_event(10 * MBPS, BACK * 2, Span::ZERO), 7 * MBPS);
    law.begin(at(1_000));
    let rate = |millis| law.rate(at(millis), BACK * 2, Span::ZERO) / 10_000;
    assert_eq!((rate(1_000), rate(1_000 + 7_211)), (700, 1_000));
    // Five seconds past the flat: 0.4 × 125 = 50 packets more.
    assert_eq!(rate(1_000 + 12_211), 1_100);
    let slower = law.rate(at(8_211), BACK * 2, Span::from_millis(600));
    assert_eq!(slower / 10_000, 500, "a window, which a queue slows down");
    // Overtaken: the next flat is lower.
    law.on_event(8 * MBPS, BACK * 2, Span::ZERO);
    law.begin(at(0));
    assert!(law.rate(at(5_700), BACK * 2, Span::ZERO) < 7 * MBPS);
}

/// XSTP-14.6.2
#[test]
fn congestion_is_more_than_errors_and_chance_explain() {
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
    assert!(!window(4).has_congestion_loss(10_000), "one expected, three by chance");
    assert!(window(5).has_congestion_loss(10_000));
}

/// XSTP-14.7.1 XSTP-14.7.2
#[test]
fn in_a_blackout_only_polls_go_and_any_word_ends_it() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(9_000);
    let before = rig.steady.pace(rig.now).unwrap();
    rig.steady.on_outage(rig.now);
    assert!(rig.steady.is_poll_only());
    assert!(rig.steady.poll_range().end <= BACK, "twice a round trip at least");
    rig.steady.on_peer_activity(rig.now);
    assert!(!rig.steady.is_poll_only());
    assert_eq!(rig.steady.pace(rig.now).unwrap(), before, "the old rate");
}

/// XSTP-14.1.1
#[test]
fn what_the_way_takes_is_told_from_errors() {
    let sample = |millis: u64, sent, arrived_at, arrived| Sample {
        sent_at: at(millis),
        sent,
        arrived_at,
        arrived,
        delay: 0,
        rtt_us: 0,
    };
    // 1.25 MB in a second, which take two to arrive; a tenth is lost to errors behind the queue.
    let window = SampleInterval::between(
        &sample(0, 0, 0, 0),
        &sample(1_000, 1_250_000, 2_000_000, 1_125_000),
    );
    assert_eq!(window.bottleneck_bps(100_000), 5 * MBPS, "what was sent has passed");
    // A full queue: as fast as it was sent, but half of it.
    let window =
        SampleInterval::between(&sample(0, 0, 0, 0), &sample(1_000, 1_250_000, 1_000_000, 562_500));
    assert_eq!(window.bottleneck_bps(100_000), 5 * MBPS, "freed from the errors' share");
}

/// XSTP-14.3.4
#[test]
fn a_delay_that_stays_and_moves_is_somebodys_queue() {
    // From 10 s on 200 ms, and 100 more each second, whatever we do.
    let mut rig = Rig::auto(|now| {
        let since = now.since(at(10_000)).as_millis();
        let more = if now > at(10_000) { 200 + since / 10 } else { 0 };
        Link { delay: BACK + Span::from_millis(more), ..GOOD }
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
    assert!(drains >= 2, "one that does not help is repeated: {drains}");
}

/// XSTP-14.6.3
#[test]
fn a_queue_that_goes_away_twice_is_nobodys() {
    let mut rig = Rig::auto(|_| GOOD);
    rig.run(5_000);
    let steady = &mut rig.steady;
    steady.enter_competing(rig.now);
    let State::Sharing(law) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    for (gone, flat, mode) in
        [(true, false, "competing"), (false, false, "competing"), (true, false, "competing")]
    {
        let State::Sharing(law) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
        steady.after_loss_event(rig.now, law, gone, flat);
        assert_eq!(steady.mode(Instant::ZERO), mode);
    }
    let State::Sharing(last) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    steady.after_loss_event(rig.now, last, true, false);
    assert_eq!(steady.mode(Instant::ZERO), "sharing", "twice in a row");
    steady.state = State::Sharing(law);
    for _ in 0..2 {
        let State::Sharing(law) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
        steady.after_loss_event(rig.now, law, false, true);
        assert_eq!(steady.mode(Instant::ZERO), "competing");
    }
    let State::Sharing(law) = steady.state else { panic!("{}", steady.mode(Instant::ZERO)) };
    steady.state = State::Cruise;
    steady.after_loss_event(rig.now, law, false, true);
    assert_eq!(steady.mode(Instant::ZERO), "cruise", "three times it stood still: the way's own");
}
