//! Random faults of links, system calls and gateways.

use super::draw_start;
use super::site::Site;
use crate::simulation::net::faults::{Call, ERRORS, Faults};
use crate::simulation::net::link::Link;
use crate::simulation::world::Act;
use std::collections::BTreeMap;
use units::{BitRate, Instant, RngStream, Span};

/// Returns a link with random impairments.
pub(super) fn link(rng: &mut RngStream, rate: BitRate, delay: Span) -> Link {
    let mut link = Link::ideal(rate, delay);
    if rng.chance(0.5) {
        link.loss = rng.below(80);
    }
    if rng.chance(0.3) {
        link.duplicate = rng.below(60);
    }
    if rng.chance(0.3) {
        link.reorder = rng.below(120);
    }
    if rng.chance(0.2) {
        link.corrupt = rng.below(20);
    }
    link
}

/// Draws what concerns two bonded paths: a smaller MTU of one, and one that fails every few seconds.
/// Returns whether this may delay connections.
pub(super) fn bonded(
    rng: &mut RngStream,
    acts: &mut BTreeMap<Instant, Act>,
    site: &mut Site,
    faults_end: Instant,
) -> bool {
    if rng.chance(0.5) {
        let path = rng.below(2) as usize;
        let mtu = 1_300 + rng.below(200) as usize;
        for (_, link) in &mut site.links[2 * path..2 * path + 2] {
            link.mtu = mtu;
        }
    }
    if !rng.chance(0.4) {
        return false;
    }
    let path = rng.below(2) as usize;
    let mut at = Instant::ZERO + Span::from_millis(1_000 + rng.below(1_000));
    while at < faults_end {
        let length = Span::from_millis(200 + rng.below(1_500));
        for link in [2 * path, 2 * path + 1] {
            // Other events have whole milliseconds.
            let at = at + Span::from_micros(1 + link as u64);
            acts.insert(at, Act::Blackout(link, length));
        }
        at = at + length + Span::from_millis(500 + rng.below(2_500));
    }
    true
}

/// Adds DNS queries to `acts`: bursts for many names, and single ones for a few.
pub(super) fn add_queries(
    rng: &mut RngStream,
    acts: &mut BTreeMap<Instant, Act>,
    site: &Site,
    faults_end: Instant,
) {
    for _ in 0..rng.below(60) {
        let count = if rng.chance(0.1) { 1 + rng.below(60) } else { 1 + rng.below(3) } as u8;
        let node = rng.below(site.terminals() as u64) as usize;
        let (client, name) = (rng.below(4) as u8, rng.below(30) as u8);
        let act = Act::NameQueries { node, client, name, count };
        // Other events have whole milliseconds.
        let at = draw_start(rng, faults_end) + Span::from_micros(1 + rng.below(900));
        acts.entry(at).or_insert(act);
    }
}

/// Returns the probabilities of failing system calls.
pub(super) fn faults(rng: &mut RngStream) -> Faults {
    let partial = if rng.chance(0.6) { rng.below(200) } else { 0 };
    let mut errors = BTreeMap::new();
    if rng.chance(0.25) {
        for _ in 0..1 + rng.below(3) {
            let (call, _) = ERRORS[rng.below(ERRORS.len() as u64) as usize];
            let often = match call {
                // These calls occur at all times, the others a few times for each connection.
                Call::Read | Call::Write => 1 << rng.below(5),
                Call::Receive => 10 << rng.below(5),
                _ => 50 << rng.below(6),
            };
            errors.insert(call, often);
        }
    }
    Faults { partial, errors, ..Faults::default() }
}

/// Returns random events, and whether they may delay connections.
pub(super) fn acts(
    rng: &mut RngStream,
    site: &Site,
    faults_end: Instant,
) -> (BTreeMap<Instant, Act>, bool) {
    let (mut acts, mut harsh) = (BTreeMap::new(), false);
    let nodes = site.configs.len() as u64;
    if rng.chance(0.35) && !site.links.is_empty() {
        for _ in 0..1 + rng.below(3) {
            let length = Span::from_millis(100 << rng.below(7));
            let link = rng.below(site.links.len() as u64) as usize;
            acts.insert(draw_start(rng, faults_end), Act::Blackout(link, length));
            // In most cases an outage is in both directions.
            if rng.chance(0.5) {
                acts.insert(draw_start(rng, faults_end), Act::Blackout(link ^ 1, length));
            }
            harsh = true;
        }
    }
    if rng.chance(0.2) {
        acts.insert(draw_start(rng, faults_end), Act::Restart(rng.below(nodes) as usize));
        harsh = true;
    }
    if rng.chance(0.12) {
        let pause = Span::from_millis(rng.below(3_000));
        acts.insert(draw_start(rng, faults_end), Act::Drain(rng.below(nodes) as usize, pause));
        harsh = true;
    }
    if rng.chance(0.15) {
        acts.insert(draw_start(rng, faults_end), Act::Reload(rng.below(nodes) as usize));
    }
    if rng.chance(0.15) {
        let act = Act::Descriptors(rng.below(nodes) as usize, rng.below(6) as usize);
        acts.insert(draw_start(rng, faults_end), act);
    }
    if rng.chance(0.2) {
        acts.insert(draw_start(rng, faults_end), Act::PathMtu(600 + rng.below(800) as usize));
        harsh = true;
    }
    (acts, harsh)
}
