//! Streams over two paths of different rates and delays: the use of both, and the loss of either.

mod rig;

use proptest::prelude::*;
use relay::{Capabilities, DisconnectReason, Priority, RelayConfig};
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

const GEO: BitRate = BitRate::from_mbps(10);
const LEO: BitRate = BitRate::from_mbps(5);
const UP: BitRate = BitRate::from_mbps(2);

/// A terminal with a path of 10 Mbit/s and 600 ms, and one of 5 Mbit/s and 50 ms.
fn rig(seed: u64) -> Rig {
    rig_with(seed, RelayConfig::new("hub"))
}

fn rig_with(seed: u64, hub: RelayConfig) -> Rig {
    let terminal = RelayConfig::new("boat").with_rates(Some(UP), Some(GEO));
    let mut rig = Rig::with(seed, terminal, hub);
    rig.set_lines(UP, GEO);
    rig.add_path("boat/leo", Span::from_millis(25), [LEO, UP]);
    // Both sessions, and the rate of each.
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2));
    rig.run(Span::from_secs(3), |_| false);
    rig
}

/// Returns the octets that the terminal's stream has received in `time`, per second.
fn goodput(rig: &mut Rig, stream: relay::StreamId, time: Span) -> f64 {
    let before = rig.app(Side::Terminal, stream).read;
    rig.run(time, |_| false);
    let read = rig.app(Side::Terminal, stream).read - before;
    read as f64 / (time.as_micros() as f64 / 1e6)
}

/// As [`goodput`], as a share of the sum of both paths' rates.
fn share_of_both(rig: &mut Rig, stream: relay::StreamId, time: Span) -> f64 {
    goodput(rig, stream, time) * 8.0 / (GEO.as_bps() + LEO.as_bps()) as f64
}

/// Returns the time until the hub detects an outage, and from then until the terminal's stream has
/// further octets to read.
fn resumption(rig: &mut Rig, stream: relay::StreamId) -> [Span; 2] {
    let (started, outages) = (rig.now, rig.hub.totals().outages);
    assert!(rig.run(Span::from_secs(5), |rig| rig.hub.totals().outages > outages));
    let (detected, read) = (rig.now, rig.app(Side::Terminal, stream).read);
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).read > read));
    [detected.since(started), rig.now.since(detected)]
}

fn download(rig: &mut Rig) -> relay::StreamId {
    rig.open("source-1000000000", App::default())
}

/// RLY-12.3
#[test]
fn a_download_uses_the_sum_of_both_rates() {
    let mut rig = rig(1);
    let stream = download(&mut rig);
    rig.run(Span::from_secs(10), |_| false);
    let share = share_of_both(&mut rig, stream, Span::from_secs(30));
    println!("a download over both paths: {share:.3} of the sum of the rates");
    assert!(share >= 0.93, "{share}");
}

/// RLY-12.3: also in the first seconds, and if the path that joins is the slower one.
#[test]
fn a_path_that_has_joined_is_used_immediately() {
    let terminal = RelayConfig::new("boat").with_rates(Some(UP), Some(LEO));
    let mut rig = Rig::with(13, terminal, RelayConfig::new("hub"));
    rig.delay = Span::from_millis(25);
    rig.set_lines(UP, LEO);
    rig.add_path("boat/geo", Span::from_millis(300), [GEO, UP]);
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2));
    let stream = download(&mut rig);
    rig.run(Span::from_secs(4), |_| false);
    let share = share_of_both(&mut rig, stream, Span::from_secs(4));
    assert!(share >= 0.9, "{share}");
}

/// RLY-12.1: the hub schedules the paths of its own link, and grants rates to both.
#[test]
fn a_hub_that_schedules_its_link_uses_both_paths() {
    let link = BitRate::from_bps(GEO.as_bps() + LEO.as_bps());
    let up = BitRate::from_bps(2 * UP.as_bps());
    let mut rig = rig_with(9, RelayConfig::new("hub").with_rates(Some(link), Some(up)));
    let stream = download(&mut rig);
    let upload = rig.open("sink", App::writer(1_000_000_000));
    rig.run(Span::from_secs(10), |_| false);
    let before = rig.app(Side::Hub, upload).read;
    let share = goodput(&mut rig, stream, Span::from_secs(20)) / (link.as_bps() as f64 / 8.0);
    assert!(share >= 0.9, "{share}");
    let read = (rig.app(Side::Hub, upload).read - before) as f64;
    let share = read / 20.0 / (up.as_bps() as f64 / 8.0);
    assert!(share >= 0.85, "{share}");
}

/// RLY-12.3
#[test]
fn short_exchanges_take_the_path_with_the_shorter_round_trip() {
    let mut rig = rig(2);
    let echo = |rig: &mut Rig| {
        let started = rig.now;
        let stream = rig.open("echo", App::writer(500));
        assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
        rig.now.since(started)
    };
    let idle = echo(&mut rig);
    assert!(idle < Span::from_millis(80), "{idle:?}");
    download(&mut rig);
    rig.run(Span::from_secs(10), |_| false);
    let busy = (0..20).map(|_| echo(&mut rig)).max().expect("some");
    println!("500 octets there and back: {idle:?}, beside a download at most {busy:?}");
    assert!(busy < Span::from_millis(150), "{busy:?}");
}

/// RLY-12.4, RLY-12.8
#[test]
fn the_loss_of_either_path_costs_its_rate_and_no_stream() {
    for lost in [0, 1] {
        let mut rig = rig(3 + lost as u64);
        let stream = download(&mut rig);
        rig.run(Span::from_secs(10), |_| false);
        let dark = rig.now + Span::from_secs(30);
        match lost {
            0 => rig.dark_until = dark,
            _ => rig.links[0].dark_until = dark,
        }
        let rate = if lost == 0 { LEO } else { GEO };
        let [detected, resumed] = resumption(&mut rig, stream);
        println!("path {lost} lost: detected after {detected:?}, octets {resumed:?} later");
        // Half a round trip of the other path, and the packet in transmission.
        assert!(resumed < Span::from_millis(50), "{resumed:?}");
        // The rest of what was lost.
        rig.run(Span::from_secs(3), |_| false);
        let share = goodput(&mut rig, stream, Span::from_secs(10)) / (rate.as_bps() as f64 / 8.0);
        assert!(share >= 0.9, "without path {lost}: {share}");
        rig.run(Span::from_secs(30), |_| false);
        let share = share_of_both(&mut rig, stream, Span::from_secs(10));
        assert!(share >= 0.9, "with path {lost} again: {share}");
        assert!(rig.disconnected.is_empty(), "{:?}", rig.disconnected);
    }
}

/// RLY-12.5
#[test]
fn a_path_that_is_down_beyond_the_limit_leaves_and_joins_again() {
    for lost in [0, 1] {
        let mut rig = rig(5 + lost as u64);
        let stream = download(&mut rig);
        rig.run(Span::from_secs(5), |_| false);
        let dark = rig.now + Span::from_secs(200);
        match lost {
            0 => rig.dark_until = dark,
            _ => rig.links[0].dark_until = dark,
        }
        rig.run(Span::from_secs(215), |_| false);
        let share = share_of_both(&mut rig, stream, Span::from_secs(20));
        assert!(share >= 0.9, "path {lost}: {share}");
        assert!(rig.disconnected.is_empty(), "{:?}", rig.disconnected);
    }
}

/// RLY-12.6: a path that fails while its session begins does not keep the other one from use.
#[test]
fn a_path_without_a_response_to_its_first_segment_is_replaced() {
    // Before the segment is received, and after it.
    for millis in [25, 35] {
        let terminal = RelayConfig::new("boat").with_rates(Some(UP), Some(GEO));
        let mut rig = Rig::with(11, terminal, RelayConfig::new("hub"));
        rig.delay = Span::from_millis(10);
        rig.add_path("boat/leo", Span::from_millis(100), [LEO, UP]);
        let stream = rig.open("echo", App::writer(500));
        rig.run(Span::from_millis(millis), |_| false);
        rig.dark_until = rig.now + Span::from_secs(60);
        assert!(rig.run(Span::from_secs(6), |rig| rig.app(Side::Terminal, stream).ended));
        assert!(rig.disconnected.iter().all(|(side, _)| *side == Side::Hub));
        // The first path joins.
        rig.run(Span::from_secs(70), |_| false);
        let stream = download(&mut rig);
        rig.run(Span::from_secs(10), |_| false);
        let share = share_of_both(&mut rig, stream, Span::from_secs(10));
        assert!(share >= 0.9, "{share}");
    }
}

/// RLY-12.6
#[test]
fn a_restart_of_the_hub_ends_the_streams_and_both_paths_join_again() {
    let mut rig = rig(7);
    download(&mut rig);
    rig.run(Span::from_secs(5), |_| false);
    rig.restart_hub();
    rig.run(Span::from_secs(10), |_| false);
    assert_eq!(rig.disconnected.len(), 1, "{:?}", rig.disconnected);
    let stream = download(&mut rig);
    rig.run(Span::from_secs(10), |_| false);
    let share = share_of_both(&mut rig, stream, Span::from_secs(10));
    assert!(share >= 0.9, "{share}");
}

/// ASC-2.12: a hub of an earlier release does not join the paths, of which one is used.
#[test]
fn with_a_hub_that_joins_no_paths_one_path_is_used_and_the_other_one_replaces_it() {
    let terminal = RelayConfig::new("boat").with_rates(Some(UP), Some(GEO));
    let mut hub = RelayConfig::new("hub");
    hub.capabilities = hub.capabilities.without(Capabilities::JOINS);
    let mut rig = Rig::with(12, terminal, hub);
    rig.set_lines(UP, GEO);
    rig.add_path("boat/leo", Span::from_millis(25), [LEO, UP]);
    rig.run(Span::from_secs(20), |_| false);
    let unused = |rig: &Rig| -> Vec<bool> {
        (0..2).map(|path| rig.terminal.path(path).expect("it").is_not_joined()).collect()
    };
    assert_eq!(unused(&rig), [true, false], "the faster one was first");
    let stream = rig.open("echo", App::writer(500));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
    rig.links[0].dark_until = rig.now + Span::from_secs(400);
    rig.run(Span::from_secs(180), |_| false);
    let stream = rig.open("echo", App::writer(500));
    assert!(rig.run(Span::from_secs(10), |rig| rig.app(Side::Terminal, stream).ended));
}

/// RLY-12.7
#[test]
fn an_orderly_end_waits_for_the_streams_of_all_paths() {
    let mut rig = rig(8);
    let stream = rig.open("source-3000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(1), |_| false);
    rig.terminal.drain();
    assert!(rig.run(Span::from_secs(20), |rig| rig.terminal.has_drained()));
    rig.run(Span::from_secs(2), |_| false);
    rig.over.sort();
    assert_eq!(rig.over, [(Side::Terminal, stream, 3_000_000), (Side::Hub, stream, 0)]);
    // Neither side takes the reset of the other path for the loss of a session.
    let mut ends = rig.disconnected.clone();
    ends.sort_by_key(|(side, _)| *side);
    let closed = DisconnectReason::Closed;
    assert_eq!(ends, [(Side::Terminal, closed), (Side::Hub, closed)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// RLY-12.2, RLY-12.4
    #[test]
    fn every_octet_arrives_over_paths_with_faults_and_outages(
        seed: u64,
        delays in [1_u64..400, 1_u64..400],
        loss in 0.0_f64..0.15,
        duplicate in 0.0_f64..0.1,
        reorder in 0.0_f64..0.2,
        streams in prop::collection::vec((0_u8..4, 0_u64..400_000, 0_u64..2_000), 1..20),
        outages in prop::collection::vec((0_usize..2, 10_u64..8_000, 0_u64..6_000), 0..6),
    ) {
        let terminal = RelayConfig::new("boat").with_rates(Some(UP), Some(GEO));
        let mut rig = Rig::with(seed, terminal, RelayConfig::new("hub"));
        rig.delay = Span::from_millis(delays[0]);
        rig.faults = Faults { loss, duplicate, reorder, corrupt: 0.0 };
        rig.add_path("boat/leo", Span::from_millis(delays[1]), [LEO, UP]);
        let mut outages = outages.into_iter();
        let mut opened = Vec::new();
        for (kind, bytes, wait) in streams {
            let (server, app) = match kind {
                0 => ("sink".to_owned(), App::writer(bytes)),
                1 => (format!("source-{bytes}"), App { end: true, ..App::default() }),
                _ => ("echo".to_owned(), App::writer(bytes)),
            };
            let priority = if bytes % 2 == 0 { Priority::Normal } else { Priority::Background };
            opened.push(rig.open_as(&server, priority, &app).expect("opened"));
            rig.run(Span::from_millis(wait), |_| false);
            if let Some((path, time, pause)) = outages.next() {
                let until = rig.now + Span::from_millis(time);
                match path {
                    0 => rig.dark_until = until,
                    _ => rig.links[0].dark_until = until,
                }
                rig.run(Span::from_millis(pause), |_| false);
            }
        }
        prop_assert!(rig.run(Span::from_secs(120), |rig| rig.all_over(Side::Terminal)), "stalled");
        prop_assert!(rig.disconnected.is_empty());
        for stream in opened {
            let [terminal, hub] =
                [Side::Terminal, Side::Hub].map(|side| rig.app(side, stream).clone());
            prop_assert_eq!((terminal.read, hub.read), (hub.written, terminal.written));
        }
        rig.run(Span::from_secs(20), |_| false);
        rig.assert_clean();
    }
}
