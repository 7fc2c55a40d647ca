//! Scenario files on the command line: the exit code, and a sweep by the script for Slurm.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const LAB: &str = env!("CARGO_BIN_EXE_bentpipe-lab");

const SCENARIO: &str = r#"duration = 5
replications = 2
[links]
a-b = "rate 1mbit delay 50ms"
[traffic.file]
kind = "bulk"
from = "a"
to = "b"
[sweep]
links.a-b.loss = ["0%", "5%"]
[[expect]]
measure = "file.goodput"
at = { "links.a-b.loss" = "0%" }
above = 0.5
"#;

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(LAB).args(words).current_dir(folder).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn scenario_runs_in_parts_and_its_criteria_set_the_exit_code() {
    let folder = std::env::temp_dir().join(format!("bentpipe-cli-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("small.toml"), SCENARIO).expect("a file");
    let one = run(&folder, &["run", "small.toml", "--out", "one"]);
    assert!(one.status.success(), "{}", text(&one.stderr));
    assert!(text(&one.stdout).contains("1 of 1 criteria are met"), "{}", text(&one.stdout));

    // Three tasks of an array, one after another.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/scenarios/sweep.slurm");
    for task in ["1", "2", "3"] {
        let task = Command::new("bash")
            .args([script.as_os_str(), "small.toml".as_ref()])
            .env("SLURM_ARRAY_TASK_ID", task)
            .env("SLURM_ARRAY_TASK_COUNT", "3")
            .env("BENTPIPE_LAB", LAB)
            .current_dir(&folder)
            .output()
            .expect("the script runs");
        assert!(task.status.success(), "{}", text(&task.stderr));
    }
    let merged = run(&folder, &["merge", "parts/1", "parts/2", "parts/3", "--out", "whole"]);
    assert!(text(&merged.stdout).starts_with("4 results"), "{}", text(&merged.stdout));
    let whole = run(&folder, &["run", "small.toml", "--out", "whole"]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    let same = run(&folder, &["compare", "one/small", "whole/small"]);
    let compared = text(&same.stdout);
    assert!(compared.contains("\n0 of ") && compared.contains("equal"), "{compared}");

    fs::write(folder.join("hard.toml"), SCENARIO.replace("0.5", "1.5")).expect("a file");
    let hard = run(&folder, &["run", "hard.toml"]);
    assert_eq!(hard.status.code(), Some(1), "a criterion is not met");
    assert!(text(&hard.stdout).contains("NOT MET"), "{}", text(&hard.stdout));
    assert!(text(&hard.stderr).contains("not all criteria are met: hard.toml"));
    fs::write(folder.join("wrong.toml"), SCENARIO.replace("bulk", "bulky")).expect("a file");
    let wrong = run(&folder, &["run", "wrong.toml"]);
    let expected = "wrong.toml:6: traffic.file.kind: found \"bulky\", expected one of bulk, ";
    assert!(text(&wrong.stderr).contains(expected), "{}", text(&wrong.stderr));
    fs::remove_dir_all(&folder).expect("it was there");
}
