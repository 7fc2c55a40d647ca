//! The first axis: connection opening.
//!
//! ```text
//!   three-way     SYN ──▶  ◀── SYN, ACK  ACK and data ──▶
//!   T/TCP         SYN, data, FIN, CC ──▶  ◀── SYN, ACK, data, FIN, CC, CC.ECHO   ACK ──▶
//!                 where the server has a lower CC of this client in its cache, otherwise three-way
//!   Fast Open     SYN, data, cookie ──▶  ◀── SYN, ACK and data
//!                 where the client has the server's cookie, otherwise three-way, which returns one;
//!                 disabled for a time after a failure
//! ```

use crate::config::Opening;
use crate::segment::{ConnectionCount, FastOpen, Options, Segment};
use units::{Instant, Span};

/// Time after which a path MTU expires.
const PATH_AGE: Span = Span::from_secs(600);
/// Time for which a client does not use Fast Open toward a port after a failure ("at least
/// temporarily": RFC 7413, section 4.1.3.1).
const FAST_OPEN_PAUSE: Span = Span::from_secs(600);

/// Cached data of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerMemory {
    /// cache.CC: the last valid count of the peer; 0 is undefined (RFC 1644, section 2.1).
    pub(crate) received_count: u32,
    /// cache.CCsent: the last count that the peer knows; 0 is undefined.
    pub(crate) sent_count: u32,
    /// The peer's Fast Open cookie (RFC 7413, section 4.1).
    pub(crate) cookie: Option<u64>,
    /// The port of the peer at which Fast Open failed, and when (RFC 7413, section 4.1.3.1).
    pub(crate) fast_open_failed: Option<(u16, Instant)>,
    /// The peer's maximum segment size.
    pub(crate) max_segment: Option<u16>,
    /// The path MTU, and when it was found.
    pub(crate) path_mtu: Option<(u16, Instant)>,
}

/// Evaluation of the response to a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The connection is open.
    Open,
    /// It is open, but data on the SYN was not accepted and is to be retransmitted.
    WithoutData,
    /// It responds to another connection's SYN and is dropped.
    Foreign,
}

/// State of an opening connection.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    opening: Opening,
    memory: PeerMemory,
    /// The cookie of this server for this client.
    cookie: u64,
    /// CCsend.
    count: u32,
    /// The count in the peer's SYN.
    peer_count: Option<ConnectionCount>,
    peer_fast_open: Option<FastOpen>,
    /// The SYN was sent before.
    repeated: bool,
    /// The cached data has changed.
    news: bool,
}

impl Handshake {
    pub(crate) fn new(opening: Opening, memory: PeerMemory, count: u32, cookie: u64) -> Self {
        let (peer_count, peer_fast_open) = (None, None);
        let (repeated, news) = (false, false);
        Self { opening, memory, cookie, count, peer_count, peer_fast_open, repeated, news }
    }

    /// The cached data of the peer.
    pub(crate) fn memory(&self) -> &PeerMemory {
        &self.memory
    }

    /// The changes since the last call.
    pub(crate) fn news(&mut self) -> Option<PeerMemory> {
        core::mem::take(&mut self.news).then_some(self.memory)
    }

    /// Adds a client's options to its SYN for `port`; returns whether data may be sent with it.
    pub(crate) fn ask(&mut self, now: Instant, port: u16, options: &mut Options) -> bool {
        let repeated = core::mem::replace(&mut self.repeated, true);
        match self.opening {
            Opening::ThreeWay => false,
            Opening::Transaction => {
                // Section 3.1: a count below one that was sent would fail wrongly.
                let known = self.memory.sent_count;
                let rises = known != 0 && later(self.count, known);
                options.count = Some(if rises {
                    ConnectionCount::Count(self.count)
                } else {
                    self.memory.sent_count = 0;
                    self.news = true;
                    ConnectionCount::New(self.count)
                });
                true
            }
            // A retransmitted SYN has no option or data that may have caused the loss (RFC 7413,
            // section 4.1.3.1).
            Opening::FastOpen if repeated => {
                if self.memory.cookie.is_some() {
                    self.fast_open_failed(now, port);
                }
                false
            }
            Opening::FastOpen if self.pauses_fast_open(now, port) => false,
            Opening::FastOpen => {
                options.fast_open =
                    Some(self.memory.cookie.map_or(FastOpen::Request, FastOpen::Cookie));
                self.memory.cookie.is_some()
            }
        }
    }

    /// Handles a client's SYN; returns whether its data is accepted immediately.
    pub(crate) fn asked(&mut self, syn: &Segment) -> bool {
        match self.opening {
            Opening::ThreeWay => false,
            Opening::Transaction => {
                self.peer_count = syn.options.count;
                let known = self.memory.received_count;
                match self.peer_count {
                    // The TAO test (RFC 1644, section 2.1).
                    Some(ConnectionCount::Count(count)) if known != 0 && later(count, known) => {
                        self.remember_count(count);
                        true
                    }
                    Some(_) => false,
                    None => {
                        self.remember_count(0);
                        false
                    }
                }
            }
            Opening::FastOpen => {
                self.peer_fast_open = syn.options.fast_open;
                self.peer_fast_open == Some(FastOpen::Cookie(self.cookie))
            }
        }
    }

    /// Whether data of a SYN that is not accepted immediately is kept for later (RFC 1644, section
    /// 2.1) instead of being discarded.
    pub(crate) fn keeps_early_data(&self) -> bool {
        self.peer_count.is_some()
    }

    /// Adds a server's options to its response; returns whether data may be sent with it, where a
    /// connection is already open.
    pub(crate) fn answer(&self, options: &mut Options) -> bool {
        if let Some(peer) = self.peer_count {
            options.count = Some(ConnectionCount::Count(self.count));
            options.count_echo = Some(peer.value());
            return true;
        }
        match self.peer_fast_open {
            Some(FastOpen::Request) => options.fast_open = Some(FastOpen::Cookie(self.cookie)),
            Some(FastOpen::Cookie(cookie)) if cookie != self.cookie => {
                options.fast_open = Some(FastOpen::Cookie(self.cookie));
            }
            Some(FastOpen::Cookie(_)) | None => {}
        }
        false
    }

    fn pauses_fast_open(&self, now: Instant, port: u16) -> bool {
        self.memory
            .fast_open_failed
            .is_some_and(|(at, when)| at == port && now.since(when) < FAST_OPEN_PAUSE)
    }

    /// Records that a SYN with data was not answered, or its data not accepted: the next
    /// connections to `port` do not use Fast Open (RFC 7413, section 4.1.3.1).
    fn fast_open_failed(&mut self, now: Instant, port: u16) {
        self.memory.fast_open_failed = Some((port, now));
        self.news = true;
    }

    /// Handles the server's response; `carried`: data was sent with the SYN.
    pub(crate) fn answered(&mut self, now: Instant, answer: &Segment, carried: bool) -> Answer {
        match self.opening {
            Opening::ThreeWay => Answer::Open,
            Opening::Transaction => match (answer.options.count, answer.options.count_echo) {
                (Some(count), Some(echo)) if echo == self.count => {
                    self.peer_count = Some(count);
                    self.memory.sent_count = self.count;
                    self.remember_count(count.value());
                    Answer::Open
                }
                (_, Some(_)) => Answer::Foreign,
                // A peer without T/TCP, which may have discarded the data.
                (_, None) => {
                    self.memory.sent_count = 0;
                    self.news = true;
                    Answer::WithoutData
                }
            },
            Opening::FastOpen => {
                if let Some(FastOpen::Cookie(cookie)) = answer.options.fast_open {
                    // Data rejected because of an expired cookie is no failure.
                    self.memory.cookie = Some(cookie);
                    self.news = true;
                } else if carried && answer.acknowledgement == Some(1) {
                    self.fast_open_failed(now, answer.ports.from);
                }
                Answer::WithoutData
            }
        }
    }

    /// Three segments have opened the connection, so the client's count is current.
    pub(crate) fn confirmed(&mut self) {
        if let Some(count) = self.peer_count {
            self.remember_count(count.value());
        }
    }

    fn remember_count(&mut self, count: u32) {
        self.news |= self.memory.received_count != count;
        self.memory.received_count = count;
    }

    /// Stores the peer's maximum segment size, for data on the next SYN.
    pub(crate) fn remember_segment(&mut self, segment: u16) {
        if self.opening != Opening::ThreeWay && self.memory.max_segment != Some(segment) {
            self.memory.max_segment = Some(segment);
            self.news = true;
        }
    }

    /// Stores the path MTU in octets.
    pub(crate) fn remember_path(&mut self, now: Instant, mtu: u16) {
        self.memory.path_mtu = Some((mtu, now));
        self.news = true;
    }

    /// The stored path MTU, unless it has expired (RFC 1191, section 6.3: ten minutes).
    pub(crate) fn path_mtu(&self, now: Instant) -> Option<u16> {
        let (mtu, found) = self.memory.path_mtu?;
        (now.since(found) < PATH_AGE).then_some(mtu)
    }

    /// The count in every segment of this connection, if both ends use counts.
    pub(crate) fn count(&self) -> Option<ConnectionCount> {
        self.peer_count.map(|_| ConnectionCount::Count(self.count))
    }

    /// Whether a segment has the count of this connection, or needs none.
    pub(crate) fn belongs(&self, segment: &Segment) -> bool {
        match (self.peer_count, segment.options.count) {
            (Some(peer), Some(count)) => peer.value() == count.value(),
            (Some(_), None) => segment.flags.reset,
            (None, _) => true,
        }
    }
}

/// Whether a count is later than another, modulo 2^32.
fn later(count: u32, than: u32) -> bool {
    count != than && count.wrapping_sub(than) < 1 << 31
}
