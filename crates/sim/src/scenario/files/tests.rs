use super::*;
use satlink::{DirectionConfig, Limit, QueueConfig};
use units::BitRate;

fn hop(rate: BitRate, delay: Span) -> LinkConfig {
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(rate),
        delay,
        queue: QueueConfig { limit: Limit::Packets(50), ..QueueConfig::default() },
        ..DirectionConfig::default()
    })
}

fn stp() -> SessionConfig {
    SessionConfig::stp_1999()
}

/// 300 kB over 10 Mbit/s and a satellite.
fn files(carriage: Transports) -> Files {
    Files {
        carriage,
        flows: 1,
        bytes: 300_000,
        access: hop(BitRate::from_mbps(100), Span::ZERO),
        hops: vec![
            hop(BitRate::from_mbps(10), Span::from_millis(5)),
            hop(BitRate::from_kbps(1_300), Span::from_millis(295)),
            hop(BitRate::from_mbps(10), Span::ZERO),
        ],
        gateway: 1,
        beside: None,
        background_bps: 0.0,
        constant: None,
        stagger: Span::from_millis(100),
        chance: Span::from_millis(10),
        until: Span::from_secs(100),
        seed: 3,
        run: 0,
    }
}

fn carriages() -> [Transports; 5] {
    let tcp = TcpConfig::sack_new_reno;
    [
        Transports::Tcp(tcp()),
        Transports::Stp(stp()),
        Transports::SplitTcp(tcp(), tcp()),
        Transports::SplitStp(tcp(), stp()),
        Transports::ThreeSegments(tcp(), stp(), tcp()),
    ]
}

#[test]
fn all_transports_carry_several_files() {
    for carriage in carriages() {
        let name = format!("{carriage:?}");
        let files = Files { flows: 3, ..files(carriage) };
        let carried = files.carry();
        assert_eq!(carried.bytes, 900_000, "{name}");
        // 900 kB at 1.3 Mbit/s take 5.5 s.
        let took = carried.took.unwrap().as_secs_f64();
        assert!((5.5..30.0).contains(&took), "{took} {name}");
        let stp = name.contains("Published");
        assert_eq!(carried.polls[0] > 0, stp, "{name}");
        let on_air = carried.sent[1][0].bytes;
        // 617 segments of 1,460 bytes with 36 or more of headers, and retransmissions.
        assert!((917_000..1_500_000).contains(&on_air), "{on_air} {name}");
    }
}

#[test]
fn incomplete_transfer_has_no_duration() {
    let files = Files { until: Span::from_secs(2), ..files(carriages()[0].clone()) };
    let carried = files.carry();
    assert_eq!(carried.took, None);
    assert!(
        carried.bytes < 300_000
            && carried.bytes_by(carried.ended + Span::from_secs(1)) == carried.bytes
    );
    assert_eq!(carried.ended, Instant::ZERO + Span::from_secs(2));
}

#[test]
fn cross_traffic_takes_its_share_before_the_gateway() {
    let alone = files(carriages()[0].clone());
    let beside = CrossTraffic {
        tcp: TcpConfig::sack_new_reno(),
        flows: 1,
        access: hop(BitRate::from_mbps(100), Span::from_millis(2)),
    };
    let until = Span::from_secs(60);
    let crowded = Files { beside: Some(beside), bytes: u64::MAX, until, ..alone };
    let [alone, crowded] =
        [Files { beside: None, ..crowded.clone() }, crowded].map(|files| files.carry());
    assert!(crowded.sent[0][0].bytes > 3 * alone.sent[0][0].bytes);
    assert!(2 * crowded.bytes < alone.bytes, "{} {}", crowded.bytes, alone.bytes);
}

#[test]
fn files_use_the_rate_that_udp_leaves() {
    let rate = BitRate::from_kbps(520);
    let tcp = files(carriages()[0].clone());
    let until = Span::from_secs(60);
    let carried = Files { constant: Some(rate), bytes: u64::MAX, until, ..tcp }.carry();
    let udp = carried.constant as f64 * 8.0 / 60.0;
    assert!((480_000.0..=520_000.0).contains(&udp), "{udp}");
    let rest = carried.rate_after(Span::from_secs(20));
    assert!((500_000.0..780_000.0).contains(&rest), "{rest}");
}

#[test]
fn background_traffic_has_the_configured_rate() {
    let quiet = files(carriages()[0].clone());
    let noisy =
        Files { background_bps: 80_000.0, bytes: u64::MAX, until: Span::from_secs(200), ..quiet };
    // No file: its source never starts.
    let noisy = Files { chance: Span::ZERO, flows: 0, ..noisy };
    let carried = noisy.carry();
    let bps = carried.sent[1][0].bytes as f64 * 8.0 / 200.0;
    assert!((60_000.0..130_000.0).contains(&bps), "{bps}");
    assert_eq!((carried.bytes, carried.took), (0, None));
}
