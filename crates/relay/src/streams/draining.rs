//! The orderly end of a session: GOAWAY in both directions, then END (RLY-10).
//!
//! ```text
//!   open ── go_away, or GOAWAY of the peer ──▶ draining ── all streams over ──▶ finished
//!                                                 ▲                             END is sent
//!   open ── END of the peer ──────────────────────┘  (streams that it leaves open are reset)
//! ```
//!
//! A side sends END when it will never have to send a frame again. END ends a direction of the
//! session, so nothing could be sent after it: no credit for data of the peer, and no answer to a
//! stream that the peer opens. Therefore both sides first announce that they open no more streams.

use super::Streams;
use super::sending::Control;
use crate::frame::Frame;
use crate::target::MAX_NUMBER;
use crate::{Event, ResetReason, StreamId};

/// How far the orderly end of a session has come.
#[derive(Debug, Default)]
pub(super) struct Draining {
    /// This side has announced that it opens no more streams.
    announced: bool,
    /// Neither begins another session afterwards: this side, and the peer.
    leaves: bool,
    peer_leaves: bool,
    /// Number of streams that the peer has opened in all, by its GOAWAY.
    peer_opened: Option<u32>,
    /// The peer has sent END: no frame of it will arrive.
    peer_ended: bool,
    /// Nothing is sent any more: END follows.
    pub(super) finished: bool,
}

impl Draining {
    /// Whether this side opens no more streams.
    pub(super) fn is_draining(&self) -> bool {
        self.announced || self.peer_ended
    }

    /// Whether the peer has announced that it does not open a stream with this number.
    pub(super) fn excludes(&self, number: u32) -> bool {
        self.peer_opened.is_some_and(|opened| number >= opened)
    }
}

impl Streams {
    /// Announces that this side opens no more streams. Those that exist continue. If it `leaves`,
    /// no session follows.
    pub(crate) fn go_away(&mut self, leaves: bool) {
        self.draining.leaves |= leaves;
        if !std::mem::replace(&mut self.draining.announced, true) {
            self.controls.push_back(Control::GoAway);
        }
    }

    /// The announcement.
    pub(super) fn go_away_frame(&self) -> Frame<'static> {
        Frame::GoAway { opened: u64::from(self.next_number), leaves: self.draining.leaves }
    }

    /// Whether the peer has announced that no session follows.
    pub(crate) fn peer_leaves(&self) -> bool {
        self.draining.peer_leaves
    }

    /// Whether this side opens no more streams in this session.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_draining()
    }

    /// The peer opens no more streams, and takes none: this side answers in kind (RLY-10.2).
    pub(super) fn receive_go_away(&mut self, opened: u64, leaves: bool) {
        let seen_beyond = |opened| self.seen.has_from(opened);
        match u32::try_from(opened) {
            Ok(opened) if opened <= MAX_NUMBER + 1 && !seen_beyond(opened) => {
                self.draining.peer_opened.get_or_insert(opened);
                self.draining.peer_leaves |= leaves;
                self.go_away(false);
            }
            Ok(_) | Err(_) => self.statistics.bad_frames += 1,
        }
    }

    /// The peer has sent END (RLY-10.5). Streams of which data, or an answer, is still missing are
    /// reset: it will not arrive. The others continue in the direction of this side.
    pub(crate) fn on_peer_ended(&mut self) {
        self.draining.peer_ended = true;
        let ids: Vec<StreamId> = self.streams.keys().copied().collect();
        for id in ids {
            let Some(stream) = self.streams.get(&id) else { continue };
            let (is_cut, is_complete) = (stream.cut, stream.receive.is_complete());
            if stream.last.is_some() || (is_complete && !is_cut) {
                continue;
            }
            let is_known = stream.opening != crate::stream::Opening::Awaited;
            if !is_cut {
                let reason = ResetReason::Aborted;
                self.cut(id, crate::target::Cut::Reset(reason));
                if is_known {
                    self.events.push_back(Event::Reset { stream: id, reason });
                }
            }
            // The answer of the peer will not arrive either.
            self.remove(id);
        }
        self.shared_changed();
    }

    /// Whether this side will never have to send a frame again (RLY-10.3).
    pub(crate) fn has_finished(&self) -> bool {
        let is_idle = self.streams.is_empty()
            && self.controls.is_empty()
            && self.controls_out == 0
            && !self.announcement.due
            && !self.report.due;
        let peer_is_done = || match self.draining.peer_opened {
            Some(opened) => self.draining.announced && self.seen.has_all_below(opened),
            None => false,
        };
        is_idle && (self.draining.peer_ended || peer_is_done())
    }

    /// Sends nothing more: END follows.
    pub(crate) fn finish(&mut self) {
        self.draining.finished = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenError, Priority, RelayConfig, Target};
    use units::{Instant, Span};

    fn pair() -> [Streams; 2] {
        let (config, now) = (RelayConfig::new("x"), Instant::ZERO + Span::from_secs(1));
        [false, true].map(|is_hub| Streams::new(&config, is_hub, now))
    }

    fn open(streams: &mut Streams) -> Result<StreamId, OpenError> {
        streams.open(streams.now, Target::name("x", 1), Priority::Normal)
    }

    /// Moves all that `from` has to send, and acknowledges it.
    fn pass(from: &mut Streams, to: &mut Streams) {
        let mut room = [0; 1_400];
        while let Some((len, handle)) = from.fresh(&mut room) {
            to.deliver(&room[..len]);
            from.released(handle);
        }
    }

    /// RLY-10.1, RLY-10.2, RLY-10.3
    #[test]
    fn both_sides_finish_when_the_last_stream_is_over() {
        let [mut terminal, mut hub] = pair();
        let stream = open(&mut terminal).expect("opened");
        terminal.go_away(true);
        assert_eq!(open(&mut terminal), Err(OpenError::Draining));
        let mut room = [0; 1_400];
        let (len, handle) = terminal.fresh(&mut room).expect("GOAWAY and the opening");
        assert_eq!(room[..4], [0x10, 2, 1, 1], "GOAWAY: one stream was opened, the last session");
        hub.deliver(&room[..len]);
        assert!(hub.peer_leaves() && !terminal.peer_leaves());
        terminal.released(handle);
        assert!(!terminal.has_finished(), "the hub may have opened streams");
        assert_eq!(open(&mut hub), Err(OpenError::Draining));
        pass(&mut hub, &mut terminal);
        hub.accept(stream).expect("it is there");
        hub.end(stream).expect("it is there");
        pass(&mut hub, &mut terminal);
        assert!(!terminal.has_finished() && !hub.has_finished(), "a half of the stream is open");
        terminal.end(stream).expect("it is there");
        pass(&mut terminal, &mut hub);
        assert!(terminal.has_finished() && hub.has_finished());
    }

    /// RLY-10.3
    #[test]
    fn a_side_waits_for_streams_of_the_peer_that_it_has_not_seen() {
        let [mut terminal, mut hub] = pair();
        open(&mut terminal).expect("opened");
        let mut room = [0; 1_400];
        let (len, _) = terminal.fresh(&mut room).expect("the opening");
        let opening = room[..len].to_vec();
        terminal.go_away(false);
        pass(&mut terminal, &mut hub);
        pass(&mut hub, &mut terminal);
        assert!(!hub.has_finished(), "the opening is still under way");
        hub.deliver(&opening);
        assert_eq!(hub.streams.len(), 1);
    }

    /// RLY-10.2
    #[test]
    fn a_stream_beyond_goaway_and_a_goaway_below_a_stream_are_errors() {
        let [mut terminal, mut hub] = pair();
        let mut room = [0; 1_400];
        open(&mut terminal).expect("opened");
        let (len, _) = terminal.fresh(&mut room).expect("the opening");
        hub.deliver(&[0x10, 2, 0, 0]);
        hub.deliver(&room[..len]);
        assert_eq!((hub.streams.len(), hub.statistics().bad_frames), (0, 1));
        let [_, mut hub] = pair();
        hub.deliver(&room[..len]);
        hub.deliver(&[0x10, 2, 0, 0]);
        assert_eq!((hub.is_draining(), hub.statistics().bad_frames), (false, 1));
        // Octets behind the flags are for later releases.
        hub.deliver(&[0x10, 3, 1, 0xfe, 0xff]);
        assert!(hub.is_draining());
    }

    /// RLY-10.5
    #[test]
    fn after_an_early_end_streams_that_need_the_peer_are_reset_and_others_continue() {
        let [mut terminal, mut hub] = pair();
        let (whole, half) = (open(&mut terminal).expect("opened"), open(&mut terminal));
        terminal.end(whole).expect("it is there");
        pass(&mut terminal, &mut hub);
        while hub.poll_event().is_some() {}
        hub.accept(whole).expect("it is there");
        hub.on_peer_ended();
        let stream = half.expect("opened");
        let reason = ResetReason::Aborted;
        assert_eq!(hub.poll_event(), Some(Event::Reset { stream, reason }));
        assert_eq!(hub.write(hub.now, whole, b"rest"), Ok(4));
        assert!(!hub.has_finished());
        hub.end(whole).expect("it is there");
        pass(&mut hub, &mut terminal);
        assert!(hub.has_finished());
    }
}
