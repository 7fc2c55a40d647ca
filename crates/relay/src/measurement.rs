//! Measurement of a path between a terminal and its hub (RLY-14): a destination at the hub that
//! sends and discards octets, and the report of what each side has measured as a sender.
//!
//! ```text
//! field   key varint, length varint, value varint
//! 1       confirmed rate, bit/s              4   jitter, microseconds
//! 2       maximum rate by configuration      5   path MTU, octets
//! 3       loss ratio, millionths             6   1 if the search for the path MTU is complete
//! ```

use crate::Relay;
use crate::frame::{Reader, Writer};
use crate::session::lower;
use units::{BitRate, Instant, Span};

/// Name of the hub's measurement service as a destination. No host has it (RFC 6761, section 6.4),
/// so a hub that does not know it refuses the stream.
pub const MEASUREMENT: &str = "measurement.invalid";
/// First octet of a stream to [`MEASUREMENT`]: the hub discards what follows, and sends a
/// [`PathReport`] when the terminal has finished its half.
pub const SINK: u8 = 0;
/// First octet of a stream to [`MEASUREMENT`]: the hub sends octets until the terminal resets the
/// stream or finishes its half.
pub const SOURCE: u8 = 1;
/// Maximum length of an encoded [`PathReport`], octets.
pub const MAX_PATH_REPORT: usize = 256;

/// Metrics of a path in the direction from the reporting side to its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathReport {
    /// Rate that deliveries have confirmed, in bits of whole IP packets per second.
    pub rate: Option<BitRate>,
    /// Maximum rate that a configuration permits.
    pub max_rate: Option<BitRate>,
    /// Loss ratio without congestion, in millionths.
    pub loss_ppm: Option<u64>,
    /// Jitter of the one-way delay (RFC 3393).
    pub jitter: Option<Span>,
    /// Path MTU, octets of an IP packet.
    pub mtu: u64,
    /// Whether the search for the path MTU is complete.
    pub is_mtu_final: bool,
}

impl PathReport {
    /// Encodes the report.
    pub fn encode(&self) -> Vec<u8> {
        let mut room = [0; MAX_PATH_REPORT];
        let mut out = Writer::new(&mut room);
        let values = [
            self.rate.map(BitRate::as_bps),
            self.max_rate.map(BitRate::as_bps),
            self.loss_ppm,
            self.jitter.map(Span::as_micros),
            Some(self.mtu),
            Some(u64::from(self.is_mtu_final)),
        ];
        for (key, value) in (1..).zip(values) {
            if let Some(value) = value {
                out.field(key, &[value], "");
            }
        }
        let len = out.written();
        room[..len].to_vec()
    }

    /// Decodes a report; what cannot be read ends it. Unknown fields are skipped.
    pub fn decode(octets: &[u8]) -> Self {
        let (mut report, mut fields) = (Self::default(), Reader::new(octets));
        while let Some((key, mut value)) = fields.field() {
            let Ok(number) = value.varint() else { break };
            match key {
                1 => report.rate = BitRate::new(number),
                2 => report.max_rate = BitRate::new(number),
                3 => report.loss_ppm = Some(number.min(1_000_000)),
                4 => report.jitter = Some(Span::from_micros(number.min(3_600_000_000))),
                5 => report.mtu = number,
                6 => report.is_mtu_final = number == 1,
                _ => {}
            }
        }
        report
    }
}

impl Relay {
    /// Returns what this side has measured of the path to its peer. The rate and the loss ratio are
    /// those of the session that exists, after data has filled the path.
    pub fn path_report(&self, now: Instant) -> PathReport {
        let snapshot = self.snapshot(now);
        let counted = self.session_statistics();
        // Controllers other than `steady` do not tell corruption from congestion.
        let reported = counted.filter(|counted| counted.data_sent > 0).map(|counted| {
            counted.reported_missing.saturating_mul(1_000_000)
                / (counted.data_sent + counted.data_retransmitted)
        });
        let configured = lower(self.config().send_rate, self.first().peer_rate());
        PathReport {
            rate: self.path_metrics().map(|metrics| metrics.rate),
            max_rate: lower(configured, self.granted()),
            loss_ppm: snapshot.and_then(|seen| seen.error_ppm).or(reported),
            jitter: snapshot.and_then(|seen| seen.jitter),
            mtu: self.mtu() as u64,
            is_mtu_final: self.is_mtu_final(),
        }
    }
}

/// Octets of a measurement, which no compression on the path shortens.
#[derive(Clone, Debug)]
pub struct Filler(u64);

impl Default for Filler {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Filler {
    /// Fills `octets` (xorshift64, Marsaglia 2003).
    pub fn fill(&mut self, octets: &mut [u8]) {
        for word in octets.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            word.copy_from_slice(&self.0.to_be_bytes()[..word.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RLY-14.3
    #[test]
    fn a_path_report_is_read_as_it_was_written() {
        let report = PathReport {
            rate: Some(BitRate::from_mbps(10)),
            max_rate: None,
            loss_ppm: Some(12_345),
            jitter: Some(Span::from_micros(700)),
            mtu: 1420,
            is_mtu_final: true,
        };
        let octets = report.encode();
        assert_eq!(PathReport::decode(&octets), report);
        // A field of a later release is skipped, and a truncated one ends the report.
        let later = [&[99, 2, 7, 7], &octets[..]].concat();
        assert_eq!(PathReport::decode(&later), report);
        let cut = PathReport::decode(&octets[..octets.len() - 1]);
        assert_eq!(cut, PathReport { is_mtu_final: false, ..report });
    }

    #[test]
    fn filler_does_not_repeat() {
        let (mut filler, mut octets) = (Filler::default(), [0; 4096]);
        filler.fill(&mut octets);
        let words: std::collections::BTreeSet<&[u8]> = octets.chunks(4).collect();
        assert_eq!(words.len(), 1024);
        let before = octets;
        filler.fill(&mut octets[..4095]);
        assert_ne!(octets[..100], before[..100]);
    }
}
