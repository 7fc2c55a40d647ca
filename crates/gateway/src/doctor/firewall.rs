//! Chains of the packet filter that drop what no rule accepts.

use super::{Diagnosis, Status};
use crate::gateway::terminal_rules;
use crate::{Config, InterceptSection, Role};
use serde_json::Value;
use std::process::Command;

/// A chain with the policy `drop`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DropChain {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) name: String,
    pub(super) hook: String,
}

pub(super) fn check(diagnosis: &mut Diagnosis, config: &Config) {
    let Role::Terminal(terminal) = &config.role else { return };
    let chains = match listed() {
        Ok(text) => drop_chains(&text),
        Err(found) => {
            let remedy = "run this command as root, with nft installed";
            diagnosis.advise("firewall", Status::Skipped, found, remedy);
            return;
        }
    };
    report(diagnosis, &chains, terminal.intercept.as_ref());
}

/// Reports the chains that concern a gateway which intercepts as configured. Whether datagrams reach
/// the hub is another check's result.
pub(super) fn report(
    diagnosis: &mut Diagnosis,
    chains: &[DropChain],
    intercept: Option<&InterceptSection>,
) {
    let before = diagnosis.findings.len();
    let Some(section) = intercept else {
        diagnosis.add("firewall", Status::Ok, "connections are not intercepted: no rules matter");
        return;
    };
    let mark = terminal_rules(section, section.port).mark;
    // Intercepted packets are delivered to this machine with their own destination.
    for DropChain { family, table, name, .. } in chains.iter().filter(|one| one.hook == "input") {
        let rule = format!("meta mark {mark:#x} accept");
        let found = format!(
            "chain {name} of table {family} {table} drops what no rule accepts, and intercepted \
             connections pass it"
        );
        let remedy = format!(
            "if clients' connections time out: nft insert rule {family} {table} {name} {rule}"
        );
        diagnosis.advise("firewall", Status::Warning, found, remedy);
    }
    if diagnosis.findings.len() == before {
        diagnosis.add(
            "firewall",
            Status::Ok,
            "no chain drops intercepted connections by its policy",
        );
    }
}

/// Returns the chains as `nft` prints them.
fn listed() -> Result<String, String> {
    let output = Command::new("nft").args(["-j", "list", "chains"]).output();
    let output = output.map_err(|error| format!("nft: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("nft: {}", said.lines().next().unwrap_or("it failed")))
}

/// Returns the chains with the policy `drop` in the output of `nft -j list chains`.
pub(super) fn drop_chains(text: &str) -> Vec<DropChain> {
    let value: Value = serde_json::from_str(text).unwrap_or_default();
    let items = value["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let word = |chain: &Value, key: &str| chain[key].as_str().unwrap_or_default().to_owned();
    let drops = items.iter().map(|item| &item["chain"]).filter(|chain| chain["policy"] == "drop");
    let chain = |chain: &Value| DropChain {
        family: word(chain, "family"),
        table: word(chain, "table"),
        name: word(chain, "name"),
        hook: word(chain, "hook"),
    };
    drops.map(chain).collect()
}
