//! Splices of real sockets with a stream that is two queues.

use super::*;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::time::Duration;

/// A stream whose other end is the test.
#[derive(Default)]
struct Queue {
    room: usize,
    taken: Vec<u8>,
    ended: bool,
    ready: VecDeque<u8>,
}

impl Stream for Queue {
    fn room(&mut self) -> usize {
        self.room
    }
    fn write(&mut self, bytes: &[u8]) -> usize {
        assert!(!self.ended, "bytes after the end");
        let count = bytes.len().min(self.room);
        self.room -= count;
        self.taken.extend_from_slice(&bytes[..count]);
        count
    }
    fn end(&mut self) {
        assert!(!self.ended, "ended twice");
        self.ended = true;
    }
    fn peek_pieces<'a>(&'a mut self, pieces: &mut [&'a [u8]]) {
        // A few bytes at a time, so that pieces are put together right.
        for (piece, bytes) in pieces.iter_mut().zip(self.ready.make_contiguous().chunks(1000)) {
            *piece = bytes;
        }
    }
    fn consume(&mut self, count: usize) {
        assert!(count <= self.ready.len());
        self.ready.drain(..count);
    }
}

struct Bench {
    /// The end that the splice holds.
    socket: crate::engine::host::Socket,
    /// The end that a client or server would hold.
    far: std::net::TcpStream,
    splice: Splice,
    queue: Queue,
    scratch: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        far.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let (near, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        Self {
            socket: crate::driver::KernelTcp::from_std(near),
            far,
            splice: Splice::new(Vec::new(), Vec::new()),
            queue: Queue { room: usize::MAX, ..Queue::default() },
            scratch: vec![0; 16 * 1024],
        }
    }

    /// One turn, with whatever readiness there may be.
    fn turn(&mut self) -> Turn {
        self.splice.socket_is_readable();
        self.splice.socket_is_writable();
        self.splice.turn(&*self.socket, &mut self.queue, &mut self.scratch)
    }

    /// Turns until `done` says so; what is on its way through the kernel takes its time.
    fn turns(&mut self, done: impl Fn(&Self) -> bool) {
        let clock = rt::Clock::from_here();
        while !done(self) {
            assert!(clock.now() < units::Instant::from_nanos(10_000_000_000), "nothing happens");
            match self.turn() {
                Turn::Wait | Turn::More | Turn::Done => {}
                Turn::Broken(error) => panic!("{error}"),
            }
        }
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn bytes_pass_both_ways_and_both_ends_follow_their_last_byte() {
    let mut bench = Bench::new();
    let data = pattern(300_000);
    bench.queue.ready.extend(&data);
    let mut far = bench.far.try_clone().unwrap();
    let sent = data.clone();
    let client = std::thread::spawn(move || {
        far.write_all(&sent).unwrap();
        far.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        received
    });
    bench.turns(|bench| bench.queue.ended);
    assert_eq!(bench.queue.taken, data);
    // The client's half is over; the other lives on, and ends when the stream does.
    bench.queue.ready.extend(b"late");
    bench.splice.stream_has_ended();
    bench.turns(|bench| bench.queue.ready.is_empty());
    assert!(matches!(bench.turn(), Turn::Done));
    let received = client.join().unwrap();
    assert_eq!((&received[..300_000], &received[300_000..]), (&data[..], &b"late"[..]));
}

#[test]
fn a_full_stream_leaves_bytes_to_tcp_and_keeps_one_read_at_most() {
    let mut bench = Bench::new();
    bench.queue.room = 10_000;
    let data = pattern(200_000);
    bench.far.set_nonblocking(true).unwrap();
    let mut sent = 0;
    for _ in 0..50 {
        if let Ok(count) = bench.far.write(&data[sent..]) {
            sent += count;
        }
        bench.turn();
    }
    assert_eq!(bench.queue.taken.len(), 10_000);
    assert!(bench.splice.pending_input.len() <= 16 * 1024);
    bench.queue.room = usize::MAX;
    bench.far.set_nonblocking(false).unwrap();
    let mut far = bench.far.try_clone().unwrap();
    let rest = data[sent..].to_vec();
    let client = std::thread::spawn(move || {
        far.write_all(&rest).unwrap();
        far.shutdown(Shutdown::Write).unwrap();
    });
    bench.turns(|bench| bench.queue.ended);
    client.join().unwrap();
    assert_eq!(bench.queue.taken, data);
}

#[test]
fn a_full_socket_leaves_bytes_in_the_stream() {
    let mut bench = Bench::new();
    let data = pattern(20_000_000);
    bench.queue.ready.extend(&data);
    let mut left = usize::MAX;
    while bench.queue.ready.len() < left {
        left = bench.queue.ready.len();
        bench.turn();
    }
    assert!(left > 0, "the kernel took 20 MB");
    bench.splice.stream_has_ended();
    let mut far = bench.far.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        received
    });
    bench.turns(|bench| bench.splice.output_closed);
    assert!(reader.join().unwrap() == data);
}

#[test]
fn a_turn_has_an_end_while_bytes_keep_coming() {
    let mut bench = Bench::new();
    bench.queue.ready.extend(pattern(BUDGET * 2));
    assert!(matches!(bench.turn(), Turn::More));
    assert!(bench.queue.ready.len() >= BUDGET - 1000);
}

#[test]
fn a_preface_goes_first_and_what_was_read_before_is_taken_first() {
    let mut bench = Bench::new();
    bench.splice = Splice::new(b"GET / ".to_vec(), b"granted ".to_vec());
    bench.queue.ready.extend(b"reply");
    bench.splice.stream_has_ended();
    bench.far.write_all(b"HTTP/1.1").unwrap();
    bench.far.shutdown(Shutdown::Write).unwrap();
    bench.turns(|bench| bench.queue.ended);
    assert_eq!(bench.queue.taken, b"GET / HTTP/1.1");
    let mut received = String::new();
    bench.far.read_to_string(&mut received).unwrap();
    assert_eq!(received, "granted reply");
}

#[test]
fn a_reset_breaks_the_splice_and_closing_with_reset_resets() {
    let mut bench = Bench::new();
    socket2::SockRef::from(&bench.far).set_linger(Some(Duration::ZERO)).unwrap();
    let (far, _) = (std::mem::replace(&mut bench.far, Bench::new().far), ());
    drop(far);
    let clock = rt::Clock::from_here();
    let error = loop {
        assert!(clock.now() < units::Instant::from_nanos(10_000_000_000), "no reset");
        if let Turn::Broken(error) = bench.turn() {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(!bench.queue.ended, "a reset is not an end");

    let bench = Bench::new();
    let Bench { socket, mut far, .. } = bench;
    socket.close(crate::engine::host::Close::Reset);
    let error = far.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}
