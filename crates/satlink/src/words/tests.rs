use super::*;
use crate::QueueConfig;
use alloc::string::ToString;
use units::BitRate;

#[test]
fn keywords_of_netem_have_its_meaning() {
    let config = parse_direction(
        "delay 300ms 10ms rate 10mbit loss 0.1% limit 1000 duplicate 1% reorder 25% gap 5",
    )
    .expect("netem's own words");
    let expected = DirectionConfig {
        delay: Span::from_millis(300),
        jitter: Jitter::Uniform(Span::from_millis(10)),
        rate: Some(BitRate::from_mbps(10)),
        loss: 0.001,
        queue: QueueConfig { limit: Limit::Packets(1000), ..QueueConfig::default() },
        duplicate: 0.01,
        reorder: Some(Reorder { probability: 0.25, gap: 5 }),
        ..DirectionConfig::default()
    };
    assert_eq!(config, expected);
}

#[test]
fn units_are_tcs() {
    let delay = |text| parse_direction(text).map(|config| config.delay);
    assert_eq!(delay("delay 1500"), Ok(Span::from_micros(1500)));
    assert_eq!(delay("delay 0.3s"), Ok(Span::from_millis(300)));
    let rate = |text| parse_direction(text).map(|config| config.rate);
    assert_eq!(rate("rate 64KBIT"), Ok(Some(BitRate::from_kbps(64))));
    assert_eq!(rate("rate 1mbps"), Ok(Some(BitRate::from_mbps(8))));
    assert_eq!(rate("rate 1kibit"), Ok(Some(BitRate::from_bps(1024))));
    assert_eq!(rate("rate 9600"), Ok(Some(BitRate::from_bps(9600))));
    let limit = |text| parse_direction(text).map(|config| config.queue.limit);
    assert_eq!(limit("limit 64k"), Ok(Limit::Bytes(65_536)));
    assert_eq!(limit("limit 0.5bdp"), Ok(Limit::BandwidthDelay(0.5)));
}

#[test]
fn gemodel_takes_one_to_four_shares() {
    let model = |text| parse_direction(text).expect("a model").gilbert.expect("is set");
    let one = model("loss gemodel 1%");
    assert!((one.to_good - 0.99).abs() < 1e-12 && one.loss_in_bad == 1.0);
    let four = model("gemodel 1% 10% 70% 0.1% delay 1ms");
    assert!((four.loss_in_bad - 0.7).abs() < 1e-12);
    assert!((four.loss_in_good - 0.001).abs() < 1e-12);
}

#[test]
fn framing_and_netems_cells() {
    let framing = |text| parse_direction(text).map(|config| config.framing);
    assert_eq!(framing("framing mpe"), Ok(Framing::MpeTransportStream));
    assert_eq!(
        framing("rate 1mbit 8 48 5"),
        Ok(Framing::Cells { overhead: 8, cell_size: 48, cell_overhead: 5 })
    );
}

#[test]
fn queues() {
    let discipline = |text| parse_direction(text).map(|config| config.queue.discipline);
    assert_eq!(discipline("queue fair"), Ok(Discipline::Fair { quantum: 1514 }));
    let red = Red {
        lower: Limit::Packets(5),
        upper: Limit::Packets(15),
        largest_probability: 0.1,
        weight: 0.002,
        mark: true,
        gentle: true,
    };
    assert_eq!(discipline("queue red 5 15 10% ecn"), Ok(Discipline::Red(red)));
    let steep = Red { mark: false, gentle: false, ..red };
    assert_eq!(discipline("queue red 5 15 10% steep"), Ok(Discipline::Red(steep)));
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    let codel = CoDel { target, interval, mark: false };
    assert_eq!(discipline("queue codel"), Ok(Discipline::CoDel(codel)));
    let (target, interval) = (Span::from_millis(30), Span::from_millis(600));
    let codel = CoDel { target, interval, mark: true };
    let fair = Discipline::FairCoDel { quantum: 1514, codel };
    assert_eq!(discipline("queue fq-codel 30ms 600ms ecn"), Ok(fair));
    assert_eq!(discipline("queue dualpi2"), Ok(Discipline::DualPi2(DualPi2::default())));
    let dual = DualPi2 { target, max_round_trip: Span::from_millis(700) };
    assert_eq!(discipline("queue dualpi2 30ms 700ms"), Ok(Discipline::DualPi2(dual)));
}

#[test]
fn a_link_has_scopes() {
    let link = parse_link(
        "delay 270ms forward rate 50mbit return rate 100kbit ber 1e-6 both limit 1bdp \
         outage return at 20s for 10s every 60s fade 10s 0% 1s 50% delays 100ms 150ms",
    )
    .expect("a link");
    assert_eq!(link.forward.rate, Some(BitRate::from_mbps(50)));
    assert_eq!(link.return_.rate, Some(BitRate::from_kbps(100)));
    assert_eq!(link.forward.queue.limit, Limit::BandwidthDelay(1.0));
    assert!(link.forward.bit_error_ratio == 0.0 && link.return_.bit_error_ratio == 1e-6);
    assert_eq!(link.outages[0].direction, Some(Direction::Return));
    assert_eq!(link.outages[0].every, Some(Span::from_secs(60)));
    let shared = link.shared.expect("a fade");
    assert_eq!(shared.states[1].mean_stay, Span::from_secs(1));
    assert_eq!(shared.states[0].delays[1], Span::from_millis(150));
    assert_eq!(link.validate(), Ok(()));
}

#[test]
fn a_file_changes_a_profile_line_by_line() {
    let text = "# a worse day\nprofile geo\nboth loss 2%\nreturn rate 512kbit # shared\n\n\
                outage at 20s for 10s\n";
    let link = parse_file(text).expect("a file");
    let geo = profiles::by_name("geo").expect("a profile");
    assert_eq!(link.forward.rate, geo.forward.rate);
    assert_eq!(link.return_.rate, Some(BitRate::from_kbps(512)));
    assert!((link.return_.loss - 0.02).abs() < 1e-12);
    assert_eq!(link.outages.len(), 1);
}

#[test]
fn errors_have_keyword_position_found_and_expected() {
    let said = |text| parse_link(text).expect_err("wrong").to_string();
    assert_eq!(
        said("delay 300ms rate fast"),
        "column 18: rate: found \"fast\", expected a rate above 0, such as 10mbit"
    );
    assert_eq!(said("loss"), "column 5: loss: found the end, expected a share, such as 0.1%");
    assert_eq!(said("loss 101%"), "column 6: loss: found \"101%\", expected a share, such as 0.1%");
    assert_eq!(
        said("loss 1% 25%"),
        "column 9: loss: found \"25%\", expected another word (correlations are not modelled)"
    );
    assert!(said("deley 3ms").starts_with("column 1: found \"deley\", expected a word such as"));
    assert!(said("delay 1ms corrupt 1%").starts_with("column 11: found \"corrupt\""));
    assert_eq!(said("outage 20s"), "column 8: outage: found \"20s\", expected at");
    let error = parse_file("profile geo\n  both delay -1ms\n").expect_err("wrong");
    assert_eq!(
        error.to_string(),
        "line 2, column 14: delay: found \"-1ms\", expected a time, such as 300ms"
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}") {
        drop(parse_file(&text));
    }

    #[test]
    fn no_run_of_words_makes_it_panic(
        words in proptest::collection::vec(
            proptest::sample::select(alloc::vec![
                "delay", "rate", "loss", "gemodel", "queue", "red", "fair", "codel", "outage", "at",
                "for", "fade", "limit", "1", "1e400", "99999999999999999999", "1%", "é", "bdp",
                "1bdp", "forward", "profile", "geo",
            ]),
            0..12,
        )
    ) {
        if let Ok(link) = parse_link(&words.join(" ")) {
            drop(link.validate());
        }
    }
}
