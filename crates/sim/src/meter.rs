//! Bytes over time.

use units::{Instant, Span};

/// Counts bytes in bins of equal length from the epoch on.
#[derive(Clone, Debug)]
pub struct Meter {
    bin: Span,
    bins: Vec<Sample>,
}

/// One bin of a [`Meter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Packets in it.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: u64,
}

impl Meter {
    /// A meter with bins of this length.
    ///
    /// # Panics
    /// When `bin` is no time at all.
    pub fn new(bin: Span) -> Self {
        assert!(!bin.is_zero(), "a bin needs some length");
        Self { bin, bins: Vec::new() }
    }

    /// Counts a packet at `at`.
    pub fn count(&mut self, at: Instant, bytes: u64) {
        let index = (at.as_nanos() / self.bin.as_nanos()) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Sample::default());
        }
        self.bins[index].packets += 1;
        self.bins[index].bytes += bytes;
    }

    /// Packets and bytes from `from` to `to`, in whole bins.
    pub fn between(&self, from: Instant, to: Instant) -> Sample {
        let index = |at: Instant| (at.as_nanos() / self.bin.as_nanos()) as usize;
        let end = index(to).min(self.bins.len());
        let start = index(from).min(end);
        self.bins[start..end].iter().fold(Sample::default(), |sum, bin| Sample {
            packets: sum.packets + bin.packets,
            bytes: sum.bytes + bin.bytes,
        })
    }

    /// All bins.
    pub fn bins(&self) -> &[Sample] {
        &self.bins
    }

    /// A bin's length.
    pub fn bin(&self) -> Span {
        self.bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fall_into_their_bins() {
        let mut meter = Meter::new(Span::from_millis(100));
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        for ms in [0, 99, 100, 350] {
            meter.count(at(ms), 10);
        }
        let bytes: Vec<_> = meter.bins().iter().map(|bin| bin.bytes).collect();
        assert_eq!(bytes, [20, 10, 0, 10]);
        assert_eq!(meter.between(at(100), at(1_000)), Sample { packets: 2, bytes: 20 });
        assert_eq!(meter.between(at(500), at(900)), Sample::default());
    }
}
