//! Compressed links: constructed frames, and transfers whose octets are verified.

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

fn pass(element: &mut impl Element, toward: Toward, packet: &Packet) -> Vec<(Toward, Packet)> {
    let mut out = Output::new();
    element.pass(Instant::ZERO, toward, packet.clone(), &mut out);
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
fn tcp_headers_have_the_lengths_of_rfc_2507() {
    let [left, right] = [0, 1].map(NodeId::numbered);
    let packet = |segment| Packet::tcp(left, right, Box::new(segment));
    let mut compressor = HeaderCompressor::new(Toward::Right);
    let mut decompressor = HeaderDecompressor::new(Toward::Right);
    // Full; then 1,460 further: 4 + 3; the same acknowledgement; the next, 200 further: 4 + 1.
    let steps = [
        (segment(1, 1, 1_460), 40),
        (segment(1_461, 1, 1_460), 7),
        (segment(2_921, 1, 100), 7),
        (segment(3_021, 1, 100), 5),
        (segment(3_121, 201, 100), 6),
        // The number decreases: full.
        (segment(1_461, 201, 1_460), 40),
    ];
    for (segment, header) in steps {
        let (whole, len) = (packet(segment), segment.payload.len as usize);
        let sent = pass(&mut compressor, Toward::Right, &whole).remove(0).1;
        assert_eq!(sent.len() - len, header, "{segment:?}");
        let came = pass(&mut decompressor, Toward::Right, &sent).remove(0).1;
        assert_eq!((came.len(), came.segment()), (whole.len(), Some(&segment)));
    }
    let counts = compressor.counts();
    assert_eq!((counts.short, counts.full, counts.saved), (4, 2, 33 + 33 + 35 + 34));
    assert_eq!(decompressor.counts(), counts);
}

#[test]
fn context_is_repaired_by_the_same_changes_or_a_full_header() {
    let [left, right] = [0, 1].map(NodeId::numbered);
    let mut compressor = HeaderCompressor::new(Toward::Right);
    let mut decompressor = HeaderDecompressor::new(Toward::Right);
    let mut step = |sequence, lost| {
        let packet = Packet::tcp(left, right, Box::new(segment(sequence, 1, 100)));
        let sent = pass(&mut compressor, Toward::Right, &packet).remove(0).1;
        if lost {
            return "lost";
        }
        let mut came = pass(&mut decompressor, Toward::Right, &sent);
        match came.pop() {
            Some((Toward::Right, _)) => "made",
            Some((Toward::Left, request)) => {
                assert_eq!(pass(&mut compressor, Toward::Left, &request).len(), 0, "taken");
                "asked for"
            }
            None => "dropped",
        }
    };
    let mut became = |steps: &[(u64, bool)]| -> Vec<_> {
        steps.iter().map(|&(sequence, lost)| step(sequence, lost)).collect()
    };
    // The changes of the one that is lost are those of the next: twice (RFC 2507, section 10.1).
    let same = [(1, false), (101, false), (201, true), (301, false), (401, false)];
    assert_eq!(became(&same), ["made", "made", "lost", "made", "made"]);
    // Two are too many, and so is one with other changes.
    let two = [(501, true), (601, true), (701, false), (801, false)];
    assert_eq!(became(&two), ["lost", "lost", "asked for", "made"]);
    let other = [(851, true), (951, false), (1_051, false)];
    assert_eq!(became(&other), ["lost", "asked for", "made"]);
    // A number decreases before a request is answered.
    let retransmitted = [(1_061, true), (1_161, false), (1_061, false), (1_261, false)];
    assert_eq!(became(&retransmitted), ["lost", "asked for", "made", "made"]);
    let counts = decompressor.counts();
    assert_eq!((counts.repaired, counts.dropped), (1, 3));
}

/// Transfers 300 kbyte between two hosts, with or without compression in both directions. Returns
/// the octets on the link, and the octets saved and packets dropped.
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
        let near = (HeaderCompressor::new(Toward::Right), HeaderDecompressor::new(Toward::Left));
        let far = (HeaderDecompressor::new(Toward::Right), HeaderCompressor::new(Toward::Left));
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
    (octets, Compressed { dropped: came.dropped, repaired: came.repaired, ..sent })
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
fn compression_reduces_octets_on_the_link() {
    // 1,172 segments of 256 octets, each of which saves 33 of its 40 octets of header.
    let (plain, _) = over_tcp("", false);
    let (short, counts) = over_tcp("", true);
    assert_eq!(plain - short, counts.saved);
    assert!(counts.saved > 1_170 * 33 && counts.full < 10, "{counts:?}");
    // Of STP's 36 octets at least 19 are saved, except on full headers.
    let (plain, _) = over_stp("", false);
    let (short, counts) = over_stp("", true);
    assert!(short < plain - 1_172 * 17 && counts.saved > 1_172 * 17, "{plain} {short} {counts:?}");
}

#[test]
fn all_octets_arrive_on_a_compressed_link_with_loss() {
    for over in [over_tcp, over_stp] {
        let (_, counts) = over("loss 2%", true);
        assert!(counts.short > 500, "{counts:?}");
    }
    // TCP's context is damaged where two packets are lost together or their changes are not the same
    // (RFC 2507, section 10.1), XSTP's by none of a few consecutive ones (CMP-3.1.4).
    let [(_, tcp), (_, stp)] = [over_tcp("loss 2%", true), over_stp("loss 2%", true)];
    assert!(tcp.repaired > 10 && tcp.dropped > 0 && stp.dropped == 0, "{tcp:?} {stp:?}");
}
