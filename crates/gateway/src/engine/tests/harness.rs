//! A hub and a terminal, each on its own thread, and SOCKS5 clients.

use crate::{Addresses, Config, Gateway, Report, ShardedHub, Stop};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit of every wait.
const TOO_LONG: Duration = Duration::from_secs(20);

/// A running gateway.
pub(super) struct Running {
    pub(super) addresses: Addresses,
    /// Its configuration, and the file from which it is reloaded.
    text: String,
    file: PathBuf,
    stop: Stop,
    thread: Option<JoinHandle<Report>>,
}

impl Running {
    pub(super) fn start(text: &str) -> Self {
        if std::env::var_os("BENTPIPE_LOG").is_some() {
            let mut log = crate::start_logging(&crate::LogSection::default());
            log.start_writing().unwrap();
        }
        // A test without keys tests without encryption.
        let open = if text.contains("private_key") { "" } else { "security = \"none\"\n" };
        let text = format!("{open}{text}");
        let config = Config::parse("test.toml", &text).unwrap();
        let stop = Stop::new().unwrap();
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("bentpipe-{}-reload-{number}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        type Run = Box<dyn FnOnce(&Stop) -> Result<Report, crate::Error> + Send>;
        let (addresses, run): (Addresses, Run) = if config.shards() > 1 {
            let hub = ShardedHub::open(&config).unwrap().reloading_from(file.clone());
            (hub.addresses().clone(), Box::new(move |stop| hub.run(stop)))
        } else {
            let gateway = Gateway::open(&config).unwrap().reloading_from(file.clone());
            (gateway.addresses().clone(), Box::new(move |stop| gateway.run(stop)))
        };
        let handle = stop.clone();
        let thread = std::thread::spawn(move || {
            let report = run(&handle).unwrap();
            tracing::info!("{}", crate::to_json(&report).unwrap());
            report
        });
        Self { addresses, text, file, stop, thread: Some(thread) }
    }

    /// Reloads a changed configuration; the caller checks when it is in force.
    pub(super) fn reload(&self, change: impl Fn(&str) -> String) {
        std::fs::write(&self.file, change(&self.text)).unwrap();
        // The file may contain keys.
        std::fs::set_permissions(&self.file, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.stop.reload();
    }

    /// Stops it and returns its report.
    pub(super) fn stop(self) -> Report {
        self.stop.stop();
        self.join()
    }

    /// Stops it and keeps its state.
    pub(super) fn halt(&mut self) {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap();
    }

    /// Drains it.
    pub(super) fn drain(&self) {
        self.stop.drain();
    }

    /// Waits until it has ended, and returns its report.
    pub(super) fn join(mut self) -> Report {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        // Most tests have none.
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A hub and a terminal.
pub(super) struct Pair {
    pub(super) hub: Running,
    pub(super) terminal: Running,
}

impl Pair {
    /// Starts both. `terminal` and `hub` are added to the configurations; `terminal` at the top.
    pub(super) fn with(terminal: &str, hub: &str) -> Self {
        let hub = hub_at("127.0.0.1:0", hub);
        let terminal = terminal_of(&hub, terminal);
        Self { hub, terminal }
    }

    pub(super) fn early() -> Self {
        Self::with("accept = \"early\"", "")
    }

    pub(super) fn confirm() -> Self {
        Self::with("accept = \"confirm\"", "")
    }

    /// Requests a connection by SOCKS5; returns it with the code of the reply.
    pub(super) fn socks(&self, target: SocketAddr) -> (TcpStream, u8) {
        socks_from(open(self.terminal.addresses.socks5[0]), target)
    }

    /// Requests a connection as [`Pair::socks`] does, by name.
    pub(super) fn socks_name(&self, name: &str, port: u16) -> (TcpStream, u8) {
        let mut request = vec![5, 1, 0, 3, name.len() as u8];
        request.extend(name.as_bytes());
        request.extend(port.to_be_bytes());
        socks_request(open(self.terminal.addresses.socks5[0]), &request)
    }

    /// Connects to `target` through both gateways.
    pub(super) fn connect(&self, target: SocketAddr) -> TcpStream {
        let (stream, code) = self.socks(target);
        assert_eq!(code, 0);
        stream
    }
}

/// Starts a terminal of `hub`; `more` is at the top of its configuration.
pub(super) fn terminal_of(hub: &Running, more: &str) -> Running {
    let peer = hub.addresses.link.unwrap();
    Running::start(&format!(
        "role = \"terminal\"\n{more}\n\
         [link]\npeer = \"{peer}\"\nlisten = \"127.0.0.1:0\"\n\
         rate_up = \"200mbit\"\nrate_down = \"200mbit\"\nround_trip = \"10ms\"\n\
         [socks5]\nlisten = \"127.0.0.1:0\"\n[connect]\nlisten = \"127.0.0.1:0\"\n"
    ))
}

/// Requests a connection by SOCKS5 on `stream`; returns it with the code of the reply.
pub(super) fn socks_from(stream: TcpStream, target: SocketAddr) -> (TcpStream, u8) {
    let mut request = vec![5, 1, 0];
    match target {
        SocketAddr::V4(v4) => {
            request.push(1);
            request.extend(v4.ip().octets());
        }
        SocketAddr::V6(v6) => {
            request.push(4);
            request.extend(v6.ip().octets());
        }
    }
    request.extend(target.port().to_be_bytes());
    socks_request(stream, &request)
}

pub(super) fn socks_request(mut stream: TcpStream, request: &[u8]) -> (TcpStream, u8) {
    stream.write_all(&[5, 1, 0]).unwrap();
    assert_eq!(read_exactly(&mut stream, 2), [5, 0]);
    stream.write_all(request).unwrap();
    let head = read_exactly(&mut stream, 4);
    let rest = if head[3] == 4 { 18 } else { 6 };
    read_exactly(&mut stream, rest);
    (stream, head[1])
}

/// Starts a hub on `listen`; `more` is added to its configuration.
pub(super) fn hub_at(listen: &str, more: &str) -> Running {
    Running::start(&format!(
        "role = \"hub\"\n[link]\nlisten = \"{listen}\"\n\
         rate_up = \"200mbit\"\nrate_down = \"200mbit\"\nround_trip = \"10ms\"\n{more}\n"
    ))
}

/// Opens a direct connection.
pub(super) fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TOO_LONG)).unwrap();
    stream.set_write_timeout(Some(TOO_LONG)).unwrap();
    stream
}

pub(super) fn read_exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub(super) fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Starts a server that handles each connection on its own thread.
pub(super) fn serve(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    serve_on((Ipv4Addr::LOCALHOST, 0).into(), handle)
}

pub(super) fn serve_on(
    address: SocketAddr,
    handle: impl Fn(TcpStream) + Clone + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            stream.set_read_timeout(Some(TOO_LONG)).unwrap();
            stream.set_write_timeout(Some(TOO_LONG)).unwrap();
            let handle = handle.clone();
            std::thread::spawn(move || handle(stream));
        }
    });
    address
}

/// Starts a server that echoes, and finishes when the client has finished.
pub(super) fn echo() -> SocketAddr {
    serve(echo_one)
}

pub(super) fn echo_one(mut stream: TcpStream) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

/// Returns an address without a listener.
pub(super) fn nobody() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// Returns bytes that differ by position.
pub(super) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = units::RngStream::new(seed, 0, "pattern");
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns whether `it` becomes true within the time limit.
pub(super) fn soon(mut it: impl FnMut() -> bool) -> bool {
    (0..500).any(|_| {
        let so = it();
        if !so {
            pause_ms(10);
        }
        so
    })
}

/// Returns whether no connection is accepted at `address`.
pub(super) fn refuses(address: SocketAddr) -> bool {
    TcpStream::connect(address)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// Waits for `length` milliseconds.
pub(super) fn pause_ms(length: u64) {
    let clock = rt::Clock::new();
    clock.sleep_until(clock.now() + units::Span::from_millis(length));
}

/// Closes with a reset.
pub(super) fn abort(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}
