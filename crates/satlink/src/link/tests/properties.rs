//! Properties of every link under any sequence of calls.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn direction() -> impl Strategy<Value = DirectionConfig> {
    let (target, interval) = (Span::from_millis(2), Span::from_millis(20));
    let codel = CoDel { target, interval, mark: true };
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        Just(Discipline::CoDel(codel)),
        Just(Discipline::DualPi2(DualPi2 { target, max_round_trip: interval })),
        Just(Discipline::FairCoDel { quantum: 700, codel }),
        Just(Discipline::Fair { quantum: 700 }),
        Just(Discipline::Red(Red {
            lower: Limit::Bytes(4_000),
            upper: Limit::Bytes(12_000),
            largest_probability: 0.2,
            weight: 0.2,
            mark: true,
            gentle: true,
        })),
    ];
    let limit = (3_000u64..40_000).prop_map(Limit::Bytes);
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Uniform(Span::from_millis(20))),
        Just(Jitter::Normal(Span::from_millis(5))),
    ];
    let gilbert = proptest::option::of(Just(GilbertElliott {
        to_bad: 0.1,
        to_good: 0.3,
        loss_in_bad: 0.9,
        loss_in_good: 0.01,
    }));
    let reorder = proptest::option::of(Just(Reorder { probability: 0.3, gap: 3 }));
    let rate =
        proptest::option::weighted(0.8, (200_000u64..20_000_000).prop_map(BitRate::from_bps));
    (
        (discipline, limit, rate),
        (jitter, any::<bool>(), gilbert, reorder),
        (0u64..60, 0.0..0.2f64, 0.0..2e-5f64, 0.0..0.2f64),
    )
        .prop_map(
            |((discipline, limit, rate), (jitter, keep_order, gilbert, reorder), numbers)| {
                let (delay_ms, loss, bit_error_ratio, duplicate) = numbers;
                DirectionConfig {
                    queue: QueueConfig { discipline, limit },
                    rate,
                    framing: Framing::Aal5,
                    loss,
                    bit_error_ratio,
                    gilbert,
                    delay: Span::from_millis(delay_ms),
                    jitter,
                    keep_order,
                    duplicate,
                    reorder,
                    trace: None,
                }
            },
        )
}

fn link_config() -> impl Strategy<Value = LinkConfig> {
    let delays = [Span::ZERO, Span::from_millis(30)];
    let state = move |ms, drop| MarkovState {
        mean_stay: Span::from_millis(ms),
        drop,
        delays,
        second_delay: 0.5,
    };
    let shared =
        proptest::option::of(Just(TwoStateMarkov { states: [state(40, 0.0), state(10, 0.7)] }));
    let outage = Outage {
        at: Span::from_millis(50),
        length: Span::from_millis(5),
        every: Some(Span::from_millis(70)),
        direction: None,
    };
    let outages = prop_oneof![Just(Vec::new()), Just(std::vec![outage])];
    (direction(), direction(), shared, outages).prop_map(|(forward, return_, shared, outages)| {
        LinkConfig { forward, return_, shared, outages }
    })
}

/// A step of a driver: an offer, or a change of the link.
#[derive(Clone, Debug)]
enum Step {
    Offer { after_us: u64, forward: bool, len: usize },
    Change { after_us: u64, to: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(
        prop_oneof![
            20 => (0u64..3_000, any::<bool>(), 20usize..1_500)
                .prop_map(|(after_us, forward, len)| Step::Offer { after_us, forward, len }),
            1 => (0u64..3_000, any::<bool>())
                .prop_map(|(after_us, to)| Step::Change { after_us, to }),
        ],
        1..200,
    )
}

type Outcome = (Vec<Delivery<Packet>>, Vec<bool>, [Counters; 2]);

/// Runs `steps` and fetches deliveries at `polls` and wherever `eager` returns true.
fn run(configs: &[LinkConfig; 2], steps: &[Step], polls: &[u64], eager: bool) -> Outcome {
    let mut link = Link::new(&configs[0], 9, 0).expect("valid");
    let (mut now, mut got, mut admitted) = (Instant::ZERO, Vec::new(), Vec::new());
    let mut polls = polls.iter().copied().peekable();
    for (id, step) in steps.iter().enumerate() {
        let (Step::Offer { after_us, .. } | Step::Change { after_us, .. }) = step;
        let next = now + Span::from_micros(*after_us);
        while eager && link.poll_timeout().is_some_and(|at| at < next) {
            let at = link.poll_timeout().expect("just seen");
            link.handle_timeout(at);
            got.extend(core::iter::from_fn(|| link.poll_delivery(at)));
        }
        while polls.next_if(|&us| Instant::from_nanos(us * 1_000) < next).is_some() {
            // Between two steps, at an arbitrary time.
            let between = now + next.since(now) / 2;
            got.extend(core::iter::from_fn(|| link.poll_delivery(between)));
        }
        now = next;
        match step {
            Step::Offer { forward, len, .. } => {
                let direction = if *forward { Direction::Forward } else { Direction::Return };
                let admission = link.offer(now, direction, packet(id as u64, *len));
                admitted.push(admission == Admission::Queued);
            }
            Step::Change { to, .. } => {
                link.reconfigure(now, &configs[usize::from(*to)]).expect("valid");
            }
        }
        assert!(link.audit(), "the accounts balance after every step");
    }
    let end = now + Span::from_secs(1_000);
    got.extend(core::iter::from_fn(|| link.poll_delivery(end)));
    assert!(link.audit());
    let counters = Direction::BOTH.map(|direction| link.counters(direction).clone());
    (got, admitted, counters)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn late_calls_and_early_calls_see_the_same(
        configs in [link_config(), link_config()],
        steps in steps(),
        polls in vec(0u64..300_000, 0..20),
    ) {
        let mut polls = polls;
        polls.sort_unstable();
        let eager = run(&configs, &steps, &[], true);
        let late = run(&configs, &steps, &[], false);
        let random = run(&configs, &steps, &polls, false);
        prop_assert_eq!(&eager.1, &late.1);
        prop_assert_eq!(&eager.2, &late.2);
        prop_assert_eq!(&eager.0, &late.0);
        prop_assert_eq!(&eager.0, &random.0);
        let held: u64 = late.2.iter().map(|counters| counters.held.packets).sum();
        prop_assert_eq!(held, 0, "in the end nothing is held");
    }

    #[test]
    fn an_ordered_direction_stays_ordered(config in link_config(), steps in steps()) {
        let mut config = config;
        for direction in [&mut config.forward, &mut config.return_] {
            direction.keep_order = true;
            direction.reorder = None;
            direction.duplicate = 0.0;
            direction.queue.discipline = Discipline::DropTail;
        }
        let configs = [config.clone(), config];
        let (got, ..) = run(&configs, &steps, &[], true);
        for direction in Direction::BOTH {
            let ids = got.iter().filter(|d| d.direction == direction).map(|d| d.frame.id);
            prop_assert!(ids.is_sorted());
        }
        prop_assert!(got.is_sorted_by_key(|delivery| delivery.at));
    }
}
