//! A gateway under a service manager, which the test implements: it listens on the notification
//! socket, stores the sockets that it receives, and passes them to the next start.

use sendfd::RecvWithFd;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time limit of every wait.
const TOO_LONG: Duration = Duration::from_secs(30);

/// The service manager.
struct Manager {
    folder: PathBuf,
    socket: UnixDatagram,
    /// Stored sockets with their names.
    kept: Vec<(String, OwnedFd)>,
}

impl Manager {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let socket = UnixDatagram::bind(folder.join("notify")).unwrap();
        socket.set_read_timeout(Some(TOO_LONG)).unwrap();
        Self { folder, socket, kept: Vec::new() }
    }

    /// Starts a gateway; passes the stored sockets as descriptors from 3 on.
    fn start(&self, config: &str) -> Child {
        let file = self.folder.join("gateway.toml");
        fs::write(&file, config).unwrap();
        let mut words = String::from("LISTEN_PID=$$ exec \"$0\" gateway --config \"$1\"");
        let mut command = Command::new("bash");
        if !self.kept.is_empty() {
            let names: Vec<&str> = self.kept.iter().map(|(name, _)| name.as_str()).collect();
            command.env("LISTEN_FDS", names.len().to_string());
            command.env("LISTEN_FDNAMES", names.join(":"));
            let mut places = String::new();
            for (number, (_, socket)) in self.kept.iter().enumerate() {
                let socket = socket2::SockRef::from(socket);
                // bash sets the descriptor numbers as systemd would.
                socket.set_cloexec(false).unwrap();
                let from = std::os::fd::AsRawFd::as_raw_fd(&*socket);
                // Moved to unused numbers first, so that none overwrites another.
                words.push_str(&format!(" 10{number}<&{from}"));
                places.push_str(&format!(" {}<&10{number} 10{number}<&-", number + 3));
            }
            words.push_str(&places);
        }
        command.args(["-c", &words, env!("CARGO_BIN_EXE_bentpipe")]).arg(file);
        command.env("NOTIFY_SOCKET", self.folder.join("notify"));
        command.env("WATCHDOG_USEC", "400000");
        command.env("BENTPIPE_LOG", "info").env_remove("JOURNAL_STREAM");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the next message; stores sockets that it contains.
    fn hear(&mut self) -> String {
        let (mut bytes, mut numbers) = ([0; 1000], [0; 4]);
        let (length, count) = self.socket.recv_with_fd(&mut bytes, &mut numbers).unwrap();
        let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
        for number in &numbers[..count] {
            // SAFETY: the kernel has just created the descriptor.
            let socket = unsafe { OwnedFd::from_raw_fd(*number) };
            let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap();
            assert!(text.contains("FDSTORE=1\n"), "{text}");
            // Children of other tests must not inherit it.
            socket2::SockRef::from(&socket).set_cloexec(true).unwrap();
            self.kept.push((name.to_owned(), socket));
        }
        if text.contains("FDSTOREREMOVE=1\n") {
            let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap();
            self.kept.retain(|(kept, _)| kept != name);
        }
        text
    }

    fn hear_until(&mut self, word: &str) -> String {
        loop {
            let text = self.hear();
            if text.lines().any(|line| line.starts_with(word)) {
                return text;
            }
        }
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_manager_receives_all_notifications_and_stores_the_sockets() {
    let mut manager = Manager::new("service");
    let socks = free_port();
    let link = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"127.0.0.1:9\"\n\
         listen = \"{link}\"\n[socks5]\nlisten = \"{socks}\"\n[control]\nsocket = \"off\"\n"
    );
    let mut child = manager.start(&config);
    manager.hear_until("READY=1");
    let mut names: Vec<&str> = manager.kept.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let name = |kind: &str, address: SocketAddr| format!("{kind}-{address}").replace(':', "_");
    assert_eq!(names, [name("link", link), name("socks5", socks)]);
    manager.hear_until("WATCHDOG=1");
    manager.hear_until("WATCHDOG=1");

    // Another listener replaces the first, which is no longer stored.
    let other = free_port();
    let file = manager.folder.join("gateway.toml");
    fs::write(&file, config.replace(&socks.to_string(), &other.to_string())).unwrap();
    signal(&child, "HUP");
    let reloading = manager.hear_until("RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(since.and_then(|text| text.parse::<u64>().ok()) > Some(0), "{reloading}");
    manager.hear_until("READY=1");
    assert!(manager.kept.iter().any(|(kept, _)| *kept == name("socks5", other)));
    assert!(!manager.kept.iter().any(|(kept, _)| *kept == name("socks5", socks)));

    signal(&child, "TERM");
    manager.hear_until("STOPPING=1");
    assert!(child.wait().unwrap().success());

    // No gateway runs, and a client waits in the queue of the stored socket.
    let mut client = TcpStream::connect(other).unwrap();
    client.write_all(&[5, 1, 0]).unwrap();
    let mut child = manager.start(&config.replace(&socks.to_string(), &other.to_string()));
    client.set_read_timeout(Some(TOO_LONG)).unwrap();
    let mut answer = [0; 2];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(answer, [5, 0]);
    manager.hear_until("READY=1");
    drop(client);
    signal(&child, "TERM");
    let log = BufReader::new(child.stderr.take().unwrap());
    let handed =
        log.lines().map_while(Result::ok).filter(|line| line.contains("using an open socket"));
    assert_eq!(handed.count(), 2, "both sockets are reused");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_gateway_that_waits_for_its_addresses_is_ready_and_reports_them() {
    let mut manager = Manager::new("waiting");
    // 192.0.2.0/24 is for documentation (RFC 5737): no interface has it.
    let config = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"192.0.2.77:7000\"\n\
                  [metrics]\nlisten = \"[2001:db8::77]:9100\"\n[control]\nsocket = \"off\"\n";
    let mut child = manager.start(config);
    manager.hear_until("READY=1");
    let status = manager.hear_until("STATUS=waiting for address 192.0.2.77 (link.listen)");
    assert!(status.contains("address 2001:db8::77 (metrics.listen)"), "{status}");
    signal(&child, "TERM");
    manager.hear_until("STOPPING=1");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_path_bound_to_an_interface_uses_the_stored_socket() {
    let mut manager = Manager::new("interface");
    let link = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = |interface: &str| {
        format!(
            "role = \"terminal\"\nsecurity = \"none\"\n[[path]]\nname = \"sat\"\n\
             peer = \"127.0.0.1:9\"\nlisten = \"{link}\"\n{interface}\n\
             [socks5]\nlisten = \"127.0.0.1:0\"\n[control]\nsocket = \"off\"\n"
        )
    };
    let is_link = |(name, _): &(String, OwnedFd)| name.starts_with("link-");
    let mut child = manager.start(&config(""));
    manager.hear_until("READY=1");
    assert!(manager.kept.iter().any(is_link));
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
    // The manager holds the port while it stores the socket.
    let mut child = manager.start(&config("interface = \"lo\""));
    manager.hear_until("READY=1");
    assert!(!manager.kept.iter().any(is_link), "it is not stored");
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_single_gateway_stores_no_sockets_and_reports_log_suppression() {
    if let Err(refusal) = testbed::permission::check() {
        eprintln!("skipped: {refusal}");
        return;
    }
    let host = testbed::Host::new("single").expect("a namespace");
    let mut manager = Manager::new("single");
    let old = UdpSocket::bind("127.0.0.1:0").unwrap();
    manager.kept.push(("link-of-before".into(), old.into()));
    let config = "role = \"single\"\n[control]\nsocket = \"off\"\n\
                  [single]\nsatellite = [\"sat0\"]\nsource = \"own\"\n";
    let mut child = host.run(|| manager.start(config));
    manager.hear_until("FDSTOREREMOVE=1");
    assert_eq!(manager.kept.len(), 0, "what an earlier life has left");
    // Repeated invalid handshakes.
    fs::write(manager.folder.join("gateway.toml"), "role = \"single\"\n").unwrap();
    for _ in 0..40 {
        signal(&child, "HUP");
        std::thread::park_timeout(Duration::from_millis(30));
    }
    signal(&child, "TERM");
    // The gateway waits for the manager to read.
    manager.hear_until("STOPPING=1");
    let log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let log: Vec<String> = log.collect();
    let reported = log.iter().any(|line| line.contains("log rate limit: similar lines omitted"));
    assert!(reported, "{log:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn sockets_of_another_process_are_ignored() {
    let manager = Manager::new("other-process");
    let file = manager.folder.join("gateway.toml");
    let config = "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:0\"\n\
                  [control]\nsocket = \"off\"\n";
    fs::write(&file, config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
    command.args(["gateway", "--config"]).arg(file);
    // Missing descriptors for another process.
    command.env("LISTEN_PID", "1").env("LISTEN_FDS", "7");
    command.env("NOTIFY_SOCKET", manager.folder.join("notify"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut manager = manager;
    manager.hear_until("READY=1");
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}

/// Returns the value of the line `key:` of the kernel's status of a process.
fn status(child: &Child, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

#[test]
fn root_is_dropped_for_the_configured_user() {
    if !fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t0\t0\t0") {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let mut manager = Manager::new("user");
    let config = "role = \"hub\"\nsecurity = \"none\"\nuser = \"nobody\"\n\
                  [link]\nlisten = \"127.0.0.1:0\"\n[control]\nsocket = \"off\"\n";
    // The notification socket belongs to another user now.
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(manager.folder.join("notify"), everyone).unwrap();
    let mut child = manager.start(config);
    manager.hear_until("READY=1");
    assert!(!status(&child, "Uid:").split(' ').any(|id| id == "0"), "still root");
    assert!(!status(&child, "Gid:").split(' ').any(|id| id == "0"), "still root's group");
    for set in ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"] {
        assert_eq!(status(&child, set), "0000000000000000", "{set}");
    }
    assert_eq!(status(&child, "NoNewPrivs:"), "1");
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());

    let mut child = manager.start(&config.replace("nobody", "no-such-user"));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn both_logs_identify_a_connection_by_the_same_number() {
    let (mut hub, mut terminal) = (Manager::new("hub-log"), Manager::new("terminal-log"));
    let (socks, server) = (free_port(), TcpListener::bind("127.0.0.1:0").unwrap());
    let link = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let common = "security = \"none\"\n[control]\nsocket = \"off\"\n\
                  [log]\nformat = \"json\"\nconnections = \"on\"\n";
    let mut children = [
        hub.start(&format!("role = \"hub\"\n{common}[link]\nlisten = \"{link}\"\n")),
        terminal.start(&format!(
            "role = \"terminal\"\nname = \"boat\"\n{common}[link]\npeer = \"{link}\"\n\
             [socks5]\nlisten = \"{socks}\"\n"
        )),
    ];
    hub.hear_until("READY=1");
    terminal.hear_until("READY=1");
    let destination = server.local_addr().unwrap();
    let mut client = TcpStream::connect(socks).unwrap();
    let from = client.local_addr().unwrap();
    client.set_read_timeout(Some(TOO_LONG)).unwrap();
    let [high, low] = destination.port().to_be_bytes();
    client.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low]).unwrap();
    client.write_all(b"seven b").unwrap();
    let (mut served, _) = server.accept().unwrap();
    served.read_exact(&mut [0; 7]).unwrap();
    served.write_all(b"five!").unwrap();
    drop(served);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert!(answer.ends_with(b"five!"));
    let line = |child: &mut Child| {
        signal(child, "TERM");
        let log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let found = log.filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok());
        let found: Vec<_> = found.filter(|line| line["message"] == "connection").collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(child.wait().unwrap().success());
        found[0].clone()
    };
    let lines = children.each_mut().map(line);
    for line in &lines {
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["terminal"], "boat");
        assert_eq!(line["stream"], lines[0]["stream"]);
        assert_eq!(line["client"], from.to_string());
        assert_eq!(line["destination"], destination.to_string());
        assert_eq!(line["cause"], "closed by both ends");
    }
    let bytes = |line: &serde_json::Value| (line["from_socket"].clone(), line["to_socket"].clone());
    assert_eq!(bytes(&lines[0]), (5.into(), 7.into()));
    assert_eq!(bytes(&lines[1]), (7.into(), 5.into()));
}
