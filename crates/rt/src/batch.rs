//! Batches of messages: recvmmsg and sendmmsg, with the kernel's timestamps.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::RawFd;

/// Room for the control messages: timestamp, packet data, traffic class.
const CONTROL_WORDS: usize = 16;

/// `struct tpacket_auxdata` of a packet socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Auxiliary {
    /// TP_STATUS_* bits.
    pub(crate) status: u32,
    /// The VLAN tag removed from the frame.
    pub(crate) vlan_tci: u16,
    /// Its protocol, when `TP_STATUS_VLAN_TPID_VALID`.
    pub(crate) vlan_tpid: u16,
}

/// Buffers for a fixed number of messages, filled by one recvmmsg at a time.
///
/// The headers contain addresses into the other boxed slices, which are never replaced, so the
/// addresses are valid for the lifetime of the batch, also when it moves.
pub(crate) struct ReceiveBatch {
    headers: Box<[libc::mmsghdr]>,
    names: Box<[libc::sockaddr_storage]>,
    controls: Box<[[u64; CONTROL_WORDS]]>,
    _vectors: Box<[libc::iovec]>,
    bytes: Box<[u8]>,
    room: usize,
    filled: usize,
}

// SAFETY: the raw addresses lead only into the batch's own boxes, which move with it.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Buffers for `messages` messages of `room` octets each.
    pub(crate) fn new(messages: usize, room: usize) -> Self {
        let mut bytes = vec![0u8; messages * room].into_boxed_slice();
        // SAFETY: all three are plain C structures for which zero bytes are valid.
        let (mut names, mut headers): (Box<[libc::sockaddr_storage]>, Box<[libc::mmsghdr]>) = unsafe {
            (
                (0..messages).map(|_| mem::zeroed()).collect(),
                (0..messages).map(|_| mem::zeroed()).collect(),
            )
        };
        let mut controls = vec![[0u64; CONTROL_WORDS]; messages].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = bytes
            .chunks_exact_mut(room)
            .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: room })
            .collect();
        for (index, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_name = (&raw mut names[index]).cast();
            header.msg_hdr.msg_iov = &raw mut vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = controls[index].as_mut_ptr().cast();
        }
        let filled = messages;
        Self { headers, names, controls, _vectors: vectors, bytes, room, filled }
    }

    /// Maximum messages per call.
    pub(crate) fn capacity(&self) -> usize {
        self.headers.len()
    }

    /// Receives the messages queued on `socket`, at most `limit`; returns their number, which may
    /// be 0.
    pub(crate) fn receive(&mut self, socket: RawFd, limit: usize) -> io::Result<usize> {
        for header in &mut self.headers[..self.filled] {
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            // Its type depends on the C library.
            header.msg_hdr.msg_controllen = (CONTROL_WORDS * size_of::<u64>()) as _;
        }
        self.filled = 0;
        let limit = limit.min(self.headers.len()) as u32;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every header up to `limit` leads to a name, a vector and a control buffer of
        // the stated sizes, which live as long as `self`; no timeout is given.
        let count = unsafe {
            libc::recvmmsg(
                socket,
                self.headers.as_mut_ptr(),
                limit,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        self.filled = count as usize;
        Ok(self.filled)
    }

    /// Message `index` of the last call.
    ///
    /// If the last call received fewer messages.
    /// When the last call brought fewer.
    pub(crate) fn message(&self, index: usize) -> Message<'_> {
        assert!(index < self.filled, "message {index} of {}", self.filled);
        let header = &self.headers[index];
        let whole = header.msg_len as usize;
        let start = index * self.room;
        Message {
            bytes: &self.bytes[start..start + whole.min(self.room)],
            whole,
            name: &self.names[index],
            control: &self.controls[index],
            control_len: header.msg_hdr.msg_controllen as _,
        }
    }
}

/// One received message.
pub(crate) struct Message<'a> {
    /// Its octets, truncated to the buffer.
    pub(crate) bytes: &'a [u8],
    /// Its original length.
    pub(crate) whole: usize,
    name: &'a libc::sockaddr_storage,
    control: &'a [u64; CONTROL_WORDS],
    control_len: usize,
}

/// The control messages of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Time of arrival in nanoseconds since 1970.
    pub(crate) unix_ns: Option<u64>,
    pub(crate) auxiliary: Option<Auxiliary>,
    /// The IP type of service or traffic class.
    pub(crate) traffic_class: Option<u8>,
}

impl Message<'_> {
    /// Parses all control messages.
    pub(crate) fn beside(&self) -> Beside {
        let mut beside = Beside::default();
        let bytes: &[u8] = {
            let len = self.control_len.min(size_of_val(self.control));
            // SAFETY: the control buffer is `len` initialised bytes or more.
            unsafe { std::slice::from_raw_parts(self.control.as_ptr().cast(), len) }
        };
        // `struct cmsghdr` is a length that includes itself, a level and a type; the next one
        // starts at the next multiple of eight.
        let mut at = 0;
        while at + 16 <= bytes.len() {
            let len = read_u64(&bytes[at..]) as usize;
            if len < 16 || at + len > bytes.len() {
                break;
            }
            let level = read_i32(&bytes[at + 8..]);
            let kind = read_i32(&bytes[at + 12..]);
            beside.note(level, kind, &bytes[at + 16..at + len]);
            at += len.next_multiple_of(8);
        }
        beside
    }

    /// The source, if it is an IP address.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match i32::from(self.name.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that a sockaddr_in lies here; the storage is larger
                // and aligned for it.
                let name: &libc::sockaddr_in = unsafe { &*(&raw const *self.name).cast() };
                let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(name.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: as above, a sockaddr_in6.
                let name: &libc::sockaddr_in6 = unsafe { &*(&raw const *self.name).cast() };
                let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
                let port = u16::from_be(name.sin6_port);
                Some(SocketAddrV6::new(ip, port, 0, name.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

impl Beside {
    fn note(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if data.len() >= 16 => {
                self.unix_ns = Some(read_u64(data) * 1_000_000_000 + read_u64(&data[8..]));
            }
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) if data.len() >= 20 => {
                let half = |at: usize| u16::from_ne_bytes([data[at], data[at + 1]]);
                let status = u32::from_ne_bytes([data[0], data[1], data[2], data[3]]);
                self.auxiliary =
                    Some(Auxiliary { status, vlan_tci: half(16), vlan_tpid: half(18) });
            }
            (libc::IPPROTO_IP, libc::IP_TOS) if !data.is_empty() => {
                self.traffic_class = Some(data[0]);
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if data.len() >= 4 => {
                self.traffic_class = Some(read_i32(data) as u8);
            }
            _ => {}
        }
    }
}

/// Sends up to 64 `messages` in order; returns how many the kernel accepted.
///
/// # Errors
/// The kernel's error for the first message.
pub(crate) fn send<'a>(
    socket: RawFd,
    messages: impl ExactSizeIterator<Item = &'a [u8]>,
) -> io::Result<usize> {
    const MOST: usize = 64;
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    // SAFETY: zero bytes are a valid mmsghdr.
    let mut headers: [libc::mmsghdr; MOST] = unsafe { mem::zeroed() };
    let mut count = 0;
    for (index, bytes) in messages.take(MOST).enumerate() {
        // The kernel only reads what it sends.
        vectors[index].iov_base = bytes.as_ptr().cast_mut().cast();
        vectors[index].iov_len = bytes.len();
        headers[index].msg_hdr.msg_iov = &raw mut vectors[index];
        headers[index].msg_hdr.msg_iovlen = 1;
        count = index + 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers lead to vectors that lead to borrowed bytes, all of
    // which outlive the call.
    let sent = unsafe { libc::sendmmsg(socket, headers.as_mut_ptr(), count as u32, flags as _) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

fn read_u64(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"))
}

fn read_i32(bytes: &[u8]) -> i32 {
    i32::from_ne_bytes(bytes[..4].try_into().expect("four bytes"))
}
