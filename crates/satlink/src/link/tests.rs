//! The whole link, compared with computed values.

use super::*;
use crate::*;
use std::vec::Vec;
use units::{BitRate, Span};

mod properties;

/// An identifiable frame.
#[derive(Clone, Debug, PartialEq)]
struct Packet {
    id: u64,
    len: usize,
    marked: bool,
}

impl Frame for Packet {
    fn len(&self) -> usize {
        self.len
    }
    fn flow(&self) -> u64 {
        self.id % 3
    }
    fn mark(&mut self) -> bool {
        self.marked = self.id.is_multiple_of(2);
        self.marked
    }
    fn is_l4s(&self) -> bool {
        self.id.is_multiple_of(4)
    }
}

fn packet(id: u64, len: usize) -> Packet {
    Packet { id, len, marked: false }
}

fn link_of(forward: DirectionConfig) -> Link<Packet> {
    let config = LinkConfig { forward, ..LinkConfig::default() };
    Link::new(&config, 1, 0).expect("a valid link")
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// Delivers everything that is left, each at its time.
fn drain(link: &mut Link<Packet>) -> Vec<Delivery<Packet>> {
    let mut all = Vec::new();
    while let Some(at) = link.poll_timeout() {
        while let Some(delivery) = link.poll_delivery(at) {
            all.push(delivery);
        }
    }
    all
}

#[test]
fn delivery_time_is_serialization_plus_propagation() {
    let mut link = link_of(DirectionConfig {
        rate: Some(BitRate::from_mbps(10)),
        delay: Span::from_millis(300),
        framing: Framing::Ethernet,
        ..DirectionConfig::default()
    });
    for id in 0..2 {
        link.offer(Instant::ZERO, Direction::Forward, packet(id, 1500));
    }
    let seen: Vec<_> = drain(&mut link).iter().map(|delivery| delivery.at.as_nanos()).collect();
    // 1,538 bytes on air at 10 Mbit/s: 1,230.4 us each.
    assert_eq!(seen, [301_230_400, 302_460_800]);
    assert_eq!(link.counters(Direction::Forward).sent.bytes, 2 * 1538);
    assert_eq!(link.counters(Direction::Forward).delivered.bytes, 3_000);
}

#[test]
fn limit_includes_the_frame_in_service() {
    let rate = Some(BitRate::from_mbps(8));
    let with = |limit| DirectionConfig {
        rate,
        queue: QueueConfig { limit, ..QueueConfig::default() },
        ..DirectionConfig::default()
    };
    for (limit, fits) in
        [(Limit::Packets(3), 3), (Limit::Bytes(3_000), 3), (Limit::Bytes(3_999), 3)]
    {
        let mut link = link_of(with(limit));
        let queued = (0..10)
            .filter(|&id| {
                link.offer(Instant::ZERO, Direction::Forward, packet(id, 1000)) == Admission::Queued
            })
            .count();
        assert_eq!(queued, fits, "{limit:?}");
        assert_eq!(link.counters(Direction::Forward).dropped(DropCause::QueueFull).packets, 7);
        // After one has been sent there is room for another.
        let one_sent = at_ms(1);
        assert_eq!(link.offer(one_sent, Direction::Forward, packet(10, 1000)), Admission::Queued);
        assert!(link.audit());
    }
}

#[test]
fn waiting_times_match_m_d_1() {
    // Poisson arrivals at 0.7 of the rate, constant service S = 1 ms:
    // mean wait = rho S / (2 (1 - rho)) = 1.1667 ms.
    let mut link = link_of(DirectionConfig {
        rate: Some(BitRate::from_mbps(8)),
        queue: QueueConfig { limit: Limit::Packets(100_000), ..QueueConfig::default() },
        ..DirectionConfig::default()
    });
    let mut arrivals = RngStream::new(42, 0, "arrivals");
    let mut now = Instant::ZERO;
    let service = Span::from_millis(1);
    let mut batches = Vec::new();
    let (mut sum, mut count) = (0.0, 0u32);
    for id in 0..400_000 {
        now += arrivals.exponential_span(service.mul_ratio(10, 7));
        link.offer(now, Direction::Forward, packet(id, 1000));
        while let Some(delivery) = link.poll_delivery(now) {
            sum += (delivery.sent_at.since(delivery.offered_at) - service).as_secs_f64();
            count += 1;
            if count == 10_000 {
                batches.push(sum / f64::from(count));
                (sum, count) = (0.0, 0);
            }
        }
    }
    // Batch means are nearly independent: the bound is four standard errors of their mean.
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    let bound = 4.0 * (variance / n).sqrt();
    assert!(bound < 0.06e-3, "the bound is tight enough to mean something: {bound}");
    let expected = 0.7 * 1e-3 / (2.0 * 0.3);
    assert!((mean - expected).abs() < bound, "{mean} against {expected} +- {bound}");
}

#[test]
fn bit_error_loss_depends_on_packet_length() {
    let mut link = link_of(DirectionConfig { bit_error_ratio: 1e-5, ..Default::default() });
    for (len, expected) in [(1500usize, 0.113_08), (100, 0.007_968)] {
        let before = link.counters(Direction::Forward).dropped(DropCause::BitError).packets;
        let n = 100_000u32;
        for id in 0..u64::from(n) {
            link.offer(Instant::ZERO, Direction::Forward, packet(id, len));
        }
        let lost = link.counters(Direction::Forward).dropped(DropCause::BitError).packets - before;
        let share = lost as f64 / f64::from(n);
        let error = 4.0 * (expected * (1.0 - expected) / f64::from(n)).sqrt();
        assert!((share - expected).abs() < error, "{len} bytes: {share}");
    }
}

#[test]
fn jitter_stays_in_its_bounds_and_keeps_the_order() {
    let (delay, jitter) = (Span::from_millis(300), Span::from_millis(100));
    let config = |keep_order| DirectionConfig {
        delay,
        jitter: Jitter::Uniform(jitter),
        keep_order,
        ..DirectionConfig::default()
    };
    let run = |keep_order: bool, gap_ms: u64| {
        let mut link = link_of(config(keep_order));
        for id in 0..10_000 {
            link.offer(at_ms(id * gap_ms), Direction::Forward, packet(id, 100));
        }
        drain(&mut link)
    };
    for delivery in run(true, 1) {
        let took = delivery.at.since(delivery.sent_at);
        assert!(took >= delay - jitter && took <= delay + jitter, "{took}");
    }
    let ordered = run(true, 1);
    assert!(ordered.is_sorted_by_key(|delivery| delivery.frame.id));
    assert!(!run(false, 1).is_sorted_by_key(|delivery| delivery.frame.id));
    // Where packets are too far apart to be reordered, the delay is uniform: its mean has a
    // standard error of 200 / sqrt(12) / 100 = 0.58 ms; four of them.
    let apart = run(true, 201);
    let mean = apart.iter().map(|d| d.at.since(d.sent_at).as_secs_f64()).sum::<f64>() / 1e4;
    assert!((mean - 0.3).abs() < 0.0023, "{mean}");
}

#[test]
fn shorter_delay_does_not_reorder() {
    let config = |ms| LinkConfig {
        forward: DirectionConfig { delay: Span::from_millis(ms), ..Default::default() },
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config(300), 1, 0).expect("valid");
    link.offer(at_ms(0), Direction::Forward, packet(1, 100));
    link.reconfigure(at_ms(10), &config(20)).expect("valid");
    link.offer(at_ms(10), Direction::Forward, packet(2, 100));
    let seen: Vec<_> = drain(&mut link).iter().map(|d| (d.frame.id, d.at)).collect();
    assert_eq!(seen, [(1, at_ms(300)), (2, at_ms(300))]);
}

#[test]
fn every_fifth_packet_skips_the_delay_on_request() {
    // netem: `reorder 100% gap 5`.
    let mut link = link_of(DirectionConfig {
        delay: Span::from_millis(100),
        reorder: Some(Reorder { probability: 1.0, gap: 5 }),
        ..DirectionConfig::default()
    });
    for id in 1..=10 {
        link.offer(at_ms(id), Direction::Forward, packet(id, 100));
    }
    let order: Vec<_> = drain(&mut link).iter().map(|d| d.frame.id).collect();
    assert_eq!(order, [5, 10, 1, 2, 3, 4, 6, 7, 8, 9]);
    assert_eq!(link.counters(Direction::Forward).reordered, 2);
}

#[test]
fn duplicates_are_sent_and_counted() {
    let mut link = link_of(DirectionConfig { duplicate: 0.2, ..Default::default() });
    for id in 0..10_000 {
        link.offer(Instant::ZERO, Direction::Forward, packet(id, 100));
    }
    let delivered = drain(&mut link).len() as u64;
    let counters = link.counters(Direction::Forward);
    assert_eq!(delivered, 10_000 + counters.duplicated.packets);
    // Four standard errors: 4 sqrt(10,000 0.2 0.8) = 160.
    assert!(counters.duplicated.packets.abs_diff(2_000) < 160, "{counters:?}");
}

#[test]
fn outage_loses_frames_on_air_in_both_directions() {
    let direction = DirectionConfig {
        rate: Some(BitRate::from_mbps(8)),
        delay: Span::from_millis(300),
        ..DirectionConfig::default()
    };
    let mut config = LinkConfig::symmetric(direction);
    config.outages.push(Outage {
        at: Span::from_millis(20),
        length: Span::from_millis(10),
        every: None,
        direction: None,
    });
    let mut link = Link::new(&config, 1, 0).expect("valid");
    for id in 0..50 {
        for direction in Direction::BOTH {
            link.offer(at_ms(id), direction, packet(id, 1000));
        }
    }
    let lost: Vec<_> = {
        let got = drain(&mut link);
        (0..50).filter(|id| got.iter().all(|d| d.frame.id != *id)).collect()
    };
    // Packet n is on air from n to n + 1 ms, ends included.
    assert_eq!(lost, (19..30).collect::<Vec<_>>());
    for direction in Direction::BOTH {
        assert_eq!(link.counters(direction).dropped(DropCause::Outage).packets, 11);
    }
}

#[test]
fn fading_process_is_shared_by_both_directions() {
    let mut link = Link::new(
        &LinkConfig {
            shared: Some(TwoStateMarkov {
                states: [
                    MarkovState {
                        mean_stay: Span::from_secs(2),
                        drop: 0.0,
                        delays: [Span::from_millis(100), Span::from_millis(150)],
                        second_delay: 0.5,
                    },
                    MarkovState {
                        mean_stay: Span::from_secs(1),
                        drop: 1.0,
                        delays: [Span::ZERO; 2],
                        second_delay: 0.5,
                    },
                ],
            }),
            ..LinkConfig::default()
        },
        7,
        0,
    )
    .expect("valid");
    let mut seen = [Vec::new(), Vec::new()];
    for id in 0..20_000 {
        for direction in Direction::BOTH {
            link.offer(at_ms(id * 100), direction, packet(id, 100));
        }
    }
    for delivery in drain(&mut link) {
        seen[delivery.direction as usize].push((delivery.frame.id, delivery.at));
    }
    assert_eq!(seen[0], seen[1], "the same ones come through, with the same delays");
    // A third of 2,000 s is bad, in about 667 sojourns; the standard error of the fraction is about
    // 2/3 1/3 sqrt(2/667) = 1.2 %; four of it.
    let lost = 1.0 - seen[0].len() as f64 / 20_000.0;
    assert!((lost - 1.0 / 3.0).abs() < 0.05, "{lost}");
}

#[test]
fn red_marks_ecn_capable_frames_and_drops_others() {
    let red = Red {
        lower: Limit::Packets(5),
        upper: Limit::Packets(15),
        largest_probability: 0.1,
        weight: 0.1,
        mark: true,
        gentle: true,
    };
    let mut link = link_of(DirectionConfig {
        rate: Some(BitRate::from_mbps(8)),
        queue: QueueConfig { discipline: Discipline::Red(red), limit: Limit::Packets(50) },
        ..DirectionConfig::default()
    });
    // One packet per 0.98 ms on a link that takes 1 ms for it: the queue grows slowly.
    let mut now = Instant::ZERO;
    let mut got = Vec::new();
    for id in 0..20_000 {
        now += Span::from_micros(980);
        link.offer(now, Direction::Forward, packet(id, 1000));
        while let Some(delivery) = link.poll_delivery(now) {
            got.push(delivery.frame);
        }
    }
    let counters = link.counters(Direction::Forward);
    assert!(
        counters.marked > 100
            && counters.marked as usize >= got.iter().filter(|p| p.marked).count()
    );
    assert!(counters.dropped(DropCause::Early).packets > 100);
    assert_eq!(counters.dropped(DropCause::QueueFull).packets, 0);
    assert!(got.iter().all(|p| !p.marked || p.id.is_multiple_of(2)));
    assert!(counters.fullest.packets < 40, "{:?}", counters.fullest);
}

#[test]
fn a_fair_queue_shares_the_line_between_flows() {
    let mut link = link_of(DirectionConfig {
        rate: Some(BitRate::from_mbps(8)),
        queue: QueueConfig {
            discipline: Discipline::Fair { quantum: 1514 },
            limit: Limit::Bytes(60_000),
        },
        ..DirectionConfig::default()
    });
    // Flow 0 exceeds the rate; flow 1 sends 1/4 of it.
    let mut got = [0u64; 3];
    for ms in 0..10_000u64 {
        for _ in 0..3 {
            link.offer(at_ms(ms), Direction::Forward, packet(0, 1000));
        }
        if ms % 4 == 0 {
            link.offer(at_ms(ms), Direction::Forward, packet(1, 1000));
        }
        while let Some(delivery) = link.poll_delivery(at_ms(ms)) {
            got[(delivery.frame.id % 3) as usize] += 1;
        }
    }
    assert!(got[1] >= 2_490, "the modest flow loses nothing: {got:?}");
    assert!(got[0] >= 7_300, "{got:?}");
    assert!(link.audit());
}

#[test]
fn new_rate_applies_to_frames_not_yet_in_transmission() {
    let config = |rate| LinkConfig {
        forward: DirectionConfig { rate, ..DirectionConfig::default() },
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config(Some(BitRate::from_mbps(8))), 1, 0).expect("valid");
    for id in 0..4 {
        link.offer(at_ms(0), Direction::Forward, packet(id, 1000));
    }
    let half = Instant::ZERO + Span::from_micros(500);
    link.reconfigure(half, &config(Some(BitRate::from_mbps(4)))).expect("valid");
    let one_more = at_ms(4);
    let mut seen = Vec::new();
    while let Some(delivery) = link.poll_delivery(one_more) {
        seen.push(delivery.at);
    }
    assert_eq!(seen, [at_ms(1), at_ms(3)]);
    // Without a rate queued frames are sent as soon as the transmitter is free.
    link.reconfigure(one_more, &config(None)).expect("valid");
    let rest: Vec<_> = drain(&mut link).iter().map(|d| d.at).collect();
    assert_eq!(rest, [at_ms(5), at_ms(5)]);
    assert!(link.audit());
}

#[test]
fn invalid_configurations_are_rejected_with_reasons() {
    let refuse = |forward: DirectionConfig| {
        let config = LinkConfig { forward, ..LinkConfig::default() };
        Link::<Packet>::new(&config, 1, 0).expect_err("invalid")
    };
    let error = refuse(DirectionConfig { loss: 1.5, ..DirectionConfig::default() });
    assert_eq!(
        std::string::ToString::to_string(&error),
        "forward loss: found 1.5, expected a share from 0 to 1"
    );
    let with_queue = |queue| DirectionConfig { queue, ..DirectionConfig::default() };
    let error =
        refuse(with_queue(QueueConfig { limit: Limit::Packets(0), ..QueueConfig::default() }));
    assert_eq!(error, ConfigError::NoRoom { direction: Direction::Forward });
    let cells = |cell_overhead| Framing::Cells { overhead: 8, cell_size: 48, cell_overhead };
    let error = refuse(DirectionConfig { framing: cells(65_536), ..DirectionConfig::default() });
    let found = 65_536;
    assert_eq!(error, ConfigError::FramingTooLarge { direction: Direction::Forward, found });
    let red = Red {
        lower: Limit::Packets(5),
        upper: Limit::Bytes(15_000),
        largest_probability: 0.1,
        weight: 0.002,
        mark: false,
        gentle: true,
    };
    let error = refuse(with_queue(QueueConfig {
        discipline: Discipline::Red(red),
        limit: Limit::Packets(50),
    }));
    assert_eq!(error, ConfigError::RedThresholds { direction: Direction::Forward });
}
