//! Looking on: captures and time series of a path.

use super::{Datagram, Endpoint, Path};
use crate::capture::Way;
use crate::network::{Address, NodeId, Packet};
use crate::{Capture, Series};
use satlink::Direction;
use std::io::{self, Write};
use units::{Instant, Span};
use xstp::session::Snapshot;

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The terminal, 10.0.0.1.
    Terminal,
    /// The hub, 10.0.0.2.
    Hub,
}

/// The port of both ends in captures: that of gateways.
const PORT: u16 = 4500;

impl<T: Endpoint, H: Endpoint> Path<T, H> {
    /// Writes what passes at `end` from now on, both ways, as pcapng: what the endpoint sends as
    /// it sends it, what comes to it as it comes out of the link, before faults strike it.
    pub fn capture(&mut self, end: End, out: impl Write + 'static) {
        let name = match end {
            End::Terminal => "terminal",
            End::Hub => "hub",
        };
        self.captures[end as usize] = Some(Box::new(Capture::new(Box::new(out), name)));
    }

    /// Ends all captures.
    ///
    /// # Errors
    /// The first one that writing met.
    pub fn finish_captures(&mut self) -> io::Result<()> {
        let mut captures = self.captures.iter_mut().filter_map(Option::take);
        captures.try_for_each(|capture| capture.finish().map(drop))
    }

    /// All series, in the order in which they were asked for.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.recorders.series()
    }

    /// Takes the samples that are due.
    pub(super) fn record(&mut self) {
        if !self.recorders.is_empty() {
            let mut recorders = core::mem::take(&mut self.recorders);
            recorders.take(self.now, self);
            self.recorders = recorders;
        }
    }
}

impl<T: Endpoint + 'static, H: Endpoint + 'static> Path<T, H> {
    /// Samples a variable at once and then at this distance.
    ///
    /// # Panics
    /// When the distance is no time at all.
    pub fn sample(
        &mut self,
        every: Span,
        name: &str,
        unit: &'static str,
        read: impl Fn(&Self) -> Option<f64> + 'static,
    ) {
        self.recorders.add(Series::new(name, unit), Some(every), self.now, read);
    }

    /// Samples all variables of a session at this distance, named after `name`.
    ///
    /// # Panics
    /// When the distance is no time at all.
    pub fn sample_session(
        &mut self,
        every: Span,
        name: &str,
        read: impl Fn(&Self) -> Option<Snapshot> + 'static,
    ) {
        self.recorders.add_session(name, every, self.now, read);
    }
}

type Captures = [Option<Box<Capture>>; 2];

/// A datagram has left its endpoint.
pub(super) fn left(
    captures: &mut Captures,
    now: Instant,
    direction: Direction,
    datagram: &Datagram,
) {
    let from = match direction {
        Direction::Forward => End::Hub,
        Direction::Return => End::Terminal,
    };
    take(captures, from, now, Way::Outbound, direction, datagram);
}

/// A datagram has come out of the link.
pub(super) fn arrived(
    captures: &mut Captures,
    now: Instant,
    direction: Direction,
    datagram: &Datagram,
) {
    let to = match direction {
        Direction::Forward => End::Terminal,
        Direction::Return => End::Hub,
    };
    take(captures, to, now, Way::Inbound, direction, datagram);
}

fn take(
    captures: &mut Captures,
    end: End,
    now: Instant,
    way: Way,
    direction: Direction,
    datagram: &Datagram,
) {
    let Some(capture) = &mut captures[end as usize] else { return };
    let [terminal, hub] = [0, 1].map(|number| Address::new(NodeId::numbered(number), PORT));
    let [from, to] = match direction {
        Direction::Forward => [hub, terminal],
        Direction::Return => [terminal, hub],
    };
    let packet = Packet::udp(from, to, datagram.bytes.as_slice()).with_header(datagram.header);
    capture.packet(now, way, &packet);
}
