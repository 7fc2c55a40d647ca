//! The demo as a user runs it, on a short link with a small file.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A temporary directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("link"), "delay 10ms rate 20mbit limit 200\n").unwrap();
        Self(path)
    }

    fn demo(&self, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_bentpipe-lab"))
            .current_dir(&self.0)
            .args(["demo", "--link", "link", "--size", "300KB", "--json", "out.json"])
            .args(more)
            .output()
            .unwrap()
    }

    fn json(&self) -> Value {
        let text = std::fs::read_to_string(self.0.join("out.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Checks the properties of every run.
fn check_run(run: &Value) {
    for key in ["goodput_bits_per_second", "bound_share", "return_bits_per_second"] {
        assert!(run[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {run}");
    }
    for key in ["request_4k_seconds", "page_seconds", "first_byte_seconds"] {
        // At least one round trip.
        assert!(run[key].as_f64().is_some_and(|value| value >= 0.02), "{key}: {run}");
    }
    assert_eq!(run["checksums_match"], true, "{run}");
    assert_eq!(run["bytes"], 300_000);
    assert_eq!(run["checksum"]["received"], run["checksum"]["expected"]);
}

fn assert_picture(scratch: &Scratch) {
    let png = std::fs::read(scratch.0.join("bentpipe-demo.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let svg = std::fs::read_to_string(scratch.0.join("bentpipe-demo.svg")).unwrap();
    assert!(svg.contains("bentpipe"));
}

#[test]
fn four_transports_end_with_a_table_json_and_a_plot() {
    let scratch = Scratch::new("demo");
    let output = scratch.demo(&[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("no network namespaces here") {
        eprintln!("skipped: {stderr}");
        return;
    }
    assert!(output.status.success(), "{stderr}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("cubic") && table.contains("retransmissions"), "{table}");
    let json = scratch.json();
    let runs = json["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(names, ["cubic", "bbr", "single", "bentpipe"]);
    runs.iter().for_each(check_run);
    assert_picture(&scratch);
}

#[test]
fn without_permission_the_proxy_is_measured_on_loopback() {
    let scratch = Scratch::new("loopback");
    let output = scratch.demo(&["--loopback"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("SOCKS5 proxy"), "{stderr}");
    let json = scratch.json();
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(1));
    check_run(&json["runs"][0]);
    assert_picture(&scratch);
}

#[test]
fn invalid_arguments_are_reported_with_the_expected_values() {
    let scratch = Scratch::new("wrong");
    let said = |arguments: &[&str]| {
        let output = scratch.demo(arguments);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&["--seed", "x"]).contains("--seed"));
    let bad = scratch.0.join("bad");
    std::fs::write(&bad, "delay 10ms\nrate 20mbits\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_bentpipe-lab"))
        .args(["demo", "--link"])
        .arg(&bad)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("bad: line 2, column 6") && text.contains("20mbits"), "{text}");
}
