//! `--help` of each command, and the exit codes that `bentpipe --help` states.

mod walk;

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe");

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn the_help_of_each_command_has_examples_that_are_accepted() {
    let of_lab = ["demo", "bench", "lab"].map(str::to_owned);
    walk::check_examples(PROGRAM, |example| match example {
        // `bentpipe-lab` checks these.
        [first, ..] if of_lab.contains(first) => Vec::new(),
        _ => example.to_vec(),
    });
}

#[test]
fn the_commands_of_the_guides_are_accepted() {
    walk::check_guides(PROGRAM, |command| {
        let of_lab = ["demo", "bench", "lab"].iter().any(|name| command.starts_with(name));
        (!of_lab).then(|| command.to_owned())
    });
}

#[test]
fn exit_codes_are_those_of_the_help() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let stated = "Exit codes: 0 success; 1 failure, with the cause on standard error; 2 wrong \
                  arguments";
    assert!(help.contains(stated), "{help}");
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-exit", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let missing = folder.join("missing");
    let missing = missing.to_str().unwrap();
    let wrong = folder.join("wrong.toml");
    std::fs::write(&wrong, "role = \"terminal\"\n").unwrap();
    let wrong = wrong.to_str().unwrap();
    for (code, arguments) in [
        (0, &["version"][..]),
        (0, &["key", "generate", missing]),
        (1, &["key", "generate", missing]),
        (1, &["gateway", "--config", wrong]),
        (1, &["gateway", "--config", wrong, "--check"]),
        (1, &["doctor", "--config", wrong]),
        (1, &["measure", "--config", wrong]),
        (1, &["status", "--socket", wrong]),
        (1, &["top", "--socket", wrong]),
        (1, &["upgrade", "--socket", wrong]),
        (1, &["capture", "--socket", wrong, "--write", "-"]),
        (1, &["enroll", "hub.example", "no-token"]),
        (1, &["site", "--config", wrong, "list"]),
        (1, &["emulate", "eth0"]),
        (2, &[]),
        (2, &["gateway"]),
        (2, &["status", "--no-such-option"]),
        (2, &["no-such-command"]),
    ] {
        let output = run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert_eq!(errors.is_empty(), code == 0 && arguments[0] != "site", "{arguments:?}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn manual_pages_and_completions_have_each_command() {
    let folder = std::env::temp_dir().join(format!("bentpipe-{}-pages", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let written = run(&["manual", folder.to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0));
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page("bentpipe-site-add.1").contains("bentpipe site add boat"));
    assert!(page("bentpipe.1").contains("Exit codes"));
    assert!(Path::new(&folder).join("bentpipe-doctor.1").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let text = String::from_utf8(run(&["completions", shell]).stdout).unwrap();
        assert!(text.contains("enroll") && text.contains("doctor"), "{shell}");
    }
}
