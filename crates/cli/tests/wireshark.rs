//! The Wireshark dissector, tested with the specification's vectors, running gateways and the
//! simulator. Requires tshark; is skipped without it.

use lab::watch::{self, WatchConfig};
use monitor::{Client, Question, Status};
use rt::pcap::{self, Direction, LinkType};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use units::Span;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/wireshark/bentpipe.lua");

/// A temporary directory that is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    /// Returns `None`, with a message on standard error, without tshark.
    fn new(name: &str) -> Option<Self> {
        if Command::new("tshark").arg("-v").output().is_err() {
            eprintln!("skipped: this machine has no tshark");
            return None;
        }
        let path = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Some(Self(path))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Returns a capture of one IPv4 packet per protocol.
    fn capture(&self, name: &str, packets: &[(u8, Vec<u8>)]) -> PathBuf {
        let mut file = Vec::new();
        pcap::header(LinkType::Ip, "test", &mut file);
        for ((protocol, payload), number) in packets.iter().zip(1u64..) {
            let mut header = [0u8; 20];
            (header[0], header[8], header[9]) = (0x45, 64, *protocol);
            header[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            header[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            pcap::packet(number * 1_000_000, Direction::Inbound, &[&header, payload], &mut file);
        }
        let path = self.at(name);
        fs::write(&path, file).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the output of tshark with the dissector.
fn tshark(file: &Path, more: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-X", &format!("lua_script:{SCRIPT}"), "-r"])
        .arg(file)
        .args(more)
        .output()
        .unwrap();
    let (out, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let out = String::from_utf8_lossy(&out).into_owned();
    // An error of the script appears in the output as a Lua message.
    assert!(!out.contains("bentpipe.lua:"), "{out}");
    out
}

/// Returns the fields `names` of the packets that `filter` selects, one line per packet.
fn fields(file: &Path, filter: &str, names: &[&str], more: &[&str]) -> Vec<String> {
    let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator=|"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    arguments.extend(more);
    tshark(file, &arguments).lines().map(str::to_owned).collect()
}

fn octets(text: &str) -> Vec<u8> {
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn udp(port: u16, payload: &[u8]) -> (u8, Vec<u8>) {
    let mut datagram = Vec::new();
    for word in [port, port, 8 + payload.len() as u16, 0] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend(payload);
    (17, datagram)
}

/// Segments with the sealed header; the octets are those of `xstp`'s tests.
const SEALED: [&str; 12] = [
    "13 000000 | 01 01 05a8 cafef00d 8020 | 00000007 | 01 00 | 00 | 01 07",
    "50 000000 | 01 01 05a8 cafef00d 8020 00000007",
    "02 000010 | 01020304 | ac02 | 00",
    "04 000009 | 00 000007 01020304 ac02 a09c01 | 00 | 04 00 00 07 0f",
    "0c 000009 | 00 000007 01020304 ac02 a09c01 05 01 02 03 04 05 | 000007 00 03 01 02 03 | 00",
    // Frames: a stream by name with FIN; a refusal; credit; shared credit.
    "01 000001 | ac 05 01 12 0b 6578616d706c652e6f7267 0050 0a000001 1388 02 6869 \
     02 05 00 00 41 | 03 05 10 | 04 7f",
    // A UDP datagram with its length, and a fragment of a larger packet.
    "01 000002 | 25 1d 45 00 001d 0000 0000 40 11 0000 0a000001 0a000002 1388 0009 0009 0000 78 \
     | 06 07 dc0b 05 | 616263",
    "01 000003 | 05",
    "20 000005 | cafef00d",
    "60 000005 | cafef00d",
    "80 000000 | cafef00d",
    "01 000004 | 09 03 06",
];

/// Segments with the published header.
const PUBLISHED: [&str; 5] = [
    "03e8 07d0 | 10 000000 | 0040 d9e9 | 00000007 | 0d 03e8",
    "03e8 07d0 | 01 000005 | 0000 75c7 | 00000000 | 68 69",
    "03e8 07d0 | 03 000002 | 0000 d2d1 | 000003e8 | 000005 | 78",
    "03e8 07d0 | 04 000000 | 0040 ebdb | 00000000 | 05 000007 000003e8 \
     | 000007 000008 00000a 00000d 0000d5",
    "03e8 07d0 | 08 000000 | 0000 c20b | 00000000 | 04 000007 | 000007 000008 00000a 00000d",
];

#[test]
fn the_specifications_formats_are_dissected() {
    let Some(scratch) = Scratch::new("dissector-layouts") else { return };
    let sealed: Vec<_> = SEALED.iter().map(|text| udp(9721, &octets(text))).collect();
    let file = scratch.capture("sealed.pcapng", &sealed);
    assert_eq!(
        fields(&file, "xstp.malformed || xstp.illegal_types", &["frame.number"], &[]).len(),
        0
    );
    // The eighth is an empty DATAGRAM.
    assert_eq!(fields(&file, "relay.malformed", &["frame.number"], &[]), ["8"]);
    let types = fields(&file, "xstp", &["xstp.type", "xstp.number"], &[]);
    assert_eq!(types[0], "0x13|0");
    assert_eq!(types.len(), SEALED.len());
    let begin = ["xstp.incarnation", "xstp.max_segment", "xstp.window", "xstp.delivery"];
    assert_eq!(fields(&file, "xstp.type.bgn == 1", &begin, &[]), ["3405705229|1448|4096|1"; 2]);
    let poll = ["xstp.stamp", "xstp.poll.count", "xstp.poll.next"];
    assert_eq!(fields(&file, "frame.number == 3", &poll, &[]), ["16909060|300|16"]);
    let stat = ["xstp.stat.below", "xstp.stat.echo_count", "xstp.window", "relay.credit"];
    assert_eq!(fields(&file, "frame.number == 4", &stat, &[]), ["7|300|20000|0,15360"]);
    let gaps = ["xstp.gap.first", "xstp.gap.length", "xstp.missing"];
    // The STAT: 7 missing, 8 and 9 received, 10 to 12 missing, 13 to 16 received, 17 to 21 missing.
    // The USTAT: 7, and 10 to 12.
    assert_eq!(fields(&file, "frame.number == 5", &gaps, &[]), ["7,10,17,7,10|1,3,5,1,3|9,4"]);
    let families = fields(&file, "frame.number == 12", &["relay.frame", "relay.families"], &[]);
    assert_eq!(families, ["FAMILIES 3: IPv4 global, IPv6 partial|0x0000000000000006"]);
    let frames = fields(&file, "frame.number == 6", &["relay.frame"], &["-E", "aggregator=;"]);
    assert_eq!(
        frames,
        ["STREAM 5 opens example.org:80, 2 bytes, end;RESET 5, connection refused;\
          CREDIT 5 16384 bytes;SHARED 130048 bytes"]
    );
    let open = ["relay.target", "relay.source", "relay.priority"];
    assert_eq!(fields(&file, "relay.open == 1", &open, &[]), ["example.org:80|10.0.0.1:5000|1"]);

    let carried = ["udp.dstport", "relay.piece.total", "relay.offset"];
    assert_eq!(fields(&file, "relay.packet", &carried, &[]), ["9721,9|1500|5"]);

    let published: Vec<_> = PUBLISHED.iter().map(|text| (253, octets(text))).collect();
    let file = scratch.capture("published.pcapng", &published);
    assert_eq!(fields(&file, "xstp.malformed", &["frame.number"], &[]).len(), 0);
    let ports = ["xstp.srcport", "xstp.dstport", "xstp.type", "xstp.number", "xstp.window"];
    let seen = fields(&file, "xstp", &ports, &[]);
    assert_eq!(
        seen,
        [
            "1000|2000|0x10|0|64",
            "1000|2000|0x01|5|0",
            "1000|2000|0x03|2|0",
            "1000|2000|0x04|0|64",
            "1000|2000|0x08|0|0",
        ]
    );
    // Missing are 7 and 10 to 12, in the STAT and in the USTAT.
    assert_eq!(fields(&file, "xstp.missing", &gaps, &[]), ["7,10|1,3|4"; 2]);
}

/// Truncated and invalid packets are reported as malformed without errors of the script.
#[test]
fn invalid_packets_are_reported_as_malformed() {
    let Some(scratch) = Scratch::new("dissector-broken") else { return };
    let mut packets = Vec::new();
    for text in SEALED {
        let whole = octets(text);
        packets.extend((0..whole.len()).map(|len| udp(9721, &whole[..len])));
        for at in 0..whole.len() {
            let mut bent = whole.clone();
            bent[at] ^= 0xff;
            packets.push(udp(9721, &bent));
        }
    }
    for text in PUBLISHED {
        let whole = octets(text);
        packets.extend((0..whole.len()).map(|len| (253, whole[..len].to_vec())));
    }
    // Associations: every message type, at every length up to that of a Hello.
    for kind in 0..=15 {
        packets.extend((0..180).map(|len| {
            let mut datagram = vec![0; len];
            datagram.iter_mut().take(1).for_each(|first| *first = 0x10 | kind);
            udp(7000, &datagram)
        }));
    }
    let file = scratch.capture("broken.pcapng", &packets);
    let seen = fields(&file, "xstp || bentpipe", &["frame.number"], &[]);
    // An empty payload has no protocol.
    assert!(seen.len() > packets.len() - 60, "{} of {}", seen.len(), packets.len());
    let wrong = "xstp.malformed || xstp.illegal_types || relay.malformed || bentpipe.malformed";
    assert!(fields(&file, wrong, &["frame.number"], &[]).len() > packets.len() / 4);
    // The complete tree of each packet, so that every field is created.
    tshark(&file, &["-V"]);
}

/// A program that is stopped at the end of the test.
struct Program(Child);

impl Program {
    fn start(arguments: &[&str], input: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bentpipe"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Self(child)
    }

    /// Stops it gracefully.
    fn end(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("sh").args(["-c", &format!("kill {pid}")]).status();
        let _ = self.0.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn pause() {
    let clock = rt::Clock::new();
    clock.sleep_until(clock.now() + Span::from_millis(50));
}

/// Repeats a request until `enough` accepts the response.
fn await_status(socket: &Path, enough: impl Fn(&Status) -> bool) {
    for _ in 0..600 {
        if let Ok(mut client) = Client::find(Some(socket))
            && client.ask(&Question::Status).is_ok_and(|status| enough(&status))
        {
            return;
        }
        pause();
    }
    panic!("{}: not in half a minute", socket.display());
}

/// Sends `length` octets on the first connection.
fn server(length: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 100]);
        let _ = stream.write_all(&vec![b'x'; length]);
    });
    address
}

#[test]
fn captures_of_running_gateways_are_dissected_inside_and_outside() {
    let Some(scratch) = Scratch::new("dissector-live") else { return };
    let (hub_port, link_port) = (free_port(), free_port());
    let socks = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let socket = |who: &str| scratch.at(&format!("{who}.sock"));
    let control = |who: &str| format!("[control]\nsocket = \"{}\"\n", socket(who).display());
    let gateway = ["gateway", "--config", "/dev/stdin"];
    let mut hub = Program::start(
        &gateway,
        &format!(
            "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:{hub_port}\"\n\
             round_trip = \"40ms\"\n{}",
            control("hub")
        ),
    );
    let outer = scratch.at("outer.pcapng");
    let link = format!("127.0.0.1:{link_port} 127.0.0.1:{hub_port} delay 20ms rate 20mbit loss 2%");
    let mut words = vec!["emulate", "--quiet", "--pcap-a", outer.to_str().unwrap(), "udp"];
    words.extend(link.split(' '));
    let mut emulator = Program::start(&words, "");
    let mut terminal = Program::start(
        &gateway,
        &format!(
            "role = \"terminal\"\nsecurity = \"none\"\nname = \"boat\"\n[link]\n\
             peer = \"127.0.0.1:{link_port}\"\nround_trip = \"40ms\"\n\
             [socks5]\nlisten = \"{socks}\"\n{}",
            control("boat")
        ),
    );
    await_status(&socket("hub"), |status| status.terminals.iter().any(|one| one.connected));

    let inner = scratch.at("inner.pcapng");
    let mut capture = Program::start(
        &["capture", "--socket", socket("hub").to_str().unwrap(), "-w", inner.to_str().unwrap()],
        "",
    );
    while fs::metadata(&inner).map_or(0, |file| file.len()) == 0 {
        pause();
    }
    let way = testbed::traffic::Way::Socks5(socks);
    let server = server(1_500_000);
    let mut stream = testbed::traffic::connect(way, server, Duration::from_secs(20)).unwrap();
    stream.write_all(b"please").unwrap();
    let mut body = Vec::new();
    stream.read_to_end(&mut body).unwrap();
    assert_eq!(body.len(), 1_500_000);
    for program in [&mut capture, &mut terminal, &mut hub, &mut emulator] {
        program.end();
    }

    // Inside: everything is dissected, including the download.
    let all = fields(&inner, "frame", &["frame.number"], &[]).len();
    let seen = fields(&inner, "xstp", &["frame.number"], &[]).len();
    assert!(all > 1000 && seen == all, "{seen} of {all}");
    let wrong = "xstp.malformed || xstp.illegal_types || relay.malformed";
    assert_eq!(fields(&inner, wrong, &["frame.number", "_ws.col.Info"], &[]), Vec::<String>::new());
    let opened = fields(&inner, "relay.open == 1", &["relay.target"], &[]);
    assert_eq!(opened, [server.to_string()]);
    // With 2 % loss, some packets are missing, reported and retransmitted; POLLs have STATs.
    for filter in ["xstp.gap", "xstp.again", "xstp.stat.time > 0", "relay.end == 1"] {
        assert!(!fields(&inner, filter, &["frame.number"], &[]).is_empty(), "{filter}");
    }
    // Outside: a Hello identifies the port of a hub, and payloads are opaque.
    let kinds = fields(&outer, "bentpipe", &["bentpipe.kind"], &[]);
    assert!(["1", "2", "3"].iter().all(|kind| kinds.iter().any(|seen| seen == kind)));
    let names = fields(&outer, "bentpipe.kind == 1", &["bentpipe.name"], &[]);
    assert!(names.iter().all(|name| name == "boat"), "{names:?}");
    assert_eq!(fields(&outer, "bentpipe.malformed", &["_ws.col.Info"], &[]), Vec::<String>::new());
    assert!(fields(&outer, "xstp", &["frame.number"], &[]).is_empty());
    let clear = fields(&outer, "xstp", &["frame.number"], &["-o", "bentpipe.clear:TRUE"]).len();
    assert!(clear > 1000, "{clear}");
}

#[test]
fn captures_of_the_simulator_are_dissected() {
    let Some(scratch) = Scratch::new("dissector-simulated") else { return };
    let config = WatchConfig {
        ways: ["fixed", "steady"].map(|name| watch::way(name).unwrap()).into(),
        stagger: Span::ZERO,
        link: lab::demo::read_link("geo").unwrap(),
        length: Span::from_secs(5),
        seed: 1,
        capture: Some(scratch.0.clone()),
        series: None,
        every: Span::from_millis(100),
    };
    watch::watch(&config).unwrap();
    let file = scratch.at("link.pcapng");
    let all = fields(&file, "udp", &["frame.number"], &[]).len();
    let seen = fields(&file, "xstp", &["frame.number"], &[]).len();
    assert!(all > 500 && seen == all, "{seen} of {all}");
    let wrong = "xstp.malformed || xstp.illegal_types || bentpipe.malformed";
    assert_eq!(fields(&file, wrong, &["_ws.col.Info"], &[]), Vec::<String>::new());
    assert!(!fields(&file, "xstp.stat.poll", &["frame.number"], &[]).is_empty());
}
