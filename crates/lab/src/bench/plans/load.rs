//! Unlimited sources and sinks, many on one thread, because the link is much slower than the
//! machine.

use rt::Clock;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use units::Span;

/// Interval between polls of the sockets, which their buffers bridge.
const SWEEP: Span = Span::from_millis(20);
/// Send buffer of a source's socket in octets.
const BUFFER: usize = 64 << 10;

/// Connections that a source has not accepted yet.
const BACKLOG: i32 = 4096;

/// Runs a function periodically until dropped.
#[derive(Debug)]
struct Sweeper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    fn start(mut sweep: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let clock = Clock::new();
            while !stopped.load(Ordering::Relaxed) {
                let next = clock.now() + SWEEP;
                sweep();
                clock.sleep_until(next);
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A panic has already been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A server that sends without end on every connection.
#[derive(Debug)]
pub(super) struct Source {
    address: SocketAddr,
    _sweeper: Sweeper,
}

impl Source {
    pub(super) fn start(address: SocketAddr) -> io::Result<Self> {
        // Beyond its backlog the kernel drops handshakes, and repeats them seconds later.
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let mut clients: Vec<TcpStream> = Vec::new();
        let bytes = vec![0x5a; BUFFER];
        let sweeper = Sweeper::start(move || {
            while let Ok((client, _)) = listener.accept() {
                let ready = client.set_nonblocking(true);
                let small = SockRef::from(&client).set_send_buffer_size(BUFFER);
                if ready.and(small).is_ok() {
                    clients.push(client);
                }
            }
            clients.retain_mut(|client| is_open(client.write(&bytes)));
        });
        Ok(Self { address, _sweeper: sweeper })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn is_open(done: io::Result<usize>) -> bool {
    match done {
        Ok(count) => count > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    }
}

/// A connection that is read without limit.
#[derive(Debug)]
struct Download {
    terminal: usize,
    stream: TcpStream,
    bytes: u64,
    open: bool,
}

/// Downloads, by terminal.
#[derive(Debug)]
pub(super) struct Downloads {
    all: Arc<Mutex<Vec<Download>>>,
    _sweeper: Sweeper,
}

impl Downloads {
    pub(super) fn start() -> Self {
        let all = Arc::new(Mutex::new(Vec::<Download>::new()));
        let shared = Arc::clone(&all);
        let mut buffer = vec![0; BUFFER];
        let sweeper = Sweeper::start(move || {
            let mut all = shared.lock().unwrap_or_else(PoisonError::into_inner);
            for download in all.iter_mut().filter(|download| download.open) {
                download.read(&mut buffer);
            }
        });
        Self { all, _sweeper: sweeper }
    }

    /// Adds a download of `terminal`.
    pub(super) fn add(&self, terminal: usize, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Download { terminal, stream, bytes: 0, open: true });
        Ok(())
    }

    /// Returns terminal and received octets of each download, in the order of their start.
    pub(super) fn counted(&self) -> Vec<(usize, u64)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|download| (download.terminal, download.bytes)).collect()
    }

    /// Returns index and terminal of the downloads without data, and whether each is open.
    pub(super) fn without_data(&self) -> Vec<(usize, usize, bool)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let empty = all.iter().enumerate().filter(|(_, download)| download.bytes == 0);
        empty.map(|(index, download)| (index, download.terminal, download.open)).collect()
    }

    /// Replaces the download with this index.
    pub(super) fn replace(&self, index: usize, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let terminal = all[index].terminal;
        all[index] = Download { terminal, stream, bytes: 0, open: true };
        Ok(())
    }

    /// Returns the number of downloads that ended on their own.
    pub(super) fn ended(&self) -> usize {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|download| !download.open).count()
    }
}

impl Download {
    fn read(&mut self, buffer: &mut [u8]) {
        loop {
            let done = self.stream.read(buffer);
            if let Ok(count @ 1..) = done {
                self.bytes += count as u64;
                continue;
            }
            self.open = is_open(done);
            return;
        }
    }
}

/// Returns the number of sessions that the hub with these metrics has started.
pub(in crate::bench) fn sessions(metrics: SocketAddr) -> io::Result<u64> {
    let mut stream = TcpStream::connect(metrics)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let line = text.lines().find_map(|line| line.strip_prefix("bentpipe_sessions_total "));
    let number = line.and_then(|number| number.trim().parse::<f64>().ok());
    number.map(|number| number as u64).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn sent_octets_are_counted() {
        let source = Source::start((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let downloads = Downloads::start();
        for terminal in [3, 5] {
            downloads.add(terminal, TcpStream::connect(source.address()).unwrap()).unwrap();
        }
        let clock = Clock::new();
        let come = || downloads.counted().iter().all(|(_, bytes)| *bytes > BUFFER as u64);
        let came = (0..500).any(|_| {
            clock.sleep_until(clock.now() + SWEEP);
            come()
        });
        assert!(came, "{:?}", downloads.counted());
        assert_eq!(downloads.counted().iter().map(|one| one.0).collect::<Vec<_>>(), [3, 5]);
        assert_eq!(downloads.ended(), 0);
    }
}
