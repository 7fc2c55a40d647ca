//! Proportional rate reduction (RFC 6937, section 3): during a repair, as much leaves for what
//! arrives as makes the flight come down to the threshold at its end.

/// The bookkeeping of one repair, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// RecoverFS: what was outstanding at its beginning.
    flight: u64,
    /// prr_delivered and prr_out.
    delivered: u64,
    out: u64,
    /// What may leave now.
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

    /// `newly` bytes were delivered, and `pipe` are on the way; `safe`: the acknowledgement moved
    /// and nothing new is lost, so that slow start back to the threshold is in order (SSRB, with
    /// the check that draft-ietf-tcpm-prr-rfc6937bis adds).
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
        // Whole segments: what is less than one adds up in what was delivered.
        self.room = room;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    #[test]
    fn one_leaves_for_every_second_that_arrives() {
        // The example of RFC 6937, section 4 in spirit: 20 outstanding, 10 is the threshold, one
        // lost, each acknowledgement for one segment.
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
    fn below_the_threshold_it_comes_back_by_two_for_one_at_most() {
        let mut prr = Prr::new(20 * MSS);
        prr.on_ack(2 * MSS, 4 * MSS, 10 * MSS, MSS, true);
        assert_eq!(prr.room(), 3 * MSS);
        prr.on_sent(3 * MSS);
        prr.on_ack(MSS, 6 * MSS, 10 * MSS, MSS, false);
        assert_eq!(prr.room(), MSS, "a loss was found: no more than arrives");
    }
}
