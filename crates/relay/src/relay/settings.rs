//! What changes while a relay works: rates, keep-alive, and what is known of the path's MTU.

use super::Relay;
use crate::session::lower;
use units::{BitRate, Instant, Span};

impl Relay {
    /// From here on this side sends at `send` at most, and takes `receive` from the peer, which is
    /// told so in the next association. A session of `fixed` keeps its rate when it is told none.
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

    /// An idle session is tried after `time` without word from the peer from here on; see
    /// [`RelayConfig::keep_alive`](crate::RelayConfig::keep_alive).
    pub fn set_keep_alive(&mut self, time: Span) {
        self.config.keep_alive = time;
        if let Some(session) = &mut self.session {
            session.set_keep_alive(time);
        }
    }

    /// The path carries IP packets of at most `mtu` bytes from now on; never more than is
    /// configured. Where that is found by probing, see [`hint_mtu`](Self::hint_mtu).
    pub fn set_mtu(&mut self, now: Instant, mtu: usize) {
        let _ = now;
        self.path.force(mtu.max(crate::MIN_MTU));
        self.fit_path();
    }

    /// The largest IP packet that goes out now, bytes.
    pub fn mtu(&self) -> usize {
        self.path.current()
    }

    /// What the kernel thinks that the path takes: the first link's MTU, or less where a router
    /// has said so. It decides what is probed next, and when; nothing is believed for it.
    pub fn hint_mtu(&mut self, mtu: usize) {
        self.path.set_hint(mtu);
    }

    /// The host's own link did not take a datagram of `len` bytes of UDP payload.
    pub fn refuse_datagram(&mut self, len: usize) {
        self.path.refused(len + self.config.ip_overhead);
        self.fit_path();
    }
}
