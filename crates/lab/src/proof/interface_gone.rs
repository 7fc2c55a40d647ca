//! Interfaces that are deleted and recreated: the LAN's, and the satellite's with another address.

use super::load::{Load, LoadConfig};
use super::long::Long;
use super::network::{Setup, TestNetwork};
use super::{ProofConfig, Verdict, sleep_ms};
use crate::LabError;
use std::net::{Ipv4Addr, Ipv6Addr};
use testbed::{Wire, addresses};
use units::Span;

/// Address of the terminal after its satellite interface is recreated.
const ELSEWHERE: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(10, 2, 0, 77), Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 77));
const MTU: u32 = 1500;
/// The transfer that must survive.
const SEED: u64 = 9_000_001;

pub(super) fn run(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let mut network = TestNetwork::new(&Setup::new(config.seed))?;
    let gone = if config.quick { 800 } else { 4_000 };
    let between = if config.quick { 1_200 } else { 4_000 };
    let load = Load::start(&network, LoadConfig { workers: 12, ..LoadConfig::new(config.seed) });
    let long = Long::start(&network, SEED);
    let went =
        |network: &mut TestNetwork, what: &str, verdict: &mut Verdict| -> Result<(), LabError> {
            let before = (load.so_far().complete, long.bytes());
            sleep_ms(between);
            let back = network.await_path(Span::from_secs(30))?;
            sleep_ms(between);
            network.check()?;
            verdict.figure(&format!("{what}_new_connection_after_s"), back.as_secs_f64());
            let now = (load.so_far().complete, long.bytes());
            verdict.demand(now.0 > before.0, &format!("connections are relayed again ({what})"));
            verdict.demand(now.1 > before.1, &format!("a running transfer continues ({what})"));
            Ok(())
        };

    sleep_ms(between);
    network.net.remove(Wire::Lan)?;
    sleep_ms(gone);
    network.net.restore(Wire::Lan, MTU, addresses::TERMINAL)?;
    went(&mut network, "lan", verdict)?;

    // The emulator's end of the link is deleted as well, so the emulator restarts.
    network.stop_emulation();
    network.net.remove(Wire::TerminalSatellite)?;
    sleep_ms(gone);
    network.net.restore(Wire::TerminalSatellite, MTU, ELSEWHERE)?;
    network.start_emulation()?;
    went(&mut network, "satellite", verdict)?;

    long.finish(verdict)?;
    let tally = load.finish(&network);
    verdict.demand(tally.reset == 0, "no open connection is reset");
    verdict.evaluate(tally);
    network.check()
}
