//! The channel, compared with computed values and with Kleinrock and Tobagi's formula.

use super::*;
use proptest::prelude::*;
use std::vec;
use units::BitRate;

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// 8,000 bit/s without framing: an octet takes 1 ms; key-up 100 ms, access without randomness.
fn plain() -> CsmaConfig {
    CsmaConfig {
        framing: crate::Framing::Plain,
        key_up: Span::from_millis(100),
        tail: Span::from_millis(20),
        persistence: 255,
        ..CsmaConfig::kiss(BitRate::from_bps(8_000))
    }
}

fn channel(config: &CsmaConfig, stations: usize) -> Csma<Vec<u8>> {
    Csma::new(config, stations, 1, 0).expect("a valid channel")
}

/// All frames received until nothing more happens, as time in ms, sender and length.
fn drain(channel: &mut Csma<Vec<u8>>) -> Vec<(u64, usize, usize)> {
    let mut all = Vec::new();
    while let Some(at) = channel.poll_timeout() {
        while let Some(heard) = channel.poll_delivery(at) {
            all.push((heard.at.as_nanos() / 1_000_000, heard.from, heard.frame.len()));
        }
        assert!(channel.audit());
    }
    all
}

#[test]
fn delay_on_an_idle_channel_is_key_up_and_frame() {
    let mut channel = channel(&plain(), 2);
    channel.offer(at_ms(5), 0, 1, vec![0; 50]);
    assert_eq!(drain(&mut channel), [(155, 0, 50)]);
    assert_eq!(channel.counters().on_air, Span::from_millis(170), "with the tail");
}

#[test]
fn waiting_frames_share_a_transmission_up_to_the_limit() {
    let config = CsmaConfig { most_frames: 2, ..plain() };
    let mut channel = channel(&config, 2);
    for len in [50, 60, 70] {
        channel.offer(at_ms(0), 0, 1, vec![0; len]);
    }
    // Key-up, 50, 60; tail, key-up again, 70.
    assert_eq!(drain(&mut channel), [(150, 0, 50), (210, 0, 60), (400, 0, 70)]);
    assert_eq!(channel.counters().transmissions, 2);
}

#[test]
fn station_defers_to_another_carrier() {
    let config = CsmaConfig { propagation: Span::from_millis(2), ..plain() };
    let mut channel = channel(&config, 3);
    channel.offer(at_ms(0), 0, 2, vec![0; 50]);
    channel.offer(at_ms(3), 1, 2, vec![0; 60]);
    // The first is on air until 170, detected until 172; then the second keys up.
    assert_eq!(drain(&mut channel), [(152, 0, 50), (334, 1, 60)]);
}

#[test]
fn stations_that_key_up_within_the_detection_time_collide() {
    let config = CsmaConfig { detection: Span::from_millis(10), ..plain() };
    let mut three = channel(&config, 3);
    three.offer(at_ms(0), 0, 2, vec![0; 50]);
    three.offer(at_ms(10), 1, 2, vec![0; 50]);
    assert_eq!(drain(&mut three), []);
    assert_eq!((three.counters().collided.packets, three.counters().unheard.packets), (2, 0));
    let mut two = channel(&config, 2);
    two.offer(at_ms(0), 0, 1, vec![0; 50]);
    two.offer(at_ms(10), 1, 0, vec![0; 50]);
    assert_eq!(drain(&mut two), []);
    assert_eq!((two.counters().collided.packets, two.counters().unheard.packets), (0, 2));
}

#[test]
fn collision_loses_only_the_overlapping_frames() {
    let config = CsmaConfig { detection: Span::from_secs(10), ..plain() };
    let mut channel = channel(&config, 3);
    for _ in 0..3 {
        channel.offer(at_ms(0), 0, 2, vec![0; 500]);
    }
    // On air from 700 to 870: only within the second frame, which is from 600 to 1,100.
    channel.offer(at_ms(700), 1, 2, vec![0; 50]);
    assert_eq!(drain(&mut channel), [(600, 0, 500), (1600, 0, 500)]);
}

#[test]
fn a_full_station_and_noise_are_accounted_for() {
    let config = CsmaConfig { queue: 2, bit_error_ratio: 1.0, ..plain() };
    let mut channel = channel(&config, 2);
    for _ in 0..3 {
        channel.offer(at_ms(0), 0, 1, vec![0; 50]);
    }
    assert_eq!(drain(&mut channel), []);
    let counters = channel.counters();
    assert_eq!((counters.overflowed.packets, counters.corrupted.packets), (1, 2));
    assert_eq!(Csma::<Vec<u8>>::new(&CsmaConfig { queue: 0, ..plain() }, 2, 1, 0).err(), {
        Some(CsmaError { setting: "queue", expected: "at least 1" })
    });
}

/// Mean access delay on an idle channel: `(1 − p) / p` slots, and the key-up.
#[test]
fn persistence_costs_slots_on_an_idle_channel() {
    const FRAMES: u64 = 4_000;
    for config in
        [CsmaConfig::kiss(BitRate::from_bps(1_200)), CsmaConfig::kenwood(BitRate::from_bps(9_600))]
    {
        let mut channel = channel(&config, 2);
        let mut waited = 0.0;
        for n in 0..FRAMES {
            channel.offer(at_ms(n * 100_000), 0, 1, vec![0; 80]);
            while let Some(at) = channel.poll_timeout() {
                if let Some(heard) = channel.poll_delivery(at) {
                    waited += heard.at.since(heard.offered_at).as_secs_f64();
                }
            }
        }
        let p = config.probability();
        let slot = config.slot.as_secs_f64();
        let frame = 8.0 * 100.0 / config.rate.as_bps() as f64;
        let expected = slot * (1.0 - p) / p + config.key_up.as_secs_f64() + frame;
        assert!((config.mean_wait().as_secs_f64() - slot * (1.0 - p) / p).abs() < 1e-6);
        // Five standard errors of a geometric distribution's mean.
        let bound = 5.0 * slot * (1.0 - p).sqrt() / p / (FRAMES as f64).sqrt();
        let found = waited / FRAMES as f64;
        assert!((found - expected).abs() < bound, "{found} is not {expected} ± {bound}");
    }
}

/// Kleinrock and Tobagi 1975, equation for unslotted 1-persistent CSMA with an infinite
/// population: offered traffic G and delay a, both in frame times.
fn one_persistent(g: f64, a: f64) -> f64 {
    let top = g * (1.0 + g + a * g * (1.0 + g + a * g / 2.0)) * (-g * (1.0 + 2.0 * a)).exp();
    let idle = (1.0 + a * g) * (-g * (1.0 + a)).exp();
    top / (g * (1.0 + 2.0 * a) - (1.0 - (-a * g).exp()) + idle)
}

#[test]
fn many_stations_reach_kleinrock_and_tobagis_throughput() {
    const STATIONS: usize = 300;
    for (g, a_ms) in [(0.5, 10), (1.0, 10), (1.0, 100), (2.0, 50)] {
        let config = CsmaConfig {
            key_up: Span::ZERO,
            tail: Span::ZERO,
            most_frames: 1,
            propagation: Span::from_millis(a_ms),
            ..plain()
        };
        let mut channel = channel(&config, STATIONS);
        let mut arrivals = RngStream::new(1, a_ms, "arrivals");
        // Frames of a second each, in 20 batches of 1,000 seconds.
        let (mut now, mut batches) = (Instant::ZERO, vec![0.0; 20]);
        loop {
            now += arrivals.exponential_span(Span::from_secs_f64(1.0 / g));
            while let Some(heard) = channel.poll_delivery(now) {
                if let Some(batch) = batches.get_mut(heard.at.as_secs_f64() as usize / 1_000) {
                    *batch += 1.0 / 1_000.0;
                }
            }
            if now > Instant::ZERO + Span::from_secs(20_000) {
                break;
            }
            let from = arrivals.below(STATIONS as u64) as usize;
            channel.offer(now, from, (from + 1) % STATIONS, vec![0; 1_000]);
        }
        let mean = batches.iter().sum::<f64>() / 20.0;
        let spread = batches.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 19.0;
        // Four standard errors, and one part in a hundred: 300 stations are not infinitely many.
        let bound = 4.0 * (spread / 20.0).sqrt() + 0.01 * mean;
        let expected = one_persistent(g, a_ms as f64 / 1_000.0);
        assert!((mean - expected).abs() < bound, "G {g}, a {a_ms} ms: {mean} is not {expected}");
    }
}

/// Saturated stations: a slot is successful with `n p (1 − p)^(n − 1)`, and idle with `(1 − p)^n`.
#[test]
fn saturation_throughput_matches_the_formula() {
    for (stations, persistence) in [(2, 63), (10, 24), (50, 4), (50, 24)] {
        let config = CsmaConfig { persistence, most_frames: 1, queue: 10_000, ..plain() };
        let mut channel = channel(&config, stations);
        for _ in 0..(10_000 / stations) {
            for from in 0..stations {
                channel.offer(Instant::ZERO, from, (from + 1) % stations, vec![0; 500]);
            }
        }
        let end = at_ms(2_000_000);
        let (mut heard, mut square) = (0.0_f64, 0.0_f64);
        for second in 1..=20 {
            let before = heard;
            while channel.poll_delivery(at_ms(100_000 * second)).is_some() {
                heard += 1.0;
            }
            square += (heard - before) * (heard - before);
        }
        let p = config.probability();
        let silent = (1.0 - p).powi(stations as i32);
        let one = stations as f64 * p * (1.0 - p).powi(stations as i32 - 1);
        let slots = silent / (1.0 - silent) * config.slot.as_secs_f64();
        let cycle = slots + 0.100 + 0.500 + 0.020;
        let expected = end.as_secs_f64() / cycle * one / (1.0 - silent);
        let spread = (square - heard * heard / 20.0) / 19.0;
        let bound = 4.0 * (20.0 * spread).sqrt() + 2.0;
        assert!((heard - expected).abs() < bound, "{stations}, {p}: {heard}, not {expected}");
        assert!(channel.audit());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Late calls change nothing, and packet conservation holds at all times.
    #[test]
    fn late_calls_change_nothing(
        seed in any::<u64>(),
        persistence in any::<u8>(),
        late in 0_u64..40,
        offers in prop::collection::vec((0_u64..400, 0_usize..4, 1_usize..4, 1_usize..300), 1..60),
    ) {
        let config = CsmaConfig {
            persistence,
            queue: 3,
            most_frames: 2,
            propagation: Span::from_millis(late),
            detection: Span::from_millis(late / 2),
            bit_error_ratio: 1e-4,
            ..plain()
        };
        let new = || Csma::new(&config, 4, seed, 0).expect("a valid channel");
        let (mut prompt, mut lazy): (Csma<Vec<u8>>, Csma<Vec<u8>>) = (new(), new());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut now = Instant::ZERO;
        for (gap, from, step, len) in offers {
            now += Span::from_millis(gap);
            while let Some(at) = prompt.poll_timeout().filter(|&at| at <= now) {
                first.extend(prompt.poll_delivery(at));
                prop_assert!(prompt.audit());
            }
            prompt.offer(now, from, (from + step) % 4, vec![0; len]);
            lazy.offer(now, from, (from + step) % 4, vec![0; len]);
            prop_assert!(lazy.audit());
        }
        while let Some(at) = prompt.poll_timeout() {
            first.extend(prompt.poll_delivery(at));
        }
        let end = now + Span::from_secs(3_600 * 24);
        while let Some(heard) = lazy.poll_delivery(end) {
            second.push(heard);
        }
        prop_assert_eq!(first, second);
        prop_assert_eq!(prompt.counters(), lazy.counters());
        prop_assert_eq!(prompt.counters().held.packets, 0);
        prop_assert!(prompt.bursts.len() <= 4, "{} records of the past", prompt.bursts.len());
    }
}
