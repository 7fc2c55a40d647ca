//! A hub of two shards with several terminals.

use super::harness::{Running, echo, pattern, read_exactly, serve, soon};
use super::observe::{Client, Folder};
use super::security::{Nat, connect_by, key, terminal};
use crate::config::shard_of;
use crate::{PrivateKey, PublicKey};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;

/// Terminals of shard 0, 0, 1 and 1.
const NAMES: [&str; 4] = ["site-1", "site-3", "site-0", "site-2"];

/// A hub of two shards, and its terminals.
struct Bed {
    hub: Running,
    terminals: Vec<Running>,
    folder: Folder,
}

fn entry(name: &str, key: PublicKey) -> String {
    format!("[[terminal]]\nname = {name:?}\npublic_key = \"{key}\"\n")
}

impl Bed {
    /// Starts a hub with a list of `NAMES`, of which those in `running` run.
    fn new(test: &str, running: usize) -> (Self, [PrivateKey; 5]) {
        let keys = [(); 5].map(|()| key());
        let folder = Folder::of_test(test);
        let terminals = NAMES.iter().zip(&keys[1..]).map(|(name, key)| entry(name, key.public()));
        let hub = Running::start(&format!(
            "role = \"hub\"\nprivate_key = \"{}\"\nstate = \"{folder}/peers.toml\"\n\
             [link]\nlisten = \"0.0.0.0:0\"\nround_trip = \"10ms\"\n[hub]\nshards = 2\n\
             own_addresses = \"allow\"\n\
             [control]\nsocket = \"{folder}/hub.sock\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n{}",
            keys[0].to_text(),
            terminals.collect::<String>(),
            folder = folder.0.display(),
        ));
        let mut this = Self { hub, terminals: Vec::new(), folder };
        this.terminals =
            keys[1..=running].iter().map(|own| terminal(this.address(), own, &keys[0])).collect();
        (this, keys)
    }

    fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.hub.addresses.link.unwrap().port()).into()
    }

    /// Connects to `server` through each terminal.
    fn connect(&self, server: SocketAddr) -> Vec<TcpStream> {
        let proxy = |terminal: &Running| terminal.addresses.socks5[0];
        self.terminals.iter().map(|terminal| connect_by(proxy(terminal), server)).collect()
    }

    fn control(&self) -> Client {
        Client::connect(&self.folder.0.join("hub.sock"))
    }

    fn status(&self) -> Value {
        self.control().ask(r#"{"ask":"status"}"#)
    }

    /// Returns the names of connected terminals.
    fn terminals(&self) -> Vec<String> {
        let status = self.status();
        let all = status["terminals"].as_array().unwrap().iter();
        let mut names: Vec<String> =
            all.map(|one| one["terminal"].as_str().unwrap().to_owned()).collect();
        names.sort_unstable();
        names
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

fn exchange(stream: &mut TcpStream, content: &[u8]) {
    let mut writer = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(content).unwrap());
        assert!(read_exactly(stream, content.len()) == content);
    });
}

#[test]
fn each_shard_has_its_terminals_and_the_status_is_of_all() {
    let (bed, _) = Bed::new("shards", 4);
    let mut streams = bed.connect(echo());
    let content = pattern(1_000_000, 1);
    streams.iter_mut().for_each(|stream| exchange(stream, &content));
    let status = bed.status();
    assert_eq!(bed.terminals(), ["site-0", "site-1", "site-2", "site-3"]);
    assert_eq!((&status["open"], &status["connections"]["opened"]), (&4.into(), &4.into()));
    assert!(number(&status["traffic"]["stream_bytes_sent"]) >= 4_000_000, "{status}");
    let shards = status["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 2);
    for shard in shards {
        assert_eq!((&shard["terminals"], &shard["connections"]), (&2.into(), &2.into()), "{shard}");
        // The kernel distributes all datagrams with data.
        assert!(number(&shard["datagrams_received"]) > 1_000, "{shard}");
        assert_eq!(shard["hand_over_drops"], 0);
    }
    // Hellos, of which some may have been repeated.
    let handed = number(&shards[1]["datagrams_handed_over"]);
    assert!((2..20).contains(&handed), "{status}");
    assert!(number(&shards[0]["datagrams_handed_over"]) < 20, "{status}");
    let [dropped, hellos] = ["dropped", "hellos"].map(|key| &status["association"][key]);
    assert_eq!(dropped["stranger"], 0);
    assert!(number(hellos) >= 4);

    // Pages of connections have all numbers once.
    let (mut numbers, mut more, mut control) = (Vec::new(), true, bed.control());
    while more {
        let after = numbers.last().copied().unwrap_or(0);
        let page = control.ask(&format!(r#"{{"ask":"connections","after":{after},"most":1}}"#));
        numbers
            .extend(page["connections"].as_array().unwrap().iter().map(|it| number(&it["number"])));
        more = page["more"] == true;
    }
    assert!(numbers.len() == 4 && numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");

    drop(streams);
    let report = bed.hub.stop();
    assert_eq!((report.peers.len(), report.traffic.sessions), (4, 4));
    assert_eq!(report.connections.opened, 4);
}

#[test]
fn a_terminal_that_roams_stays_in_its_shard() {
    let (mut bed, keys) = Bed::new("roaming", 0);
    let nat = Nat::before(bed.address());
    // The terminal `site-0`.
    bed.terminals.push(terminal(nat.address, &keys[3], &keys[0]));
    let content = pattern(6_000_000, 2);
    let sent = content.clone();
    let server = serve(move |mut stream| drop(stream.write_all(&sent)));
    let mut stream = bed.connect(server).remove(0);
    let mut received = vec![0; content.len()];
    let (first, rest) = received.split_at_mut(500_000);
    stream.read_exact(first).unwrap();
    nat.outside.store(1, Ordering::Relaxed);
    stream.read_exact(rest).unwrap();
    assert!(received == content);
    let status = bed.status();
    assert_eq!(status["traffic"]["sessions"], 1, "it is the same session");
    // Acknowledgments, from both addresses; the other shard has received Hellos.
    assert!(number(&status["shards"][1]["datagrams_received"]) > 20, "{status}");
    assert!(number(&status["shards"][0]["datagrams_received"]) < 10, "{status}");
    assert!(number(&status["shards"][1]["datagrams_handed_over"]) < 10, "{status}");
}

#[test]
fn a_reload_changes_the_lists_of_all_shards() {
    let (bed, keys) = Bed::new("reload", 3);
    let server = echo();
    let mut streams = bed.connect(server);
    streams.iter_mut().for_each(|stream| exchange(stream, b"here"));
    let more = key();
    let name = (6..).map(|number| format!("site-{number}")).find(|name| shard_of(name, 2) == 1);
    let more_entry = entry(&name.unwrap(), more.public());
    // `site-3` of shard 0 and `site-0` of shard 1 are removed.
    let gone: String =
        [(1, 2), (2, 3)].map(|(at, key)| entry(NAMES[at], keys[key].public())).concat();
    bed.hub.reload(|text| text.replace(&gone, &more_entry));
    assert!(soon(|| bed.terminals() == [NAMES[0]]), "{}", bed.status());
    exchange(&mut streams[0], b"still here");
    let new = terminal(bed.address(), &more, &keys[0]);
    exchange(&mut connect_by(new.addresses.socks5[0], server), b"a new one");
    // Limits are divided.
    bed.hub.reload(|text| text.replace(&gone, &more_entry) + "[limits]\nconnections = 10\n");
    assert!(soon(|| bed.status()["limit"] == 10), "{}", bed.status());
    exchange(&mut streams[0], b"still here");
}

#[test]
fn a_drain_ends_when_the_connections_of_all_shards_have() {
    let (bed, _) = Bed::new("drain", 4);
    let mut streams = bed.connect(echo());
    streams.iter_mut().for_each(|stream| exchange(stream, b"before"));
    bed.hub.drain();
    while let Some(mut stream) = streams.pop() {
        exchange(&mut stream, b"during");
    }
    let report = bed.hub.join();
    assert_eq!((report.connections.completed, report.connections.reset_by_peer), (4, 0));
}

#[test]
fn a_capture_and_metrics_are_of_all_shards() {
    use pcap_file::pcapng::{Block, PcapNgReader};
    let (bed, _) = Bed::new("capture", 4);
    let mut streams = bed.connect(echo());
    let mut client = bed.control();
    assert_eq!(client.ask(r#"{"ask":"capture","count":200}"#)["answer"], "capture");
    // Some packets of each terminal after another, more than 200 in all.
    let text = "a secret".repeat(500);
    for _ in 0..20 {
        streams.iter_mut().for_each(|stream| exchange(stream, text.as_bytes()));
    }
    let mut file = Vec::new();
    client.read_to_end(&mut file);
    let (mut packets, mut terminals) = (0, std::collections::BTreeSet::new());
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            packets += 1;
            // Addresses of the IPv4 header.
            terminals.insert(packet.data[12..20].to_vec());
        }
    }
    assert_eq!(packets, 200);
    assert!(terminals.len() >= 4, "both directions of terminals of both shards");
    let mut stream = super::harness::open(bed.hub.addresses.metrics.unwrap());
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let page = String::from_utf8(super::harness::read_all(&mut stream)).unwrap();
    assert!(page.contains("\nbentpipe_connections 4\n"), "{page}");
    for shard in [0, 1] {
        let line = format!("\nbentpipe_shard_terminals{{shard=\"{shard}\"}} 2\n");
        assert!(page.contains(&line), "{page}");
    }
}
