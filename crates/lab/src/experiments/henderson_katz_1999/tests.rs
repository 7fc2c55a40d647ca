use super::bench::{Others, Trial, Way};
use super::networks::{RICOCHET, WAYS};
use super::web;
use crate::experiments::Draw;

const DRAW: Draw = Draw { seed: 1, run: 0 };

#[test]
fn acknowledgements_are_two_percent_of_the_data_and_stats_less() {
    let run = |way| Trial::new(way, 600, Others::Nobody).run(&DRAW);
    let [tcp, stp] = [Way::SplitTcp, Way::SplitStp].map(run);
    let share =
        |values: &crate::experiments::Values| values.get("reverse_kbps") / values.get("kbps");
    assert!((0.018..0.024).contains(&share(&tcp)), "{}", share(&tcp));
    assert!(share(&stp) < share(&tcp) / 4.0, "{}", share(&stp));
    assert!(stp.get("polls_per_s") > 2.0 && tcp.get("polls_per_s") == 0.0);
}

#[test]
fn a_reply_takes_two_round_trips_with_tcp_and_fewer_with_stp() {
    let latency = |way| web::table_2(way).run(&DRAW).unwrap().get("median_s");
    let [tcp, stp] = [web::Way::Tcp(super::latency::Way::ALL[0]), web::Way::Stp].map(latency);
    assert!((1.2..2.6).contains(&tcp), "{tcp}");
    assert!(stp < tcp, "{stp} {tcp}");
}

#[test]
fn throughput_of_packet_radio() {
    let kbps = RICOCHET.run(WAYS[1].1, &DRAW).get("kbps");
    assert!((15.0..32.0).contains(&kbps), "{kbps}");
}
