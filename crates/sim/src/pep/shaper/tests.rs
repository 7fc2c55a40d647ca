//! The bucket with constructed packets, and its effect on a burst.

use super::*;
use crate::Network;
use crate::network::{Address, NodeId};
use crate::pep::Inline;
use crate::tcp::{FlowPlan, TcpSink, TcpSource};
use proptest::prelude::*;
use satlink::{Direction, DropCause};
use simtcp::TcpConfig;
use units::Span;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn packet(bytes: usize) -> Packet {
    let [left, right] = [0, 1].map(|node| Address::new(NodeId::numbered(node), 7));
    Packet::udp(left, right, vec![0; bytes - 28])
}

/// One octet per millisecond, a bucket of 300.
fn bucket(limit: u64) -> TokenBucket {
    TokenBucket { rate: BitRate::from_bps(8_000), bucket: 300, limit }
}

#[test]
fn full_bucket_allows_a_burst_and_then_the_token_rate() {
    let (mut shaper, mut out) = (Shaper::new(bucket(700), Toward::Right), Output::new());
    for _ in 0..5 {
        shaper.pass(at(1_000), Toward::Right, packet(100), &mut out);
    }
    assert_eq!(out.len(), 3, "300 bytes of tokens");
    for (millis, gone) in [(1_100, 4), (1_200, 5)] {
        assert_eq!(shaper.poll_timeout(), Some(at(millis)));
        shaper.handle_timeout(at(millis), &mut out);
        assert_eq!(out.len(), gone);
    }
    // Empty; after 250 ms there are 250 tokens, after 1 s at most 300.
    for (millis, gone) in [(1_450, 7), (3_000, 10)] {
        while shaper.poll_timeout().is_none_or(|next| next <= at(millis)) {
            shaper.pass(at(millis), Toward::Right, packet(100), &mut out);
        }
        assert_eq!(out.len(), gone);
        let rest = shaper.poll_timeout().expect("one waits");
        shaper.handle_timeout(rest, &mut out);
        out.pop_back();
    }
}

#[test]
fn limit_equal_to_the_bucket_polices() {
    let (mut shaper, mut out) = (Shaper::new(bucket(300), Toward::Right), Output::new());
    for _ in 0..10 {
        shaper.pass(at(0), Toward::Right, packet(100), &mut out);
        shaper.pass(at(0), Toward::Left, packet(100), &mut out);
    }
    assert_eq!(out.iter().filter(|(toward, _)| *toward == Toward::Right).count(), 3);
    assert_eq!(out.len(), 13, "the other way is open");
    assert_eq!(shaper.counts(), Shaped { passed: 3, dropped: 7, ..Shaped::default() });
    assert_eq!(shaper.poll_timeout(), None);
}

#[test]
fn at_most_one_bucket_is_sent_per_clock_tick() {
    // One octet per millisecond and a clock resolution of 1 s: 300 of the 1,000 tokens are kept.
    let shaper = Shaper::new(bucket(100_000), Toward::Right).stepping(Span::from_secs(1));
    let (mut shaper, mut out) = (shaper, Output::new());
    for _ in 0..12 {
        shaper.pass(at(1_500), Toward::Right, packet(100), &mut out);
    }
    assert_eq!(out.len(), 3);
    for (millis, gone) in [(2_000, 6), (3_000, 9), (4_000, 12)] {
        assert_eq!(shaper.poll_timeout(), Some(at(millis)));
        shaper.handle_timeout(at(millis - 1), &mut out);
        assert_eq!(out.len(), gone - 3, "not before the step");
        shaper.handle_timeout(at(millis), &mut out);
        assert_eq!(out.len(), gone);
    }
}

proptest! {
    /// In any interval at most the bucket and the interval's tokens are sent; drops are counted;
    /// the order is kept.
    #[test]
    fn no_interval_exceeds_its_tokens(
        arrivals in prop::collection::vec((0..200_u64, 40..300_usize), 1..80),
        limit in 300..2_000_u64,
    ) {
        let mut shaper = Shaper::new(bucket(limit), Toward::Right);
        let (mut out, mut gone, mut now) = (Output::new(), Vec::new(), 0);
        let mut take = |millis: u64, out: &mut Output| {
            gone.extend(out.drain(..).map(|(_, packet)| (millis, packet.len() as u64)));
        };
        for &(pause, bytes) in &arrivals {
            for millis in now..now + pause {
                shaper.handle_timeout(at(millis), &mut out);
                take(millis, &mut out);
            }
            now += pause;
            shaper.pass(at(now), Toward::Right, packet(bytes), &mut out);
            take(now, &mut out);
        }
        for millis in now..now + 5_000 {
            shaper.handle_timeout(at(millis), &mut out);
            take(millis, &mut out);
        }
        let counts = shaper.counts();
        prop_assert_eq!(counts.passed + counts.dropped, arrivals.len() as u64);
        prop_assert!(counts.passed == gone.len() as u64 && counts.max_queued <= limit - 300);
        for first in 0..gone.len() {
            let mut sum = 0;
            for &(millis, bytes) in &gone[first..] {
                sum += bytes;
                let tokens = 300 + millis - gone[first].0;
                // 1 ms for the time of the call.
                prop_assert!(sum <= tokens + 1, "{} of {}", sum, tokens);
            }
        }
    }
}

#[test]
fn shaped_sender_has_no_loss_at_the_bottleneck() {
    // S.1711 Annex 3, 3.3.2: a fast network, a slower one behind it, a short queue between them.
    let run = |shaped: bool| {
        let tcp = TcpConfig { receive_buffer: 160_000, ..TcpConfig::sack() };
        let link = |words: &str| satlink::words::parse_link(words).expect("words");
        let mut net = Network::new(5, 0);
        let sink = net.host(TcpSink::new(tcp.clone(), 80));
        let to = Address::new(sink, 80);
        let plan = FlowPlan { start: at(0), stop: None, bytes: u64::MAX, to, tcp };
        let source = net.host_with(|node| TcpSource::new(node, vec![plan]));
        let rate = BitRate::from_kbps(if shaped { 1_950 } else { 100_000 });
        let config = TokenBucket { rate, bucket: 6_000, limit: 400_000 };
        let sender =
            net.gateway_with(|_| Inline::new(Shaper::new(config, Toward::Right), [source]));
        net.link(source, sender, &link("both rate 100mbit"));
        let space = net.link(sender, sink, &link("both rate 2mbit delay 270ms limit 10k"));
        net.run_until(at(60_000));
        let lost = net.line(space).counters(Direction::Forward).dropped(DropCause::QueueFull);
        (net.node::<TcpSink>(sink).flows()[0].bytes, lost.packets)
    };
    let ((bursty, lost), (shaped, none)) = (run(false), run(true));
    assert!(lost > 10 && none == 0, "{lost} {none}");
    assert!(shaped as f64 > 1.3 * bursty as f64, "{bursty} {shaped}");
}
