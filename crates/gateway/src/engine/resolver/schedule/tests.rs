use super::super::holdings::owner;
use super::*;

const BOUNDS: Bounds = Bounds { queries: 1_000, lookups: 32, of_client: 16 };

impl Schedule {
    /// The names whose lookups were started, and the numbers of those that were stopped.
    fn actions(&mut self) -> (Vec<(u64, String)>, Vec<u64>) {
        let (mut started, mut stopped) = (Vec::new(), Vec::new());
        while let Some(action) = self.poll_action() {
            match action {
                Action::Start { lookup, name } => started.push((lookup, name.to_string())),
                Action::Stop { lookup } => stopped.push(lookup),
            }
        }
        (started, stopped)
    }

    /// Submits `count` queries for different names that have no response.
    fn flood(&mut self, owner: &Owner, count: usize) -> Vec<u64> {
        let name = |number| format!("{}-{:?}-{number}", owner.terminal, owner.client).into();
        let ids = (0..count).map(|number| self.submit(owner, &name(number)).0);
        ids.collect()
    }

    fn check(&self) {
        assert!(self.lookups.len() <= self.bounds.lookups, "lookups");
        assert!(self.queries.len() <= self.bounds.queries, "queries");
        let waiting: usize = self.lookups.values().map(|one| one.queries.len()).sum();
        assert_eq!(self.queued.len() + waiting, self.queries.len());
        assert_eq!(self.all.len(), self.queries.len());
        assert_eq!(self.running.len(), self.lookups.len());
        assert_eq!(self.by_name.len(), self.lookups.len());
        let queued: usize = self.queued_by_name.values().map(BTreeSet::len).sum();
        assert_eq!(queued, self.queued.len());
        assert!(self.served.keys().all(|owner| self.all.of(owner) > 0), "owners are forgotten");
        assert!(self.lookups.values().all(|one| !one.queries.is_empty()), "a lookup for nothing");
    }
}

#[test]
fn one_client_has_a_bounded_number_of_lookups() {
    let mut schedule = Schedule::new(BOUNDS);
    schedule.flood(&owner("t", 1), 500);
    assert_eq!(schedule.actions().0.len(), 16);
    assert_eq!((schedule.lookups(), schedule.queued()), (16, 484));
    schedule.check();
}

#[test]
fn a_newcomer_is_served_at_once_however_many_wait() {
    // Of another client of the same terminal, and of another terminal.
    for newcomer in [owner("t", 99), owner("u", 1)] {
        let mut schedule = Schedule::new(BOUNDS);
        for client in 0..8 {
            schedule.flood(&owner("t", client), 100);
        }
        let (started, stopped) = schedule.actions();
        assert_eq!(started.len() - stopped.len(), 32);
        schedule.submit(&newcomer, &"good".into());
        let (started, stopped) = schedule.actions();
        assert_eq!(started.len(), 1);
        assert_eq!(started[0].1, "good");
        assert_eq!(stopped.len(), 1, "one lookup of the largest owner is stopped for it");
        schedule.check();
    }
}

#[test]
fn slots_are_shared_by_terminals_and_then_by_clients() {
    let mut schedule = Schedule::new(BOUNDS);
    // Many clients of one terminal do not have more together than the other terminal's two.
    for client in 0..10 {
        schedule.flood(&owner("many", client), 50);
    }
    schedule.flood(&owner("few", 1), 50);
    schedule.flood(&owner("few", 2), 3);
    schedule.check();
    assert_eq!(schedule.running.of_terminal("many"), 16);
    assert_eq!(schedule.running.of_terminal("few"), 16);
    assert_eq!(schedule.running.of(&owner("few", 2)), 3, "a small demand is met");
    for client in 0..10 {
        assert!((1..=2).contains(&schedule.running.of(&owner("many", client))));
    }
}

#[test]
fn a_stopped_query_keeps_its_age_and_is_served_later() {
    let mut schedule = Schedule::new(Bounds { lookups: 2, of_client: 2, ..BOUNDS });
    let first = schedule.flood(&owner("t", 1), 3);
    schedule.submit(&owner("t", 2), &"good".into());
    let (started, stopped) = schedule.actions();
    // The first two of client 1 were started, and the second was stopped before it was sent.
    assert_eq!((started.len(), stopped.len()), (2, 0));
    let good = started.iter().find(|(_, name)| name == "good").unwrap().0;
    assert_eq!(schedule.complete(good).len(), 1);
    assert_eq!(schedule.lookup_of(first[2]), None);
    assert!(schedule.lookup_of(first[1]).is_some(), "it goes before the younger one");
    schedule.check();
}

#[test]
fn with_more_clients_than_slots_all_have_their_turn() {
    let mut schedule = Schedule::new(Bounds { lookups: 2, of_client: 2, ..BOUNDS });
    // A client with a long, old queue does not precede those that came later.
    schedule.flood(&owner("t", 0), 100);
    for client in 1..10 {
        schedule.flood(&owner("t", client), 10);
    }
    let mut served = BTreeSet::new();
    for _ in 0..12 {
        let lookup = *schedule.lookups.keys().next().unwrap();
        served.insert(schedule.lookups[&lookup].owner.clone());
        schedule.complete(lookup);
        schedule.check();
    }
    assert_eq!(served.len(), 10, "{served:?}");
}

#[test]
fn queries_for_one_name_share_a_lookup() {
    let mut schedule = Schedule::new(BOUNDS);
    let (one, _) = schedule.submit(&owner("t", 1), &"same".into());
    let (two, _) = schedule.submit(&owner("t", 2), &"same".into());
    let (started, _) = schedule.actions();
    assert_eq!(started.len(), 1);
    // The first owner cancels its query; the lookup continues for the other one, in its slot.
    schedule.cancel(one);
    assert_eq!(schedule.actions(), (vec![], vec![]));
    assert_eq!(schedule.running.of(&owner("t", 2)), 1);
    schedule.check();
    assert_eq!(schedule.complete(started[0].0), [two].into());
    assert_eq!((schedule.lookups(), schedule.queued()), (0, 0));
    schedule.check();
}

#[test]
fn a_queued_query_joins_the_lookup_that_another_client_gets() {
    let mut schedule = Schedule::new(BOUNDS);
    schedule.flood(&owner("t", 1), 20);
    let (queued, _) = schedule.submit(&owner("t", 1), &"shared".into());
    assert_eq!(schedule.lookup_of(queued), None);
    let (other, _) = schedule.submit(&owner("t", 2), &"shared".into());
    assert_eq!(schedule.lookup_of(queued), schedule.lookup_of(other));
    schedule.check();
}

#[test]
fn a_cancelled_lookup_releases_its_slot() {
    let mut schedule = Schedule::new(BOUNDS);
    let ids = schedule.flood(&owner("t", 1), 20);
    assert_eq!(schedule.actions().0.len(), 16);
    schedule.cancel(ids[0]);
    let (started, stopped) = schedule.actions();
    assert_eq!((started.len(), stopped.len()), (1, 1));
    for id in ids {
        schedule.cancel(id);
        schedule.cancel(id);
    }
    assert_eq!((schedule.lookups(), schedule.queued(), schedule.queries.len()), (0, 0, 0));
    assert!(schedule.served.is_empty() && schedule.terminals_served.is_empty());
    schedule.check();
}

#[test]
fn without_a_place_the_newest_of_the_largest_owner_is_refused() {
    let mut schedule = Schedule::new(Bounds { queries: 100, ..BOUNDS });
    let flood = schedule.flood(&owner("t", 1), 100);
    let (id, refused) = schedule.submit(&owner("t", 1), &"one more".into());
    assert_eq!(refused, Some(id), "the largest owner itself");
    let (_, refused) = schedule.submit(&owner("t", 2), &"newcomer".into());
    assert_eq!(refused, flood.last().copied());
    // Finally each of two has half, and the other half cannot be reclaimed.
    schedule.flood(&owner("t", 2), 500);
    assert_eq!(schedule.all.of(&owner("t", 1)), 50);
    schedule.check();
}

#[test]
fn any_sequence_keeps_the_invariants() {
    use units::RngStream;
    let mut rng = RngStream::new(1, 1, "schedule");
    let bounds = Bounds { queries: 60, lookups: 8, of_client: 4 };
    let mut schedule = Schedule::new(bounds);
    let mut ids = Vec::new();
    for _ in 0..20_000 {
        match rng.below(10) {
            0..6 => {
                let terminal = ["a", "b", "c"][rng.below(3) as usize];
                let name = format!("name{}", rng.below(40)).into();
                ids.push(schedule.submit(&owner(terminal, rng.below(5) as u8), &name).0);
            }
            6..8 if !ids.is_empty() => {
                schedule.cancel(ids.swap_remove(rng.below(ids.len() as u64) as usize));
            }
            _ => {
                let lookup = schedule.lookups.keys().next_back().copied();
                schedule.complete(lookup.unwrap_or(0));
            }
        }
        schedule.actions();
        schedule.check();
        // No slot is idle while a client that may have it has a query.
        let waits = |terminal| schedule.next_of(terminal).is_some();
        assert!(schedule.is_full() || !schedule.queued.terminals().any(waits));
    }
}
