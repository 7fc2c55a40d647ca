//! `kill -9` of either gateway under load: new connections work soon, old ones are reset.

use super::load::{Load, LoadConfig};
use super::network::{Setup, Side, TestNetwork};
use super::{ProofConfig, Verdict, sleep_ms};
use crate::LabError;
use units::Span;

/// Time limit until new connections work.
const BACK: Span = Span::from_secs(10);

pub(super) fn terminal(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    run(Side::Terminal, config, verdict)
}

pub(super) fn hub(config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    run(Side::Hub, config, verdict)
}

fn run(side: Side, config: &ProofConfig, verdict: &mut Verdict) -> Result<(), LabError> {
    let survivor = if side == Side::Hub { Side::Terminal } else { Side::Hub };
    let mut network = TestNetwork::new(&Setup::new(config.seed))?;
    sleep_ms(500);
    let before = network.usage(survivor)?;
    let load = Load::start(&network, LoadConfig { long: 20, ..LoadConfig::new(config.seed) });
    let mut longest = Span::ZERO;
    let kills = if config.quick { 1 } else { 5 };
    for _ in 0..kills {
        sleep_ms(if config.quick { 1_500 } else { 4_000 });
        let complete = load.so_far().complete;
        network.kill(side);
        network.start(side)?;
        let back = network.await_path(Span::from_secs(60))?;
        longest = longest.max(back);
        sleep_ms(1_500);
        let more = load.so_far().complete - complete;
        verdict.demand(more > 0, "connections complete after a kill");
    }
    let tally = load.finish(&network);
    verdict.demand(tally.reset > 0, "open connections are reset");
    verdict.evaluate(tally);
    verdict.demand(longest <= BACK, "new connections are relayed within 10 s of the start");
    verdict.figure("kills", f64::from(kills));
    verdict.figure("new_connection_after_s", longest.as_secs_f64());
    sleep_ms(2_000);
    let after = network.usage(survivor)?;
    verdict.figure("survivor_descriptors_before", before.descriptors as f64);
    verdict.figure("survivor_descriptors_after", after.descriptors as f64);
    verdict.demand(
        after.descriptors <= before.descriptors,
        "the gateway that lived has let go of all connections",
    );
    network.check()
}
