//! One stream: its two halves and how far it has come.

use crate::fair::Owner;
use crate::frame::Open;
use crate::receive::ReceiveHalf;
use crate::scheduler::{Lately, Service};
use crate::send::SendHalf;
use crate::target::ResetReason;
use units::Instant;

/// How far the opening of a stream has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Opened here; the opening frame has to be sent (again).
    Wanted(Open),
    /// Opened here; the opening frame is in a packet.
    Sent(Open),
    /// Opened here; the far end has connected.
    Accepted,
    /// Opened by the peer; its opening frame has not come, others have.
    Awaited,
    /// Opened by the peer, and the layer above knows.
    Known,
}

/// A stream, as long as either end may speak of it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) opening: Opening,
    pub(crate) priority: crate::Priority,
    /// How it is served, where that was decided here.
    pub(crate) service: Option<Service>,
    pub(crate) send: SendHalf,
    pub(crate) receive: ReceiveHalf,
    /// Cut off at this side: nothing is kept, and the peer's final word is awaited.
    pub(crate) cut: bool,
    /// The peer has reset it, behind bytes that are still to be read.
    pub(crate) last: Option<ResetReason>,
    /// Among those of the peer's that can still hold received bytes.
    pub(crate) counted: bool,
    /// In the scheduler.
    pub(crate) scheduled: bool,
    pub(crate) lately: Lately,
    /// The party on whose account it is.
    pub(crate) owner: Owner,
    /// A write was cut short, or would have been.
    pub(crate) wants_room: bool,
    /// Among the writers that wait for the pool.
    pub(crate) waits_for_pool: bool,
    /// `Readable` waits in the queue of events.
    pub(crate) readable_told: bool,
    /// `Ended` has been told.
    pub(crate) ended_told: bool,
    /// What the peer was last told that it may send up to.
    pub(crate) announced: u64,
    /// What it was told before that, and when it was last told.
    pub(crate) before: u64,
    pub(crate) said_at: Instant,
    /// What the peer surely knows that it may send up to.
    pub(crate) known: u64,
    /// The next note says it.
    pub(crate) unsaid: bool,
    /// When the announcement goes as a frame, unless the peer shows that it knows.
    pub(crate) announce_by: Option<Instant>,
}

impl Stream {
    pub(crate) fn new(
        opening: Opening,
        priority: crate::Priority,
        send_minimum: u64,
        receive_minimum: u64,
    ) -> Self {
        Self {
            opening,
            priority,
            service: None,
            send: SendHalf::new(send_minimum),
            receive: ReceiveHalf::new(receive_minimum),
            cut: false,
            last: None,
            counted: false,
            scheduled: false,
            lately: Lately::default(),
            owner: Owner::default(),
            wants_room: false,
            waits_for_pool: false,
            readable_told: false,
            ended_told: false,
            announced: receive_minimum,
            before: receive_minimum,
            said_at: Instant::ZERO,
            known: receive_minimum,
            unsaid: false,
            announce_by: None,
        }
    }

    /// Whether it was opened at this side.
    pub(crate) fn is_local(&self) -> bool {
        match self.opening {
            Opening::Wanted(_) | Opening::Sent(_) | Opening::Accepted => true,
            Opening::Awaited | Opening::Known => false,
        }
    }

    /// Whether what came for it can be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.cut || self.last.is_some()
    }

    /// Whether there is something to send that `shared` bytes of shared credit allow.
    pub(crate) fn is_ready(&self, shared: u64) -> bool {
        !self.cut && (matches!(self.opening, Opening::Wanted(_)) || self.send.is_ready(shared))
    }
}
