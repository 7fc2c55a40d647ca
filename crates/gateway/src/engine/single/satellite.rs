//! Socket options of the satellite side: congestion control, windows, pacing.

use crate::config::SingleSection;
use crate::{intercept, kernel};
use rt::netlink::{MarkRule, Netlink, NetlinkError, Route};
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use units::{BitRate, Span};

/// Buffer size in bandwidth-delay products: one in flight, and one that waits for retransmissions.
const PRODUCTS: u64 = 2;
/// Minimum buffer size in octets.
const LEAST_BUFFER: u64 = 256 * 1024;
/// Maximum buffer size of one connection in octets.
const MOST_BUFFER: u64 = 256 * 1024 * 1024;
/// Maximum amount of unsent data in the kernel, as transmission time.
const UNSENT: Span = Span::from_millis(40);
/// Minimum of that amount in octets.
const LEAST_UNSENT: u64 = 16 * 1024;
/// Priority of the policy rule for the initial window: before the main table (32766).
const PRIORITY: u32 = 2530;

/// Errors at the start of a single gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The kernel has no such congestion control.
    #[error("single.congestion: found {found:?}, and this kernel has {known}{advice}")]
    Congestion { found: String, known: String, advice: &'static str },
    /// The routes for the initial window.
    #[error("single.initial_window: {0}")]
    InitialWindow(#[from] NetlinkError),
    /// Another resource that the kernel has refused.
    #[error(transparent)]
    Kernel(#[from] io::Error),
}

/// Options of sockets towards the satellite.
#[derive(Clone, Debug)]
pub(super) struct Tuning {
    congestion: Option<String>,
    /// Window in octets in each direction; `None`: the kernel's autotuning.
    buffer: Option<usize>,
    rate: Option<BitRate>,
    mark: Option<u32>,
}

impl Tuning {
    /// Options as configured.
    pub(super) fn new(section: &SingleSection) -> Self {
        let product = section.rate.map(|rate| rate.bytes_in(section.round_trip));
        let buffer = product.map(|bytes| (bytes * PRODUCTS).clamp(LEAST_BUFFER, MOST_BUFFER));
        Self {
            congestion: section.congestion.clone(),
            buffer: buffer.map(|bytes| bytes as usize),
            rate: section.rate,
            mark: section.initial_window.map(|_| mark(section)),
        }
    }

    /// Applies the options to a listener whose clients connect over the satellite, or to a socket
    /// before it is connected over it. The first packet announces the window scale.
    pub(super) fn apply(&self, socket: &impl AsFd) -> io::Result<()> {
        let fd = socket.as_fd();
        if let Some(congestion) = &self.congestion {
            SockRef::from(&fd).set_tcp_congestion(congestion.as_bytes())?;
        }
        if let Some(bytes) = self.buffer {
            set_buffers(fd, bytes)?;
        }
        if let Some(rate) = self.rate {
            // A single connection does not exceed the rate of the link, with any window.
            let bytes = (rate.as_bps() / 8).max(1);
            set(fd, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes)?;
            let unsent = rate.bytes_in(UNSENT).max(LEAST_UNSENT);
            let unsent = u32::try_from(unsent).unwrap_or(u32::MAX);
            set(fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, unsent)?;
        }
        if let Some(mark) = self.mark {
            set(fd, libc::SOL_SOCKET, libc::SO_MARK, mark)?;
        }
        Ok(())
    }

    /// Returns notes for the operator on options of `socket` that the kernel has restricted.
    pub(super) fn notes(&self, socket: &impl AsFd) -> Vec<String> {
        let fd = socket.as_fd();
        let socket = SockRef::from(&fd);
        let granted = |size: io::Result<usize>| size.unwrap_or(0) / 2;
        let Some(wanted) = self.buffer else { return Vec::new() };
        let mut notes = Vec::new();
        for (name, key, size) in [
            ("send", "net.core.wmem_max", granted(socket.send_buffer_size())),
            ("receive", "net.core.rmem_max", granted(socket.recv_buffer_size())),
        ] {
            if size < wanted {
                notes.push(format!(
                    "the {name} buffer towards the satellite is {size} bytes, and {wanted} are \
                     wanted for the rate and the round trip: raise {key}, or give CAP_NET_ADMIN"
                ));
            }
        }
        notes
    }
}

/// Sets the buffer sizes, beyond the system's limit if the process has the capability.
fn set_buffers(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let size = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    let socket = SockRef::from(&fd);
    if set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, size).is_err() {
        socket.set_send_buffer_size(bytes)?;
    }
    if set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size).is_err() {
        socket.set_recv_buffer_size(bytes)?;
    }
    Ok(())
}

fn set<T: Copy>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for reads of `len` bytes.
    let status =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The mark of sockets towards the satellite.
fn mark(section: &SingleSection) -> u32 {
    intercept::number_of(&format!("{} window", section.id))
}

/// Routes of our own to the networks beyond the satellite, which differ from the system's in the
/// initial window, and rules that lead only our own sockets there.
#[derive(Debug)]
pub(super) struct InitialWindow {
    netlink: Netlink,
    routes: Vec<Route>,
    rules: Vec<MarkRule>,
}

impl InitialWindow {
    /// Puts routes and rules in place; `None` where the kernel's own initial window is wanted.
    pub(super) fn install(section: &SingleSection) -> Result<Option<Self>, NetlinkError> {
        let Some(window) = section.initial_window else { return Ok(None) };
        let mut this = Self { netlink: Netlink::open()?, routes: Vec::new(), rules: Vec::new() };
        let number = mark(section);
        for network in &section.networks {
            let (gateway, interface) = this.netlink.route_to(network.network())?;
            let mut route = Route::to(network.network(), network.length()).on(&interface);
            route.gateway = gateway;
            route.table = number;
            route.initial_cwnd = Some(window);
            if let Err(error) = this.netlink.add_route(&route) {
                if error.errno() != Some(libc::EEXIST) {
                    return Err(error);
                }
                // An earlier run has left one, perhaps with another window.
                this.netlink.delete_route(&route)?;
                this.netlink.add_route(&route)?;
            }
            this.routes.push(route);
        }
        for any in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            if section.networks.iter().any(|network| network.network().is_ipv4() == any.is_ipv4()) {
                let rule = MarkRule {
                    v6: any.is_ipv6(),
                    mark: number,
                    mask: u32::MAX,
                    table: number,
                    priority: PRIORITY,
                };
                added(this.netlink.add_rule(&rule))?;
                this.rules.push(rule);
            }
        }
        Ok(Some(this))
    }
}

/// What is there already was left by an earlier run.
fn added(result: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match result {
        Err(error) if error.errno() == Some(libc::EEXIST) => Ok(()),
        other => other,
    }
}

impl Drop for InitialWindow {
    fn drop(&mut self) {
        for rule in &self.rules {
            if let Err(error) = self.netlink.delete_rule(rule) {
                tracing::warn!(%error, "a rule for the initial window was not removed");
            }
        }
        for route in &self.routes {
            if let Err(error) = self.netlink.delete_route(route) {
                tracing::warn!(%error, "a route for the initial window was not removed");
            }
        }
    }
}

/// Reason for which the satellite's side could not be configured.
pub(super) fn refused(section: &SingleSection, error: io::Error) -> Refusal {
    match (&section.congestion, error.raw_os_error()) {
        (Some(found), Some(libc::ENOENT | libc::EPERM)) => Refusal::Congestion {
            found: found.clone(),
            known: kernel::available_congestion_controls().join(", "),
            advice: match error.raw_os_error() {
                Some(libc::EPERM) => {
                    "; it needs CAP_NET_ADMIN, or a place in \
                     net.ipv4.tcp_allowed_congestion_control"
                }
                _ => "; others may be had by modprobe tcp_NAME",
            },
        },
        _ => Refusal::Kernel(error),
    }
}
