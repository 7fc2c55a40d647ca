//! Compressed links: frames by hand, and transfers whose every byte is checked.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Tcp, Transport, Xstp};
use crate::network::NodeId;
use crate::pep::Inline;
use satlink::{Direction, Frame, LinkConfig};
use simtcp::{Ports, TcpConfig};
use units::Span;
use xstp::session::SessionConfig;

fn at(secs: u64) -> Instant {
    Instant::ZERO + Span::from_secs(secs)
}

fn pass(element: &mut impl Element, way: Way, packet: &Packet) -> Vec<(Way, Packet)> {
    let mut out = Leaving::new();
    element.pass(Instant::ZERO, way, packet.clone(), &mut out);
    out.into()
}

fn segment(sequence: u64, acknowledgement: u64, len: u32) -> Segment {
    Segment {
        ports: Ports { from: 1, to: 2 },
        sequence,
        acknowledgement: Some(acknowledgement),
        window: 1_000,
        flags: simtcp::Flags::default(),
        ecn: Default::default(),
        options: simtcp::Options::default(),
        payload: simtcp::Payload { content: 0, offset: 0, len },
    }
}

#[test]
fn headers_of_tcp_shrink_to_what_rfc_2507_makes_of_them() {
    let [left, right] = [0, 1].map(NodeId::numbered);
    let packet = |segment| Packet::tcp(left, right, Box::new(segment));
    let mut compressor = HeaderCompressor::new(Way::Right);
    let mut decompressor = HeaderDecompressor::new(Way::Right);
    // Full; then 1,460 on: 4 + 3; the same acknowledgement, the next: 4 + 1 when it is 200 on.
    let steps = [
        (segment(1, 1, 1_460), 40),
        (segment(1_461, 1, 1_460), 7),
        (segment(2_921, 1, 100), 7),
        (segment(3_021, 1, 100), 5),
        (segment(3_121, 201, 100), 6),
        // It goes back: full.
        (segment(1_461, 201, 1_460), 40),
    ];
    for (segment, header) in steps {
        let (whole, len) = (packet(segment), segment.payload.len as usize);
        let sent = pass(&mut compressor, Way::Right, &whole).remove(0).1;
        assert_eq!(sent.len() - len, header, "{segment:?}");
        let came = pass(&mut decompressor, Way::Right, &sent).remove(0).1;
        assert_eq!((came.len(), came.segment()), (whole.len(), Some(&segment)));
    }
    let counts = compressor.counts();
    assert_eq!((counts.short, counts.full, counts.saved), (4, 2, 33 + 33 + 35 + 34));
    assert_eq!(decompressor.counts(), counts);
}

#[test]
fn a_packet_after_a_lost_one_cannot_be_made_and_a_full_header_repairs() {
    let [left, right] = [0, 1].map(NodeId::numbered);
    let mut compressor = HeaderCompressor::new(Way::Right);
    let mut decompressor = HeaderDecompressor::new(Way::Right);
    let mut step = |sequence, lost| {
        let packet = Packet::tcp(left, right, Box::new(segment(sequence, 1, 100)));
        let sent = pass(&mut compressor, Way::Right, &packet).remove(0).1;
        if lost {
            return "lost";
        }
        let mut came = pass(&mut decompressor, Way::Right, &sent);
        match came.pop() {
            Some((Way::Right, _)) => "made",
            Some((Way::Left, request)) => {
                assert_eq!(pass(&mut compressor, Way::Left, &request).len(), 0, "taken");
                "asked for"
            }
            None => "dropped",
        }
    };
    let after_loss = [(1, false), (101, true), (201, false), (301, false)];
    let became = after_loss.map(|(sequence, lost)| step(sequence, lost));
    assert_eq!(became, ["made", "lost", "asked for", "made"]);
    // Before the answer to the request comes, one goes back.
    let again = [(401, true), (501, false), (401, false), (601, false)];
    let became = again.map(|(sequence, lost)| step(sequence, lost));
    assert_eq!(became, ["lost", "asked for", "made", "made"]);
    assert_eq!(decompressor.counts().dropped, 2);
}

/// 300 kbyte between two hosts, over a link that is compressed both ways or not: octets that
/// crossed it, and what was saved and dropped.
fn transfer<T: Transport>(
    words: &str,
    compressed: bool,
    serve: impl FnOnce(NodeId) -> T,
    client: impl FnOnce(NodeId, Address) -> T,
) -> (u64, Compressed)
where
    T::Id: Ord + 'static,
{
    let link = |words: &str| -> LinkConfig { satlink::words::parse_link(words).expect("words") };
    let mut net = Network::new(5, 0);
    let sink = net.host_with(|node| Host::new(serve(node), BulkReceiver::<T::Id>::new(3)));
    let source = net.host_with(|node| {
        let sender = BulkSender::<T::Id>::new(at(0), 300_000, 3);
        Host::new(client(node, Address::new(sink, 80)), sender)
    });
    type Left = Inline<(HeaderCompressor, HeaderDecompressor)>;
    type Right = Inline<(HeaderDecompressor, HeaderCompressor)>;
    let (near, far) = if compressed {
        let near = (HeaderCompressor::new(Way::Right), HeaderDecompressor::new(Way::Left));
        let far = (HeaderDecompressor::new(Way::Right), HeaderCompressor::new(Way::Left));
        (
            net.gateway_with(|_| Inline::new(near, [source])),
            net.gateway_with(|_| Inline::new(far, [source])),
        )
    } else {
        (net.router(), net.router())
    };
    net.link(source, near, &link("both rate 100mbit"));
    let space = net.link(near, far, &link(&format!("both rate 256kbit delay 270ms {words}")));
    net.link(far, sink, &link("both rate 100mbit"));
    net.run_until(at(900));
    let seen = &net.node::<Host<T, BulkReceiver<T::Id>>>(sink).application;
    assert!(seen.is_done() && seen.received() == 300_000, "{words}");
    let octets = net.offered(space, Direction::Forward).total().bytes;
    if !compressed {
        return (octets, Compressed::default());
    }
    let (sent, came) =
        (net.node::<Left>(near).element.0.counts(), net.node::<Right>(far).element.0.counts());
    assert!(came.short <= sent.short && came.saved <= sent.saved);
    (octets, Compressed { dropped: came.dropped, ..sent })
}

fn over_tcp(words: &str, compressed: bool) -> (u64, Compressed) {
    let tcp = TcpConfig { max_segment: 256, ..TcpConfig::sack() };
    let serve = |node| Tcp::server(node, &tcp, 80);
    transfer(words, compressed, serve, |node, to| Tcp::client(node, &tcp, to))
}

fn over_stp(words: &str, compressed: bool) -> (u64, Compressed) {
    let stp = SessionConfig { max_segment: 272, ..SessionConfig::stp_1999() };
    let serve = |node| Xstp::server(node, &stp, 80);
    transfer(words, compressed, serve, |node, to| Xstp::client(node, &stp, to))
}

#[test]
fn a_compressed_link_carries_the_same_bytes_in_fewer_octets() {
    // 1,172 segments of 256 bytes, each of which saves 33 of its 40 octets.
    let (plain, _) = over_tcp("", false);
    let (short, counts) = over_tcp("", true);
    assert_eq!(plain - short, counts.saved);
    assert!(counts.saved > 1_170 * 33 && counts.full < 10, "{counts:?}");
    // Of STP's 36 octets at least 19 go, save with the full ones.
    let (plain, _) = over_stp("", false);
    let (short, counts) = over_stp("", true);
    assert!(short < plain - 1_172 * 17 && counts.saved > 1_172 * 17, "{plain} {short} {counts:?}");
}

#[test]
fn on_a_link_that_loses_every_byte_arrives_all_the_same() {
    for over in [over_tcp, over_stp] {
        let (_, counts) = over("loss 2%", true);
        assert!(counts.short > 500, "{counts:?}");
    }
    // TCP's context is broken by every loss, XSTP's by none of a few in a row (RFC 2507 warns of
    // the first; CMP-3.1.4 rules the second).
    let [(_, tcp), (_, stp)] = [over_tcp("loss 2%", true), over_stp("loss 2%", true)];
    assert!(tcp.dropped > 20 && stp.dropped == 0, "{tcp:?} {stp:?}");
}
