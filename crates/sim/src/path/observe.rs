//! Captures and time series of a path.

use super::{Datagram, Endpoint, Path};
use crate::capture::PacketDirection;
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
    /// Captures the datagrams at `end` from now on, both directions, as pcapng: sent ones when the
    /// endpoint sends them, received ones when the link delivers them, before faults are applied.
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
    /// Returns the first error of writing.
    pub fn finish_captures(&mut self) -> io::Result<()> {
        let mut captures = self.captures.iter_mut().filter_map(Option::take);
        captures.try_for_each(|capture| capture.finish().map(drop))
    }

    /// All series, in the order of their registration.
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
    /// Samples a variable now and then at this interval.
    ///
    /// # Panics
    /// If the interval is zero.
    pub fn sample(
        &mut self,
        every: Span,
        name: &str,
        unit: &'static str,
        read: impl Fn(&Self) -> Option<f64> + 'static,
    ) {
        self.recorders.add(Series::new(name, unit), Some(every), self.now, read);
    }

    /// Samples all variables of a session at this interval, named after `name`.
    ///
    /// # Panics
    /// If the interval is zero.
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

/// Writes `datagram` to the capture of the end that sends (outbound) or receives (inbound) it.
pub(super) fn capture(
    captures: &mut Captures,
    now: Instant,
    direction: Direction,
    seen_as: PacketDirection,
    datagram: &Datagram,
) {
    let (from, to) = match direction {
        Direction::Forward => (End::Hub, End::Terminal),
        Direction::Return => (End::Terminal, End::Hub),
    };
    let end = match seen_as {
        PacketDirection::Outbound => from,
        PacketDirection::Inbound => to,
    };
    let Some(capture) = &mut captures[end as usize] else { return };
    let [from, to] = [from, to].map(|end| Address::new(NodeId::numbered(end as u32), PORT));
    let packet = Packet::udp(from, to, datagram.bytes.as_slice()).with_header(datagram.header);
    capture.packet(now, seen_as, &packet);
}
