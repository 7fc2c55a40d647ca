//! One stream: its two sides and its state.

use crate::coding::{Decoder, Encoder};
use crate::fair::Owner;
use crate::frame::Open;
use crate::receive::ReceiveHalf;
use crate::scheduler::{Lately, Service};
use crate::send::SendHalf;
use crate::target::ResetReason;
use units::Instant;

/// State of a stream's opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Opened by this side; the opening frame needs to be sent or retransmitted.
    Wanted(Open),
    /// Opened by this side; the opening frame is in a packet.
    Sent(Open),
    /// Opened by this side; the peer gateway has connected to the server.
    Accepted,
    /// Opened by the peer; other frames have arrived before its opening frame.
    Awaited,
    /// Opened by the peer, and reported to the layer above.
    Known,
}

/// How the bytes that the layer above writes are sent.
#[derive(Debug)]
pub(crate) enum Encoding {
    /// Nothing was written.
    Undecided,
    /// Compressed.
    Coded(Box<Encoder>),
    /// As they are.
    Plain,
}

/// A stream, until both ends have discarded its state.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) opening: Opening,
    pub(crate) priority: crate::Priority,
    /// Its class, if it was assigned by configuration.
    pub(crate) service: Option<Service>,
    pub(crate) send: SendHalf,
    pub(crate) receive: ReceiveHalf,
    pub(crate) encoding: Encoding,
    /// The frames of the sent half carry `Z`.
    pub(crate) is_coded: bool,
    /// Whether the frames of the received half do, once one with data has arrived.
    pub(crate) receives_coded: Option<bool>,
    /// While received bytes are compressed.
    pub(crate) decoder: Option<Box<Decoder>>,
    /// Reset by this side: nothing is stored, and the peer's reset or FIN is awaited.
    pub(crate) cut: bool,
    /// Reset by the peer, after bytes that remain to be read.
    pub(crate) last: Option<ResetReason>,
    /// Counted among the peer's streams that can still hold received bytes.
    pub(crate) counted: bool,
    /// Queued in the scheduler.
    pub(crate) scheduled: bool,
    pub(crate) lately: Lately,
    /// The owner to whom it is accounted.
    pub(crate) owner: Owner,
    /// Set when a write was incomplete, or would have been.
    pub(crate) wants_room: bool,
    /// Queued among the writers that wait for the pool.
    pub(crate) waits_for_pool: bool,
    /// `Readable` is in the queue of events.
    pub(crate) readable_told: bool,
    /// `Ended` was reported.
    pub(crate) ended_told: bool,
    /// A RECEIVED frame is queued or not acknowledged.
    pub(crate) tells_received: bool,
    /// Since when `first_missing` precedes bytes that were received; `FAR_FUTURE` if it was reported.
    pub(crate) missing_since: Option<Instant>,
    /// The first missing byte of the last gap.
    pub(crate) first_missing: u64,
    /// The limit in the last announcement to the peer.
    pub(crate) announced: u64,
    /// The limit in the announcement before, and the time of the last one.
    pub(crate) before: u64,
    pub(crate) said_at: Instant,
    /// The highest limit that the peer is known to have received.
    pub(crate) known: u64,
    /// The next note contains the announcement.
    pub(crate) unsaid: bool,
    /// Time at which the announcement is sent as a frame, unless the peer uses it before.
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
            encoding: Encoding::Undecided,
            is_coded: false,
            receives_coded: None,
            decoder: None,
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
            tells_received: false,
            missing_since: None,
            first_missing: 0,
            announced: receive_minimum,
            before: receive_minimum,
            said_at: Instant::ZERO,
            known: receive_minimum,
            unsaid: false,
            announce_by: None,
        }
    }

    /// Returns whether it was opened by this side.
    pub(crate) fn is_local(&self) -> bool {
        match self.opening {
            Opening::Wanted(_) | Opening::Sent(_) | Opening::Accepted => true,
            Opening::Awaited | Opening::Known => false,
        }
    }

    /// Returns whether received bytes can be read.
    pub(crate) fn is_readable(&self) -> bool {
        !self.cut || self.last.is_some()
    }

    /// Returns the next bytes in order that are contiguous in memory.
    pub(crate) fn peek(&self) -> &[u8] {
        match &self.decoder {
            Some(decoder) => decoder.output(),
            None => self.receive.peek(),
        }
    }

    /// Returns whether every byte up to the final offset was read.
    pub(crate) fn is_done(&self) -> bool {
        self.receive.is_done() && self.decoder.is_none()
    }

    /// Returns whether there is data to send that `shared` bytes of shared credit permit.
    pub(crate) fn is_ready(&self, shared: u64) -> bool {
        !self.cut && (matches!(self.opening, Opening::Wanted(_)) || self.send.is_ready(shared))
    }
}
