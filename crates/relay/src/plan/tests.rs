//! Tests of allocation and scheduling, separately and compared with each other.

use super::{By, Claim, Rates, Ready, Shaper, Terms, allocate};
use proptest::prelude::*;
use units::{BitRate, Instant, Span};

const MBPS: u64 = 1_000_000;
const ALL: u64 = u64::MAX;

fn rate(bps: u64) -> BitRate {
    BitRate::from_bps(bps)
}

fn terms(committed: u64, peak: u64, weight: u32) -> Terms {
    let rates = Rates { committed: BitRate::new(committed), peak: BitRate::new(peak), total: None };
    Terms { rates, weight, shared_weight: false }
}

fn claims(of: &[(usize, u64)]) -> Vec<Claim> {
    of.iter().map(|&(plan, need)| Claim { plan, need }).collect()
}

#[test]
fn commitments_come_first_and_weights_share_the_rest() {
    let plans = [terms(2 * MBPS, 0, 1), terms(0, 0, 3)];
    let shared = allocate(rate(10 * MBPS), &plans, &claims(&[(0, ALL), (1, ALL)]));
    assert_eq!(shared, [4 * MBPS, 6 * MBPS]);
    let shared = allocate(rate(10 * MBPS), &plans, &claims(&[(0, ALL), (1, MBPS)]));
    assert_eq!(shared, [9 * MBPS, MBPS], "what one does not want the other has");
    let peak = [terms(2 * MBPS, 3 * MBPS, 1), terms(0, 0, 3)];
    let shared = allocate(rate(10 * MBPS), &peak, &claims(&[(0, ALL), (1, ALL)]));
    assert_eq!(shared, [3 * MBPS, 7 * MBPS]);
}

#[test]
fn a_plan_may_have_a_shared_weight_and_an_aggregate() {
    let together = Terms { shared_weight: true, ..terms(0, 0, 1) };
    let plans = [together, terms(0, 0, 1)];
    let of = claims(&[(0, ALL), (0, ALL), (1, ALL), (1, ALL)]);
    let shared = allocate(rate(12 * MBPS), &plans, &of);
    assert_eq!(shared, [2 * MBPS, 2 * MBPS, 4 * MBPS, 4 * MBPS]);
    let mut bounded = terms(0, 0, 1);
    bounded.rates.total = BitRate::new(2 * MBPS);
    let shared = allocate(rate(12 * MBPS), &[bounded, terms(0, 0, 1)], &of);
    assert_eq!(shared, [MBPS, MBPS, 5 * MBPS, 5 * MBPS]);
}

#[test]
fn excess_commitments_are_reduced_in_proportion() {
    let plans = [terms(8 * MBPS, 0, 1), terms(4 * MBPS, 0, 1), terms(0, 0, 1)];
    let shared = allocate(rate(10 * MBPS), &plans, &claims(&[(0, ALL), (1, ALL), (2, ALL)]));
    let twentieth = 10 * MBPS / 20;
    assert!(shared[2].abs_diff(twentieth / 3) <= 3, "{shared:?}");
    let (first, second) = (shared[0] - shared[2], shared[1] - shared[2]);
    assert!(first.abs_diff(2 * second) <= 9, "{shared:?}");
    assert!(shared.iter().sum::<u64>() >= 10 * MBPS - 9);
}

/// RLY-8.1
#[test]
fn out_of_turn_service_delays_later_turns() {
    let together = Terms { shared_weight: true, ..terms(0, 0, 2) };
    // 25 ms of 20 Mbit/s are 62,500 bytes.
    for plan in [terms(0, 0, 1), terms(0, 0, 2), together] {
        let mut shaper = Shaper::new(rate(20 * MBPS), &[terms(0, 0, 1), plan]);
        let now = Instant::ZERO + Span::from_secs(1);
        shaper.join(1, 0);
        shaper.join(2, 1);
        // On an uncontended link no member is above its share, and nothing counts against it later.
        for _ in 0..1_000 {
            shaper.charge_beside(now, Some(2), 1_500);
            assert!(!shaper.is_ahead(now, 2), "{plan:?}");
        }
        shaper.set_ready(now, 1, Ready::Yes);
        let before = (0..).take_while(|_| {
            shaper.charge_beside(now, Some(2), 500);
            !shaper.is_ahead(now, 2)
        });
        let before = before.count() * 500;
        // Of a plan with a shared weight, several members may be ahead at the same time.
        let most = 62_500 * if plan.shared_weight { 4 } else { 1 };
        assert!((most - 2_500..most + 4_500).contains(&before), "{plan:?}: {before}");
        assert!(!shaper.is_ahead(now, 1) && !shaper.is_ahead(now, 3));
        for _ in 0..20 {
            let turn = shaper.next(now + Span::from_secs(1)).expect("a member with data");
            assert_eq!(turn.member, 1);
            shaper.charge(now, turn, 500);
        }
        assert!(!shaper.is_ahead(now, 2), "{plan:?}");
    }
}

/// Members that send packets of `size` bytes whenever they may.
struct Load {
    shaper: Shaper<u32>,
    sizes: Vec<u64>,
    now: Instant,
}

impl Load {
    fn new(line: u64, plans: &[Terms], members: &[(usize, u64)]) -> Self {
        let mut shaper = Shaper::new(rate(line), plans);
        for (id, (plan, _)) in members.iter().enumerate() {
            shaper.join(id as u32, *plan);
        }
        let sizes = members.iter().map(|(_, size)| *size).collect();
        Self { shaper, sizes, now: Instant::ZERO + Span::from_secs(1) }
    }

    fn ready(&mut self, id: u32, ready: Ready) {
        self.shaper.set_ready(self.now, id, ready);
    }

    /// Returns the rate of each member over `span`, bits per second.
    fn run(&mut self, span: Span) -> Vec<u64> {
        let before: Vec<u64> = (0..self.sizes.len()).map(|id| self.sent(id)).collect();
        let end = self.now + span;
        while self.now < end {
            while let Some(turn) = self.shaper.next(self.now) {
                let size = self.sizes[turn.member as usize];
                self.shaper.charge(self.now, turn, size);
            }
            let Some(next) = self.shaper.poll_timeout() else { break };
            self.now = next.max(self.now + Span::from_nanos(1)).min(end);
        }
        self.now = end;
        let sent = before.iter().enumerate().map(|(id, before)| self.sent(id) - before);
        sent.map(|octets| (octets as f64 * 8.0 / span.as_secs_f64()) as u64).collect()
    }

    fn sent(&self, id: usize) -> u64 {
        self.shaper.octets(id as u32)
    }
}

#[test]
fn urgent_packets_precede_others_within_the_share() {
    let members: Vec<(usize, u64)> = (0..100).map(|_| (0, 1_500)).collect();
    let mut load = Load::new(10 * MBPS, &[terms(0, 0, 1)], &members);
    for id in 0..99 {
        load.ready(id, Ready::Yes);
    }
    load.run(Span::from_secs(2));
    load.ready(99, Ready::Urgent);
    let turn = loop {
        match load.shaper.next(load.now) {
            Some(turn) => break turn,
            None => load.now = load.shaper.poll_timeout().expect("a member with data"),
        }
    };
    assert_eq!((turn.member, turn.by), (99, By::Urgency));
    // It continues: in ten seconds it has its hundredth and its initial excess.
    let sent = load.run(Span::from_secs(10));
    let ahead = 64_000 * 8 / 10;
    assert!(sent[99] <= MBPS / 10 + ahead + 1_500, "{}", sent[99]);
    assert!(sent[99] >= MBPS / 10, "{}", sent[99]);
    assert!(sent[..99].iter().all(|&other| other >= MBPS / 10 * 94 / 100));
}

#[test]
fn an_idle_member_gains_and_loses_nothing() {
    let mut load = Load::new(10 * MBPS, &[terms(0, 0, 1)], &[(0, 1_500), (0, 1_500)]);
    load.ready(0, Ready::Yes);
    load.run(Span::from_secs(60));
    load.ready(1, Ready::Yes);
    let sent = load.run(Span::from_secs(1));
    assert!(sent[0].abs_diff(sent[1]) <= 2 * 1_500 * 8, "{sent:?}");
}

#[test]
fn an_idle_link_accumulates_no_credit() {
    let mut load = Load::new(10 * MBPS, &[terms(0, 0, 1)], &[(0, 1_500)]);
    load.ready(0, Ready::Yes);
    load.run(Span::from_secs(1));
    load.ready(0, Ready::No);
    load.run(Span::from_secs(1));
    assert_eq!(load.shaper.next(load.now), None);
    load.ready(0, Ready::Yes);
    let sent = load.run(Span::from_millis(100));
    assert!(sent[0] <= 10 * MBPS + 2 * 1_500 * 80, "{sent:?}");
}

/// Packets that a terminal sends on an uncontended link do not count against it later: bulk, urgent
/// or control.
#[test]
fn service_on_an_uncontended_link_does_not_count_later() {
    let together = Terms { shared_weight: true, ..terms(0, 0, 1) };
    for plans in [[terms(0, 0, 1), terms(0, 0, 1)], [together, terms(0, 0, 1)], [together; 2]] {
        for way in [Some(Ready::Yes), Some(Ready::Urgent), None] {
            let mut load = Load::new(10 * MBPS, &plans, &[(0, 1_500), (1, 1_500), (0, 1_500)]);
            for _ in 0..1_000 {
                if let Some(ready) = way {
                    load.ready(0, ready);
                } else {
                    load.shaper.charge_beside(load.now, Some(0), 1_500);
                }
                load.run(Span::from_millis(10));
                load.ready(0, Ready::No);
            }
            load.ready(1, Ready::Yes);
            load.ready(0, way.unwrap_or(Ready::Yes));
            let sent = load.run(Span::from_secs(2));
            assert!(sent[0].abs_diff(sent[1]) <= MBPS / 2, "{plans:?} {way:?}: {sent:?}");
            // Nor do they count against it within its plan.
            load.ready(2, Ready::Yes);
            let sent = load.run(Span::from_secs(2));
            assert!(sent[0].abs_diff(sent[2]) <= MBPS / 2, "{plans:?} {way:?}: {sent:?}");
        }
    }
}

fn any_terms() -> impl Strategy<Value = Terms> {
    let rate = |most| prop_oneof![Just(0), 100_000..most];
    (rate(3 * MBPS), rate(9 * MBPS), 1u32..9, any::<bool>(), rate(9 * MBPS)).prop_map(
        |(committed, peak, weight, together, total)| {
            let peak = if peak == 0 { 0 } else { peak.max(committed) };
            let mut terms = terms(committed, peak, weight);
            terms.rates.total = BitRate::new(total);
            Terms { shared_weight: together, ..terms }
        },
    )
}

fn any_load() -> impl Strategy<Value = (Vec<Terms>, Vec<(usize, u64, u64)>)> {
    prop::collection::vec(any_terms(), 1..5).prop_flat_map(|plans| {
        let need = prop_oneof![Just(ALL), 0..5 * MBPS];
        let member = (0..plans.len(), need, 100u64..1_500);
        (Just(plans), prop::collection::vec(member, 1..20))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Rates never exceed the link, a peak, an aggregate or a demand; commitments are met as far as
    /// they fit; no rate is left while there is demand; no member starves.
    #[test]
    fn rates_are_fair((plans, members) in any_load()) {
        let capacity = 10 * MBPS;
        let of: Vec<Claim> =
            members.iter().map(|&(plan, need, _)| Claim { plan, need }).collect();
        let rates = allocate(rate(capacity), &plans, &of);
        let slack = 4 * members.len() as u64;
        let sum: u64 = rates.iter().sum();
        prop_assert!(sum <= capacity);
        let in_plan = |plan: usize| -> u64 {
            of.iter().zip(&rates).filter(|(c, _)| c.plan == plan).map(|(_, r)| r).sum()
        };
        let committed: u64 = of.iter().map(|c| plans[c.plan].committed_bps().min(c.need)).sum();
        let full: Vec<bool> = of.iter().zip(&rates).map(|(claim, &rate)| {
            let terms = &plans[claim.plan];
            let own = claim.need.min(terms.peak_bps());
            own - rate <= slack || terms.total_bps() <= in_plan(claim.plan) + slack
        }).collect();
        for (at, (claim, &rate)) in of.iter().zip(&rates).enumerate() {
            let terms = &plans[claim.plan];
            prop_assert!(rate <= claim.need && rate <= terms.peak_bps());
            prop_assert!(in_plan(claim.plan) <= terms.total_bps());
            if committed <= capacity * 95 / 100 && terms.rates.total.is_none() {
                prop_assert!(rate >= terms.committed_bps().min(claim.need));
            }
            if claim.need > 1_000 {
                prop_assert!(rate > 0, "a member starves");
            }
            // Of two members that share individually, the one with more service per weight has its
            // demand met.
            for (other, claim_b) in of.iter().enumerate() {
                let terms_b = &plans[claim_b.plan];
                let alone = !terms.shared_weight && !terms_b.shared_weight;
                let fits = committed <= capacity * 95 / 100;
                let free = |t: &Terms| t.rates.total.is_none();
                if alone && fits && free(terms) && free(terms_b) && !full[at] {
                    let mine = (rate - terms.committed_bps()) / terms.weight();
                    let base = terms_b.committed_bps().min(claim_b.need);
                    let theirs = (rates[other] - base) / terms_b.weight();
                    prop_assert!(theirs <= mine + slack, "{mine} {theirs}");
                }
            }
        }
        if sum + slack < capacity {
            prop_assert!(full.iter().all(|&full| full), "{sum} {rates:?}");
        }
    }
}

/// RLY-8.1
#[test]
fn an_aggregate_limit_accumulates_no_credit() {
    for together in [false, true] {
        let mut bounded = Terms { shared_weight: together, ..terms(0, 0, 1) };
        bounded.rates.total = BitRate::new(4 * MBPS);
        let plans = [bounded, terms(0, 0, 1)];
        let sizes = [&[(0, 1_500); 2][..], &[(1, 1_500); 8]].concat();
        let mut load = Load::new(20 * MBPS, &plans, &sizes);
        (0..3).for_each(|id| load.ready(id, Ready::Yes));
        let sent = load.run(Span::from_secs(60));
        assert!(sent[2] > 15 * MBPS, "one has what the total leaves: {sent:?}");
        (3..10).for_each(|id| load.ready(id, Ready::Yes));
        load.run(Span::from_secs(1));
        let sent = load.run(Span::from_secs(5));
        let fair = if together { 20 * MBPS / 9 / 2 } else { 2 * MBPS };
        for (id, &sent) in sent.iter().enumerate() {
            let fair = if together && id > 1 { 20 * MBPS / 9 } else { fair };
            assert!(sent.abs_diff(fair) < fair / 20, "{id}: {sent} of {fair}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The scheduler reaches the same rates packet by packet, and never exceeds the link's rate.
    #[test]
    fn scheduling_matches_the_allocated_rates((plans, members) in any_load()) {
        let capacity = 10 * MBPS;
        // Here a member's demand is zero or unlimited.
        let of: Vec<Claim> = members.iter().map(|&(plan, need, _)| {
            Claim { plan, need: if need < MBPS { 0 } else { ALL } }
        }).collect();
        let rates = allocate(rate(capacity), &plans, &of);
        let sizes: Vec<(usize, u64)> = members.iter().map(|&(p, _, size)| (p, size)).collect();
        let mut load = Load::new(capacity, &plans, &sizes);
        for (id, claim) in of.iter().enumerate() {
            let ready = if claim.need > 0 { Ready::Yes } else { Ready::No };
            load.ready(id as u32, ready);
        }
        load.run(Span::from_secs(2));
        let sent = load.run(Span::from_secs(20));
        prop_assert!(sent.iter().sum::<u64>() <= capacity + 2 * 1_500 * 8);
        for (at, (&rate, &sent)) in rates.iter().zip(&sent).enumerate() {
            let slack = rate / 50 + 3 * 1_500 * 8 / 20 + capacity / 500;
            prop_assert!(rate.abs_diff(sent) <= slack, "{at}: {rate} allocated, {sent} sent of {rates:?} {sent:?}");
        }
    }
}
