//! The symptoms of docs/guide/troubleshooting.md, reproduced on one host, and the messages that the
//! page quotes.

use crate::network::{PATIENCE, have, pause, write_secret};
use crate::path::change;
use gateway::{PrivateKey, SystemEntropy};
use rt::netlink::{VethEnd, sysctl};
use std::fs::{self, File};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::traffic::{Way, connect};
use testbed::{Host, Process};

const PAGE: &str = include_str!("../../../../docs/guide/troubleshooting.md");
const PROGRAM: &str = env!("CARGO_BIN_EXE_bentpipe");
const HUB: &str = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:7000\"\n";
const TERMINAL: &str = "role = \"terminal\"\nsecurity = \"none\"\nname = \"boat\"\n[link]\n\
                        peer = \"127.0.0.1:7000\"\n";
const SOCKS5: &str = "[socks5]\nlisten = \"127.0.0.1:1080\"\n";
const INTERCEPT: &str = "[intercept]\ninterfaces = [\"lan0\"]\n";

/// A host in its own namespace, with a directory that is removed on drop.
struct Site {
    host: Host,
    dir: PathBuf,
}

impl Site {
    /// `None`, with a message on standard error, where the machine does not allow namespaces.
    fn new(name: &str) -> Option<Self> {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("skipped: {refusal}");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory for the test");
        Some(Self { host: Host::new(name).expect("a namespace"), dir })
    }

    /// Writes a configuration, with its own control socket, and returns its path.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.join(name);
        let socket = path.with_extension("sock");
        write_secret(&path, &format!("{text}[control]\nsocket = {socket:?}\n"));
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    /// Starts a program on the host; its output goes to `log`.
    fn start(&self, log: &str, program: &str, arguments: &[&str]) -> Running {
        let path = self.dir.join(log);
        let log = File::create(&path).expect("a file for the log");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        command.stdout(log.try_clone().expect("a descriptor")).stderr(log);
        Running { process: self.host.start(command).expect("the program starts"), log: path }
    }

    /// Runs the program to its end, and returns what it printed.
    fn output(&self, arguments: &[&str]) -> String {
        self.start("output", PROGRAM, arguments).ended()
    }

    fn gateway(&self, log: &str, file: &str) -> Running {
        self.start(log, PROGRAM, &["gateway", "--config", file])
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A program whose output goes to a file.
struct Running {
    process: Process,
    log: PathBuf,
}

impl Running {
    fn text(&self) -> String {
        fs::read_to_string(&self.log).expect("a log in UTF-8")
    }

    fn ended(mut self) -> String {
        self.process.wait().expect("a child to wait for");
        self.text()
    }

    /// Waits for a message that the page quotes.
    fn shows(&self, message: &str) {
        assert_shows(&await_text(message, || self.text()), message);
    }

    /// Waits until the gateway has opened its sockets.
    fn is_ready(&self) {
        await_text("addresses=", || self.text());
    }
}

/// Returns the first text with the message, or the last one at the time limit.
fn await_text(message: &str, text: impl Fn() -> String) -> String {
    let step = Duration::from_millis(50);
    let mut last = text();
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        if contains(&last, message) {
            break;
        }
        pause(step);
        last = text();
    }
    last
}

/// Whether `output` has the message; `...` stands for any text.
fn contains(output: &str, message: &str) -> bool {
    let mut rest = output;
    message.split("...").map(str::trim).all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Checks that `output` has a message and that the page quotes it.
fn assert_shows(output: &str, message: &str) {
    assert!(contains(output, message), "{message} is not in:\n{output}");
    assert!(PAGE.contains(&format!("`{message}`")), "the page does not quote {message}");
}

#[test]
fn errors_of_the_file_are_those_of_the_page() {
    let Some(site) = Site::new("file") else { return };
    let check = |name: &str, text: &str| {
        site.output(&["gateway", "--config", &site.file(name, text), "--check"])
    };
    let wrong = TERMINAL.replace("name = \"boat\"\n", "") + "rate_down = \"10mb\"\n" + SOCKS5;
    let rate = "terminal.toml:5: link.rate_down: found \"10mb\", expected a rate...";
    assert_shows(&check("terminal.toml", &wrong), rate);
    let misplaced = format!("{TERMINAL}{SOCKS5}accept = \"early\"\n");
    assert_shows(&check("terminal.toml", &misplaced), "found an unknown key, expected one of ...");
    let keyless = HUB.replace("security = \"none\"\n", "");
    assert_shows(&check("hub.toml", &keyless), "private_key_file: found nothing");
    let key = site.dir.join("key");
    fs::write(&key, PrivateKey::generate(&mut SystemEntropy).to_text()).expect("room on the disk");
    let keys = format!("private_key_file = {key:?}\n");
    let listed = "[[terminal]]\nname = \"boat\"\n\
                  public_key = \"xcvHZvfOxkd6ty807qPyjRB92qlHFOvrbO4FcjvCUmA=\"\n";
    let open = HUB.replace("security = \"none\"\n", &keys) + listed;
    let found = check("hub.toml", &open);
    assert_shows(&found, "not only its owner can read or change it");
}

#[test]
fn a_gateway_that_cannot_start_says_why() {
    let Some(site) = Site::new("start") else { return };
    let hub = site.file("hub.toml", HUB);
    let first = site.gateway("hub.log", &hub);
    first.is_ready();
    let second = site.gateway("second.log", &site.file("second.toml", HUB)).ended();
    assert_shows(&second, "cannot listen on 127.0.0.1:7000: Address already in use");
    if !have(&["setpriv"]) {
        return;
    }
    let without = |right: &str, file: &str| {
        let arguments = ["--bounding-set", right, PROGRAM, "gateway", "--config", file];
        site.start("without.log", "setpriv", &arguments)
    };
    let early = site.file("early.toml", &format!("{TERMINAL}{INTERCEPT}"));
    assert_shows(
        &without("-net_admin", &early).ended(),
        "was refused: Operation not permitted ...; interception needs CAP_NET_ADMIN",
    );
    let confirm =
        site.file("confirm.toml", &format!("accept = \"confirm\"\n{TERMINAL}{INTERCEPT}"));
    assert_shows(
        &without("-net_raw", &confirm).ended(),
        "to confirm intercepted connections needs CAP_NET_RAW",
    );
    let early = without("-net_raw", &early);
    early.shows("deferred accept unavailable");
    // It has the port of the transparent listeners.
    let another = site.file("another.toml", &format!("{TERMINAL}{INTERCEPT}"));
    assert_shows(
        &site.gateway("another.log", &another).ended(),
        "intercept.port: cannot listen on port 7900 transparently: Address already in use",
    );
}

#[test]
fn the_check_names_what_the_kernel_lacks() {
    let Some(site) = Site::new("kernel") else { return };
    let check = |text: &str| {
        site.output(&["gateway", "--config", &site.file("terminal.toml", text), "--check"])
    };
    let found = check(&format!("{TERMINAL}{}", INTERCEPT.replace("lan0", "lan7")));
    assert_shows(&found, "there is no interface \"lan7\" yet");
    change(&site.host, |net| net.create_veth(&VethEnd::new("lan0"), &VethEnd::new("far")));
    site.host.run(|| {
        for (key, value) in [
            ("net.ipv4.ip_forward", "0"),
            ("net.ipv4.tcp_fwmark_accept", "1"),
            ("net.ipv4.conf.all.src_valid_mark", "1"),
        ] {
            sysctl(key, value).expect(key);
        }
    });
    let found = check(&format!("{TERMINAL}{INTERCEPT}"));
    assert_shows(&found, "net.ipv4.ip_forward is 0");
    assert_shows(&found, "net.ipv4.tcp_fwmark_accept is 1");
    assert_shows(&found, "net.ipv4.conf.all.src_valid_mark is 1");
}

#[test]
fn a_terminal_that_does_not_connect_is_diagnosed() {
    let Some(site) = Site::new("connect") else { return };
    let [hub_key, key, other] = [(); 3].map(|()| PrivateKey::generate(&mut SystemEntropy));
    let terminal = |peer: &str| {
        let text = format!(
            "role = \"terminal\"\nprivate_key = \"{}\"\n[link]\npeer = \"{peer}\"\n\
             peer_public_key = \"{}\"\n{SOCKS5}",
            key.to_text(),
            hub_key.public()
        );
        site.file("terminal.toml", &text)
    };
    let doctor = |peer: &str| site.output(&["doctor", "--config", &terminal(peer)]);
    let refused = "refuses datagrams: no program receives on that port";
    assert_shows(&doctor("127.0.0.1:7000"), refused);
    assert_shows(&doctor("hub.invalid:7000"), "has no address");
    let silent = site.host.run(|| UdpSocket::bind("127.0.0.1:7001")).expect("a free port");
    assert_shows(&doctor("127.0.0.1:7001"), "does not respond");
    drop(silent);
    // The hub's list has another key.
    let hub = format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"127.0.0.1:7000\"\n\
         [[terminal]]\nname = \"boat\"\npublic_key = \"{}\"\n",
        hub_key.to_text(),
        other.public()
    );
    let hub = site.gateway("hub.log", &site.file("hub.toml", &hub));
    hub.is_ready();
    assert_shows(&doctor("127.0.0.1:7000"), "does not accept this terminal's key");
    hub.shows("handshake rejected: unknown terminal key");
    let unknown = site.gateway("terminal.log", &terminal("127.0.0.1:7000"));
    unknown.shows("no response from the hub");
    let socket = site.dir.join("terminal.sock");
    let status = site.output(&["status", "--socket", socket.to_str().expect("UTF-8")]);
    assert_shows(&status, "not connected");
    drop(unknown);
    let _keyless =
        site.gateway("keyless.log", &site.file("keyless.toml", &format!("{TERMINAL}{SOCKS5}")));
    hub.shows("handshake rejected: peer uses another security suite");
}

#[test]
fn a_running_pair_shows_refusals_restarts_and_bypasses() {
    let Some(site) = Site::new("running") else { return };
    let hub_file = site.file("hub.toml", &format!("{HUB}[hub]\ndeny = [\"192.0.2.0/24\"]\n"));
    let mut hub = site.gateway("hub.log", &hub_file);
    let fail = "[fail]\nunreachable = \"open\"\n";
    let terminal = site.file("terminal.toml", &format!("{TERMINAL}{SOCKS5}{INTERCEPT}{fail}"));
    let terminal = site.gateway("terminal.log", &terminal);
    terminal.shows(
        "the hub does not reach the Internet: global destinations are refused family=\"IPv6\"",
    );
    let way = Way::Socks5(SocketAddr::from(([127, 0, 0, 1], 1080)));
    let denied = SocketAddr::from(([192, 0, 2, 1], 80));
    // Accepted early, then reset.
    let _client = site.host.run(|| connect(way, denied, PATIENCE));
    hub.shows("refused terminal=\"boat\" ... is denied");
    // A stopped hub is an outage of the link to the terminal.
    let id = hub.process.child().id().to_string();
    let stopped = Command::new("kill").args(["-STOP", &id]).status();
    assert!(stopped.is_ok_and(|status| status.success()), "SIGSTOP was not sent");
    let socket = site.dir.join("terminal.sock");
    let status = ["status", "--socket", socket.to_str().expect("UTF-8")];
    assert_shows(&await_text("outage", || site.output(&status)), "outage");
    terminal.shows("bypass enabled: new connections are not accelerated");
    drop(hub);
    let _restarted = site.gateway("restarted.log", &hub_file);
    terminal.shows("hub session lost, connections reset");
}

#[test]
fn tokens_and_sockets_that_do_not_work_are_named() {
    let Some(site) = Site::new("tokens") else { return };
    let found = site.output(&["enroll", "hub.example", "bp1.boat"]);
    assert_shows(&found, "not a token: it begins with bp1. and has 4 parts");
    let key = PrivateKey::generate(&mut SystemEntropy).to_text();
    let hub = HUB.replace("security = \"none\"", &format!("private_key = \"{key}\""));
    let hub = site.file("hub.toml", &hub);
    let add = ["site", "--config", &hub, "add", "boat"];
    assert!(site.output(&add).contains("bp1."));
    assert_shows(&site.output(&add), "\"boat\" is there already");
    let stale = site.dir.join("stale.sock");
    drop(UnixListener::bind(&stale).expect("a socket"));
    let found = site.output(&["status", "--socket", stale.to_str().expect("UTF-8")]);
    assert_shows(&found, "the gateway that made it does not run any more");
}
