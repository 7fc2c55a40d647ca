//! Tests of the rate cap on a fluid model of a link with a queue, loss and delay.

use super::super::Fixed;
use super::*;
use crate::congestion::controller::CongestionController;
use std::vec::Vec;

const CONFIGURED: BitRate = BitRate::from_mbps(12);
const MBPS: f64 = 1e6;
const ROUND_TRIP: Span = Span::from_millis(600);
const STEP: Span = Span::from_millis(10);

/// State of the link at a point in time.
#[derive(Clone, Copy)]
struct Link {
    bps: f64,
    loss: f64,
    /// One-way propagation delay of the forward path, seconds.
    delay: f64,
    /// Capacity of the queue, seconds.
    room: f64,
}

const GOOD: Link = Link { bps: 10.0 * MBPS, loss: 0.0, delay: 0.3, room: 5.0 };

/// Result of a run.
struct Run {
    rate_cap: RateCap,
    now: Instant,
    /// Queuing delay in seconds, and send rate in Mbit/s, every 10 ms.
    queue: Vec<f64>,
    paced: Vec<f64>,
}

/// Sends at the configured rate or the rate cap for `seconds`.
fn run(seconds: u64, configured: BitRate, link: impl Fn(f64) -> Link) -> Run {
    let mut rate_cap = RateCap::new();
    let (mut queue, mut sent, mut arrived) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut seen =
        Run { rate_cap: RateCap::new(), now: Instant::ZERO, queue: Vec::new(), paced: Vec::new() };
    // STATs in flight.
    let mut stats: VecDeque<PollAnswered> = VecDeque::new();
    // The clocks differ, and one wraps within the run.
    let (own_clock, peer_clock) = (u64::from(u32::MAX) - 7_000_000, 77_000_000_u64);
    let mut seq = 0;
    for step in 0..seconds * 100 {
        let now = Instant::ZERO + STEP * step;
        let link = link(now.as_secs_f64());
        let pace = rate_cap.apply(now, configured).as_bps() as f64;
        let bits = pace * 0.01;
        sent += bits / 8.0;
        let before = queue;
        queue = (queue + bits / link.bps - 0.01).max(0.0);
        let dropped = (queue - link.room).max(0.0);
        queue -= dropped;
        let passed = bits / link.bps - dropped;
        arrived += passed * link.bps / 8.0 * (1.0 - link.loss);
        if step % 20 == 0 {
            seq += 1;
            rate_cap.on_poll(&PollSent { now, seq, octets: sent as u64 });
            let at = now + Span::from_secs_f64(link.delay + before);
            let answered = PollAnswered {
                now: at + Span::from_millis(300),
                seq,
                timestamp: (own_clock + now.as_nanos() / 1_000) as u32,
                arrived_at: (peer_clock + at.as_nanos() / 1_000) as u32,
                arrived: arrived as u64 as u32,
                min_rtt: ROUND_TRIP,
            };
            stats.push_back(answered);
        }
        while stats.front().is_some_and(|answered| answered.now <= now) {
            let answered = stats.pop_front().unwrap();
            rate_cap.on_poll_answered(&PollAnswered { now, ..answered }, configured);
        }
        seen.queue.push(queue);
        seen.paced.push(pace / MBPS);
        seen.now = now;
    }
    seen.rate_cap = rate_cap;
    seen
}

impl Run {
    /// Mean send rate from `from` to `to`, in seconds.
    fn paced(&self, from: usize, to: usize) -> f64 {
        let part = &self.paced[from * 100..to * 100];
        part.iter().sum::<f64>() / part.len() as f64
    }

    fn longest_queue(&self, from: usize, to: usize) -> f64 {
        self.queue[from * 100..to * 100].iter().copied().fold(0.0, f64::max)
    }

    fn rate(&self) -> BitRate {
        self.rate_cap.apply(self.now, CONFIGURED)
    }
}

/// XSTP-9.3.1
#[test]
fn an_over_configured_rate_is_capped() {
    for (loss, room) in [(0.0, 5.0), (0.113, 5.0), (0.0, 0.6)] {
        let seen = run(60, CONFIGURED, |_| Link { loss, room, ..GOOD });
        assert!(seen.longest_queue(0, 60) < 0.6, "{loss} {room}: {}", seen.longest_queue(0, 60));
        assert!(seen.longest_queue(15, 60) < 0.35, "{loss}: {}", seen.longest_queue(15, 60));
        let paced = seen.paced(10, 60);
        assert!((9.7..10.1).contains(&paced), "{loss} {room}: {paced}");
    }
}

/// XSTP-9.3.2
#[test]
fn loss_alone_sets_no_rate_cap() {
    let seen = run(60, CONFIGURED, |_| Link { bps: 12.1 * MBPS, loss: 0.113, ..GOOD });
    assert_eq!(seen.rate(), CONFIGURED);
    assert!(seen.paced(0, 60) > 11.99);
}

/// XSTP-9.3.3
#[test]
fn a_longer_path_delay_is_no_queue() {
    let seen = run(90, CONFIGURED, |at| Link {
        bps: 12.1 * MBPS,
        loss: 0.113,
        delay: if at < 30.0 { 0.3 } else { 0.6 },
        ..GOOD
    });
    assert_eq!(seen.rate(), CONFIGURED);
    assert!(seen.paced(30, 90) > 11.7, "{}", seen.paced(30, 90));
    assert!(seen.paced(45, 90) > 11.99, "{}", seen.paced(45, 90));
}

/// XSTP-9.3.4
#[test]
fn a_rate_cap_is_raised_with_the_link_rate() {
    let seen =
        run(120, CONFIGURED, |at| Link { bps: if at < 30.0 { 8.0 } else { 12.1 } * MBPS, ..GOOD });
    assert!(seen.paced(20, 30) < 8.2, "{}", seen.paced(20, 30));
    assert_eq!(seen.rate(), CONFIGURED);
    assert!(seen.paced(70, 120) > 11.9, "{}", seen.paced(70, 120));
}

/// XSTP-9.3.5
#[test]
fn an_app_limited_sender_is_not_capped() {
    // A standing queue of other senders; the send rate is far below the configured rate.
    let mut rate_cap = RateCap::new();
    for seq in 0..500_u32 {
        let now = Instant::ZERO + Span::from_millis(200) * u64::from(seq);
        let queue = if seq < 20 { 0 } else { 400_000 };
        rate_cap.on_poll(&PollSent { now, seq, octets: u64::from(seq) * 2_000 });
        let answered = PollAnswered {
            now: now + ROUND_TRIP,
            min_rtt: ROUND_TRIP,
            seq,
            timestamp: seq * 200_000,
            arrived_at: seq * 200_000 + 300_000 + queue,
            arrived: seq * 1_900,
        };
        rate_cap.on_poll_answered(&answered, CONFIGURED);
        assert_eq!(rate_cap.apply(now + ROUND_TRIP, CONFIGURED), CONFIGURED);
    }
}

/// XSTP-9.3.6
#[test]
fn a_rate_cap_is_at_least_an_eighth_of_the_rate() {
    let seen = run(60, CONFIGURED, |_| Link { bps: 0.5 * MBPS, room: 2.0, ..GOOD });
    let min = seen.paced.iter().copied().fold(f64::MAX, f64::min);
    assert!((min - 1.5).abs() < 0.01, "{min}");
}

/// XSTP-9.3.7
#[test]
fn a_rate_cap_keeps_its_ratio_through_thousands_of_grants() {
    let run = run(20, CONFIGURED, |_| GOOD);
    let rate_cap = Some(run.rate_cap);
    let mut fixed = Fixed { rate: Some(CONFIGURED), min_rate: None, rate_cap };
    let paced = |fixed: &Fixed| fixed.pace(run.now).expect("a rate").as_bps();
    let before = paced(&fixed);
    let ratio = before as f64 / CONFIGURED.as_bps() as f64;
    assert!((0.7..0.9).contains(&ratio), "{ratio}");
    for grant in [8_000, 13, 2_999_999].into_iter().cycle().take(10_000) {
        fixed.apply_grant(Some(BitRate::from_bps(grant)));
        let expected = (grant as f64 * ratio) as u64;
        assert!(paced(&fixed).abs_diff(expected) <= 1, "{} of {grant}", paced(&fixed));
    }
    fixed.apply_grant(Some(CONFIGURED));
    assert_eq!(paced(&fixed), before);
}
