//! Diagnosis of a site: what does not work on this machine and on the way to the hub, and what to
//! do about it. Nothing is changed.

mod clock;
mod firewall;
mod hub;
#[cfg(test)]
mod tests;

use crate::config::ControlSocket;
use crate::{Config, Role};
use serde::Serialize;
use std::fmt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Nothing is wrong.
    Ok,
    /// Something may be wrong, or is not there yet.
    Warning,
    /// The gateway cannot work like this.
    Failed,
    /// The check could not be made.
    Skipped,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// Its result.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do, unless nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Results of all checks.
#[derive(Clone, Debug, Serialize)]
pub struct Diagnosis {
    /// In the order in which they are to be repaired.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Returns the number of checks that have failed.
    pub fn failures(&self) -> usize {
        self.findings.iter().filter(|finding| finding.status == Status::Failed).count()
    }

    fn add(&mut self, check: &'static str, status: Status, found: impl Into<String>) {
        self.findings.push(Finding { check, status, found: found.into(), remedy: None });
    }

    fn advise(
        &mut self,
        check: &'static str,
        status: Status,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (found, remedy) = (found.into(), Some(remedy.into()));
        self.findings.push(Finding { check, status, found, remedy });
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { check, status, found, remedy } in &self.findings {
            let status = match status {
                Status::Ok => "ok",
                Status::Warning => "warning",
                Status::Failed => "FAILED",
                Status::Skipped => "skipped",
            };
            writeln!(f, "{status:<8} {check:<14} {found}")?;
            if let Some(remedy) = remedy {
                writeln!(f, "{:<23} do: {remedy}", "")?;
            }
        }
        Ok(())
    }
}

/// Checks the gateway that is configured in the file `path`, this machine, and the way to its hubs.
/// Takes up to 8 s for each hub that does not respond.
pub fn diagnose(path: &Path) -> Diagnosis {
    let mut diagnosis = Diagnosis { findings: Vec::new() };
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => {
            for mistake in error.to_string().lines() {
                let remedy = "correct the line; the guide has all keys";
                diagnosis.advise("configuration", Status::Failed, mistake, remedy);
            }
            return diagnosis;
        }
    };
    diagnosis.add("configuration", Status::Ok, format!("{} is valid", path.display()));
    let running = is_running(&config);
    let found = if running { "a gateway runs" } else { "no gateway runs with this configuration" };
    diagnosis.add("gateway", Status::Ok, found);
    match config.keys() {
        Ok(_) => diagnosis.add("keys", Status::Ok, "the key files can be read by this user"),
        Err(error) => {
            let remedy = "create the file by `bentpipe key generate` or `bentpipe enroll`, or \
                          correct its permissions as stated";
            diagnosis.advise("keys", Status::Failed, error.to_string(), remedy);
        }
    }
    clock::check(&mut diagnosis);
    machine(&mut diagnosis, &config, running);
    firewall::check(&mut diagnosis, &config);
    if let Role::Terminal(_) = &config.role {
        hub::check(&mut diagnosis, &config);
    }
    diagnosis
}

/// Whether a gateway accepts connections at the configuration's control socket.
pub(crate) fn is_running(config: &Config) -> bool {
    match &config.control {
        Some(ControlSocket::Usual(path) | ControlSocket::At(path)) => {
            UnixStream::connect(path).is_ok()
        }
        Some(ControlSocket::Off) | None => false,
    }
}

/// What `gateway --check` finds, except for what a running gateway uses.
fn machine(diagnosis: &mut Diagnosis, config: &Config, running: bool) {
    let in_use = |text: &str| text.contains("in use now") || text.contains("exists already");
    let mut warnings = crate::check(config);
    warnings.retain(|warning| !(running && in_use(&warning.text)));
    if warnings.is_empty() {
        let found =
            "ports, rights, forwarding, interfaces and routes are as the configuration needs";
        diagnosis.add("machine", Status::Ok, found);
    }
    for warning in warnings {
        let remedy = remedy(&warning.text);
        let found = format!("{}: {}", warning.key, warning.text);
        match remedy {
            Some(remedy) => diagnosis.advise("machine", Status::Warning, found, remedy),
            None => diagnosis.add("machine", Status::Warning, found),
        }
    }
}

/// Returns what to do about a warning whose text does not say so.
fn remedy(text: &str) -> Option<String> {
    let setting = text
        .split(" is 0: ")
        .next()
        .filter(|key| key.ends_with("forward") || key.ends_with("forwarding"));
    if let Some(key) = setting {
        return Some(format!("sysctl -w {key}=1, and a line `{key} = 1` in /etc/sysctl.d"));
    }
    if text.starts_with("no route to") {
        return Some("check the default route: ip route".into());
    }
    let rest = text.strip_prefix("there is no interface")?;
    let name = rest.split('"').nth(1)?;
    Some(format!("check the name {name:?} in the configuration: ip link"))
}
