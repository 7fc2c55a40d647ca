//! Streams over a pair of relays.

mod rig;

use relay::{DisconnectReason, OpenError, Priority, RefuseReason, RelayConfig, ResetReason};
use rig::{App, Faults, Rig, Side};
use units::{BitRate, Span};

const ROUND_TRIP: Span = Span::from_millis(600);

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

/// Returns a rig with an open session.
fn connected(seed: u64, down: u64, up: u64) -> Rig {
    let mut rig = Rig::new(seed, mbps(down), mbps(up));
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2), "no session");
    rig.run(Span::from_secs(2), |_| false);
    rig
}

#[test]
fn a_session_is_up_after_two_round_trips() {
    let mut rig = Rig::new(1, mbps(10), mbps(1));
    let start = rig.now;
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2));
    assert!(rig.now.since(start) < ROUND_TRIP * 2 + Span::from_millis(50));
}

#[test]
fn a_stream_opened_before_the_session_waits_for_it() {
    let mut rig = Rig::new(1, mbps(10), mbps(1));
    let stream = rig.open("echo", App::writer(5_000));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
    assert_eq!(rig.app(Side::Terminal, stream).read, 5_000);
    rig.run(Span::from_secs(5), |rig| rig.all_over(Side::Hub));
    rig.assert_clean();
}

#[test]
fn a_request_is_answered_in_one_round_trip() {
    let mut rig = connected(1, 10, 1);
    let stream = rig.open("source-4096", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
    let app = rig.app(Side::Terminal, stream);
    let took = app.ended_at.expect("ended").since(app.opened_at);
    assert!(took < ROUND_TRIP.mul_ratio(110, 100), "{took}");
}

#[test]
fn a_request_during_bulk_is_answered_in_little_more() {
    let mut rig = connected(1, 10, 1);
    let bulk = rig.open("source-100000000", App::default());
    rig.run(Span::from_secs(8), |_| false);
    for _ in 0..3 {
        let stream = rig.open("source-4096", App { end: true, ..App::default() });
        assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
        let app = rig.app(Side::Terminal, stream);
        let took = app.ended_at.expect("ended").since(app.opened_at);
        assert!(took < ROUND_TRIP.mul_ratio(130, 100), "{took}");
    }
    assert!(rig.app(Side::Terminal, bulk).read > 5_000_000);
}

/// RLY-4.5
#[test]
fn a_new_bulk_stream_does_not_stall_at_50_mbit() {
    let mut rig = connected(1, 50, 5);
    let start = rig.now;
    let stream = rig.open("source-30000000", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(20), |rig| rig.app(Side::Terminal, stream).ended));
    // 30 MB at 1436/1500 of 50 Mbit/s are 5.01 s, after one round trip.
    let took = rig.now.since(start);
    let least = Span::from_millis(5_013 + 600);
    assert!(took < least.mul_ratio(103, 100), "{took} where {least} is the least");
}

#[test]
fn streams_share_the_link_evenly() {
    let mut rig = connected(1, 10, 1);
    let streams: Vec<_> = (0..5).map(|_| rig.open("source-9000000", App::default())).collect();
    rig.run(Span::from_secs(10), |_| false);
    let read: Vec<u64> = streams.iter().map(|&s| rig.app(Side::Terminal, s).read).collect();
    let (least, most) = (read.iter().min().expect("some"), read.iter().max().expect("some"));
    assert!(most - least < most / 20, "{read:?}");
    let total: u64 = read.iter().sum();
    assert!(total > 10_600_000, "{total}");
}

#[test]
fn thousands_of_streams_open_and_close() {
    let mut rig = connected(1, 10, 10);
    for _ in 0..3_000 {
        rig.open("echo", App::writer(300));
    }
    assert!(rig.run(Span::from_secs(30), |rig| rig.all_over(Side::Terminal)));
    assert!(rig.run(Span::from_secs(5), |rig| rig.all_over(Side::Hub)));
    assert!(rig.apps.values().all(|app| app.read == 300 && app.ended && app.accepted));
    rig.assert_clean();
}

/// RLY-2.3
#[test]
fn half_closed_streams_stay_open_in_the_other_direction() {
    let mut rig = connected(1, 10, 1);
    // The client sends a FIN at once; the server sends for seconds.
    let stream = rig.open("source-3000000", App { end: true, ..App::default() });
    assert!(rig.run(Span::from_secs(20), |rig| rig.app(Side::Terminal, stream).released));
    assert_eq!(rig.app(Side::Terminal, stream).read, 3_000_000);
    // The server sends a FIN at once; the client continues.
    let stream = rig.open("sink", App::writer(300_000));
    assert!(rig.run(Span::from_secs(20), |rig| rig.app(Side::Terminal, stream).released));
    assert_eq!(rig.app(Side::Hub, stream).read, 300_000);
    rig.run(Span::from_secs(3), |_| false);
    rig.assert_clean();
}

/// RLY-2.2
#[test]
fn a_refusal_and_its_reason_reach_the_client() {
    let mut rig = connected(1, 10, 1);
    let stream = rig.open("refuse", App::writer(1_000));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).is_over()));
    let app = rig.app(Side::Terminal, stream);
    assert_eq!(app.refused, Some(RefuseReason::ConnectionRefused));
    assert!(!app.accepted);
    rig.run(Span::from_secs(3), |_| false);
    rig.assert_clean();
}

/// RLY-4.4: a terminal with a lower limit has less memory than others, including new streams.
#[test]
fn a_terminal_can_have_a_lower_memory_limit() {
    let held = |bytes: Option<u64>| {
        let mut rig = Rig::new(1, mbps(50), mbps(50));
        if let Some(bytes) = bytes {
            rig.hub.set_memory(&["boat"], bytes);
        }
        for _ in 0..10 {
            rig.open("deaf", App::writer(20_000_000));
        }
        rig.run(Span::from_secs(15), |_| false);
        rig.relay(Side::Hub).expect("connected").receive_allocated()
    };
    // The minimum of a stream, and partly filled chunks.
    let each = 10 * (16 << 10) + 10 * (32 << 10);
    assert!(held(None) > (2 << 20) + each);
    let less = held(Some(1 << 20));
    assert!(less <= (1 << 20) + each, "{less}");
}

/// RLY-2.4
#[test]
fn resets_during_a_transfer_release_all_state_at_both_ends() {
    let mut rig = connected(1, 10, 10);
    rig.faults = Faults { loss: 0.05, ..Faults::default() };
    let streams: Vec<_> = (0..20).map(|_| rig.open("echo", App::writer(5_000_000))).collect();
    rig.run(Span::from_secs(6), |_| false);
    for (at, &stream) in streams.iter().enumerate() {
        let side = if at % 2 == 0 { Side::Terminal } else { Side::Hub };
        rig.relay(side).expect("relay").reset(stream, ResetReason::Aborted).expect("open");
        rig.apps.remove(&(side, stream));
        if at % 5 == 0 {
            // Both at the same time.
            let other = if at % 2 == 0 { Side::Hub } else { Side::Terminal };
            rig.relay(other).expect("relay").reset(stream, ResetReason::Aborted).expect("open");
            rig.apps.remove(&(other, stream));
        }
    }
    assert!(rig.run(Span::from_secs(10), |rig| {
        rig.all_over(Side::Terminal) && rig.all_over(Side::Hub)
    }));
    assert!(rig.apps.values().all(|app| app.reset == Some(ResetReason::Aborted)));
    rig.faults = Faults::default();
    rig.run(Span::from_secs(10), |_| false);
    rig.assert_clean();
    // The shared credit is released as well: a new stream runs at the full rate.
    let stream = rig.open("source-5000000", App { end: true, ..App::default() });
    let start = rig.now;
    assert!(rig.run(Span::from_secs(10), |rig| rig.app(Side::Terminal, stream).ended));
    assert!(rig.now.since(start) < Span::from_millis(5_100), "{}", rig.now.since(start));
}

#[test]
fn a_smaller_path_mtu_during_a_transfer_loses_no_data() {
    let mut rig = connected(1, 10, 1);
    rig.faults = Faults { loss: 0.02, ..Faults::default() };
    let stream = rig.open("source-3000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(2), |_| false);
    rig.path_mtu = 1280;
    let now = rig.now;
    rig.relay(Side::Hub).expect("hub").set_mtu(now, 1280);
    assert!(rig.run(Span::from_secs(30), |rig| rig.app(Side::Terminal, stream).ended));
    assert_eq!(rig.app(Side::Terminal, stream).read, 3_000_000);
    rig.run(Span::from_secs(5), |_| false);
    rig.assert_clean();
}

/// RLY-4.4
#[test]
fn a_reader_that_stops_blocks_only_itself_and_memory_is_bounded() {
    let mut terminal = RelayConfig::new("boat").with_rates(Some(mbps(20)), Some(mbps(20)));
    terminal.receive_pool = 8 << 20;
    terminal.shared_credit = 4 << 20;
    terminal.max_streams = 256;
    let hub = terminal.clone();
    let mut rig = Rig::with(1, terminal, hub);
    rig.run(Span::from_secs(3), |_| false);
    // Sixty servers that do not read, each offered more than the pool.
    for _ in 0..60 {
        rig.open("deaf", App::writer(20_000_000));
    }
    rig.run(Span::from_secs(30), |_| false);
    let stream = rig.open("sink", App::writer(4_000_000));
    let start = rig.now;
    assert!(rig.run(Span::from_secs(40), |rig| rig.app(Side::Terminal, stream).released));
    assert_eq!(rig.app(Side::Hub, stream).read, 4_000_000);
    let took = rig.now.since(start);
    assert!(took < Span::from_secs(8), "{took} for what takes 1.7 s and a few round trips");
    // Chunks of a buffer have 16 KB: each stream may have one partly filled.
    let bound = rig.hub_config.receive_bound() + 61 * (16 << 10);
    assert!(rig.fullest[1] as u64 <= bound, "{} of {bound}", rig.fullest[1]);
    assert!(rig.fullest[1] > 1 << 20, "the test fills the pool");
    assert_eq!(violations(&mut rig), 0);
}

/// Returns how many violations of flow control either side has detected.
fn violations(rig: &mut Rig) -> u64 {
    let statistics = |rig: &mut Rig, side| rig.relay(side).expect("relay").statistics();
    [Side::Terminal, Side::Hub].map(|side| statistics(rig, side).credit_violations).iter().sum()
}

/// RLY-4.2
#[test]
fn senders_stay_within_scarce_shared_credit() {
    for seed in 0..6 {
        let mut terminal = RelayConfig::new("boat").with_rates(Some(mbps(20)), Some(mbps(20)));
        terminal.shared_credit = 256 << 10;
        terminal.receive_pool = (256 << 10) + (128 << 10);
        let mut rig = Rig::with(seed, terminal.clone(), terminal);
        rig.faults = Faults { loss: 0.05, reorder: 0.1, ..Faults::default() };
        let streams: Vec<_> = (0..40)
            .map(|_| rig.open("source-120000", App { end: true, ..App::default() }))
            .collect();
        for round in 0..8 {
            for (at, &stream) in streams.iter().enumerate() {
                let app = rig.apps.get_mut(&(Side::Terminal, stream)).expect("app");
                // At first there is no reader, until all credit is used.
                app.deaf = round < 3 || (at + round) % 3 == 0;
                rig.pump(Side::Terminal, stream);
            }
            rig.run(Span::from_secs(1), |_| false);
        }
        let _ = rig.terminal.reset(streams[0], ResetReason::Aborted);
        rig.apps.remove(&(Side::Terminal, streams[0]));
        for &stream in &streams[1..] {
            rig.apps.get_mut(&(Side::Terminal, stream)).expect("app").deaf = false;
            rig.pump(Side::Terminal, stream);
        }
        assert!(rig.run(Span::from_secs(120), |rig| rig.all_over(Side::Terminal)), "stalled");
        assert!(streams[1..].iter().all(|&s| rig.app(Side::Terminal, s).read == 120_000));
        assert_eq!(violations(&mut rig), 0, "seed {seed}");
    }
}

#[test]
fn a_paused_reader_continues_where_it_stopped() {
    let mut rig = connected(1, 10, 1);
    rig.faults = Faults { loss: 0.1, ..Faults::default() };
    let app = App { end: true, ..App::default() };
    let streams: Vec<_> = (0..8).map(|_| rig.open("source-3000000", app.clone())).collect();
    for round in 0..4 {
        for &stream in &streams {
            rig.apps.get_mut(&(Side::Terminal, stream)).expect("app").deaf = round % 2 == 0;
            rig.pump(Side::Terminal, stream);
        }
        // Long enough to send everything that flow control permits, and for the link to be idle.
        rig.run(Span::from_secs(15), |_| false);
    }
    assert!(rig.run(Span::from_secs(60), |rig| rig.all_over(Side::Terminal)), "stalled");
    assert!(streams.iter().all(|&s| rig.app(Side::Terminal, s).read == 3_000_000));
    assert_eq!(violations(&mut rig), 0);
}

/// RLY-2.6
#[test]
fn a_flood_of_opens_is_refused_at_both_ends() {
    let mut rig = connected(1, 10, 10);
    let limit = rig.hub_config.max_streams;
    for _ in 0..limit {
        rig.open("echo", App::default());
    }
    let refused = rig.open_as("echo", Priority::Normal, &App::default());
    assert_eq!(refused, Err(OpenError::Limit { open: limit, limit }));
    rig.run(Span::from_secs(5), |_| false);
    assert!(rig.apps.iter().all(|((side, _), app)| *side == Side::Hub || app.accepted));

    // A terminal without the hub's limit learns of it by refusals.
    let terminal = RelayConfig::new("boat").with_rates(Some(mbps(10)), Some(mbps(10)));
    let hub = RelayConfig { max_streams: 20, ..terminal.clone() };
    let mut rig = Rig::with(1, terminal, hub);
    for _ in 0..35 {
        rig.open("echo", App::default());
    }
    rig.run(Span::from_secs(5), |_| false);
    let refused = rig.apps.values().filter(|app| app.refused == Some(RefuseReason::Limit)).count();
    assert_eq!(refused, 15);
    assert_eq!(rig.relay(Side::Hub).expect("hub").statistics().streams, 20);
}

/// RLY-2.7
#[test]
fn a_restarted_hub_is_detected_and_streams_are_reset() {
    let mut rig = connected(1, 10, 1);
    rig.open("echo", App::writer(1_000_000));
    rig.run(Span::from_secs(1), |_| false);
    rig.connected.clear();
    rig.restart_hub();
    let start = rig.now;
    assert!(rig.run(Span::from_secs(20), |rig| rig.connected.len() == 2));
    assert!(rig.now.since(start) < Span::from_secs(4), "{}", rig.now.since(start));
    assert_eq!(rig.disconnected, [(Side::Terminal, DisconnectReason::PeerRestarted)]);
    let stream = rig.open("echo", App::writer(1_000));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
}

#[test]
fn a_refused_session_is_requested_again() {
    let mut rig = Rig::new(1, mbps(10), mbps(1));
    // Hello, Welcome, BGN; then the BGNAK is lost and the hub stops, so that the response is RST.
    rig.run(Span::from_millis(850), |_| false);
    rig.faults.loss = 1.0;
    rig.run(Span::from_millis(100), |_| false);
    assert_eq!(rig.connected.len(), 1, "the hub alone");
    rig.faults.loss = 0.0;
    let now = rig.now;
    rig.hub.close(now);
    rig.run(Span::from_millis(350), |_| false);
    assert_eq!(rig.disconnected.len(), 1);
    rig.connected.clear();
    rig.restart_hub();
    assert!(rig.run(Span::from_secs(10), |rig| rig.connected.len() == 2));
}

#[test]
fn a_restarted_terminal_is_recognised() {
    let mut rig = connected(1, 10, 1);
    rig.open("source-9000000", App::default());
    rig.run(Span::from_secs(1), |_| false);
    rig.connected.clear();
    rig.restart_terminal();
    assert!(rig.run(Span::from_secs(4), |rig| rig.connected.len() == 2));
    assert_eq!(rig.disconnected, [(Side::Hub, DisconnectReason::PeerRestarted)]);
    let stream = rig.open("echo", App::writer(1_000));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
}

#[test]
fn an_outage_of_ten_seconds_resets_no_stream() {
    let mut rig = connected(1, 10, 1);
    let stream = rig.open("source-10000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(3), |_| false);
    rig.dark_until = rig.now + Span::from_secs(10);
    assert!(rig.run(Span::from_secs(40), |rig| rig.app(Side::Terminal, stream).ended));
    assert_eq!(rig.app(Side::Terminal, stream).read, 10_000_000);
    assert!(rig.disconnected.is_empty());
}

#[test]
fn an_idle_hour_keeps_the_session() {
    let mut rig = connected(1, 10, 1);
    rig.run(Span::from_secs(3_600), |_| false);
    assert!(rig.disconnected.is_empty());
    let stream = rig.open("echo", App::writer(1_000));
    assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
}

#[test]
fn a_download_uses_little_of_the_return_channel() {
    let mut rig = connected(1, 10, 1);
    for streams in [1, 50, 450] {
        for _ in 0..streams {
            rig.open("source-100000000", App::default());
        }
        rig.run(Span::from_secs(5), |_| false);
        let before = rig.offered[0].0;
        rig.run(Span::from_secs(20), |_| false);
        let rate = (rig.offered[0].0 - before) * 8 / 20;
        assert!(rate < 4_000, "{rate} bit/s with {streams} more streams");
    }
}

#[test]
fn a_closing_side_is_removed_at_the_other_immediately() {
    for side in [Side::Terminal, Side::Hub] {
        let mut rig = connected(1, 10, 1);
        rig.open("source-9000000", App::default());
        rig.run(Span::from_secs(2), |_| false);
        let (now, other) = (rig.now, if side == Side::Hub { Side::Terminal } else { Side::Hub });
        match side {
            Side::Terminal => rig.terminal.close(now),
            Side::Hub => rig.hub.close(now),
        }
        rig.run(Span::from_millis(350), |_| false);
        assert_eq!(rig.disconnected, [(other, DisconnectReason::Closed)]);
        assert!(rig.terminal.totals().sessions == 1 && rig.hub.totals().bytes_sent > 1_000_000);
    }
}

#[test]
fn a_loss_is_reported_long_after_the_start() {
    // Longer than the timeout of associations without payload, which must not apply.
    let mut rig = connected(1, 10, 1);
    rig.open("source-1000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(100), |_| false);
    rig.dark_until = rig.now + Span::from_secs(100_000);
    let hub_disconnected = |rig: &Rig| rig.disconnected.iter().any(|(side, _)| *side == Side::Hub);
    assert!(rig.run(Span::from_secs(10_000), hub_disconnected), "{:?}", rig.disconnected);
    assert_eq!(rig.hub.totals().sessions, 1);

    // The counters of a hub remain after it closes.
    let mut rig = connected(1, 10, 1);
    rig.open("source-1000000", App { end: true, ..App::default() });
    rig.run(Span::from_secs(100), |_| false);
    let now = rig.now;
    rig.hub.close(now);
    rig.run(Span::from_secs(2), |_| false);
    assert!(rig.hub.totals().sessions >= 1 && rig.hub.totals().bytes_sent >= 1_000_000);
}
