//! Links, addresses, routes and policy rules over netlink, without the `ip` program.
//!
//! A [`Netlink`] acts on the network namespace in which it was opened, in any thread; [`sysctl`]
//! acts on the namespace of the calling thread. Everything here works as root and inside a user
//! namespace that owns its network namespace; errors contain the refused call and the errno.
//!
//! ```no_run
//! use rt::netlink::{Netlink, Route, VethEnd};
//!
//! let mut net = Netlink::open()?;
//! net.create_veth(&VethEnd::new("a"), &VethEnd::new("b"))?;
//! net.disable_offloads("a")?;
//! net.set_up("a")?;
//! net.add_address("a", "10.0.0.1".parse().unwrap(), 24)?;
//! net.add_route(&Route::default_v4("10.0.0.2".parse().unwrap()))?;
//! # Ok::<(), rt::netlink::NetlinkError>(())
//! ```

mod address;
mod ethtool;
mod lookup;
mod message;
mod reverse;
mod route;
#[cfg(test)]
mod tests;

pub use reverse::ReversePath;
pub use route::{DestinationRule, MarkRule, Route, RouteKind};

use message::{Link, Message, nested};
use netlink_packet_core::{
    DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// The end of a veth pair that is not in the message itself (`linux/veth.h`).
const VETH_INFO_PEER: u16 = 1;

/// Why a call to the kernel's network configuration failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum NetlinkError {
    /// The kernel refused the call; the source is its errno.
    Refused {
        /// The call and its arguments, such as `RTM_NEWLINK (veth a, b)`.
        call: String,
        /// The errno.
        source: io::Error,
    },
    /// The kernel's response could not be parsed.
    Answer {
        /// The call.
        call: String,
        /// What was wrong with the response.
        reason: String,
    },
    /// There is no interface of this name in the namespace.
    NoSuchLink(String),
}

impl NetlinkError {
    fn refused(call: impl Into<String>, source: io::Error) -> Self {
        Self::Refused { call: call.into(), source }
    }

    /// The errno, if the kernel returned one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } => source.raw_os_error(),
            Self::Answer { .. } | Self::NoSuchLink(_) => None,
        }
    }
}

impl fmt::Display for NetlinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { call, source } => write!(f, "{call} was refused: {source}"),
            Self::Answer { call, reason } => write!(f, "{call}: unreadable answer: {reason}"),
            Self::NoSuchLink(name) => write!(f, "there is no interface {name:?}"),
        }
    }
}

impl std::error::Error for NetlinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { source, .. } => Some(source),
            Self::Answer { .. } | Self::NoSuchLink(_) => None,
        }
    }
}

/// One end of a veth pair to be created.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The interface's name, at most 15 bytes.
    pub name: &'a str,
    /// Its network namespace; `None` for that of the [`Netlink`].
    pub namespace: Option<BorrowedFd<'a>>,
    /// Its MTU in bytes; `None` for the kernel's default, 1500.
    pub mtu: Option<u32>,
    /// Its MAC address; `None` for a random one.
    pub hardware: Option<[u8; 6]>,
}

impl<'a> VethEnd<'a> {
    /// An end called `name`, in the namespace of the [`Netlink`], with the default MTU.
    pub fn new(name: &'a str) -> Self {
        Self { name, namespace: None, mtu: None, hardware: None }
    }

    /// The same end in the namespace of `fd`.
    pub fn in_namespace(self, fd: BorrowedFd<'a>) -> Self {
        Self { namespace: Some(fd), ..self }
    }

    fn message(&self) -> Link {
        let mut link = Link::named(self.name);
        if let Some(mtu) = self.mtu {
            link = link.with(libc::IFLA_MTU, mtu.to_ne_bytes().to_vec());
        }
        if let Some(hardware) = self.hardware {
            link = link.with(libc::IFLA_ADDRESS, hardware.to_vec());
        }
        if let Some(fd) = self.namespace {
            link = link.with(libc::IFLA_NET_NS_FD, fd.as_raw_fd().to_ne_bytes().to_vec());
        }
        link
    }
}

/// A blocking connection to the configuration of one network namespace.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    /// For ioctls without a netlink equivalent.
    control: socket2::Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens the namespace of the calling thread.
    ///
    /// If the kernel refuses a netlink or a datagram socket.
    /// When the kernel refuses a netlink or a datagram socket.
    pub fn open() -> Result<Self, NetlinkError> {
        let refused = |source| NetlinkError::refused("socket(AF_NETLINK, NETLINK_ROUTE)", source);
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(refused)?;
        socket.bind_auto().map_err(refused)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(refused)?;
        let control = ethtool::control_socket()?;
        Ok(Self { socket, control, sequence: 0 })
    }

    /// Creates a veth pair with each end in its namespace.
    ///
    /// # Errors
    /// `EEXIST` if a name is in use, `EPERM` without the rights over either namespace.
    pub fn create_veth(
        &mut self,
        one: &VethEnd<'_>,
        other: &VethEnd<'_>,
    ) -> Result<(), NetlinkError> {
        let peer = DefaultNla::new(VETH_INFO_PEER, other.message().octets());
        let kind = DefaultNla::new(libc::IFLA_INFO_KIND, b"veth\0".to_vec());
        let data = DefaultNla::new(libc::IFLA_INFO_DATA, nested(&[peer]));
        let link = one.message().with(libc::IFLA_LINKINFO, nested(&[kind, data]));
        self.create(
            &format!("RTM_NEWLINK (veth {}, {})", one.name, other.name),
            Message::new(libc::RTM_NEWLINK, &link),
        )
    }

    /// Removes an interface; the peer of a veth is removed with it.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn delete_link(&mut self, name: &str) -> Result<(), NetlinkError> {
        let link = Link::numbered(self.link_index(name)?);
        self.change(&format!("RTM_DELLINK ({name})"), Message::new(libc::RTM_DELLINK, &link))
    }

    /// The index of the interface `name`.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn link_index(&mut self, name: &str) -> Result<u32, NetlinkError> {
        let question = Message::new(libc::RTM_GETLINK, &Link::named(name));
        let call = format!("RTM_GETLINK ({name})");
        match self.request(&call, question, NLM_F_REQUEST | NLM_F_ACK) {
            Ok(answers) => answers
                .iter()
                .find_map(Message::link_index)
                .ok_or_else(|| NetlinkError::NoSuchLink(name.to_owned())),
            Err(error) if error.errno() == Some(libc::ENODEV) => {
                Err(NetlinkError::NoSuchLink(name.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Brings an interface up.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn set_up(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.set_flags(name, libc::IFF_UP as u32, "up")
    }

    /// Brings an interface down; its routes are removed.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn set_down(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.set_flags(name, 0, "down")
    }

    /// Sets an interface's MTU, in octets of layer 3.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), NetlinkError> {
        let link = Link::numbered(self.link_index(name)?);
        let link = link.with(libc::IFLA_MTU, mtu.to_ne_bytes().to_vec());
        let request = Message::new(libc::RTM_SETLINK, &link);
        self.change(&format!("RTM_SETLINK ({name} mtu {mtu})"), request)
    }

    /// Adds an address to an interface. Duplicate address detection is skipped for IPv6; the kernel
    /// still completes such an address asynchronously: see [`Netlink::await_address`].
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn add_address(
        &mut self,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = self.link_index(name)?;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        self.create(
            &format!("RTM_NEWADDR ({address}/{prefix} on {name})"),
            Message::new(libc::RTM_NEWADDR, &message),
        )
    }

    /// Waits until packets to the namespace's own `address` are delivered locally. The kernel adds
    /// the host route of an IPv6 address in the background; an earlier connection would wait for
    /// neighbour discovery.
    ///
    /// # Errors
    /// `ETIMEDOUT` after 2 s, for example if the interface is down.
    pub fn await_address(&mut self, address: IpAddr) -> Result<(), NetlinkError> {
        for _ in 0..2_000 {
            if matches!(self.route_type(address), Ok(Some(RouteType::Local))) {
                return Ok(());
            }
            #[expect(clippy::disallowed_methods, reason = "the kernel sends no event")]
            std::thread::sleep(Duration::from_millis(1));
        }
        let call = format!("RTM_GETROUTE ({address})");
        Err(NetlinkError::refused(call, io::Error::from_raw_os_error(libc::ETIMEDOUT)))
    }

    /// Whether the kernel delivers packets to `address` locally: an address of its own, also by a
    /// local route, or a broadcast, multicast or anycast address. A single request without delay.
    ///
    /// # Errors
    /// The kernel's error; a missing route is no error.
    pub fn is_own(&mut self, address: IpAddr) -> Result<bool, NetlinkError> {
        let kept =
            [RouteType::Local, RouteType::Broadcast, RouteType::Multicast, RouteType::Anycast];
        Ok(self.route_type(address)?.is_some_and(|kind| kept.contains(&kind)))
    }

    /// The type of the route to `address`; `None` without a route.
    fn route_type(&mut self, address: IpAddr) -> Result<Option<RouteType>, NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes.push(RouteAttribute::Destination(address.into()));
        let call = format!("RTM_GETROUTE ({address})");
        // Without an acknowledgment there is one response, of a route or an error.
        match self.request(&call, Message::new(libc::RTM_GETROUTE, &message), NLM_F_REQUEST) {
            Ok(answers) => {
                Ok(answers.iter().find_map(Message::route).map(|route| route.header.kind))
            }
            // Unreachable, prohibit and blackhole routes are reported as errors as well.
            Err(error)
                if matches!(
                    error.errno(),
                    Some(
                        libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EAFNOSUPPORT
                    )
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a permanent neighbour entry, so that the kernel sends no ARP or neighbour solicitation
    /// (which cost a round trip, 0.5 s over a satellite). An existing entry is replaced.
    ///
    /// # Errors
    /// [`NetlinkError::NoSuchLink`], or the kernel's error.
    pub fn add_neighbour(
        &mut self,
        name: &str,
        address: IpAddr,
        hardware: [u8; 6],
    ) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = self.link_index(name)?;
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::Destination(match address {
            IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
            IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
        }));
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(hardware.to_vec()));
        let call = format!("RTM_NEWNEIGH ({address} on {name})");
        let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        self.request(&call, Message::new(libc::RTM_NEWNEIGH, &message), flags).map(drop)
    }

    /// Adds a route.
    ///
    /// # Errors
    /// `EEXIST` if there is an equal one, `ENETUNREACH` if the gateway is not on a link, `ENOENT`
    /// if the congestion control is unknown.
    pub fn add_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let message = route.message(self)?;
        self.create(&format!("RTM_NEWROUTE ({route})"), Message::new(libc::RTM_NEWROUTE, &message))
    }

    /// Removes a route with the same attributes.
    ///
    /// # Errors
    /// `ESRCH` when there is none.
    pub fn delete_route(&mut self, route: &Route) -> Result<(), NetlinkError> {
        let message = route.message(self)?;
        self.change(&format!("RTM_DELROUTE ({route})"), Message::new(libc::RTM_DELROUTE, &message))
    }

    /// Adds a policy rule.
    ///
    /// # Errors
    /// `EEXIST` if there is an equal one.
    pub fn add_rule(&mut self, rule: &MarkRule) -> Result<(), NetlinkError> {
        self.create(
            &format!("RTM_NEWRULE ({rule})"),
            Message::new(libc::RTM_NEWRULE, &rule.message()),
        )
    }

    /// Removes a policy rule with the same attributes.
    ///
    /// # Errors
    /// `ENOENT` when there is none.
    pub fn delete_rule(&mut self, rule: &MarkRule) -> Result<(), NetlinkError> {
        self.change(
            &format!("RTM_DELRULE ({rule})"),
            Message::new(libc::RTM_DELRULE, &rule.message()),
        )
    }

    /// Disables the offloads with which a veth forwards packets larger than its MTU or without
    /// checksums: segmentation and receive offloads, scatter-gather, checksum offloads.
    ///
    /// # Errors
    /// The kernel's error, with the feature's name. Features that the interface does not have are
    /// ignored.
    pub fn disable_offloads(&mut self, name: &str) -> Result<(), NetlinkError> {
        ethtool::disable_offloads(&self.control, name)
    }

    fn set_flags(&mut self, name: &str, flags: u32, word: &str) -> Result<(), NetlinkError> {
        let index = self.link_index(name)?;
        let link = Link { index, flags, changed: libc::IFF_UP as u32, ..Link::default() };
        self.change(&format!("RTM_SETLINK ({name} {word})"), Message::new(libc::RTM_SETLINK, &link))
    }

    fn create(&mut self, call: &str, message: Message) -> Result<(), NetlinkError> {
        let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.request(call, message, flags).map(drop)
    }

    fn change(&mut self, call: &str, message: Message) -> Result<(), NetlinkError> {
        self.request(call, message, NLM_F_REQUEST | NLM_F_ACK).map(drop)
    }

    /// Sends one request and collects the responses before its acknowledgement; the first one if
    /// none is requested.
    fn request(
        &mut self,
        call: &str,
        message: Message,
        flags: u16,
    ) -> Result<Vec<Message>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| NetlinkError::refused(call, source))?;

        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self
                .socket
                .recv_from_full()
                .map_err(|source| NetlinkError::refused(call, source))?;
            let acknowledged = self.read_answers(call, &datagram, &mut answers)?;
            if acknowledged || flags & NLM_F_ACK == 0 && !answers.is_empty() {
                return Ok(answers);
            }
        }
    }

    /// Parses the messages of one datagram; true if the acknowledgement was among them.
    fn read_answers(
        &self,
        call: &str,
        mut datagram: &[u8],
        answers: &mut Vec<Message>,
    ) -> Result<bool, NetlinkError> {
        while !datagram.is_empty() {
            let message = NetlinkMessage::<Message>::deserialize(datagram).map_err(|error| {
                NetlinkError::Answer { call: call.to_owned(), reason: error.to_string() }
            })?;
            let length = (message.header.length as usize).next_multiple_of(4);
            datagram = &datagram[length.clamp(4, datagram.len().max(4)).min(datagram.len())..];
            if message.header.sequence_number != self.sequence {
                continue; // The rest of a request that failed half-way.
            }
            match message.payload {
                NetlinkPayload::Error(error) => match error.code {
                    None => return Ok(true),
                    Some(_) => return Err(NetlinkError::refused(call, error.to_io())),
                },
                NetlinkPayload::Done(_) => return Ok(true),
                NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Sets a kernel parameter in the calling thread's network namespace: `net.ipv4.ip_forward`, `1`.
///
/// The error of the file, with its path.
/// The refusal of the file, named by its path.
pub fn sysctl(key: &str, value: &str) -> Result<(), NetlinkError> {
    // Interface names may contain dots; keys with such names are written with slashes.
    let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    let path = format!("/proc/sys/{path}");
    std::fs::write(&path, value)
        .map_err(|source| NetlinkError::refused(format!("write of {value:?} to {path}"), source))
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
