//! A proxy that moves octets from one TCP connection to another by `splice(2)`, without copying
//! them to its own memory: the minimum work of any proxy.

use super::poll::Poll;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice as move_pages};
use nix::sys::epoll::EpollFlags;
use nix::unistd::pipe2;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// Octets of one move; a pipe holds 64 kB, or as much as the system permits.
const BLOCK: usize = 256 << 10;
/// The listener's number among the sockets.
const LISTENER: usize = usize::MAX;

/// The ends of a pipe to read from and to write to.
type Pipe = (OwnedFd, OwnedFd);

/// One direction of a connection.
#[derive(Default)]
struct Half {
    /// The pipe that holds octets; `None` while there are none.
    pipe: Option<Pipe>,
    waiting: usize,
    ended: bool,
}

/// A client's connection and the one to the target.
struct Pair {
    streams: [TcpStream; 2],
    halves: [Half; 2],
}

/// Forwards connections to `listen` to `target` until the process ends.
///
/// # Errors
/// If the address cannot be bound or the kernel refuses to poll.
pub fn splice(listen: SocketAddr, target: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(listen)?;
    listener.set_nonblocking(true)?;
    let mut poll = Poll::new()?;
    poll.add(&listener, LISTENER, EpollFlags::EPOLLIN)?;
    let mut pairs: Vec<Option<Pair>> = Vec::new();
    let mut pipes = Vec::new();
    loop {
        for number in poll.wait(u8::MAX)? {
            if number == LISTENER {
                while let Ok((client, _)) = listener.accept() {
                    let free = pairs.iter().position(Option::is_none).unwrap_or(pairs.len());
                    if free == pairs.len() {
                        pairs.push(None);
                    }
                    // If it cannot be opened, the client's connection is closed.
                    pairs[free] = Pair::open(client, target, &poll, free).ok();
                }
            } else if let Some(pair) = &mut pairs[number]
                && !pair.advance(&mut pipes)
            {
                pairs[number] = None;
            }
        }
    }
}

impl Pair {
    fn open(client: TcpStream, target: SocketAddr, poll: &Poll, number: usize) -> io::Result<Self> {
        let server = TcpStream::connect(target)?;
        let streams = [client, server];
        for stream in &streams {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            poll.add(stream, number, both)?;
        }
        Ok(Self { streams, halves: Default::default() })
    }

    /// Moves octets; returns false when both directions have ended or one has failed.
    fn advance(&mut self, pipes: &mut Vec<Pipe>) -> bool {
        let [client, server] = &self.streams;
        let up = self.halves[0].advance(client, server, pipes);
        let moved = up.and(self.halves[1].advance(server, client, pipes));
        moved.is_ok() && self.halves.iter().any(|half| !half.ended)
    }
}

impl Half {
    /// Moves octets through the direction's own pipe or else through one of `pipes`, to which an
    /// empty one returns.
    fn advance(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        pipes: &mut Vec<Pipe>,
    ) -> Result<(), Errno> {
        let pipe = match self.pipe.take().or_else(|| pipes.pop()) {
            Some(pipe) => pipe,
            None => new_pipe()?,
        };
        let moved = self.move_through(&pipe, from, to);
        if self.waiting == 0 {
            pipes.push(pipe);
        } else {
            self.pipe = Some(pipe);
        }
        moved
    }

    fn move_through(&mut self, pipe: &Pipe, from: &TcpStream, to: &TcpStream) -> Result<(), Errno> {
        let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
        while !self.ended {
            let read = move_pages(from, None, &pipe.1, None, BLOCK, flags);
            let (stalled, over) = match read {
                Ok(count) => (count == 0, count == 0),
                Err(Errno::EAGAIN) => (true, false),
                Err(error) => return Err(error),
            };
            self.waiting += read.unwrap_or(0);
            // A full pipe stalls as well: when it has been emptied, there may be more to read.
            let stalled = stalled && self.waiting == 0;
            while self.waiting > 0 {
                match move_pages(&pipe.0, None, to, None, self.waiting, flags) {
                    Ok(count) => self.waiting -= count,
                    Err(Errno::EAGAIN) => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            if over {
                self.ended = true;
                let _ = to.shutdown(Shutdown::Write); // The peer may have gone as well.
            }
            if stalled {
                break;
            }
        }
        Ok(())
    }
}

fn new_pipe() -> Result<Pipe, Errno> {
    let pipe = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    // The limit is the system's maximum.
    let _ = fcntl(&pipe.1, FcntlArg::F_SETPIPE_SZ(BLOCK as i32));
    Ok(pipe)
}
