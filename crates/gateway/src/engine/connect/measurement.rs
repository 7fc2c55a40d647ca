//! The measurement service of a hub (RLY-14): octets and reports for a terminal's operator.

use crate::engine::peers::peer::StreamKey;
use crate::engine::peers::relay_set::RelaySet;
use crate::engine::transfer::pipe::BUDGET;
use relay::{Filler, SINK, SOURCE};
use units::{Instant, Span};

/// Maximum duration of a stream.
pub(crate) const MAX_TIME: Span = Span::from_secs(60);
/// Maximum octets that are sent on a stream.
const MAX_OCTETS: u64 = 1 << 30;
/// Octets that are generated at a time.
const BLOCK: usize = 16 * 1024;

/// A stream of a measurement.
#[derive(Debug)]
pub(crate) struct Measurement {
    /// The first octet of the terminal, once it was received.
    kind: Option<u8>,
    filler: Filler,
    /// Octets that may still be sent.
    left: u64,
    /// This side's half has ended.
    is_finished: bool,
}

/// Result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The stream has no room, or nothing is to be sent.
    Wait,
    /// There is more to send.
    More,
    /// Both halves have ended.
    Done,
    /// The first octet of the terminal is missing or unknown.
    Unknown,
}

impl Measurement {
    pub(crate) fn new() -> Self {
        Self { kind: None, filler: Filler::default(), left: MAX_OCTETS, is_finished: false }
    }

    /// Discards what has arrived, and sends what is due. `has_ended`: the terminal has finished its
    /// half.
    pub(crate) fn turn(
        &mut self,
        relays: &mut RelaySet,
        now: Instant,
        key: StreamKey,
        has_ended: bool,
    ) -> Turn {
        loop {
            let octets = relays.peek(key);
            let count = octets.len();
            if count == 0 {
                break;
            }
            self.kind = self.kind.or(octets.first().copied());
            relays.consume(now, key, count);
        }
        match self.kind {
            Some(SOURCE) if !has_ended && self.left > 0 => {
                return self.send(|octets| relays.write(now, key, octets));
            }
            Some(SINK) if has_ended => {
                let report = relays.path_report(now, key.peer).encode();
                // It has room in the buffer that each stream has.
                relays.write(now, key, &report);
                relays.end(key);
            }
            Some(SOURCE) if !self.is_finished => {
                self.is_finished = true;
                relays.end(key);
            }
            Some(SINK | SOURCE) => {}
            None if !has_ended => {}
            None | Some(_) => return Turn::Unknown,
        }
        if has_ended { Turn::Done } else { Turn::Wait }
    }

    fn send(&mut self, mut write: impl FnMut(&[u8]) -> usize) -> Turn {
        let mut block = [0; BLOCK];
        for _ in 0..BUDGET / BLOCK {
            let len = BLOCK.min(usize::try_from(self.left).unwrap_or(BLOCK));
            self.filler.fill(&mut block[..len]);
            let taken = write(&block[..len]);
            self.left -= taken as u64;
            if taken < len {
                return Turn::Wait;
            }
        }
        Turn::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RLY-14.2
    #[test]
    fn a_source_stops_at_its_maximum() {
        let mut one = Measurement { left: 3 * BUDGET as u64 + 100, ..Measurement::new() };
        let mut sent = 0;
        for _ in 0..10 {
            assert_eq!(
                one.send(|octets| {
                    sent += octets.len();
                    octets.len()
                }),
                Turn::More
            );
        }
        assert_eq!((sent, one.left), (3 * BUDGET + 100, 0));
        assert_eq!(Measurement { left: 100, ..one }.send(|_| 10), Turn::Wait, "it is full");
        assert_eq!(Measurement::new().left, 1 << 30);
    }
}
