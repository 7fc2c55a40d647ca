use super::*;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static PAGE: LazyLock<publication::Page> = LazyLock::new(|| {
    let text = r#"
        title = "All"
        [[claim]]
        id = "x"
        name = "x of p3"
        place = "table 1"
        value = 3.5
        unit = "m"
        tolerance = { absolute = 0.5, because = "it is uniform" }
        reason = "it is uniform"
    "#;
    publication::Page::parse("counted", text)
});

static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Counts executed jobs in `RUNS`.
static COUNTED: Entry = Entry {
    id: "counted-1999",
    title: "Counted",
    source: "nobody",
    about: "four points",
    replications: 3,
    live: None,
    parameters: &[
        Parameter {
            name: "scale",
            about: "factor",
            default: 1.0,
            min: 0.0,
            max: 4.0,
            whole: false,
        },
        Parameter { name: "times", about: "count", default: 1.0, min: 1.0, max: 4.0, whole: true },
    ],
    plan: |setting| {
        let (scale, replications) = (setting.get("scale"), setting.replications);
        let point = |index: u32| {
            Point::new("s", format!("p{index}"), replications, move |draw| {
                RUNS.fetch_add(1, Ordering::Relaxed);
                let mut rng = units::RngStream::new(draw.seed, draw.run, "test");
                Ok(Values::new().with("x", scale * (f64::from(index) + rng.uniform())))
            })
        };
        (0..4).map(point).collect()
    },
    judge: |setting, results| {
        let mean = results.summary("s", "p3", "x");
        let gain = results.paired("s", "p3", "p2", "x", |a, b| a - b);
        assert!(
            (gain.mean - setting.get("scale")).abs() < 1e-12 && gain.half < 1e-9,
            "common chance falls out"
        );
        let table = Table {
            id: "ends".into(),
            title: "Its ends".into(),
            head: vec!["where".into(), "a|b".into()],
            rows: vec![vec!["low".into(), "3".into()], vec!["high".into(), "4".into()]],
        };
        let all = Section {
            title: "All".into(),
            cells: vec![PAGE.claim("x").number(mean)],
            ..Section::default()
        };
        let beside =
            Section { title: "CrossTraffic".into(), tables: vec![table], ..Section::default() };
        let drawn = Section { title: "Drawn".into(), ..Section::default() };
        Outcome { sections: vec![all, beside, drawn], ..Outcome::default() }
    },
};

/// A temporary folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bentpipe-lab-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn whole(ran: Vec<Ran>) -> Judged {
    match ran.into_iter().next() {
        Some(Ran::Whole(judged)) => *judged,
        other => panic!("not whole: {other:?}"),
    }
}

fn ran_now(options: &Options) -> (usize, Judged) {
    let before = RUNS.load(Ordering::Relaxed);
    let judged = whole(run(&[&COUNTED], options).unwrap());
    (RUNS.load(Ordering::Relaxed) - before, judged)
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// One test, because the counter is shared.
#[test]
fn results_are_resumed_and_merged() {
    let folder = Folder::new("resume");
    let mut options = Options::new(&folder.0);
    let (runs, first) = ran_now(&options);
    assert_eq!((runs, first.jobs), (12, 12));
    assert_eq!(first.outcome.count(Verdict::Agrees), 1);
    assert_eq!(first.command, "bentpipe lab run counted-1999 --seed 1");
    let results = text(&folder.0, "results.json");
    assert!(results.contains("\"verdict\": \"agrees\""), "{results}");
    assert!(text(&folder.0, "report.html").contains("x of p3"));
    assert!(text(&folder.0, "counted-1999/cells.csv").starts_with("name,kind,evidence,place"));
    let overview = text(&folder.0, "overview.md");
    assert!(overview.contains("| counted-1999 | 1 of 1 | – |"), "{overview}");
    assert!(overview.ends_with("| All | 1 of 1 | – |\n"), "{overview}");
    let page = text(&folder.0, "counted-1999/cells.md");
    assert!(page.contains("simulated: 1 of 1 cells agree, 1 of 1 numbers and 0 of 0"), "{page}");
    assert!(page.contains("| within 0.5: it is uniform | agrees |"), "{page}");
    let table = "## CrossTraffic\n\n### Its ends\n\n| where | a\\|b |\n|---|---|\n| low | 3 |\n| high | 4 |\n";
    assert!(page.ends_with(table), "its tables are on the page, and no empty part: {page}");

    // Finished jobs are not repeated; more replications run only the new ones.
    assert_eq!(ran_now(&options), (0, first.clone()));
    options.replications = Some(5);
    assert_eq!(ran_now(&options).0, 8);
    options.replications = None;
    assert_eq!(ran_now(&options), (0, first.clone()), "the fourth and fifth do not count now");

    // Another seed or parameter has another store.
    options.seed = 2;
    assert_eq!(ran_now(&options).0, 12);
    options.set = vec!["scale=2".into()];
    let (runs, scaled) = ran_now(&options);
    assert_eq!(runs, 12);
    assert_eq!(scaled.command, "bentpipe lab run counted-1999 --seed 2 --set scale=2");

    // Merged shards give the same results.
    let parts: Vec<Folder> = (1..=3).map(|part| Folder::new(&format!("part{part}"))).collect();
    for (part, folder) in (1..).zip(&parts) {
        let options = Options { shard: Some((part, 3)), ..Options::new(&folder.0) };
        let ran = run(&[&COUNTED], &options).unwrap();
        assert_eq!(ran, [Ran::Part { id: "counted-1999", done: 4, jobs: 12 }]);
    }
    let merged = Folder::new("merged");
    let from: Vec<PathBuf> = parts.iter().map(|part| part.0.clone()).collect();
    assert_eq!(merge(&from, &merged.0).unwrap(), 12);
    assert_eq!(merge(&from, &merged.0).unwrap(), 0);
    assert_eq!(ran_now(&Options::new(&merged.0)), (0, first));
    assert_eq!(text(&merged.0, "results.json"), results);
    let nothing = merge(&[merged.0.join("counted-1999")], &folder.0).unwrap_err().to_string();
    assert!(nothing.ends_with("found no results of `lab run`"), "{nothing}");
}

#[test]
fn invalid_options_are_reported_with_the_accepted_values() {
    let message = |change: &dyn Fn(&mut Options)| {
        let mut options = Options::new("/nonexistent");
        change(&mut options);
        run(&[&COUNTED], &options).unwrap_err().to_string()
    };
    let set = |word: &'static str| message(&move |options| options.set = vec![word.into()]);
    assert_eq!(set("scale=9"), "scale: found \"9\", expected 0 to 4");
    assert_eq!(set("scale=NaN"), "scale: found \"NaN\", expected 0 to 4");
    assert_eq!(set("times=2.5"), "times: found \"2.5\", expected a whole number from 1 to 4");
    assert_eq!(set("times=5"), "times: found \"5\", expected a whole number from 1 to 4");
    assert_eq!(set("skale=1"), "--set: found \"skale\", expected one of scale, times");
    assert_eq!(set("scale"), "--set: found \"scale\", expected NAME=VALUE");
    let shard = message(&|options| options.shard = Some((5, 4)));
    assert_eq!(shard, "--shard: found 5/4, expected 1/4 to 4/4");
    assert_eq!(
        message(&|options| options.replications = Some(0)),
        "--replications: found 0, expected 1 to 10000"
    );
    let measured = message(&|options| options.measured = Some("/nonexistent.json".into()));
    assert!(measured.contains("/nonexistent.json"), "{measured}");
    let live = message(&|options| options.live = true);
    assert!(live.starts_with("--live: found nothing to run live, expected one of "), "{live}");
    let unknown = choose(&["moon-1969".to_owned()]).unwrap_err().to_string();
    assert!(unknown.starts_with("experiment: found \"moon-1969\", expected elaasar-2003"));
    assert_eq!(choose(&["all".to_owned()]).unwrap().len(), ALL.len());
    assert!(choose(&["all".to_owned(), "moon-1969".to_owned()]).is_err());
    let folder = Folder::new("empty");
    let nothing = report(&folder.0).unwrap_err().to_string();
    assert!(nothing.contains("found no results"), "{nothing}");
}

#[test]
fn a_malformed_store_is_reported_with_its_line() {
    let folder = Folder::new("broken");
    let store = folder.0.join("counted-1999/store");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(store.join("x.jsonl"), "half a li").unwrap();
    let error = merge(std::slice::from_ref(&folder.0), &folder.0).unwrap_err().to_string();
    assert!(error.contains("x.jsonl, line 1: "), "{error}");
}

#[test]
fn entries_are_complete() {
    for entry in ALL {
        let codes = env!("BENTPIPE_LAB_CODES");
        let folder = format!("{}=", entry.id.replace('-', "_"));
        assert!(codes.contains(&folder), "{}: no folder of its name", entry.id);
        for parameter in entry.parameters {
            let allowed = parameter.min..=parameter.max;
            assert!(allowed.contains(&parameter.default), "{}", parameter.name);
            assert!(!parameter.whole || parameter.default.fract() == 0.0, "{}", parameter.name);
        }
    }
}

/// Without results every value is NaN; every claim must still have an entry in its data file and a
/// measure.
#[test]
fn every_claim_has_a_measure() {
    for entry in ALL {
        let setting = Options::new("unused").setting(entry).unwrap();
        let outcome = (entry.judge)(&setting, &Results::partial());
        let cells: Vec<&Cell> = outcome.cells().collect();
        assert!(cells.len() > 10, "{}: {} cells", entry.id, cells.len());
        assert!(cells.iter().all(|cell| !cell.place.is_empty() && !cell.criterion.is_empty()));
        assert!(!outcome.summary.is_empty() && !outcome.set_up.is_empty(), "{}", entry.id);
        let words = outcome.summary.iter().chain(outcome.set_up.iter().map(|line| &line.ours));
        let words = words.chain(outcome.sections.iter().flat_map(|section| &section.text));
        for text in words {
            assert!(!text.contains('{'), "{}: a name without a value in {text:?}", entry.id);
        }
    }
}

#[test]
fn points_of_an_experiment_have_distinct_keys() {
    for entry in ALL {
        let setting = Options::new("unused").setting(entry).unwrap();
        let plans = std::iter::once(entry.plan).chain(entry.live.map(|live| live.plan));
        for plan in plans {
            let points = plan(&setting);
            runner::check_keys(entry, &points).unwrap();
            assert!(points.len() > 10, "{}: {} points", entry.id, points.len());
        }
    }
}
