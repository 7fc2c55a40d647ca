//! The first axis: what goes before the data.
//!
//! ```text
//!   three-way     SYN ──▶  ◀── SYN, ACK  ACK and data ──▶
//!   T/TCP         SYN, data, FIN, CC ──▶  ◀── SYN, ACK, data, FIN, CC, CC.ECHO   ACK ──▶
//!                 where the server has a lower CC of this client in its cache, else three-way
//!   Fast Open     SYN, data, cookie ──▶  ◀── SYN, ACK and data
//!                 where the client has the server's cookie, else three-way, which brings it;
//!                 without any of it for a while where that failed
//! ```

use crate::config::Opening;
use crate::segment::{ConnectionCount, FastOpen, Options, Segment};
use units::{Instant, Span};

/// How long the MTU of a path is believed.
const PATH_AGE: Span = Span::from_secs(600);
/// How long a client does without Fast Open toward a port where it failed ("at least temporarily":
/// RFC 7413, section 4.1.3.1).
const FAST_OPEN_PAUSE: Span = Span::from_secs(600);

/// What is known of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerMemory {
    /// cache.CC: the last valid count of the peer; 0 is undefined (RFC 1644, section 2.1).
    pub(crate) received_count: u32,
    /// cache.CCsent: the last count that the peer knows; 0 is undefined.
    pub(crate) sent_count: u32,
    /// The peer's Fast Open cookie (RFC 7413, section 4.1).
    pub(crate) cookie: Option<u64>,
    /// Fast Open failed toward this port of it, and when (RFC 7413, section 4.1.3.1).
    pub(crate) fast_open_failed: Option<(u16, Instant)>,
    /// The size of segments that it takes.
    pub(crate) max_segment: Option<u16>,
    /// The MTU of the path to it, and when that was found.
    pub(crate) path_mtu: Option<(u16, Instant)>,
}

/// What the answer to a SYN means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The connection is open.
    Open,
    /// It is open, but data that went with SYN was not taken: it is to be retransmitted.
    WithoutData,
    /// It answers another connection's SYN: to be dropped.
    Foreign,
}

/// What one end knows while a connection opens.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    opening: Opening,
    memory: PeerMemory,
    /// The cookie that this server gives to this client.
    cookie: u64,
    /// CCsend.
    count: u32,
    /// What the peer's SYN said.
    peer_count: Option<ConnectionCount>,
    peer_fast_open: Option<FastOpen>,
    /// SYN went out before.
    repeated: bool,
    /// The memory changed.
    news: bool,
}

impl Handshake {
    pub(crate) fn new(opening: Opening, memory: PeerMemory, count: u32, cookie: u64) -> Self {
        let (peer_count, peer_fast_open) = (None, None);
        let (repeated, news) = (false, false);
        Self { opening, memory, cookie, count, peer_count, peer_fast_open, repeated, news }
    }

    /// What is known of the peer.
    pub(crate) fn memory(&self) -> &PeerMemory {
        &self.memory
    }

    /// What was learnt since this was asked last.
    pub(crate) fn news(&mut self) -> Option<PeerMemory> {
        core::mem::take(&mut self.news).then_some(self.memory)
    }

    /// Adds a client's options to its SYN for `port`; says whether data may go with it.
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
            // A SYN that was lost is retransmitted without anything that may have been the reason
            // (RFC 7413, section 4.1.3.1).
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

    /// Takes in a client's SYN; says whether data that came with it is taken at once.
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

    /// Whether data of a SYN that is not taken at once is kept for later (RFC 1644,
    /// section 2.1), instead of being forgotten.
    pub(crate) fn keeps_early_data(&self) -> bool {
        self.peer_count.is_some()
    }

    /// Adds a server's options to its answer; says whether data may go with it, where a
    /// connection is open already.
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

    /// A SYN with data was not answered, or its data was not taken: the next connections to
    /// `port` open without (RFC 7413, section 4.1.3.1).
    fn fast_open_failed(&mut self, now: Instant, port: u16) {
        self.memory.fast_open_failed = Some((port, now));
        self.news = true;
    }

    /// Takes in the server's answer; `carried`: data went with SYN.
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
                // A peer without T/TCP, which may not have kept data.
                (_, None) => {
                    self.memory.sent_count = 0;
                    self.news = true;
                    Answer::WithoutData
                }
            },
            Opening::FastOpen => {
                if let Some(FastOpen::Cookie(cookie)) = answer.options.fast_open {
                    // Data that was not taken for the sake of an old cookie is no failure.
                    self.memory.cookie = Some(cookie);
                    self.news = true;
                } else if carried && answer.acknowledgement == Some(1) {
                    self.fast_open_failed(now, answer.ports.from);
                }
                Answer::WithoutData
            }
        }
    }

    /// Three segments have opened the connection: the client's count is none of old.
    pub(crate) fn confirmed(&mut self) {
        if let Some(count) = self.peer_count {
            self.remember_count(count.value());
        }
    }

    fn remember_count(&mut self, count: u32) {
        self.news |= self.memory.received_count != count;
        self.memory.received_count = count;
    }

    /// The size of the peer's segments, for data that goes with the next SYN.
    pub(crate) fn remember_segment(&mut self, segment: u16) {
        if self.opening != Opening::ThreeWay && self.memory.max_segment != Some(segment) {
            self.memory.max_segment = Some(segment);
            self.news = true;
        }
    }

    /// The path to the peer takes packets of `mtu` bytes at most.
    pub(crate) fn remember_path(&mut self, now: Instant, mtu: u16) {
        self.memory.path_mtu = Some((mtu, now));
        self.news = true;
    }

    /// That, unless it was found so long ago that the path may take more (RFC 1191, section 6.3:
    /// ten minutes).
    pub(crate) fn path_mtu(&self, now: Instant) -> Option<u16> {
        let (mtu, found) = self.memory.path_mtu?;
        (now.since(found) < PATH_AGE).then_some(mtu)
    }

    /// The count of every segment of this connection, where both ends count.
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

/// Whether a count is after another, as they go round.
fn later(count: u32, than: u32) -> bool {
    count != than && count.wrapping_sub(than) < 1 << 31
}
