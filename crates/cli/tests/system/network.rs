//! Network, link and gateways of the tests.

use crate::failover::lay_second;
use gateway::{PrivateKey, SystemEntropy};
use rt::emulator::{Emulator, EmulatorConfig, Handle};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use testbed::traffic::{Way, connect};
use testbed::{Host, Process, Satellite, SatelliteConfig, addresses};

/// Time limit of every wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Settings that a test can change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    /// Link description of the emulator.
    pub(crate) link: &'a str,
    /// Configured rates of the gateways.
    pub(crate) rates: &'a str,
    /// Value of `accept`: `early` or `confirm`.
    pub(crate) accept: &'a str,
    /// Tables of the terminal.
    pub(crate) terminal: &'a str,
    /// Further keys of `[intercept]`.
    pub(crate) intercept: &'a str,
    /// Keys of the hub before its first table.
    pub(crate) top: &'a str,
    /// Keys of `[hub]`.
    pub(crate) hub: &'a str,
    /// Keys of `[limits]` of both gateways.
    pub(crate) limits: &'a str,
    /// `limits.drain` of both gateways.
    pub(crate) drain: &'a str,
    /// Further tables of the terminal.
    pub(crate) terminal_tables: &'a str,
    /// Further tables of the hub.
    pub(crate) hub_tables: &'a str,
    /// Whether the terminal has a second path to the hub without outages: paths `sat`, and `lte` as
    /// its backup.
    pub(crate) second: bool,
}

impl Default for Setup<'_> {
    /// A fast link with a short delay, so that tests are short.
    fn default() -> Self {
        Self {
            link: "delay 40ms rate 40mbit limit 2bdp",
            rates: "rate_up = \"40mbit\"\nrate_down = \"40mbit\"\nround_trip = \"80ms\"",
            accept: "early",
            terminal: "",
            intercept: "",
            top: "",
            hub: "",
            limits: "",
            drain: "0s",
            terminal_tables: "",
            hub_tables: "",
            second: false,
        }
    }
}

/// Running client, gateways, link and server.
pub(crate) struct TestNetwork {
    pub(crate) net: Satellite,
    pub(crate) link: Handle,
    /// A directory that is removed on drop.
    pub(crate) dir: PathBuf,
    terminal: Process,
    hub: Process,
    hub_config: String,
    terminal_config: String,
    emulator: Option<JoinHandle<()>>,
}

impl TestNetwork {
    /// Builds everything and waits until a connection succeeds; `None`, with a message on standard
    /// error, where the machine does not allow it.
    pub(crate) fn build(name: &str, setup: &Setup<'_>) -> Option<Self> {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("skipped: {refusal}");
            return None;
        }
        let net = Satellite::new(&SatelliteConfig::default()).expect("namespaces and wires");
        let (link, emulator) = emulate(&net, setup.link);
        let dir = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory for the test");
        let hub_address = addresses::HUB.0;
        let Setup { rates, accept, terminal, top, hub, limits, drain, .. } = setup;
        let Setup { terminal_tables, hub_tables, intercept, .. } = setup;
        let [shore, boat] = [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy));
        let (own, known) = (shore.to_text(), format!("public_key = \"{}\"", boat.public()));
        // Settings of "the terminal" apply to this one.
        let tables = if hub_tables.contains("[[terminal]]") {
            hub_tables.replace("[[terminal]]\n", &format!("[[terminal]]\n{known}\n"))
        } else {
            format!("{hub_tables}\n[[terminal]]\nname = \"boat\"\n{known}\n")
        };
        let (mut tables, mut paths) = (tables, String::new());
        if setup.second {
            lay_second(&net);
            let key = PrivateKey::generate(&mut SystemEntropy);
            tables +=
                &format!("[[terminal]]\nname = \"boat/lte\"\npublic_key = \"{}\"\n", key.public());
            paths = format!(
                "[[path]]\nname = \"sat\"\n[[path]]\nname = \"lte\"\nrole = \"backup\"\n\
                 interface = \"second\"\nprivate_key = \"{}\"\n",
                key.to_text()
            );
        }
        let hub = format!(
            "role = \"hub\"\nprivate_key = \"{own}\"\n{top}\n[link]\nlisten = \"{hub_address}:7000\"\n{rates}\n\
             [hub]\n{hub}\n[limits]\ndrain = \"{drain}\"\n{limits}\n{tables}\n"
        );
        let (own, known) = (boat.to_text(), shore.public());
        let lan = addresses::TERMINAL_LAN.0;
        let terminal = format!(
            "role = \"terminal\"\nprivate_key = \"{own}\"\naccept = \"{accept}\"\n{terminal}\n\
             [link]\npeer = \"{hub_address}:7000\"\npeer_public_key = \"{known}\"\n{rates}\n\
             [intercept]\ninterfaces = [\"lan\"]\n{intercept}\n[socks5]\nlisten = \"{lan}:1080\"\n\
             [connect]\nlisten = \"{lan}:3128\"\n[limits]\ndrain = \"{drain}\"\n{limits}\n{terminal_tables}\n{paths}\n"
        );
        let hub_config = hub;
        let hub = gateway(&net.hub, &hub_config);
        let terminal_config = terminal;
        let file = dir.join("terminal.toml");
        let terminal = gateway_from(&net.terminal, &file, &terminal_config);
        let emulator = Some(emulator);
        let mut network =
            Self { net, link, dir, terminal, hub, hub_config, terminal_config, emulator };
        network.await_path();
        Some(network)
    }

    /// Runs a program on the client to its end.
    pub(crate) fn run_on_client(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = self.net.client.start(command).expect("the program starts");
        output_of(&mut process)
    }

    /// As `run_on_client`, for a program that must succeed; returns its standard output.
    pub(crate) fn succeed_on_client(&self, program: &str, args: &[&str]) -> String {
        let output = self.run_on_client(program, args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {args:?}: {}: {said}", output.status);
        String::from_utf8(output.stdout).expect("a program that writes text")
    }

    /// Runs a program on the server until the network is removed; `wait_for` is its port.
    pub(crate) fn start_on_server(&self, program: &str, args: &[&str], wait_for: u16) -> Process {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.dir);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = self.net.server.start(command).expect("the program starts");
        let address = SocketAddr::new(addresses::SERVER.0.into(), wait_for);
        for _ in 0..500 {
            assert!(!process.has_ended(), "{program} {args:?} ended at once");
            if self.net.server.run(|| TcpStream::connect(address)).is_ok() {
                return process;
            }
            pause(Duration::from_millis(20));
        }
        panic!("{program} does not listen on {wait_for}");
    }

    /// Opens a listener on the server.
    pub(crate) fn listen(&self, address: impl Into<IpAddr>, port: u16) -> TcpListener {
        let address = SocketAddr::new(address.into(), port);
        self.net.server.run(|| TcpListener::bind(address)).expect("a free port")
    }

    /// Connects from the client.
    pub(crate) fn connect(&self, address: impl Into<IpAddr>, port: u16) -> TcpStream {
        let address = SocketAddr::new(address.into(), port);
        let stream = self.net.client.run(|| TcpStream::connect_timeout(&address, PATIENCE));
        let stream = stream.expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
        stream
    }

    /// Connects from the client with a timeout.
    pub(crate) fn try_connect(
        &self,
        address: impl Into<IpAddr>,
        port: u16,
        patience: Duration,
    ) -> std::io::Result<TcpStream> {
        let address = SocketAddr::new(address.into(), port);
        self.net.client.run(|| TcpStream::connect_timeout(&address, patience))
    }

    /// Writes `length` octets of content to a file in the directory, and returns them.
    pub(crate) fn file(&self, name: &str, length: usize) -> Vec<u8> {
        let content = content(name.len() as u64, length);
        fs::write(self.dir.join(name), &content).expect("room on the disk");
        content
    }

    /// Stops both gateways gracefully, and returns their counters, the terminal's first.
    /// terminal's first.
    pub(crate) fn finish(mut self) -> (Value, Value) {
        assert!(!self.terminal.has_ended(), "the terminal gateway has ended by itself");
        assert!(!self.hub.has_ended(), "the hub gateway has ended by itself");
        (report_of(&mut self.terminal), report_of(&mut self.hub))
    }

    /// Stops the hub before the terminal, and returns its counters: a hub removes a terminal that
    /// has closed its session.
    pub(crate) fn finish_hub(mut self) -> Value {
        assert!(!self.hub.has_ended(), "the hub gateway has ended by itself");
        report_of(&mut self.hub)
    }

    /// Asks the terminal gateway to stop after open connections have finished.
    pub(crate) fn drain_terminal(&self) {
        self.terminal.terminate();
    }

    /// Changes the configuration of the terminal gateway without waiting until it is applied.
    pub(crate) fn reload_terminal(&mut self, change: impl Fn(&str) -> String) {
        let text = change(&self.terminal_config);
        write_secret(&self.dir.join("terminal.toml"), &text);
        let id = self.terminal.child().id().to_string();
        let sent = Command::new("kill").args(["-HUP", &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIGHUP was not sent");
    }

    /// Waits for the terminal gateway's end, and returns its counters.
    pub(crate) fn ended_terminal(mut self) -> Value {
        report_from(&output_of(&mut self.terminal))
    }

    /// Kills the terminal gateway without cleanup.
    pub(crate) fn kill_terminal(&mut self) {
        self.terminal.child().kill().expect("a process of ours");
        self.terminal.wait().expect("a child to wait for");
    }

    /// Kills the hub gateway without a message to the terminal.
    pub(crate) fn kill_hub(&mut self) {
        self.hub.child().kill().expect("a process of ours");
        self.hub.wait().expect("a child to wait for");
    }

    /// Kills the hub gateway and starts another in its place without its state.
    pub(crate) fn replace_hub(&mut self) {
        self.kill_hub();
        self.hub = gateway(&self.net.hub, &self.hub_config);
        self.await_path();
    }

    /// Kills the terminal gateway and starts another in its place without its state.
    pub(crate) fn replace_terminal(&mut self) {
        self.kill_terminal();
        let file = self.dir.join("terminal.toml");
        self.terminal = gateway_from(&self.net.terminal, &file, &self.terminal_config);
        self.await_path();
    }

    /// Waits until data crosses the gateways in both directions.
    fn await_path(&mut self) {
        let echo = self.listen(addresses::SERVER.0, 7);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let Ok((mut stream, _)) = echo.accept() else { continue };
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).is_ok() {
                        let _ = stream.write_all(&byte);
                    }
                }
            });
            let found = (0..50).any(|_| self.echoes());
            done.store(true, Ordering::Relaxed);
            let address = SocketAddr::new(addresses::SERVER.0.into(), 7);
            let _ = self.net.server.run(|| TcpStream::connect(address)); // wakes the echo
            assert!(!self.terminal.has_ended(), "the terminal gateway has ended by itself");
            assert!(!self.hub.has_ended(), "the hub gateway has ended by itself");
            assert!(found, "nothing comes through");
        });
    }

    // By SOCKS5: before the rules of interception are installed, a connection would bypass the
    // gateway.
    fn echoes(&self) -> bool {
        let way = Way::Socks5(SocketAddr::new(addresses::TERMINAL_LAN.0.into(), 1080));
        let address = SocketAddr::new(addresses::SERVER.0.into(), 7);
        // Long enough for a satellite; without a listener the refusal is immediate.
        let patience = Duration::from_secs(3);
        let Ok(mut stream) = self.net.client.run(|| connect(way, address, patience)) else {
            pause(Duration::from_millis(20));
            return false;
        };
        let mut byte = [0];
        stream.set_read_timeout(Some(patience)).is_ok()
            && stream.write_all(b"?").is_ok()
            && stream.read_exact(&mut byte).is_ok()
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        self.link.stop();
        if let Some(emulator) = self.emulator.take() {
            let _ = emulator.join();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns true if all of these programs are installed; reports missing ones.
pub(crate) fn have(programs: &[&str]) -> bool {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/bin"];
    let is_there =
        |program: &str| places.iter().any(|place| Path::new(place).join(program).exists());
    let missing: Vec<_> = programs.iter().filter(|program| !is_there(program)).collect();
    if !missing.is_empty() {
        eprintln!("skipped: this machine has no {missing:?}");
    }
    missing.is_empty()
}

pub(crate) fn pause(length: Duration) {
    let clock = rt::Clock::new();
    let nanos = u64::try_from(length.as_nanos()).expect("a short while");
    clock.sleep_until(clock.now() + units::Span::from_nanos(nanos));
}

/// Returns octets that differ at each position.
pub(crate) fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    testbed::content::Content::new(seed).fill(0, &mut bytes);
    bytes
}

/// Reads to the end; an error is part of the result.
pub(crate) fn read_all(stream: &mut TcpStream) -> (Vec<u8>, std::io::Result<usize>) {
    let mut bytes = Vec::new();
    let result = stream.read_to_end(&mut bytes);
    (bytes, result)
}

/// Sends different data in both directions at the same time, `length` octets each, and compares it
/// at both ends.
pub(crate) fn exchange(mut client: TcpStream, mut server: TcpStream, length: usize) {
    let (down, up) = (content(1, length), content(2, length));
    thread::scope(|scope| {
        for (stream, bytes) in [(&server, &down), (&client, &up)] {
            let mut stream = stream.try_clone().unwrap();
            scope.spawn(move || {
                stream.write_all(bytes).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            });
        }
        let at_server = scope.spawn(|| read_all(&mut server));
        let (got, end) = read_all(&mut client);
        end.expect("a clean end");
        assert!(got == down, "{} bytes down", got.len());
        let (got, end) = at_server.join().unwrap();
        end.expect("a clean end");
        assert!(got == up, "{} bytes up", got.len());
    });
}

pub(crate) fn emulate(net: &Satellite, words: &str) -> (Handle, JoinHandle<()>) {
    let ports = format!("{} {} ", Satellite::TO_HUB, Satellite::TO_TERMINAL);
    let words: Vec<String> = (ports + words).split_whitespace().map(String::from).collect();
    let config = EmulatorConfig::from_words(&words).expect("a link");
    let (ready, readiness) = mpsc::channel();
    let thread = net.space.spawn("emulator", move || {
        let emulator = Emulator::open(config).expect("the emulator opens");
        ready.send(emulator.handle()).expect("a receiver");
        emulator.run(&AtomicBool::new(false)).expect("the emulator runs");
    });
    (readiness.recv().expect("the emulator began"), thread)
}

/// A gateway with its configuration on standard input.
pub(crate) fn gateway(host: &Host, config: &str) -> Process {
    let mut process = start(host, Path::new("/dev/stdin"), Stdio::piped());
    let mut input = process.child().stdin.take().expect("standard input is a pipe");
    input.write_all(config.as_bytes()).expect("the gateway reads its configuration");
    process
}

/// A gateway whose configuration can be changed.
pub(crate) fn gateway_from(host: &Host, file: &Path, config: &str) -> Process {
    write_secret(file, config);
    start(host, file, Stdio::null())
}

fn start(host: &Host, file: &Path, input: Stdio) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.args(["gateway", "--config"]).arg(file);
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::inherit());
    host.start(command).expect("the gateway starts")
}

fn output_of(process: &mut Process) -> Output {
    let child = process.child();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let errors = scope.spawn(|| drain(err));
        let stdout = drain(out);
        let stderr = errors.join().expect("reading does not panic");
        Output { status: process.wait().expect("a child to wait for"), stdout, stderr }
    })
}

fn drain(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // The output of a killed program may be missing; the caller checks the status.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

pub(crate) fn report_of(gateway: &mut Process) -> Value {
    gateway.terminate();
    report_from(&output_of(gateway))
}

fn report_from(output: &Output) -> Value {
    assert!(output.status.success(), "a gateway ended with {}", output.status);
    let text = std::str::from_utf8(&output.stdout).expect("a report in text");
    let line = text.lines().last().expect("a report");
    serde_json::from_str(line).expect("a report in JSON")
}

/// Inserts keys into a configuration.
pub(crate) fn write_secret(file: &Path, text: &str) {
    fs::write(file, text).expect("room on the disk");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a file of the test's");
}
