//! Programs on hosts run in the host's namespace and end with their starter.

use std::io::Read;
use std::process::{Command, Stdio};
use testbed::{Host, Process, permission};

fn host() -> Option<Host> {
    match permission::check() {
        Ok(()) => Some(Host::new("lonely").unwrap()),
        Err(reason) => {
            eprintln!("skipped: {reason}");
            None
        }
    }
}

fn start(host: &Host, script: &str) -> Process {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped());
    host.start(command).unwrap()
}

#[test]
fn a_program_sees_its_hosts_network() {
    let Some(host) = host() else { return };
    let mut program = start(&host, "cat /proc/net/dev");
    let mut text = String::new();
    program.child().stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(program.wait().unwrap().success());
    let interfaces: Vec<&str> =
        text.lines().skip(2).filter_map(|line| Some(line.split(':').next()?.trim())).collect();
    assert_eq!(interfaces, ["lo"]);
}

#[test]
fn a_dropped_program_is_killed() {
    let Some(host) = host() else { return };
    let mut program = start(&host, "echo ready; exec sleep 1000");
    let mut stdout = program.child().stdout.take().unwrap();
    let mut word = [0; 6];
    stdout.read_exact(&mut word).unwrap();
    assert!(!program.has_ended());
    drop(program);
    // The pipe ends when its last writer has ended.
    assert_eq!(stdout.read(&mut word).unwrap(), 0);
}

#[test]
fn a_program_dies_with_the_thread_that_started_it() {
    let Some(host) = host() else { return };
    let thread = std::thread::spawn(move || {
        let mut program = start(&host, "echo ready; exec sleep 1000");
        let mut stdout = program.child().stdout.take().unwrap();
        let mut word = [0; 6];
        stdout.read_exact(&mut word).unwrap();
        std::mem::forget(program); // As if this process had been killed.
        stdout
    });
    let mut stdout = thread.join().unwrap();
    assert_eq!(stdout.read(&mut [0; 6]).unwrap(), 0);
}
