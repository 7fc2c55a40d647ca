//! The window of RFC 5681.
//!
//! ```text
//!   slow start (cwnd < ssthresh)   cwnd += min(acked, L SMSS)                    section 3.1
//!   avoidance                      cwnd += SMSS for each cwnd of acked bytes     section 3.1
//!                 or, of 1999,     cwnd += SMSS SMSS / cwnd for each ACK         RFC 2581, eq. 2
//!   loss                           cwnd = ssthresh = max(flight / 2, 2 SMSS)     equation 4
//!   timeout                        ssthresh likewise, cwnd = SMSS                section 3.1
//! ```

use super::{Acked, Levels};

/// Slow start, congestion avoidance by counting bytes, and halving.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    levels: Levels,
    /// Acknowledged octets that have not yet opened the window (bytes_acked of RFC 3465).
    counted: u64,
}

impl Reno {
    pub(crate) fn new(levels: Levels) -> Self {
        Self { levels, counted: 0 }
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }

    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        if !acked.limited {
            return;
        }
        let slow_start = self.levels.in_slow_start();
        self.counted += self.levels.slow_start(acked.bytes, 1);
        let window = self.levels.window();
        if !self.levels.counts_bytes() {
            self.counted = 0;
            if !slow_start {
                let segment = self.levels.segment();
                self.levels.set_window(window + (segment * segment / window).max(1));
            }
            return;
        }
        if !self.levels.in_slow_start() && self.counted >= window {
            self.counted -= window;
            self.levels.set_window(window + self.levels.segment());
        }
    }

    pub(crate) fn on_loss(&mut self, flight: u64) {
        // Data sent by limited transmit beyond the window does not count (section 3.2).
        self.levels.set_threshold(flight.min(self.levels.window()) / 2);
        self.levels.set_window(self.levels.threshold());
        self.counted = 0;
    }

    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        if first {
            self.levels.set_threshold(flight / 2);
        }
        self.levels.set_window(self.levels.segment());
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Instant;

    const MSS: u64 = 1_000;

    fn ack(bytes: u64) -> Acked {
        Acked {
            now: Instant::ZERO,
            bytes,
            up_to: 0,
            next: 0,
            limited: true,
            sample: None,
            round_trip: None,
            fine: None,
        }
    }

    fn reno(limit: Option<u32>) -> Reno {
        Reno::new(Levels::new(MSS, MSS, limit))
    }

    #[test]
    fn slow_start_counts_acknowledged_data_up_to_the_limit() {
        // An acknowledgement of three segments opens it by one, two or three.
        for (limit, window) in [(Some(1), 2), (Some(2), 3), (None, 4)] {
            let mut reno = reno(limit);
            reno.on_ack(&ack(3 * MSS));
            assert_eq!(reno.levels().window(), window * MSS, "{limit:?}");
        }
    }

    #[test]
    fn avoidance_adds_a_segment_for_each_window() {
        let mut reno = reno(None);
        reno.on_ack(&ack(15 * MSS));
        reno.on_loss(16 * MSS);
        assert_eq!(reno.levels().window(), 8 * MSS);
        // 8 segments acknowledged: 9; 9 more: 10.
        for _ in 0..7 {
            reno.on_ack(&ack(MSS));
        }
        assert_eq!(reno.levels().window(), 8 * MSS);
        reno.on_ack(&ack(MSS));
        assert_eq!(reno.levels().window(), 9 * MSS);
        for _ in 0..9 {
            reno.on_ack(&ack(MSS));
        }
        assert_eq!(reno.levels().window(), 10 * MSS);
    }

    #[test]
    fn avoidance_of_1999_counts_acknowledgements() {
        let levels = Levels::new(MSS, 8 * MSS, Some(1)).counting_acknowledgements();
        let mut reno = Reno::new(levels);
        reno.levels_mut().set_threshold(8 * MSS);
        // 1000 × 1000 / 8000 = 125; of two segments or of one.
        reno.on_ack(&ack(2 * MSS));
        assert_eq!(reno.levels().window(), 8_125);
        // 1,000,000 / 8125 = 123.
        reno.on_ack(&ack(MSS));
        assert_eq!(reno.levels().window(), 8_248);
    }

    #[test]
    fn timeout_resets_the_window_and_halves_the_threshold_once() {
        let mut reno = reno(None);
        reno.on_ack(&ack(19 * MSS));
        reno.on_timeout(20 * MSS, true);
        assert_eq!((reno.levels().window(), reno.levels().threshold()), (MSS, 10 * MSS));
        reno.on_timeout(MSS, false);
        assert_eq!(reno.levels().threshold(), 10 * MSS, "the same data again: held (section 3.1)");
        reno.on_timeout(MSS, true);
        assert_eq!(reno.levels().threshold(), 2 * MSS, "two segments at least (equation 4)");
    }

    #[test]
    fn unused_window_does_not_grow() {
        let mut reno = reno(None);
        reno.on_ack(&Acked { limited: false, ..ack(10 * MSS) });
        assert_eq!(reno.levels().window(), MSS);
    }
}
