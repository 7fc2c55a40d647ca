//! The table compared with a slow and simple model, and the results of hostile clients.

use super::*;
use proptest::prelude::*;

type Group = u8;

fn owner(group: Group, client: u8) -> Owner<Group> {
    Owner { group, client: [10, 0, group, client].into() }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn bounds(total: usize) -> Bounds {
    Bounds { total, ..Bounds::NONE }
}

/// Every slot in a row, looked through each time.
#[derive(Default)]
struct Model(Vec<(Owner<Group>, Instant, usize)>);

impl Model {
    fn held(&self, fits: impl Fn(&Owner<Group>) -> bool) -> usize {
        self.0.iter().filter(|(owner, ..)| fits(owner)).count()
    }

    /// Returns the slots of each group if `asking` had one more.
    fn groups(&self, asking: &Owner<Group>) -> BTreeMap<Group, usize> {
        let mut all = BTreeMap::from([(asking.group, 1)]);
        self.0.iter().for_each(|(owner, ..)| *all.entry(owner.group).or_default() += 1);
        all
    }

    /// The same of each client of a group.
    fn clients(&self, group: Group, asking: &Owner<Group>) -> BTreeMap<IpAddr, usize> {
        let mut all = BTreeMap::new();
        if asking.group == group {
            all.insert(asking.client, 1);
        }
        for (owner, ..) in self.0.iter().filter(|(owner, ..)| owner.group == group) {
            *all.entry(owner.client).or_default() += 1;
        }
        all
    }
}

/// Returns the max-min fair share of `of`, times 60: all shares grow at the same speed in small
/// steps, until the demand is met or no slot is left.
fn share<K: Ord + Copy>(wants: &BTreeMap<K, usize>, capacity: usize, of: K) -> usize {
    const FINE: usize = 60;
    let (mut left, mut level) = (capacity * FINE, 0);
    loop {
        let thirsty = wants.values().filter(|&&want| want * FINE > level).count();
        if thirsty == 0 || left < thirsty {
            return (wants[&of] * FINE).min(level);
        }
        left -= thirsty;
        level += 1;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(Group, u8),
    Touch(usize),
    Close(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3u8, 0..4u8).prop_map(|(group, client)| Step::Ask(group, client)),
        // An owner with continuous requests.
        4 => Just(Step::Ask(0, 0)),
        2 => any::<usize>().prop_map(Step::Touch),
        2 => any::<usize>().prop_map(Step::Close),
        1 => (1..500u64).prop_map(Step::Wait),
    ]
}

/// A request of an owner, with checks of its guarantees and those of the owner whose slot is
/// reclaimed.
fn ask(
    table: &mut SlotTable<Group>,
    model: &mut Model,
    (now, index): (Instant, usize),
    who: Owner<Group>,
    bounds: Bounds,
) -> Result<(), TestCaseError> {
    const FINE: usize = 60;
    let total = bounds.total;
    let (groups, clients) = (model.groups(&who), model.clients(who.group, &who));
    let (in_group, held) = (groups[&who.group] - 1, clients[&who.client] - 1);
    let is_full = model.0.len() >= total;
    match table.decide(&who, bounds) {
        SlotDecision::Free => {
            prop_assert!(!is_full && in_group < bounds.group && held < bounds.client);
        }
        SlotDecision::Refused(Full::Client) => {
            prop_assert!(held >= bounds.client);
            return Ok(());
        }
        SlotDecision::Refused(Full::Group) => {
            prop_assert!(in_group >= bounds.group);
            let share = share(&clients, in_group, who.client);
            prop_assert!(share < (held + 1) * FINE, "it may have one more of its group's");
            return Ok(());
        }
        SlotDecision::Refused(Full::Table) => {
            if is_full {
                let share = share(&groups, total, who.group);
                prop_assert!(share < (in_group + 1) * FINE, "its group may have one more");
            } else {
                prop_assert!(held >= SHARE_OF_FREE, "a new owner gets a slot");
            }
            return Ok(());
        }
        SlotDecision::Reclaim(victim) => {
            prop_assert!(is_full || in_group >= bounds.group, "only where it must be");
            let find = |(_, _, index): &&(Owner<Group>, Instant, usize)| *index == victim;
            let (from, active, _) = model.0.iter().find(find).expect("one of the table").clone();
            let idlest = model.0.iter().filter(|(owner, ..)| *owner == from).map(|slot| slot.1);
            prop_assert_eq!(idlest.min(), Some(active), "the idlest of its client's");
            let of_group = groups[&from.group];
            let capacity = if from.group == who.group {
                of_group - 1
            } else {
                let share = share(&groups, total, from.group);
                prop_assert!(of_group * FINE > share, "the group holds more than its share");
                of_group - 1
            };
            let clients = model.clients(from.group, &who);
            let holds = model.held(|owner| *owner == from);
            prop_assert!(holds * FINE > share(&clients, capacity, from.client), "so does it");
            prop_assert!(from != who);
            prop_assert_eq!(table.release(victim), Some(from));
            model.0.retain(|(_, _, index)| *index != victim);
        }
    }
    table.occupy(now, who.clone(), index);
    model.0.push((who, now, index));
    Ok(())
}

fn compare(table: &SlotTable<Group>, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(table.len(), model.0.len());
    let groups: usize = table.groups().map(|(_, held)| held).sum();
    prop_assert_eq!(groups, model.0.len());
    for (group, held) in table.groups() {
        prop_assert_eq!(held, model.held(|owner| owner.group == *group));
        prop_assert!(held > 0, "who holds nothing is forgotten");
        let clients: usize = table.groups[group].clients.values().map(BTreeSet::len).sum();
        prop_assert_eq!(clients, held);
        prop_assert_eq!(table.groups[group].by_size.len(), table.groups[group].clients.len());
    }
    for (owner, active, index) in &model.0 {
        prop_assert_eq!(table.get(*index), Some((owner, *active)));
        prop_assert_eq!(table.held_by(owner), model.held(|other| other == owner));
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_table_matches_the_model(
        steps in proptest::collection::vec(step(), 1..200),
        group in prop_oneof![Just(usize::MAX), 3..8usize],
        client in prop_oneof![Just(usize::MAX), 3..8usize],
    ) {
        let bounds = Bounds { total: 12, group, client };
        let (mut table, mut model, mut now) = (SlotTable::default(), Model::default(), at(1_000));
        for (index, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask(group, client) => {
                    ask(&mut table, &mut model, (now, index), owner(group, client), bounds)?;
                }
                Step::Touch(which) if !model.0.is_empty() => {
                    let which = which % model.0.len();
                    let (_, active, index) = &mut model.0[which];
                    table.touch(now, *index);
                    if now >= *active + RESOLUTION {
                        *active = now;
                    }
                }
                Step::Close(which) if !model.0.is_empty() => {
                    let (who, _, index) = model.0.swap_remove(which % model.0.len());
                    prop_assert_eq!(table.release(index), Some(who));
                }
                Step::Wait(ms) => now += Span::from_millis(ms),
                Step::Touch(_) | Step::Close(_) => {}
            }
            compare(&table, &model)?;
        }
    }
}

/// A table, and the next number of a connection.
struct Play {
    table: SlotTable<Group>,
    total: usize,
    next: usize,
}

impl Play {
    fn new(total: usize) -> Self {
        Self { table: SlotTable::default(), total, next: 0 }
    }

    /// Requests a slot for `who`; returns the owner whose slot was reclaimed for it, if any.
    fn ask(&mut self, who: &Owner<Group>) -> Option<Option<Owner<Group>>> {
        let from = match self.table.decide(who, bounds(self.total)) {
            SlotDecision::Free => None,
            SlotDecision::Reclaim(index) => self.table.release(index),
            SlotDecision::Refused(_) => return None,
        };
        self.next += 1;
        self.table.occupy(at(self.next as u64), who.clone(), self.next);
        Some(from)
    }
}

#[test]
fn fifty_greedy_owners_do_not_displace_smaller_ones() {
    let mut play = Play::new(4_096);
    let hostile: Vec<_> = (0..50).map(|client| owner(0, client)).collect();
    for _ in 0..4_096 {
        for who in &hostile {
            let _ = play.ask(who);
        }
    }
    assert!(play.table.len() < 4_096, "some slots are free for new owners");
    let honest = owner(0, 200);
    for count in 1..=60 {
        let from = play.ask(&honest).expect("the new owner gets a slot");
        assert!(from.is_none_or(|from| hostile.contains(&from)));
        for who in &hostile {
            // They close one connection and request more continuously.
            let of_its_own = play.table.idlest_of(who).expect("it has many");
            play.table.release(of_its_own);
            while let Some(from) = play.ask(who) {
                assert_ne!(from.as_ref(), Some(&honest));
            }
        }
        assert_eq!(play.table.held_by(&honest), count);
    }
}

#[test]
fn a_terminal_with_many_made_up_clients_leaves_another_its_share() {
    let mut play = Play::new(100);
    // One connection for each of 250 addresses.
    for client in 0..250 {
        let _ = play.ask(&owner(1, client));
    }
    assert_eq!(play.table.len(), 100);
    for _ in 0..50 {
        let from = play.ask(&owner(2, 1)).expect("its terminal holds less");
        assert_eq!(from.map(|from| from.group), Some(1));
        assert_eq!(play.ask(&owner(1, 251)), None, "who has its share is refused");
    }
    assert_eq!(play.ask(&owner(2, 1)), None, "half of all");
    // Another client of the same terminal has a share of that half.
    let from = play.ask(&owner(2, 2)).expect("it holds less than the other");
    assert_eq!(from, Some(owner(2, 1)));
}

#[test]
fn a_share_shrinks_as_the_table_fills() {
    let mut play = Play::new(900);
    let fill = |play: &mut Play, who: &Owner<Group>| {
        while play.ask(who).is_some() {}
        play.table.held_by(who)
    };
    assert_eq!(fill(&mut play, &owner(0, 1)), 800, "eight ninths");
    // The second gets slots until it is one of the owners with the most.
    let second = fill(&mut play, &owner(0, 2));
    assert!((100..=450).contains(&second), "{second}");
}

#[test]
fn recently_active_connections_are_not_reclaimed() {
    let mut play = Play::new(3);
    let who = owner(0, 1);
    (0..3).for_each(|_| assert!(play.ask(&who).is_some()));
    assert_eq!(play.table.idlest_of(&who), Some(1));
    play.table.touch(at(5_000), 1);
    assert_eq!(play.table.idlest_of(&who), Some(2));
    assert_eq!(play.table.decide(&owner(0, 2), bounds(3)), SlotDecision::Reclaim(2));
}

#[test]
fn pending_connections_are_served_in_order() {
    let (mut table, who) = (SlotTable::default(), owner(0, 1));
    for index in [7, 3, 5] {
        table.occupy(at(1), who.clone(), index);
    }
    for next in [7, 3, 5] {
        assert_eq!(table.idlest_of(&who), Some(next));
        table.release(next);
        // The number is used again.
        table.occupy(at(1), who.clone(), next);
    }
    assert_eq!(table.idlest_of(&who), Some(7));
}
