//! Contexts that the peer has defined.

use super::codec::{Context, FORM};
use super::{CONTEXTS, Rule};

/// What became of a definition or a compressed packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    /// The packet as it was sent.
    Packet(Vec<u8>),
    /// The context is not known, or not the one that was meant. With its number if the peer is to
    /// be notified.
    Damaged(Option<u8>),
}

/// The contexts that the peer has defined; at most [`CONTEXTS`] of about 130 octets.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    contexts: Vec<Slot>,
    /// A definition whose packet follows.
    next: Option<(u8, Rule)>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    context: Option<Box<Context>>,
    /// The peer is being notified that the context is not valid.
    refused: bool,
}

impl Receiver {
    /// Handles a DEFINE: the packet of the next frame is to be the context.
    pub(crate) fn define(&mut self, context: u8, rule: Rule) {
        self.next = Some((context, rule));
    }

    /// Returns the definition that the frame before this one has made, which is forgotten.
    pub(crate) fn take_definition(&mut self) -> Option<(u8, Rule)> {
        self.next.take()
    }

    /// Makes a context of a packet. Returns false if the packet has not the header that the rule
    /// states; the context is not defined then.
    pub(crate) fn learn(&mut self, (number, rule): (u8, Rule), packet: &[u8]) -> bool {
        let at = usize::from(number);
        if at >= CONTEXTS {
            return false;
        }
        if self.contexts.len() <= at {
            self.contexts.resize(at + 1, Slot::default());
        }
        let context = Context::new(rule, packet).map(Box::new);
        let is_context = context.is_some();
        self.contexts[at].context = context;
        is_context
    }

    /// Restores a packet from the content of a COMPRESSED.
    pub(crate) fn restore(&mut self, content: &[u8]) -> Restored {
        let Some((&first, rest)) = content.split_first() else { return Restored::Damaged(None) };
        let number = first & !FORM;
        if self.contexts.len() <= usize::from(number) {
            self.contexts.resize(usize::from(number) + 1, Slot::default());
        }
        let slot = &mut self.contexts[usize::from(number)];
        let context = slot.context.as_ref();
        match context.and_then(|context| context.restore(first & FORM != 0, rest)) {
            Some(packet) => Restored::Packet(packet),
            None => {
                slot.context = None;
                let notified = core::mem::replace(&mut slot.refused, true);
                Restored::Damaged((!notified).then_some(number))
            }
        }
    }

    /// The peer knows that the context is not valid.
    pub(crate) fn refusal_known(&mut self, context: u8) {
        if let Some(slot) = self.contexts.get_mut(usize::from(context)) {
            slot.refused = false;
        }
    }
}
