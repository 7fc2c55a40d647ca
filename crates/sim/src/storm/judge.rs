//! What a storm that has come to its end was like, and whether both ends agree on it.

use super::arena::Arena;
use super::fault::Fault;
use super::mix::Mix;
use super::report::{Damage, Record, Report};
use units::Instant;
use xstp::session::Coverage;

/// What one end knows of each life must agree with what the other does.
pub(super) fn judge(arena: &Arena) -> Result<(), Damage> {
    let [clients, servers] = arena.ends().each_ref().map(|end| end.records());
    for (records, others, name) in [(&clients, &servers, "client"), (&servers, &clients, "server")]
    {
        for record in records.iter().filter(|record| record.incarnation.is_some()) {
            let peers = || others.iter().filter(|peer| peer.incarnation == record.incarnation);
            // A server that forgot its incarnations may have had one more than once.
            let delivered = peers().map(|peer| peer.delivered).max().unwrap_or(0);
            // What a server had and nobody had read is gone when it starts anew.
            let whole = peers().any(|peer| !peer.died);
            if record.self_ended && whole && delivered != record.task {
                let text = format!("{name}: ended with {delivered} of {} at the peer", record.task);
                return Err(Damage::new(text));
            }
        }
    }
    Ok(())
}

/// What is told of a storm that broke no promise.
pub(super) fn report(arena: &mut Arena, mix: &Mix) -> Report {
    let records = arena.ends().iter().flat_map(|end| end.records());
    let wraps = |record: &Record| mix.wraps_after().is_some_and(|after| record.packets > after);
    for _ in 0..records.filter(wraps).count() {
        arena.strikes().count(Fault::Wrap);
    }
    summary(arena, mix.calm_at, mix.flavour.name())
}

/// What is told of a storm that has come to its end.
pub(super) fn summary(arena: &mut Arena, calm_at: Instant, flavour: &'static str) -> Report {
    let mut coverage = Coverage::default();
    let (mut lives, mut deaths, mut bytes) = (0, 0, 0);
    for end in arena.ends() {
        coverage.merge(end.coverage());
        lives += end.lives();
        for record in end.records() {
            deaths += u64::from(record.died);
            bytes += record.delivered;
        }
    }
    let packets: u64 = arena.lanes().iter().map(|lane| lane.counts().offered).sum();
    Report {
        trace: arena.trace(),
        flavour,
        packets,
        storm: calm_at.since(Instant::ZERO),
        healed: arena.now().since(calm_at),
        lives,
        deaths,
        bytes,
        coverage,
        strikes: arena.strikes().clone(),
    }
}
