//! The benchmarks of gateways, each in its smallest form: they run and print figures. How large
//! these are is no test's affair.

use serde_json::Value;
use std::process::Command;

/// Runs a benchmark and returns its report; `None` where the machine allows no namespaces.
fn bench(arguments: &[&str]) -> Option<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-lab"));
    let output = command.arg("bench").args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no network namespaces here") {
        eprintln!("skipped: {errors}");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["notes"], Value::Array(Vec::new()), "{errors}");
    let results = report["results"].as_array().expect("results");
    assert!(!results.is_empty(), "{errors}");
    for result in results {
        assert!(result["name"].is_string() && result["unit"].is_string(), "{result}");
        assert!(result["value"].is_f64() && result["spread"].is_f64(), "{result}");
        assert!(result["against"].is_object(), "{result}");
    }
    Some(report)
}

fn result<'a>(report: &'a Value, name: &str) -> &'a Value {
    let results = report["results"].as_array().expect("results");
    results.iter().find(|result| result["name"] == name).expect(name)
}

#[test]
fn bulk_data_has_a_rate_and_costs_beside_other_systems() {
    let arguments = ["gateway", "--quick", "--seconds", "0.3", "--only", "upload-1"];
    let Some(report) = bench(&arguments) else { return };
    let rate = result(&report, "upload-1/rate");
    assert_eq!(rate["unit"], "Gbit/s");
    for system in ["kernel-tcp", "splice-proxy"] {
        assert!(rate["against"][system]["value"].as_f64() > Some(0.0), "{rate}");
    }
    assert!(result(&report, "upload-1/memory-later-hub")["value"].as_f64() > Some(0.0));
}

#[test]
fn connections_and_requests_take_time() {
    let Some(report) = bench(&["connect", "--quick", "--seconds", "0.3"]) else { return };
    for name in ["connect-1/rate", "connect-100/rate", "request/latency-p50"] {
        assert!(result(&report, name)["value"].as_f64() > Some(0.0), "{name}");
    }
    assert!(result(&report, "request/added-p99")["against"]["splice-proxy"].is_object());
}

#[test]
fn idle_connections_are_counted_at_both_gateways() {
    let Some(report) = bench(&["idle", "--quick", "--connections", "30"]) else { return };
    let figures = ["memory-terminal", "memory-hub", "idle-cpu-terminal", "idle-cpu-hub"];
    for figure in figures {
        assert!(result(&report, &format!("idle-30/{figure}"))["against"].is_object());
    }
}

#[test]
fn a_hub_of_a_few_terminals_is_measured() {
    let arguments = ["scale", "--terminals", "3", "--active", "2", "--seconds", "0.5"];
    let Some(report) = bench(&arguments) else { return };
    for figure in ["start-up", "requests", "latency-p99", "reload"] {
        let value = &result(&report, &format!("terminals-3/{figure}"))["value"];
        assert!(value.as_f64() > Some(0.0), "{figure}: {value}");
    }
}

#[test]
fn packets_have_a_cost() {
    let arguments = ["codec", "--quick", "--runs", "1", "--only", "null-stream"];
    let Some(report) = bench(&arguments) else { return };
    assert!(result(&report, "null-stream/transmit")["value"].as_f64() > Some(0.0));
}

#[test]
fn a_system_from_a_command_file_is_measured() {
    let name = format!("bentpipe-systems-{}.toml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let text = "[[system]]\nname = \"proxies\"\nclients = \"forwarded\"\n\
                hub = \"exec {lab} bench end splice {hub}:7000 {server}:7000\"\n\
                terminal = \"exec {lab} bench end splice {terminal_lan}:7000 {hub}:7000\"\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let arguments =
        ["gateway", "--quick", "--seconds", "0.3", "--only", "download-1", "--against", path];
    let report = bench(&arguments);
    let _ = std::fs::remove_file(&file);
    let Some(report) = report else { return };
    let rate = result(&report, "download-1/rate");
    assert!(rate["against"]["proxies"]["value"].as_f64() > Some(0.0), "{rate}");
}

#[test]
fn errors_of_wrong_arguments_have_the_expected_form() {
    let said = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe-lab"));
        let output = command.arg("bench").args(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&["gateway", "--against", "/nowhere/systems.toml"]).contains("/nowhere"));
    assert!(said(&["codec", "--only", "moon"]).contains("expected (a part of) one of"));
    let cases = said(&["gateway", "--only", "moon"]);
    assert!(cases.contains("download-1") || cases.contains("no network namespaces"), "{cases}");
}
