//! Proportional rate reduction (RFC 6937, section 3): during a recovery data is sent in proportion
//! to deliveries, so that the flight reaches the threshold at its end.

/// State of a recovery, in octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// RecoverFS: octets outstanding at its start.
    flight: u64,
    /// prr_delivered and prr_out.
    delivered: u64,
    out: u64,
    /// Octets that may be sent now.
    room: u64,
}

impl Prr {
    pub(super) fn new(flight: u64) -> Self {
        Self { flight: flight.max(1), delivered: 0, out: 0, room: 0 }
    }

    pub(super) fn room(&self) -> u64 {
        self.room
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
        self.room = self.room.saturating_sub(bytes);
    }

    /// Handles the delivery of `newly` octets, after which `pipe` are in flight; `safe`: the
    /// acknowledgement advanced and nothing new is lost, so slow start up to the threshold is
    /// allowed (SSRB, with the check added by draft-ietf-tcpm-prr-rfc6937bis).
    pub(super) fn on_ack(
        &mut self,
        newly: u64,
        pipe: u64,
        threshold: u64,
        segment: u64,
        safe: bool,
    ) {
        self.delivered += newly;
        let room = if pipe > threshold {
            (self.delivered * threshold).div_ceil(self.flight).saturating_sub(self.out)
        } else {
            let owed = self.delivered.saturating_sub(self.out).max(newly);
            let limit = if safe { owed + segment } else { owed };
            limit.min(threshold - pipe)
        };
        // Whole segments: fractions accumulate in the delivered octets.
        self.room = room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn one_is_sent_per_two_deliveries() {
        // As the example of RFC 6937, section 4: 20 outstanding, threshold 10, one lost, each
        // acknowledgement for one segment.
        let mut prr = Prr::new(20 * MSS);
        let mut sent = 0;
        let mut pipe = 19 * MSS;
        for _ in 0..18 {
            pipe -= MSS;
            prr.on_ack(MSS, pipe, 10 * MSS, MSS, false);
            while prr.room() >= MSS {
                prr.on_sent(MSS);
                pipe += MSS;
                sent += 1;
            }
        }
        assert_eq!((sent, pipe), (9, 10 * MSS));
    }

    #[test]
    fn below_the_threshold_at_most_two_are_sent_per_delivery() {
        let mut prr = Prr::new(20 * MSS);
        prr.on_ack(2 * MSS, 4 * MSS, 10 * MSS, MSS, true);
        assert_eq!(prr.room(), 3 * MSS);
        prr.on_sent(3 * MSS);
        prr.on_ack(MSS, 6 * MSS, 10 * MSS, MSS, false);
        assert_eq!(prr.room(), MSS, "a loss was found: no more than arrives");
    }
}
