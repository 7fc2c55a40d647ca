//! Arrows between crates run down only, and pure crates stay pure.

use crate::report::Report;
use crate::sources;
use serde_json::Value;
use std::process::Command;

/// Which of our crates each crate may use (`ARCHITECTURE.md`, "Crates and dependencies"), by
/// their folders.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("satlink", &["units"]),
    ("simtcp", &["units"]),
    ("xstp", &["units"]),
    ("association", &["units"]),
    ("rt", &["units", "satlink"]),
    ("relay", &["units", "xstp", "association"]),
    ("testbed", &["units", "satlink", "rt"]),
    ("sim", &["units", "satlink", "simtcp", "xstp", "association", "relay"]),
    ("endpoint", &["units", "satlink", "xstp", "relay", "rt"]),
    ("endpoint-c", &["endpoint"]),
    ("transfer", &["units", "endpoint"]),
    ("gateway", &["units", "xstp", "association", "relay", "rt"]),
    // The gateway only in tests: what looks at one must not need one.
    ("monitor", &["units", "rt", "gateway"]),
    (
        "lab",
        &[
            "units",
            "satlink",
            "xstp",
            "association",
            "relay",
            "rt",
            "sim",
            "simtcp",
            "testbed",
            "gateway",
            "endpoint",
        ],
    ),
    // The testbed and the lab only in tests: operators' machines need neither.
    (
        "cli",
        &[
            "units", "satlink", "relay", "rt", "endpoint", "transfer", "testbed", "gateway",
            "monitor", "lab",
        ],
    ),
    ("lab-cli", &["units", "satlink", "testbed", "lab", "cli"]),
    ("python", &["units", "lab"]),
    ("xtask", &[]),
];

/// What the crates that must not reach a clock, a socket or a file may use of others' work.
const PURE: &[(&str, &[&str])] = &[
    ("units", &["libm", "rand_core", "rand_pcg"]),
    ("satlink", &["libm"]),
    ("simtcp", &["libm"]),
    ("xstp", &["libm"]),
    ("association", &["xxhash-rust", "snow", "ring", "blake2", "base64"]),
    ("relay", &["slab", "smallvec", "zstd-safe"]),
    ("sim", &["serde", "serde_json", "slab", "smallvec"]),
];

/// Crates that cannot reach the standard library at all.
const NO_STD: &[&str] = &["units", "satlink", "simtcp", "xstp"];

/// What the pure crates that do have `std` must not name. Hash maps are among them because
/// their order changes from run to run.
const FORBIDDEN_WORDS: &[&str] = &[
    "std::fs",
    "std::thread",
    "std::time",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::process",
    "HashMap",
    "HashSet",
    "tokio",
];

pub(crate) fn check() -> Result<Report, String> {
    let packages = workspace_packages()?;
    let ours: Vec<&str> = packages.iter().map(|p| parent(&p["manifest_path"])).collect();
    let mut violations = Vec::new();
    for package in &packages {
        let name = parent(&package["manifest_path"]);
        let Some((_, allowed)) = ARROWS.iter().find(|(crate_name, _)| *crate_name == name) else {
            violations.push(format!("{name}: not in the table of crates; draw its arrows first"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = match &dependency["path"] {
                Value::String(path) => last(path),
                _ => dependency["name"].as_str().unwrap_or_default(),
            };
            // A crate may use itself in its tests, with other features.
            if ours.contains(&used) && used != name && !allowed.contains(&used) {
                violations.push(format!("{name} -> {used}: allowed are {allowed:?}"));
            }
            let only_for_tests = dependency["kind"].as_str() == Some("dev");
            let pure = PURE.iter().find(|(crate_name, _)| *crate_name == name);
            if let Some((_, others)) = pure
                && !only_for_tests
                && !ours.contains(&used)
                && !others.contains(&used)
            {
                violations.push(format!("{name} -> {used}: a pure crate; allowed are {others:?}"));
            }
        }
    }
    for (name, _) in PURE {
        if ours.contains(name) {
            check_purity(name, &mut violations)?;
        }
    }
    let looked_at = format!("{} crates", packages.len());
    Ok(Report { name: "layers", looked_at, violations, remarks: Vec::new() })
}

fn check_purity(name: &str, violations: &mut Vec<String>) -> Result<(), String> {
    let folder = sources::root().join("crates").join(name).join("src");
    for (path, text) in sources::rust_files(&folder)? {
        let shown = sources::relative(&path);
        if shown.ends_with("src/lib.rs") {
            if !text.contains("#![forbid(unsafe_code)]") {
                violations.push(format!("{shown}: lacks #![forbid(unsafe_code)]"));
            }
            if NO_STD.contains(&name) && !text.contains("#![no_std]") {
                violations.push(format!("{shown}: lacks #![no_std]"));
            }
        }
        if sources::is_test_file(&path) {
            continue;
        }
        for (number, line) in code_lines(&text) {
            for word in FORBIDDEN_WORDS.iter().filter(|word| line.contains(*word)) {
                violations.push(format!("{shown}:{number}: a pure crate names {word}"));
            }
        }
    }
    Ok(())
}

/// Numbered lines that are neither comments nor part of the test module.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let (code, _) = sources::split_tests(text);
    code.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line))
}

/// Returns the name of the folder that a manifest is in.
fn parent(manifest: &Value) -> &str {
    last(manifest.as_str().unwrap_or_default().trim_end_matches("/Cargo.toml"))
}

fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn workspace_packages() -> Result<Vec<Value>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(sources::root())
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    Ok(metadata["packages"].as_array().cloned().unwrap_or_default())
}
