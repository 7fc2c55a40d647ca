//! Two endpoints and a wire with a delay, on which selected segments are lost.

use crate::{Endpoint, Ports, Segment, TcpConfig};
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec::Vec;
use units::{Instant, RngStream, Serializer, Span};

/// Whether the `n`th segment from the client, or from the server, is lost.
pub(super) type Loses = Box<dyn FnMut(usize, &Segment) -> bool>;

/// Two endpoints on a wire.
pub(super) struct Wire {
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    pub(super) now: Instant,
    one_way: Span,
    /// The transmitter from the client to the server, and its queue in octets.
    line: Option<(Serializer, u64)>,
    ways: [VecDeque<(Instant, Segment)>; 2],
    counts: [usize; 2],
    loses: [Loses; 2],
    /// Segments are delayed randomly up to this, and some are duplicated.
    disorder: Option<(RngStream, Span)>,
    /// The client's segments and their times.
    pub(super) sent: Vec<(Instant, Segment)>,
    /// The server's segments.
    pub(super) answers: Vec<(Instant, Segment)>,
    /// The server reads immediately.
    pub(super) reads: bool,
    /// The server closes after the client.
    pub(super) closes: bool,
    /// Octets read by the server.
    pub(super) read: u64,
    /// The server responds with so many octets after reading, and closes.
    pub(super) answer: Option<u64>,
    /// The MTU of the path from the client, and whether its router sends ICMP messages.
    pub(super) mtu: Option<(u16, bool)>,
    /// The data segment with this number gets an ECN mark.
    pub(super) marks: Option<u64>,
    /// Octets read by the client, and when the last arrived.
    pub(super) got: u64,
    pub(super) answered: Option<Instant>,
}

impl Wire {
    pub(super) fn new(config: &TcpConfig, one_way: Span) -> Self {
        let client = Endpoint::connect(config, Ports { from: 1_000, to: 80 }, 1);
        Self::between(client, Endpoint::listen(config, 80, 2), one_way)
    }

    pub(super) fn between(client: Endpoint, server: Endpoint, one_way: Span) -> Self {
        Self {
            client,
            server,
            now: Instant::ZERO,
            one_way,
            line: None,
            ways: [VecDeque::new(), VecDeque::new()],
            counts: [0; 2],
            loses: [Box::new(|_, _| false), Box::new(|_, _| false)],
            disorder: None,
            sent: Vec::new(),
            answers: Vec::new(),
            reads: true,
            closes: false,
            read: 0,
            answer: None,
            mtu: None,
            marks: None,
            got: 0,
            answered: None,
        }
    }

    /// The client's segments pass a transmitter with a queue of `queue` octets.
    pub(super) fn with_line(mut self, line: Serializer, queue: u64) -> Self {
        self.line = Some((line, queue));
        self
    }

    /// Segments are delayed independently up to `most`, and 1/20 is duplicated.
    pub(super) fn disordered(mut self, chance: RngStream, most: Span) -> Self {
        self.disorder = Some((chance, most));
        self
    }

    pub(super) fn losing(mut self, loses: impl FnMut(usize, &Segment) -> bool + 'static) -> Self {
        self.loses[0] = Box::new(loses);
        self
    }

    pub(super) fn losing_answers(
        mut self,
        loses: impl FnMut(usize, &Segment) -> bool + 'static,
    ) -> Self {
        self.loses[1] = Box::new(loses);
        self
    }

    /// Runs until `end`, or until no event is due.
    pub(super) fn run_until(&mut self, end: Instant) {
        loop {
            self.transmit();
            let wires = self.ways.iter().filter_map(|way| way.front().map(|front| front.0));
            let timers = [self.client.poll_timeout(), self.server.poll_timeout()];
            let due = wires.chain(timers.into_iter().flatten()).min();
            let Some(due) = due.filter(|&due| due <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(due);
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        for (index, way) in self.ways.iter_mut().enumerate() {
            // One at a time: each acknowledgement is answered before the next arrives.
            if way.front().is_some_and(|front| front.0 <= now)
                && let Some((_, segment)) = way.pop_front()
            {
                let to = if index == 0 { &mut self.server } else { &mut self.client };
                to.handle_segment(now, &segment);
            }
        }
        for end in [&mut self.client, &mut self.server] {
            if end.poll_timeout().is_some_and(|due| due <= now) {
                end.handle_timeout(now);
            }
        }
        while self.reads
            && let Some(piece) = self.server.read(u64::MAX)
        {
            assert_eq!((piece.content, piece.offset), (1, self.read), "in order and once");
            self.read += piece.len;
            if let Some(bytes) = self.answer.take() {
                self.server.write(bytes);
                self.server.close();
            }
        }
        while let Some(piece) = self.client.read(u64::MAX) {
            assert_eq!((piece.content, piece.offset), (2, self.got), "in order and once");
            self.got += piece.len;
            self.answered = Some(now);
        }
        if self.closes && self.server.is_finished() {
            self.server.close();
        }
    }

    fn transmit(&mut self) {
        while let Some(segment) = self.client.poll_transmit(self.now) {
            self.sent.push((self.now, segment));
            self.counts[0] += 1;
            if (self.loses[0])(self.counts[0] - 1, &segment) {
                continue;
            }
            if let Some((mtu, notified)) = self.mtu
                && segment.len() + 20 > usize::from(mtu)
            {
                if notified {
                    self.client.handle_too_big(self.now, segment.sequence, mtu);
                }
                continue;
            }
            let mut leaves = self.now;
            if let Some((line, queue)) = &mut self.line {
                let waits = line.rate().bytes_in(line.free_at().since(self.now));
                if waits + segment.len() as u64 > *queue {
                    continue;
                }
                leaves = line.send(self.now, segment.len() as u64 + 20);
            }
            self.carry(0, leaves, segment);
        }
        while let Some(segment) = self.server.poll_transmit(self.now) {
            self.answers.push((self.now, segment));
            self.counts[1] += 1;
            if !(self.loses[1])(self.counts[1] - 1, &segment) {
                self.carry(1, self.now, segment);
            }
        }
    }

    fn carry(&mut self, way: usize, leaves: Instant, mut segment: Segment) {
        let number = segment.payload.offset / 1_000;
        if way == 0 && segment.payload.len > 0 && self.marks == Some(number) {
            assert!(segment.mark(), "its sender understands marks");
        }
        let arrives = leaves + self.one_way;
        let mut times = std::vec![arrives];
        if let Some((chance, most)) = &mut self.disorder {
            let late = |chance: &mut RngStream| Span::from_nanos(chance.below(most.as_nanos()));
            times[0] += late(chance);
            if chance.chance(0.05) {
                times.push(arrives + late(chance));
            }
        }
        for at in times {
            let way = &mut self.ways[way];
            let place = way.partition_point(|(other, _)| *other <= at);
            way.insert(place, (at, segment));
        }
    }

    /// The data segments that the client sent from `from` until `to`, by the number of their first
    /// segment of 1000 octets.
    pub(super) fn numbers(&self, from: Instant, to: Instant) -> Vec<u64> {
        let within = self.sent.iter().filter(|(at, _)| (from..to).contains(at));
        let data = within.filter(|(_, segment)| segment.payload.len > 0);
        data.map(|(_, segment)| segment.payload.offset / 1_000).collect()
    }
}
