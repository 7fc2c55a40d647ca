//! `bentpipe send` and `bentpipe receive` as programs, over loopback.

use lab::bench::radio::Channel;
use satlink::mac::csma::CsmaConfig;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use units::Span;

const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe");

/// A folder that is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let folder = format!("bentpipe-cli-transfer-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Makes a key; returns its public part.
    fn key(&self, name: &str) -> String {
        let made = Command::new(PROGRAM).args(["key", "generate"]).arg(self.0.join(name)).output();
        String::from_utf8(made.unwrap().stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A program that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Both sides of a transfer, with keys.
struct Sides {
    root: Temporary,
    address: String,
    keys: [String; 2],
}

impl Sides {
    fn new(name: &str) -> Self {
        let root = Temporary::new(name);
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let keys = ["sender", "receiver"].map(|name| root.key(name));
        Self { root, address: free.to_string(), keys }
    }

    fn receive(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["receive", "--listen", &self.address, "--peer-key", &self.keys[0], "--key"]);
        command.arg(self.root.0.join("receiver")).args(words);
        command
    }

    fn send(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["send", "--to", &self.address, "--peer-key", &self.keys[1], "--key"]);
        command.arg(self.root.0.join("sender")).args(words);
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.0.join(name)
    }
}

fn start(mut command: Command) -> Running {
    Running(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    output
}

/// Waits until `done`.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let clock = rt::Clock::new();
    let by = clock.now() + Span::from_secs(60);
    while !done() {
        assert!(clock.now() < by, "{what}");
        clock.sleep_until(clock.now() + Span::from_millis(10));
    }
}

/// Returns the octets of incomplete files.
fn partial(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder.join(".bentpipe-partial")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|found| found.len()).sum()
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

#[test]
fn a_folder_arrives_although_both_sides_are_killed() {
    let sides = Sides::new("killed");
    let (data, to) = (sides.path("data"), sides.path("to"));
    fs::create_dir_all(data.join("inner")).unwrap();
    let large = content(6_000_000);
    fs::write(data.join("large"), &large).unwrap();
    fs::write(data.join("inner/small"), b"small").unwrap();
    let (data, to) = (data.to_str().unwrap(), to.to_str().unwrap());
    let receive = || start(sides.receive(&[to]));
    let send = || sides.send(&["--rate-limit", "20mbit", data]);
    let mut receiver = receive();
    let sender = start(send());
    wait_for("a first part", || partial(to.as_ref()) > 1_000_000);
    drop(sender);
    let before = partial(to.as_ref());
    let mut sender = start(send());
    wait_for("a second part", || partial(to.as_ref()) > before + 1_000_000);
    // The sender continues by itself when there is a receiver again.
    drop(receiver);
    receiver = receive();
    wait_for("the end of the sender", || sender.0.try_wait().unwrap().is_some());
    assert!(sender.0.wait().unwrap().success());
    assert!(fs::read(sides.path("to/data/large")).unwrap() == large);
    assert_eq!(fs::read(sides.path("to/data/inner/small")).unwrap(), b"small");
    // Nothing is sent a second time.
    let output = succeed(&mut send());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("0 files, 0 octets"), "{errors}");
    drop(receiver);
}

#[test]
fn standard_input_reaches_standard_output_of_a_sender_that_listens() {
    let sides = Sides::new("pipe");
    let mut send = Command::new(PROGRAM);
    send.args(["send", "--listen", &sides.address, "--peer-key", &sides.keys[1], "--key"]);
    send.arg(sides.path("sender")).arg("-");
    let mut sender = Running(send.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let data = content(300_000);
    let mut input = sender.0.stdin.take().unwrap();
    let written = data.clone();
    let writer = thread::spawn(move || input.write_all(&written).unwrap());
    let mut receive = Command::new(PROGRAM);
    receive.args(["receive", "--from", &sides.address, "--peer-key", &sides.keys[0], "--key"]);
    let output = succeed(receive.arg(sides.path("receiver")).arg("-"));
    assert!(output.stdout == data, "{} octets", output.stdout.len());
    writer.join().unwrap();
    assert!(sender.0.wait().unwrap().success());
}

#[test]
fn several_senders_are_served_and_refusals_have_a_message() {
    let sides = Sides::new("several");
    let other = sides.root.key("other");
    let to = sides.path("to");
    let _receiver = start(sides.receive(&["--peer-key", &other, to.to_str().unwrap()]));
    fs::write(sides.path("one"), content(200_000)).unwrap();
    fs::write(sides.path("two"), content(300_000)).unwrap();
    std::os::unix::fs::symlink("/etc", sides.path("link")).unwrap();
    let one = sides.path("one").to_str().unwrap().to_owned();
    let mut first = start(sides.send(&["--rate-limit", "2mbit", &one]));
    wait_for("the first sender", || partial(&to) > 0);
    let second = sides.send(&[&one]).output().unwrap();
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && errors.contains("another transfer uses"), "{errors}");
    let mut third = Command::new(PROGRAM);
    third.args(["send", "--to", &sides.address, "--peer-key", &sides.keys[1], "--key"]);
    succeed(third.arg(sides.path("other")).arg(sides.path("two")));
    assert!(fs::read(to.join("two")).unwrap() == content(300_000));
    assert!(first.0.wait().unwrap().success());
    assert!(fs::read(to.join("one")).unwrap() == content(200_000));
    fs::create_dir_all(sides.path("folder")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", sides.path("folder/link")).unwrap();
    let folder = sides.path("folder").to_str().unwrap().to_owned();
    let output = sides.send(&[&folder]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("symbolic links"), "{errors}");
}

#[test]
fn a_file_is_sent_over_packet_radio() {
    let root = Temporary::new("radio");
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let lines = [0, 1].map(|at: usize| format!("tcp:{}", listeners[at].local_addr().unwrap()));
    let channel = CsmaConfig {
        key_up: Span::from_millis(5),
        slot: Span::from_millis(1),
        ..CsmaConfig::kenwood(units::BitRate::from_kbps(300))
    };
    let channel = Channel::new(&channel, listeners, 1).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let channel = thread::spawn(move || channel.run(&stopping));
    let (file, folder) = (root.0.join("file"), root.0.join("in"));
    fs::write(&file, content(5_000)).unwrap();
    let mut receive = Command::new(PROGRAM);
    receive.args(["receive", "--kiss", &lines[1], "--call", "M0XYZ-2", "--from", "M0ABC-1"]);
    let mut receiver = start({
        receive.args(["--once", "--quiet"]).arg(&folder);
        receive
    });
    let mut send = Command::new(PROGRAM);
    send.args(["send", "--kiss", &lines[0], "--call", "m0abc-1", "--to", "M0XYZ-2", "--quiet"]);
    succeed(send.args(["--txdelay", "300", "--persist", "128"]).arg(&file));
    assert!(receiver.0.wait().unwrap().success());
    assert_eq!(fs::read(folder.join("file")).unwrap(), content(5_000));
    stop.store(true, Ordering::Relaxed);
    assert!(channel.join().unwrap().unwrap().delivered.packets > 20);
}

#[test]
fn options_of_packet_radio_are_checked() {
    for (words, expected) in [
        (&["--kiss", "tcp:127.0.0.1:1", "--to", "M0XYZ"][..], "--call"),
        (&["--kiss", "tcp:127.0.0.1:1", "--call", "M0ABC-16", "--to", "M0XYZ"], "M0ABC-1"),
        (&["--kiss", "radio", "--call", "M0ABC", "--to", "M0XYZ"], "tcp:HOST:PORT"),
        (&["--kiss", "tcp:127.0.0.1:1", "--call", "M0ABC", "--to", "x@y"], "call sign"),
        (&["--call", "M0ABC", "--to", "M0XYZ"], "--kiss"),
    ] {
        let output = Command::new(PROGRAM).arg("send").args(words).arg(PROGRAM).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(expected), "{words:?}: {errors}");
    }
}
