//! Window, threshold and slow start, which are common to all algorithms.

/// cwnd and ssthresh, in bytes (RFC 5681, section 3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    segment: u64,
    initial: u64,
    window: u64,
    threshold: u64,
    limit: Option<u32>,
    /// Growth counts acknowledged octets, not acknowledgements.
    bytes: bool,
}

impl Levels {
    /// A window of `initial` octets that grows by at most `limit` segments per acknowledgement.
    pub(crate) fn new(segment: u64, initial: u64, limit: Option<u32>) -> Self {
        Self { segment, initial, window: initial, threshold: u64::MAX, limit, bytes: true }
    }

    /// Makes congestion avoidance count acknowledgements instead of octets (RFC 2581, equation 2).
    pub(crate) fn counting_acknowledgements(self) -> Self {
        Self { bytes: false, ..self }
    }

    /// Whether octets are counted (RFC 3465).
    pub(crate) fn counts_bytes(&self) -> bool {
        self.bytes
    }

    /// SMSS.
    pub(crate) fn segment(&self) -> u64 {
        self.segment
    }

    /// Reduces the segment size to that of the path.
    pub(crate) fn set_segment(&mut self, segment: u64) {
        self.segment = segment;
    }

    /// cwnd.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn set_window(&mut self, window: u64) {
        // A window beyond the sequence number space (RFC 7323) is not valid.
        self.window = window.clamp(1, 1 << 30);
    }

    /// ssthresh.
    pub(crate) fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Sets the threshold, at least two segments (RFC 5681, equation 4).
    pub(crate) fn set_threshold(&mut self, threshold: u64) {
        self.threshold = threshold.max(2 * self.segment);
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Slow start by `bytes`, divided by `divisor`; returns the rest when the threshold is reached.
    pub(crate) fn slow_start(&mut self, bytes: u64, divisor: u64) -> u64 {
        if !self.in_slow_start() {
            return bytes;
        }
        let most = self.limit.map_or(u64::MAX, |limit| u64::from(limit) * self.segment);
        let counted = bytes.min(most) / divisor;
        let step = counted.min(self.threshold - self.window);
        self.set_window(self.window + step);
        counted - step
    }

    /// RW = min(IW, cwnd) (RFC 5681, section 4.1).
    pub(crate) fn restart(&mut self) {
        self.window = self.window.min(self.initial);
    }

    /// Halves the window for each of `timeouts` elapsed timeouts (RFC 2861, section 3.2).
    pub(crate) fn decay(&mut self, timeouts: u64) {
        self.threshold = self.threshold.max(self.window * 3 / 4);
        let least = self.window.min(self.initial);
        self.window = (self.window >> timeouts.min(63)).max(least);
    }
}
