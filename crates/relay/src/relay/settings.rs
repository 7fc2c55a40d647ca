//! Settings that can change while a relay runs: rates, keep-alive, and path MTU hints.

use super::Relay;
use crate::RelayConfig;
use crate::session::lower;
use units::{BitRate, Instant, Span};

impl Relay {
    /// Limits the sending rate to `send`, and announces `receive` to the peer in the next
    /// association. A session of `fixed` keeps its rate if `send` is `None`.
    pub fn set_rates(&mut self, send: Option<BitRate>, receive: Option<BitRate>) {
        (self.config.send_rate, self.config.receive_rate) = (send, receive);
        if let Some(terminal) = &mut self.terminal {
            terminal.set_receive_rate(receive.map_or(0, BitRate::as_bps));
        }
        let announced = self.streams.peer_rate();
        if let Some(session) = &mut self.session {
            session.set_max_rate(lower(send, announced));
        }
    }

    /// Sets the time without a segment from the peer after which an idle session is probed; see
    /// [`RelayConfig::keep_alive`](crate::RelayConfig::keep_alive).
    pub fn set_keep_alive(&mut self, time: Span) {
        self.config.keep_alive = time;
        if let Some(session) = &mut self.session {
            session.set_keep_alive(time);
        }
    }

    /// Limits IP packets to `mtu` bytes, at most the configured size. If the path MTU is probed,
    /// use [`hint_mtu`](Self::hint_mtu).
    pub fn set_mtu(&mut self, now: Instant, mtu: usize) {
        let _ = now;
        self.path.force(mtu.max(crate::MIN_MTU));
        self.fit_path();
    }

    /// Returns the current maximum size of an IP packet, bytes.
    pub fn mtu(&self) -> usize {
        self.path.current()
    }

    /// Returns whether the search for the path MTU is complete.
    pub(crate) fn is_mtu_final(&self) -> bool {
        self.path.is_settled()
    }

    /// Returns the configuration.
    pub(crate) fn config(&self) -> &RelayConfig {
        &self.config
    }

    /// Sets the path MTU that the kernel reports: the first link's MTU, or less after an ICMP
    /// message. It determines which size is probed next, and when; only probes change the size in
    /// use.
    pub fn hint_mtu(&mut self, mtu: usize) {
        self.path.set_hint(mtu);
    }

    /// Handles an EMSGSIZE error of the host's own link for a datagram of `len` bytes of UDP
    /// payload.
    pub fn refuse_datagram(&mut self, len: usize) {
        self.path.on_emsgsize(len + self.config.ip_overhead);
        self.fit_path();
    }
}
