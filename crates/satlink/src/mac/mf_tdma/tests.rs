//! The return link, compared with computed values; and properties of all return links.

use super::*;
use crate::mac::schedule::{Contract, Free, Request};
use crate::mac::slots::SlotFormat;
use proptest::collection::vec as many;
use proptest::prelude::*;
use std::vec;
use units::BitRate;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn published(change: impl FnOnce(&mut MfTdmaConfig)) -> MfTdma<Vec<u8>> {
    let mut config = MfTdmaConfig::mhatre_rosenberg(20);
    change(&mut config);
    MfTdma::new(&config, 1, 0).expect("a valid link")
}

/// All packets that arrive until `end`.
fn drain(link: &mut MfTdma<Vec<u8>>, end: Instant) -> Vec<Arrived<Vec<u8>>> {
    let mut all = Vec::new();
    while let Some(at) = link.poll_timeout().filter(|&at| at <= end) {
        while let Some(arrived) = link.poll_arrival(at) {
            all.push(arrived);
        }
    }
    assert!(link.audit());
    all
}

/// Keeps `terminals` supplied with packets of ten cells until `end_ms`; returns what each
/// delivered.
fn saturate(link: &mut MfTdma<Vec<u8>>, terminals: &[usize], end_ms: u64) -> Vec<u64> {
    for ms in (0..end_ms).step_by(100) {
        for &terminal in terminals {
            while link.backlog(terminal) < 200 {
                let offered = link.offer(at_ms(ms), terminal, Class::Data, vec![0; 472]);
                if offered != Admission::Queued {
                    break;
                }
            }
        }
        drain(link, at_ms(ms));
    }
    terminals.iter().map(|&terminal| link.terminal(terminal).delivered.packets).collect()
}

#[test]
fn the_published_link_has_58_slots_in_a_frame() {
    let config = MfTdmaConfig::mhatre_rosenberg(20);
    assert_eq!(config.slot(), Span::from_micros(4_240));
    assert_eq!((config.positions(), config.ahead()), (58, Span::from_millis(550)));
}

/// A slot for the request, propagation, the next plan, propagation, the granted slot: three times
/// U(0, 250) and 550 ms, as computed for the paper's link (0.54 to 1.29 s without the time to
/// process a plan).
#[test]
fn capacity_request_takes_the_computed_time() {
    let mut link = published(|config| {
        config.free = Free::None;
        config.sync = Some(1);
    });
    let mut rng = RngStream::new(7, 0, "offers");
    let (mut loops, mut now) = (Vec::new(), at_ms(3_000));
    for _ in 0..2_000 {
        let terminal = rng.below(20) as usize;
        now += Span::from_micros(rng.below(250_000));
        link.offer(now, terminal, Class::Data, vec![0; 40]);
        let end = now + Span::from_secs(3);
        let arrived = drain(&mut link, end);
        assert_eq!(arrived.len(), 1);
        let sent_at = arrived[0].at - Span::from_millis(270) - Span::from_micros(4_240);
        loops.push(sent_at.since(now).as_secs_f64());
        now = end;
    }
    let (least, most) = loops.iter().fold((9.0_f64, 0.0_f64), |(l, m), &x| (l.min(x), m.max(x)));
    let mean = loops.iter().sum::<f64>() / loops.len() as f64;
    assert!((0.55..0.62).contains(&least) && (1.23..1.30).contains(&most), "{least} {most}");
    assert!((mean - 0.925).abs() < 0.015, "{mean}");
}

/// On board the loop has one hop in place of two.
#[test]
fn on_board_scheduler_halves_the_propagation_delay() {
    let mut link = published(|config| {
        (config.free, config.sync, config.site) = (Free::None, Some(1), Site::OnBoard);
    });
    let offered = at_ms(3_000);
    link.offer(offered, 0, Class::Data, vec![0; 40]);
    let arrived = drain(&mut link, at_ms(6_000));
    let took = arrived[0].at.since(offered).as_secs_f64();
    // 135 ms to the satellite, a plan, 145 ms, a slot, and 270 ms; each wait up to 250 ms.
    assert!((0.55..0.55 + 0.76).contains(&took), "{took}");
    assert_eq!(link.config.ahead(), Span::from_millis(280));
}

#[test]
fn terminal_without_slots_cannot_request_capacity() {
    let mut link = published(|config| config.free = Free::None);
    link.offer(at_ms(100), 0, Class::Data, vec![0; 40]);
    assert!(drain(&mut link, at_ms(60_000)).is_empty());
    assert_eq!((link.counters().requests, link.backlog(0)), (0, 1));
}

#[test]
fn saturated_link_uses_all_slots_equally() {
    for demand in [Demand::None, Demand::Absolute, Demand::Volume, Demand::Rate] {
        let mut link = published(|config| config.demand = demand);
        let all: Vec<usize> = (0..20).collect();
        let had = saturate(&mut link, &all, 60_000);
        let counters = *link.counters();
        assert!(counters.used * 1_000 >= counters.granted * 960, "{demand:?}: {counters:?}");
        // 58 slots four times a second, ten per packet; the first frame starts at 0.55 s.
        let sum: u64 = had.iter().sum();
        assert!((1_340..=1_380).contains(&sum), "{demand:?}: {sum}");
        let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
        assert!(most - least <= 2, "{demand:?}: {had:?}");
    }
}

#[test]
fn demand_assignment_uses_idle_capacity_and_fixed_assignment_does_not() {
    let alone = |demand| {
        let mut link = published(|config| config.demand = demand);
        saturate(&mut link, &[3], 30_000)[0]
    };
    let (fixed, asked) = (alone(Demand::None), alone(Demand::Absolute));
    // 1/20 of the link, and all of it.
    assert!((33..=35).contains(&fixed), "{fixed}");
    assert!((600..=690).contains(&asked), "{asked}");
}

#[test]
fn free_slots_are_assigned_by_weight() {
    let mut link = published(|config| {
        config.free = Free::ByWeight;
        config.demand = Demand::None;
        for terminal in &mut config.terminals[..10] {
            terminal.contract.weight = 5;
        }
    });
    let all: Vec<usize> = (0..20).collect();
    let had = saturate(&mut link, &all, 60_000);
    let sum = |range: &[u64]| range.iter().sum::<u64>() as f64;
    let ratio = sum(&had[..10]) / sum(&had[10..]);
    assert!((4.8..5.2).contains(&ratio), "{ratio}");
    link.set_weight(at_ms(60_000), 0, 500);
    let before = link.terminal(0).granted;
    drain(&mut link, at_ms(61_000));
    assert!(link.terminal(0).granted - before > 150, "a weight counts from the next plan on");
}

#[test]
fn lost_burst_loses_its_packet() {
    let mut link = published(|config| config.burst_loss = 0.02);
    let all: Vec<usize> = (0..20).collect();
    let delivered: u64 = saturate(&mut link, &all, 300_000).iter().sum();
    let counters = link.counters();
    let share = delivered as f64 / (delivered + counters.lost.packets) as f64;
    // Ten bursts per packet, about 7,000 packets: 0.817 ± 0.014 at three standard deviations.
    let expected = 0.98_f64.powi(10);
    assert!((share - expected).abs() < 0.014, "{share} for {expected}");
}

#[test]
fn lost_requests_and_plans_only_add_delay() {
    for demand in [Demand::Absolute, Demand::Volume, Demand::Rate] {
        let mut link = published(|config| {
            (config.free, config.sync, config.demand) = (Free::None, Some(1), demand);
            (config.request_loss, config.plan_loss) = (0.3, 0.2);
        });
        for packet in 0..100 {
            let offered = link.offer(at_ms(packet * 300), 5, Class::Data, vec![0; 200]);
            assert_eq!(offered, Admission::Queued);
        }
        let arrived = drain(&mut link, at_ms(90_000));
        assert_eq!(arrived.len(), 100, "{demand:?}");
        assert!(link.counters().requests_lost > 20 && link.counters().plans_missed > 10);
    }
}

#[test]
fn different_propagation_delays_are_compensated() {
    let mut link = published(|config| {
        for (place, terminal) in config.terminals.iter_mut().enumerate() {
            terminal.up = Span::from_millis(120 + place as u64);
        }
    });
    let all: Vec<usize> = (0..20).collect();
    let had = saturate(&mut link, &all, 30_000);
    assert!(had.iter().max().unwrap() - had.iter().min().unwrap() <= 2, "{had:?}");
    let counters = link.counters();
    assert_eq!((counters.collided, counters.lost), (Tally::default(), Tally::default()));
}

#[test]
fn late_burst_is_lost_with_the_next_one_beyond_the_guard_time() {
    let late = |guard_us| {
        let mut link = published(|config| {
            (config.guard, config.demand) = (Span::from_micros(guard_us), Demand::None);
            config.terminals[4].late = Span::from_micros(100);
        });
        let all: Vec<usize> = (0..20).collect();
        let had = saturate(&mut link, &all, 30_000);
        (had[4], *link.counters())
    };
    let (own, counters) = late(50);
    assert!(own == 0 && counters.late > 50, "{counters:?}");
    assert!(counters.collided.packets > 10, "those behind it: {counters:?}");
    let (own, counters) = late(100);
    assert!(own > 20 && counters.late == 0 && counters.collided.packets == 0, "{counters:?}");
}

#[test]
fn unauthorized_burst_loses_the_slot() {
    let mut link = published(|_| {});
    let all: Vec<usize> = (0..20).collect();
    saturate(&mut link, &all, 5_000);
    for step in 0..50 {
        link.intrude(at_ms(5_000 + step * 40), 7, 0);
    }
    saturate(&mut link, &all, 10_000);
    let counters = *link.counters();
    assert_eq!(counters.intruders, 50);
    assert!((35..=50).contains(&counters.collided.packets), "{counters:?}");
    link.intrude(Instant::from_nanos(1), 7, 0);
    assert!(link.noise.len() < 60, "what is over is forgotten: {}", link.noise.len());
}

#[test]
fn excessive_requests_get_no_more_than_a_fair_share() {
    let mut link = published(|_| {});
    link.set_claim(at_ms(0), 0, Claim::Always(Request::Absolute(u32::MAX)));
    let all: Vec<usize> = (0..20).collect();
    let had = saturate(&mut link, &all, 60_000);
    let mean = had.iter().sum::<u64>() / 20;
    assert!(had.iter().all(|&one| one.abs_diff(mean) <= 3), "{had:?}");
}

/// A terminal that requests all slots and has nothing to send takes one fair share from the others,
/// and its unused slots show in the counters.
#[test]
fn false_requests_cost_no_more_than_a_fair_share_and_are_visible() {
    let others: Vec<usize> = (1..20).collect();
    let mut link = published(|_| {});
    link.set_claim(at_ms(0), 0, Claim::Always(Request::Absolute(4_080)));
    // A terminal needs packets to send requests: it has one small packet per second.
    let mut had = Vec::new();
    for second in 1..=60 {
        link.offer(at_ms(second * 1_000 - 900), 0, Class::Data, vec![0; 8]);
        had = saturate(&mut link, &others, second * 1_000);
    }
    // 58 slots four times a second, of which 19/20 are the others'.
    let sum: u64 = had.iter().sum();
    assert!((1_340 * 19 / 20 - 20..1_380).contains(&sum), "{sum}");
    assert!(had.iter().max().unwrap() - had.iter().min().unwrap() <= 3, "{had:?}");
    let (greedy, honest) = (link.terminal(0), link.terminal(1));
    assert!(greedy.granted > 10 * greedy.used, "{greedy:?}");
    assert!(honest.used * 100 > honest.granted * 95, "{honest:?}");
}

#[test]
fn vanished_terminal_loses_its_slots_and_may_log_on_again() {
    let mut link = published(|config| {
        (config.sync, config.silence) = (Some(2), Some(8));
        config.terminals.truncate(2);
    });
    saturate(&mut link, &[0, 1], 10_000);
    link.vanish(at_ms(10_000), 1);
    assert!(link.counters().abandoned.packets > 0 && link.audit());
    assert!(link.scheduler().is_logged_on(1), "the hub does not know yet");
    let offered = link.offer(at_ms(10_001), 1, Class::Data, vec![0; 40]);
    assert!(matches!(offered, Admission::Dropped(..)));
    // 8 frames of silence, after the propagation delay.
    drain(&mut link, at_ms(10_000 + 270 + 2_500));
    assert!(!link.scheduler().is_logged_on(1) && link.scheduler().is_logged_on(0));
    let before = link.terminal(0).granted;
    drain(&mut link, at_ms(13_770));
    assert_eq!(link.terminal(0).granted - before, 4 * 58, "all is the other's");
    link.log_on(at_ms(14_000), 1);
    assert!(saturate(&mut link, &[1], 20_000)[0] > 0);
    link.log_off(at_ms(20_000), 0);
    drain(&mut link, at_ms(20_300));
    assert!(!link.scheduler().is_logged_on(0), "the notification ends the logon");
}

#[test]
fn damage_of_an_unfinished_packet_does_not_affect_the_next() {
    let mut link = published(|config| config.terminals.truncate(2));
    link.offer(at_ms(2_000), 1, Class::Data, vec![0; 2_000]);
    // Unauthorized bursts in all slots of an interval: part of the packet has been sent, but not
    // its end.
    for slot in 0..60 {
        link.intrude(at_ms(2_000 + 5 * slot), 0, 0);
    }
    drain(&mut link, at_ms(2_200));
    assert!(link.terminal(1).used > 0 && link.backlog(1) > 0, "it is in the middle of it");
    link.vanish(at_ms(2_200), 1);
    drain(&mut link, at_ms(4_000));
    link.log_on(at_ms(4_000), 1);
    drain(&mut link, at_ms(6_000));
    link.offer(at_ms(6_000), 1, Class::Data, vec![0; 40]);
    assert_eq!(drain(&mut link, at_ms(9_000)).len(), 1);
    assert_eq!(link.counters().collided.packets, 0);
}

#[test]
fn control_has_priority_over_data() {
    let wait = |order| {
        let mut link = published(|config| config.order = order);
        for _ in 0..20 {
            link.offer(at_ms(2_000), 0, Class::Data, vec![0; 1_000]);
        }
        link.offer(at_ms(2_500), 0, Class::Control, vec![0; 32]);
        let arrived = drain(&mut link, at_ms(60_000));
        assert_eq!(arrived.len(), 21);
        let control = arrived.iter().find(|arrived| arrived.frame.len() == 32).unwrap();
        control.at.since(at_ms(2_500)).as_secs_f64()
    };
    assert!(wait(Order::ControlFirst) < 0.45);
    assert!(wait(Order::Arrival) > 2.0);
}

#[test]
fn many_carriers_of_mpeg_packets_reach_their_capacity() {
    let mut link = published(|config| {
        (config.format, config.carriers) = (SlotFormat::Mpeg, 4);
        config.rate = BitRate::from_kbps(512);
        config.terminals[0].contract = Contract { most: 20, ..Contract::default() };
    });
    // 1,504 bits at 512 kbit/s: 85 slots in 250 ms on each carrier.
    assert_eq!(link.config.positions(), 85);
    let had = saturate(&mut link, &[0, 1, 2, 3, 4], 30_000);
    // 472 octets are three packets of 184: at most 4 · 20 and 4 · 85 per second.
    assert!((740..=790).contains(&had[0]), "{had:?}");
    assert!(had[1..].iter().all(|&one| one > 2_000), "{had:?}");
}

#[test]
fn invalid_settings_are_rejected() {
    let error = |change: fn(&mut MfTdmaConfig)| {
        let mut config = MfTdmaConfig::mhatre_rosenberg(2);
        change(&mut config);
        MfTdma::<Vec<u8>>::new(&config, 1, 0).map(drop).unwrap_err().setting
    };
    assert_eq!(error(|config| config.carriers = 0), "carriers");
    assert_eq!(error(|config| config.period = Span::from_millis(1)), "period");
    assert_eq!(error(|config| config.terminals.clear()), "terminals");
    assert_eq!(error(|config| config.sync = Some(0)), "sync");
    assert_eq!(error(|config| config.burst_loss = 1.5), "burst_loss");
    assert_eq!(error(|config| config.silence = Some(9)), "silence");
    assert_eq!(error(|config| config.queue = 0), "queue");
}

#[derive(Clone, Debug)]
enum Step {
    Offer(usize, bool, usize),
    Leave(usize, bool),
    LogOn(usize),
    Intrude(usize, u32),
    Claim(usize, u32),
    Expect(usize, u32),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let what = prop_oneof![
        6 => (0usize..4, any::<bool>(), 1usize..600).prop_map(|(k, c, n)| Step::Offer(k, c, n)),
        1 => (0usize..4, any::<bool>()).prop_map(|(k, gently)| Step::Leave(k, gently)),
        1 => (0usize..4).prop_map(Step::LogOn),
        1 => (0usize..4, 0u32..3).prop_map(|(k, carrier)| Step::Intrude(k, carrier)),
        1 => (0usize..4, any::<u32>()).prop_map(|(k, slots)| Step::Claim(k, slots)),
        1 => (0usize..4, any::<u32>()).prop_map(|(k, slots)| Step::Expect(k, slots)),
    ];
    (0u64..200, what)
}

fn apply(link: &mut MfTdma<Vec<u8>>, now: Instant, step: &Step) {
    match *step {
        Step::Offer(terminal, control, bytes) => {
            let class = if control { Class::Control } else { Class::Data };
            link.offer(now, terminal, class, vec![0; bytes]);
        }
        Step::Leave(terminal, true) => link.log_off(now, terminal),
        Step::Leave(terminal, false) => link.vanish(now, terminal),
        Step::LogOn(terminal) => link.log_on(now, terminal),
        Step::Intrude(terminal, carrier) => link.intrude(now, terminal, carrier),
        Step::Claim(terminal, slots) => {
            link.set_claim(now, terminal, Claim::Always(Request::Volume(slots)));
        }
        Step::Expect(terminal, slots) => link.expect(now, terminal, slots),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// For any behaviour of the terminals: packet conservation holds, no more slots are used than
    /// granted or granted than exist, and late calls change nothing.
    #[test]
    fn packets_are_conserved_and_late_calls_change_nothing(
        steps in many(step(), 1..80), kind in 0usize..12, carriers in 1u32..4,
    ) {
        let demand =
            [Demand::None, Demand::Absolute, Demand::Volume, Demand::Rate][kind % 4];
        let mut config = MfTdmaConfig::mhatre_rosenberg(4);
        (config.demand, config.carriers, config.sync) = (demand, carriers, Some(3));
        config.order = if kind < 6 { Order::Arrival } else { Order::ControlFirst };
        config.site = if kind % 2 == 0 { Site::Hub } else { Site::OnBoard };
        (config.burst_loss, config.request_loss, config.plan_loss) = (0.05, 0.1, 0.1);
        config.silence = (kind % 3 == 0).then_some(10);
        config.log_on = (kind % 4 == 1).then_some(1);
        config.terminals[2].late = Span::from_micros(u64::from(kind == 7));
        let run = |eager: bool| {
            let mut link: MfTdma<Vec<u8>> = MfTdma::new(&config, 3, 0).unwrap();
            let (mut now, mut all) = (Instant::ZERO, Vec::new());
            for (pause, step) in &steps {
                now += Span::from_millis(*pause);
                if eager {
                    all.extend(drain(&mut link, now));
                }
                apply(&mut link, now, step);
                assert!(link.audit());
            }
            let end = now + Span::from_secs(20);
            while let Some(arrived) = link.poll_arrival(end) {
                all.push(arrived);
            }
            assert!(link.audit());
            (all, *link.counters(), link.scheduler().given().frames)
        };
        let (arrived, counters, frames) = run(true);
        prop_assert!(counters.used <= counters.granted);
        prop_assert!(counters.granted <= frames * 58 * u64::from(carriers));
        prop_assert_eq!((arrived, counters, frames), run(false));
    }
}
