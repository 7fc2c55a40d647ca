//! Clients that stop reading, or whose servers do: others keep their throughput, in both
//! directions.

mod rig;

use relay::{Owner, Priority, RelayConfig, StreamId};
use rig::{App, Rig, Side};
use units::{BitRate, Span};

/// Number of the honest client; hostile clients have others.
const HONEST: u8 = 1;
const FOREVER: u64 = 1 << 40;
/// Time until streams have all memory that they get, and duration of the measurement.
const SETTLE: Span = Span::from_secs(40);
const MEASURED: Span = Span::from_secs(20);

/// Direction of the honest client's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Download,
    Upload,
}

/// Creates a link of 500 ms and `rate`, with gateways that are configured with this rate or none.
fn link(rate: BitRate, configured: bool) -> Rig {
    let config = |name| match configured {
        true => RelayConfig::new(name).with_rates(Some(rate), Some(rate)),
        false => RelayConfig::new(name),
    };
    let mut rig = Rig::with(1, config("site"), config("hub"));
    rig.set_lines(rate, rate);
    rig.delay = Span::from_millis(250);
    assert!(rig.run(Span::from_secs(5), |rig| rig.connected.len() == 2), "no session");
    rig.run(Span::from_secs(1), |_| false);
    rig
}

fn download(rig: &mut Rig, client: u8, app: &App) -> StreamId {
    rig.open_by(client, &format!("source-{FOREVER}"), app)
}

fn upload(rig: &mut Rig, client: u8, server: &str) -> StreamId {
    rig.open_by(client, server, &App::writer(FOREVER))
}

/// Opens a stream that stalls after `bytes`.
fn stall(rig: &mut Rig, client: u8, direction: Direction, bytes: u64) {
    match direction {
        Direction::Download => {
            download(rig, client, &App { deaf_after: Some(bytes), ..App::default() });
        }
        Direction::Upload => {
            upload(rig, client, &format!("deaf-{bytes}"));
        }
    }
}

fn begin(rig: &mut Rig, direction: Direction) -> StreamId {
    match direction {
        Direction::Download => download(rig, HONEST, &App::default()),
        Direction::Upload => upload(rig, HONEST, "sink"),
    }
}

/// Returns the octets of the honest client's stream during the measurement.
fn measure(rig: &mut Rig, direction: Direction, stream: StreamId) -> u64 {
    let side = match direction {
        Direction::Download => Side::Terminal,
        Direction::Upload => Side::Hub,
    };
    let read = |rig: &Rig| rig.apps.get(&(side, stream)).map_or(0, |app| app.read);
    let before = read(rig);
    rig.run(MEASURED, |_| false);
    read(rig) - before
}

/// Returns the fraction of its throughput alone that an honest client keeps during `attack`, on an
/// open stream, and on one opened during the attack.
fn kept(mbps: u64, configured: bool, direction: Direction, attack: impl Fn(&mut Rig)) -> [f64; 2] {
    let rate = BitRate::from_mbps(mbps);
    let alone = {
        let mut rig = link(rate, configured);
        let stream = begin(&mut rig, direction);
        rig.run(Span::from_secs(10), |_| false);
        measure(&mut rig, direction, stream)
    };
    [true, false].map(|before| {
        let mut rig = link(rate, configured);
        let early = before.then(|| begin(&mut rig, direction));
        rig.run(Span::from_secs(10), |_| false);
        attack(&mut rig);
        rig.run(SETTLE, |_| false);
        let stream = early.unwrap_or_else(|| begin(&mut rig, direction));
        if !before {
            rig.run(Span::from_secs(5), |_| false);
        }
        measure(&mut rig, direction, stream) as f64 / alone as f64
    })
}

fn assert_kept(kept: [f64; 2], least: f64) {
    assert!(kept.iter().all(|&kept| kept >= least), "{kept:?} where {least} is promised");
}

/// RLY-4.7, RLY-4.8
#[test]
fn stalled_downloads_of_one_client_cost_another_nothing() {
    let attack = |rig: &mut Rig| (0..200).for_each(|_| stall(rig, 2, Direction::Download, 0));
    assert_kept(kept(20, true, Direction::Download, attack), 0.95);
}

/// RLY-4.7, RLY-4.8
#[test]
fn stalled_uploads_of_one_client_cost_another_nothing() {
    let attack = |rig: &mut Rig| (0..200).for_each(|_| stall(rig, 2, Direction::Upload, 0));
    assert_kept(kept(20, true, Direction::Upload, attack), 0.95);
}

/// RLY-4.7
#[test]
fn gateways_without_a_configured_rate_behave_equally() {
    for direction in [Direction::Download, Direction::Upload] {
        let attack = |rig: &mut Rig| (0..200).for_each(|_| stall(rig, 2, direction, 0));
        assert_kept(kept(20, false, direction, attack), 0.95);
    }
}

/// RLY-4.7: the windows were appropriate when they were granted.
#[test]
fn streams_that_stall_at_full_rate_leave_others_their_windows() {
    for direction in [Direction::Download, Direction::Upload] {
        let attack = |rig: &mut Rig| {
            for number in 0..30 {
                stall(rig, 2 + number % 2, direction, 2_000_000);
                rig.run(Span::from_secs(2), |_| false);
            }
        };
        assert_kept(kept(20, true, direction, attack), 0.95);
    }
}

/// RLY-4.7
#[test]
fn a_thousand_stalled_streams_at_60_mbit_cost_another_client_nothing() {
    let attack = |rig: &mut Rig| {
        for number in 0..1000_u64 {
            let direction = [Direction::Download, Direction::Upload][number as usize % 2];
            stall(rig, 2 + (number % 5) as u8, direction, number * 100);
        }
    };
    assert_kept(kept(60, true, Direction::Download, attack), 0.95);
}

/// RLY-3.2
#[test]
fn a_client_with_many_streams_has_the_share_of_one_with_few() {
    let mut rig = link(BitRate::from_mbps(20), true);
    let many: Vec<_> = (0..100).map(|_| download(&mut rig, 2, &App::default())).collect();
    let one = download(&mut rig, HONEST, &App::default());
    rig.run(Span::from_secs(10), |_| false);
    let read = |rig: &Rig, stream| rig.app(Side::Terminal, stream).read;
    let sum = |rig: &Rig| many.iter().map(|&stream| read(rig, stream)).sum::<u64>();
    let before = [sum(&rig), read(&rig, one)];
    rig.run(MEASURED, |_| false);
    let [many, one] = [sum(&rig) - before[0], read(&rig, one) - before[1]];
    assert!(one.abs_diff(many) < many / 10, "{one} bytes beside {many} of all others");
}

/// RLY-3.2: new streams precede bulk data, but not another client's without limit.
#[test]
fn a_client_with_consecutive_streams_has_only_its_share() {
    let mut rig = link(BitRate::from_mbps(20), true);
    let bulk = download(&mut rig, HONEST, &App::default());
    rig.run(Span::from_secs(10), |_| false);
    let churn = |rig: &mut Rig, rounds: u64| {
        for _ in 0..rounds {
            // 50 kB, 100 times per second: twice the link rate.
            let app = App { end: true, ..App::default() };
            rig.open_by(2, "source-50000", &app);
            rig.run(Span::from_millis(10), |_| false);
        }
    };
    churn(&mut rig, 500);
    let before = rig.app(Side::Terminal, bulk).read;
    churn(&mut rig, 1_000);
    let read = rig.app(Side::Terminal, bulk).read - before;
    // Half of 10 s at 20 Mbit/s.
    assert!(read > 10_000_000, "{read} bytes of {}", 12_500_000);
}

/// RLY-6.2: packets of many sparse flows with expedited forwarding have only their client's share.
#[test]
fn expedited_packets_leave_another_client_its_share() {
    for dscp in [0, 46] {
        let mut rig = link(BitRate::from_mbps(20), true);
        let stream = upload(&mut rig, HONEST, "sink");
        let flood = |rig: &mut Rig, millis: u16| {
            for time in 0..millis {
                // 40 packets of 100 octets per millisecond: 32 Mbit/s.
                for number in 0..40 {
                    let mut packet = [0; 100];
                    (packet[0], packet[1], packet[9]) = (0x45, dscp << 2, 17);
                    let port = time % 3 * 40 + number;
                    packet[20..22].copy_from_slice(&port.to_be_bytes());
                    rig.terminal.send_datagram_as(rig.now, &packet, (Owner(2), None));
                }
                rig.run(Span::from_millis(1), |_| false);
            }
        };
        flood(&mut rig, 5_000);
        let read = |rig: &Rig| rig.app(Side::Hub, stream).read;
        let before = read(&rig);
        flood(&mut rig, 5_000);
        // Half of 5 s at 20 Mbit/s are 6.25 MB.
        assert!(read(&rig) - before > 5_500_000, "{} bytes", read(&rig) - before);
    }
}

/// A request is not delayed by bulk data of its own client.
#[test]
fn a_request_precedes_bulk_data_of_its_own_and_other_clients() {
    let mut rig = link(BitRate::from_mbps(20), true);
    for client in [HONEST, 2, 3] {
        download(&mut rig, client, &App::default());
    }
    rig.run(Span::from_secs(10), |_| false);
    for _ in 0..3 {
        let stream = rig.open_by(HONEST, "source-4096", &App { end: true, ..App::default() });
        assert!(rig.run(Span::from_secs(5), |rig| rig.app(Side::Terminal, stream).ended));
        let app = rig.app(Side::Terminal, stream);
        let took = app.ended_at.expect("ended").since(app.opened_at);
        assert!(took < Span::from_millis(650), "{took}");
    }
    let background = rig.open_as("source-100", Priority::Background, &App::default());
    assert!(background.is_ok());
}
