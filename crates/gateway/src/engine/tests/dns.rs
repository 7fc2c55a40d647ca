//! The guide's caching name server at the terminal, tested with the programs that the guide names.

use super::harness::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PAGE: &str = include_str!("../../../../../docs/guide/quickstart.md");
/// Address of every name at the name server.
const ADDRESS: [u8; 4] = [192, 0, 2, 7];
/// Additional settings for a test in one directory and without privileges. Names below `test` would
/// otherwise not be queried (RFC 6761 §6.2).
const BESIDE: &str = "    username: \"\"\n    chroot: \"\"\n    pidfile: \"\"\n    use-syslog: no\n\
                      \x20   do-daemonize: no\n    local-zone: \"test.\" nodefault\n";

/// A process that is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file that is removed on drop.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn start(program: &str, arguments: &[&str]) -> Option<Program> {
    let mut command = Command::new(program);
    match command.args(arguments).stderr(Stdio::null()).spawn() {
        Ok(child) => Some(Program(child)),
        Err(why) => {
            eprintln!("skipped: {program} cannot be started: {why}");
            None
        }
    }
}

/// Returns the file that the page's commands write and that contains `words`.
fn file(words: &str) -> &'static str {
    let mut files = PAGE.split("<<'END'\n").skip(1).map(|rest| rest.split("END\n").next().unwrap());
    files.find(|file| file.contains(words)).expect("a file on the page")
}

fn replaced(text: &str, changes: &[(&str, String)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from} in {text}");
        text.replace(from, to)
    })
}

/// Returns the octets of a query's header and first question.
fn question(query: &[u8]) -> usize {
    let name = query[12..].iter().position(|&octet| octet == 0).unwrap();
    12 + name + 5
}

/// Starts a name server behind the hub, for TCP, which counts queries.
fn upstream(asked: Arc<AtomicUsize>) -> SocketAddr {
    serve(move |mut stream: TcpStream| {
        let mut length = [0; 2];
        while stream.read_exact(&mut length).is_ok() {
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).unwrap();
            asked.fetch_add(1, Ordering::Relaxed);
            query.truncate(question(&query));
            let is_a = query.ends_with(&[0, 1, 0, 1]);
            // A response, recursion available; one question, and one answer or none.
            query.splice(2..12, [0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
            if is_a {
                query.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4]);
                query.extend(ADDRESS);
            }
            stream.write_all(&(query.len() as u16).to_be_bytes()).unwrap();
            stream.write_all(&query).unwrap();
        }
    })
}

/// Returns whether the name server at `address` has the address of `name`.
fn resolves(address: SocketAddr, name: &str) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    let mut answer = [0; 1500];
    let sent = socket.send_to(&query, address);
    let Ok(length) = sent.and_then(|_| socket.recv(&mut answer)) else { return false };
    answer[..length].windows(4).any(|octets| octets == ADDRESS)
}

#[test]
fn the_guides_name_server_resolves_through_the_gateways_and_caches() {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = upstream(Arc::clone(&asked));
    let pair = Pair::early();
    let (tunnel, here) = (nobody(), UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let unit = file("socat");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let line = replaced(
        line,
        &[
            ("5300", tunnel.port().to_string()),
            ("9.9.9.9:53", server.to_string()),
            ("3128", pair.terminal.addresses.connect[0].port().to_string()),
        ],
    );
    let words: Vec<&str> = line.split(' ').collect();
    let Some(_socat) = start(words[0], &words[1..]) else { return };
    let config = replaced(
        file("forward-zone"),
        &[
            ("10.1.0.1", format!("127.0.0.1@{}", here.port())),
            ("10.1.0.0/24", "127.0.0.0/8".into()),
            ("@5300", format!("@{}", tunnel.port())),
            ("server:\n", format!("server:\n{BESIDE}")),
        ],
    );
    let file = std::env::temp_dir().join(format!("bentpipe-unbound-{}.conf", std::process::id()));
    let file = File(file);
    std::fs::write(&file.0, config).unwrap();
    let file = file.0.to_str().unwrap();
    let Some(_unbound) = start("/usr/sbin/unbound", &["-d", "-c", file]) else { return };
    assert!(soon(|| resolves(here, "www.good.test")), "within some attempts");
    let before = asked.load(Ordering::Relaxed);
    assert!(before > 0, "the name server behind the hub was queried");
    assert!(resolves(here, "www.good.test"));
    assert_eq!(asked.load(Ordering::Relaxed), before, "the second time from the cache");
    assert!(resolves(here, "mail.good.test"), "another name on the same connection");
    assert_eq!(pair.hub.stop().connections.connected, 1, "by one connection through the hub");
}
