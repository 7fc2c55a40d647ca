//! A sender and a receiver on packets, a proxy next to the sender, and a network between.

use super::super::fuzzing::extend;
use super::super::segment::{ACK, Bare, Block, FIN, SYN, Segment};
use super::super::serial::{after, before, distance, later};
use super::super::{PacketPep, PepConfig, PepStatistics, Toward, Verdict};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

/// What the network does to packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) near_delay: Span,
    pub(super) far_delay: Span,
    /// Probability that a packet is lost between sender and proxy, and behind the proxy.
    pub(super) near_loss: f64,
    pub(super) far_loss: f64,
    pub(super) duplication: f64,
    /// Probability that a packet is delayed by up to 30 ms more.
    pub(super) reordering: f64,
}

/// What the two ends agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) v6: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) window: u32,
    pub(super) scale: u8,
}

impl Options {
    fn syn(self, value: u32) -> Vec<u8> {
        let mut octets = vec![2, 4, 5, 0xb4, 3, 3, self.scale];
        octets.extend(if self.sack { &[4, 2][..] } else { &[] });
        octets.extend(self.stamps((value, 0)));
        octets
    }

    fn stamps(self, (value, echo): (u32, u32)) -> Vec<u8> {
        if !self.timestamps {
            return Vec::new();
        }
        [&[8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
    }
}

/// Octet `at` of the content.
fn content(at: u32) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 24) as u8
}

const MSS: u32 = 1_000;
const NEAR_ISN: u32 = u32::MAX - 20_000;
const FAR_ISN: u32 = u32::MAX - 100;

/// Octets that the sender sends: it sends all that the window permits, and again after a timeout or
/// three duplicates.
#[derive(Debug)]
struct Sender {
    total: u32,
    acked: u32,
    next: u32,
    window_end: u32,
    duplicates: u32,
    deadline: Option<Instant>,
    recent: u32,
}

/// Stores what arrives, and answers each segment.
#[derive(Debug)]
struct Receiver {
    octets: Vec<Option<u8>>,
    next: u32,
    is_closed: bool,
    recent: u32,
    /// End of the greatest window offered.
    offered: u32,
    /// Whether its window is closed by now.
    is_stopped: bool,
    paws: u64,
}

/// A connection over a network.
#[derive(Debug)]
pub(super) struct Rig {
    pub(super) pep: PacketPep,
    pub(super) now: Instant,
    options: Options,
    network: Network,
    random: RngStream,
    flights: BTreeMap<(Instant, u64), (Place, Vec<u8>)>,
    order: u64,
    sender: Sender,
    receiver: Receiver,
    /// Packets that the path to the far end takes in a millisecond.
    pub(super) rate: u32,
    room: u32,
    /// Packets on the far side, in both directions.
    pub(super) far_packets: [u64; 2],
    pub(super) is_dead: bool,
    pub(super) was_reset: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Sender,
    ProxyFromNear,
    ProxyFromFar,
    Receiver,
}

impl Rig {
    pub(super) fn new(
        config: PepConfig,
        options: Options,
        network: Network,
        total: u32,
        seed: u64,
    ) -> Self {
        let first = NEAR_ISN.wrapping_add(1);
        let sender = Sender {
            total,
            acked: first,
            next: first,
            window_end: first,
            duplicates: 0,
            deadline: None,
            recent: 0,
        };
        let receiver = Receiver {
            octets: vec![None; total as usize],
            next: first,
            is_closed: false,
            recent: 0,
            offered: first,
            is_stopped: false,
            paws: 0,
        };
        let mut rig = Self {
            pep: PacketPep::new(config),
            now: Instant::from_nanos(1),
            options,
            network,
            random: RngStream::new(seed, 0, "pep"),
            flights: BTreeMap::new(),
            order: 0,
            sender,
            receiver,
            rate: 100,
            room: 100,
            far_packets: [0; 2],
            is_dead: false,
            was_reset: false,
        };
        rig.shake_hands();
        rig
    }

    fn ends(&self) -> (SocketAddr, SocketAddr) {
        if self.options.v6 {
            (
                ([0xfd00, 0, 0, 0, 0, 0, 0, 1], 4_000).into(),
                ([0xfd00, 0, 0, 0, 0, 0, 0, 2], 80).into(),
            )
        } else {
            (([10, 1, 0, 2], 4_000).into(), ([10, 3, 0, 2], 80).into())
        }
    }

    /// Milliseconds, the clock of timestamps, which begins below a wrap.
    fn clock(&self, offset: u32) -> u32 {
        ((self.now.as_nanos() / 1_000_000) as u32).wrapping_sub(offset)
    }

    fn bare(&self, toward: Toward, flags: u8, (seq, ack): Block, window: u16) -> Bare<'static> {
        let (near, far) = self.ends();
        let (source, destination) = if toward == Toward::Far { (near, far) } else { (far, near) };
        Bare { source, destination, seq, ack, flags, window, timestamps: None, sack: &[] }
    }

    /// The handshake without losses.
    fn shake_hands(&mut self) {
        let window = self.options.window.min(65_535) as u16;
        let (near_value, far_value) = (self.clock(3_000), self.clock(9_000));
        let steps = [
            (Toward::Far, SYN, (NEAR_ISN, 0), self.options.syn(near_value)),
            (
                Toward::Near,
                SYN | ACK,
                (FAR_ISN, NEAR_ISN.wrapping_add(1)),
                self.options.syn(far_value),
            ),
        ];
        for (toward, flags, numbers, options) in steps {
            let mut packet = self.bare(toward, flags, numbers, window).build();
            extend(&mut packet, &options, &[]);
            assert_eq!(self.pep.handle(self.now, toward, &mut packet), Verdict::Pass);
            self.now += self.network.far_delay * 2;
        }
        self.sender.window_end = self.sender.acked.wrapping_add(u32::from(window));
        self.sender.recent = far_value;
        self.receiver.recent = near_value;
        self.receiver.offered = self.sender.window_end;
        let numbers = (self.sender.acked, FAR_ISN.wrapping_add(1));
        let mut packet = self.bare(Toward::Far, ACK, numbers, 1_000).build();
        let stamps = self.options.stamps((self.clock(3_000), self.sender.recent));
        extend(&mut packet, &stamps, &[]);
        assert_eq!(self.pep.handle(self.now, Toward::Far, &mut packet), Verdict::Pass);
    }

    pub(super) fn statistics(&self) -> PepStatistics {
        self.pep.statistics()
    }

    /// Whether the receiver has everything and the sender knows it.
    pub(super) fn is_done(&self) -> bool {
        self.receiver.is_closed
            && distance(NEAR_ISN.wrapping_add(1), self.sender.acked) > self.sender.total
    }

    /// Segments that the receiver has discarded for their timestamps.
    pub(super) fn paws(&self) -> u64 {
        self.receiver.paws
    }

    /// Checks the octets that have arrived.
    pub(super) fn check_content(&self) {
        for (at, octet) in self.receiver.octets.iter().enumerate() {
            assert_eq!(*octet, Some(content(at as u32)), "octet {at}");
        }
    }

    pub(super) fn stop_receiver(&mut self, is_stopped: bool) {
        self.receiver.is_stopped = is_stopped;
        if !is_stopped {
            self.answer(&[]);
        }
    }

    /// Runs for up to `span`; returns whether it is done.
    pub(super) fn run(&mut self, span: Span) -> bool {
        let end = self.now + span;
        while self.now < end && !self.is_done() && !self.was_reset {
            self.send_new();
            while let Some(flight) =
                self.flights.first_entry().filter(|flight| flight.key().0 <= self.now)
            {
                let (place, packet) = flight.remove();
                self.arrive(place, packet);
            }
            if self.pep.poll_timeout().is_some_and(|at| at <= self.now) {
                self.pep.handle_timeout(self.now);
            }
            self.drain();
            self.now += Span::from_millis(1);
            self.room = self.rate;
            if self.sender.deadline.is_some_and(|at| at <= self.now) {
                // Go-back-N, and a probe where the window is closed.
                self.sender.next = self.sender.acked;
                self.sender.deadline = None;
                if !before(self.sender.acked, self.sender.window_end) {
                    self.send_segment(self.sender.acked.wrapping_sub(1), 0, false);
                }
            }
            self.pep.check();
        }
        self.is_done()
    }

    fn launch(&mut self, place: Place, packet: &[u8]) {
        let is_near = matches!(place, Place::Sender | Place::ProxyFromNear);
        let Network { near_delay, far_delay, near_loss, far_loss, duplication, reordering } =
            self.network;
        let (delay, loss) = if is_near { (near_delay, near_loss) } else { (far_delay, far_loss) };
        if !is_near {
            self.far_packets[usize::from(place == Place::ProxyFromFar)] += 1;
        }
        if (self.is_dead && !is_near) || self.random.chance(loss) {
            return;
        }
        for _ in 0..1 + u32::from(self.random.chance(duplication)) {
            let more = if self.random.chance(reordering) { self.random.below(30) } else { 0 };
            self.order += 1;
            let at = self.now + delay + Span::from_millis(more);
            self.flights.insert((at, self.order), (place, packet.to_vec()));
        }
    }

    fn arrive(&mut self, place: Place, mut packet: Vec<u8>) {
        match place {
            Place::ProxyFromNear => {
                if self.pep.handle(self.now, Toward::Far, &mut packet) == Verdict::Pass {
                    self.launch(Place::Receiver, &packet);
                }
            }
            Place::ProxyFromFar => {
                if self.pep.handle(self.now, Toward::Near, &mut packet) == Verdict::Pass {
                    self.launch(Place::Sender, &packet);
                }
            }
            Place::Sender => self.take_ack(&packet),
            Place::Receiver => self.receive(&packet),
        }
    }

    fn drain(&mut self) {
        let room = std::cell::Cell::new(self.room);
        while let Some((toward, packet)) = self.pep.poll_output(self.now, |_, _| room.get() > 0) {
            match toward {
                Toward::Near => self.launch(Place::Sender, &packet),
                Toward::Far => {
                    room.set(room.get() - 1);
                    self.launch(Place::Receiver, &packet);
                }
            }
        }
        self.room = room.get();
    }

    fn send_new(&mut self) {
        let end = NEAR_ISN.wrapping_add(1).wrapping_add(self.sender.total);
        while before(self.sender.next, end.wrapping_add(1)) {
            let left = distance(self.sender.next, end);
            let window =
                distance(self.sender.next, later(self.sender.next, self.sender.window_end));
            let len = left.min(MSS).min(window);
            if len == 0 && left > 0 {
                break;
            }
            self.send_segment(self.sender.next, len, len == left);
            self.sender.next = self.sender.next.wrapping_add(len + u32::from(len == left));
        }
        if after(self.sender.next, self.sender.acked) || before(self.sender.acked, end) {
            self.sender.deadline.get_or_insert(self.now + Span::from_millis(1_500));
        }
    }

    fn send_segment(&mut self, seq: u32, len: u32, is_last: bool) {
        let flags = if is_last { ACK | FIN } else { ACK };
        let bare = self.bare(Toward::Far, flags, (seq, FAR_ISN.wrapping_add(1)), 1_000);
        let mut packet = bare.build();
        let from = distance(NEAR_ISN.wrapping_add(1), seq);
        let payload: Vec<u8> = (0..len).map(|at| content(from + at)).collect();
        let stamps = self.options.stamps((self.clock(3_000), self.sender.recent));
        extend(&mut packet, &stamps, &payload);
        self.launch(Place::ProxyFromNear, &packet);
    }

    fn take_ack(&mut self, packet: &[u8]) {
        let segment = Segment::parse(packet).expect("a segment");
        assert!(segment.is_intact(packet));
        if segment.has(super::super::segment::RST) {
            self.was_reset = true;
            return;
        }
        assert!(!after(segment.ack, later(self.sender.next, self.sender.acked).wrapping_add(1)));
        let window_end = segment.ack.wrapping_add(u32::from(segment.window) << self.options.scale);
        assert!(!after(window_end, self.receiver.offered), "more window than the receiver offered");
        if let Some(stamps) = segment.options.timestamps {
            if before(stamps.value, self.sender.recent) {
                return;
            }
            self.sender.recent = stamps.value;
        }
        if before(segment.ack, self.sender.acked) {
            return;
        }
        let has_advanced = after(segment.ack, self.sender.acked);
        self.sender.acked = segment.ack;
        self.sender.next = later(self.sender.next, segment.ack);
        self.sender.window_end = later(self.sender.window_end, window_end);
        if has_advanced {
            self.sender.duplicates = 0;
            self.sender.deadline = None;
        } else if after(self.sender.next, segment.ack) {
            self.sender.duplicates += 1;
            if self.sender.duplicates == 3 {
                let len = distance(segment.ack, self.sender.next).min(MSS);
                let end = NEAR_ISN.wrapping_add(1).wrapping_add(self.sender.total);
                let len = len.min(distance(segment.ack, end));
                self.send_segment(segment.ack, len, segment.ack.wrapping_add(len) == end);
            }
        }
    }

    fn receive(&mut self, packet: &[u8]) {
        let segment = Segment::parse(packet).expect("a segment");
        assert!(segment.is_intact(packet), "a damaged packet was sent");
        if let Some(stamps) = segment.options.timestamps {
            // PAWS (RFC 7323, 5.3).
            if before(stamps.value, self.receiver.recent) {
                self.receiver.paws += 1;
                self.answer(&[]);
                return;
            }
            if !after(segment.seq, self.receiver.next) {
                self.receiver.recent = stamps.value;
            }
        }
        assert!(
            !after(segment.end(), self.receiver.offered.wrapping_add(1)),
            "beyond the window of the receiver"
        );
        let first = NEAR_ISN.wrapping_add(1);
        let payload = &packet[packet.len() - segment.payload..];
        for (at, octet) in payload.iter().enumerate() {
            let seq = segment.seq.wrapping_add(at as u32);
            if !before(seq, first) {
                self.receiver.octets[distance(first, seq) as usize] = Some(*octet);
            }
        }
        let end = first.wrapping_add(self.sender.total);
        while before(self.receiver.next, end)
            && self.receiver.octets[distance(first, self.receiver.next) as usize].is_some()
        {
            self.receiver.next = self.receiver.next.wrapping_add(1);
        }
        if segment.has(FIN) && self.receiver.next == end {
            self.receiver.is_closed = true;
        }
        let is_out_of_order = after(segment.seq, self.receiver.next);
        let block = (segment.seq, segment.seq.wrapping_add(segment.payload as u32));
        let is_sacked = self.options.sack && is_out_of_order && segment.payload > 0;
        self.answer(if is_sacked { std::slice::from_ref(&block) } else { &[] });
    }

    /// Sends an acknowledgement of the receiver.
    fn answer(&mut self, sack: &[Block]) {
        let next = self.receiver.next.wrapping_add(u32::from(self.receiver.is_closed));
        let left = distance(next, later(next, self.receiver.offered));
        let window = if self.receiver.is_stopped { left } else { self.options.window };
        let field = (window >> self.options.scale).min(65_535);
        let end = next.wrapping_add(field << self.options.scale);
        self.receiver.offered = later(self.receiver.offered, end);
        let clock = self.clock(9_000);
        let bare = Bare {
            timestamps: self.options.timestamps.then_some((clock, self.receiver.recent)),
            sack,
            ..self.bare(Toward::Near, ACK, (FAR_ISN.wrapping_add(1), next), field as u16)
        };
        let packet = bare.build();
        self.launch(Place::ProxyFromFar, &packet);
    }

    /// Hands the proxy a packet as if it came from `toward`'s opposite side.
    pub(super) fn inject(&mut self, toward: Toward, mut packet: Vec<u8>) -> (Verdict, Vec<u8>) {
        let verdict = self.pep.handle(self.now, toward, &mut packet);
        self.pep.check();
        (verdict, packet)
    }

    /// A forged acknowledgement of the far end with these numbers.
    pub(super) fn forged(&self, seq_offset: u32, ack_offset: u32) -> Vec<u8> {
        let seq = FAR_ISN.wrapping_add(1).wrapping_add(seq_offset);
        let ack = self.sender.next.wrapping_add(ack_offset);
        self.bare(Toward::Near, ACK, (seq, ack), 1_000).build()
    }

    /// A reset of the sender.
    pub(super) fn sender_reset(&self) -> Vec<u8> {
        let numbers = (self.sender.next, FAR_ISN.wrapping_add(1));
        self.bare(Toward::Far, super::super::segment::RST | ACK, numbers, 0).build()
    }

    /// Resets on their way to the receiver.
    pub(super) fn resets_in_flight(&self) -> usize {
        let is_reset = |place: Place, packet: &[u8]| {
            place == Place::Receiver
                && Segment::parse(packet).is_some_and(|s| s.has(super::super::segment::RST))
        };
        self.flights.values().filter(|(place, packet)| is_reset(*place, packet)).count()
    }

    /// Octets that the sender knows to be acknowledged; its FIN is one more.
    pub(super) fn acked(&self) -> u32 {
        distance(NEAR_ISN.wrapping_add(1), self.sender.acked)
    }

    /// Octets that the receiver has without a gap.
    pub(super) fn received(&self) -> u32 {
        distance(NEAR_ISN.wrapping_add(1), self.receiver.next)
    }

    pub(super) fn is_received(&self) -> bool {
        self.receiver.octets.iter().all(Option::is_some)
    }

    /// A keep-alive probe of the sender.
    pub(super) fn probe(&self) -> Vec<u8> {
        let numbers = (self.sender.next.wrapping_sub(1), FAR_ISN.wrapping_add(1));
        self.bare(Toward::Far, ACK, numbers, 1_000).build()
    }

    /// A reset of the receiver, with its next sequence number and `offset`.
    pub(super) fn receiver_reset(&self, offset: u32) -> Vec<u8> {
        let numbers = (FAR_ISN.wrapping_add(1).wrapping_add(offset), self.receiver.next);
        self.bare(Toward::Near, super::super::segment::RST | ACK, numbers, 0).build()
    }
}
