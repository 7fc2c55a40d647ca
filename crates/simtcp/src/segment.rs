//! A segment: what TCP's header says, and which bytes it carries.

/// Bytes of an IPv4 header without options (RFC 791, section 3.1).
pub const IPV4_HEADER: usize = 20;
/// Bytes of a TCP header without options (RFC 9293, section 3.1).
const TCP_HEADER: usize = 20;

/// A run of sequence numbers: the first, and the one after the last.
pub type Block = (u64, u64);

/// The two ports of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ports {
    /// The sender's.
    pub from: u16,
    /// The receiver's.
    pub to: u16,
}

impl Ports {
    /// Those of the reverse path.
    #[must_use]
    pub fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// The control bits that are not implied by a field (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Opens a direction; takes one sequence number.
    pub syn: bool,
    /// Ends a direction; takes one sequence number.
    pub fin: bool,
    /// Ends the connection at once.
    pub reset: bool,
    /// ECE: congestion was met on the way; with SYN, ECN is understood (RFC 3168, section 6.1).
    pub ece: bool,
    /// CWR: the window was reduced for it; with SYN, as before (RFC 3168, section 6.1).
    pub cwr: bool,
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not know it: a queue drops.
    #[default]
    NotCapable,
    /// ECT(0): a queue may mark instead.
    Capable,
    /// CE: a queue has marked it.
    Congestion,
}

/// A connection count of T/TCP (RFC 1644, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionCount {
    /// CC (kind 11).
    Count(u32),
    /// CC.NEW (kind 12): with SYN, when the peer is not to compare it.
    New(u32),
}

impl ConnectionCount {
    /// The count itself.
    pub fn value(self) -> u32 {
        match self {
            Self::Count(count) | Self::New(count) => count,
        }
    }
}

/// The Fast Open option (kind 34; RFC 7413, section 2), with SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// A cookie is asked for.
    Request,
    /// A cookie of 8 bytes.
    Cookie(u64),
}

/// A probe of TCP-probing, or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The cycle that it belongs to.
    pub cycle: u32,
    /// First or second exchange of the cycle.
    pub second: bool,
    /// It is the receiver's answer.
    pub answer: bool,
}

/// Which bytes a segment carries: `len` bytes of the content numbered `content`, from `offset` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Whose bytes they are: the number that the sending endpoint was given.
    pub content: u64,
    /// Where in the sender's stream they begin, in bytes.
    pub offset: u64,
    /// How many they are.
    pub len: u32,
}

/// The blocks of a SACK option, four at most (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Block; 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; says whether there was room.
    pub fn push(&mut self, block: Block) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *place = block;
        self.count += 1;
        true
    }

    /// The blocks, the most recent first.
    pub fn as_slice(&self) -> &[Block] {
        &self.blocks[..usize::from(self.count)]
    }
}

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Largest segment that the sender of this one takes (RFC 9293, section 3.7.1); with SYN.
    pub max_segment: Option<u16>,
    /// Its window is to be shifted by this (RFC 7323, section 2); with SYN.
    pub window_scale: Option<u8>,
    /// It understands SACK (RFC 2018, section 2); with SYN.
    pub sack_permitted: bool,
    /// TSval and TSecr, in ticks (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// What arrived out of order (RFC 2018, section 3); a first block that is acknowledged or
    /// within the second was received twice (RFC 2883, section 4).
    pub sack: SackBlocks,
    /// CC or CC.NEW (RFC 1644).
    pub count: Option<ConnectionCount>,
    /// CC.ECHO (kind 13; RFC 1644); with SYN and ACK.
    pub count_echo: Option<u32>,
    /// Fast Open (RFC 7413); with SYN.
    pub fast_open: Option<FastOpen>,
    /// A probe, in an option of 8 bytes (kind 253, for experiments; RFC 4727).
    pub probe: Option<Probe>,
}

impl Options {
    /// Bytes that they take, filled up to whole words as stacks do (RFC 7323, appendix A): 12 for
    /// timestamps and 4 before the blocks of a SACK; 20 for all that goes with SYN.
    pub fn len(&self) -> usize {
        let fast_open = match self.fast_open {
            Some(FastOpen::Request) => 2,
            Some(FastOpen::Cookie(_)) => 10,
            None => 0,
        };
        let opening = usize::from(self.max_segment.is_some()) * 4
            + usize::from(self.window_scale.is_some()) * 3
            + usize::from(self.sack_permitted) * 2
            + fast_open;
        let blocks = self.sack.as_slice().len();
        let sack = if blocks == 0 { 0 } else { 4 + 8 * blocks };
        // With SYN the filling goes elsewhere.
        let filling = if opening > 0 { 0 } else { 2 };
        let timestamps = if self.timestamps.is_some() { 10 + filling } else { 0 };
        let count = if self.count.is_some() { 6 + filling } else { 0 };
        let echo = usize::from(self.count_echo.is_some()) * 6;
        let probe = usize::from(self.probe.is_some()) * 8;
        (opening + timestamps + count + echo + probe + sack).next_multiple_of(4)
    }

    /// SACK blocks for which there is room beside the others, in the 40 bytes that options may
    /// take (RFC 2018, section 3).
    pub fn room_for_blocks(&self) -> usize {
        (36_usize.saturating_sub(self.len()) / 8).min(4)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// From which port to which.
    pub ports: Ports,
    /// The number of its first byte, or of SYN or FIN where it has no bytes.
    pub sequence: u64,
    /// The next number that its sender expects; with the ACK bit.
    pub acknowledgement: Option<u64>,
    /// The window as in the header: not yet shifted.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Options.
    pub options: Options,
    /// What it carries.
    pub payload: Payload,
}

impl Segment {
    /// Bytes of header and payload; the IP header ([`IPV4_HEADER`]) comes on top.
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    pub fn len(&self) -> usize {
        TCP_HEADER + self.options.len() + self.payload.len as usize
    }

    /// Sequence numbers that it takes: bytes, SYN and FIN (SEG.LEN of RFC 9293, section 3.3.1).
    pub fn span(&self) -> u64 {
        u64::from(self.payload.len) + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// Marks it instead of dropping it, where its sender can bear that; says whether (RFC 3168,
    /// section 5).
    pub fn mark(&mut self) -> bool {
        match self.ecn {
            Ecn::NotCapable => false,
            Ecn::Capable | Ecn::Congestion => {
                self.ecn = Ecn::Congestion;
                true
            }
        }
    }

    /// What it carries beside SYN, as if that had come before.
    pub(crate) fn without_syn(&self) -> Self {
        let flags = Flags { syn: false, ..self.flags };
        Self { flags, sequence: self.sequence + u64::from(self.flags.syn), ..*self }
    }

    /// The number after its last.
    pub fn end(&self) -> u64 {
        self.sequence + self.span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_lengths_that_they_have_on_the_wire() {
        let opening = Options {
            max_segment: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            ..Options::default()
        };
        assert_eq!(opening.len(), 20);
        let mut later = Options { timestamps: Some((1, 2)), ..Options::default() };
        assert_eq!(later.len(), 12);
        for blocks in 1..=3_usize {
            assert!(later.sack.push((blocks as u64 * 10, blocks as u64 * 10 + 5)));
            assert_eq!(later.len(), 12 + 4 + 8 * blocks, "40 bytes at most: {blocks} blocks");
        }
        assert!(Options::default().is_empty());
        assert_eq!(later.room_for_blocks(), 0, "three are there");
        let counted = Options {
            sack: SackBlocks::default(),
            count: Some(ConnectionCount::Count(7)),
            ..later
        };
        assert_eq!((counted.len(), counted.room_for_blocks()), (20, 2), "RFC 1644: filled up to 8");
        let transaction = Options { count: counted.count, count_echo: Some(3), ..opening };
        assert_eq!(transaction.len(), 32, "19 and 6 and 6");
        let fast = Options { fast_open: Some(FastOpen::Cookie(1)), ..opening };
        assert_eq!(fast.len(), 32, "19 and 10");
        let mss = Options { max_segment: Some(536), ..Options::default() };
        assert_eq!(mss.len(), 4);
    }

    #[test]
    fn a_fifth_block_has_no_room() {
        let mut blocks = SackBlocks::default();
        for n in 0..4 {
            assert!(blocks.push((n, n + 1)));
        }
        assert!(!blocks.push((9, 10)));
        assert_eq!(blocks.as_slice().len(), 4);
    }
}
