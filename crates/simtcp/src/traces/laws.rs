//! Windows based on the round trip or the rate, and probing, on whole connections.

use super::windows::{plain, rounds, ten};
use super::wire::Wire;
use crate::{AfterIdle, DelayedAck, Ecn, RtoConfig, TcpConfig};
use std::vec::Vec;
use units::{BitRate, Instant, RngStream, Serializer, Span};

const MSS: u64 = 1_000;
const ROUND: Span = Span::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// 10 Mbit/s, 100 ms, and a queue of `queue` octets.
fn line(config: &TcpConfig, queue: u64) -> Wire {
    Wire::new(config, ROUND / 2).with_line(Serializer::new(BitRate::from_mbps(10)), queue)
}

/// Runs for so many seconds with unlimited data; returns the goodput of the last ten.
fn saturate(wire: &mut Wire, seconds: u64) -> f64 {
    let mut before = 0;
    for tenth in 1..=seconds * 10 {
        wire.client.write(u64::MAX);
        wire.run_until(at(tenth * 100));
        if tenth == (seconds - 10) * 10 {
            before = wire.read;
        }
    }
    (wire.read - before) as f64 * 8.0 / 10.0
}

#[test]
fn vegas_leaves_slow_start_before_the_queue_is_full_and_loses_nothing() {
    // The bandwidth-delay product is 125 KB; Vegas needs two to four segments of queue.
    let mut wire = line(&TcpConfig::vegas(), 30_000);
    let rate = saturate(&mut wire, 30);
    assert!(rate > 9.0e6, "{rate}");
    let counters = wire.client.counters();
    assert_eq!((counters.retransmitted_segments, counters.timeouts), (0, 0));
    let window = wire.client.snapshot().congestion_window as f64 / 1_460.0;
    // 10 Mbit/s × 101.2 ms are 84.3 segments of 1500 bytes.
    assert!((78.0..92.0).contains(&window), "{window}");
}

#[test]
fn bbr_keeps_the_link_full_and_the_queue_short() {
    let mut wire = line(&TcpConfig::bbr(), 250_000);
    let rate = saturate(&mut wire, 30);
    assert!(rate > 9.0e6, "{rate}");
    let round_trip = wire.client.snapshot().round_trip.unwrap();
    assert!(round_trip < Span::from_millis(140), "no 250 KB of queue, 200 ms: {round_trip}");
    // Every fiftieth is lost, which reduces the rate by little more than probing does.
    let mut count = 0_u64;
    let mut lossy = line(&TcpConfig::bbr(), 250_000).losing(move |_, segment| {
        count += u64::from(segment.payload.len > 0);
        segment.payload.len > 0 && count.is_multiple_of(50)
    });
    let rate = saturate(&mut lossy, 30);
    assert!(rate > 8.0e6, "{rate}");
}

#[test]
fn bbr_does_not_depend_on_the_time_of_opening() {
    let initial_window = crate::InitialWindow::Segments(10);
    let config = TcpConfig { initial_window, ..plain(&TcpConfig::bbr()) };
    let mut wire = Wire::new(&config, ROUND / 2);
    wire.now = at(20_000);
    wire.client.write(1_000 * MSS);
    wire.run_until(at(20_199));
    assert_eq!(wire.sent.iter().filter(|sent| sent.1.payload.len > 0).count(), 10);
}

#[test]
fn pacing_spreads_a_window_over_the_round_trip() {
    let config = TcpConfig { pacing: true, ..plain(&TcpConfig::new_reno()) };
    let config = TcpConfig { initial_window: crate::InitialWindow::Segments(20), ..config };
    let mut wire = Wire::new(&config, ROUND / 2);
    wire.client.write(1_000 * MSS);
    wire.run_until(at(199));
    let sent: Vec<u64> = wire
        .sent
        .iter()
        .filter(|sent| sent.1.payload.len > 0)
        .map(|sent| sent.0.as_nanos())
        .collect();
    // Ten immediately, then at twice the window per round trip: 2.5 ms apart.
    assert_eq!(sent.len(), 20);
    assert!(sent[..11].iter().all(|&sent| sent == sent_at(100)), "{sent:?}");
    for (index, pair) in sent[10..].windows(2).enumerate() {
        assert_eq!(pair[1] - pair[0], 2_500_000, "{index}");
    }
}

fn sent_at(millis: u64) -> u64 {
    at(millis).as_nanos()
}

#[test]
fn window_after_idle_is_kept_paced_halved_or_reset() {
    let burst = |after_idle| {
        let config = TcpConfig { after_idle, ..plain(&TcpConfig::new_reno()) };
        let mut wire = Wire::new(&config, ROUND / 2);
        wire.client.write(31 * MSS);
        wire.run_until(at(4_100));
        // 1, 2, 4, 8 and 16 have made the window 32; 3.5 s later, which is three timeouts:
        wire.client.write(100 * MSS);
        wire.run_until(at(4_101));
        wire.sent.iter().filter(|sent| sent.0 >= at(4_100)).count()
    };
    let kept = burst(AfterIdle::Keep);
    assert!(kept >= 16, "{kept}");
    assert_eq!(burst(AfterIdle::SlowStart), 1, "RFC 5681, section 4.1");
    assert_eq!(burst(AfterIdle::Decay), kept / 8, "RFC 2861: three halvings");
    assert_eq!(burst(AfterIdle::Paced), 1, "one, and the next 100 ms / {kept} later");
}

#[test]
fn a_probe_finds_no_congestion_and_the_window_stays() {
    let mut wire = ten(&TcpConfig::probing(), &[3]);
    let sent = rounds(&mut wire, 6);
    // 0 to 2 open the window to 13; the duplicates of 4 and 5 allow 16 and 17 (RFC 3042); at the
    // third only a probe is sent.
    assert_eq!(sent[1], [10, 11, 12, 13, 14, 15, 16, 17]);
    // The second probe is sent when the first is answered; then 3 is retransmitted, and no new
    // data: the window of 13 plus 6 and 8 segments of inflation has 15 in flight.
    assert_eq!(sent[2], [] as [u64; 0]);
    assert_eq!(sent[3][0], 3, "{sent:?}");
    let probes: Vec<_> = wire.sent.iter().filter_map(|sent| sent.1.options.probe).collect();
    assert_eq!(
        probes.iter().map(|probe| (probe.cycle, probe.second)).collect::<Vec<_>>()[1..],
        [(1, false), (1, true)]
    );
    assert!(wire.client.snapshot().congestion_window >= 13 * MSS, "immediate recovery");
    assert_eq!(wire.client.counters().timeouts, 0);
}

#[test]
fn lost_probe_starts_a_new_cycle_and_a_slow_response_means_congestion() {
    // The first probe is lost.
    let mut probes = 0;
    let mut seen = false;
    let config = TcpConfig {
        initial_window: crate::InitialWindow::Segments(10),
        ..plain(&TcpConfig::probing())
    };
    let mut wire = Wire::new(&config, ROUND / 2).losing(move |_, segment| {
        let third = segment.payload.len > 0 && segment.payload.offset == 3_000;
        if segment.options.probe.is_some() && !segment.flags.syn {
            probes += 1;
            return probes == 1;
        }
        third && !core::mem::replace(&mut seen, true)
    });
    wire.client.write(1_000 * MSS);
    wire.run_until(at(1_500));
    let cycles: Vec<_> =
        wire.sent.iter().filter_map(|s| s.1.options.probe.map(|p| (s.0, p.cycle))).collect();
    // Detected at 200 ms; aborted after twice the estimate, 100 ms.
    assert_eq!(cycles[1..], [(at(200), 1), (at(400), 2), (at(500), 2)]);
    assert_eq!(wire.client.snapshot().threshold, u64::MAX);
    // On a link with a growing queue the probes' round trip exceeds the estimate.
    let mut slow = line(&TcpConfig::probing(), 60_000);
    let rate = saturate(&mut slow, 20);
    assert!(rate > 2e6 && slow.client.snapshot().threshold < u64::MAX, "{rate}");
}

#[test]
fn a_marked_segment_halves_the_window_once_and_is_confirmed() {
    let config = TcpConfig { ecn: true, ..plain(&TcpConfig::new_reno()) };
    let mut wire = Wire::new(&config, ROUND / 2);
    wire.marks = Some(20);
    wire.client.write(1_000 * MSS);
    let sent = rounds(&mut wire, 8);
    let count: Vec<usize> = sent.iter().map(Vec::len).collect();
    assert_eq!(count[..5], [1, 2, 4, 8, 16]);
    assert!(wire.sent[0].1.flags.ece && wire.sent[0].1.flags.cwr, "RFC 3168, section 6.1.1");
    assert_eq!(wire.sent[2].1.ecn, Ecn::Capable);
    let counters = wire.client.counters();
    assert_eq!((counters.marks, counters.retransmitted_segments), (1, 0));
    // Segment 20 is the sixth of the fifth round. Its echo arrives when 20 is acknowledged: 16 + 5
    // segments of window, 16 + 10 − 6 less the one: half of the flight.
    let threshold = wire.client.snapshot().threshold;
    assert!((9_000..=11_000).contains(&threshold), "{threshold}");
    let confirms = wire.sent.iter().filter(|sent| sent.1.flags.cwr && !sent.1.flags.syn).count();
    assert_eq!(confirms, 1, "CWR once (section 6.1.2)");
    let echoes = wire.answers.iter().filter(|answer| answer.1.flags.ece).count();
    assert!(echoes > 3, "ECE until CWR has come: {echoes}");
}

#[test]
fn duplicates_are_reported_and_old_segments_dropped() {
    let config = TcpConfig {
        d_sack: true,
        delayed_ack: DelayedAck::OFF,
        rto: RtoConfig { min: Span::from_millis(200), ..TcpConfig::sack().rto },
        ..TcpConfig::sack()
    };
    // The acknowledgements of the first three segments are lost: all three are retransmitted.
    let mut wire = Wire::new(&config, ROUND / 2).losing_answers(|count, _| (1..4).contains(&count));
    wire.client.write(3 * 1_460);
    wire.run_until(at(5_000));
    let twice: Vec<_> =
        wire.answers.iter().filter(|answer| answer.1.options.sack.as_slice().len() == 1).collect();
    let (_, first) = twice.first().expect("a report");
    // RFC 2883, section 4.1: the block is below the acknowledgement number.
    assert_eq!(first.options.sack.as_slice(), [(1, 1_461)]);
    assert_eq!(first.acknowledgement, Some(4_381));
    assert!(wire.client.counters().reported_duplicates > 0);
    // PAWS: a segment with a timestamp before that of the last in order.
    let mut wire = Wire::new(&TcpConfig::cubic(), ROUND / 2);
    wire.client.write(1_000);
    wire.run_until(at(1_000));
    let mut old = wire.sent.iter().find(|sent| sent.1.payload.len > 0).unwrap().1;
    old.options.timestamps = Some((1, 0));
    old.sequence = 1_001;
    old.payload.offset = 1_000;
    wire.server.handle_segment(at(1_000), &old);
    assert_eq!(wire.server.read(u64::MAX), None);
    assert_eq!(wire.server.poll_transmit(at(1_000)).unwrap().acknowledgement, Some(1_001));
}

#[test]
fn accurate_feedback_counts_marks_and_needs_both_ends() {
    let config = plain(&TcpConfig::prague());
    let mut wire = Wire::new(&config, ROUND / 2);
    wire.marks = Some(20);
    wire.client.write(1_000 * MSS);
    rounds(&mut wire, 8);
    let syn = wire.sent[0].1.flags;
    assert!(syn.ae && syn.cwr && syn.ece, "RFC 9768, section 3.1.1");
    let answer = wire.answers[0].1.flags;
    assert_eq!(answer.ace(), 0b010, "its table 2: the SYN was not ECN-capable");
    assert!(wire.sent.iter().any(|sent| sent.1.ecn == Ecn::Scalable));
    let counters = wire.client.counters();
    assert_eq!((counters.marks, counters.retransmitted_segments), (1, 0));
    // Counters begin with 5; the one mark makes them 6.
    let counts: Vec<u8> = wire.answers.iter().skip(1).map(|answer| answer.1.flags.ace()).collect();
    assert_eq!((counts.first(), counts.last()), (Some(&5), Some(&6)));
    // A server with the feedback of RFC 3168 alone: ECT(0), and the window is halved as by a loss.
    let classic = TcpConfig { accurate_ecn: false, ..config.clone() };
    let ports = crate::Ports { from: 1_000, to: 80 };
    let ends =
        (crate::Endpoint::connect(&config, ports, 1), crate::Endpoint::listen(&classic, 80, 2));
    let mut wire = Wire::between(ends.0, ends.1, ROUND / 2);
    wire.marks = Some(20);
    wire.client.write(1_000 * MSS);
    rounds(&mut wire, 8);
    assert!(wire.sent.iter().any(|sent| sent.1.ecn == Ecn::Capable));
    assert!(wire.sent.iter().all(|sent| sent.1.ecn != Ecn::Scalable));
    assert_eq!(wire.client.counters().marks, 1);
}

#[test]
fn known_loss_waits_for_room_in_probe_rtt_without_a_timeout() {
    // Geostationary, one product of queue, a loss in a thousand: a segment that is known to be lost
    // in ProbeRTT waits until the flight has fallen to half of a product, for longer than the
    // timer's margin of 200 ms.
    for seed in [3, 5] {
        let mut chance = RngStream::new(seed, 0, "zz");
        let mut wire = Wire::new(&TcpConfig::bbr3(), Span::from_millis(300))
            .with_line(Serializer::new(BitRate::from_mbps(10)), 750_000)
            .losing(move |_, segment| segment.payload.len > 0 && chance.chance(0.001));
        let rate = saturate(&mut wire, 90);
        let counters = wire.client.counters();
        assert!(counters.recoveries > 20 && rate > 8.0e6, "{rate}");
        assert_eq!(counters.timeouts, 0, "seed {seed}");
    }
}
