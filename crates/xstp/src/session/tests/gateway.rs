//! Preset of a gateway over a geostationary link: rates, reverse traffic, outages, RTTs.

use super::pipe::{Faults, World};
use super::*;
use crate::config::Controller;

const DELAY: Span = Span::from_millis(300);
const FULL: usize = 1444;

fn geo(loss: f64) -> Faults {
    Faults { loss, rate: Some(BitRate::from_mbps(10)), ..Faults::clean(DELAY) }
}

fn download(count: u32, faults: Faults) -> World {
    let mut world = World::pair(&gateway(), &gateway(), faults);
    world.ends[0].upper.push(b"give");
    // The server responds when it has received the request.
    world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
    world.ends[1].upper.push_many(count, FULL);
    world.ends[1].session.wake();
    world
}

/// XSTP-8.1.6
#[test]
fn a_download_fills_the_link_with_little_reverse_traffic() {
    let mut world = download(40_000, geo(0.0));
    let start = world.now;
    let end = start + Span::from_secs(30);
    world.run(end, |_| false);
    let delivered = world.ends[0].upper.delivered.len();
    let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(30) - DELAY) / 1500;
    let fraction = delivered as f64 / bound as f64;
    assert!(fraction > 0.99, "{delivered} of {bound} packets");
    let returned = world.bytes_from(0, start + Span::from_secs(1)) as f64 * 8.0 / 29.0;
    assert!(returned < 4_000.0, "{returned} bit/s on the reverse path");
    assert_eq!(world.ends[1].session.statistics().data_retransmitted, 0);
    let round_trip = world.ends[1].session.srtt().unwrap();
    assert!(round_trip < Span::from_millis(605), "no standing queue: {round_trip}");
}

/// XSTP-7.3.2, XSTP-7.4.1
#[test]
fn corruption_costs_little_more_than_the_lost_packets() {
    for (loss, min_fraction) in [(0.01, 0.985), (0.11, 0.97)] {
        let mut world = download(40_000, geo(loss)).without_log();
        let start = world.now;
        world.run(start + Span::from_secs(30), |_| false);
        let delivered = world.ends[0].upper.delivered.len();
        let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(30) - DELAY) as f64 / 1500.0;
        let fraction = delivered as f64 / (bound * (1.0 - loss));
        assert!(fraction > min_fraction, "{fraction} of the bound at {loss} loss");
        let statistics = world.ends[1].session.statistics();
        let duplicates = world.ends[0].session.statistics().duplicates_received as f64;
        assert!(duplicates < 0.003 * statistics.data_sent as f64, "{duplicates} duplicates");
    }
}

/// XSTP-10.5.2
#[test]
fn the_link_is_full_1_6_rtts_after_an_outage() {
    let (down, up) = (at(6_000), at(16_000));
    let mut world = download(60_000, Faults { outage: Some((down, up)), ..geo(0.0) });
    world.run(at(24_000), |_| false);
    let entered = |from: Instant, span: Span| -> u64 {
        let in_span =
            world.log.iter().filter(|e| e.from == 1 && e.at >= from && e.at < from + span);
        in_span.map(|entry| entry.octets.len() as u64 + 52).sum()
    };
    let full = BitRate::from_mbps(10).bytes_in(Span::from_millis(200));
    let first = (up - Instant::ZERO.since(Instant::ZERO)) + Span::from_millis(960);
    assert!(entered(first, Span::from_millis(200)) * 100 > full * 95);
    let statistics = world.ends[1].session.statistics();
    assert_eq!(statistics.outages, 1);
    let round_trip = world.ends[1].session.srtt().unwrap();
    assert!(round_trip < Span::from_millis(640), "includes the outage: {round_trip}");
    // All packets that were lost in the outage are recovered.
    world.run(at(100_000), |ends| ends[0].upper.delivered.len() == 60_000);
    assert_eq!(world.ends[0].upper.delivered_sorted(), (0..60_000).collect::<Vec<u32>>());
}

/// XSTP-10.5.2: the peer sends during an outage of the forward path. Its first segment permits data
/// for the outage timeout, 1.2 s; the others do not. Afterwards the rate is what it was.
#[test]
fn segments_of_the_peer_permit_data_once_in_an_outage_of_the_forward_path() {
    let mut config = gateway();
    config.controller = Controller::Steady;
    let mut world = World::pair(&config, &config, geo(0.0));
    world.ends[0].upper.push(b"give");
    world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
    world.ends[1].upper.push_many(60_000, FULL);
    world.ends[1].session.wake();
    let (down, up) = (at(6_000), at(16_000));
    (world.faults.outage, world.faults.outage_from) = (Some((down, up)), Some(1));
    for step in 0..100 {
        world.run(down + Span::from_millis(2_000 + 100 * step), |_| false);
        world.ends[0].upper.push(b"more");
        world.ends[0].session.wake();
    }
    world.run(at(20_000), |_| false);
    let sent = |from: Instant, to: Instant| {
        let own = world.log.iter().filter(|e| e.from == 1 && e.at >= from && e.at < to);
        let data = own.filter(|entry| entry.octets.len() > 1_000);
        data.count() as u64
    };
    let rate = BitRate::from_mbps(10).bytes_in(Span::from_secs(1)) / 1500;
    let resumed = sent(down + Span::from_millis(2_000), up);
    assert!((rate..=rate * 3 / 2).contains(&resumed), "{resumed} packets in the outage");
    let full = at(16_700);
    assert!(sent(full, full + Span::from_secs(1)) > rate * 95 / 100);
    assert_eq!(world.ends[1].session.statistics().outages, 1);
}

/// XSTP-6.1.2
#[test]
fn a_request_and_its_response_take_one_rtt() {
    let mut world = download(3, geo(0.0));
    assert!(world.now < at(301), "the request was sent with BGN: {:?}", world.now);
    assert!(world.run(at(2_000), |ends| ends[0].upper.delivered.len() == 3));
    assert!(world.now < at(605), "{:?}", world.now);
}

/// XSTP-10.3.3
#[test]
fn a_lost_last_packet_is_recovered_within_2_5_rtts() {
    let mut world = download(0, Faults::clean(DELAY));
    world.run(at(5_000), |_| false);
    world.faults.outage = Some((at(5_000), at(5_001)));
    world.ends[1].upper.push(b"last");
    world.ends[1].session.wake();
    assert!(world.run(at(9_000), |ends| !ends[0].upper.delivered.is_empty()));
    assert!(world.now < at(5_000 + 1_500), "{:?}", world.now);
}

/// XSTP-10.2.1, XSTP-10.3.3: a session that is application-limited after every packet sends only
/// the POLLs of the timer, here one every two RTTs.
#[test]
fn without_app_limited_polls_only_the_timer_polls() {
    let polls = |change: fn(&mut SessionConfig)| {
        let mut config = gateway();
        change(&mut config);
        let mut world = World::pair(&config, &config, geo(0.0));
        world.ends[0].upper.push(b"give");
        world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
        let start = world.now;
        for n in 0..100_u64 {
            world.ends[1].upper.push(&[0; 500]);
            world.ends[1].session.wake();
            world.run(start + Span::from_millis(100 * (n + 1)), |_| false);
        }
        world.ends[1].session.statistics().polls_sent
    };
    let timer = |config: &mut SessionConfig| {
        (config.stp.poll_when_app_limited, config.polls_per_round_trip) = (false, 1);
        config.poll_round_trips = 2;
    };
    assert!((8..=12).contains(&polls(timer)), "{}", polls(timer));
    assert!(polls(|_| {}) > 50);
}

/// XSTP-10.2.6
#[test]
fn an_app_limited_flow_polls_at_most_twice_as_often_as_the_timer() {
    let mut world = download(0, geo(0.0));
    let start = world.now;
    for n in 0..2_000_u64 {
        world.ends[1].upper.push(&[0; 500]);
        world.ends[1].session.wake();
        world.run(start + Span::from_millis(10 * (n + 1)), |_| false);
    }
    let polls = world.ends[1].session.statistics().polls_sent;
    assert!(polls < 220, "{polls} in 20 s");
}

/// XSTP-10.2.7
#[test]
fn timer_polls_wait_for_the_pending_stat_on_a_low_rate_path() {
    // POLLs after one packet per side, and its delivery time if it is `lost` at first.
    let polled = |rate: BitRate, lost: bool| {
        let client = SessionConfig { max_rate: Some(rate), ..gateway() };
        let server = SessionConfig { reverse_rate: Some(rate), ..gateway() };
        let mut world = World::pair(&client, &server, geo(0.0));
        world.ends[0].upper.push(b"give");
        world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
        world.run(at(5_000), |_| false);
        let before = [0, 1].map(|end| world.ends[end].session.statistics().polls_sent);
        world.faults.outage = lost.then_some((at(5_000), at(5_001)));
        for end in 0..2 {
            world.ends[end].upper.push(b"one");
            world.ends[end].session.wake();
        }
        assert!(world.run(at(9_000), |ends| ends[1].upper.delivered.len() == 2));
        let delivered_at = world.now;
        world.run(at(9_000), |_| false);
        let polls = [0, 1].map(|end| world.ends[end].session.statistics().polls_sent - before[end]);
        (polls, delivered_at)
    };
    let (polls, _) = polled(BitRate::from_kbps(64), false);
    assert_eq!(polls, [1, 1], "one each, and no further one before its STAT");
    let (polls, _) = polled(BitRate::from_mbps(10), false);
    assert!(polls[0] >= 3 && polls[1] >= 3, "{polls:?}");
    // A packet lost together with its POLL: the next POLL follows within 2 RTTs, its STAT after one
    // more, and the retransmission takes half an RTT.
    let (_, delivered_at) = polled(BitRate::from_kbps(64), true);
    assert!(delivered_at < at(5_000 + 7 * 300 + 50), "{delivered_at:?}");
}

/// XSTP-10.4.1
#[test]
fn an_idle_pair_sends_one_poll_and_one_stat_per_keep_alive() {
    let mut world = download(0, Faults::clean(DELAY));
    world.run(at(5_000), |_| false);
    let before = world.log.len();
    world.run(at(125_000), |_| false);
    let sent = world.log.len() - before;
    assert!((18..=22).contains(&sent), "{sent} segments in two minutes");
    assert!(world.ends.iter().all(|end| end.session.state() == State::Established));
}

/// XSTP-8.1.7
#[test]
fn reports_are_bounded_on_a_reverse_path_of_1_kbit_per_second() {
    let client = SessionConfig { max_rate: Some(BitRate::from_kbps(1)), ..gateway() };
    let mut world = World::pair(&client, &gateway(), geo(0.0));
    world.ends[0].upper.push(b"give");
    world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
    world.ends[1].upper.push_many(40_000, FULL);
    world.ends[1].session.wake();
    let start = world.now + Span::from_secs(5);
    world.run(start + Span::from_secs(20), |_| false);
    let taken = world.bytes_from(0, start) as f64 * 8.0 / 20.0;
    assert!((100.0..300.0).contains(&taken), "a quarter of the reverse rate: {taken} bit/s");
    let left = BitRate::from_mbps(10).bytes_in(Span::from_secs(20)) * 99 / 100;
    assert!(world.bytes_from(1, start) > left, "the download continues");
    // 200 octets take 2 s on the reverse path, and a STAT may be in transmission.
    world.ends[0].upper.push(&[7; 200]);
    world.ends[0].session.wake();
    let until = world.now + Span::from_secs(5);
    assert!(world.run(until, |ends| ends[1].upper.delivered.len() == 2));
}

/// XSTP-8.1.7
#[test]
fn the_first_stat_does_not_wait_for_the_budget_of_the_handshake() {
    let client = SessionConfig { max_rate: Some(BitRate::from_kbps(1)), ..gateway() };
    let mut world = World::pair(&client, &gateway(), geo(0.0));
    world.ends[1].upper.push_many(20, FULL);
    // BGN takes more than half a second at 1 kbit/s, and four times that would be 2.5 s.
    let sampled = world.run(at(2_000), |ends| ends[1].session.srtt().is_some());
    assert!(sampled, "{:?}", world.now);
}

/// XSTP-10.2.9
#[test]
fn poll_intervals_grow_before_the_first_rtt_sample() {
    let mut world = World::pair(&gateway(), &gateway(), geo(1.0));
    world.run(at(20_000), |_| false);
    let polls = world.ends[0].session.statistics().polls_sent;
    // At 0, 0.2, 0.4 and 0.6 s with an assumed RTT of 0.7 s, then at intervals of 0.5, 0.9, 1.9, 3.7
    // and 7.5 s; and with the retransmissions of BGN.
    assert!((8..=16).contains(&polls), "{polls}");
}

/// XSTP-10.5.3
#[test]
fn a_longer_rtt_does_not_cause_repeated_outages() {
    let mut world = download(400_000, geo(0.0)).without_log();
    world.run(world.now + Span::from_secs(5), |_| false);
    world.faults.delay = Span::from_secs(4);
    world.run(world.now + Span::from_secs(60), |_| false);
    let session = &world.ends[1].session;
    assert!(session.statistics().outages <= 4, "{}", session.statistics().outages);
    assert!(session.srtt() > Some(Span::from_secs(7)), "{:?}", session.srtt());
}

/// XSTP-10.5.3: the same with several POLLs in flight, of which the one that ends an outage was sent
/// before it.
#[test]
fn a_queue_longer_than_the_timeout_is_not_taken_for_one_outage_after_another() {
    let faults = Faults { delay: Span::from_millis(5), ..geo(0.0) };
    let mut world = download(400_000, faults).without_log();
    world.run(world.now + Span::from_secs(2), |_| false);
    world.faults.delay = Span::from_millis(200);
    world.run(world.now + Span::from_secs(10), |_| false);
    let session = &world.ends[1].session;
    assert!(session.statistics().outages <= 8, "{}", session.statistics().outages);
    assert!(session.srtt() > Some(Span::from_millis(350)), "{:?}", session.srtt());
}

/// XSTP-8.1.8
#[test]
fn blocked_data_waits_and_control_does_not() {
    let mut world = download(100, geo(0.0));
    world.run(world.now + Span::from_millis(50), |_| false);
    let sent = |world: &World| world.ends[1].session.statistics().data_sent;
    let before = sent(&world);
    assert!(before > 0 && before < 100, "{before}");
    world.ends[1].session.block_data(true);
    let due = world.ends[1].session.data_due().expect("more data");
    assert!(due <= world.now + Span::from_millis(2), "blocked data has a due time");
    world.run(world.now + Span::from_secs(2), |_| false);
    assert_eq!(sent(&world), before);
    let statistics = world.ends[1].session.statistics();
    assert!(statistics.polls_sent_standalone > 0, "POLLs are sent for outstanding data");
    assert_eq!(world.ends[0].upper.delivered.len() as u64, before, "and all of it is delivered");
    // After the pause a burst is limited to the pacing burst allowance.
    world.ends[1].session.block_data(false);
    let resumed = world.now;
    world.run(resumed, |_| false);
    assert!(sent(&world) - before <= 18, "{}", sent(&world) - before);
    assert!(world.run(resumed + Span::from_secs(2), |ends| ends[0].upper.delivered.len() == 100));
}

/// XSTP-14.4.7: a standalone POLL would be sent after the whole train if time passes between its
/// packets. Packets that cannot be shortened are sent without POLLs.
#[test]
fn polls_of_a_train_are_piggybacked_on_its_packets() {
    for (cut, polls) in [(true, &[0, 3, 6, 9][..]), (false, &[])] {
        let (mut client, _) = established(&SessionConfig::gateway_auto());
        client.session.congestion.start_recovery_train();
        client.upper.cut = cut;
        client.upper.push_many(20, if cut { 2_000 } else { client.session.max_segment() - 4 });
        client.session.wake();
        let mut out = [0; 2_000];
        let mut train = Vec::new();
        while train.len() < 10 {
            let now = at(700) + Span::from_micros(20 * train.len() as u64);
            client.session.handle_timeout(now);
            let len = client.session.poll_transmit(now, &mut client.upper, &mut out).unwrap();
            let segment = Segment::decode(&Profile::Sealed, &out[..len]).unwrap();
            assert!(segment.payload().is_some(), "packet {}", train.len());
            train.push(segment.poll_part().is_some());
        }
        let with_poll: Vec<usize> = (0..10).filter(|&n| train[n]).collect();
        assert_eq!(with_poll, polls);
    }
}

/// XSTP-5.3.6: a receiver whose STATs have no A block, from the start or from some time on, at a
/// rate that the sender finds itself.
#[test]
fn without_arrival_blocks_the_sender_estimates_them_and_does_not_stall() {
    for (loss, from) in [(0.0, 0), (0.01, 0), (0.0, 8_000), (0.01, 8_000)] {
        let config = SessionConfig::gateway_auto();
        let mut world = World::pair(&config, &config, geo(loss)).without_log();
        world.ends[1].upper.push_many(60_000, FULL);
        world.run(at(from), |_| false);
        world.strip_arrivals();
        world.run(at(20_000), |_| false);
        let before = world.ends[0].upper.delivered.len();
        world.run(at(50_000), |_| false);
        let delivered = world.ends[0].upper.delivered.len() - before;
        let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(30)) / 1500;
        let share = delivered as f64 / bound as f64;
        assert!(share > 0.5, "{share} of the rate, loss {loss}, from {from} ms on");
    }
}

/// XSTP-7.2.2
#[test]
fn urgent_data_and_retransmissions_alternate() {
    for (urgent, order) in
        [(false, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), (true, [6, 0, 7, 1, 8, 2, 9, 3, 4, 5])]
    {
        let (mut client, mut server) = established(&gateway());
        client.upper.push_many(6, 100);
        client.session.wake();
        let lost = (600..700).map(|millis| client.send(at(millis)).len()).sum::<usize>();
        assert!(lost >= 6, "{lost}");
        let polls = client.send(at(1_000));
        server.receive_all(at(1_300), &polls);
        let stats = server.send(at(1_300));
        client.receive_all(at(1_600), &stats);
        client.upper.push_many(4, 100);
        client.upper.urgent = urgent;
        client.session.wake();
        let sent = (1_600..1_700).flat_map(|millis| client.send(at(millis)));
        let numbers: Vec<u32> = sent
            .filter_map(|octets| {
                let segment = Segment::decode(&Profile::Sealed, &octets).unwrap();
                segment.payload().is_some().then(|| segment.number().value())
            })
            .collect();
        assert_eq!(numbers, order, "urgent: {urgent}");
    }
}
