//! Control socket and metrics of running gateways.

use super::harness::{Pair, echo, open, pattern, read_all, read_exactly};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A pair whose gateways have control sockets in a folder of the test.
struct Observed {
    pair: Pair,
    folder: Folder,
}

/// A folder that is removed on drop.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn of_test(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bentpipe-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Observed {
    fn new(name: &str) -> Self {
        let folder = Folder::of_test(name);
        let more = |who: &str| {
            format!(
                "[control]\nsocket = \"{}/{who}.sock\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n",
                folder.0.display()
            )
        };
        let terminal = format!("name = \"boat\"\n{}", more("boat"));
        Self { pair: Pair::with(&terminal, &more("hub")), folder }
    }

    fn control(&self, who: &str) -> Client {
        Client::connect(&self.folder.0.join(format!("{who}.sock")))
    }

    fn metrics(&self) -> TcpStream {
        open(self.pair.hub.addresses.metrics.unwrap())
    }

    fn scrape(&self, request: &str) -> String {
        let mut stream = self.metrics();
        stream.write_all(request.as_bytes()).unwrap();
        String::from_utf8(read_all(&mut stream)).unwrap()
    }
}

pub(super) struct Client(BufReader<UnixStream>);

impl Client {
    pub(super) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(BufReader::new(stream))
    }

    pub(super) fn read_to_end(&mut self, into: &mut Vec<u8>) {
        self.0.read_to_end(into).unwrap();
    }

    fn say(&mut self, line: &str) {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(super) fn ask(&mut self, question: &str) -> Value {
        self.say(&format!("{question}\n"));
        self.hear()
    }
}

#[test]
fn the_control_socket_tells_of_terminals_and_connections() {
    let observed = Observed::new("control");
    let mut stream = observed.pair.connect(echo());
    stream.write_all(&pattern(100_000, 1)).unwrap();
    read_exactly(&mut stream, 100_000);
    let client = stream.local_addr().unwrap().to_string();

    let mut hub = observed.control("hub");
    let status = hub.ask(r#"{"ask":"status"}"#);
    assert_eq!((&status["version"], &status["answer"]), (&1.into(), &"status".into()));
    assert_eq!(status["gateway"]["role"], "hub");
    let way = &status["terminals"][0];
    assert_eq!((&way["terminal"], &way["connected"]), (&"boat".into(), &true.into()));
    assert!(way["stream_bytes_sent"].as_u64().unwrap() >= 100_000, "{status}");
    assert!(way["last_received_unix_seconds"].as_f64() >= way["since_unix_seconds"].as_f64());

    for (who, terminal) in [("hub", Value::from("boat")), ("boat", Value::Null)] {
        let page = observed.control(who).ask(r#"{"ask":"connections","most":10}"#);
        let one = &page["connections"][0];
        assert_eq!((&one["state"], &one["terminal"]), (&"open".into(), &terminal), "{page}");
        assert_eq!(one["client"], client.as_str());
        // It has just sent 100 kB, of which 32 KiB are forgotten per second.
        assert!(one["class"] == "bulk" || one["class"] == "interactive", "{page}");
        assert_eq!(one["bytes_from_socket"], 100_000);
        assert_eq!(one["bytes_to_socket"], 100_000);
        assert_eq!(page["more"], false);
    }
    let none = hub.ask(r#"{"ask":"connections","terminal":"bus"}"#);
    assert_eq!(none["connections"], Value::Array(Vec::new()));
    drop(observed.pair.hub.stop());
    let gone = std::fs::read_dir(&observed.folder.0).unwrap().count();
    assert_eq!(gone, 1, "the hub's socket is cleared away, the terminal's is there");
}

#[test]
fn connections_come_in_pages() {
    let observed = Observed::new("pages");
    let server = echo();
    let streams: Vec<TcpStream> = (0..7).map(|_| observed.pair.connect(server)).collect();
    let mut client = observed.control("boat");
    let (mut numbers, mut more) = (Vec::new(), true);
    while more {
        let after = numbers.last().copied().unwrap_or(0);
        let page = client.ask(&format!(r#"{{"ask":"connections","after":{after},"most":3}}"#));
        let found = page["connections"].as_array().unwrap();
        assert!((1..=3).contains(&found.len()), "{page}");
        numbers.extend(found.iter().map(|one| one["number"].as_u64().unwrap()));
        more = page["more"] == true;
    }
    assert_eq!(numbers, (1..=7).collect::<Vec<u64>>());
    drop(streams);
}

#[test]
fn clients_that_make_no_sense_or_do_not_read_are_bounded() {
    let observed = Observed::new("hostile");
    // An invalid request is answered, and the next one too.
    let mut client = observed.control("hub");
    assert!(client.ask("hello")["error"].as_str().unwrap().starts_with("not understood"));
    assert_eq!(client.ask(r#"{"ask":"status"}"#)["answer"], "status");
    // Two requests in one write have two responses.
    client.say("{\"ask\":\"status\"}\n\n{\"ask\":\"status\"}\n");
    assert_eq!(
        (&client.hear()["answer"], &client.hear()["answer"]),
        (&"status".into(), &"status".into())
    );
    // A line without an end.
    let mut endless = observed.control("hub");
    endless.say(&"x".repeat(5000));
    assert!(endless.hear()["error"].as_str().unwrap().contains("4096"));
    assert_eq!(endless.0.read(&mut [0]).unwrap_or(0), 0);
    // A client that sends requests and does not read is no longer served; others are.
    let deaf = observed.control("hub");
    deaf.0.get_ref().set_nonblocking(true).unwrap();
    let question = b"{\"ask\":\"status\"}\n".repeat(1000);
    let mut written = 0;
    while let Ok(count) = (&mut deaf.0.get_ref()).write(&question) {
        written += count;
        assert!(written < 100_000_000, "it takes questions without end");
    }
    assert_eq!(client.ask(r#"{"ask":"status"}"#)["answer"], "status");
    // Too many clients.
    let mut others: Vec<Client> = (0..20).map(|_| observed.control("hub")).collect();
    let mut last = others.pop().unwrap();
    assert!(last.hear()["error"].as_str().unwrap().contains("too many"));
    // Meanwhile traffic passes.
    let mut stream = observed.pair.connect(echo());
    stream.write_all(b"ping").unwrap();
    assert_eq!(read_exactly(&mut stream, 4), b"ping");
}

#[test]
fn metrics_are_had_by_http_and_nothing_else_is() {
    let observed = Observed::new("metrics");
    let mut stream = observed.pair.connect(echo());
    stream.write_all(b"ping").unwrap();
    read_exactly(&mut stream, 4);

    let page = observed.scrape("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("Content-Type: text/plain; version=0.0.4"));
    assert!(page.contains("\nbentpipe_connections 1\n"), "{page}");
    assert!(page.contains("\nbentpipe_terminal_connected{terminal=\"boat\"} 1\n"));
    let open = observed.scrape(
        "GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    );
    assert!(open.contains("application/openmetrics-text") && open.ends_with("\n# EOF\n"));
    let head = observed.scrape("HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"));
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "200"),
        ("GET /etc/passwd HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405"),
        ("\x16\x03\x01 hello\r\n\r\n", "400"),
    ] {
        let answer = observed.scrape(request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
    }
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9000));
    let mut stream = observed.metrics();
    stream.write_all(long.as_bytes()).unwrap();
    assert_eq!(read_exactly(&mut stream, 12), b"HTTP/1.1 431");

    // Silent scrapers do not block others.
    let silent: Vec<TcpStream> = (0..20).map(|_| observed.metrics()).collect();
    assert!(observed.scrape("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    // One that closes in the middle of a request is removed.
    let left = observed.metrics();
    (&left).write_all(b"GET /met").unwrap();
    left.shutdown(Shutdown::Both).unwrap();
    assert!(observed.scrape("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[test]
fn a_capture_is_a_valid_file() {
    use pcap_file::pcapng::{Block, PcapNgReader};
    let observed = Observed::new("capture");
    let mut stream = observed.pair.connect(echo());
    for (who, terminal) in [("hub", "\"boat\""), ("boat", "null")] {
        let mut client = observed.control(who);
        let question = format!(r#"{{"ask":"capture","terminal":{terminal},"count":40}}"#);
        assert_eq!(client.ask(&question)["answer"], "capture");
        let refused = observed.control(who).ask(r#"{"ask":"capture"}"#);
        assert_eq!(refused["error"], "another capture is running");
        // Captured packets are decrypted, and the capture ends by itself.
        let text = format!("a secret of {who}").repeat(4000);
        stream.write_all(text.as_bytes()).unwrap();
        assert_eq!(read_exactly(&mut stream, text.len()), text.as_bytes());
        let mut file = Vec::new();
        client.0.read_to_end(&mut file).unwrap();
        let (mut packets, mut ends) = (0, 0);
        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    packets += 1;
                    seen.extend_from_slice(&packet.data[28..]);
                }
                Block::InterfaceStatistics(_) => ends += 1,
                _ => {}
            }
        }
        assert_eq!((packets, ends), (40, 1), "{who}");
        assert!(String::from_utf8_lossy(&seen).contains("a secret of"), "{who}");
    }
    // A client that captures and does not read blocks no other.
    let mut deaf = observed.control("hub");
    deaf.say("{\"ask\":\"capture\"}\n");
    let body = pattern(8 << 20, 3);
    std::thread::scope(|scope| {
        let mut writer = stream.try_clone().unwrap();
        let sent = &body;
        scope.spawn(move || writer.write_all(sent).unwrap());
        assert!(read_exactly(&mut stream, body.len()) == body);
    });
    drop(deaf);
    let mut again = observed.control("hub");
    assert_eq!(again.ask(r#"{"ask":"capture","seconds":0}"#)["answer"], "capture");
}
