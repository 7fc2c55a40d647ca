//! Raw Ethernet on one interface: whole frames, as at the port of a bridge.
//!
//! A [`PacketSocket`] belongs to the network namespace of the thread that opened it and can be used
//! in any thread. It works as root and in a user namespace that owns its network namespace.
//!
//! Frames from an interface may differ from those on a wire. This module corrects that:
//!
//! * VLAN tags removed by the kernel are restored;
//! * checksums that the sender left to hardware that does not exist (veth) are completed;
//! * the interface's own offloads are disabled. A frame that still exceeds the MTU is an error with
//!   advice: it stands for several packets, which a channel model cannot treat correctly.

pub mod headers;

use crate::batch::{self, Auxiliary, ReceiveBatch};
use crate::netlink::{Netlink, NetlinkError};
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

/// An Ethernet header: two addresses and a type.
pub const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;

const TP_STATUS_CSUMNOTREADY: u32 = 1 << 3;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// Options of a packet socket.
#[derive(Clone, Debug)]
pub struct Options {
    /// Receive buffer in octets. The kernel counts its overhead: a full frame takes about 2.3 kB.
    pub receive_buffer: usize,
    /// Send buffer in octets.
    pub send_buffer: usize,
    /// Promiscuous mode, as a bridge needs.
    pub promiscuous: bool,
    /// Whether to disable the interface's offloads.
    pub disable_offloads: bool,
    /// Whether to receive frames that this host sends through the interface.
    pub outgoing: bool,
}

impl Default for Options {
    /// As a bridge port.
    fn default() -> Self {
        Self {
            receive_buffer: 64 << 20,
            send_buffer: 16 << 20,
            promiscuous: true,
            disable_offloads: true,
            outgoing: false,
        }
    }
}

/// Why a packet socket failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum PacketError {
    /// The kernel refused a call.
    Refused {
        /// The interface.
        interface: String,
        /// The call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The interface's configuration could not be read or changed.
    Interface(NetlinkError),
    /// The interface is not Ethernet.
    NotEthernet {
        /// The interface.
        interface: String,
        /// The kernel's link type (`ARPHRD_*`).
        found: u16,
    },
    /// The interface was removed.
    Gone {
        /// The interface.
        interface: String,
    },
    /// A frame arrived that stands for several packets.
    Oversized {
        /// The interface.
        interface: String,
        /// The frame's octets.
        len: usize,
        /// The maximum by MTU and headers.
        limit: usize,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { interface, call, source } => {
                write!(f, "{interface}: {call} was refused: {source}")
            }
            Self::Interface(error) => write!(f, "{error}"),
            Self::NotEthernet { interface, found } => {
                write!(f, "{interface} is not an Ethernet interface (its type is {found}, not 1)")
            }
            Self::Gone { interface } => {
                write!(f, "{interface} is gone: it was deleted, or moved to another namespace")
            }
            Self::Oversized { interface, len, limit } => write!(
                f,
                "{interface} handed on a frame of {len} bytes where its MTU allows {limit}: \
                 segmentation offload is on at the far end of it, so one frame stands for several \
                 packets; switch it off there (ethtool -K INTERFACE tso off gso off gro off)"
            ),
        }
    }
}

impl std::error::Error for PacketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { source, .. } => Some(source),
            Self::Interface(error) => Some(error),
            Self::NotEthernet { .. } | Self::Gone { .. } | Self::Oversized { .. } => None,
        }
    }
}

/// The kernel's counters of a packet socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Frames received, dropped ones included.
    pub frames: u64,
    /// Frames dropped because they were not read in time.
    pub dropped: u64,
}

/// An Ethernet interface, as a bridge sees it.
pub struct PacketSocket {
    socket: Socket,
    interface: String,
    mtu: usize,
    batch: ReceiveBatch,
    counts: KernelCounts,
    /// The kernel has reported that the interface is down, and no frame has arrived since.
    down: bool,
    /// Warnings for messages.
    notes: Vec<String>,
}

impl PacketSocket {
    /// Opens `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// A refused call, or an interface that does not exist or is not Ethernet.
    pub fn open(interface: &str, options: &Options) -> Result<Self, PacketError> {
        let refused =
            |call| move |source| PacketError::Refused { interface: interface.into(), call, source };
        let mut net = Netlink::open().map_err(PacketError::Interface)?;
        let index = net.link_index(interface).map_err(PacketError::Interface)?;
        if options.disable_offloads {
            net.disable_offloads(interface).map_err(PacketError::Interface)?;
        }
        // With protocol 0 no frame of another interface arrives before bind.
        let socket = Socket::new(Domain::PACKET, Type::RAW.nonblocking(), None::<Protocol>)
            .map_err(refused("socket(AF_PACKET, SOCK_RAW)"))?;
        let mtu = mtu(&socket, interface).map_err(refused("ioctl(SIOCGIFMTU)"))?;
        let found = hardware_type(&socket, interface).map_err(refused("ioctl(SIOCGIFHWADDR)"))?;
        if found != libc::ARPHRD_ETHER {
            return Err(PacketError::NotEthernet { interface: interface.into(), found });
        }
        let mut notes = Vec::new();
        set_options(&socket, index, options, &mut notes)
            .map_err(|(call, source)| refused(call)(source))?;
        notes.extend(crate::sockets::addresses(interface).into_iter().map(|address| {
            format!("has the address {address}: this machine answers for it, beside the link")
        }));
        bind(&socket, index).map_err(refused("bind(AF_PACKET)"))?;
        // One octet more than allowed, to detect larger frames.
        let batch = ReceiveBatch::new(64, frame_limit(mtu) + 1);
        let counts = KernelCounts::default();
        let interface = interface.to_owned();
        Ok(Self { socket, interface, mtu, batch, counts, down: false, notes })
    }

    /// Whether the socket is bound to an existing interface, in any namespace: the kernel unbinds
    /// it when the interface is removed.
    fn is_bound(&self) -> bool {
        let Ok(address) = self.socket.local_addr() else { return true };
        // SAFETY: the storage is larger than any address, and a packet socket's is of this shape.
        let address = unsafe { &*address.as_ptr().cast::<libc::sockaddr_ll>() };
        address.sll_ifindex > 0
    }

    /// Whether the interface was down or removed at the last read.
    pub(crate) fn is_down(&self) -> bool {
        self.down
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The interface's MTU when it was opened, in octets of layer 3.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Warnings for messages: requests that the kernel did not grant, addresses that the interface
    /// has.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads at most `limit` queued frames, and never more than 64: for each its arrival in
    /// nanoseconds since 1970, if the kernel timestamped it, and its octets. Returns the number of
    /// frames read; fewer than `limit` means that the queue is empty.
    ///
    /// # Errors
    /// The kernel's, [`PacketError::Oversized`] and [`PacketError::Gone`].
    pub fn receive(
        &mut self,
        limit: usize,
        mut take: impl FnMut(Option<u64>, Vec<u8>),
    ) -> Result<usize, PacketError> {
        let limit = limit.min(self.batch.capacity());
        let count = match self.batch.receive(self.socket.as_raw_fd(), limit) {
            // The interface is down, which may be temporary, or was removed.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                self.down = true;
                0
            }
            Err(source) => {
                let interface = self.interface.clone();
                return Err(PacketError::Refused { interface, call: "recvmmsg", source });
            }
            Ok(count) => count,
        };
        self.down &= count == 0;
        if self.down && !self.is_bound() {
            return Err(PacketError::Gone { interface: self.interface.clone() });
        }
        for index in 0..count {
            let message = self.batch.message(index);
            let beside = message.beside();
            let frame_limit = frame_limit(self.mtu);
            if message.whole > frame_limit {
                let (interface, len) = (self.interface.clone(), message.whole);
                return Err(PacketError::Oversized { interface, len, limit: frame_limit });
            }
            take(beside.unix_ns, wire_frame(message.bytes, beside.auxiliary));
        }
        Ok(count)
    }

    /// Sends up to 64 `frames` in order; returns how many the interface accepted.
    ///
    /// # Errors
    /// The kernel's error for the first frame.
    pub fn send<'a>(&self, frames: impl ExactSizeIterator<Item = &'a [u8]>) -> io::Result<usize> {
        batch::send(self.socket.as_raw_fd(), frames)
    }

    /// The kernel's counters since the socket was opened.
    pub fn kernel_counts(&mut self) -> KernelCounts {
        let mut read = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of_val(&read) as libc::socklen_t;
        // SAFETY: `read` and `len` are valid to write to and agree in size.
        let status = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut read).cast(),
                &raw mut len,
            )
        };
        if status == 0 {
            // The kernel resets its counters at each reading.
            self.counts.frames += u64::from(read.tp_packets);
            self.counts.dropped += u64::from(read.tp_drops);
        }
        self.counts
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The largest frame of an interface: one packet, the Ethernet header, one VLAN tag.
fn frame_limit(mtu: usize) -> usize {
    mtu + ETHERNET_HEADER + VLAN_TAG
}

/// The frame in its wire format.
fn wire_frame(bytes: &[u8], auxiliary: Option<Auxiliary>) -> Vec<u8> {
    let status = auxiliary.map_or(0, |said| said.status);
    let mut frame = Vec::with_capacity(bytes.len() + VLAN_TAG);
    match auxiliary {
        Some(said) if status & TP_STATUS_VLAN_VALID != 0 && bytes.len() >= ETHERNET_HEADER => {
            let known = status & TP_STATUS_VLAN_TPID_VALID != 0;
            let protocol = if known { said.vlan_tpid } else { 0x8100 };
            frame.extend_from_slice(&bytes[..12]);
            frame.extend_from_slice(&protocol.to_be_bytes());
            frame.extend_from_slice(&said.vlan_tci.to_be_bytes());
            frame.extend_from_slice(&bytes[12..]);
        }
        Some(_) | None => frame.extend_from_slice(bytes),
    }
    if status & TP_STATUS_CSUMNOTREADY != 0 {
        headers::complete_checksum(&mut frame);
    }
    frame
}

fn set_options(
    socket: &Socket,
    index: u32,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<(), (&'static str, io::Error)> {
    let fd = socket.as_raw_fd();
    set(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)
        .map_err(|error| ("setsockopt(PACKET_AUXDATA)", error))?;
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)
        .map_err(|error| ("setsockopt(SO_TIMESTAMPNS)", error))?;
    if !options.outgoing {
        set(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)
            .map_err(|error| ("setsockopt(PACKET_IGNORE_OUTGOING)", error))?;
    }
    if options.promiscuous {
        // SAFETY: zero bytes are a valid packet_mreq.
        let mut request: libc::packet_mreq = unsafe { mem::zeroed() };
        request.mr_ifindex = index as i32;
        request.mr_type = libc::PACKET_MR_PROMISC as u16;
        set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
            .map_err(|error| ("setsockopt(PACKET_MR_PROMISC)", error))?;
    }
    if let Err(error) = set(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32) {
        notes.push(format!("frames pass the interface's queue (PACKET_QDISC_BYPASS: {error})"));
    }
    let receive = crate::sockets::receive_buffer(fd, options.receive_buffer);
    if receive < options.receive_buffer {
        notes.push(format!(
            "receive buffer of {} kB instead of {} (net.core.rmem_max)",
            receive / 1024,
            options.receive_buffer / 1024
        ));
    }
    crate::sockets::send_buffer(fd, options.send_buffer);
    Ok(())
}

const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_QDISC_BYPASS: libc::c_int = 20;

fn bind(socket: &Socket, index: u32) -> io::Result<()> {
    // SAFETY: zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as i32;
    let len = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of `len` bytes.
    let status = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn mtu(socket: &Socket, interface: &str) -> io::Result<usize> {
    let request = interface_ioctl(socket, interface, libc::SIOCGIFMTU)?;
    // SAFETY: SIOCGIFMTU has filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

fn hardware_type(socket: &Socket, interface: &str) -> io::Result<u16> {
    let request = interface_ioctl(socket, interface, libc::SIOCGIFHWADDR)?;
    // SAFETY: SIOCGIFHWADDR has filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

fn interface_ioctl(
    socket: &Socket,
    interface: &str,
    number: libc::c_ulong,
) -> io::Result<libc::ifreq> {
    // SAFETY: zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // One byte of the name's field stays zero.
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(15)) {
        *to = from as libc::c_char;
    }
    // SAFETY: `request` is a whole ifreq, which is what these ioctls read and write.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), number as _, &raw mut request) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
}

fn set<T>(fd: RawFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is `len` bytes that outlive the call.
    let status = unsafe { libc::setsockopt(fd, level, name, (&raw const *value).cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
