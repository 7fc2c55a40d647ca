//! A datagram socket at work, with what waits to leave by it. A hub has one, a terminal one for
//! each of its paths: one that is full does not hold up another.
//!
//! ```text
//!   bound ──the interface is gone, or is another──▶ waiting ──once a second, until it succeeds──▶ bound
//!     └─────this host has lost the address──▶ absent ──it has it again──▶ bound
//! ```

use crate::engine::Engine;
use crate::engine::host::{DatagramSocket, Host, Sent, Source};
use crate::engine::peers::relay_set::{Carrier, Outgoing};
use crate::host::LOOK;
use crate::report::UdpCounters;
use crate::{Config, PathSection};
use std::io;
use std::net::SocketAddr;
use units::Instant;

/// Receiving calls in one round.
const RECEIVE_BUDGET: usize = 8;
/// Batches sent in one round.
const TRANSMIT_BUDGET: usize = 64;
/// Bytes of a batch: what the kernel takes in one call.
const BATCH: usize = 63 * 1024;

/// One socket.
#[derive(Debug)]
pub(crate) struct Outlet {
    place: Place,
    /// Nothing goes out or comes in while there is none.
    udp: Option<Box<dyn DatagramSocket>>,
    /// This host does not have the address: there is nothing to send from.
    absent: bool,
    pub(crate) readable: bool,
    /// Datagrams that leave next.
    buffer: Vec<u8>,
    /// What of the buffer the socket has not taken yet.
    pub(crate) pending: Option<Outgoing>,
    /// What went through sockets that are gone.
    past: UdpCounters,
}

/// Where a socket belongs.
#[derive(Debug)]
struct Place {
    /// What the path is called; empty where there is only one.
    path: String,
    address: SocketAddr,
    interface: Option<String>,
    /// What was last in the way, as the log was told.
    refusal: Option<String>,
}

impl Place {
    fn bind(&self, host: &mut dyn Host) -> io::Result<Box<dyn DatagramSocket>> {
        host.bind(self.address, self.interface.as_deref())
    }

    /// Whether `udp` is where it belongs.
    fn has(&self, udp: &dyn DatagramSocket) -> bool {
        self.interface.as_ref().is_none_or(|interface| udp.is_bound_to(interface))
    }

    fn complain(&mut self, error: &io::Error) {
        let refusal = Some(error.to_string());
        if self.refusal != refusal {
            let Self { path, address, .. } = self;
            let interface = self.interface.as_deref().unwrap_or("any");
            tracing::warn!(%path, %address, interface, %error, "path down: it waits to be bound");
            self.refusal = refusal;
        }
    }
}

impl Outlet {
    /// The socket of a path, which waits for its interface and its address.
    ///
    /// # Errors
    /// The kernel's, when waiting would not help.
    pub(crate) fn open(path: &PathSection, host: &mut dyn Host) -> io::Result<Self> {
        let (name, interface) = (path.name.clone(), path.interface.clone());
        let address = path.link.listen;
        let mut place = Place { path: name, address, interface, refusal: None };
        let udp = match place.bind(host) {
            Ok(udp) => Some(udp),
            Err(error) if is_absent(&error) => {
                place.complain(&error);
                None
            }
            Err(error) => return Err(error),
        };
        let (buffer, past) = (vec![0; BATCH], UdpCounters::default());
        Ok(Self { place, udp, absent: false, readable: true, buffer, pending: None, past })
    }

    /// Whether datagrams can go out and come in.
    pub(crate) fn is_working(&self) -> bool {
        self.udp.is_some() && !self.absent
    }

    /// The interface that it waits for, if it does.
    fn missing(&self) -> Option<String> {
        let Place { path, interface, .. } = &self.place;
        let interface = interface.as_deref().filter(|_| self.udp.is_none())?;
        Some(format!("interface {interface} (path {path:?})"))
    }

    /// Its socket, while it has one.
    pub(crate) fn udp(&self) -> Option<&dyn DatagramSocket> {
        self.udp.as_deref()
    }

    /// The address in use, while there is one.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        self.udp.as_ref().and_then(|udp| udp.local_address().ok())
    }

    /// What went through so far.
    pub(crate) fn counters(&self) -> UdpCounters {
        let mut all = self.past;
        if let Some(udp) = &self.udp {
            all.add(udp.counters());
        }
        all
    }

    /// Has the loop wake for it; it is the outlet with this `number`.
    pub(crate) fn watch(&mut self, host: &mut dyn Host, number: usize) -> io::Result<()> {
        match &self.udp {
            Some(udp) => host.watch(udp.id(), Source::Datagrams(number)),
            None => Ok(()),
        }
    }

    /// Leaves an interface that is gone, and binds to the one that is there. True when its socket
    /// is another, or there is none any more.
    fn look(&mut self, host: &mut dyn Host, number: usize) -> bool {
        if self.udp.as_ref().is_some_and(|udp| self.place.has(&**udp)) {
            return false;
        }
        let lost = self.udp.take();
        if let Some(udp) = lost {
            host.unwatch(udp.id());
            self.past.add(udp.counters());
            self.pending = None;
        }
        let bound = self.place.bind(host).and_then(|udp| {
            host.watch(udp.id(), Source::Datagrams(number))?;
            Ok(udp)
        });
        match bound {
            Ok(udp) => {
                let interface = self.place.interface.as_deref().unwrap_or("any");
                tracing::info!(path = %self.place.path, interface, "path bound to its interface");
                (self.udp, self.readable, self.place.refusal) = (Some(udp), true, None);
                true
            }
            Err(error) => {
                self.place.complain(&error);
                true
            }
        }
    }

    /// Takes note that this host does not have the address, or has it again.
    fn set_absent(&mut self, absent: bool) {
        if self.absent && !absent {
            if let Some(udp) = &mut self.udp {
                udp.renew();
            }
            self.readable = true;
        }
        self.absent = absent;
    }

    /// Takes in what has come, within its budget.
    pub(crate) fn receive(&mut self, carrier: &mut Carrier, now: Instant, number: usize) {
        for _ in 0..RECEIVE_BUDGET {
            if !self.readable {
                return;
            }
            let Some(udp) = &mut self.udp else { return };
            let received = udp.receive(&mut |from, datagram| {
                carrier.handle_datagram(now, number, from, datagram)
            });
            self.readable = match received {
                Ok(more) => more,
                Err(error) => {
                    tracing::warn!(%error, "receiving datagrams");
                    false
                }
            };
        }
    }

    /// Sends what the pacer lets go; true when there is more.
    pub(crate) fn transmit(
        &mut self,
        carrier: &mut Carrier,
        host: &dyn Host,
        now: Instant,
        number: usize,
    ) -> bool {
        for _ in 0..TRANSMIT_BUDGET {
            let Some(udp) = self.udp.as_mut().filter(|_| !self.absent) else {
                self.pending = None;
                return self.drop_all(carrier, now, number);
            };
            let outgoing = match self.pending.take() {
                Some(pending) => pending,
                None => {
                    let most = udp.max_batch();
                    match carrier.poll_transmit(now, number, &mut self.buffer, most) {
                        Some(outgoing) => outgoing,
                        None => return false,
                    }
                }
            };
            let Outgoing { destination, len, segment_size } = outgoing;
            match udp.send(destination, &self.buffer[..len], segment_size) {
                Sent::Done => {}
                Sent::Full => {
                    self.pending = Some(outgoing);
                    return false;
                }
                Sent::TooBig => {
                    carrier.check_paths(host);
                    carrier.too_big(number, destination, segment_size);
                }
            }
        }
        true
    }

    /// Without a socket what is due is lost, as on a link that is out.
    fn drop_all(&mut self, carrier: &mut Carrier, now: Instant, number: usize) -> bool {
        for _ in 0..TRANSMIT_BUDGET {
            let Some(outgoing) = carrier.poll_transmit(now, number, &mut self.buffer, 1) else {
                return false;
            };
            let count = outgoing.len.div_ceil(outgoing.segment_size.max(1)) as u64;
            self.past.send_errors += count;
        }
        true
    }
}

/// Whether what is to be bound to may come yet.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO | libc::EADDRNOTAVAIL))
}

/// What went through all of them.
pub(crate) fn counted(outlets: &[Outlet]) -> UdpCounters {
    let mut all = UdpCounters::default();
    outlets.iter().for_each(|outlet| all.add(&outlet.counters()));
    all
}

impl Engine {
    /// Where sockets wait for interfaces, or may lose them: looks after them now and then.
    pub(crate) fn look_after_outlets(&mut self, now: Instant) {
        if !self.addresses.review(now, |address| self.core.host.has_address(address)) {
            return;
        }
        let mut moved = false;
        for (number, outlet) in self.outlets.iter_mut().enumerate() {
            let before = outlet.is_working();
            let is_another = outlet.look(&mut *self.core.host, number);
            outlet.set_absent(self.addresses.lacks(outlet.place.address));
            if is_another || outlet.is_working() != before {
                moved |= outlet.is_working();
                self.core.carrier.set_bound(number, outlet.is_working());
            }
        }
        if moved {
            // The interface may take less, or more.
            self.core.carrier.check_paths(&*self.core.host);
        }
        let watched = |outlet: &Outlet| outlet.udp.is_none() || outlet.place.interface.is_some();
        if self.outlets.iter().any(watched) {
            self.addresses.look_by(now + LOOK);
        }
    }

    /// Watches the addresses that `config` names.
    pub(crate) fn watch_addresses(&mut self, config: &Config) {
        self.addresses.watch(config);
    }

    /// The addresses and interfaces that it waits for.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.addresses.missing().chain(self.outlets.iter().filter_map(Outlet::missing)).collect()
    }
}
