//! Terminals with bonded paths, by UDP and TLS, and at a hub with shards.

use super::harness::{Running, echo, open, pattern, read_exactly, socks_from, soon};
use super::observe::{Client, Folder};
use super::security::key;
use std::collections::BTreeMap;
use std::io::Write;

/// Starts a hub with keys for two paths of one terminal, and the terminal; `tls` are the tables at
/// hub and terminal.
fn start(folder: &Folder, hub: &str, tls: [&str; 2]) -> (Running, Running) {
    let [shore, boat, second] = [(); 3].map(|()| key());
    let folder = folder.0.display();
    let known = [("boat", &boat), ("boat/two", &second)].map(|(name, key)| {
        format!("[[terminal]]\nname = \"{name}\"\npublic_key = \"{}\"\n", key.public())
    });
    let hub = Running::start(&format!(
        "role = \"hub\"\nprivate_key = \"{}\"\n[link]\nlisten = \"127.0.0.1:0\"\nround_trip = \"10ms\"\n\
         [hub]\nallow = [\"127.0.0.0/8\"]\nown_addresses = \"allow\"\n{hub}\n{}\n{}",
        shore.to_text(),
        tls[0],
        known.concat()
    ));
    let port = hub.addresses.link.unwrap().port();
    let terminal = Running::start(&format!(
        "role = \"terminal\"\nname = \"boat\"\nprivate_key = \"{}\"\n[link]\nbond = true\n\
         peer = \"127.0.0.1:{port}\"\npeer_public_key = \"{}\"\nround_trip = \"10ms\"\n\
         [[path]]\nname = \"one\"\n[[path]]\nname = \"two\"\nprivate_key = \"{}\"\n{}\n\
         [socks5]\nlisten = \"127.0.0.1:0\"\n[control]\nsocket = \"{folder}/boat.sock\"\n",
        boat.to_text(),
        shore.public(),
        second.to_text(),
        tls[1]
    ));
    (hub, terminal)
}

/// Waits until both paths have a session, transfers data, and returns the status of the paths.
fn transfers(folder: &Folder, terminal: &Running) -> Vec<serde_json::Value> {
    let paths = || -> Vec<serde_json::Value> {
        let status = Client::connect(&folder.0.join("boat.sock")).ask(r#"{"ask":"status"}"#);
        status["terminals"].as_array().expect("paths").clone()
    };
    let is_up = |path: &serde_json::Value| path["connected"] == true && path["bonded"] == true;
    assert!(soon(|| paths().iter().filter(|path| is_up(path)).count() == 2), "{:?}", paths());
    let (mut stream, code) = socks_from(open(terminal.addresses.socks5[0]), echo());
    assert_eq!(code, 0);
    let sent = pattern(300_000, 1);
    stream.write_all(&sent).unwrap();
    assert!(read_exactly(&mut stream, sent.len()) == sent);
    paths()
}

#[test]
fn bonded_paths_are_joined_by_a_hub_with_shards() {
    let folder = Folder::of_test("bonded-shards");
    let (_hub, terminal) = start(&folder, "shards = 2", ["", ""]);
    let paths = transfers(&folder, &terminal);
    let carried = |path: &serde_json::Value| path["segment_bytes_sent"].as_u64();
    assert!(paths.iter().all(|path| carried(path) > Some(0)), "{paths:?}");
}

/// A capture at the terminal names the segments of each path by that path.
#[test]
fn a_capture_names_bonded_paths() {
    use pcap_file::pcapng::blocks::name_resolution::Record;
    use pcap_file::pcapng::{Block, PcapNgReader};
    let folder = Folder::of_test("bonded-capture");
    let (_hub, terminal) = start(&folder, "", ["", ""]);
    transfers(&folder, &terminal);
    let mut capture = Client::connect(&folder.0.join("boat.sock"));
    assert_eq!(capture.ask(r#"{"ask":"capture","count":400}"#)["answer"], "capture");
    transfers(&folder, &terminal);
    let mut file = Vec::new();
    capture.read_to_end(&mut file);
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let (mut names, mut packets) = (BTreeMap::new(), BTreeMap::<[u8; 4], usize>::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::NameResolution(block) => {
                for record in block.records {
                    let Record::Ipv4(record) = record else { continue };
                    names.insert(record.names[0].to_string(), record.ip_addr.to_vec());
                }
            }
            Block::EnhancedPacket(packet) => {
                for at in [12, 16] {
                    *packets.entry(packet.data[at..at + 4].try_into().unwrap()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    let of = |name: &str| names.get(name).and_then(|address| packets.get(&address[..])).copied();
    let (one, two) = (of("boat/one").or(of("boat")), of("boat/two"));
    assert!(one > Some(0) && two > Some(0), "{names:?} {packets:?}");
    assert_eq!(one.unwrap() + two.unwrap(), 400);
}

#[test]
fn bonded_paths_use_tls() {
    let folder = Folder::of_test("bonded-tls");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at_hub = format!("[tls]\nlisten = \"127.0.0.1:{port}\"\n");
    let at_terminal = format!("[tls]\nport = {port}\nuse = \"always\"\n");
    let (_hub, terminal) = start(&folder, "", [&at_hub, &at_terminal]);
    let paths = transfers(&folder, &terminal);
    assert!(paths.iter().all(|path| path["carrier"] == "tls"), "{paths:?}");
}
