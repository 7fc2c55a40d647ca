//! Gateways that are replaced by another process under load: no connection is lost.

#[path = "upgrade/tls.rs"]
mod tls;

use rt::Clock;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use units::Span;

/// Time limit of every wait.
const TOO_LONG: Span = Span::from_secs(60);
/// Number of clients, each of which makes one connection after the other.
const CLIENTS: usize = 8;
/// Octets that a connection transfers, in pieces with pauses between them.
const PIECES: usize = 20;
const PIECE: usize = 10_000;

/// A pair of gateways with their folder.
struct Site {
    folder: PathBuf,
    socks: SocketAddr,
    gateways: Vec<Child>,
}

impl Site {
    /// With `bonded` the terminal has two paths to the hub, and each connection uses both.
    fn new(name: &str, security: &str, bonded: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let socks = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let port = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (hub, own, second) = (port(), port(), port());
        let mut site = Self { folder, socks, gateways: Vec::new() };
        let [hub_key, terminal_key] = ["hub", "terminal"].map(|role| site.key(role));
        let (peer, registered) = match security {
            "none" => (String::new(), String::new()),
            _ => (
                format!("peer_public_key = \"{hub_key}\"\n"),
                format!("[[terminal]]\nname = \"boat\"\npublic_key = \"{terminal_key}\"\n"),
            ),
        };
        let head = |role: &str| {
            let key = site.folder.join(format!("{role}.key"));
            let key = format!("private_key_file = \"{}\"\n", key.display());
            let key = if security == "none" { String::new() } else { key };
            format!("role = \"{role}\"\nsecurity = \"{security}\"\n{key}[link]\n")
        };
        let rest = "[hub]\nallow = [\"127.0.0.0/8\"]\n";
        let mut at_hub = format!("{}listen = \"{hub}\"\n{rest}{registered}", head("hub"));
        let rest = format!("[socks5]\nlisten = \"{socks}\"\n");
        let mut link = format!("peer = \"{hub}\"\nlisten = \"{own}\"\n{peer}");
        if bonded {
            let key = site.key("second");
            at_hub += &format!("[[terminal]]\nname = \"boat/two\"\npublic_key = \"{key}\"\n");
            let file = site.folder.join("second.key");
            link = format!(
                "bond = true\npeer = \"{hub}\"\n{peer}[[path]]\nname = \"one\"\n\
                 listen = \"{own}\"\n[[path]]\nname = \"two\"\nlisten = \"{second}\"\n\
                 private_key_file = \"{}\"\n",
                file.display()
            );
        }
        let at_terminal = format!("{}{link}{rest}", head("terminal"));
        site.start("hub", &at_hub);
        site.start("terminal", &at_terminal);
        site
    }

    /// Makes a key; returns its public part.
    fn key(&self, role: &str) -> String {
        let file = self.folder.join(format!("{role}.key"));
        run(&["key", "generate", file.to_str().unwrap()]).unwrap().trim().to_owned()
    }

    fn socket(&self, role: &str) -> PathBuf {
        self.folder.join(format!("{role}.sock"))
    }

    fn start(&mut self, role: &str, config: &str) {
        let file = self.folder.join(format!("{role}.toml"));
        let socket = self.socket(role);
        let control = format!("[control]\nsocket = \"{}\"\n", socket.display());
        fs::write(&file, format!("{config}{control}")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
        command.args(["gateway", "--config"]).arg(&file).env("BENTPIPE_LOG", "info");
        let log = fs::File::create(self.folder.join(format!("{role}.log"))).unwrap();
        self.gateways.push(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        wait_until(|| status(&socket).is_some());
    }

    /// Returns the number of processes that run with the configuration of `role`.
    fn processes(&self, role: &str) -> usize {
        let file = self.folder.join(format!("{role}.toml"));
        let file = file.to_str().unwrap();
        let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).into_owned())
        });
        lines.filter(|line| line.contains(file)).count()
    }

    fn upgrade(&self, role: &str) {
        let upgraded = run(&["upgrade", "--socket", self.socket(role).to_str().unwrap()]);
        assert!(upgraded.is_some(), "{}", self.log(role));
    }

    fn log(&self, role: &str) -> String {
        fs::read_to_string(self.folder.join(format!("{role}.log"))).unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for role in ["terminal", "hub"] {
            if let Some(process) = status(&self.socket(role)) {
                let _ = Command::new("kill").args(["-KILL", &process]).status();
            }
        }
        for gateway in &mut self.gateways {
            let _ = gateway.kill();
            let _ = gateway.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the output of a command of `bentpipe`; `None` if it has failed.
fn run(arguments: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(arguments).output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Returns the process id of the gateway at `socket`.
fn status(socket: &Path) -> Option<String> {
    let status = run(&["status", "--json", "--socket", socket.to_str().unwrap()])?;
    let (_, rest) = status.split_once("\"pid\":")?;
    Some(rest.trim_start().chars().take_while(char::is_ascii_digit).collect())
}

fn sleep(milliseconds: u64) {
    let clock = Clock::from_here();
    clock.sleep_until(clock.now() + Span::from_millis(milliseconds));
}

fn wait_until(is_so: impl FnMut() -> bool) {
    wait_or_show(is_so, String::new);
}

/// Waits, and ends the test with the text of `show` after [`TOO_LONG`].
fn wait_or_show(mut is_so: impl FnMut() -> bool, show: impl Fn() -> String) {
    let clock = Clock::from_here();
    let limit = clock.now() + TOO_LONG;
    while !is_so() {
        assert!(clock.now() < limit, "{}", show());
        sleep(50);
    }
}

/// Returns a server that sends what it receives.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut from = client.try_clone().unwrap();
                let _ = std::io::copy(&mut from, &mut &client);
                let _ = client.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

/// Makes a connection that lasts about 0.5 s; the data must return unchanged, in order and whole.
fn transfer(socks: SocketAddr, server: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(socks)?;
    stream.set_read_timeout(Some(Duration::from_nanos(TOO_LONG.as_nanos())))?;
    stream.write_all(&[5, 1, 0])?;
    stream.read_exact(&mut [0; 2])?;
    let SocketAddr::V4(server) = server else { unreachable!("IPv4") };
    let mut request = vec![5, 1, 0, 1];
    request.extend(server.ip().octets());
    request.extend(server.port().to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 10];
    stream.read_exact(&mut reply)?;
    if reply[1] != 0 {
        return Err(std::io::Error::other(format!("reply {}", reply[1])));
    }
    for piece in 0..PIECES {
        let sent = vec![piece as u8; PIECE];
        stream.write_all(&sent)?;
        let mut received = vec![0; PIECE];
        stream.read_exact(&mut received)?;
        assert_eq!(sent, received);
        sleep(25);
    }
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(std::io::Error::other("octets beyond the end")),
    }
}

/// Upgrades the gateways of `roles` in turn, `rounds` times, while clients transfer.
fn upgrade_under_load(name: &str, security: &str, roles: &[&str], rounds: usize) {
    upgrade_site(&Site::new(name, security, false), roles, rounds);
}

fn upgrade_site(site: &Site, roles: &[&str], rounds: usize) {
    let (server, socks) = (echo(), site.socks);
    wait_until(|| transfer(socks, server).is_ok());
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let clients = (0..CLIENTS).map(|_| {
        let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
        thread::spawn(move || {
            let mut lost = Vec::new();
            while !stop.load(SeqCst) {
                match transfer(socks, server) {
                    Ok(()) => drop(done.fetch_add(1, SeqCst)),
                    Err(error) => lost.push(error.to_string()),
                }
            }
            lost
        })
    });
    let clients: Vec<_> = clients.collect();
    for round in 0..rounds {
        let before = done.load(SeqCst);
        site.upgrade(roles[round % roles.len()]);
        let show = || format!("round {round}\n{}{}", site.log("hub"), site.log("terminal"));
        wait_or_show(|| done.load(SeqCst) >= before + CLIENTS, show);
    }
    stop.store(true, SeqCst);
    let lost: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let logs = || format!("{}{}", site.log("hub"), site.log("terminal"));
    assert!(
        lost.is_empty(),
        "{} lost, {} done: {lost:?}\n{}",
        lost.len(),
        done.load(SeqCst),
        logs()
    );
    // Replaced processes end with their last connections.
    for role in ["terminal", "hub"] {
        wait_until(|| site.processes(role) == 1);
    }
}

/// RLY-10.9, ASC-2.11
#[test]
fn no_connection_is_lost_when_the_hub_is_upgraded() {
    upgrade_under_load("upgrade-hub", "noise", &["hub"], rounds());
}

/// RLY-10.9, ASC-2.11
#[test]
fn no_connection_is_lost_when_the_terminal_is_upgraded() {
    upgrade_under_load("upgrade-terminal", "noise", &["terminal"], rounds());
}

/// RLY-10.9, ASC-2.11
#[test]
fn no_connection_is_lost_when_both_are_upgraded_in_turn() {
    upgrade_under_load("upgrade-both", "none", &["hub", "terminal"], rounds());
}

/// RLY-10.9, ASC-2.11, RLY-12.1: each process has both paths again.
#[test]
fn no_connection_is_lost_when_gateways_with_bonded_paths_are_upgraded() {
    for roles in [["terminal"], ["hub"]] {
        let site = Site::new(&format!("upgrade-bonded-{}", roles[0]), "noise", true);
        let is_bonded = || {
            let socket = site.socket("terminal");
            let status = run(&["status", "--json", "--socket", socket.to_str().unwrap()]);
            let status = status.unwrap_or_default().replace(' ', "");
            let is_so = |text: &str| status.matches(text).count() == 2;
            is_so("\"bonded\":true") && is_so("\"connected\":true")
        };
        let show = || format!("{}{}", site.log("hub"), site.log("terminal"));
        wait_or_show(is_bonded, show);
        upgrade_site(&site, &roles, rounds());
        wait_or_show(is_bonded, show);
        // The present processes have both paths.
        upgrade_site(&site, &roles, 1);
    }
}

/// `BENTPIPE_UPGRADES` sets the number of rounds.
fn rounds() -> usize {
    std::env::var("BENTPIPE_UPGRADES").map_or(3, |rounds| rounds.parse().unwrap())
}

#[test]
fn a_gateway_continues_if_the_new_process_does_not_start() {
    let site = Site::new("upgrade-failed", "noise", false);
    let server = echo();
    wait_until(|| transfer(site.socks, server).is_ok());
    for role in ["terminal", "hub"] {
        let process = status(&site.socket(role));
        fs::write(site.folder.join(format!("{role}.toml")), "nonsense").unwrap();
        assert_eq!(run(&["upgrade", "--socket", site.socket(role).to_str().unwrap()]), None);
        assert_eq!(status(&site.socket(role)), process);
        assert!(site.log(role).contains("this process continues"), "{}", site.log(role));
        transfer(site.socks, server).unwrap();
    }
}
