//! Plans and classes.

use super::*;
use crate::config::for_relay;
use relay::Level;

const HUB: &str = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n\
                   rate_up = \"4mbit\"\nrate_down = \"20mbit\"\n";

fn hub(more: &str) -> HubSection {
    let text = format!("{HUB}{more}");
    let config = Config::parse("hub.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let Role::Hub(section) = config.role else { panic!("a hub") };
    section
}

/// Returns the first mistake: its line after the head, its key, and its text.
fn mistake(more: &str) -> (usize, String, String) {
    let error = Config::parse("hub.toml", &format!("{HUB}{more}")).unwrap_err();
    let first = &error.mistakes[0];
    (first.line - HUB.lines().count(), first.key.clone(), error.to_string())
}

#[test]
fn terminals_have_their_configured_plans() {
    let section = hub(
        "[[plan]]\nname = \"gold\"\ncommitted_down = \"2mbit\"\npeak_down = \"9mbit\"\nweight = 3\n\
         [[plan]]\nname = \"fleet\"\nshared_weight = true\nterminals = [\"boat\", \"ferry\"]\n\
         [[plan]]\nname = \"default\"\npeak_up = \"1mbit\"\n\
         [[terminal]]\nname = \"clinic\"\nplan = \"gold\"\n\
         [[terminal]]\nname = \"clinic/second\"\n[[terminal]]\nname = \"boat\"\n",
    );
    let plans = for_relay(&section.plans, &section.terminals);
    let of = |name: &str| plans.plans[plans.of(name)].name.as_str();
    assert_eq!((of("clinic"), of("clinic/second"), of("boat")), ("gold", "gold", "fleet"));
    assert_eq!((of("ferry"), of("other")), ("fleet", "default"));
    assert_eq!(plans.plans[0].up.peak, Some(BitRate::from_mbps(1)));
    let gold = &plans.plans[plans.of("clinic")];
    assert_eq!((gold.weight, gold.down.peak), (3, Some(BitRate::from_mbps(9))));
    let none = hub("");
    assert_eq!(for_relay(&none.plans, &none.terminals), relay::Plans::default());
}

#[test]
fn contradictory_plans_are_rejected_with_their_line() {
    for (more, line, key, words) in [
        (
            "committed_down = \"5mbit\"\npeak_down = \"4mbit\"",
            3,
            "plan.committed_down",
            "plan.peak_down",
        ),
        ("peak_down = \"21mbit\"", 3, "plan.peak_down", "at most link.rate_down, 20.000 Mbit/s"),
        ("weight = 2\ncommitted_up = \"5mbit\"", 4, "plan.committed_up", "link.rate_up"),
        ("total_up = \"1mbit\"\npeak_up = \"2mbit\"", 4, "plan.peak_up", "plan.total_up"),
        ("weight = 0", 3, "plan.weight", "1 to 1000"),
        ("shared_weight = 1", 3, "plan.shared_weight", "true or false"),
        ("peak_down = \"auto\"", 3, "plan.peak_down", "a rate"),
    ] {
        let (at, named, error) = mistake(&format!("[[plan]]\nname = \"gold\"\n{more}\n"));
        assert_eq!((at, named.as_str()), (line, key), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn unknown_and_ambiguous_plans_are_rejected() {
    let (line, key, error) = mistake("[[terminal]]\nname = \"boat\"\nplan = \"gold\"\n");
    assert_eq!((line, key.as_str()), (3, "terminal.plan"));
    assert!(error.contains("of which there is none"), "{error}");
    let gold = "[[plan]]\nname = \"gold\"\nterminals = \"boat\"\n";
    let (line, _, error) = mistake(&format!(
        "{gold}[[plan]]\nname = \"tin\"\n[[terminal]]\nname = \"b\"\nplan = \"good\"\n"
    ));
    assert_eq!(line, 8);
    assert!(error.contains("\"gold\" or \"tin\""), "{error}");
    let twice = mistake(&format!("{gold}{gold}")).2;
    assert!(twice.contains("each plan once") && twice.contains("each terminal once"), "{twice}");
    let tin = "[[plan]]\nname = \"tin\"\n[[terminal]]\nname = \"boat\"\nplan = \"tin\"\n";
    let (_, key, error) = mistake(&format!("{gold}{tin}"));
    assert_eq!(key, "terminal.plan");
    assert!(error.contains("one plan for each terminal"), "{error}");
}

#[test]
fn overcommitment_of_the_link_is_reported() {
    let plan =
        "[[plan]]\nname = \"gold\"\ncommitted_down = \"8mbit\"\nterminals = [\"a\", \"b\"]\n";
    let text = format!("{HUB}{plan}");
    let config = Config::parse("hub.toml", &text).unwrap();
    assert!(!config.to_string().contains("are committed"), "it fits: {config}");
    let plan = "plan \"gold\", weight 1 of each\n  down: committed 8.000 Mbit/s\n  of a, b\n";
    assert!(config.to_string().contains(plan), "{config}");
    let text = text.replace("[\"a\", \"b\"]", "[\"a\", \"b\", \"c\"]");
    let config = Config::parse("hub.toml", &text).unwrap();
    let words = "24.000 Mbit/s are committed to terminals in all, and 95 % of link.rate_down are 19.000 Mbit/s";
    assert!(config.to_string().contains(words), "{config}");
    let warnings = crate::check(&config);
    assert!(warnings.iter().any(|warning| warning.key == "plan" && warning.text.contains(words)));
}

#[test]
fn overcommitment_of_a_plan_is_reported() {
    let plan = "[[plan]]\nname = \"gold\"\ncommitted_up = \"1mbit\"\ntotal_up = \"2mbit\"\n\
                terminals = [\"a\", \"b\", \"c\"]\n";
    let config = Config::parse("hub.toml", &format!("{HUB}{plan}")).unwrap();
    let words = "3.000 Mbit/s are committed to the terminals of plan \"gold\", and its total_up is 2.000 Mbit/s";
    assert!(config.to_string().contains(words), "{config}");
    // On the link no more than the aggregate rate is committed, which fits.
    assert!(!config.to_string().contains("link.rate_up are"), "{config}");
    let Role::Hub(section) = &config.role else { panic!("a hub") };
    let found = commitments(&config.link, section);
    let of_link = |one: &&Commitment| one.plan.is_none();
    let link: Vec<(&str, u64)> =
        found.iter().filter(of_link).map(|one| (one.direction, one.committed_bps)).collect();
    assert_eq!(link, [("up", 2_000_000), ("down", 0)]);
}

#[test]
fn classes_are_read() {
    let section = hub("[[class]]\nname = \"voice\"\ndscp = [46, 34]\npriority = \"urgent\"\n\
         [[class]]\nname = \"bulk\"\nports = \"8000-8100\"\npriority = \"background\"\nweight = 3\n");
    let levels: Vec<(Level, u32)> =
        section.classes.iter().map(|class| (class.level, class.weight)).collect();
    assert_eq!(levels, [(Level::Urgent, 1), (Level::Background, 3)]);
    let empty = mistake("[[class]]\nname = \"all\"\npriority = \"normal\"\n");
    assert!(empty.2.contains("at least one of ports, networks and dscp"), "{}", empty.2);
    let (line, key, _) = mistake("[[class]]\nname = \"x\"\nports = 22\npriority = \"high\"\n");
    assert_eq!((line, key.as_str()), (4, "class.priority"));
    let (line, key, _) = mistake("[[class]]\nname = \"x\"\ndscp = 64\npriority = \"normal\"\n");
    assert_eq!((line, key.as_str()), (3, "class.dscp"));
}

#[test]
fn plans_and_classes_change_at_reload() {
    let text = |weight: &str, level: &str, places: &str| {
        let more = format!(
            "[[plan]]\nname = \"gold\"\nweight = {weight}\nterminals = \"boat\"\n\
             [[class]]\nname = \"x\"\nports = 22\npriority = \"{level}\"\n[limits]\nterminals = {places}\n"
        );
        Config::parse("hub.toml", &format!("{HUB}{more}")).unwrap()
    };
    let old = text("1", "urgent", "10");
    let (merged, changes) = old.merged(&text("2", "normal", "20"));
    let live: Vec<(&str, bool)> =
        changes.iter().map(|change| (change.key.as_str(), change.live)).collect();
    assert_eq!(
        live,
        [("class 1", true), ("limits.terminals", false), ("plan.\"gold\".weight", true)]
    );
    let Role::Hub(section) = merged.role else { panic!("a hub") };
    assert_eq!(section.plans[0].plan.weight, 2);
}
