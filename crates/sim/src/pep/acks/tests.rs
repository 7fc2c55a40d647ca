//! Treatment of acknowledgements: constructed traces, and a transfer over a low-rate return link.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Tcp, TcpId};
use crate::network::NodeId;
use crate::pep::{Inline, Shaped, Shaper, TokenBucket};
use satlink::{Direction, LinkConfig};
use simtcp::{Flags, Options, Ports, TcpConfig};
use units::BitRate;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

/// An acknowledgement of `number` from node 1, with `len` octets of data.
fn ack(port: u16, number: u64, len: u32) -> Packet {
    let [left, right] = [0, 1].map(NodeId::numbered);
    let segment = Segment {
        ports: Ports { from: port, to: 7 },
        sequence: 1,
        acknowledgement: Some(number),
        window: 1_000,
        flags: Flags::default(),
        ecn: Default::default(),
        options: Options::default(),
        payload: simtcp::Payload { content: 0, offset: 0, len },
    };
    Packet::tcp(right, left, Box::new(segment))
}

fn numbers(out: &mut Output) -> Vec<u64> {
    out.drain(..).filter_map(|(_, packet)| packet.segment()?.acknowledgement).collect()
}

/// A return link that takes 10 ms per 40-octet acknowledgement.
fn channel() -> Shaper {
    let config = TokenBucket { rate: BitRate::from_bps(32_000), bucket: 40, limit: 4_000 };
    Shaper::new(config, Toward::Left).filtering_acks()
}

#[test]
fn only_the_latest_queued_acknowledgement_is_sent() {
    let (mut shaper, mut out) = (channel(), Output::new());
    for packet in [ack(80, 1_000, 0), ack(80, 2_000, 0), ack(80, 3_000, 0), ack(80, 4_000, 0)] {
        shaper.pass(at(0), Toward::Left, packet, &mut out);
    }
    // The first was sent immediately; the fourth replaced the second and the third.
    shaper.handle_timeout(at(10), &mut out);
    assert_eq!(numbers(&mut out), [1_000, 4_000]);
    assert_eq!(
        shaper.counts(),
        Shaped { passed: 2, filtered: 2, max_queued: 40, ..shaper.counts() }
    );
}

#[test]
fn duplicates_data_and_other_connections_are_not_filtered() {
    let (mut shaper, mut out) = (channel(), Output::new());
    let packets = [
        ack(80, 1, 0),
        ack(80, 1_000, 0),
        ack(80, 1_000, 0),
        ack(80, 1_000, 100),
        ack(81, 5_000, 0),
        ack(80, 900, 0),
    ];
    for packet in packets {
        shaper.pass(at(0), Toward::Left, packet, &mut out);
    }
    for step in 1..20 {
        shaper.handle_timeout(at(10 * step), &mut out);
    }
    assert_eq!(numbers(&mut out), [1, 1_000, 1_000, 1_000, 5_000, 900]);
    // The newer one makes both duplicates redundant and takes the place of the first.
    for packet in [ack(80, 1, 0), ack(80, 2_000, 0), ack(80, 2_000, 0), ack(81, 1, 0)] {
        shaper.pass(at(1_000), Toward::Left, packet, &mut out);
    }
    shaper.pass(at(1_000), Toward::Left, ack(80, 3_000, 0), &mut out);
    for step in 1..20 {
        shaper.handle_timeout(at(1_000 + 10 * step), &mut out);
    }
    assert_eq!(numbers(&mut out), [1, 3_000, 1]);
}

#[test]
fn filtered_acknowledgements_are_regenerated_and_spaced() {
    let rebuilder = AckRebuilder::new(Toward::Left, 2_000, 10);
    let spacer = AckSpacer::new(Toward::Left, Span::from_millis(5), 100);
    // Towards the left the spacer is behind the rebuilder.
    let (mut both, mut out) = ((spacer, rebuilder), Output::new());
    both.pass(at(0), Toward::Left, ack(80, 1_000, 0), &mut out);
    both.pass(at(100), Toward::Left, ack(80, 9_500, 0), &mut out);
    assert_eq!(numbers(&mut out), [1_000, 1_500], "and then one in 5 ms");
    for (millis, number) in [(105, 3_500), (110, 5_500), (115, 7_500), (120, 9_500)] {
        assert_eq!(both.poll_timeout(), Some(at(millis)));
        both.handle_timeout(at(millis), &mut out);
        assert_eq!(numbers(&mut out), [number]);
    }
    // A duplicate, and a step of one stride, are forwarded unchanged.
    both.pass(at(200), Toward::Left, ack(80, 9_500, 0), &mut out);
    both.pass(at(300), Toward::Left, ack(80, 11_500, 0), &mut out);
    assert_eq!(numbers(&mut out), [9_500, 11_500]);
    assert_eq!(both.1.made(), 4);
    // The last ones, up to the limit.
    both.1.pass(at(400), Toward::Left, ack(80, 111_500, 0), &mut out);
    assert_eq!(numbers(&mut out).len(), 11);
}

#[test]
fn full_spacer_releases_the_oldest_and_the_other_direction_is_not_delayed() {
    let (mut spacer, mut out) =
        (AckSpacer::new(Toward::Left, Span::from_millis(5), 1), Output::new());
    for number in [1, 2, 3] {
        spacer.pass(at(0), Toward::Left, ack(80, number, 0), &mut out);
    }
    assert_eq!(numbers(&mut out), [1, 2], "the oldest makes room");
    spacer.pass(at(0), Toward::Right, ack(80, 4, 0), &mut out);
    spacer.pass(at(0), Toward::Left, ack(80, 5, 100), &mut out);
    assert_eq!(numbers(&mut out), [4, 5]);
    spacer.handle_timeout(at(5), &mut out);
    assert_eq!(numbers(&mut out), [3], "in its turn");
}

#[test]
fn new_connections_and_window_probes_are_not_rebuilt() {
    let (mut rebuilder, mut out) = (AckRebuilder::new(Toward::Left, 2_000, 10), Output::new());
    let mut syn = ack(80, 1, 0);
    syn.change_segment(|segment| segment.flags.syn = true);
    for packet in [ack(80, 90_000, 0), syn, ack(80, 2_001, 0), ack(80, 6_001, 0)] {
        rebuilder.pass(at(0), Toward::Left, packet, &mut out);
    }
    assert_eq!(numbers(&mut out), [90_000, 1, 2_001, 4_001, 6_001]);
    let mut probe = ack(80, 8_001, 0);
    assert_eq!(pure_ack(&probe), Some(8_001));
    let asked = simtcp::Probe { cycle: 1, second: false, answer: false };
    probe.change_segment(|segment| segment.options.probe = Some(asked));
    assert_eq!(pure_ack(&probe), None);
}

/// The elements at the terminal's side of the return link, and at the hub's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    Filter,
    FilterAndRebuild,
}

/// Downloads 4 Mbyte at 4 Mbit/s with a return link of 5 kbit/s. Returns the seconds, and the
/// filter's counters.
fn transfer(with: With) -> (f64, Shaped, u64) {
    let link = |words: &str| -> LinkConfig { satlink::words::parse_link(words).expect("words") };
    // A sender whose window grows with each acknowledgement, as in 1999.
    let tcp = TcpConfig { byte_counting: false, receive_buffer: 200_000, ..TcpConfig::sack() };
    let mut net = Network::new(5, 0);
    let sink = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), BulkReceiver::new(3)));
    let source = net.host_with(|node| {
        let transport = Tcp::client(node, &tcp, Address::new(sink, 80));
        Host::new(transport, BulkSender::<TcpId>::new(at(0), 4_000_000, 3))
    });
    let rate = BitRate::from_bps(5_000);
    // Without filtering it is the queue of the return link.
    let config = TokenBucket { rate, bucket: 100, limit: 4_100 };
    let filter = Shaper::new(config, Toward::Left);
    let filter = if with == With::Nothing { filter } else { filter.filtering_acks() };
    let terminal = net.gateway_with(|_| Inline::new(filter, [source]));
    let hub = if with == With::FilterAndRebuild {
        let spacer = AckSpacer::new(Toward::Left, Span::from_millis(6), 1_000);
        let pair = (spacer, AckRebuilder::new(Toward::Left, 2_920, 64));
        net.gateway_with(|_| Inline::new(pair, [source]))
    } else {
        net.router()
    };
    net.link(source, hub, &link("both rate 100mbit"));
    let space = net.link(
        hub,
        terminal,
        &link("forward rate 4mbit delay 50ms limit 300k return rate 1mbit delay 50ms"),
    );
    net.link(terminal, sink, &link("both rate 100mbit"));
    net.run_until(at(3_600_000));
    type Receiver = Host<Tcp, BulkReceiver<TcpId>>;
    let seen = &net.node::<Receiver>(sink).application;
    assert!(seen.is_done() && seen.received() == 4_000_000, "{with:?}");
    let took = seen.streams().next().and_then(|stream| stream.ended).expect("it ended");
    let counts = net.node::<Inline<Shaper>>(terminal).element.counts();
    let acknowledgement_octets = net.delivered(space, Direction::Return).total().bytes;
    (took.since(at(0)).as_secs_f64(), counts, acknowledgement_octets)
}

#[test]
fn filtering_allows_a_fast_download_over_a_low_rate_return_link() {
    let (plain, waiting, _) = transfer(With::Nothing);
    let (filtered, counts, acknowledgement_octets) = transfer(With::Filter);
    let (rebuilt, ..) = transfer(With::FilterAndRebuild);
    // 4 Mbit/s cause 171 acknowledgements per second of at least 40 octets, 55 kbit/s.
    assert!(waiting.passed > 1_300 && waiting.max_queued > 2_000, "{waiting:?}");
    assert!(counts.passed < 200 && counts.max_queued <= 40, "{counts:?}");
    assert!(
        counts.filtered > 1_000 && acknowledgement_octets < 12_000,
        "{counts:?} {acknowledgement_octets}"
    );
    assert!(filtered < 0.2 * plain && filtered < 9.5, "{plain} {filtered} {rebuilt}");
    assert!(rebuilt < filtered, "{plain} {filtered} {rebuilt}");
}
