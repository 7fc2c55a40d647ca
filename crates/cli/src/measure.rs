//! `bentpipe measure`.

mod outcome;

use crate::Outcome;
use crate::values;
use endpoint::{Endpoint, PathReport, Stream, Target};
use gateway::measure::{MeasuredPath, measured_path};
use outcome::Measured;
use relay::{Filler, MAX_PATH_REPORT, MEASUREMENT, SINK, SOURCE};
use rt::Clock;
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use units::Span;

/// Time for a session with the hub, at one address.
const CONNECT: Duration = Duration::from_secs(15);
/// Time for a report of the hub.
const REPORT: Span = Span::from_secs(30);
/// Time for the searches for the path MTU to complete after the transfers.
const SEARCH: Span = Span::from_secs(15);
/// Time for the orderly end of the session.
const CLOSE: Duration = Duration::from_secs(2);
/// Interval of waiting and of reports.
const STEP: Duration = Duration::from_millis(200);

/// Measure rate, loss, jitter and MTU of the path to the hub, and propose the configuration
///
/// Transfers octets from the hub and then to it, over an association of its own; a running gateway
/// keeps its connections, and shares the link with the measurement. Run it while the link is idle,
/// as root. The hub needs release 0.2.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
                        bentpipe measure\n  \
                        bentpipe measure --seconds 20 --max-bytes 500MB --json")]
pub struct Arguments {
    /// The terminal's configuration
    #[arg(short, long, value_name = "FILE", default_value = "/etc/bentpipe/terminal.toml")]
    config: PathBuf,
    /// The path, if the configuration has several
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// Duration of the transfer in each direction, seconds
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=50))]
    seconds: u64,
    /// Maximum octets of the transfer in each direction
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = values::size)]
    max_bytes: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Measures a path and prints the result.
///
/// # Errors
/// If the hub does not respond or does not measure, or no rate was found.
pub fn run(arguments: &Arguments) -> Outcome {
    let Arguments { config, path, seconds, max_bytes, json } = arguments;
    let path = measured_path(config, path.as_deref()).map_err(|error| error.to_string())?;
    let (client, address) = connect(&path)?;
    let (clock, bounds) = (Clock::new(), (Span::from_secs(*seconds), *max_bytes));
    let mut down = download(&client, clock, bounds)?;
    let (mut up, upload) = upload(&client, clock, bounds)?;
    let by = clock.now() + SEARCH;
    let (last, round_trip) = loop {
        let (own, round_trip) = client.path_report().unwrap_or_default();
        let hub = ask(&client, clock)?;
        (up.mtu, down.mtu) = (own.mtu, hub.mtu);
        if own.is_mtu_final && hub.is_mtu_final || clock.now() >= by {
            break (own.is_mtu_final && hub.is_mtu_final, round_trip);
        }
        clock.sleep_until(clock.now() + Span::from_millis(200));
    };
    drop(upload);
    // What remains of the transfer is discarded.
    let _ = client.close(CLOSE);
    let measured = Measured::new(&path, address, round_trip, [down, up], last);
    if *json {
        values::write_json("-".as_ref(), &measured)?;
    } else {
        values::print(&measured.to_string())?;
    }
    measured.failure().map_or(Ok(()), Err)
}

/// Begins a session with the hub.
fn connect(path: &MeasuredPath) -> Result<(Endpoint, SocketAddr), String> {
    for &address in &path.addresses {
        let (local, interface) = (path.local, path.interface.as_deref());
        let client = Endpoint::client_from(&path.relay, address, local, interface)
            .map_err(|error| format!("{address}: {error}"))?;
        if client.wait_connected(CONNECT).is_ok() {
            return Ok((client, address));
        }
        let _ = client.close(Duration::ZERO); // There is no session.
    }
    Err(format!("{} does not respond; `bentpipe doctor` tells the causes apart", path.hub))
}

fn open(client: &Endpoint, kind: u8) -> Result<Stream, String> {
    let mut stream = client.open(Target::name(MEASUREMENT, 0)).map_err(|error| failed(&error))?;
    stream.write_all(&[kind]).map_err(|error| failed(&error))?;
    Ok(stream)
}

fn failed(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => {
            "the hub does not measure; it needs release 0.2 or later".into()
        }
        _ => format!("the measurement was interrupted: {error}; run it again"),
    }
}

/// Receives octets; returns the hub's report.
fn download(
    client: &Endpoint,
    clock: Clock,
    (time, max_bytes): (Span, u64),
) -> Result<PathReport, String> {
    let stream = open(client, SOURCE)?;
    let (mut buffer, mut received, mut until) = (vec![0; 64 << 10], 0, None);
    let by = clock.now() + REPORT;
    while received < max_bytes && until.is_none_or(|until| clock.now() < until) {
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => {
                received += len as u64;
                until.get_or_insert_with(|| clock.now() + time);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if until.is_none() && clock.now() >= by {
                    return Err("the hub sends nothing; run `bentpipe doctor`".into());
                }
                stream.wait_ready((true, false), STEP);
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    // While the path is still full.
    ask(client, clock)
}

/// Sends octets; returns the own report, and the stream with what was not sent yet.
fn upload(
    client: &Endpoint,
    clock: Clock,
    (time, max_bytes): (Span, u64),
) -> Result<(PathReport, Stream), String> {
    let stream = open(client, SINK)?;
    let (mut filler, mut buffer, mut sent) = (Filler::default(), vec![0; 16 << 10], 0);
    let until = clock.now() + time;
    while sent < max_bytes && clock.now() < until {
        filler.fill(&mut buffer);
        match stream.try_write(&buffer) {
            Ok(len) => sent += len as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stream.wait_ready((false, true), STEP);
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    let (report, _) = client.path_report().unwrap_or_default();
    Ok((report, stream))
}

/// Requests the hub's report.
fn ask(client: &Endpoint, clock: Clock) -> Result<PathReport, String> {
    let stream = open(client, SINK)?;
    stream.shutdown(Shutdown::Write).map_err(|error| failed(&error))?;
    let (mut octets, mut buffer, by) = (Vec::new(), [0; MAX_PATH_REPORT], clock.now() + REPORT);
    while octets.len() < MAX_PATH_REPORT {
        match stream.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => octets.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock && clock.now() < by => {
                stream.wait_ready((true, false), STEP);
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(PathReport::decode(&octets))
}
