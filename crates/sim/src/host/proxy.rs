//! A gateway between two transports: for each stream accepted on one side it opens one on the
//! other.

use super::{StreamEvent, Transport};
use crate::Streams;
use crate::network::{Node, Outbox, Packet};
use std::collections::BTreeMap;
use units::Instant;

/// Accepts streams on the transport `near`, opens one on `far` for each, and forwards octets, ends
/// and flow control in both directions. Packets for neither transport are forwarded unchanged, so
/// it can run as a [gateway](crate::Network::gateway_with) on the path of other traffic.
pub struct Proxy<N: Transport, F: Transport> {
    /// The transport on which streams are accepted.
    pub near: N,
    /// The transport on which they are continued.
    pub far: F,
    pairs: BTreeMap<N::Id, Pair<F::Id>>,
    by_far: BTreeMap<F::Id, N::Id>,
    passing: Vec<Packet>,
}

#[derive(Clone, Copy, Debug)]
struct Pair<I> {
    far: I,
    /// The near and the far peer have ended.
    ended: [bool; 2],
    /// The near and the far stream are closed.
    gone: [bool; 2],
}

impl<N: Transport, F: Transport> Proxy<N, F> {
    /// A gateway from `near` to `far`.
    pub fn new(near: N, far: F) -> Self {
        let (pairs, by_far) = (BTreeMap::new(), BTreeMap::new());
        Self { near, far, pairs, by_far, passing: Vec::new() }
    }

    /// Number of streams that it carries.
    pub fn carried(&self) -> usize {
        self.pairs.len()
    }

    fn events(&mut self, now: Instant) {
        loop {
            if let Some(event) = self.near.poll_event() {
                self.on_near(now, event);
            } else if let Some(event) = self.far.poll_event() {
                self.on_far(now, event);
            } else {
                return;
            }
        }
    }

    fn on_near(&mut self, now: Instant, event: StreamEvent<N::Id>) {
        match event {
            StreamEvent::Opened(near) => {
                let far = self.far.open(now);
                self.pairs.insert(near, Pair { far, ended: [false; 2], gone: [false; 2] });
                self.by_far.insert(far, near);
            }
            StreamEvent::Readable(near) => self.carry_out(now, near),
            StreamEvent::Writable(near) => self.carry_back(now, near),
            StreamEvent::Ended(near) => {
                self.change(near, |pair| pair.ended[0] = true);
                self.carry_out(now, near);
            }
            // `Gone` follows.
            StreamEvent::Broken(_) => {}
            StreamEvent::Gone(near) => {
                if let Some(pair) = self.pairs.get(&near) {
                    self.far.end(now, pair.far);
                }
                self.change(near, |pair| pair.gone[0] = true);
            }
        }
    }

    fn on_far(&mut self, now: Instant, event: StreamEvent<F::Id>) {
        let (StreamEvent::Opened(far)
        | StreamEvent::Readable(far)
        | StreamEvent::Writable(far)
        | StreamEvent::Ended(far)
        | StreamEvent::Broken(far)
        | StreamEvent::Gone(far)) = event;
        let Some(&near) = self.by_far.get(&far) else { return };
        match event {
            // Streams are not opened from this side, and `Gone` follows `Broken`.
            StreamEvent::Opened(_) | StreamEvent::Broken(_) => {}
            StreamEvent::Readable(_) => self.carry_back(now, near),
            StreamEvent::Writable(_) => self.carry_out(now, near),
            StreamEvent::Ended(_) => {
                self.change(near, |pair| pair.ended[1] = true);
                self.carry_back(now, near);
            }
            StreamEvent::Gone(_) => {
                self.near.end(now, near);
                self.change(near, |pair| pair.gone[1] = true);
            }
        }
    }

    /// Changes a pair, and discards it when both its streams are closed.
    fn change(&mut self, near: N::Id, change: impl FnOnce(&mut Pair<F::Id>)) {
        let Some(pair) = self.pairs.get_mut(&near) else { return };
        change(pair);
        if pair.gone == [true; 2] {
            let far = pair.far;
            self.pairs.remove(&near);
            self.by_far.remove(&far);
        }
    }

    fn carry_out(&mut self, now: Instant, near: N::Id) {
        if let Some(pair) = self.pairs.get(&near) {
            carry(now, &mut self.near, near, &mut self.far, pair.far, pair.ended[0]);
        }
    }

    fn carry_back(&mut self, now: Instant, near: N::Id) {
        if let Some(pair) = self.pairs.get(&near) {
            carry(now, &mut self.far, pair.far, &mut self.near, near, pair.ended[1]);
        }
    }
}

/// Moves octets as far as `to` accepts them; the rest stays in `from` and closes the peer's window.
/// Ends `sink` when `source` has `ended` and everything is moved; returns whether it did.
pub(crate) fn carry<A: Streams, B: Streams>(
    now: Instant,
    from: &mut A,
    source: A::Id,
    to: &mut B,
    sink: B::Id,
    ended: bool,
) -> bool {
    loop {
        let bytes = from.peek(source);
        let count = bytes.len();
        if count == 0 {
            break;
        }
        let taken = to.write(now, sink, bytes);
        if taken > 0 {
            from.consume(now, source, taken);
        }
        if taken < count {
            return false;
        }
    }
    if ended {
        to.end(now, sink);
    }
    ended
}

impl<N: Transport, F: Transport> Node for Proxy<N, F> {
    fn handle_packet(&mut self, now: Instant, packet: &mut Packet) {
        if self.near.wants(packet) {
            self.near.handle_packet(now, packet);
        } else if self.far.wants(packet) {
            self.far.handle_packet(now, packet);
        } else {
            self.passing.push(packet.clone());
        }
        self.events(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outbox<'_>) {
        self.passing.drain(..).for_each(|packet| out.forward_on(packet));
        self.near.poll_transmit(now, out);
        self.far.poll_transmit(now, out);
        self.events(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.near.poll_timeout(), self.far.poll_timeout()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.near.handle_timeout(now);
        self.far.handle_timeout(now);
        self.events(now);
    }
}
