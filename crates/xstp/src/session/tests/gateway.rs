//! The gateway's preset over a geostationary link: rate, return channel, outage, round trips.

use super::pipe::{Faults, World};
use super::*;

const DELAY: Span = Span::from_millis(300);
const FULL: usize = 1444;

fn geo(loss: f64) -> Faults {
    Faults { loss, rate: Some(BitRate::from_mbps(10)), ..Faults::clean(DELAY) }
}

fn download(count: u32, faults: Faults) -> World {
    let mut world = World::pair(&gateway(), &gateway(), faults);
    world.ends[0].upper.push(b"give");
    // The server speaks once the request is there.
    world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
    world.ends[1].upper.push_many(count, FULL);
    world.ends[1].session.wake();
    world
}

/// XSTP-8.1.6
#[test]
fn a_download_fills_the_link_and_hardly_uses_the_return_channel() {
    let mut world = download(40_000, geo(0.0));
    let start = world.now;
    let end = start + Span::from_secs(30);
    world.run(end, |_| false);
    let delivered = world.ends[0].upper.delivered.len();
    let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(30) - DELAY) / 1500;
    let share = delivered as f64 / bound as f64;
    assert!(share > 0.99, "{delivered} of {bound} packets");
    let returned = world.bytes_from(0, start + Span::from_secs(1)) as f64 * 8.0 / 29.0;
    assert!(returned < 4_000.0, "{returned} bit/s on the return channel");
    assert_eq!(world.ends[1].session.statistics().data_retransmitted, 0);
    let round_trip = world.ends[1].session.round_trip().unwrap();
    assert!(round_trip < Span::from_millis(605), "no queue stands: {round_trip}");
}

/// XSTP-7.3.2, XSTP-7.4.1
#[test]
fn loss_costs_what_was_lost_and_hardly_more() {
    for (loss, least) in [(0.01, 0.985), (0.11, 0.97)] {
        let mut world = download(40_000, geo(loss)).without_log();
        let start = world.now;
        world.run(start + Span::from_secs(30), |_| false);
        let delivered = world.ends[0].upper.delivered.len();
        let bound = BitRate::from_mbps(10).bytes_in(Span::from_secs(30) - DELAY) as f64 / 1500.0;
        let share = delivered as f64 / (bound * (1.0 - loss));
        assert!(share > least, "{share} of the bound at {loss} loss");
        let statistics = world.ends[1].session.statistics();
        let needless = world.ends[0].session.statistics().duplicates_received as f64;
        assert!(needless < 0.003 * statistics.data_sent as f64, "{needless} needless copies");
    }
}

/// XSTP-10.5.2
#[test]
fn after_an_outage_the_link_is_full_again_within_1_6_round_trips() {
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
    let round_trip = world.ends[1].session.round_trip().unwrap();
    assert!(round_trip < Span::from_millis(640), "spoilt by the outage: {round_trip}");
    // Nothing is lost for good, and what had been lost is all there 1.6 round trips later plus
    // the time to send it.
    world.run(at(100_000), |ends| ends[0].upper.delivered.len() == 60_000);
    assert_eq!(world.ends[0].upper.delivered_sorted(), (0..60_000).collect::<Vec<u32>>());
}

/// XSTP-6.1.2
#[test]
fn a_request_and_its_answer_take_one_round_trip() {
    let world = download(3, geo(0.0));
    let asked = world.now;
    assert!(asked < at(301), "the request went with BGN: {asked:?}");
    let mut world = world;
    assert!(world.run(at(2_000), |ends| ends[0].upper.delivered.len() == 3));
    assert!(world.now < at(605), "{:?}", world.now);
}

/// XSTP-10.3.3
#[test]
fn a_lost_last_packet_is_back_within_two_and_a_half_round_trips() {
    let mut world = download(0, Faults::clean(DELAY));
    world.run(at(5_000), |_| false);
    world.faults.outage = Some((at(5_000), at(5_001)));
    world.ends[1].upper.push(b"last");
    world.ends[1].session.wake();
    assert!(world.run(at(9_000), |ends| !ends[0].upper.delivered.is_empty()));
    assert!(world.now < at(5_000 + 1_500), "{:?}", world.now);
}

/// XSTP-10.2.1, XSTP-10.3.3: a flow that runs dry after every packet, and the timer alone asks,
/// once every two round trips.
#[test]
fn without_polls_of_a_dry_layer_the_timer_alone_asks() {
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
fn a_flow_below_the_rate_polls_no_faster_than_twice_the_timer() {
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
fn on_a_narrow_way_what_was_asked_for_is_waited_for() {
    // One packet; the POLLs after it, and when it was there in spite of `lost`.
    let asked = |rate: BitRate, lost: bool| {
        let narrow = SessionConfig { max_rate: Some(rate), ..gateway() };
        let back = SessionConfig { reverse_rate: Some(rate), ..gateway() };
        let mut world = World::pair(&narrow, &back, geo(0.0));
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
        let came = world.now;
        world.run(at(9_000), |_| false);
        let polls = [0, 1].map(|end| world.ends[end].session.statistics().polls_sent - before[end]);
        (polls, came)
    };
    let (polls, _) = asked(BitRate::from_kbps(64), false);
    assert_eq!(polls, [1, 1], "one each, and the answer is waited for");
    let (polls, _) = asked(BitRate::from_mbps(10), false);
    assert!(polls[0] >= 3 && polls[1] >= 3, "{polls:?}");
    // A POLL that was lost with what it asked for is missed when its answer is: after two round
    // trips at most, and it takes another to be told, and half of one to come.
    let (_, came) = asked(BitRate::from_kbps(64), true);
    assert!(came < at(5_000 + 7 * 300 + 50), "{came:?}");
}

/// XSTP-10.4.1
#[test]
fn an_idle_pair_keeps_itself_alive_by_one_poll_and_one_stat() {
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
fn on_a_way_back_of_1_kbit_per_second_reports_become_fewer_and_a_request_gets_through() {
    let narrow = SessionConfig { max_rate: Some(BitRate::from_kbps(1)), ..gateway() };
    let mut world = World::pair(&narrow, &gateway(), geo(0.0));
    world.ends[0].upper.push(b"give");
    world.run(at(100_000), |ends| !ends[1].upper.delivered.is_empty());
    world.ends[1].upper.push_many(40_000, FULL);
    world.ends[1].session.wake();
    let start = world.now + Span::from_secs(5);
    world.run(start + Span::from_secs(20), |_| false);
    let taken = world.bytes_from(0, start) as f64 * 8.0 / 20.0;
    assert!((100.0..300.0).contains(&taken), "a quarter of the way back: {taken} bit/s");
    let left = BitRate::from_mbps(10).bytes_in(Span::from_secs(20)) * 99 / 100;
    assert!(world.bytes_from(1, start) > left, "the download goes on");
    // 200 octets take 2 s of the way back, and a STAT may be under way.
    world.ends[0].upper.push(&[7; 200]);
    world.ends[0].session.wake();
    let asked = world.now;
    assert!(world.run(asked + Span::from_secs(5), |ends| ends[1].upper.delivered.len() == 2));
}

/// XSTP-8.1.7
#[test]
fn the_first_report_on_a_narrow_way_back_does_not_wait_for_what_the_handshake_took() {
    let narrow = SessionConfig { max_rate: Some(BitRate::from_kbps(1)), ..gateway() };
    let mut world = World::pair(&narrow, &gateway(), geo(0.0));
    world.ends[1].upper.push_many(20, FULL);
    // BGN takes more than half a second at 1 kbit/s, and four times that would be 2.5 s.
    let heard = world.run(at(2_000), |ends| ends[1].session.round_trip().is_some());
    assert!(heard, "{:?}", world.now);
}

/// XSTP-10.2.9
#[test]
fn before_the_first_answer_polls_become_fewer() {
    let mut world = World::pair(&gateway(), &gateway(), geo(1.0));
    world.run(at(20_000), |_| false);
    let polls = world.ends[0].session.statistics().polls_sent;
    // 0, 0.2, 0.4 and 0.6 s at an assumed round trip of 0.7 s; then 0.5, 0.9, 1.9, 3.7 and 7.5 s
    // later each; and BGN's own timer.
    assert!((8..=16).contains(&polls), "{polls}");
}

/// XSTP-10.5.3
#[test]
fn a_round_trip_that_grows_is_not_taken_for_one_outage_after_another() {
    let mut world = download(400_000, geo(0.0)).without_log();
    world.run(world.now + Span::from_secs(5), |_| false);
    world.faults.delay = Span::from_secs(4);
    world.run(world.now + Span::from_secs(60), |_| false);
    let session = &world.ends[1].session;
    assert!(session.statistics().outages <= 4, "{}", session.statistics().outages);
    assert!(session.round_trip() > Some(Span::from_secs(7)), "{:?}", session.round_trip());
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
    assert!(session.round_trip() > Some(Span::from_millis(350)), "{:?}", session.round_trip());
}

/// XSTP-8.1.8
#[test]
fn data_that_is_held_waits_and_what_goes_without_it_does_not() {
    let mut world = download(100, geo(0.0));
    world.run(world.now + Span::from_millis(50), |_| false);
    let sent = |world: &World| world.ends[1].session.statistics().data_sent;
    let before = sent(&world);
    assert!(before > 0 && before < 100, "{before}");
    world.ends[1].session.block_data(true);
    let due = world.ends[1].session.data_due().expect("there is more");
    assert!(due <= world.now + Span::from_millis(2), "held, and due all the same");
    world.run(world.now + Span::from_secs(2), |_| false);
    assert_eq!(sent(&world), before);
    let statistics = world.ends[1].session.statistics();
    assert!(statistics.polls_sent_alone > 0, "what was sent is asked after");
    assert_eq!(world.ends[0].upper.delivered.len() as u64, before, "and has come");
    // The pause is not owed: what goes at once is what may be caught up.
    world.ends[1].session.block_data(false);
    let resumed = world.now;
    world.run(resumed, |_| false);
    assert!(sent(&world) - before <= 18, "{}", sent(&world) - before);
    assert!(world.run(resumed + Span::from_secs(2), |ends| ends[0].upper.delivered.len() == 100));
}

/// XSTP-14.4.7: they ride on its packets, since what goes alone comes behind the whole train where
/// time passes between one packet and the next. What is never cut goes all the same.
#[test]
fn the_polls_of_a_train_go_with_its_packets() {
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
        let asking: Vec<usize> = (0..10).filter(|&n| train[n]).collect();
        assert_eq!(asking, polls);
    }
}
