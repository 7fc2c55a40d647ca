//! Packets with compressed headers (`docs/spec/headers.md`).

use super::{DatagramStatistics, Datagrams};
use crate::frame::Writer;
use crate::headers::{CONTEXTS, ContextUse, Outgoing, Restored, Rule, Sender};
use units::Instant;

/// What the peer is to be notified after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// How many contexts this side stores.
    Contexts,
    /// That this side does not have the context.
    Invalid(u8),
}

impl Datagrams {
    /// The peer skips frames that it does not know, or not.
    pub(crate) fn permit_compression(&mut self, permitted: bool) {
        self.contexts.set_permitted(permitted);
    }

    /// Handles a DEFINE: the packet in the next frame is to be the context.
    pub(crate) fn receive_define(&mut self, context: u8, rule: Rule) {
        self.peer_contexts.define(context, rule);
    }

    /// Returns the definition in the frame before, which is forgotten.
    pub(crate) fn take_definition(&mut self) -> Option<(u8, Rule)> {
        self.peer_contexts.take_definition()
    }

    /// Handles a DATAGRAM behind the definition of a context; returns what to tell the peer.
    pub(crate) fn receive_defining(
        &mut self,
        now: Instant,
        definition: (u8, Rule),
        packet: &[u8],
    ) -> Option<Answer> {
        if !self.peer_contexts.learn(definition, packet) {
            self.statistics.headers_damaged += 1;
        }
        self.receive(now, packet.to_vec());
        (!core::mem::replace(&mut self.announced, true)).then_some(Answer::Contexts)
    }

    /// Handles a COMPRESSED; returns what to tell the peer.
    pub(crate) fn receive_compressed(&mut self, now: Instant, content: &[u8]) -> Option<Answer> {
        match self.peer_contexts.restore(content) {
            Restored::Packet(packet) => {
                self.statistics.headers_restored += 1;
                self.receive(now, packet);
                None
            }
            Restored::Damaged(context) => {
                self.statistics.headers_damaged += 1;
                context.map(Answer::Invalid)
            }
        }
    }

    /// Handles a CONTEXTS.
    pub(crate) fn receive_contexts(&mut self, contexts: u64) {
        self.contexts.announced(contexts);
    }

    /// Handles an INVALID.
    pub(crate) fn receive_invalid(&mut self, context: u8) {
        self.contexts.refused(context);
    }

    /// The peer has a packet of the session with a context.
    pub(crate) fn context_released(&mut self, carried: ContextUse) {
        self.contexts.released(carried);
    }

    /// A packet of the session with a context was lost; its retransmission is empty. Returns
    /// what is to be released then.
    pub(crate) fn context_lost(&mut self, carried: ContextUse) -> ContextUse {
        if carried.defines {
            self.contexts.lost(carried.context);
        }
        ContextUse { defines: false, ..carried }
    }

    /// The peer knows that a context of its own is not valid.
    pub(crate) fn refusal_known(&mut self, context: u8) {
        self.peer_contexts.refusal_known(context);
    }

    /// Number of contexts that are announced.
    pub(crate) fn contexts() -> u64 {
        CONTEXTS as u64
    }
}

/// Writes a packet, with its header compressed if it has a context. Returns the context in the
/// frame, or `None` if the packet does not fit.
pub(super) fn write_whole(
    contexts: &mut Sender,
    statistics: &mut DatagramStatistics,
    writer: &mut Writer<'_>,
    packet: &[u8],
    more: bool,
) -> Option<Option<ContextUse>> {
    let mut outgoing = contexts.plan(packet);
    let mut saved = 0;
    let mut written = match &outgoing {
        Outgoing::Plain => false,
        Outgoing::Define { context, rule } => writer.define(*context, *rule, packet, more),
        Outgoing::Compressed { header, .. } => {
            saved = (header.replaced - header.octets.len()) as u64;
            writer.compressed(&header.octets, &packet[header.replaced..])
        }
    };
    if written {
        statistics.headers_compressed += u64::from(saved > 0);
        statistics.header_bytes_saved += saved;
    } else {
        outgoing = Outgoing::Plain;
        written = writer.datagram(packet, more);
    }
    written.then(|| contexts.sent(&outgoing, packet))
}
