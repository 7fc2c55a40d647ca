//! Gateways as processes of this program.

use super::BedConfig;
use super::keys::Acquainted;
use crate::LabError;
use satlink::{Direction, LinkConfig};
use serde::Serialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use testbed::{Host, Process, Satellite, addresses};
use units::{BitRate, Span};

/// The link rates that gateways are configured with.
#[derive(Clone, Copy, Debug)]
pub struct GatewayRates {
    /// From the hub to the terminal.
    pub forward: BitRate,
    /// From the terminal to the hub.
    pub return_: BitRate,
}

impl GatewayRates {
    /// Returns the rates of `link`.
    ///
    /// # Errors
    /// If a direction has no rate, which gateways cannot be configured with.
    pub fn of(link: &LinkConfig) -> Result<Self, LabError> {
        let rate = |direction| {
            link.direction(direction).rate.ok_or_else(|| {
                LabError::Request(format!("the link's {direction} direction has no rate"))
            })
        };
        Ok(Self { forward: rate(Direction::Forward)?, return_: rate(Direction::Return)? })
    }

    /// Returns the corresponding keys of a gateway's `[link]`.
    pub(crate) fn as_toml(self, round_trip: Span) -> String {
        format!(
            "rate_up = \"{}bit\"\nrate_down = \"{}bit\"\nround_trip = \"{}ms\"\n",
            self.return_.as_bps(),
            self.forward.as_bps(),
            round_trip.as_millis().max(1),
        )
    }

    /// Returns the rates multiplied by `numerator / denominator`.
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        Self {
            forward: self.forward.mul_ratio(numerator, denominator),
            return_: self.return_.mul_ratio(numerator, denominator),
        }
    }
}

/// Counters that the gateways print at their end.
#[derive(Clone, Debug, Serialize)]
pub struct Counters {
    /// Counters of the terminal; null without a terminal gateway.
    pub terminal: Value,
    /// Counters of the hub.
    pub hub: Value,
}

/// Running gateways of one transport.
#[derive(Debug)]
pub(super) struct Gateways {
    /// None with two-segment splitting.
    terminal: Option<Gateway>,
    hub: Gateway,
}

/// Congestion control of two-segment splitting, which does not react to every loss.
const CONGESTION: &str = "bbr";
/// Its initial window in segments.
const INITIAL_WINDOW: u32 = 32;
/// UDP port of the hub on the satellite side; a second hub uses the next one.
const PORT: u16 = 4500;

/// The measurement is complete when the gateways stop: open connections are not waited for.
const AT_ONCE: &str = "[limits]\ndrain = \"0s\"\n";

impl Gateways {
    /// Starts gateways that intercept all connections except those to the port `bypass`.
    pub(super) fn start(net: &Satellite, link: &str, bypass: u16) -> Result<Self, LabError> {
        let clients = format!("[intercept]\ninterfaces = [\"lan\"]\nexclude_ports = [{bypass}]\n");
        Self::pair(net, link, PORT, &clients)
    }

    /// Starts a second pair, which clients use by SOCKS5 on the port `socks`.
    pub(super) fn start_second(net: &Satellite, link: &str, socks: u16) -> Result<Self, LabError> {
        let lan = addresses::TERMINAL_LAN.0;
        Self::pair(net, link, PORT + 1, &format!("[socks5]\nlisten = \"{lan}:{socks}\"\n"))
    }

    /// Starts one gateway at the hub; the terminal only routes.
    pub(super) fn start_single(
        net: &Satellite,
        config: &BedConfig,
        bypass: u16,
    ) -> Result<Self, LabError> {
        let rates = match config.rates {
            Some(rates) => rates,
            None => GatewayRates::of(&config.link)?,
        };
        let [a, b, c, _] = addresses::CLIENT.0.octets();
        let text = format!(
            "role = \"single\"\n[single]\nsatellite = [\"sat\"]\nsource = \"own\"\n\
             congestion = \"{CONGESTION}\"\nrate = \"{}bit\"\nround_trip = \"{}ms\"\n\
             initial_window = {INITIAL_WINDOW}\nnetworks = [\"{a}.{b}.{c}.0/24\"]\n\
             exclude_ports = [{bypass}]\n",
            rates.forward.as_bps(),
            config.link.round_trip().as_millis().max(1),
        );
        let hub = Gateway::start(Some(&net.hub), "single", &text)?;
        Ok(Self { terminal: None, hub })
    }

    fn pair(net: &Satellite, link: &str, port: u16, clients: &str) -> Result<Self, LabError> {
        let hub = addresses::HUB.0;
        let Acquainted { hub_top, hub_end, terminal_top, terminal_link } = Acquainted::new();
        let hub_config = format!(
            "role = \"hub\"\n{hub_top}[link]\nlisten = \"{hub}:{port}\"\n{link}{AT_ONCE}{hub_end}"
        );
        let terminal_config = format!(
            "role = \"terminal\"\n{terminal_top}accept = \"early\"\n\
             [link]\npeer = \"{hub}:{port}\"\n{terminal_link}{link}{clients}{AT_ONCE}"
        );
        let hub = Gateway::start(Some(&net.hub), "hub", &hub_config)?;
        let terminal = Gateway::start(Some(&net.terminal), "terminal", &terminal_config)?;
        Ok(Self { terminal: Some(terminal), hub })
    }

    /// Checks that the gateways still run.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        if let Some(terminal) = &mut self.terminal {
            terminal.check()?;
        }
        self.hub.check()
    }

    pub(super) fn stop(mut self) -> Result<Counters, LabError> {
        self.check()?;
        // The hub stops first, so that its counters include the terminal's session.
        let hub = self.hub.stop();
        let terminal = self.terminal.map_or(Value::Null, Gateway::stop);
        Ok(Counters { terminal, hub })
    }
}

/// The process of one gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    role: &'static str,
    process: Process,
    /// The last lines of its log.
    said: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
}

/// Number of log lines that are stored.
const KEPT: usize = 20;

/// Environment variable that names another program whose gateways are measured.
pub const GATEWAY_VARIABLE: &str = "BENTPIPE_GATEWAY";

/// Returns the program that is started as a gateway: the one that [`GATEWAY_VARIABLE`] names, for
/// example an earlier release, or this one.
pub(crate) fn gateway_program() -> io::Result<PathBuf> {
    match std::env::var_os(GATEWAY_VARIABLE) {
        Some(program) => Ok(program.into()),
        None => std::env::current_exe(),
    }
}

impl Gateway {
    /// Starts `bentpipe gateway` on `host`, or without a namespace for `None`, with the
    /// configuration on standard input.
    pub(crate) fn start(
        host: Option<&Host>,
        role: &'static str,
        config: &str,
    ) -> Result<Self, LabError> {
        let failed = |reason: String| LabError::Gateway { role, reason };
        let program = gateway_program().map_err(|error| failed(error.to_string()))?;
        Self::start_by(host, role, Command::new(program), config)
    }

    /// As [`Gateway::start`], by a command to which the arguments are added, for example a wrapper.
    pub(crate) fn start_by(
        host: Option<&Host>,
        role: &'static str,
        mut command: Command,
        config: &str,
    ) -> Result<Self, LabError> {
        let failed = |reason: String| LabError::Gateway { role, reason };
        command.args(["gateway", "--config", "/dev/stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = match host {
            Some(host) => host.start(command)?,
            None => Process::start(command)?,
        };
        let mut input = process.child().stdin.take().expect("standard input is a pipe");
        input.write_all(config.as_bytes()).map_err(|error| failed(error.to_string()))?;
        drop(input);
        let errors = process.child().stderr.take().expect("standard error is a pipe");
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&said);
        let listener = thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == KEPT {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        Ok(Self { role, process, said, listener: Some(listener) })
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.process.child().id()
    }

    /// Returns the last lines of the log.
    pub(crate) fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        if !self.process.has_ended() {
            return Ok(());
        }
        if let Some(listener) = self.listener.take() {
            let _ = listener.join(); // It cannot panic.
        }
        let reason = format!("ended by itself: {}", self.said());
        Err(LabError::Gateway { role: self.role, reason })
    }

    /// Stops the gateway and returns the counters that it prints; null if it printed none.
    pub(crate) fn stop(mut self) -> Value {
        self.process.terminate();
        let mut text = String::new();
        if let Some(output) = self.process.child().stdout.take() {
            // Unreadable output counts as missing.
            let _ = output.take(1 << 20).read_to_string(&mut text);
        }
        let _ = self.process.wait();
        let last = text.lines().rev().find(|line| line.trim_start().starts_with('{'));
        last.and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null)
    }
}
