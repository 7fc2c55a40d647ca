//! A server of regenerable files.

use super::{retransmissions, set_congestion};
use crate::content::{Checksum, Content};
use crate::{Host, TestbedError};
use socket2::{SockFilter, SockRef};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Maximum simultaneous connections; further ones are closed.
const CONNECTIONS: usize = 4096;
/// Maximum records of finished transfers.
const REMEMBERED: usize = 4096;

/// A finished download or upload, as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The file.
    pub seed: u64,
    /// Octets written to or read from the socket.
    pub bytes: u64,
    /// The checksum of what was received; zero for downloads.
    pub checksum: u64,
    /// Segments that the server's kernel retransmitted.
    pub retransmissions: u64,
}

/// A listener with a thread per connection; dropping it ends them all.
#[derive(Debug)]
pub(super) struct Service {
    listener: TcpListener,
    acceptor: Option<JoinHandle<()>>,
    connections: Arc<Mutex<Vec<TcpStream>>>,
}

impl Service {
    /// Serves each connection to `address` on `host` with `serve`.
    pub(super) fn start(
        host: Option<&Host>,
        address: SocketAddr,
        serve: impl Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self, TestbedError> {
        let bind = || TcpListener::bind(address);
        let refused = |source| TestbedError::refused(format!("listen on {address}"), source);
        let listener = match host {
            Some(host) => host.run(bind),
            None => bind(),
        }
        .map_err(refused)?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let acceptor = {
            let listener = listener.try_clone().map_err(refused)?;
            let connections = Arc::clone(&connections);
            // A socket stays in the namespace that created it, so the thread may run anywhere.
            thread::spawn(move || accept_all(&listener, &connections, &Arc::new(serve)))
        };
        Ok(Self { listener, acceptor: Some(acceptor), connections })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a bound socket has an address")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Shutting a listening socket down wakes a thread blocked in accept.
        // SAFETY: shutdown takes no pointers.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(acceptor) = self.acceptor.take() {
            // The panic has already been printed.
            let _ = acceptor.join();
        }
        for connection in lock(&self.connections).iter() {
            let _ = connection.shutdown(Shutdown::Both); // Ended by itself: as well.
        }
    }
}

fn accept_all<S>(listener: &TcpListener, connections: &Mutex<Vec<TcpStream>>, serve: &Arc<S>)
where
    S: Fn(&TcpStream) -> io::Result<()> + Send + Sync + 'static,
{
    while let Ok((stream, _)) = listener.accept() {
        let Ok(copy) = stream.try_clone() else { continue };
        {
            let mut open = lock(connections);
            open.retain(|stream| stream.peer_addr().is_ok());
            if open.len() >= CONNECTIONS {
                continue;
            }
            open.push(copy);
        }
        let serve = Arc::clone(serve);
        thread::spawn(move || {
            let _ = stream.set_nodelay(true);
            // The client reports a broken connection.
            let _ = serve(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// Serves `GET`, `PUT` and `ASK` on the server's side of a measurement.
#[derive(Debug)]
pub struct FileServer {
    service: Service,
    served: Arc<Mutex<Vec<Served>>>,
}

impl FileServer {
    /// Listens on `address`: on `host`, or on the machine itself for `None`.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn start(host: Option<&Host>, address: SocketAddr) -> Result<Self, TestbedError> {
        let served = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&served);
        let service = Service::start(host, address, move |stream| serve(stream, &log))?;
        Ok(Self { service, served })
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.service.address()
    }

    /// Accepts connections from `peer` only, from now on: SYNs from other addresses are dropped
    /// silently. Segments that belong to no connection are still answered with a reset. IPv4 only.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open_only_to(&self, peer: Ipv4Addr) -> Result<(), TestbedError> {
        // A classic BPF filter: offsets are relative to TCP's header, large negative ones to IP's.
        const OCTET: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
        const WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
        const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        const END: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
        const IP: u32 = libc::SKF_NET_OFF as u32;
        let filter = [
            SockFilter::new(OCTET, 0, 0, 13),                 // Flags.
            SockFilter::new(ANY_BIT, 3, 0, 0x10),             // ACK: no opening.
            SockFilter::new(WORD, 0, 0, IP.wrapping_add(12)), // Where it comes from.
            SockFilter::new(EQUAL, 1, 0, u32::from(peer)),
            SockFilter::new(END, 0, 0, 0),
            SockFilter::new(END, 0, 0, u32::MAX),
        ];
        let refused = |source| TestbedError::refused("SO_ATTACH_FILTER".to_owned(), source);
        SockRef::from(&self.service.listener).attach_filter(&filter).map_err(refused)
    }

    /// The result of the transfer of the file `seed`, once it has ended.
    pub fn served(&self, seed: u64) -> Option<Served> {
        lock(&self.served).iter().rev().find(|served| served.seed == seed).cloned()
    }
}

/// A request line of the protocol.
enum Request {
    /// `GET bytes seed congestion`.
    Get { bytes: u64, seed: u64, congestion: String },
    /// `PUT seed`.
    Put { seed: u64 },
    /// `ASK rest response`: remaining octets of the request, and octets of the response.
    Ask { rest: u64, response: u64 },
}

impl Request {
    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["GET", bytes, seed, congestion] => Some(Self::Get {
                bytes: bytes.parse().ok()?,
                seed: seed.parse().ok()?,
                congestion: congestion.to_owned(),
            }),
            ["PUT", seed] => Some(Self::Put { seed: seed.parse().ok()? }),
            ["ASK", rest, response] => {
                Some(Self::Ask { rest: rest.parse().ok()?, response: response.parse().ok()? })
            }
            _ => None,
        }
    }
}

fn serve(stream: &TcpStream, log: &Mutex<Vec<Served>>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(64 << 10, stream);
    let mut line = String::new();
    while reader.by_ref().take(256).read_line(&mut line)? > 0 {
        match Request::parse(&line) {
            Some(Request::Get { bytes, seed, congestion }) => {
                set_congestion(stream, &congestion)?;
                return send_file(stream, seed, bytes, log);
            }
            Some(Request::Put { seed }) => return receive_file(stream, &mut reader, seed, log),
            Some(Request::Ask { rest, response }) => answer(stream, &mut reader, rest, response)?,
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, line)),
        }
        line.clear();
    }
    Ok(())
}

fn send_file(
    mut stream: &TcpStream,
    seed: u64,
    bytes: u64,
    log: &Mutex<Vec<Served>>,
) -> io::Result<()> {
    let content = Content::new(seed);
    let mut block = vec![0; 64 << 10];
    let mut sent = 0;
    let mut send = || -> io::Result<()> {
        while sent < bytes {
            let take = block.len().min(usize::try_from(bytes - sent).unwrap_or(usize::MAX));
            content.fill(sent, &mut block[..take]);
            stream.write_all(&block[..take])?;
            sent += take as u64;
        }
        stream.shutdown(Shutdown::Write)?;
        // Until the client has read everything and closes, segments may still be retransmitted.
        io::copy(&mut stream, &mut io::sink()).map(drop)
    };
    let ended = send();
    let retransmissions = retransmissions(stream).unwrap_or(0);
    remember(log, Served { seed, bytes: sent, checksum: 0, retransmissions });
    ended
}

fn receive_file(
    mut stream: &TcpStream,
    reader: &mut impl Read,
    seed: u64,
    log: &Mutex<Vec<Served>>,
) -> io::Result<()> {
    let mut block = vec![0; 64 << 10];
    let mut sum = Checksum::default();
    let mut bytes = 0;
    loop {
        match reader.read(&mut block)? {
            0 => break,
            n => {
                sum.update(&block[..n]);
                bytes += n as u64;
            }
        }
    }
    let checksum = sum.value();
    remember(log, Served { seed, bytes, checksum, retransmissions: 0 });
    writeln!(stream, "{bytes} {checksum:016x}")
}

fn answer(
    mut stream: &TcpStream,
    reader: &mut impl Read,
    rest: u64,
    response: u64,
) -> io::Result<()> {
    let response = usize::try_from(response.min(1 << 20)).unwrap_or(0);
    io::copy(&mut reader.take(rest), &mut io::sink())?;
    let mut bytes = vec![0; response];
    Content::new(rest).fill(0, &mut bytes);
    stream.write_all(&bytes)
}

fn remember(log: &Mutex<Vec<Served>>, served: Served) {
    let mut log = lock(log);
    if log.len() >= REMEMBERED {
        log.remove(0);
    }
    log.push(served);
}

/// The data of a panicked thread is plain numbers, which stay valid.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
