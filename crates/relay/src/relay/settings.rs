//! Settings that can change while a relay runs: rates, keep-alive, and path MTU hints.

use super::Relay;
use crate::RelayConfig;
use crate::session::lower;
use units::{BitRate, Instant, Span};

impl Relay {
    /// Limits the sending rate to `send`, and announces `receive` to the peer in the next
    /// association. A session of `fixed` keeps its rate if `send` is `None`.
    pub fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        self.set_rates_on(0, send, receive);
    }

    /// As [`set_rates`](Self::set_rates), for the path with this number.
    pub fn set_rates_on(&mut self, number: usize, send: Option<BitRate>, receive: Option<BitRate>) {
        let Some(path) = self.paths.get_mut(number) else { return };
        (path.config.send_rate, path.config.receive_rate) = (send, receive);
        if let Some(terminal) = &mut path.terminal {
            terminal.set_receive_rate(receive.map_or(0, BitRate::as_bps));
        }
        let announced = path.peer_rate();
        if let Some(session) = &mut path.session {
            session.set_max_rate(lower(send, announced));
        }
        self.sum_receive_rates();
    }

    /// Sets the time without a segment from the peer after which an idle session is probed; see
    /// [`RelayConfig::keep_alive`](crate::RelayConfig::keep_alive).
    pub fn set_keep_alive(&mut self, time: Span) {
        for (_, path) in &mut self.paths {
            path.config.keep_alive = time;
            if let Some(session) = &mut path.session {
                session.set_keep_alive(time);
            }
        }
    }

    /// Limits IP packets to `mtu` bytes, at most the configured size. If the path MTU is probed,
    /// use [`hint_mtu`](Self::hint_mtu).
    pub fn set_mtu(&mut self, now: Instant, mtu: usize) {
        let _ = now;
        let Some(path) = self.paths.get_mut(0) else { return };
        path.mtu.force(mtu.max(crate::MIN_MTU));
        path.fit_mtu();
    }

    /// Returns the current maximum size of an IP packet, bytes.
    pub fn mtu(&self) -> usize {
        self.first().mtu.current()
    }

    /// Returns whether the search for the path MTU is complete.
    pub(crate) fn is_mtu_final(&self) -> bool {
        self.first().mtu.is_settled()
    }

    /// Returns the configuration.
    pub(crate) fn config(&self) -> &RelayConfig {
        &self.first().config
    }

    /// Sets the path MTU that the kernel reports: the first link's MTU, or less after an ICMP
    /// message. It determines which size is probed next, and when; only probes change the size in
    /// use.
    pub fn hint_mtu(&mut self, mtu: usize) {
        self.hint_mtu_on(0, mtu);
    }

    /// As [`hint_mtu`](Self::hint_mtu), for the path with this number.
    pub fn hint_mtu_on(&mut self, number: usize, mtu: usize) {
        if let Some(path) = self.paths.get_mut(number) {
            path.mtu.set_hint(mtu);
        }
    }

    /// Handles an EMSGSIZE error of the host's own link for a datagram of `len` bytes of UDP
    /// payload.
    pub fn refuse_datagram(&mut self, len: usize) {
        self.refuse_datagram_on(0, len);
    }

    /// As [`refuse_datagram`](Self::refuse_datagram), for the path with this number.
    pub fn refuse_datagram_on(&mut self, number: usize, len: usize) {
        let Some(path) = self.paths.get_mut(number) else { return };
        path.mtu.on_emsgsize(len + path.config.ip_overhead);
        path.fit_mtu();
    }
}
