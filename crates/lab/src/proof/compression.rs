//! Pages over a slow link with curl, with compression off and on.
//!
//! ```text
//!   curl ── terminal ══ 1 Mbit/s, 600 ms ══ hub ── web server
//! ```

use super::network::{Setup, TestNetwork};
use super::{ProofConfig, Verdict, failed};
use crate::LabError;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use testbed::addresses;
use units::{RngStream, Span};

/// Keys of `[link]` without compression and with it.
const WITHOUT: &str = "rate_up = \"1mbit\"\nrate_down = \"1mbit\"\nround_trip = \"600ms\"";
const WITH: &str =
    "compress = \"auto\"\nrate_up = \"1mbit\"\nrate_down = \"1mbit\"\nround_trip = \"600ms\"";
/// Port of the web server.
const WEB: u16 = 80;
/// Least size of a page, in octets.
const PAGE: usize = 1_000_000;
/// Prose in English, for the page of text.
const PROSE: [&str; 8] = [
    include_str!("../../../../docs/spec/session.md"),
    include_str!("../../../../docs/spec/relay.md"),
    include_str!("../../../../docs/spec/steady.md"),
    include_str!("../../../../docs/spec/association.md"),
    include_str!("../../../../docs/spec/wire.md"),
    include_str!("../../../../docs/guide/operation.md"),
    include_str!("../../../../docs/guide/measuring.md"),
    include_str!("../../../../docs/guide/scenarios.md"),
];

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut seconds = Vec::new();
    for (word, rates) in [("without", WITHOUT), ("with", WITH)] {
        let setup = Setup {
            link: "delay 300ms limit 1bdp forward rate 1mbit return rate 1mbit",
            rates,
            ..Setup::new(config.seed)
        };
        let mut network = TestNetwork::without_gateways(&setup)?;
        serve(&network, config.seed)?;
        network.start_both()?;
        network.await_path(Span::from_secs(30))?;
        let mut times = Vec::new();
        for page in ["html", "json", "archive"] {
            let rounds = if config.quick { 1 } else { 3 };
            let mut all = Vec::new();
            for _ in 0..rounds {
                all.push(fetch(&network, page)?);
            }
            all.sort_by(f64::total_cmp);
            times.push(all[rounds / 2]);
            verdict.figure(&format!("{page}_{word}_s"), all[rounds / 2]);
        }
        seconds.push(times);
        network.check()?;
    }
    let [plain, compressed] = &seconds[..] else { return Ok(()) };
    for (at, page, share) in [(0, "prose", 0.6), (1, "JSON", 0.4)] {
        verdict.demand(
            compressed[at] < plain[at] * share,
            &format!("a page of {page} takes less than {share} of its time"),
        );
    }
    verdict.demand(compressed[2] < plain[2] * 1.02, "an archive takes no longer");
    Ok(())
}

/// Returns the seconds in which curl fetches `page`.
fn fetch(network: &TestNetwork, page: &str) -> Result<f64, LabError> {
    let url = format!("http://{}/{page}", addresses::SERVER.0);
    let mut command = Command::new("curl");
    command.args(["--silent", "--output", "/dev/null", "--noproxy", "*", "--max-time", "60"]);
    command.args(["--write-out", "%{time_total} %{http_code} %{size_download}", &url]);
    let output = network.net.client.run(|| command.output()).map_err(failed("curl"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [time, 200.0, size] if size >= PAGE as f64 => Ok(time),
        _ => Err(LabError::Proof(format!("curl: {text}"))),
    }
}

/// Starts the web server.
fn serve(network: &TestNetwork, seed: u64) -> Result<(), LabError> {
    let address = SocketAddr::new(addresses::SERVER.0.into(), WEB);
    let listener = network.net.server.run(|| TcpListener::bind(address));
    let listener = listener.map_err(failed("the web server"))?;
    // The thread ends with the process.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            // A client that leaves early is no error.
            answer(&mut stream, seed).unwrap_or_default();
        }
    });
    Ok(())
}

fn answer(stream: &mut TcpStream, seed: u64) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        stream.read_exact(&mut octet)?;
        head.push(octet[0]);
    }
    let (kind, body) = match head.get(5) {
        Some(b'h') => ("text/html", html()),
        Some(b'j') => ("application/json", json(seed)),
        _ => ("application/zip", noise(seed)),
    };
    let len = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), &body].concat())
}

/// Paragraphs of prose; none is repeated within the octets that a compressor remembers.
fn html() -> Vec<u8> {
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<body>\n");
    while page.len() < PAGE {
        for line in PROSE.iter().flat_map(|text| text.lines()).filter(|line| !line.is_empty()) {
            page += &format!("<p class=\"text\">{line}</p>\n");
        }
    }
    page.into_bytes()
}

/// Records of measurements.
fn json(seed: u64) -> Vec<u8> {
    let mut rng = RngStream::new(seed, 0, "records");
    let mut page = String::from("[");
    let mut time = 1_700_000_000_u64;
    while page.len() < PAGE {
        time += rng.below(90);
        let [sensor, value, pressure] = [40, 40_000, 9_000].map(|most| rng.below(most));
        let state = ["ok", "ok", "ok", "late", "fault"][rng.below(5) as usize];
        let _ = writeln!(
            page,
            "{{\"time\":{time},\"sensor\":\"engine-room-{sensor}\",\"temperature\":{}.{:03},\
             \"pressure\":{},\"state\":\"{state}\"}},",
            value / 1000,
            value % 1000,
            95_000 + pressure,
        );
    }
    page.push(']');
    page.into_bytes()
}

/// Octets that cannot be compressed, as those of an archive.
fn noise(seed: u64) -> Vec<u8> {
    let mut rng = RngStream::new(seed, 0, "archive");
    (0..PAGE).map(|_| rng.below(256) as u8).collect()
}
