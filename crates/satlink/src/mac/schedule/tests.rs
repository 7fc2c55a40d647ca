//! Fairness properties; and the request categories in examples.

use super::*;
use proptest::collection::vec as many;
use proptest::prelude::*;

fn hub(slots: u32, free: Free, terminals: usize) -> Scheduler {
    let config = ScheduleConfig { free, ..ScheduleConfig::new(slots) };
    let mut hub = Scheduler::new(config).unwrap();
    for _ in 0..terminals {
        let terminal = hub.add(Contract::default());
        hub.log_on(terminal);
    }
    hub
}

fn slots_of(plan: &[Grant], terminal: usize) -> u32 {
    plan.iter().find(|grant| grant.terminal == terminal).map_or(0, |grant| grant.slots)
}

#[test]
fn requests_precede_free_slots_and_served_volumes_are_subtracted() {
    let mut hub = hub(58, Free::Equal, 2);
    hub.handle_request(0, Request::Volume(20));
    hub.handle_request(0, Request::Volume(10));
    assert_eq!(hub.outstanding(0), 30, "volumes add up");
    let plan = hub.plan();
    assert_eq!((slots_of(&plan, 0), slots_of(&plan, 1)), (30 + 14, 14));
    assert_eq!(hub.outstanding(0), 0);
    hub.handle_request(1, Request::Absolute(7));
    hub.handle_request(1, Request::Absolute(3));
    assert_eq!(hub.outstanding(1), 3, "the newest overrides");
    let given = *hub.given();
    assert_eq!((given.volume, given.free), (30, 28));
}

#[test]
fn rate_request_is_valid_until_it_expires() {
    let mut hub = hub(10, Free::None, 1);
    hub.handle_request(0, Request::Rate(4));
    let given = [(); 3].map(|()| slots_of(&hub.plan(), 0));
    assert_eq!(given, [4, 4, 0]);
    hub.handle_request(0, Request::Rate(4));
    hub.handle_request(0, Request::Rate(1));
    assert_eq!(slots_of(&hub.plan(), 0), 1, "each overrides the last");
}

#[test]
fn expected_slots_are_served_once_with_requested_ones() {
    let mut hub = hub(58, Free::None, 1);
    hub.expect(0, 6);
    hub.handle_request(0, Request::Absolute(4));
    assert_eq!(slots_of(&hub.plan(), 0), 6, "the larger of the two");
    assert_eq!(slots_of(&hub.plan(), 0), 0, "and not twice");
}

#[test]
fn unserved_volume_expires() {
    let config = ScheduleConfig { free: Free::None, volume_frames: 3, ..ScheduleConfig::new(5) };
    let mut hub = Scheduler::new(config).unwrap();
    let contract = Contract { most: 2, ..Contract::default() };
    let terminal = hub.add(contract);
    hub.log_on(terminal);
    hub.handle_request(terminal, Request::Absolute(100));
    let given = [(); 4].map(|()| slots_of(&hub.plan(), terminal));
    assert_eq!(given, [2, 2, 2, 0]);
}

#[test]
fn excessive_request_takes_nothing_from_small_ones() {
    let mut hub = hub(58, Free::Equal, 20);
    for _ in 0..100 {
        hub.handle_request(0, Request::Absolute(u32::MAX));
        for honest in 1..20 {
            hub.handle_request(honest, Request::Absolute(2));
        }
        let plan = hub.plan();
        assert!((1..20).all(|honest| slots_of(&plan, honest) >= 2), "{plan:?}");
        assert!(slots_of(&plan, 0) <= 58 - 38);
    }
    assert_eq!(hub.clamped(), 100);
}

#[test]
fn silent_terminal_loses_its_slots_and_may_log_on_again() {
    let config = ScheduleConfig { silence: Some(4), ..ScheduleConfig::new(10) };
    let mut hub = Scheduler::new(config).unwrap();
    for _ in 0..2 {
        let terminal = hub.add(Contract { constant: 1, ..Contract::default() });
        hub.log_on(terminal);
    }
    for _ in 0..4 {
        assert_eq!(slots_of(&hub.plan(), 1), 5);
        hub.heard(0);
    }
    let plan = hub.plan();
    assert_eq!((slots_of(&plan, 0), slots_of(&plan, 1)), (10, 0));
    assert_eq!((hub.dropped(), hub.is_logged_on(1)), (1, false));
    hub.handle_request(1, Request::Absolute(5));
    assert_eq!(slots_of(&hub.plan(), 1), 0, "not logged on, no slots");
    hub.log_on(1);
    assert_eq!(slots_of(&hub.plan(), 1), 5);
}

#[test]
fn overbooked_contracts_are_shared_within_limits() {
    let mut hub = Scheduler::new(ScheduleConfig::new(10)).unwrap();
    for constant in [8, 8, 1] {
        let terminal = hub.add(Contract { constant, ..Contract::default() });
        hub.log_on(terminal);
    }
    let sums = (0..10).fold([0; 3], |mut sums, _| {
        let plan = hub.plan();
        for (terminal, sum) in sums.iter_mut().enumerate() {
            *sum += slots_of(&plan, terminal);
        }
        sums
    });
    assert_eq!(sums, [45, 45, 10]);
}

#[test]
fn invalid_settings_are_rejected() {
    let error = |change: fn(&mut ScheduleConfig)| {
        let mut config = ScheduleConfig::new(58);
        change(&mut config);
        Scheduler::new(config).map(drop).unwrap_err().setting
    };
    assert_eq!(error(|config| config.slots = 0), "slots");
    assert_eq!(error(|config| config.most_each = 59), "most_each");
    assert_eq!(
        error(|config| config.rate_frames = 0),
        "rate_frames, volume_frames, expected_frames"
    );
    assert_eq!(error(|config| config.most_request = 0), "most_request");
    assert_eq!(error(|config| config.silence = Some(0)), "silence");
}

proptest! {
    #[test]
    fn requests_are_served_max_min(
        slots in 0u32..400, wants in many(0u32..100, 1..60), turn: usize,
    ) {
        let mut turn = turn % wants.len();
        let shares = max_min(slots, &wants, &mut turn);
        let sum: u32 = shares.iter().sum();
        prop_assert_eq!(sum, slots.min(wants.iter().sum()), "nothing is kept back");
        for (have, want) in shares.iter().zip(&wants) {
            prop_assert!(have <= want);
            if have < want {
                prop_assert!(shares.iter().all(|other| *other <= have + 1));
            }
        }
        prop_assert!(turn < wants.len());
    }

    #[test]
    fn unmet_demands_are_served_in_rotation(
        slots in 1u32..30, count in 1usize..60,
    ) {
        let mut turn = 0;
        let mut sums = vec![0; count];
        let frames = 40;
        for _ in 0..frames {
            for (sum, share) in sums.iter_mut().zip(max_min(slots, &vec![100; count], &mut turn)) {
                *sum += share;
            }
        }
        let (least, most) = (sums.iter().min().unwrap(), sums.iter().max().unwrap());
        prop_assert!(most - least <= 1, "{:?}", sums);
    }

    #[test]
    fn free_slots_are_assigned_by_weight_without_starvation(
        slots in 1u32..80, weights in many(1u32..50, 1..30),
    ) {
        let mut free = ByWeight::default();
        let most = vec![u32::MAX; weights.len()];
        let mut sums = vec![0_u64; weights.len()];
        let frames = 500;
        for _ in 0..frames {
            let shares = free.share(slots, &weights, &most);
            prop_assert_eq!(shares.iter().sum::<u32>(), slots);
            for (sum, share) in sums.iter_mut().zip(shares) {
                *sum += u64::from(share);
            }
        }
        let total: u32 = weights.iter().sum();
        for (sum, &weight) in sums.iter().zip(&weights) {
            let due = f64::from(slots) * frames as f64 * f64::from(weight) / f64::from(total);
            prop_assert!((*sum as f64 - due).abs() <= 4.0, "{} for {}", sum, due);
        }
    }

    /// For terminals with any requests, log-ons and log-offs: no more slots are granted than exist
    /// or limits allow, none to terminals that are not logged on, and demands are met as far as
    /// fairness allows.
    #[test]
    fn no_more_slots_are_granted_than_exist(
        slots in 1u32..200, most_each in 1u32..200, free in 0usize..3,
        contracts in many((0u32..20, 1u32..60, 0u32..9), 1..25),
        steps in many((0usize..25, 0usize..7, any::<u32>()), 0..300),
    ) {
        let free = [Free::None, Free::Equal, Free::ByWeight][free];
        let most_each = most_each.min(slots);
        let config =
            ScheduleConfig { free, most_each, silence: Some(20), ..ScheduleConfig::new(slots) };
        let mut hub = Scheduler::new(config).unwrap();
        for &(constant, most, weight) in &contracts {
            hub.add(Contract { constant, most, weight });
        }
        for (who, what, value) in steps {
            let who = who % contracts.len();
            match what {
                0 => hub.log_on(who),
                1 => hub.log_off(who),
                2 => hub.handle_request(who, Request::Rate(value)),
                3 => hub.handle_request(who, Request::Volume(value)),
                4 => hub.handle_request(who, Request::Absolute(value % 64)),
                5 => hub.set_weight(who, value % 100),
                _ => {
                    let plan = hub.plan();
                    prop_assert!(plan.iter().map(|grant| grant.slots).sum::<u32>() <= slots);
                    for grant in plan {
                        prop_assert!(hub.is_logged_on(grant.terminal));
                        let most = contracts[grant.terminal].1.min(most_each);
                        prop_assert!((1..=most).contains(&grant.slots));
                    }
                }
            }
        }
    }
}
