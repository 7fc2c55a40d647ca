//! The published network, compared with what can be computed.

use super::*;

fn run(scenario: Scenario) -> StarReport {
    Star::mhatre_rosenberg(scenario).run(11, 0)
}

/// Mean response time of the objects after slow start.
fn settled_response_s(report: &StarReport) -> f64 {
    let all = report.sites.iter().flat_map(|site| &site.responses);
    let late = all.filter(|(at, _)| *at > Instant::ZERO + Span::from_secs(20));
    let took: Vec<f64> = late.map(|(_, took)| took.as_secs_f64()).collect();
    took.iter().sum::<f64>() / took.len() as f64
}

#[test]
fn response_times_follow_from_delay_and_slots() {
    let [fixed, equal, weighted, demand] = Scenario::ALL.map(run);
    for report in [&fixed, &equal, &weighted, &demand] {
        assert_eq!(report.sites.iter().map(|site| site.lost).sum::<u64>(), 0);
        let least = report.sites.iter().flat_map(|site| &site.responses).map(|one| one.1).min();
        assert!(least.unwrap() > Span::from_millis(540), "two crossings at least");
        // Closed loops of 60 clients with a think time of 2 s.
        let cycles = 60.0 * 80.0 / (2.0 + report.mean_response_s());
        assert!((report.objects() as f64 - cycles).abs() < 0.1 * cycles, "{}", report.objects());
    }
    assert!(equal.objects() > fixed.objects() + 300);
    assert!(equal.mean_response_s() < 0.5 * fixed.mean_response_s());
    // Eight acknowledgements of 40 bytes and a request of 83, compared with a request of 82 and a
    // STAT.
    let per_object = |report: &StarReport| report.up as f64 / report.objects() as f64;
    assert!((395.0..425.0).contains(&per_object(&fixed)), "{}", per_object(&fixed));
    assert!((130.0..160.0).contains(&per_object(&equal)), "{}", per_object(&equal));
    assert_eq!((fixed.asked_and_free.0, demand.asked_and_free.1), (0, 0));
}

#[test]
fn same_seed_gives_the_same_run() {
    let star = Star { duration: Span::from_secs(10), ..Star::mhatre_rosenberg(Scenario::Weighted) };
    assert_eq!(star.run(3, 1), star.run(3, 1));
    assert_ne!(star.run(3, 1).trace, star.run(3, 2).trace);
}

#[test]
fn model_agrees_with_the_simulation_after_slow_start() {
    for (scenario, weighted) in [(Scenario::Equal, false), (Scenario::Weighted, true)] {
        let said = model::Model::published().all(&model::published_terminals(58.0, weighted));
        let report = settled_response_s(&run(scenario));
        assert!((said.response_s / report - 1.0).abs() < 0.1, "{scenario:?}: {said:?}, {report}");
    }
}

#[test]
fn separate_acknowledgement_queue_isolates_downloads_from_uploads() {
    let duration = Span::from_secs(60);
    let [published, paced, separate] =
        [Design::Published, Design::Paced, Design::Separate].map(|design| {
            let report = Star::bulk(design, duration).run(5, 0);
            let (down, up) = report.sites.split_at(20);
            let down: u64 = down.iter().map(|site| site.received).sum();
            let up: u64 = up.iter().map(|site| site.sent).sum();
            assert!(report.slots.1 * 100 > report.slots.0 * 90, "{design:?}: the link is full");
            (down as f64, up as f64)
        });
    assert!(separate.0 > 1.3 * paced.0 && paced.0 > 1.3 * published.0, "{separate:?} {paced:?}");
    assert!(separate.1 > 0.7 * published.1, "uploads pay little: {separate:?} {published:?}");
}

#[test]
fn predicted_slots_replace_capacity_requests() {
    // Without free assignment every slot is requested or predicted.
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
fn predicted_requests_save_a_capacity_request_round_trip() {
    use satlink::mac::schedule::Free;
    let mean = |prediction, free| {
        let mut star = Star::pages(prediction, free);
        star.duration = Span::from_secs(60);
        star.run(19, 0).mean_response_s()
    };
    let [asked, answers, requests] = Prediction::ALL.map(|prediction| mean(prediction, Free::None));
    assert!(answers < asked && requests < answers - 0.3, "{asked} {answers} {requests}");
    // With free slots requests do not wait for a grant, predicted or not.
    let [asked, .., requests] = Prediction::ALL.map(|prediction| mean(prediction, Free::ByWeight));
    assert!((requests / asked - 1.0).abs() < 0.1, "{asked} {requests}");
}

#[test]
fn simultaneous_reports_share_a_packet() {
    let run = |shared| {
        let mut star = Star::mhatre_rosenberg(Scenario::Weighted);
        (star.reports.shared, star.duration) = (shared, Span::from_secs(20));
        let report = star.run(9, 0);
        report.up as f64 / report.objects() as f64
    };
    assert!(run(Some(Span::from_millis(500))) < run(None));
}

#[test]
fn open_loop_clients_do_not_wait_for_responses() {
    let mut star = Star::mhatre_rosenberg(Scenario::Static);
    star.duration = Span::from_secs(60);
    let closed = star.run(13, 0).objects();
    for site in &mut star.sites {
        site.requests.order = RequestOrder::Open;
    }
    // 1,800 requests are due, on terminals without slots for so many.
    let open = star.run(13, 0).objects();
    assert!(open > closed && open < 1_800, "{open} {closed}");
}

#[test]
fn every_interpretation_affects_the_scenarios_that_it_concerns() {
    for scenario in [Scenario::Static, Scenario::Equal] {
        let short = |mut star: Star| {
            star.duration = Span::from_secs(15);
            star.run(17, 0)
        };
        let base = short(Star::mhatre_rosenberg(scenario));
        for reading in Interpretation::ALL.into_iter().filter(|reading| reading.concerns(scenario))
        {
            let report = short(reading.of(Star::mhatre_rosenberg(scenario)));
            // No terminal queues as many packets as ns-2 would drop at.
            let differs = reading != Interpretation::ShortQueue;
            assert_eq!(report.trace != base.trace, differs, "{reading:?} {scenario:?}");
        }
    }
}

/// XSTP-10.2.7: gateways are as fast on the published network as the published protocols, because
/// the timer does not repeat a POLL whose STAT is pending.
#[test]
fn gateways_do_not_repeat_polls_with_pending_stats_on_the_published_network() {
    for scenario in [Scenario::Equal, Scenario::Weighted] {
        let published = run(scenario);
        for control in [Control::NewReno, Control::Steady] {
            let GatewaysReport { report, terminals, hub } =
                Star::mhatre_rosenberg(scenario).run_gateways(control, 11, 0);
            let objects = report.objects() as f64;
            let each = |count: u64| count as f64 / objects;
            println!(
                "{} {control}: {objects} objects of {}, {:.3} s; up: data {:.2}, POLLs {:.2}, STATs {:.2}",
                scenario.name(),
                published.objects(),
                report.mean_response_s(),
                each(terminals.data),
                each(terminals.polls),
                each(terminals.reports),
            );
            // The published values are matched within this margin.
            assert!(objects > 0.9 * published.objects() as f64, "{objects}");
            let [polls, reports] = [terminals.polls, terminals.reports].map(each);
            // One POLL is piggybacked on each request; a timer that did not wait would make it two
            // or more.
            assert!(polls < 1.5 && reports < 2.0, "{polls} {reports}");
            assert_eq!(terminals.retransmitted + hub.retransmitted, 0, "nothing is lost");
        }
    }
}
