//! Two sessions over a path that loses, duplicates and reorders, from random seeds.

use super::pipe::{Faults, World};
use super::*;
use crate::congestion::Controller;
use crate::session::ProbingConfig;
use proptest::prelude::*;

fn both_deliver(mut world: World, counts: [u32; 2], seed: u64) {
    for (end, count) in world.ends.iter_mut().zip(counts) {
        end.upper.push_many(count, 300);
        end.session.end(at(0));
    }
    let done = |ends: &[Peer; 2]| ends.iter().all(|end| end.session.state() == State::Closed);
    // POLLs are backed off, and only a quarter of them is answered.
    let closed = world.run(at(50_000_000), done);
    for (end, count) in world.ends.iter().zip([counts[1], counts[0]]) {
        let expected: Vec<u32> = (0..count).collect();
        assert_eq!(end.upper.delivered_sorted(), expected, "each once, seed {seed}");
    }
    assert!(closed, "seed {seed}: {:?}", world.ends.map(|end| end.session.state()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// XSTP-7.3.2, XSTP-7.4.1, XSTP-6.4.1, XSTP-13.4.2: each packet is delivered once, and both
    /// directions are closed.
    #[test]
    fn every_packet_is_delivered_once(
        seed in any::<u64>(),
        loss in 0.0..0.5_f64,
        duplicate in 0.0..0.3_f64,
        delay in 1..400_u64,
        jitter in 0..400_u64,
        counts in any::<[u8; 2]>(),
        controller in 0..3_u8,
        start in prop_oneof![Just(0), Seq24::MODULUS - 300..Seq24::MODULUS],
    ) {
        let mut config = gateway();
        config.max_rate = Some(BitRate::from_kbps(400));
        config.no_response = None;
        config.handshake_tries = 1_000;
        config.first_number = Seq24::new(start);
        if controller > 0 {
            config.controller = Controller::NewReno;
            config.stp.small_window = 10;
            config.poll_backoff_cap = 6;
        }
        if controller == 2 {
            config.xstp.probing = Some(ProbingConfig::default());
            config.stp.small_window = 0;
            config.max_rate = (seed % 2 == 0).then(|| BitRate::from_kbps(400));
        }
        let jitter = Span::from_millis(jitter);
        let clean = Faults::clean(Span::from_millis(delay));
        let faults = Faults { jitter, loss, duplicate, ..clean };
        let ends = [Peer::client(&config), Peer::server(&config)];
        let world = World::new(ends, faults, seed).without_log();
        both_deliver(world, counts.map(u32::from), seed);
    }
}

/// XSTP-7.5.2
#[test]
fn mutated_segments_do_not_panic() {
    let mut rng = units::RngStream::new(5, 0, "mutations");
    for _ in 0..300 {
        let (mut client, mut server) = established(&gateway());
        client.upper.push_many(40, 50);
        server.upper.push_many(40, 50);
        let mut now = at(700);
        for _ in 0..60 {
            now += Span::from_millis(rng.below(80));
            let segments = client.send(now);
            for mut octets in segments {
                let flips = rng.below(3);
                for _ in 0..flips {
                    let index = rng.below(octets.len() as u64) as usize;
                    octets[index] ^= 1 << rng.below(8);
                }
                if rng.chance(0.1) {
                    octets.truncate(rng.below(octets.len() as u64 + 1) as usize);
                }
                let _ = server.session.handle_segment(now, &octets, &mut server.upper);
            }
            for octets in server.send(now) {
                let _ = client.session.handle_segment(now, &octets, &mut client.upper);
            }
            core::mem::swap(&mut client, &mut server);
        }
    }
}

/// XSTP-9.2.1, XSTP-8.2.1
#[test]
fn newreno_completes_with_and_without_loss() {
    let mut config = gateway();
    config.controller = Controller::NewReno;
    config.max_rate = None;
    config.stp.small_window = 10;
    config.initial_window = 1;
    for loss in [0.0, 0.002] {
        let faults = Faults { loss, ..Faults::clean(Span::from_millis(50)) };
        let mut world = World::pair(&config, &config, faults).without_log();
        world.ends[0].upper.push_many(3_000, 1_000);
        let done = |ends: &[Peer; 2]| ends[1].upper.delivered.len() == 3_000;
        assert!(world.run(at(120_000), done), "loss {loss}: {:?}", world.ends[0].session);
        let statistics = world.ends[0].session.statistics();
        let lost = (3_000.0 * loss) as u64;
        assert!(statistics.data_retransmitted <= 4 * lost, "{statistics:?}");
    }
}
