//! A copy of what passes an association in the clear, for whoever is asked to look into it.
//!
//! A tap never holds anything up: what it has no room for is left out and counted. Whoever drives
//! the relay empties it after each round.

use association::PeerId;
use units::Instant;

/// Which way a payload went, seen from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It arrived, and was opened.
    In,
    /// It is about to be sealed, and leaves.
    Out,
}

/// A payload that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped<'a> {
    /// When.
    pub at: Instant,
    /// With which terminal; `None` at a terminal.
    pub peer: Option<PeerId>,
    /// Which way.
    pub way: Way,
    /// One XSTP segment of the sealed profile.
    pub segment: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Instant,
    peer: Option<PeerId>,
    way: Way,
    len: usize,
}

/// Copies of payloads, bounded.
#[derive(Clone, Debug)]
pub struct Tap {
    /// The one terminal whose payloads are wanted; all when `None`.
    only: Option<String>,
    most: usize,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    dropped: u64,
}

impl Tap {
    /// A tap that holds at most `most` bytes at a time, of the terminal called `only` or of all.
    pub fn new(only: Option<String>, most: usize) -> Self {
        Self { only, most, bytes: Vec::new(), entries: Vec::new(), dropped: 0 }
    }

    /// Takes a copy, if `name` is wanted and there is room.
    pub(crate) fn take(
        &mut self,
        at: Instant,
        (peer, name): (Option<PeerId>, &str),
        way: Way,
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
        self.entries.push(Entry { at, peer, way, len: segment.len() });
    }

    /// What has passed since it was last [cleared](Self::clear), in order.
    pub fn held(&self) -> impl Iterator<Item = Tapped<'_>> {
        let mut rest = &self.bytes[..];
        self.entries.iter().map(move |&Entry { at, peer, way, len }| {
            let (segment, behind) = rest.split_at(len);
            rest = behind;
            Tapped { at, peer, way, segment }
        })
    }

    /// Makes room again.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Payloads left out for want of room so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_keeps_what_is_wanted_and_counts_what_it_has_no_room_for() {
        let mut tap = Tap::new(Some("boat".into()), 10);
        let at = Instant::from_nanos;
        tap.take(at(1), (None, "boat"), Way::In, b"one");
        tap.take(at(2), (None, "bus"), Way::In, b"not wanted");
        tap.take(at(3), (None, "boat"), Way::Out, b"");
        tap.take(at(4), (None, "boat"), Way::Out, b"too long now");
        tap.take(at(5), (None, "boat"), Way::Out, b"seven b");
        let held: Vec<_> = tap.held().map(|one| (one.at, one.way, one.segment)).collect();
        let expected: [(_, _, &[u8]); 3] =
            [(at(1), Way::In, b"one"), (at(3), Way::Out, b""), (at(5), Way::Out, b"seven b")];
        assert_eq!(held, expected);
        assert_eq!(tap.dropped(), 1);
        tap.clear();
        assert_eq!(tap.held().count(), 0);
        tap.take(at(6), (None, "boat"), Way::In, b"ten bytes.");
        assert_eq!((tap.held().count(), tap.dropped()), (1, 1));
    }
}
