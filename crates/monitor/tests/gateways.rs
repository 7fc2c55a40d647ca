//! Two running gateways, observed by the operators' client.

use gateway::{Config, Gateway, Stop};
use monitor::{Client, Error, Page, Question, Request, Status, capture, table};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

struct Running {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
    link: SocketAddr,
    socks: Option<SocketAddr>,
}

impl Running {
    fn start(text: &str) -> Self {
        let config = Config::parse("test.toml", text).unwrap();
        let gateway = Gateway::open(&config).unwrap();
        let stop = Stop::new().unwrap();
        let (link, socks) =
            (gateway.addresses().link.unwrap(), gateway.addresses().socks5.first().copied());
        let handle = stop.clone();
        let thread = Some(std::thread::spawn(move || drop(gateway.run(&handle).unwrap())));
        Self { stop, thread, link, socks }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A temporary folder that is removed on drop.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn pair(folder: &Path) -> (Running, Running) {
    let control = |who: &str| format!("[control]\nsocket = \"{}/{who}.sock\"", folder.display());
    let rates = "rate_up = \"200mbit\"\nrate_down = \"200mbit\"\nround_trip = \"10ms\"";
    let hub = Running::start(&format!(
        "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:0\"\n{rates}\n{}",
        control("hub")
    ));
    let terminal = Running::start(&format!(
        "role = \"terminal\"\nsecurity = \"none\"\nname = \"boat\"\n[link]\npeer = \"{}\"\n\
         listen = \"127.0.0.1:0\"\n{rates}\n[socks5]\nlisten = \"127.0.0.1:0\"\n{}",
        hub.link,
        control("boat")
    ));
    (hub, terminal)
}

/// Connects through both gateways to an echo server.
fn through(terminal: &Running) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(server) = listener.local_addr().unwrap() else { panic!("IPv4") };
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    });
    let mut stream = TcpStream::connect(terminal.socks.unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&[5, 1, 0]).unwrap();
    stream.read_exact(&mut [0; 2]).unwrap();
    let mut request = vec![5, 1, 0, 1];
    request.extend(server.ip().octets());
    request.extend(server.port().to_be_bytes());
    stream.write_all(&request).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    stream
}

fn echo(stream: &mut TcpStream, bytes: &[u8]) {
    let mut back = vec![0; bytes.len()];
    std::thread::scope(|scope| {
        let mut writer = stream.try_clone().unwrap();
        scope.spawn(move || writer.write_all(bytes).unwrap());
        stream.read_exact(&mut back).unwrap();
    });
    assert!(back == bytes);
}

#[test]
fn status_connections_and_captures_of_running_gateways() {
    let folder = Folder(std::env::temp_dir().join(format!("monitor-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let (_hub, terminal) = pair(&folder.0);
    let mut stream = through(&terminal);
    echo(&mut stream, &[7; 100_000]);
    let client = |who: &str| Client::find(Some(&folder.0.join(format!("{who}.sock")))).unwrap();

    let status: Status = client("hub").ask(&Question::Status).unwrap();
    assert_eq!((status.open, status.terminals.len()), (1, 1));
    let way = &status.terminals[0];
    assert!(way.connected && way.stream_bytes_sent >= 100_000 && way.round_trip_seconds.is_some());
    let report = way.report.as_ref().expect("a report of the terminal");
    assert_eq!((&report.version, report.paths.len()), (&status.gateway.version, 1));
    assert!((report.started_unix_seconds - status.gateway.started_unix_seconds).abs() < 60.0);
    let page = table(&status);
    assert!(page.starts_with("hub \"hub\", version"), "{page}");
    assert!(page.lines().last().unwrap().starts_with("boat "), "{page}");

    let question = Question::Connections { after: 0, most: 9, terminal: Some("boat".into()) };
    let page: Page = client("hub").ask(&question).unwrap();
    assert_eq!((page.connections.len(), page.connections[0].bytes_to_socket), (1, 100_000));
    assert_eq!(page.connections[0].client, Some(stream.local_addr().unwrap().to_string()));

    // A capture ends at its time limit, and one that is stopped has a complete file.
    let (path, stop) = (folder.0.join("inner.pcapng"), AtomicBool::new(false));
    let captured = std::thread::scope(|scope| {
        let request = Request { terminal: Some("boat".into()), ..Request::default() };
        let capturing = scope.spawn(|| capture(client("hub"), request, &path, &stop));
        while std::fs::metadata(&path).map_or(0, |file| file.len()) < 100_000 {
            echo(&mut stream, &[9; 50_000]);
        }
        let refused = capture(client("hub"), Request::default(), &folder.0.join("two"), &stop);
        assert!(matches!(refused, Err(Error::Refused(_))), "one at a time");
        stop.store(true, Ordering::Relaxed);
        capturing.join().unwrap().unwrap()
    });
    assert_eq!(captured.missing, Some(0));
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    let bytes = std::fs::read(&path).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&bytes[..]).unwrap();
    let mut packets = 0;
    while let Some(block) = reader.next_block() {
        packets += u64::from(block.unwrap().into_enhanced_packet().is_some());
    }
    assert_eq!(packets, captured.packets);
    let nowhere = capture(client("hub"), Request::default(), "/nowhere/x".as_ref(), &stop);
    assert!(matches!(nowhere, Err(Error::File { .. })));
}
