//! Other systems that carry TCP between the terminal's and the hub's host, started by commands
//! from a file: accelerators, tunnels, proxies.
//!
//! ```toml
//! [[system]]
//! name = "hysteria"
//! hub = "exec hysteria server -c {dir}/server.yaml"
//! terminal = "exec hysteria client -c {dir}/client.yaml"
//! clients = "socks5:1080"
//! [system.files]
//! "server.yaml" = """..."""
//! "client.yaml" = """..."""
//! ```
//!
//! Each command is a script of `sh` that runs on its host as the user of this program. `files`
//! are written to a directory before. Placeholders in commands and files, such as `{hub}`, are
//! replaced by addresses and rates.

use super::Usage;
use super::program::Program;
use crate::LabError;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use testbed::{Satellite, addresses, traffic};
use units::{BitRate, Span};

/// How clients reach their server by a system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clients {
    /// They connect to the server: the system intercepts or routes.
    #[default]
    Direct,
    /// They use a SOCKS5 proxy on this port of the terminal.
    Socks5(u16),
    /// They connect to the server's port at the terminal, which the system forwards.
    Forwarded,
}

impl std::str::FromStr for Clients {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let socks5 = text.strip_prefix("socks5:").and_then(|port| port.parse().ok());
        match (text, socks5) {
            ("direct", _) => Ok(Self::Direct),
            ("forwarded", _) => Ok(Self::Forwarded),
            (_, Some(port)) => Ok(Self::Socks5(port)),
            (_, None) => Err(format!(
                "clients: found {text:?}, expected \"direct\", \"socks5:PORT\" or \"forwarded\""
            )),
        }
    }
}

/// A system and the commands that start it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherSystem {
    /// Its name in results.
    pub name: String,
    /// The script on the hub's host.
    pub hub: String,
    /// The script on the terminal's host.
    pub terminal: String,
    /// How clients reach their server.
    pub clients: Clients,
    /// Files for the scripts, by name.
    pub files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    system: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    hub: String,
    #[serde(default)]
    terminal: String,
    #[serde(default = "direct")]
    clients: String,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

fn direct() -> String {
    "direct".to_owned()
}

/// Names that may not be taken: those of the built-in systems.
const TAKEN: [&str; 8] =
    ["bentpipe", "cubic", "bbr", "single", "kernel-tcp", "splice-proxy", "quinn", "-"];

/// Reads the systems of a command file.
///
/// # Errors
/// What is wrong in it, and where.
pub fn parse_systems(text: &str) -> Result<Vec<OtherSystem>, String> {
    let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut systems: Vec<OtherSystem> = Vec::new();
    for Entry { name, hub, terminal, clients, files } in document.system {
        if TAKEN.contains(&name.as_str()) || systems.iter().any(|other| other.name == name) {
            return Err(format!("system: the name {name:?} is taken"));
        }
        if let Some(file) = files.keys().find(|file| file.contains('/')) {
            return Err(format!("system {name:?}: file {file:?}: expected a name without \"/\""));
        }
        let clients = clients.parse().map_err(|error| format!("system {name:?}: {error}"))?;
        systems.push(OtherSystem { name, hub, terminal, clients, files });
    }
    Ok(systems)
}

/// Names that are replaced in commands and files, where they stand in braces
/// (docs/guide/measuring.md).
const PLACEHOLDERS: [&str; 10] = [
    "dir",
    "lab",
    "client",
    "terminal_lan",
    "terminal",
    "hub",
    "server",
    "up_mbit",
    "down_mbit",
    "rtt_ms",
];

/// What is known of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkFacts {
    pub(crate) up: BitRate,
    pub(crate) down: BitRate,
    pub(crate) round_trip: Span,
}

/// The two ends of a system, running.
#[derive(Debug)]
pub(crate) struct RunningSystem {
    name: String,
    clients: Clients,
    /// Terminal and hub.
    ends: [Option<Program>; 2],
    folder: PathBuf,
}

impl RunningSystem {
    /// Starts both ends, the hub's first.
    ///
    /// # Errors
    /// When the files cannot be written or `sh` cannot be started.
    pub(crate) fn start(
        system: &OtherSystem,
        net: &Satellite,
        link: LinkFacts,
    ) -> Result<Self, LabError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bentpipe-system-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LabError::File { path, source }
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let name = system.name.clone();
        let mut running = Self { name, clients: system.clients, ends: [None, None], folder };
        for (file, text) in &system.files {
            let path = running.folder.join(file);
            fs::write(&path, running.fill(text, link)).map_err(failed(&path))?;
        }
        for (end, host, script) in
            [(1, &net.hub, &system.hub), (0, &net.terminal, &system.terminal)]
        {
            if script.is_empty() {
                continue;
            }
            let mut command = Command::new("sh");
            // A group of its own, so that nothing outlives it that the script has started.
            command.args(["-c", &running.fill(script, link)]).process_group(0);
            running.ends[end] = Some(Program::start(Some(host), command, "")?);
        }
        Ok(running)
    }

    fn fill(&self, text: &str, link: LinkFacts) -> String {
        let mbit = |rate: BitRate| (rate.as_bps() / 1_000_000).max(1).to_string();
        let own = std::env::current_exe().unwrap_or_default();
        PLACEHOLDERS.iter().fold(text.to_owned(), |text, &name| {
            let value = match name {
                "dir" => self.folder.display().to_string(),
                "lab" => own.display().to_string(),
                "client" => addresses::CLIENT.0.to_string(),
                "terminal_lan" => addresses::TERMINAL_LAN.0.to_string(),
                "terminal" => addresses::TERMINAL.0.to_string(),
                "hub" => addresses::HUB.0.to_string(),
                "server" => addresses::SERVER.0.to_string(),
                "up_mbit" => mbit(link.up),
                "down_mbit" => mbit(link.down),
                "rtt_ms" => link.round_trip.as_millis().max(1).to_string(),
                other => unreachable!("placeholder {other} has no value"),
            };
            text.replace(&format!("{{{name}}}"), &value)
        })
    }

    /// How a client connects to `server`, and to which address.
    pub(crate) fn reach(&self, server: SocketAddr) -> (traffic::Way, SocketAddr) {
        reach(self.clients, server)
    }

    /// Whether no end has failed. A script that ended with status 0 has set something up.
    ///
    /// # Errors
    /// The end of what a failed one wrote to its standard error.
    pub(crate) fn check(&mut self) -> Result<(), LabError> {
        for (program, role) in self.ends.iter_mut().zip(["terminal", "hub"]) {
            let Some(program) = program else { continue };
            if !matches!(program.ended(), Ok(None | Some(true))) {
                let reason = format!("the {role}'s command failed: {}", program.errors());
                return Err(LabError::System { name: self.name.clone(), reason });
            }
        }
        Ok(())
    }

    /// What the ends use of the machine, terminal and hub, with their child processes.
    pub(crate) fn usage(&mut self) -> [Usage; 2] {
        self.ends.each_mut().map(|end| match end {
            Some(program) => Usage::of_family(program.id()),
            None => Usage::default(),
        })
    }
}

/// How clients of a system connect to `server`, and to which address.
pub(crate) fn reach(clients: Clients, server: SocketAddr) -> (traffic::Way, SocketAddr) {
    let lan = IpAddr::from(addresses::TERMINAL_LAN.0);
    match clients {
        Clients::Direct => (traffic::Way::Direct, server),
        Clients::Socks5(port) => (traffic::Way::Socks5(SocketAddr::new(lan, port)), server),
        Clients::Forwarded => (traffic::Way::Direct, SocketAddr::new(lan, server.port())),
    }
}

impl Drop for RunningSystem {
    fn drop(&mut self) {
        for program in self.ends.iter_mut().flatten() {
            // Groups that have ended by themselves are gone already.
            let _ = killpg(Pid::from_raw(program.id() as i32), Signal::SIGKILL);
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_read_from_a_command_file() {
        let text = "[[system]]\nname = \"a\"\nhub = \"exec a {dir}\"\nclients = \"socks5:1080\"\n\
                    [system.files]\n\"a.toml\" = \"x\"\n[[system]]\nname = \"b\"\n";
        let systems = parse_systems(text).unwrap();
        assert_eq!(systems[0].clients, Clients::Socks5(1080));
        assert_eq!((systems[1].name.as_str(), systems[1].clients), ("b", Clients::Direct));
        for (wrong, reason) in [
            ("[[system]]\nname = \"quinn\"\n", "taken"),
            ("[[system]]\nname = \"a\"\nclients = \"smoke\"\n", "expected \"direct\""),
            ("[[system]]\nname = \"a\"\nhub_command = \"\"\n", "hub_command"),
            ("[[system]]\nname = \"a\"\nfiles = {\"../x\" = \"\"}\n", "without"),
        ] {
            let error = parse_systems(wrong).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_guide_has_every_placeholder_and_a_valid_example() {
        let guide = include_str!("../../../../docs/guide/measuring.md");
        for name in PLACEHOLDERS {
            assert!(guide.contains(&format!("`{{{name}}}`")), "{name} is not in the guide");
        }
        let example = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let systems = parse_systems(example.expect("an example in TOML")).unwrap();
        let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
        assert_eq!(names, ["hysteria", "kcptun", "wireguard", "pepsal"]);
    }
}
