//! Contexts that this side defines, and which of them a packet uses.

use super::codec::{Compressed, Context};
use super::layout::{LONGEST, Layout, double_word, word};
use super::{CONTEXTS, IdRule, Profile, Rule};

/// Flows whose last header is stored. Each has at most two contexts.
const FLOWS: usize = CONTEXTS / 2;
/// Definitions that are sent to a peer before it has stated how many contexts it stores: it may not
/// know the frame.
const UNANSWERED: usize = 16;
/// Packets of a flow between two definitions.
const DEFINE_INTERVAL: u32 = 32;
/// Compressed headers in succession with more than the least fields, after which the context is
/// defined again.
const WASTEFUL: u8 = 4;
/// Counter from which on the context is defined again, so that the new one is known before a counter
/// takes two octets.
const AGED: u16 = 160;
/// Number of packets of other flows after which the contexts of an unused flow may be reused.
const UNUSED: u64 = 512;

/// A context in a packet of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextUse {
    pub(crate) context: u8,
    /// The packet has its definition, and not a header that refers to it.
    pub(crate) defines: bool,
}

/// How a packet is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// As it is.
    Plain,
    /// As it is, behind the definition of a context.
    Define { context: u8, rule: Rule },
    /// With a compressed header.
    Compressed { context: u8, header: Compressed },
}

#[derive(Clone, Debug, Default)]
struct Slot {
    context: Option<Box<Context>>,
    /// The flow that uses it.
    flow: Option<u64>,
    /// Packets with the context that are not acknowledged.
    in_flight: u32,
}

#[derive(Debug)]
struct Flow {
    number: u64,
    /// What the headers of the flow have in common.
    layout: Layout,
    fixed: [u8; LONGEST],
    /// The beginning of its last packet.
    last: [u8; LONGEST],
    /// The context in use, and one whose definition is not acknowledged.
    ready: Option<u8>,
    pending: Option<u8>,
    wasteful: u8,
    /// Packets since the last definition.
    since: u32,
    stride: u32,
    /// Position of its last packet among all.
    used: u64,
}

/// The contexts that this side has defined for the peer.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Configured, and the peer permits it.
    configured: bool,
    permitted: bool,
    slots: Vec<Slot>,
    flows: Vec<Flow>,
    /// Contexts that the peer stores, as it has stated.
    announced: Option<usize>,
    /// Definitions sent before.
    unanswered: usize,
    packets: u64,
    numbers: u64,
}

impl Sender {
    /// No contexts; compresses if `configured`, and once the peer permits it.
    pub(crate) fn new(configured: bool) -> Self {
        Self { configured, ..Self::default() }
    }

    /// The peer skips frames that it does not know, or not.
    pub(crate) fn set_permitted(&mut self, permitted: bool) {
        self.permitted = permitted;
    }

    /// The peer stores so many contexts.
    pub(crate) fn announced(&mut self, contexts: u64) {
        let contexts = usize::try_from(contexts).map_or(CONTEXTS, |most| most.min(CONTEXTS));
        self.announced = Some(contexts);
        for at in contexts..self.slots.len() {
            self.retire(at);
        }
    }

    /// Decides how a packet is sent. Nothing is changed but the table of flows.
    pub(crate) fn plan(&mut self, packet: &[u8]) -> Outgoing {
        if !self.configured || !self.permitted || self.announced == Some(0) {
            return Outgoing::Plain;
        }
        let Some(at) = self.flow_of(packet) else { return Outgoing::Plain };
        let flow = &self.flows[at];
        let compressed = flow.ready.and_then(|context| {
            let header =
                self.slots[usize::from(context)].context.as_ref()?.compress(context, packet)?;
            Some((context, header))
        });
        let is_good = compressed
            .as_ref()
            .is_some_and(|(_, header)| flow.wasteful < WASTEFUL && header.counter < AGED);
        if !is_good
            && flow.pending.is_none()
            && flow.since >= DEFINE_INTERVAL
            && let Some(rule) = flow.rule(packet)
            && let Some(context) = self.free_slot(at)
        {
            return Outgoing::Define { context, rule };
        }
        match compressed.filter(|_| self.announced.is_some()) {
            Some((context, header)) => Outgoing::Compressed { context, header },
            None => Outgoing::Plain,
        }
    }

    /// Records that a packet was written as planned; returns the context in it.
    pub(crate) fn sent(&mut self, outgoing: &Outgoing, packet: &[u8]) -> Option<ContextUse> {
        let at = self.flow_of(packet)?;
        self.packets += 1;
        let flow = &mut self.flows[at];
        flow.take(self.packets, packet);
        match *outgoing {
            Outgoing::Plain => None,
            Outgoing::Define { context, rule } => {
                (flow.pending, flow.since, flow.wasteful) = (Some(context), 0, 0);
                let slot = &mut self.slots[usize::from(context)];
                slot.context = Context::new(rule, packet).map(Box::new);
                slot.flow = Some(flow.number);
                slot.in_flight += 1;
                self.unanswered += 1;
                Some(ContextUse { context, defines: true })
            }
            Outgoing::Compressed { context, ref header } => {
                flow.wasteful = if header.is_least { 0 } else { flow.wasteful.saturating_add(1) };
                self.slots[usize::from(context)].in_flight += 1;
                Some(ContextUse { context, defines: false })
            }
        }
    }

    /// The packet of the session with a definition was lost; its retransmission is empty.
    pub(crate) fn lost(&mut self, context: u8) {
        let at = usize::from(context);
        let is_pending = |flow: &&mut Flow| flow.pending == Some(context);
        if let Some(flow) = self.flows.iter_mut().find(is_pending) {
            // It may be defined again at once.
            (flow.pending, flow.since) = (None, DEFINE_INTERVAL);
        }
        if self.slots.get(at).is_some_and(|slot| slot.flow.is_some()) {
            self.retire(at);
        }
    }

    /// The peer has the packet of the session with this context.
    pub(crate) fn released(&mut self, carried: ContextUse) {
        let Some(slot) = self.slots.get_mut(usize::from(carried.context)) else { return };
        slot.in_flight = slot.in_flight.saturating_sub(1);
        if !carried.defines {
            return;
        }
        let is_pending = |flow: &&mut Flow| flow.pending == Some(carried.context);
        let Some(flow) = self.flows.iter_mut().find(is_pending) else { return };
        flow.pending = None;
        if let Some(old) = flow.ready.replace(carried.context) {
            self.retire(usize::from(old));
        }
    }

    /// The peer cannot use the context.
    pub(crate) fn refused(&mut self, context: u8) {
        if self.slots.len() > usize::from(context) {
            self.retire(usize::from(context));
        }
    }

    /// Takes a context from its flow. It is free when all packets with it are acknowledged.
    fn retire(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        (slot.context, slot.flow) = (None, None);
        for flow in &mut self.flows {
            for context in [&mut flow.ready, &mut flow.pending] {
                if *context == Some(at as u8) {
                    *context = None;
                }
            }
        }
    }

    /// Returns a context that may be defined for the flow `at`, if there is one.
    fn free_slot(&mut self, at: usize) -> Option<u8> {
        let most = match self.announced {
            Some(contexts) => contexts,
            None if self.unanswered >= UNANSWERED => 0,
            None => UNANSWERED,
        };
        let is_free = |slot: &Slot| slot.flow.is_none() && slot.in_flight == 0;
        if let Some(free) = self.slots.iter().take(most).position(is_free) {
            return Some(free as u8);
        }
        if self.slots.len() < most {
            self.slots.push(Slot::default());
            return Some((self.slots.len() - 1) as u8);
        }
        // The contexts of the flow that was used least recently are free for the next packet.
        let others = self.flows.iter().enumerate().filter(|&(other, flow)| {
            other != at && flow.ready.is_some() && self.packets - flow.used > UNUSED
        });
        let context = others.min_by_key(|(_, flow)| flow.used).and_then(|(_, flow)| flow.ready)?;
        self.retire(usize::from(context));
        None
    }

    /// Returns the position of the packet's flow, which is made if it is new; `None` if its header
    /// cannot be compressed.
    fn flow_of(&mut self, packet: &[u8]) -> Option<usize> {
        let layout = Layout::of(packet)?;
        let plain = Layout { profile: layout.profile.min(Profile::Udp), ..layout };
        let position = |flows: &[Flow], layout: Layout| {
            let (fixed, _) = layout.fixed(packet);
            flows.iter().position(|flow| flow.layout == layout && flow.fixed == fixed)
        };
        if layout != plain
            && let Some(at) = position(&self.flows, layout)
        {
            return Some(at);
        }
        let base = position(&self.flows, plain);
        // Two packets of one source in succession are RTP.
        let last = base.map(|at| self.flows[at].last).filter(|last| {
            layout != plain && layout.fixed(last) == layout.fixed(packet) && {
                let at = layout.len() - 10;
                (1..=8).contains(&word(packet, at).wrapping_sub(word(last, at)))
            }
        });
        match (base, last) {
            (_, Some(last)) => Some(self.insert(layout, packet, Some(last))),
            (Some(at), None) => Some(at),
            (None, None) => Some(self.insert(plain, packet, None)),
        }
    }

    /// Makes a flow of a packet, in place of the one that was used least recently if there are too
    /// many; returns its position.
    fn insert(&mut self, layout: Layout, packet: &[u8], last: Option<[u8; LONGEST]>) -> usize {
        if self.flows.len() >= FLOWS {
            let oldest = (0..self.flows.len()).min_by_key(|&at| self.flows[at].used);
            let flow = self.flows.swap_remove(oldest.unwrap_or_default());
            for context in [flow.ready, flow.pending].into_iter().flatten() {
                self.retire(usize::from(context));
            }
        }
        self.numbers += 1;
        self.flows.push(Flow {
            number: self.numbers,
            layout,
            fixed: layout.fixed(packet).0,
            last: last.unwrap_or([0; LONGEST]),
            ready: None,
            pending: None,
            wasteful: 0,
            since: DEFINE_INTERVAL,
            stride: 0,
            used: self.packets,
        });
        self.flows.len() - 1
    }
}

impl Flow {
    /// The rule for a context of this packet, from it and the one before; `None` if it is the first.
    fn rule(&self, packet: &[u8]) -> Option<Rule> {
        if self.last[0] == 0 {
            return None;
        }
        let (layout, last) = (self.layout, &self.last);
        let profile = layout.profile;
        let steps = layout.rtp().map(|at| word(packet, at + 2).wrapping_sub(word(last, at + 2)));
        let grown = word(packet, 4).wrapping_sub(word(last, 4));
        let id = match (grown, steps) {
            _ if layout.v6 => IdRule::Constant,
            (0, _) => IdRule::Constant,
            (grown, Some(steps)) if grown == steps => IdRule::Sequential,
            (1..=16, None) => IdRule::Sequential,
            (_, Some(_) | None) => IdRule::Written,
        };
        let stride = self.stride_at(packet);
        Some(Rule { profile, id, stride })
    }

    /// The difference of RTP timestamps between the last packet and this one, if this is the next
    /// one and does not begin a talkspurt; else that which was seen before.
    fn stride_at(&self, packet: &[u8]) -> u32 {
        let Some(at) = self.layout.rtp() else { return 0 };
        let steps = word(packet, at + 2).wrapping_sub(word(&self.last, at + 2));
        let grown = double_word(packet, at + 4).wrapping_sub(double_word(&self.last, at + 4));
        let begins = packet[at + 1] & 0x80 != 0;
        if steps == 1 && !begins && self.last[0] != 0 { grown } else { self.stride }
    }

    /// Records that a packet was sent, the `used`-th of all.
    fn take(&mut self, used: u64, packet: &[u8]) {
        self.stride = self.stride_at(packet);
        self.used = used;
        self.since = self.since.saturating_add(1);
        let len = packet.len().min(LONGEST);
        self.last = [0; LONGEST];
        self.last[..len].copy_from_slice(&packet[..len]);
    }
}
