//! Datagram sockets of a hub's shards: one for each, on one address.
//!
//! ```text
//!   datagram ─▶ steering program ─▶ socket of shard s ──is for s───────▶ engine of s
//!               (in the kernel)                      └──is for t──▶ mailbox of t ─▶ engine of t
//! ```
//!
//! The kernel's choice makes the shards fast, and the mailboxes make them right: a Hello, or a packet
//! that the kernel has merged with others, may be received by another shard than its own.

use super::answered_from::LocalEnd;
use super::udp::KernelUdp;
use crate::engine::{DatagramSocket, Delivered, Sent, SocketId};
use crate::report::UdpCounters;
use association::{SEALED, part_of};
use socket2::SockRef;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of datagrams in a mailbox; further ones are dropped, as by a full socket.
const MAX_QUEUED: usize = 1024;
/// Maximum number of datagrams taken from a mailbox at a time.
const BUDGET: usize = 64;

/// A shard among those of a hub.
#[derive(Clone, Debug)]
pub(crate) struct ShardPlace {
    number: u32,
    mailboxes: Arc<[Mailbox]>,
}

/// Datagrams that other shards have received for one.
#[derive(Debug)]
struct Mailbox {
    queue: Mutex<VecDeque<Handed>>,
    /// Length of the queue; read without its lock.
    len: AtomicUsize,
    wake: Wake,
    received: AtomicU64,
    dropped: AtomicU64,
}

/// A datagram that was received by another shard.
#[derive(Debug)]
struct Handed {
    from: SocketAddr,
    /// Where it was received, as far as replies depend on it.
    here: Option<LocalEnd>,
    bytes: Box<[u8]>,
}

/// A pipe that makes a readiness loop wake.
#[derive(Debug)]
pub(crate) struct Wake {
    reader: UnixStream,
    writer: UnixStream,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, writer })
    }

    /// Makes the loop that watches it wake.
    pub(crate) fn wake(&self) {
        // A full pipe wakes it as well.
        let _ = (&self.writer).write(&[1]);
    }

    /// Removes the requests so far.
    pub(crate) fn clear(&self) {
        while let Ok(1..) = (&self.reader).read(&mut [0; 64]) {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

/// Counters of datagrams that other shards have received for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandedOver {
    pub(crate) received: u64,
    pub(crate) dropped: u64,
}

impl ShardPlace {
    /// Returns the places of `count` shards.
    ///
    /// # Errors
    /// The kernel's, if no descriptor is available.
    pub(crate) fn all(count: u32) -> io::Result<Vec<Self>> {
        let mailbox = |_| {
            Ok(Mailbox {
                queue: Mutex::new(VecDeque::new()),
                len: AtomicUsize::new(0),
                wake: Wake::new()?,
                received: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
            })
        };
        let mailboxes: Vec<Mailbox> = (0..count).map(mailbox).collect::<io::Result<_>>()?;
        let mailboxes: Arc<[Mailbox]> = mailboxes.into();
        Ok((0..count).map(|number| Self { number, mailboxes: Arc::clone(&mailboxes) }).collect())
    }

    /// Returns the number of shards.
    pub(super) fn count(&self) -> u32 {
        self.mailboxes.len() as u32
    }

    /// Returns what wakes the loop of this shard when there are datagrams for it.
    pub(super) fn wake(&self) -> &Wake {
        &self.mailbox().wake
    }

    /// Returns the counters of its mailbox.
    pub(crate) fn handed_over(&self) -> HandedOver {
        let Mailbox { received, dropped, .. } = self.mailbox();
        HandedOver { received: received.load(Relaxed), dropped: dropped.load(Relaxed) }
    }

    /// Opens this shard's socket. The first shard's may be one that a service manager has kept; those
    /// of the others join it, in the order of their numbers.
    ///
    /// # Errors
    /// Those of binding.
    pub(super) fn bind(
        &self,
        address: SocketAddr,
        ports: &[u16],
        interface: Option<&str>,
    ) -> io::Result<ShardUdp> {
        let mut udp = self.open(address, interface)?;
        for &port in ports {
            udp.add_port(self.open((address.ip(), port).into(), interface)?);
        }
        Ok(ShardUdp { udp, place: self.clone(), foreign: Vec::new() })
    }

    fn open(&self, address: SocketAddr, interface: Option<&str>) -> io::Result<KernelUdp> {
        let udp = KernelUdp::open(address, interface, self.number > 0)?;
        if let Some(descriptor) = udp.descriptor() {
            // Only after binding, which has failed if another process has the address.
            SockRef::from(&descriptor).set_reuse_port(true)?;
            if self.number + 1 == self.count()
                && let Err(error) = steer(descriptor, self.count())
            {
                tracing::warn!(%error, "datagrams are not distributed by the kernel, which costs time");
            }
        }
        Ok(udp)
    }

    fn mailbox(&self) -> &Mailbox {
        &self.mailboxes[self.number as usize]
    }

    fn hand_over(&self, to: u32, handed: Handed) {
        let Some(mailbox) = self.mailboxes.get(to as usize) else { return };
        let mut queue = mailbox.lock();
        if queue.len() >= MAX_QUEUED {
            mailbox.dropped.fetch_add(1, Relaxed);
            return;
        }
        let is_first = queue.is_empty();
        queue.push_back(handed);
        mailbox.len.store(queue.len(), Relaxed);
        drop(queue);
        mailbox.received.fetch_add(1, Relaxed);
        if is_first {
            mailbox.wake.wake();
        }
    }

    /// Returns the next datagrams of this shard's mailbox, and whether there are more.
    fn take(&self) -> (Vec<Handed>, bool) {
        let mailbox = self.mailbox();
        if mailbox.len.load(Relaxed) == 0 {
            return (Vec::new(), false);
        }
        // Before the queue is empty, so that the next datagram wakes the loop.
        mailbox.wake.clear();
        let mut queue = mailbox.lock();
        let count = queue.len().min(BUDGET);
        let taken = queue.drain(..count).collect();
        mailbox.len.store(queue.len(), Relaxed);
        (taken, !queue.is_empty())
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Handed>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The socket of a shard.
#[derive(Debug)]
pub(crate) struct ShardUdp {
    udp: KernelUdp,
    place: ShardPlace,
    /// Datagrams of the last call for other shards: shard, source and contents.
    foreign: Vec<(u32, SocketAddr, Box<[u8]>)>,
}

impl ShardUdp {
    /// Delivers datagrams that other shards have received; returns whether there are more.
    fn receive_handed(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> bool {
        let (taken, more) = self.place.take();
        for Handed { from, here, mut bytes } in taken {
            let delivered = deliver(from, &mut bytes, true);
            if let Some(here) = here {
                self.udp.note_received(from, here, delivered == Delivered::Peer);
            }
            // Another shard than the first does not hand over: with a list of terminals that is
            // being replaced, two shards could return a datagram to each other.
            if let Delivered::OtherShard(to) = delivered
                && self.place.number == 0
            {
                self.place.hand_over(to, Handed { from, here, bytes });
            }
        }
        more
    }
}

impl DatagramSocket for ShardUdp {
    fn id(&self) -> SocketId {
        self.udp.id()
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.udp.local_address()
    }

    fn is_bound_to(&self, interface: &str) -> bool {
        self.udp.is_bound_to(interface)
    }

    fn counters(&self) -> &UdpCounters {
        self.udp.counters()
    }

    fn max_batch(&self) -> usize {
        self.udp.max_batch()
    }

    fn receive(
        &mut self,
        deliver: &mut dyn FnMut(SocketAddr, &mut [u8], bool) -> Delivered,
    ) -> io::Result<bool> {
        let more = self.receive_handed(deliver);
        let Self { udp, place, foreign } = self;
        let (own, count) = (place.number, place.count());
        let received = udp.receive(&mut |from, datagram, is_last| {
            let delivered = match part_of(datagram, count) {
                part if part == own => deliver(from, datagram, is_last),
                part => Delivered::OtherShard(part),
            };
            if let Delivered::OtherShard(to) = delivered {
                foreign.push((to, from, (&*datagram).into()));
            }
            delivered
        });
        for (to, from, bytes) in foreign.drain(..) {
            place.hand_over(to, Handed { from, here: udp.received_at(from), bytes });
        }
        // An error of the socket is returned when the mailbox is empty.
        if more { Ok(true) } else { received }
    }

    fn send(&mut self, destination: SocketAddr, contents: &[u8], segment_size: usize) -> Sent {
        self.udp.send(destination, contents, segment_size)
    }

    fn renew(&mut self) {
        self.udp.renew();
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.udp.descriptor()
    }

    fn further(&self) -> Vec<BorrowedFd<'_>> {
        self.udp.further()
    }
}

/// Instructions of classic BPF (linux/filter.h): load an octet or a word, mask, remainder, jump if
/// equal, and return a constant or the result.
const LOAD_OCTET: u16 = 0x30;
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const REMAINDER: u16 = 0x94;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const RETURN_RESULT: u16 = 0x16;

/// Has the kernel give each datagram to the socket with the number of [`part_of`], of the `count`
/// sockets that share the address of `socket`.
fn steer(socket: BorrowedFd<'_>, count: u32) -> io::Result<()> {
    let [data, probe, probe_ack] = SEALED.map(u32::from);
    let one = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        one(LOAD_OCTET, 0, 0, 0),
        one(JUMP_IF_EQUAL, 3, 0, data),
        one(JUMP_IF_EQUAL, 2, 0, probe),
        one(JUMP_IF_EQUAL, 1, 0, probe_ack),
        one(RETURN, 0, 0, 0),
        // A load beyond the end of the datagram returns 0.
        one(LOAD_WORD, 0, 0, 0),
        one(AND, 0, 0, 0x00ff_ffff),
        one(REMAINDER, 0, 0, count),
        one(RETURN_RESULT, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `program` is valid to read for the length given, and so are its instructions.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Clock;
    use std::net::UdpSocket;
    use units::Span;

    const COUNT: u32 = 3;

    fn sockets() -> (Vec<ShardUdp>, SocketAddr) {
        let places = ShardPlace::all(COUNT).unwrap();
        let mut address: SocketAddr = "0.0.0.0:0".parse().unwrap();
        let bind = |place: &ShardPlace| {
            let udp = place.bind(address, &[], None).unwrap();
            address = udp.local_address().unwrap();
            udp
        };
        let sockets = places.iter().map(bind).collect();
        (sockets, ([127, 0, 0, 1], address.port()).into())
    }

    fn sealed(kind: u8, index: u32) -> Vec<u8> {
        let mut datagram = vec![0; 40];
        datagram[..4].copy_from_slice(&index.to_be_bytes());
        datagram[0] = 0x10 | kind;
        datagram
    }

    /// Receives at `socket` until `want` datagrams are delivered, which `deliver` answers for.
    fn receive(
        socket: &mut ShardUdp,
        want: usize,
        answer: impl Fn(&[u8]) -> Delivered,
    ) -> Vec<Vec<u8>> {
        let clock = Clock::new();
        let until = clock.now() + Span::from_secs(10);
        let mut found = Vec::new();
        while found.len() < want && clock.now() < until {
            socket
                .receive(&mut |_, datagram, _| {
                    found.push(datagram.to_vec());
                    answer(datagram)
                })
                .unwrap();
        }
        found
    }

    #[test]
    fn the_kernel_distributes_datagrams_as_the_parts_do() {
        let (mut sockets, address) = sockets();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut all: Vec<Vec<u8>> = (1..=60).map(|index| sealed(3, index * 77_777)).collect();
        all.extend([sealed(6, 1), sealed(7, 2), sealed(1, 1), sealed(4, 1), vec![0x13]]);
        for datagram in &all {
            from.send_to(datagram, address).unwrap();
        }
        for (number, socket) in (0..).zip(&mut sockets) {
            let own = all.iter().filter(|datagram| part_of(datagram, COUNT) == number);
            let own: Vec<Vec<u8>> = own.cloned().collect();
            let found = receive(socket, own.len(), |_| Delivered::Peer);
            assert!(own.len() > 10 && found == own, "{number}");
        }
        let handed = |socket: &ShardUdp| socket.place.handed_over();
        assert!(sockets.iter().all(|socket| handed(socket) == HandedOver::default()));
    }

    #[test]
    fn a_datagram_for_another_shard_is_handed_over_with_its_local_address() {
        let (mut sockets, address) = sockets();
        let from = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = SocketAddr::from(([127, 0, 0, 9], address.port()));
        let hello = sealed(1, 0);
        from.send_to(&hello, local).unwrap();
        assert_eq!(receive(&mut sockets[0], 1, |_| Delivered::OtherShard(2)), [&hello[..]]);
        assert_eq!(receive(&mut sockets[2], 1, |_| Delivered::Unvalidated), [&hello[..]]);
        assert_eq!(sockets[2].place.handed_over(), HandedOver { received: 1, dropped: 0 });
        sockets[2].send(from.local_addr().unwrap(), b"welcome", 7);
        let (_, source) = from.recv_from(&mut [0; 16]).unwrap();
        assert_eq!(source, local);
    }

    #[test]
    fn a_full_mailbox_drops_and_two_shards_return_nothing_to_each_other() {
        let (mut sockets, _) = sockets();
        let place = sockets[0].place.clone();
        for _ in 0..MAX_QUEUED + 7 {
            let from = "127.0.0.1:9".parse().unwrap();
            place.hand_over(1, Handed { from, here: None, bytes: sealed(1, 0).into() });
        }
        let dropped = HandedOver { received: MAX_QUEUED as u64, dropped: 7 };
        assert_eq!(sockets[1].place.handed_over(), dropped);
        let found = receive(&mut sockets[1], MAX_QUEUED, |_| Delivered::OtherShard(0));
        assert_eq!(found.len(), MAX_QUEUED);
        assert_eq!(sockets[0].place.handed_over(), HandedOver::default());
    }

    #[test]
    fn another_process_cannot_take_the_address_of_the_first_shard() {
        let (_sockets, address) = sockets();
        assert!(KernelUdp::bind(address, None).is_err());
        let again = ShardPlace::all(2).unwrap();
        assert!(again[0].bind(address, &[], None).is_err(), "a second hub is not started");
    }
}
