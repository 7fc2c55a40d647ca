//! TCP segments: header fields, and the octets carried.

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
    /// The ports of the reverse path.
    #[must_use]
    pub fn back(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// The control bits that are not implied by a field (RFC 9293, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Opens a direction; occupies one sequence number.
    pub syn: bool,
    /// Ends a direction; occupies one sequence number.
    pub fin: bool,
    /// Resets the connection.
    pub reset: bool,
    /// ECE: echoes congestion experienced; with SYN, ECN is supported (RFC 3168, section 6.1).
    pub ece: bool,
    /// CWR: the window was reduced; with SYN, as ECE (RFC 3168, section 6.1).
    pub cwr: bool,
    /// AE: with ECE and CWR the counter of AccECN (RFC 9768, section 3.1).
    pub ae: bool,
}

impl Flags {
    /// ACE: the lower three bits of the number of marked packets received (RFC 9768, section 3.2.2).
    pub fn ace(self) -> u8 {
        u8::from(self.ae) << 2 | u8::from(self.cwr) << 1 | u8::from(self.ece)
    }

    /// The flags with that counter.
    pub(crate) fn with_ace(count: u64) -> Self {
        Self { ae: count & 4 != 0, cwr: count & 2 != 0, ece: count & 1 != 0, ..Self::default() }
    }
}

/// The ECN field of the IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: queues drop it.
    #[default]
    NotCapable,
    /// ECT(0): queues may mark it.
    Capable,
    /// ECT(1): as ECT(0), and the sender's response is scalable: L4S (RFC 9331, section 4).
    Scalable,
    /// CE: congestion experienced.
    Congestion,
}

impl Ecn {
    /// Whether it is the identifier of L4S (RFC 9331, section 5.1).
    pub fn is_l4s(self) -> bool {
        matches!(self, Self::Scalable | Self::Congestion)
    }
}

/// A connection count of T/TCP (RFC 1644, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionCount {
    /// CC (kind 11).
    Count(u32),
    /// CC.NEW (kind 12): on a SYN, if the peer must not compare it.
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
    /// A request for a cookie.
    Request,
    /// A cookie of 8 bytes.
    Cookie(u64),
}

/// A probe of TCP-probing, or the response to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The cycle that it belongs to.
    pub cycle: u32,
    /// First or second exchange of the cycle.
    pub second: bool,
    /// It is the receiver's response.
    pub answer: bool,
}

/// The octets carried by a segment: `len` octets of the content `content`, from `offset` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The content: the number given to the sending endpoint.
    pub content: u64,
    /// Offset in the sender's stream, in octets.
    pub offset: u64,
    /// Number of octets.
    pub len: u32,
}

/// The blocks of a SACK option, four at most (RFC 2018, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [Block; 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block; returns whether there was room.
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
    /// Maximum segment size of the sender (RFC 9293, section 3.7.1); on SYNs.
    pub max_segment: Option<u16>,
    /// Window scale (RFC 7323, section 2); on SYNs.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2); on SYNs.
    pub sack_permitted: bool,
    /// TSval and TSecr, in ticks (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks (RFC 2018, section 3); a first block that is acknowledged or within the second
    /// is a duplicate (RFC 2883, section 4).
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
    /// Length in octets, padded to whole words as usual (RFC 7323, appendix A): 12 for timestamps
    /// and 4 before the blocks of a SACK; 20 for all options of a SYN.
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
        // The padding of SYNs differs.
        let filling = if opening > 0 { 0 } else { 2 };
        let timestamps = if self.timestamps.is_some() { 10 + filling } else { 0 };
        let count = if self.count.is_some() { 6 + filling } else { 0 };
        let echo = usize::from(self.count_echo.is_some()) * 6;
        let probe = usize::from(self.probe.is_some()) * 8;
        (opening + timestamps + count + echo + probe + sack).next_multiple_of(4)
    }

    /// Number of SACK blocks that fit beside the other options into the 40 octets of options (RFC
    /// 2018, section 3).
    pub fn room_for_blocks(&self) -> usize {
        (36_usize.saturating_sub(self.len()) / 8).min(4)
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its ports.
    pub ports: Ports,
    /// The sequence number of its first octet, or of SYN or FIN if it has no octets.
    pub sequence: u64,
    /// The next sequence number that its sender expects; with the ACK bit.
    pub acknowledgement: Option<u64>,
    /// The window field, not scaled.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Options.
    pub options: Options,
    /// The octets that it carries.
    pub payload: Payload,
}

impl Segment {
    /// Octets of header and payload, without the IP header ([`IPV4_HEADER`]).
    #[expect(clippy::len_without_is_empty, reason = "a segment is never empty")]
    pub fn len(&self) -> usize {
        TCP_HEADER + self.options.len() + self.payload.len as usize
    }

    /// Sequence numbers that it occupies: octets, SYN and FIN (SEG.LEN of RFC 9293, section 3.3.1).
    pub fn span(&self) -> u64 {
        u64::from(self.payload.len) + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// Marks it if it is ECN-capable; returns whether it is (RFC 3168, section 5).
    pub fn mark(&mut self) -> bool {
        match self.ecn {
            Ecn::NotCapable => false,
            Ecn::Capable | Ecn::Scalable | Ecn::Congestion => {
                self.ecn = Ecn::Congestion;
                true
            }
        }
    }

    /// The segment without its SYN, as if that had been received before.
    pub(crate) fn without_syn(&self) -> Self {
        let flags = Flags { syn: false, ..self.flags };
        Self { flags, sequence: self.sequence + u64::from(self.flags.syn), ..*self }
    }

    /// The sequence number after its last.
    pub fn end(&self) -> u64 {
        self.sequence + self.span()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_wire_length() {
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
