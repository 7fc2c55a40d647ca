//! Gateways as processes of this program.

use super::keys::Acquainted;
use super::program::Program;
use super::{TestNetworkConfig, Usage};
use crate::LabError;
use satlink::{Direction, LinkConfig};
use serde::Serialize;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use testbed::{Host, Satellite, addresses};
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

/// The `[limits]` of gateways that are measured and then stopped: connections are not waited for.
pub(super) const LIMITS: &str = "[limits]\ndrain = \"0s\"\n";

/// Returns the further tables of a pair; with `tls` its link uses only TLS with this congestion
/// control.
pub(super) fn tables(tls: Option<&str>) -> [String; 2] {
    let Some(congestion) = tls else { return [LIMITS, LIMITS].map(str::to_owned) };
    ["use = \"always\"\n", ""]
        .map(|keys| format!("{LIMITS}[tls]\n{keys}congestion = \"{congestion}\"\n"))
}

impl Gateways {
    /// Gateways that intercept all but connections to the port `bypass`.
    pub(super) fn start(
        net: &Satellite,
        link: &str,
        bypass: u16,
        tables: &[String; 2],
    ) -> Result<Self, LabError> {
        let clients = format!("[intercept]\ninterfaces = [\"lan\"]\nexclude_ports = [{bypass}]\n");
        Self::pair(net, link, PORT, &clients, tables)
    }

    /// Starts a second pair, which clients use by SOCKS5 on the port `socks`.
    pub(super) fn start_second(net: &Satellite, link: &str, socks: u16) -> Result<Self, LabError> {
        let lan = addresses::TERMINAL_LAN.0;
        let clients = format!("[socks5]\nlisten = \"{lan}:{socks}\"\n");
        Self::pair(net, link, PORT + 1, &clients, &tables(None))
    }

    /// Starts one gateway at the hub; the terminal only routes.
    pub(super) fn start_single(
        net: &Satellite,
        config: &TestNetworkConfig,
        bypass: u16,
    ) -> Result<Self, LabError> {
        let rates = config.gateway_rates()?;
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

    fn pair(
        net: &Satellite,
        link: &str,
        port: u16,
        clients: &str,
        [of_terminal, of_hub]: &[String; 2],
    ) -> Result<Self, LabError> {
        let hub = addresses::HUB.0;
        let Acquainted { hub_top, hub_end, terminal_top, terminal_link } = Acquainted::new();
        let hub_config = format!(
            "role = \"hub\"\n{hub_top}[link]\nlisten = \"{hub}:{port}\"\n{link}{of_hub}{hub_end}"
        );
        let terminal_config = format!(
            "role = \"terminal\"\n{terminal_top}accept = \"early\"\n\
             [link]\npeer = \"{hub}:{port}\"\n{terminal_link}{link}{clients}{of_terminal}"
        );
        let hub = Gateway::start(Some(&net.hub), "hub", &hub_config)?;
        let terminal = Gateway::start(Some(&net.terminal), "terminal", &terminal_config)?;
        Ok(Self { terminal: Some(terminal), hub })
    }

    /// What the gateways of the terminal and the hub use of the machine.
    pub(super) fn usage(&mut self) -> Result<[Usage; 2], LabError> {
        let terminal = self.terminal.as_mut().map(|terminal| Usage::of(terminal.id()));
        Ok([terminal.transpose()?.unwrap_or_default(), Usage::of(self.hub.id())?])
    }

    /// Whether they still run.
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
    program: Program,
}

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
        command.args(["gateway", "--config", "/dev/stdin"]);
        Ok(Self { role, program: Program::start(host, command, config)? })
    }

    /// As [`Gateway::start`] on the machine itself, with a configuration file that can be changed
    /// and reloaded.
    pub(crate) fn start_from(file: &Path, role: &'static str) -> Result<Self, LabError> {
        let failed = |reason: String| LabError::Gateway { role, reason };
        let program = gateway_program().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["gateway", "--config"]).arg(file);
        Ok(Self { role, program: Program::start(None, command, "")? })
    }

    pub(crate) fn id(&mut self) -> u32 {
        self.program.id()
    }

    /// Returns the last lines of the log.
    pub(crate) fn said(&self) -> String {
        self.program.errors()
    }

    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        if let Ok(None) = self.program.ended() {
            return Ok(());
        }
        let reason = format!("ended by itself: {}", self.said());
        Err(LabError::Gateway { role: self.role, reason })
    }

    /// Asks it to end, and returns the counters that it prints then; null when it printed none.
    pub(crate) fn stop(self) -> Value {
        let text = self.program.stop();
        let last = text.lines().rev().find(|line| line.trim_start().starts_with('{'));
        last.and_then(|line| serde_json::from_str(line).ok()).unwrap_or(Value::Null)
    }
}
