//! Under any losses all data arrives once and in order.

use super::wire::Wire;
use crate::{HostCache, Opening, Ports, State, TcpConfig};
use proptest::prelude::*;
use std::vec::Vec;
use units::{Instant, RngStream, Span};

fn configs() -> Vec<TcpConfig> {
    Vec::from([
        TcpConfig::new_reno(),
        TcpConfig::sack(),
        TcpConfig::cubic(),
        TcpConfig::linux(),
        TcpConfig::reno().of_1999(),
        TcpConfig::sack_reno(),
        TcpConfig::sack_new_reno().of_1999(),
        TcpConfig::vegas(),
        TcpConfig::probing(),
        TcpConfig::bbr(),
        TcpConfig::linux_cubic(),
        TcpConfig::bbr3(),
        TcpConfig::prague(),
        TcpConfig { ecn: true, ..TcpConfig::bbr3() },
        TcpConfig { d_sack: true, ecn: true, pacing: true, ..TcpConfig::sack() },
        TcpConfig { opening: Opening::Transaction, ..TcpConfig::sack() },
        TcpConfig { opening: Opening::FastOpen, ..TcpConfig::sack_new_reno() },
        TcpConfig { opening: Opening::Transaction, ..TcpConfig::linux_cubic() },
        TcpConfig { opening: Opening::FastOpen, ..TcpConfig::linux_cubic() },
        TcpConfig { opening: Opening::Transaction, ..TcpConfig::bbr() },
        TcpConfig { opening: Opening::FastOpen, ..TcpConfig::bbr() },
    ])
}

/// Two ends of hosts with cached data of each other, where the configuration uses it.
fn wire(config: &TcpConfig) -> Wire {
    let (mut here, mut there) = (HostCache::new(1), HostCache::new(2));
    let ports = Ports { from: 1_000, to: 80 };
    let mut meet = || {
        let ends = (here.connect(2, config, ports, 1), there.listen(1, config, 80, 2));
        let mut wire = Wire::between(ends.0, ends.1, Span::from_millis(50));
        wire.run_until(Instant::ZERO + Span::from_secs(1));
        here.learn(2, &mut wire.client);
        there.learn(1, &mut wire.server);
    };
    meet();
    let ends = (here.connect(2, config, ports, 1), there.listen(1, config, 80, 2));
    Wire::between(ends.0, ends.1, Span::from_millis(50))
}

const CONFIGS: usize = 21;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn everything_arrives_in_whatever_order_and_however_small_the_buffers(
        seed in any::<u64>(), late_ms in 1_u64..300, which in 0..CONFIGS, room in 600_u64..20_000,
    ) {
        let config = TcpConfig {
            retries: 100, receive_buffer: room, send_buffer: room * 2, ..configs()[which].clone()
        };
        let mut lost = RngStream::new(seed, 0, "lost");
        let mut wire = wire(&config)
            .disordered(RngStream::new(seed, 0, "disorder"), Span::from_millis(late_ms))
            .losing(move |_, _| lost.chance(0.02));
        wire.closes = true;
        let (mut left, mut seconds) = (100_000, 0);
        while wire.client.state() != State::Closed && seconds < 20_000 {
            left -= wire.client.write(left);
            if left == 0 {
                wire.client.close();
            }
            seconds += 1;
            wire.run_until(Instant::ZERO + Span::from_secs(seconds));
        }
        prop_assert_eq!((wire.read, wire.client.state()), (100_000, State::Closed));
    }

    #[test]
    fn everything_arrives_however_much_is_lost(
        seed in any::<u64>(), loss in 0.0..0.3_f64, which in 0..CONFIGS, bytes in 1_u64..400_000,
    ) {
        let config =
            TcpConfig { retries: 100, send_buffer: 1 << 20, ..configs()[which].clone() };
        let mut there = RngStream::new(seed, 0, "there");
        let mut back = RngStream::new(seed, 0, "back");
        let mut wire = wire(&config)
            .losing(move |_, _| there.chance(loss))
            .losing_answers(move |_, _| back.chance(loss));
        prop_assert_eq!(wire.client.write(bytes), bytes);
        wire.client.close();
        wire.closes = true;
        wire.run_until(Instant::ZERO + Span::from_secs(100_000));
        prop_assert_eq!(wire.read, bytes);
        prop_assert_eq!(wire.client.state(), State::Closed);
    }
}
