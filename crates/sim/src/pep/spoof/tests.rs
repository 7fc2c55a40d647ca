//! Early acknowledgement with constructed segments and in a network.

use super::*;
use crate::Network;
use crate::host::{BulkReceiver, BulkSender, Host, Tcp, TcpId};
use crate::network::{NodeId, Payload};
use crate::pep::Inline;
use satlink::LinkConfig;
use simtcp::{Endpoint, Ports, TcpConfig};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

const CONFIG: SpoofConfig =
    SpoofConfig { memory: 400_000, window: 200_000, timeout: Span::from_secs(1) };

fn ends() -> [NodeId; 2] {
    [NodeId::numbered(0), NodeId::numbered(1)]
}

/// A sender and a receiver connected by a spoofer without delay.
struct ByHand {
    spoofer: Spoofer,
    sender: Endpoint,
    receiver: Endpoint,
}

impl ByHand {
    fn new() -> Self {
        let tcp = TcpConfig { sack: false, ..TcpConfig::new_reno() };
        let mut sender = Endpoint::connect(&tcp, Ports { from: 7, to: 80 }, 1);
        sender.write(20_000);
        Self {
            spoofer: Spoofer::new(CONFIG, Toward::Right),
            sender,
            receiver: Endpoint::listen(&tcp, 80, 2),
        }
    }

    /// The segments that leave when `segment` arrives.
    fn pass(&mut self, now: Instant, toward: Toward, segment: Segment) -> Vec<(Toward, Segment)> {
        let [left, right] = ends();
        let (from, to) = if toward == Toward::Right { (left, right) } else { (right, left) };
        let mut out = Output::new();
        self.spoofer.pass(now, toward, Packet::tcp(from, to, Box::new(segment)), &mut out);
        let segment = |packet: Packet| *packet.segment().expect("TCP");
        out.into_iter().map(|(toward, packet)| (toward, segment(packet))).collect()
    }

    /// Opens the connection; returns the sender's first data segments.
    fn open(&mut self) -> Vec<Segment> {
        let now = at(0);
        let syn = self.sender.poll_transmit(now).expect("SYN");
        assert_eq!(self.pass(now, Toward::Right, syn), [(Toward::Right, syn)], "end to end");
        self.receiver.handle_segment(now, &syn);
        let answer = self.receiver.poll_transmit(now).expect("SYN, ACK");
        assert_eq!(self.pass(now, Toward::Left, answer), [(Toward::Left, answer)]);
        self.sender.handle_segment(now, &answer);
        core::iter::from_fn(|| self.sender.poll_transmit(now)).collect()
    }
}

#[test]
fn both_ends_are_reset_when_the_receiver_does_not_respond() {
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    hand.pass(at(1), Toward::Right, first);
    let (mut sent, mut seconds) = (Vec::new(), Vec::new());
    while let Some(due) = hand.spoofer.poll_timeout() {
        let mut out = Output::new();
        hand.spoofer.handle_timeout(due, &mut out);
        seconds.push(due.since(at(1)).as_secs_f64());
        sent.extend(out);
        assert!(seconds.len() < 100, "{seconds:?}");
    }
    // 1, 2, 4, 8, 16 and 32 s, then 60 s each.
    assert_eq!((seconds[5], seconds[6], seconds.len()), (63.0, 123.0, 16));
    assert_eq!(hand.spoofer.connections(), 0);
    let last = sent.split_off(15);
    let resets: Vec<Segment> = last.iter().map(|(_, it)| *it.segment().expect("TCP")).collect();
    assert_eq!(
        last.iter().map(|(toward, _)| *toward).collect::<Vec<_>>(),
        [Toward::Right, Toward::Left]
    );
    assert!(resets.iter().all(|it| it.flags.reset && it.span() == 0), "{resets:?}");
    hand.receiver.handle_segment(at(700_000), &resets[0]);
    hand.sender.handle_segment(at(700_000), &resets[1]);
    let states = [hand.receiver.state(), hand.sender.state()];
    assert_eq!(states, [simtcp::State::Closed; 2]);
}

#[test]
fn zero_round_trip_causes_no_endless_loop() {
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    hand.pass(at(1), Toward::Right, first);
    // The acknowledgement arrives at the same instant: the round trip is zero.
    hand.receiver.handle_segment(at(1), &first);
    hand.receiver.handle_timeout(at(1_000));
    let truth = hand.receiver.poll_transmit(at(1_000)).expect("an acknowledgement");
    hand.pass(at(1), Toward::Left, truth);
    let mut next = first;
    next.sequence = first.end();
    hand.pass(at(2), Toward::Right, next);
    for _ in 0..5 {
        hand.pass(at(2), Toward::Left, truth);
    }
    assert_eq!(hand.spoofer.counts().retransmitted, 1, "and not sooner than a millisecond later");
}

#[test]
fn data_is_acknowledged_early_and_the_receivers_acknowledgement_suppressed() {
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    let left = hand.pass(at(1), Toward::Right, first);
    let [(Toward::Left, early), (Toward::Right, data)] = left[..] else { panic!("{left:?}") };
    assert_eq!((early.acknowledgement, early.span()), (Some(first.end()), 0));
    // 400,000 octets less the 1,460 buffered, scaled by the receiver's shift of 9.
    assert_eq!((early.window, early.sequence), (((400_000 - 1_460) >> 9) as u16, 1));
    assert_eq!((data.sequence, data.payload), (first.sequence, first.payload));
    hand.receiver.handle_segment(at(300), &data);
    hand.receiver.handle_timeout(at(600));
    let truth = hand.receiver.poll_transmit(at(600)).expect("an acknowledgement");
    assert_eq!(truth.acknowledgement, Some(first.end()));
    assert_eq!(hand.pass(at(600), Toward::Left, truth), []);
    let counts = hand.spoofer.counts();
    assert_eq!((counts.early, counts.suppressed, counts.retransmitted), (1, 1, 0));
}

#[test]
fn repeated_syn_has_no_effect() {
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    let mut syn = Endpoint::connect(&TcpConfig::new_reno(), Ports { from: 7, to: 80 }, 1);
    let syn = syn.poll_transmit(at(1)).expect("SYN");
    assert_eq!(hand.pass(at(1), Toward::Right, syn), [(Toward::Right, syn)]);
    let mut answer = Endpoint::listen(&TcpConfig::new_reno(), 80, 2);
    answer.handle_segment(at(1), &syn);
    let answer = answer.poll_transmit(at(1)).expect("SYN, ACK");
    assert_eq!(hand.pass(at(1), Toward::Left, answer), [(Toward::Left, answer)]);
    let left = hand.pass(at(2), Toward::Right, first);
    let [(Toward::Left, early), (Toward::Right, data)] = left[..] else { panic!("{left:?}") };
    assert_eq!((early.acknowledgement, data.sequence), (Some(first.end()), first.sequence));
    assert_eq!(hand.spoofer.connections(), 1);
}

#[test]
fn three_duplicates_cause_a_retransmission() {
    let mut hand = ByHand::new();
    let segments = hand.open();
    assert_eq!(segments.len(), 3, "4,380 bytes");
    let mut more = Vec::new();
    for &segment in &segments {
        for (toward, leaving) in hand.pass(at(1), Toward::Right, segment) {
            if toward == Toward::Left {
                hand.sender.handle_segment(at(1), &leaving);
            }
        }
        more.extend(core::iter::from_fn(|| hand.sender.poll_transmit(at(1))));
    }
    let mut on_data: Vec<Segment> = Vec::new();
    for segment in more {
        let left = hand.pass(at(2), Toward::Right, segment);
        on_data.extend(
            left.into_iter().filter(|(toward, _)| *toward == Toward::Right).map(|(_, it)| it),
        );
    }
    // The first is lost; each later one causes a duplicate acknowledgement. The first of these does
    // not count, because its window differs from that of the SYN.
    let mut answers = Vec::new();
    for segment in segments[1..].iter().chain(&on_data[..2]) {
        hand.receiver.handle_segment(at(300), segment);
        answers.extend(hand.receiver.poll_transmit(at(300)));
    }
    let retransmitted: Vec<_> =
        answers.into_iter().flat_map(|answer| hand.pass(at(600), Toward::Left, answer)).collect();
    let [(Toward::Right, once)] = retransmitted[..] else { panic!("{retransmitted:?}") };
    assert_eq!((once.sequence, once.payload), (segments[0].sequence, segments[0].payload));
    assert_eq!(hand.spoofer.counts().retransmitted, 1);
}

#[test]
fn timeout_retransmits_the_oldest_segment() {
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    hand.pass(at(1), Toward::Right, first);
    assert_eq!(hand.spoofer.poll_timeout(), Some(at(1_001)));
    let mut out = Output::new();
    hand.spoofer.handle_timeout(at(1_001), &mut out);
    let (toward, packet) = &out[0];
    assert_eq!(
        (*toward, packet.segment().map(|it| it.sequence)),
        (Toward::Right, Some(first.sequence))
    );
    assert_eq!(hand.spoofer.poll_timeout(), Some(at(3_001)), "twice as long");
}

#[test]
fn fin_is_never_acknowledged_early() {
    let mut hand = ByHand::new();
    let mut fin = hand.open()[0];
    fin.flags.fin = true;
    let left = hand.pass(at(1), Toward::Right, fin);
    assert!(left.iter().any(|(toward, it)| *toward == Toward::Right && it.flags.fin));
    let early = left.iter().find(|(toward, _)| *toward == Toward::Left).expect("of the data").1;
    assert_eq!(early.acknowledgement, Some(fin.end() - 1));
    hand.receiver.handle_segment(at(300), &fin);
    let truth = hand.receiver.poll_transmit(at(300)).expect("an acknowledgement");
    let left = hand.pass(at(600), Toward::Left, truth);
    assert_eq!(left[0].1.acknowledgement, Some(fin.end()), "the true one passes");
}

type Sender = Host<Tcp, BulkSender<TcpId>>;
type Receiver = Host<Tcp, BulkReceiver<TcpId>>;

/// Transfers 2 Mbyte with a send buffer of 16 kbyte over 2 Mbit/s and 600 ms. Returns the seconds
/// and the spoofer's counters.
fn run(words: &str, spoofs: bool) -> (f64, Spoofed) {
    let link = |words: &str| -> LinkConfig { satlink::words::parse_link(words).expect("words") };
    let mut net = Network::new(5, 0);
    let near = TcpConfig { send_buffer: 16_000, ..TcpConfig::sack() };
    let sink = net.host_with(|node| {
        Host::new(Tcp::server(node, &TcpConfig::sack(), 80), BulkReceiver::new(3))
    });
    let source = net.host_with(|node| {
        let transport = Tcp::client(node, &near, Address::new(sink, 80));
        Host::new(transport, BulkSender::new(at(0), 2_000_000, 3))
    });
    let gateway = net.gateway_with(|_| {
        // Configured for the other direction the spoofer has no effect.
        let toward = if spoofs { Toward::Right } else { Toward::Left };
        Inline::new(Spoofer::new(CONFIG, toward), [source])
    });
    net.link(source, gateway, &link("both rate 100mbit delay 1ms"));
    net.link(gateway, sink, &link(&format!("both rate 2mbit delay 300ms limit 400k {words}")));
    net.run_until(at(600_000));
    let seen = &net.node::<Receiver>(sink).application;
    assert!(seen.is_done() && seen.received() == 2_000_000, "{:?}", seen.streams().next());
    assert!(net.node::<Sender>(source).application.over().is_some());
    let spoofer = &net.node::<Inline<Spoofer>>(gateway).element;
    assert_eq!(spoofer.connections(), 0, "{:?}", spoofer.connections);
    let took = seen.streams().next().and_then(|stream| stream.last).expect("it came");
    (took.since(at(0)).as_secs_f64(), spoofer.counts())
}

#[test]
fn sender_with_a_small_window_fills_the_link() {
    // 16 kbyte per round trip take 75 s; the link takes 8.4 s, and the rest is the handshake.
    let (direct, _) = run("", false);
    let (spoofed, counts) = run("", true);
    assert!(direct > 70.0 && spoofed < 10.5, "{direct} {spoofed}");
    assert!(
        counts.early > 1_300 && counts.suppressed > 600 && counts.retransmitted == 0,
        "{counts:?}"
    );
    assert!(counts.max_kept <= CONFIG.memory);
}

/// Pages from a server behind the spoofer: either end may open the connection.
#[test]
fn data_of_a_server_is_acknowledged_early() {
    use crate::traffic::{Client, Http, S1711_PAGES, Server};
    let link = |words: &str| -> LinkConfig { satlink::words::parse_link(words).expect("words") };
    let tcp = TcpConfig::new_reno();
    let mut net = Network::new(5, 0);
    let server = net.host_with(|node| Host::new(Tcp::server(node, &tcp, 80), Server::new()));
    let user = net.host_with(|node| {
        let transport = Tcp::client(node, &tcp, Address::new(server, 80));
        let http = Http::PerElement { at_once: 4 };
        Host::new(transport, Client::new(http.plans(at(0), &S1711_PAGES[3].even(), 300)))
    });
    let gateway = net.gateway_with(|_| Inline::new(Spoofer::new(CONFIG, Toward::Right), [server]));
    net.link(server, gateway, &link("both rate 100mbit delay 1ms"));
    net.link(gateway, user, &link("both rate 2mbit delay 300ms limit 400k loss 1%"));
    net.run_until(at(120_000));
    let seen = &net.node::<Host<Tcp, Client<TcpId>>>(user).application;
    assert!(seen.is_done() && seen.lost() == 0, "{:?}", seen.exchanged());
    let spoofer = &net.node::<Inline<Spoofer>>(gateway).element;
    assert_eq!(spoofer.connections(), 0);
    assert!(
        spoofer.counts().early > 200 && spoofer.counts().retransmitted > 0,
        "{:?}",
        spoofer.counts()
    );
}

#[test]
fn losses_are_retransmitted_by_the_spoofer() {
    for words in ["loss 2%", "forward reorder 2%", "outage at 3s for 4s"] {
        let (took, counts) = run(words, true);
        assert!(took < 30.0, "{words}: {took} {counts:?}");
        assert!(counts.retransmitted > 0 || words.contains("reorder"), "{words}: {counts:?}");
    }
}

#[test]
fn overlapping_segments_are_buffered_in_parts() {
    let config = SpoofConfig { memory: 10_000, ..CONFIG };
    let mut hand = ByHand::new();
    let first = hand.open()[0];
    let mut connection = Connection::new(&config);
    connection.on_syn(&Segment { sequence: 0, ..first });
    let piece = |from: u64, len: u32| {
        let mut piece = first;
        piece.sequence = from;
        piece.payload.offset = from - 1;
        piece.payload.len = len;
        let bytes: Vec<u8> = (from..from + u64::from(len)).map(|at| at as u8).collect();
        let [left, right] = ends();
        let packet = Packet::stream(left, right, Box::new(piece), bytes.into());
        (packet, piece)
    };
    for (from, len) in [(1, 100), (151, 50), (51, 150), (301, 10), (191, 200), (1, 400)] {
        let (packet, segment) = piece(from, len);
        assert!(connection.keep(packet, &segment));
    }
    connection.on_syn_ack(&first);
    connection.acknowledged(at(0), &Segment { window: 9_000, acknowledgement: Some(1), ..first });
    let mut next = 1;
    while let Some((packet, retransmitted)) = connection.next(at(1)) {
        let segment = *packet.segment().expect("TCP");
        assert!(!retransmitted && segment.sequence == next, "{segment:?}");
        assert_eq!(segment.payload.offset, next - 1);
        let Payload::Stream(_, bytes) = &packet.payload else { panic!("bytes") };
        assert_eq!(bytes.len(), segment.payload.len as usize);
        assert!((next..).zip(bytes.iter()).all(|(at, &byte)| byte == at as u8));
        next = segment.end();
    }
    assert_eq!(next, 401, "all of it, once");
}
