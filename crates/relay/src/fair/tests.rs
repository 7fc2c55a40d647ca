use super::*;
use proptest::prelude::*;

const SIZE: u64 = 1_000_000;

/// Allocates all that the threshold permits `owner`, in small steps.
fn fill(shares: &mut Shares, owner: Owner) -> u64 {
    loop {
        let more = headroom(shares.of(owner), SIZE - shares.total(), 1).min(1_000);
        if more == 0 {
            return shares.of(owner);
        }
        shares.add(owner, more);
    }
}

#[test]
fn a_new_owner_always_finds_free_bytes() {
    let mut shares = Shares::default();
    for number in 1..=20_u64 {
        // Each owner allocates all that it may, and releases nothing.
        let free = SIZE - shares.total();
        let had = fill(&mut shares, Owner(u128::from(number)));
        assert!(had.abs_diff(free / 2) < 10, "{number}: {had} of {free}");
    }
    // An owner above its present limit gets nothing until it is below.
    assert_eq!(headroom(shares.of(Owner(1)), SIZE - shares.total(), 1), 0);
    for number in 1..=20_u64 {
        let owner = Owner(u128::from(number));
        shares.sub(owner, shares.of(owner));
    }
    assert_eq!((shares.total(), shares.held.len()), (0, 0));
}

#[test]
fn owners_converge_to_equal_parts() {
    let mut shares = Shares::default();
    let owners: Vec<Owner> = (1..=4).map(Owner).collect();
    for round in 0..2_000 {
        let owner = owners[round % 4];
        shares.sub(owner, shares.of(owner) / 10);
        fill(&mut shares, owner);
    }
    for owner in owners {
        // Each owner has one of five equal parts, and the fifth is free.
        assert!(shares.of(owner).abs_diff(SIZE / 5) < SIZE / 50, "{}", shares.of(owner));
    }
}

#[test]
fn turns_are_independent_of_the_number_of_entries() {
    let mut queue = FairQueue::default();
    for entry in 0..50 {
        queue.push(Owner(1), entry);
    }
    queue.push(Owner(2), 100);
    queue.push_first(Owner(1), 200);
    let mut had = [0; 2];
    for _ in 0..40 {
        let next = queue.front();
        let (owner, entry) = queue.pop().expect("entries");
        assert_eq!(next, Some(entry));
        had[owner.0 as usize - 1] += 1;
        if entry == 200 {
            queue.push_first(owner, entry);
        } else {
            queue.push(owner, entry);
        }
    }
    assert_eq!(had, [20, 20]);
    assert!(queue.remove(Owner(2), 100) && !queue.remove(Owner(2), 100));
    // Preferred entries have seven turns of eight.
    let turns: Vec<i32> = (0..16)
        .map(|_| {
            let (owner, entry) = queue.pop().expect("entries");
            if entry == 200 {
                queue.push_first(owner, entry);
            } else {
                queue.push(owner, entry);
            }
            entry
        })
        .collect();
    assert_eq!(turns.iter().filter(|&&entry| entry != 200).count(), 2, "{turns:?}");
    assert_eq!(queue.len(), 51);
}

/// RLY-3.2
#[test]
fn shares_are_in_bytes() {
    let mut queue = FairQueue::default();
    // One owner has many entries of a packet each; one has a single continuous entry; one has an
    // entry of 60 bytes each time, and none in between.
    for entry in 0..400_u64 {
        queue.push(Owner(1), entry);
    }
    queue.push(Owner(2), 1_000);
    queue.push(Owner(3), 2_000);
    let mut had = [0; 3];
    for _ in 0..300 {
        let entry = queue.front().expect("entries");
        let (owner, bytes) = match entry {
            0..1_000 => (0, 1_436),
            1_000..2_000 => (1, 1_436),
            _ => (2, 60),
        };
        queue.charge(bytes, QUANTUM);
        had[owner] += bytes;
        if owner == 1 && queue.goes_on() {
            continue;
        }
        queue.pop();
        if owner > 0 {
            queue.push(Owner(owner as u128 + 1), entry);
        }
    }
    assert!(had[0].abs_diff(had[1]) <= 2 * QUANTUM, "{had:?}");
    // It had a turn in each round.
    assert!(had[2] >= had[1] / QUANTUM * 60 - 60, "{had:?}");
}

/// RLY-3.2
#[test]
fn a_deficit_survives_removal_within_a_round() {
    let mut queue = FairQueue::default();
    queue.push(Owner(1), 1);
    queue.push(Owner(2), 2);
    queue.charge(2 * QUANTUM - 100, QUANTUM);
    assert_eq!(queue.pop(), Some((Owner(1), 1)));
    queue.push(Owner(1), 3);
    assert_eq!(queue.front(), Some(2), "it waits for the other");
    queue.charge(QUANTUM, QUANTUM);
    queue.pop();
    queue.push(Owner(2), 4);
    // The next turn is shortened by the deficit.
    queue.charge(100, QUANTUM);
    assert!(!queue.goes_on(), "{queue:?}");
    queue.pop();
    // It has no entry for a round, and starts without deficit.
    queue.charge(QUANTUM, QUANTUM);
    queue.pop();
    queue.push(Owner(2), 5);
    queue.charge(QUANTUM, QUANTUM);
    queue.pop();
    queue.push(Owner(1), 6);
    queue.charge(100, QUANTUM);
    assert!(queue.goes_on(), "{queue:?}");
}

proptest! {
    /// Compares with a list of all allocations.
    #[test]
    fn no_owner_exceeds_the_free_part(
        steps in prop::collection::vec((0u8..6, any::<bool>(), 0u64..SIZE), 1..200),
    ) {
        let mut shares = Shares::default();
        let mut model = BTreeMap::new();
        for (owner, takes, bytes) in steps {
            let key = Owner(u128::from(owner));
            let had = model.get(&owner).copied().unwrap_or(0);
            if takes {
                let free = SIZE - shares.total();
                let taken = bytes.min(headroom(had, free, 1));
                shares.add(key, taken);
                model.insert(owner, had + taken);
                prop_assert!(taken == 0 || had + taken <= free - taken);
            } else {
                shares.sub(key, bytes.min(had));
                model.insert(owner, had - bytes.min(had));
            }
            prop_assert_eq!(shares.total(), model.values().sum::<u64>());
            prop_assert!(shares.total() <= SIZE);
            for (&owner, &held) in &model {
                prop_assert_eq!(shares.of(Owner(u128::from(owner))), held);
            }
        }
    }
}
