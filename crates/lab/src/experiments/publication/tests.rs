use super::*;
use crate::experiments::{Values, Verdict};

const TEXT: &str = r#"
    title = "Section 6, {what}"
    evidence = "fitted"
    text = ["on gains {what}"]

    [[claim]]
    id = "gain"
    name = "gain"
    place = "section 6.1"
    value = 44.0
    unit = "%"
    tolerance = { within = 0.25, because = "a quarter is printed" }
    agrees = "so"
    differs = "not so"

    [[claim]]
    id = "more"
    name = "it is more"
    place = "section 6.2"
    evidence = "arithmetic"
    statement = "on is better"
    criterion = "above 1"
    agrees = "so"

    [[claim]]
    id = "nice"
    name = "it is nice"
    place = "section 7"
    statement = "it is nice"
    not_comparable = "a matter of taste"

    [[claim]]
    id = "table"
    place = "table 1"
    values = [[10.0, 20.0], [30, 40]]
    unit = "s"
    reason = "the line"

    [[figure]]
    id = "figure-1"
    title = "Figure 1"
    x = "loss (%)"
    y = "rate (bit/s)"
    log = "y"

    [[table]]
    id = "table-1"
    title = "Table 1"
    head = ["a", "b"]
"#;

fn page() -> Page {
    Page::parse("test", TEXT)
}

fn seen(mean: f64, half: f64) -> Summary {
    Summary { n: 8, mean, deviation: 1.0, half }
}

#[test]
fn a_number_agrees_within_tolerance_and_interval() {
    let page = page();
    let verdict = |mean, half| page.claim("gain").number(seen(mean, half)).verdict;
    assert_eq!(verdict(33.0, 0.0), Verdict::Agrees);
    assert_eq!(verdict(32.9, 0.0), Verdict::Differs);
    assert_eq!(verdict(30.0, 3.0), Verdict::Agrees);
    assert_eq!(verdict(58.1, 3.0), Verdict::Differs);
    assert_eq!(verdict(27.6, 30.0), Verdict::Agrees);
    assert_eq!(verdict(27.4, 30.0), Verdict::Differs, "chance alone is no agreement");
    let single = page.claim("gain").number(seen(44.0, f64::INFINITY));
    assert_eq!(
        (single.verdict, single.ci95, single.reason.as_str()),
        (Verdict::Agrees, None, "so")
    );
    assert_eq!(page.claim("gain").number(seen(1.0, 0.0)).reason, "not so");
}

#[test]
fn a_statement_must_hold_significantly() {
    let page = page();
    let of = |found: Found| {
        let cell = page.claim("more").found(found);
        (cell.verdict, cell.reason)
    };
    let above = |mean, half| of(Found::new("2").above(seen(mean, half), 1.0));
    assert_eq!(above(2.0, 0.5), (Verdict::Agrees, "so".to_owned()));
    let (verdict, reason) = above(2.0, 1.5);
    assert!(verdict == Verdict::Differs && reason.contains("chance alone"), "{reason}");
    let (verdict, reason) = of(Found::new("2").below(seen(2.0, 0.1), 1.0));
    assert!(verdict == Verdict::Differs && reason.contains("no reason is known"), "{reason}");
    let single = of(Found::new("2").between(seen(2.0, f64::INFINITY), 1.0, 3.0));
    assert_eq!(single.0, Verdict::Agrees, "a single value has its mean alone");
    let both = Found::new("").below(seen(0.0, 0.1), 1.0).above(seen(0.0, 0.1), 1.0);
    assert_eq!(of(both).0, Verdict::Differs, "all must hold");
}

#[test]
fn a_cell_has_its_evidence_and_its_criterion() {
    let page = page();
    let [gain, table] = ["gain", "table"].map(|id| page.claim(id).cell("x", 44.0, seen(1.0, 0.0)));
    assert_eq!((gain.evidence, table.evidence), (Evidence::Fitted, Evidence::Fitted));
    assert_eq!(gain.criterion, "within 25 %: a quarter is printed");
    assert_eq!(table.criterion, "within 10 %");
    let more = page.claim("more").found(Found::new("2").above(seen(2.0, 0.5), 1.0));
    assert_eq!((more.evidence, more.compared.len()), (Evidence::Arithmetic, 1));
    let one = more.compared[0];
    assert_eq!((one.value, one.ci95, one.bound), (2.0, Some([1.5, 2.5]), 1.0));
}

#[test]
#[should_panic(expected = "missing field `because`")]
fn another_tolerance_needs_a_reason() {
    Page::parse("x", "title = ''\ntolerance = { within = 0.5 }\n");
}

#[test]
fn numbers_of_a_table_are_separate_cells() {
    let page = page();
    let table = page.claim("table");
    let values: [[f64; 2]; 2] = table.values();
    assert_eq!(values, [[10.0, 20.0], [30.0, 40.0]]);
    let cell = table.cell("x", values[0][0], Summary::exact(10.9));
    assert_eq!((cell.name.as_str(), cell.verdict, cell.ci95), ("x", Verdict::Agrees, None));
    assert_eq!((cell.unit.as_str(), cell.reason.as_str()), ("s", "the line"));
    let exact: Tolerance = toml::from_str("because = \"a count\"").unwrap();
    let cell = table.cell_within("x", 10.0, Some(&exact), Summary::exact(10.5));
    assert_eq!(cell.verdict, Verdict::Differs);
    assert_eq!(cell.criterion, "exactly the published number: a count");
}

const MEASURES: &[(&str, Measure)] = &[
    number("gain", |results| results.summary("s", "gain", "x")),
    that("more", |results| {
        let more = results.summary("s", "more", "x");
        Found::new(format!("{:.0}", more.mean)).above(more, 1.0)
    }),
];

fn run(values: &[(&str, f64)], mut results: Results) -> Results {
    for (key, value) in values {
        results.insert("s", key, vec![Values::new().with("x", *value)]);
    }
    results
}

#[test]
fn a_page_is_evaluated_in_order() {
    let page = page();
    let results = run(&[("gain", 40.0), ("more", 0.5)], Results::default());
    let cells = page.judge(MEASURES, &results);
    let verdicts: Vec<_> = cells.iter().map(|cell| (cell.name.as_str(), cell.verdict)).collect();
    let expected = [
        ("gain", Verdict::Agrees),
        ("it is more", Verdict::Differs),
        ("it is nice", Verdict::NotComparable),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(cells[2].reason, "a matter of taste");
}

#[test]
fn only_points_that_were_run_live_are_compared() {
    let twin = run(&[("gain", 40.0), ("more", 2.0)], Results::default());
    let live = run(&[("more", 0.5)], Results::partial());
    let found = page().beside(MEASURES, &twin, &live);
    let verdicts: Vec<_> =
        found.iter().map(|(twin, live)| (twin.name.as_str(), twin.verdict, live.verdict)).collect();
    assert_eq!(verdicts, [("it is more", Verdict::Agrees, Verdict::Differs)]);
}

#[test]
fn a_claim_has_the_keys_of_the_one_it_is_like() {
    let more = "[[claim]]\nid = 'other'\nlike = 'gain'\nvalue = 10.0\ndiffers = 'why'\n";
    let page = Page::parse("test", &format!("{TEXT}\n{more}"));
    let cell = page.claim("other").number(seen(13.0, 0.0));
    assert_eq!(
        (cell.name.as_str(), cell.unit.as_str(), cell.reason.as_str()),
        ("gain", "%", "why")
    );
    assert_eq!(cell.criterion, "within 25 %: a quarter is printed");
}

#[test]
fn text_and_headings_come_from_the_file() {
    let page = page();
    let section = page.section_with(&[("what", "much".to_owned())]);
    assert_eq!(
        (section.title.as_str(), section.text[0].as_str()),
        ("Section 6, {what}", "on gains much")
    );
    let figure = page.figure("figure-1", Vec::new());
    assert_eq!((figure.title.as_str(), figure.x.log, figure.y.log), ("Figure 1", false, true));
    assert_eq!(page.table("table-1", [vec!["1".to_owned(), "2".to_owned()]]).head, ["a", "b"]);
}

#[test]
#[should_panic(expected = "papers/x.toml")]
fn an_unknown_key_is_refused() {
    Page::parse("x", "title = \"a\"\n[[claim]]\nid = \"b\"\nplace = \"c\"\nvalu = 1.0\n");
}
