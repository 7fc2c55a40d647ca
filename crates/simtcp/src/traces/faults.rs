//! Whatever is lost, everything arrives once and in order.

use super::wire::Wire;
use crate::TcpConfig;
use proptest::prelude::*;
use units::{Instant, RngStream, Span};

fn configs() -> [TcpConfig; 4] {
    [TcpConfig::newreno(), TcpConfig::sack(), TcpConfig::cubic(), TcpConfig::linux()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn everything_arrives_however_much_is_lost(
        seed in any::<u64>(), loss in 0.0..0.3_f64, which in 0_usize..4, bytes in 1_u64..400_000,
    ) {
        let config = TcpConfig { retries: 100, ..configs()[which].clone() };
        let mut there = RngStream::new(seed, 0, "there");
        let mut back = RngStream::new(seed, 0, "back");
        let mut wire = Wire::new(&config, Span::from_millis(50))
            .losing(move |_, _| there.chance(loss))
            .losing_answers(move |_, _| back.chance(loss));
        prop_assert_eq!(wire.client.write(bytes), bytes);
        wire.client.close();
        wire.closes = true;
        wire.run_until(Instant::ZERO + Span::from_secs(100_000));
        prop_assert_eq!(wire.read, bytes);
        prop_assert_eq!(wire.client.state(), crate::State::Closed);
    }
}
