//! The published network, as far as it can be computed by hand.

use super::*;

fn run(scenario: Scenario) -> Seen {
    Star::mhatre_rosenberg(scenario).run(11, 0)
}

/// Mean response of the objects that came after the connections had opened their windows.
fn settled_response_s(seen: &Seen) -> f64 {
    let all = seen.sites.iter().flat_map(|site| &site.responses);
    let late = all.filter(|(at, _)| *at > Instant::ZERO + Span::from_secs(20));
    let took: Vec<f64> = late.map(|(_, took)| took.as_secs_f64()).collect();
    took.iter().sum::<f64>() / took.len() as f64
}

#[test]
fn the_scenarios_are_as_fast_as_geometry_and_slots_allow() {
    let [fixed, equal, weighted, demand] = Scenario::ALL.map(run);
    for seen in [&fixed, &equal, &weighted, &demand] {
        assert_eq!(seen.sites.iter().map(|site| site.lost).sum::<u64>(), 0);
        let least = seen.sites.iter().flat_map(|site| &site.responses).map(|one| one.1).min();
        assert!(least.unwrap() > Span::from_millis(540), "two crossings at least");
        // Closed loops of 60 clients who think for 2 s.
        let cycles = 60.0 * 80.0 / (2.0 + seen.mean_response_s());
        assert!((seen.objects() as f64 - cycles).abs() < 0.1 * cycles, "{}", seen.objects());
    }
    assert!(equal.objects() > fixed.objects() + 300);
    assert!(equal.mean_response_s() < 0.5 * fixed.mean_response_s());
    // Eight acknowledgements of 40 bytes and a request of 83 against a request of 82 and a STAT.
    let per_object = |seen: &Seen| seen.up as f64 / seen.objects() as f64;
    assert!((395.0..425.0).contains(&per_object(&fixed)), "{}", per_object(&fixed));
    assert!((130.0..160.0).contains(&per_object(&equal)), "{}", per_object(&equal));
    assert_eq!((fixed.asked_and_free.0, demand.asked_and_free.1), (0, 0));
}

#[test]
fn the_same_seed_is_the_same_run() {
    let star = Star { duration: Span::from_secs(10), ..Star::mhatre_rosenberg(Scenario::Weighted) };
    assert_eq!(star.run(3, 1), star.run(3, 1));
    assert_ne!(star.run(3, 1).trace, star.run(3, 2).trace);
}

#[test]
fn the_model_agrees_with_the_simulation_once_windows_are_open() {
    for (scenario, weighted) in [(Scenario::Equal, false), (Scenario::Weighted, true)] {
        let said = model::Model::published().all(&model::published_terminals(58.0, weighted));
        let seen = settled_response_s(&run(scenario));
        assert!((said.response_s / seen - 1.0).abs() < 0.1, "{scenario:?}: {said:?}, {seen}");
    }
}

#[test]
fn separate_acknowledgements_free_downloads_from_uploads() {
    let duration = Span::from_secs(60);
    let [published, paced, separate] =
        [Design::Published, Design::Paced, Design::Separate].map(|design| {
            let seen = Star::bulk(design, duration).run(5, 0);
            let (down, up) = seen.sites.split_at(20);
            let down: u64 = down.iter().map(|site| site.received).sum();
            let up: u64 = up.iter().map(|site| site.sent).sum();
            assert!(seen.slots.1 * 100 > seen.slots.0 * 90, "{design:?}: the link is full");
            (down as f64, up as f64)
        });
    assert!(separate.0 > 1.3 * paced.0 && paced.0 > 1.3 * published.0, "{separate:?} {paced:?}");
    assert!(separate.1 > 0.7 * published.1, "uploads pay little: {separate:?} {published:?}");
}

#[test]
fn what_the_hub_expects_need_not_be_asked_for() {
    // Nothing is free: what is not asked for has to be expected.
    let mut star = Star::mhatre_rosenberg(Scenario::Weighted);
    star.duration = Span::from_secs(30);
    star.mac.free = satlink::mac::schedule::Free::None;
    star.mac.sync = Some(1);
    let asked = star.run(7, 0);
    star.reports.expected = 2;
    let expected = star.run(7, 0);
    assert!(expected.mean_response_s() < asked.mean_response_s());
}

#[test]
fn a_hub_that_sees_requests_coming_saves_users_a_grant_loop() {
    use satlink::mac::schedule::Free;
    let mean = |prediction, free| {
        let mut star = Star::pages(prediction, free);
        star.duration = Span::from_secs(60);
        star.run(19, 0).mean_response_s()
    };
    let [asked, answers, requests] = Prediction::ALL.map(|prediction| mean(prediction, Free::None));
    assert!(answers < asked && requests < answers - 0.3, "{asked} {answers} {requests}");
    // Where slots are free nobody waits for a grant, expected or not.
    let [asked, .., requests] = Prediction::ALL.map(|prediction| mean(prediction, Free::ByWeight));
    assert!((requests / asked - 1.0).abs() < 0.1, "{asked} {requests}");
}

#[test]
fn reports_that_come_together_share_a_packet() {
    let run = |shared| {
        let mut star = Star::mhatre_rosenberg(Scenario::Weighted);
        (star.reports.shared, star.duration) = (shared, Span::from_secs(20));
        let seen = star.run(9, 0);
        seen.up as f64 / seen.objects() as f64
    };
    assert!(run(Some(Span::from_millis(500))) < run(None));
}

#[test]
fn clients_in_an_open_loop_ask_again_without_an_answer() {
    let mut star = Star::mhatre_rosenberg(Scenario::Static);
    star.duration = Span::from_secs(60);
    let closed = star.run(13, 0).objects();
    for site in &mut star.sites {
        site.asking.order = AskingOrder::Open;
    }
    // 1,800 are asked for, on terminals that have no slots for so many.
    let open = star.run(13, 0).objects();
    assert!(open > closed && open < 1_800, "{open} {closed}");
}

#[test]
fn every_reading_makes_a_difference_where_it_says_so() {
    for scenario in [Scenario::Static, Scenario::Equal] {
        let short = |mut star: Star| {
            star.duration = Span::from_secs(15);
            star.run(17, 0)
        };
        let base = short(Star::mhatre_rosenberg(scenario));
        for reading in Reading::ALL.into_iter().filter(|reading| reading.concerns(scenario)) {
            let seen = short(reading.of(Star::mhatre_rosenberg(scenario)));
            assert_ne!(seen.trace, base.trace, "{reading:?} {scenario:?}");
        }
    }
}

/// XSTP-10.2.7: gateways are as good on the published network as what was published, because they
/// ask once for what they have sent and wait for the answer.
#[test]
fn gateways_on_the_published_network_ask_once_and_wait() {
    for scenario in [Scenario::Equal, Scenario::Weighted] {
        let published = run(scenario);
        for control in [Control::NewReno, Control::Steady] {
            let GatewaysSeen { seen, terminals, hub } =
                Star::mhatre_rosenberg(scenario).run_gateways(control, 11, 0);
            let objects = seen.objects() as f64;
            let each = |count: u64| count as f64 / objects;
            println!(
                "{} {control}: {objects} objects of {}, {:.3} s; up: data {:.2}, POLLs {:.2}, STATs {:.2}",
                scenario.name(),
                published.objects(),
                seen.mean_response_s(),
                each(terminals.data),
                each(terminals.polls),
                each(terminals.reports),
            );
            // As near as the published table is to be reached.
            assert!(objects > 0.9 * published.objects() as f64, "{objects}");
            let [polls, reports] = [terminals.polls, terminals.reports].map(each);
            // One is piggybacked on each request; a timer that did not wait would make it two or more.
            assert!(polls < 1.5 && reports < 2.0, "{polls} {reports}");
            assert_eq!(terminals.again + hub.again, 0, "nothing is lost");
        }
    }
}
