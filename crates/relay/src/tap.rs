//! Copies of the payloads of an association before encryption and after decryption, for captures.
//!
//! A tap never blocks: payloads without room are omitted and counted. The driver of the relay
//! empties it after each round.

use association::PeerId;
use units::Instant;

/// Direction of a payload, as seen from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received and decrypted.
    In,
    /// About to be encrypted and sent.
    Out,
}

/// A captured payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped<'a> {
    /// Time of capture.
    pub at: Instant,
    /// The association of the terminal's path; `None` at a terminal.
    pub peer: Option<PeerId>,
    /// The number of the path in its relay.
    pub path: usize,
    /// The direction.
    pub direction: Direction,
    /// One XSTP segment of the sealed profile.
    pub segment: &'a [u8],
}

/// The association, at a hub, and the number of the path in its relay.
pub(crate) type Source = (Option<PeerId>, usize);

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    source: Source,
    direction: Direction,
    len: usize,
}

/// Bounded buffer of copied payloads.
#[derive(Clone, Debug)]
pub struct Tap {
    /// The terminal whose payloads are copied; `None`: all.
    only: Option<String>,
    most: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    dropped: u64,
}

impl Tap {
    /// Creates a tap that holds at most `most` bytes, of the terminal `only` or of all.
    pub fn new(only: Option<String>, most: usize) -> Self {
        Self { only, most, bytes: Vec::new(), entries: Vec::new(), dropped: 0 }
    }

    /// Copies a payload, if `name` is selected and there is room.
    pub(crate) fn take(
        &mut self,
        at: Instant,
        (source, name): (Source, &str),
        direction: Direction,
        segment: &[u8],
    ) {
        if self.only.as_ref().is_some_and(|only| only != name) {
            return;
        }
        if self.bytes.len() + segment.len() > self.most {
            self.dropped += 1;
            return;
        }
        self.bytes.extend_from_slice(segment);
        self.entries.push(Entry { at, source, direction, len: segment.len() });
    }

    /// Returns the payloads since the last call of [`clear`](Self::clear), in order.
    pub fn held(&self) -> impl Iterator<Item = Tapped<'_>> {
        let mut rest = &self.bytes[..];
        self.entries.iter().map(move |&Entry { at, source: (peer, path), direction, len }| {
            let (segment, behind) = rest.split_at(len);
            rest = behind;
            Tapped { at, peer, path, direction, segment }
        })
    }

    /// Discards the payloads.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Returns the number of payloads omitted for lack of room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_is_filtered_bounded_and_counts_omissions() {
        let mut tap = Tap::new(Some("boat".into()), 10);
        let at = Instant::from_nanos;
        tap.take(at(1), ((None, 0), "boat"), Direction::In, b"one");
        tap.take(at(2), ((None, 0), "bus"), Direction::In, b"not wanted");
        tap.take(at(3), ((None, 0), "boat"), Direction::Out, b"");
        tap.take(at(4), ((None, 0), "boat"), Direction::Out, b"too long now");
        tap.take(at(5), ((None, 0), "boat"), Direction::Out, b"seven b");
        let held: Vec<_> = tap.held().map(|one| (one.at, one.direction, one.segment)).collect();
        let expected: [(_, _, &[u8]); 3] = [
            (at(1), Direction::In, b"one"),
            (at(3), Direction::Out, b""),
            (at(5), Direction::Out, b"seven b"),
        ];
        assert_eq!(held, expected);
        assert_eq!(tap.dropped(), 1);
        tap.clear();
        assert_eq!(tap.held().count(), 0);
        tap.take(at(6), ((None, 0), "boat"), Direction::In, b"ten bytes.");
        assert_eq!((tap.held().count(), tap.dropped()), (1, 1));
    }
}
