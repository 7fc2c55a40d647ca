//! How much is lost, and how many repair symbols that takes.

/// Octets lost after which older measurements count half: about 20 full packets, which give the
/// loss ratio within about a quarter of its value.
const MAX_LOST: i64 = 30_000;
/// Octets sent after which older measurements count half.
const MAX_SENT: i64 = 1 << 24;
/// Packets that are added to what was sent; one is added to what was lost (rule of succession). So
/// a path that was not measured counts as one that loses a tenth, and an estimate from few losses
/// is rather too high.
const PRIOR_PACKETS: i64 = 10;
/// Loss ratio in millionths below which a path counts as clean if no loss was measured.
const UNMEASURED_PPM: u32 = 5_000;
/// Loss ratio in millionths below which a path counts as clean.
const CLEAN_PPM: u32 = 10;
/// Maximum loss ratio in millionths that is reckoned with: that of an outage is no property of the
/// path.
const MAX_PPM: u32 = 300_000;
/// Probability of more losses than repair symbols.
const MAX_FAILURE: f64 = 1e-3;

/// Loss ratio of the forward path in octets: what was sent between POLLs, less what the receiver
/// counted between them. Packets that repair symbols recover count as lost.
#[derive(Clone, Debug)]
pub(crate) struct LossEstimator {
    /// Octets sent and octets received up to the last POLL that was answered, modulo 2³².
    last: Option<(u32, u32)>,
    sent: i64,
    lost: i64,
    /// Mean octets of a packet.
    packet: i64,
}

impl Default for LossEstimator {
    fn default() -> Self {
        Self { last: None, sent: 0, lost: 0, packet: 1_500 }
    }
}

impl LossEstimator {
    /// A POLL was answered: `sent` octets had been sent and `received` octets had been received up
    /// to it, modulo 2³². `packet` is the mean number of octets of the packets sent.
    pub(crate) fn on_poll_answered(&mut self, sent: u32, received: u32, packet: u32) {
        self.packet = i64::from(packet).max(1);
        let last = self.last.replace((sent, received));
        let Some((last_sent, last_received)) = last else { return };
        let interval = i64::from(sent.wrapping_sub(last_sent) as i32);
        let arrived = i64::from(received.wrapping_sub(last_received) as i32);
        if interval <= 0 || arrived < 0 {
            return;
        }
        // Octets that another POLL overtook are counted in the next interval.
        self.sent += interval;
        self.lost = (self.lost + interval - arrived).max(-self.packet);
        if self.lost > MAX_LOST || self.sent > MAX_SENT {
            self.sent /= 2;
            self.lost /= 2;
        }
    }

    /// Loss ratio in millionths; zero if the path is clean.
    pub(crate) fn ppm(&self) -> u32 {
        let lost = (self.lost.max(0) + self.packet).saturating_mul(1_000_000);
        let ppm = lost / (self.sent + PRIOR_PACKETS * self.packet);
        let ppm = u32::try_from(ppm).unwrap_or(u32::MAX).min(MAX_PPM);
        let clean = if self.lost <= 0 { UNMEASURED_PPM } else { CLEAN_PPM };
        if ppm < clean { 0 } else { ppm }
    }
}

/// Number of repair symbols, at most `limit`, with which `packets` packets are recovered with a
/// probability of 99.9 % if `ppm` millionths of packets and symbols are lost at random.
pub(crate) fn repairs_needed(packets: usize, ppm: u32, limit: usize) -> usize {
    if packets == 0 || ppm == 0 {
        return 0;
    }
    let loss = f64::from(ppm) / 1e6;
    (0..limit)
        .find(|&repairs| failure(packets + repairs, repairs, loss) <= MAX_FAILURE)
        .unwrap_or(limit)
}

/// Probability that more than `repairs` of `total` transmissions are lost.
fn failure(total: usize, repairs: usize, loss: f64) -> f64 {
    let mut term = (0..total).fold(1.0, |product, _| product * (1.0 - loss));
    let mut sum = term;
    for lost in 1..=repairs {
        term *= loss / (1.0 - loss) * (total + 1 - lost) as f64 / lost as f64;
        sum += term;
    }
    1.0 - sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_ratio_is_that_of_octets() {
        let mut loss = LossEstimator::default();
        assert_eq!(loss.ppm(), 100_000, "it is not known");
        let (mut sent, mut received) = (u32::MAX - 5_000, 70_u32);
        for _ in 0..1_000 {
            loss.on_poll_answered(sent, received, 1_500);
            (sent, received) = (sent.wrapping_add(100_000), received.wrapping_add(99_000));
        }
        assert!((10_000..12_000).contains(&loss.ppm()), "{}", loss.ppm());
        for _ in 0..10_000 {
            loss.on_poll_answered(sent, received, 1_500);
            (sent, received) = (sent.wrapping_add(100_000), received.wrapping_add(100_000));
        }
        assert_eq!(loss.ppm(), 0, "the path is clean now");
    }

    #[test]
    fn octets_that_arrive_late_are_no_loss() {
        let mut loss = LossEstimator::default();
        for (sent, received) in [(0, 0), (10_000, 9_000), (20_000, 20_000), (20_000, 20_000)] {
            loss.on_poll_answered(sent, received, 500);
        }
        assert_eq!(loss.ppm(), 500 * 1_000_000 / (20_000 + 10 * 500), "one packet of them all");
        loss.on_poll_answered(120_000, 120_000, 500);
        assert_eq!(loss.ppm(), 0, "200 packets have arrived");
    }

    #[test]
    fn symbols_follow_the_loss_ratio_and_the_number_of_packets() {
        assert_eq!(repairs_needed(70, 0, 32), 0);
        assert_eq!(repairs_needed(0, 10_000, 32), 0);
        assert_eq!(repairs_needed(1, 100, 32), 0, "it arrives with 99.99 %");
        assert_eq!(repairs_needed(1, 10_000, 32), 1);
        assert_eq!(repairs_needed(3, 10_000, 32), 1);
        assert_eq!(repairs_needed(70, 10_000, 32), 4);
        assert_eq!(repairs_needed(70, 20_000, 32), 6);
        assert_eq!(repairs_needed(128, 300_000, 32), 32);
    }

    #[test]
    fn the_probability_of_failure_is_that_of_the_binomial_distribution() {
        // 1 − 0.9⁴ − 4 × 0.1 × 0.9³
        assert!((failure(4, 1, 0.1) - 0.0523).abs() < 1e-12);
        assert!((failure(2, 2, 0.1)).abs() < 1e-12);
    }
}
