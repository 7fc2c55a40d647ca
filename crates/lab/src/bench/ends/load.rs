//! Clients of [`super::serve`].

use super::poll::{Poll, is_pause};
use super::serve::{BLOCK, Request, bound_unsent};
use nix::sys::epoll::EpollFlags;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::Host;
use testbed::traffic::{self, Way};

/// Time limit for opening a connection, and for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Direction of bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From the server.
    Download,
    /// To the server.
    Upload,
}

/// Opens a connection with a request.
fn open((way, server): (Way, SocketAddr), request: Request) -> io::Result<TcpStream> {
    let mut stream = traffic::connect(way, server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    bound_unsent(&stream)?;
    stream.write_all(&request.encode())?;
    Ok(stream)
}

/// Flows that transfer data at full speed, on one thread of a host, until dropped.
pub(crate) struct Bulk {
    /// Octets so far; read with [`Bulk::octets`].
    shared: Arc<(AtomicU64, AtomicBool)>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Bulk {
    /// Opens `flows` connections and starts the transfer.
    ///
    /// # Errors
    /// If a connection cannot be opened.
    pub(crate) fn start(
        host: &Host,
        reach: (Way, SocketAddr),
        flows: usize,
        direction: Direction,
    ) -> io::Result<Self> {
        let request = match direction {
            Direction::Download => Request::Bulk,
            Direction::Upload => Request::Discard,
        };
        let streams: io::Result<Vec<TcpStream>> =
            host.run(|| (0..flows).map(|_| open(reach, request)).collect());
        let streams = streams?;
        let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
        let of_thread = Arc::clone(&shared);
        let thread = host.spawn("bulk", move || run(&streams, direction, &of_thread));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the octets read from sockets or written to them.
    pub(crate) fn octets(&self) -> u64 {
        self.shared.0.load(Ordering::Relaxed)
    }

    /// Ends all flows.
    ///
    /// # Errors
    /// The error of a flow that ended before.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.shared.1.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a load is stopped once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.shared.1.store(true, Ordering::Relaxed);
    }
}

fn run(
    streams: &[TcpStream],
    direction: Direction,
    (octets, stop): &(AtomicU64, AtomicBool),
) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let (interest, mut block) = match direction {
        Direction::Download => (EpollFlags::EPOLLIN, vec![0; BLOCK]),
        Direction::Upload => (EpollFlags::EPOLLOUT, vec![0x5a; BLOCK]),
    };
    for (number, stream) in streams.iter().enumerate() {
        stream.set_nonblocking(true)?;
        poll.add(stream, number, interest)?;
    }
    while !stop.load(Ordering::Relaxed) {
        for number in poll.wait(50)? {
            let mut stream = &streams[number];
            let moved = match direction {
                Direction::Download => stream.read(&mut block),
                Direction::Upload => stream.write(&block),
            };
            match moved {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => drop(octets.fetch_add(count as u64, Ordering::Relaxed)),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// A download of a fixed rate, until dropped.
pub(crate) struct Paced(Arc<AtomicBool>);

impl Paced {
    /// Opens a connection on which the server sends `bps` bits per second.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn start(host: &Host, reach: (Way, SocketAddr), bps: u64) -> io::Result<Self> {
        let mut stream = host.run(|| open(reach, Request::Paced(bps)))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        host.spawn("paced", move || {
            let mut block = vec![0; BLOCK];
            while !stopped.load(Ordering::Relaxed) && stream.read(&mut block).is_ok_and(|n| n > 0) {
            }
        });
        Ok(Self(stop))
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Opens a connection, sends `octets` octets and reads as many; returns the open connection.
///
/// # Errors
/// The kernel's error, or a missing response.
pub(crate) fn exchange(reach: (Way, SocketAddr), octets: usize) -> io::Result<TcpStream> {
    let (way, server) = reach;
    let mut stream = traffic::connect(way, server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // One segment, as a client's first request.
    let mut first = Request::Echo.encode().to_vec();
    first.resize(first.len() + octets, 0x5a);
    stream.write_all(&first)?;
    stream.read_exact(&mut first[..octets])?;
    Ok(stream)
}
