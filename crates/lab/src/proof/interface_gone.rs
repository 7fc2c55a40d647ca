//! Interfaces that are deleted and recreated: the LAN's, and the satellite's with another address.

use super::bed::{Bed, Setup};
use super::load::{Load, LoadConfig};
use super::long::Long;
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
    let mut bed = Bed::new(&Setup::new(config.seed))?;
    let gone = if config.quick { 800 } else { 4_000 };
    let between = if config.quick { 1_200 } else { 4_000 };
    let load = Load::start(&bed, LoadConfig { workers: 12, ..LoadConfig::new(config.seed) });
    let long = Long::start(&bed, SEED);
    let went = |bed: &mut Bed, what: &str, verdict: &mut Verdict| -> Result<(), LabError> {
        let before = (load.so_far().complete, long.bytes());
        sleep_ms(between);
        let back = bed.await_path(Span::from_secs(30))?;
        sleep_ms(between);
        bed.check()?;
        verdict.figure(&format!("{what}_new_connection_after_s"), back.as_secs_f64());
        let now = (load.so_far().complete, long.bytes());
        verdict.demand(now.0 > before.0, &format!("connections are carried again ({what})"));
        verdict.demand(now.1 > before.1, &format!("an old transfer goes on ({what})"));
        Ok(())
    };

    sleep_ms(between);
    bed.net.remove(Wire::Lan)?;
    sleep_ms(gone);
    bed.net.restore(Wire::Lan, MTU, addresses::TERMINAL)?;
    went(&mut bed, "lan", verdict)?;

    // The emulator's end of the link is deleted as well, so the emulator restarts.
    bed.stop_emulation();
    bed.net.remove(Wire::TerminalSatellite)?;
    sleep_ms(gone);
    bed.net.restore(Wire::TerminalSatellite, MTU, ELSEWHERE)?;
    bed.start_emulation()?;
    went(&mut bed, "satellite", verdict)?;

    long.finish(verdict)?;
    let tally = load.finish(&bed);
    verdict.demand(tally.reset == 0, "no connection that was open is reset");
    verdict.judge(tally);
    bed.check()
}
