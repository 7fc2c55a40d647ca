use super::*;
use proptest::prelude::*;

const SIZE: u64 = 1_000_000;

/// Takes all that the threshold allows `owner`, a little at a time.
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
fn another_owner_finds_its_part_free_whatever_others_hold() {
    let mut shares = Shares::default();
    for number in 1..=20_u64 {
        // Everybody takes all that is left to him, and gives nothing back.
        let free = SIZE - shares.total();
        let had = fill(&mut shares, Owner(u128::from(number)));
        assert!(had.abs_diff(free / 2) < 10, "{number}: {had} of {free}");
    }
    // Those that hold more than their part now get nothing until they are below it.
    assert_eq!(headroom(shares.of(Owner(1)), SIZE - shares.total(), 1), 0);
    for number in 1..=20_u64 {
        let owner = Owner(u128::from(number));
        shares.sub(owner, shares.of(owner));
    }
    assert_eq!((shares.total(), shares.held.len()), (0, 0));
}

#[test]
fn owners_that_give_back_and_take_again_come_to_equal_parts() {
    let mut shares = Shares::default();
    let owners: Vec<Owner> = (1..=4).map(Owner).collect();
    for round in 0..2_000 {
        let owner = owners[round % 4];
        shares.sub(owner, shares.of(owner) / 10);
        fill(&mut shares, owner);
    }
    for owner in owners {
        // One of five equal parts each, and as much is free.
        assert!(shares.of(owner).abs_diff(SIZE / 5) < SIZE / 50, "{}", shares.of(owner));
    }
}

#[test]
fn owners_take_turns_however_many_entries_they_have() {
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
    // What goes first does so for seven turns of eight.
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
fn owners_share_by_bytes_whatever_sizes_their_entries_have() {
    let mut queue = FairQueue::default();
    // One has many entries of a packet each; one a single entry that goes on; one has one of 60
    // bytes each time, and leaves in between.
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
        queue.charge(bytes);
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
fn who_leaves_with_a_debt_and_comes_back_in_the_same_round_still_has_it() {
    let mut queue = FairQueue::default();
    queue.push(Owner(1), 1);
    queue.push(Owner(2), 2);
    queue.charge(2 * QUANTUM - 100);
    assert_eq!(queue.pop(), Some((Owner(1), 1)));
    queue.push(Owner(1), 3);
    assert_eq!(queue.front(), Some(2), "it waits for the other");
    queue.charge(QUANTUM);
    queue.pop();
    queue.push(Owner(2), 4);
    // The next turn makes up for what it took too much.
    queue.charge(100);
    assert!(!queue.goes_on(), "{queue:?}");
    queue.pop();
    // It has none for a round, and begins anew.
    queue.charge(QUANTUM);
    queue.pop();
    queue.push(Owner(2), 5);
    queue.charge(QUANTUM);
    queue.pop();
    queue.push(Owner(1), 6);
    queue.charge(100);
    assert!(queue.goes_on(), "{queue:?}");
}

proptest! {
    /// Against a list of what everybody holds.
    #[test]
    fn no_owner_grows_beyond_what_is_free_and_the_sum_is_kept(
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
