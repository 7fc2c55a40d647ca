//! The ceiling on a link made of arithmetic: a queue of fluid, errors and a delay.

use super::*;
use std::vec::Vec;

const TOLD: BitRate = BitRate::from_mbps(12);
const MBPS: f64 = 1e6;
const ROUND_TRIP: Span = Span::from_millis(600);
const STEP: Span = Span::from_millis(10);

/// What the link is like at some time.
#[derive(Clone, Copy)]
struct Link {
    bps: f64,
    loss: f64,
    /// One way, forward, seconds.
    delay: f64,
    /// What fits into its queue, seconds.
    room: f64,
}

const GOOD: Link = Link { bps: 10.0 * MBPS, loss: 0.0, delay: 0.3, room: 5.0 };

/// What a run came to.
struct Run {
    ceiling: Ceiling,
    now: Instant,
    /// Seconds of queue, and what was paced, megabits per second, each 10 ms.
    queue: Vec<f64>,
    paced: Vec<f64>,
}

/// Sends at whatever the ceiling allows for `seconds`, over what `link` says.
fn run(seconds: u64, told: BitRate, link: impl Fn(f64) -> Link) -> Run {
    let mut ceiling = Ceiling::new();
    let (mut queue, mut sent, mut arrived) = (0.0_f64, 0.0_f64, 0.0_f64);
    let mut seen =
        Run { ceiling: Ceiling::new(), now: Instant::ZERO, queue: Vec::new(), paced: Vec::new() };
    // Answers under way.
    let mut answers: VecDeque<PollAnswered> = VecDeque::new();
    // The clocks wrap within the run, and are not set alike.
    let (ours, theirs) = (u64::from(u32::MAX) - 7_000_000, 77_000_000_u64);
    let mut count = 0;
    for step in 0..seconds * 100 {
        let now = Instant::ZERO + STEP * step;
        let link = link(now.as_secs_f64());
        let pace = ceiling.apply(now, told).as_bps() as f64;
        let bits = pace * 0.01;
        sent += bits / 8.0;
        let before = queue;
        queue = (queue + bits / link.bps - 0.01).max(0.0);
        let dropped = (queue - link.room).max(0.0);
        queue -= dropped;
        let passed = bits / link.bps - dropped;
        arrived += passed * link.bps / 8.0 * (1.0 - link.loss);
        if step % 20 == 0 {
            count += 1;
            ceiling.on_poll(&PollSent { now, seq: count, octets: sent as u64 });
            let at = now + Span::from_secs_f64(link.delay + before);
            let answered = PollAnswered {
                now: at + Span::from_millis(300),
                seq: count,
                timestamp: (ours + now.as_nanos() / 1_000) as u32,
                arrived_at: (theirs + at.as_nanos() / 1_000) as u32,
                arrived: arrived as u64 as u32,
                min_rtt: ROUND_TRIP,
            };
            answers.push_back(answered);
        }
        while answers.front().is_some_and(|answered| answered.now <= now) {
            let answered = answers.pop_front().unwrap();
            ceiling.on_poll_answered(&PollAnswered { now, ..answered }, told);
        }
        seen.queue.push(queue);
        seen.paced.push(pace / MBPS);
        seen.now = now;
    }
    seen.ceiling = ceiling;
    seen
}

impl Run {
    /// The mean of what was paced from `from` to `to`, seconds.
    fn paced(&self, from: usize, to: usize) -> f64 {
        let part = &self.paced[from * 100..to * 100];
        part.iter().sum::<f64>() / part.len() as f64
    }

    fn longest_queue(&self, from: usize, to: usize) -> f64 {
        self.queue[from * 100..to * 100].iter().copied().fold(0.0, f64::max)
    }

    fn rate(&self) -> BitRate {
        self.ceiling.apply(self.now, TOLD)
    }
}

/// XSTP-9.3.1
#[test]
fn a_rate_that_is_too_high_comes_down_to_the_links() {
    for (loss, room) in [(0.0, 5.0), (0.113, 5.0), (0.0, 0.6)] {
        let seen = run(60, TOLD, |_| Link { loss, room, ..GOOD });
        assert!(seen.longest_queue(0, 60) < 0.6, "{loss} {room}: {}", seen.longest_queue(0, 60));
        assert!(seen.longest_queue(15, 60) < 0.35, "{loss}: {}", seen.longest_queue(15, 60));
        let paced = seen.paced(10, 60);
        assert!((9.7..10.1).contains(&paced), "{loss} {room}: {paced}");
    }
}

/// XSTP-9.3.2
#[test]
fn loss_alone_sets_no_ceiling() {
    let seen = run(60, TOLD, |_| Link { bps: 12.1 * MBPS, loss: 0.113, ..GOOD });
    assert_eq!(seen.rate(), TOLD);
    assert!(seen.paced(0, 60) > 11.99);
}

/// XSTP-9.3.3
#[test]
fn a_longer_way_is_not_a_queue_for_long() {
    let seen = run(90, TOLD, |at| Link {
        bps: 12.1 * MBPS,
        loss: 0.113,
        delay: if at < 30.0 { 0.3 } else { 0.6 },
        ..GOOD
    });
    assert_eq!(seen.rate(), TOLD);
    assert!(seen.paced(30, 90) > 11.7, "{}", seen.paced(30, 90));
    assert!(seen.paced(45, 90) > 11.99, "{}", seen.paced(45, 90));
}

/// XSTP-9.3.4
#[test]
fn a_ceiling_rises_when_the_link_does() {
    let seen = run(120, TOLD, |at| Link { bps: if at < 30.0 { 8.0 } else { 12.1 } * MBPS, ..GOOD });
    assert!(seen.paced(20, 30) < 8.2, "{}", seen.paced(20, 30));
    assert_eq!(seen.rate(), TOLD);
    assert!(seen.paced(70, 120) > 11.9, "{}", seen.paced(70, 120));
}

/// XSTP-9.3.5
#[test]
fn whoever_sends_little_is_not_slowed_by_others() {
    // Their queue stands, but we send far below our rate.
    let mut ceiling = Ceiling::new();
    for count in 0..500_u32 {
        let now = Instant::ZERO + Span::from_millis(200) * u64::from(count);
        let queue = if count < 20 { 0 } else { 400_000 };
        ceiling.on_poll(&PollSent { now, seq: count, octets: u64::from(count) * 2_000 });
        let answered = PollAnswered {
            now: now + ROUND_TRIP,
            min_rtt: ROUND_TRIP,
            seq: count,
            timestamp: count * 200_000,
            arrived_at: count * 200_000 + 300_000 + queue,
            arrived: count * 1_900,
        };
        ceiling.on_poll_answered(&answered, TOLD);
        assert_eq!(ceiling.apply(now + ROUND_TRIP, TOLD), TOLD);
    }
}

/// XSTP-9.3.6
#[test]
fn no_ceiling_is_below_an_eighth_of_the_rate() {
    let seen = run(60, TOLD, |_| Link { bps: 0.5 * MBPS, room: 2.0, ..GOOD });
    let least = seen.paced.iter().copied().fold(f64::MAX, f64::min);
    assert!((least - 1.5).abs() < 0.01, "{least}");
}

/// XSTP-9.3.7
#[test]
fn rate_cap_stays_the_same_part_of_a_grant() {
    let mut run = run(20, TOLD, |_| GOOD);
    let before = run.ceiling.apply(run.now, TOLD).as_bps() as f64 / TOLD.as_bps() as f64;
    assert!((0.7..0.9).contains(&before), "{before}");
    for (old, grant) in [(TOLD, BitRate::from_mbps(3)), (BitRate::from_mbps(3), TOLD)] {
        run.ceiling.scale(old, grant);
        let after = run.ceiling.apply(run.now, grant).as_bps() as f64 / grant.as_bps() as f64;
        assert!((after - before).abs() < 1e-3, "{after} after {before}");
    }
}
