use super::bench::{Others, Trial, Way};
use super::networks::{RICOCHET, WAYS};
use super::web;
use crate::experiments::Draw;
use std::collections::BTreeSet;

const DRAW: Draw = Draw { seed: 1, run: 0 };

#[test]
fn points_have_names_of_their_own() {
    let files: Vec<String> = super::bench::trials().iter().map(|(trial, _)| trial.key()).collect();
    let webs: Vec<String> = web::all().iter().map(web::Web::key).collect();
    for names in [files, webs] {
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}

#[test]
fn acknowledgements_are_two_percent_and_stats_are_not() {
    let run = |way| Trial::new(way, 600, Others::Nobody).run(&DRAW);
    let [tcp, stp] = [Way::SplitTcp, Way::SplitStp].map(run);
    let share =
        |values: &crate::experiments::Values| values.get("reverse_kbps") / values.get("kbps");
    assert!((0.018..0.024).contains(&share(&tcp)), "{}", share(&tcp));
    assert!(share(&stp) < share(&tcp) / 4.0, "{}", share(&stp));
    assert!(stp.get("polls_per_s") > 2.0 && tcp.get("polls_per_s") == 0.0);
}

#[test]
fn a_reply_takes_two_round_trips_by_tcp_and_less_by_stp() {
    let latency = |way| web::table_2(way).run(&DRAW).unwrap().get("median_s");
    let [tcp, stp] = [web::Way::Tcp(super::latency::Way::ALL[0]), web::Way::Stp].map(latency);
    assert!((1.2..2.6).contains(&tcp), "{tcp}");
    assert!(stp < tcp, "{stp} {tcp}");
}

#[test]
fn packet_radio_is_slow() {
    let kbps = RICOCHET.run(WAYS[1].1, &DRAW).get("kbps");
    assert!((15.0..32.0).contains(&kbps), "{kbps}");
}
