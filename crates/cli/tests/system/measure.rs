//! `bentpipe measure` beside a running terminal gateway.

use crate::network::{PATIENCE, Setup, TestNetwork};
use crate::path::change;
use endpoint::{Endpoint, Target};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::process::{Command, Stdio};
use testbed::addresses::SERVER;

/// The link: rates of 20 and 2 Mbit/s, 1 % of loss in the forward direction, an RTT of 300 ms, and
/// packets of at most 1,420 octets.
const LINK: &str = "delay 150ms limit 1bdp forward rate 20mbit loss 1% return rate 2mbit";
const MTU: u32 = 1420;

/// Returns what the command prints in JSON, at the terminal.
fn measure(network: &TestNetwork) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    let file = network.dir.join("terminal.toml");
    command.args(["measure", "--json", "--config"]).arg(file).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = network.net.terminal.start(command).expect("the program starts");
    let (mut out, mut errors) = (String::new(), String::new());
    process.child().stdout.take().unwrap().read_to_string(&mut out).unwrap();
    process.child().stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(process.wait().unwrap().success(), "{errors}{out}");
    serde_json::from_str(&out).expect("JSON")
}

fn value(measured: &Value, direction: &str, key: &str) -> f64 {
    measured[direction][key].as_f64().unwrap_or_else(|| panic!("{direction} {key}: {measured}"))
}

#[test]
fn rate_loss_and_mtu_of_each_direction_are_measured_beside_a_running_gateway() {
    let rates = "round_trip = \"300ms\"";
    let setup = Setup { link: LINK, rates, ..Setup::default() };
    let Some(network) = TestNetwork::build("measure", &setup) else { return };
    change(&network.net.terminal, |net| net.set_mtu("sat", MTU));
    let listener = network.listen(SERVER.0, 9000);
    let mut client = network.connect(SERVER.0, 9000);
    let (mut server, _) = listener.accept().unwrap();
    let measured = measure(&network);
    // The gateway's own association and its connection still exist.
    server.write_all(b"still here").unwrap();
    let mut received = [0; 10];
    client.read_exact(&mut received).unwrap();

    let within = |direction, configured: f64| {
        let ratio = value(&measured, direction, "rate_bits_per_second") / configured;
        assert!((0.95..=1.05).contains(&ratio), "{direction}: {ratio} of the rate: {measured}");
        assert_eq!(value(&measured, direction, "mtu_bytes"), f64::from(MTU), "{measured}");
        assert_eq!(measured[direction]["limited_by_configuration"], false);
        assert!(value(&measured, direction, "jitter_seconds") < 0.05, "{measured}");
    };
    within("down", 20e6);
    within("up", 2e6);
    let loss = value(&measured, "down", "loss_ratio");
    assert!((0.005..0.02).contains(&loss), "{measured}");
    assert!(value(&measured, "up", "loss_ratio") < 0.002, "{measured}");
    let round_trip = measured["round_trip_seconds"].as_f64().unwrap();
    assert!((0.3..0.33).contains(&round_trip), "{measured}");
    let keys: Vec<&String> = measured["proposal"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["mtu", "rate_down", "rate_up", "repair", "round_trip"]);
}

#[test]
fn a_rate_of_the_hubs_configuration_is_reported_as_the_limit() {
    let rates = "rate_down = \"5mbit\"\nround_trip = \"80ms\"";
    let Some(network) = TestNetwork::build("measure-cap", &Setup { rates, ..Setup::default() })
    else {
        return;
    };
    let measured = measure(&network);
    assert_eq!(measured["down"]["limited_by_configuration"], true, "{measured}");
    assert_eq!(measured["up"]["limited_by_configuration"], false, "{measured}");
}

/// RLY-14.1
#[test]
fn a_stream_of_another_kind_is_reset() {
    let Some(network) = TestNetwork::build("measure-kind", &Setup::default()) else { return };
    let file = network.dir.join("terminal.toml");
    let path = gateway::measure::measured_path(&file, None).expect("a terminal's configuration");
    let client = network.net.terminal.run(|| {
        Endpoint::client(&path.relay, path.addresses[0]).map_err(|error| error.to_string())
    });
    let client = client.expect("a socket");
    for first in [&[2_u8][..], &[]] {
        let mut stream = client.open(Target::name(relay::MEASUREMENT, 0)).unwrap();
        stream.write_all(first).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.wait_ready((true, false), PATIENCE);
        let error = stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{first:?}");
    }
}
