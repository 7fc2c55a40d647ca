use super::*;
use std::fs;
use std::path::PathBuf;

/// A folder for one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.0.join(name), text).unwrap();
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

const SMALL: &str = r#"duration = 20
replications = 3
[links]
a-hub = "rate 100mbit"
hub-terminal = { profile = "geo", rate = "2mbit", loss = "1%" }
terminal-b = "rate 100mbit"
[traffic.file]
kind = "bulk"
from = "a"
to = "b"
bytes = "1MB"
[traffic.calls]
kind = "constant"
from = "b"
to = "a"
rate = "64kbit"
packet = 200
[sweep]
gateways.kind = ["none", "single", "stp", "pair"]
"#;

fn whole(path: &Path, options: &Options) -> (String, bool) {
    match run(&Source::read(path).unwrap(), options, None).unwrap() {
        Report::Whole { text, met, .. } => (text, met),
        part @ Report::Part { .. } => panic!("{part:?}"),
    }
}

fn error(folder: &Folder, text: &str) -> String {
    let path = folder.file("wrong.toml", text);
    let error =
        run(&Source::read(&path).unwrap(), &Options::new(&folder.0), None).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.0.display()), "")
}

#[test]
fn shards_merge_to_the_results_of_one_run_and_equal_results_do_not_differ() {
    let folder = Folder::new("scenario-shards");
    let record = "[record]\nseries = \"500ms\"\ncapture = [\"hub-terminal\"]\n";
    let expect = "[[expect]]\nmeasure = \"file.completed\"\nat = { \"gateways.kind\" = \"pair\" }\n\
                  value = 100\n[[expect]]\nmeasure = \"calls.loss\"\nabove = 50\n";
    let path = folder.file("small.toml", &format!("{SMALL}{record}{expect}"));
    let options = |out: &str| Options::new(folder.0.join(out));
    let (text, met) = whole(&path, &options("one"));
    assert!(!met && text.contains("1 of 5 criteria are met"), "{text}");
    for part in [1, 2] {
        let options = Options { shard: Some((part, 2)), ..options(&format!("part{part}")) };
        let report = run(&Source::read(&path).unwrap(), &options, None).unwrap();
        assert_eq!(report, Report::Part { name: "small".into(), done: 6, jobs: 12 });
    }
    let parts = ["part1", "part2"].map(|part| folder.0.join(part));
    let merged = crate::experiments::merge(&parts, &folder.0.join("merged")).unwrap();
    assert_eq!(merged, 12);
    assert_eq!(whole(&path, &options("merged")).0, text);
    let [one, merged] = ["one", "merged"].map(|out| folder.0.join(out).join("small"));
    for name in ["runs.csv", "cells.csv", "expect.csv", "series/4/hub-rate.csv"] {
        let [one, merged] = [&one, &merged].map(|out| fs::read(out.join(name)).unwrap());
        assert!(!one.is_empty() && one == merged, "{name}");
    }
    assert!(fs::metadata(one.join("capture/1/hub-terminal.pcapng")).unwrap().len() > 100_000);
    assert!(one.join("figures/received-file.svg").exists());
    let same = compare(&one, &merged).unwrap();
    assert!(same.contains("\n0 of ") && same.contains("| equal |"), "{same}");
    let head = fs::read_to_string(one.join("cells.csv")).unwrap();
    let expected = "point,gateways.kind,replications,calls.loss (%),calls.loss (%) ci95_low,";
    assert!(head.starts_with(expected), "{head}");
}

#[test]
fn quic_is_a_transport_of_traffic() {
    let folder = Folder::new("scenario-quic");
    let text =
        SMALL.replace("bytes = \"1MB\"", "bytes = \"1MB\"\ntcp = \"quic\"").replace("1%", "0%");
    let text = text.replace("[\"none\", \"single\", \"stp\", \"pair\"]", "[\"none\", \"pair\"]");
    let path = folder.file("quic.toml", &format!("{text}[record]\ncapture = [\"hub-terminal\"]\n"));
    whole(&path, &Options::new(&folder.0));
    let cells = crate::csv::Table::read(&folder.0.join("quic/cells.csv")).unwrap();
    let column = cells.column("file.completed (%)").unwrap();
    // By QUIC end to end, and forwarded by gateways.
    assert!(cells.rows.iter().all(|row| row[column] == "100"), "{:?}", cells.rows);
}

#[test]
fn keys_of_the_command_line_replace_those_of_the_file() {
    let folder = Folder::new("scenario-set");
    let path = folder.file("small.toml", SMALL);
    let set = ["sweep.gateways.kind=[\"pair\"]", "links.hub-terminal.loss=0%", "replications=1"];
    let out = |name: &str, set: &[&str]| {
        let set = set.iter().map(|word| (*word).to_owned()).collect();
        let options = Options { set, ..Options::new(folder.0.join(name)) };
        whole(&path, &options);
        folder.0.join(name).join("small")
    };
    let clean = out("clean", &set);
    let runs = fs::read_to_string(clean.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 2, "{runs}");
    let lossy = out("lossy", &[set[0]]);
    let compared = compare(&clean, &lossy).unwrap();
    assert!(compared.contains("file.goodput"), "{compared}");
}

#[test]
fn errors_name_file_line_key_found_and_expected() {
    let folder = Folder::new("scenario-errors");
    let cases = [
        (
            SMALL.replace("loss =", "los ="),
            "wrong.toml:5: links.hub-terminal.los: found an unknown key, expected one of profile, \
             words, ",
        ),
        (SMALL.replace("loss =", "los ="), "; the nearest key is `loss`"),
        (
            SMALL.replace("1%", "1x"),
            "wrong.toml:5: links.hub-terminal.loss: found \"1x\" in \"1x\", expected a share, such \
             as 0.1%",
        ),
        (
            SMALL.replace("\"1MB\"", "\"1 apple\""),
            "wrong.toml:11: traffic.file.bytes: found \"1 apple\", expected a number of bytes",
        ),
        (
            SMALL.replace("from = \"a\"", "from = \"c\""),
            "wrong.toml:9: traffic.file.from: found \"c\", expected a node of a link: a, b, hub, \
             terminal",
        ),
        (
            SMALL.replace("\"single\"", "\"double\""),
            "wrong.toml:19: gateways.kind: found \"double\", expected one of none, pair, single, \
             stp",
        ),
        (
            SMALL.replace("rate = \"64kbit\"\n", ""),
            "traffic.calls.rate: found nothing, expected a rate, such as \"1mbit\"",
        ),
        (
            SMALL.replace("duration = 20\n", ""),
            "wrong.toml:1: duration: found nothing, expected a value",
        ),
        (SMALL.replace("replications = 3", "replications = x"), "wrong.toml:2: found `"),
        (
            format!("{SMALL}[[expect]]\nmeasure = \"file.godput\"\nabove = 1\n"),
            "found the measure \"file.godput\", expected one of calls.loss, ",
        ),
        (
            SMALL.replace("bytes = \"1MB\"", "tcp = \"tahoe\""),
            "wrong.toml:11: traffic.file.tcp: found \"tahoe\", expected one of linux-cubic, ",
        ),
        (SMALL.replace("bytes = \"1MB\"", "tcp = \"tahoe\""), ", probing, quic"),
        (
            SMALL.replace("loss = \"1%\"", "trace = \"none.csv\""),
            "wrong.toml:5: links.hub-terminal.trace: found \"none.csv\", No such file",
        ),
    ];
    for (text, expected) in cases {
        let found = error(&folder, &text);
        assert!(found.contains(expected), "found {found}\nexpected {expected}");
    }
}

#[test]
fn a_trace_changes_the_rate() {
    let folder = Folder::new("scenario-trace");
    folder.file("course.csv", "time_s,rate_bit_s\n0,2000000\n10,200000\n20,2000000\n");
    let text = SMALL.replace("loss = \"1%\"", "trace_forward = \"course.csv\"");
    let text = text.replace("[\"none\", \"single\", \"stp\", \"pair\"]", "[\"pair\"]");
    let text = text.replace("bytes = \"1MB\"", "bytes = \"9MB\"");
    let path = folder.file("trace.toml", &format!("{text}[record]\nseries = \"1s\"\n"));
    whole(&path, &Options { quick: true, ..Options::new(&folder.0) });
    let series = folder.0.join("trace/series/1/file-received.csv");
    let table = crate::csv::Table::read(&series).unwrap();
    let at = |second: usize| table.rows[second][1].parse::<f64>().unwrap();
    let (fast, slow) = (at(9) - at(5), at(19) - at(15));
    assert!(fast > 4.0 * 2e6 / 8.0 * 0.8 && slow < 4.0 * 2e5 / 8.0 * 1.1, "{fast} {slow}");
}

#[test]
fn example_files_run_and_meet_their_criteria() {
    let folder = Folder::new("scenario-examples");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/scenarios");
    let mut count = 0;
    for path in files::listed(&examples).unwrap() {
        if path.extension().is_some_and(|ending| ending == "toml") {
            count += 1;
            let (text, met) = whole(&path, &Options { quick: true, ..Options::new(&folder.0) });
            assert!(met, "{}:\n{text}", path.display());
        }
    }
    assert!(count >= 3, "{count} examples");
}

#[test]
fn rain_fade_of_the_examples_is_that_of_its_generator() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/scenarios");
    let made = std::process::Command::new("python3").arg(examples.join("generate.py")).output();
    let Ok(made) = made else {
        println!("skipped: python3 is not installed");
        return;
    };
    let stored = fs::read(examples.join("rain.csv")).unwrap();
    assert!(made.stdout == stored, "rain.csv: {}", String::from_utf8_lossy(&made.stderr));
}
