//! Local addresses of connections to servers, and servers for which an address has no free port.
//!
//! A port of a local address serves one connection to each server at a time, and is taken for
//! another 60 s if the connection is closed from this side first (TIME_WAIT, RFC 9293, section
//! 3.6.1). If none is free, `connect` examines the whole range of ports before it fails, which takes
//! about a millisecond of processor time; so it is not repeated for [`PAUSE`].

use crate::engine::host::{Host, LocalAddress, Socket};
use relay::Owner;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// Time without attempts to connect to a server from an address without a free port.
const PAUSE: Span = Span::from_millis(250);
/// Maximum number of pauses; beyond it attempts are made, and cost their time.
const MAX_PAUSES: usize = 1_024;

/// Source addresses of connections to servers.
#[derive(Debug, Default)]
pub(crate) struct SourceAddresses {
    /// The configured addresses; if there is none of a server's family, the routing table selects
    /// the address.
    addresses: Vec<IpAddr>,
    /// The end of each pause, by local address (`None`: selected by the routing table) and server.
    pauses: BTreeMap<(Option<IpAddr>, SocketAddr), Instant>,
}

impl SourceAddresses {
    pub(crate) fn new(addresses: &[IpAddr]) -> Self {
        Self { addresses: addresses.to_vec(), pauses: BTreeMap::new() }
    }

    /// Begins to connect to `server`: from `client` if possible, otherwise from this host's own
    /// addresses, beginning with the one that all connections of `owner` use as long as it has free
    /// ports. The flag is true if the address is an own one.
    ///
    /// # Errors
    /// Those of [`Host::connect`]; [`is_out_of_ports`] if no address has a free port.
    pub(crate) fn connect(
        &mut self,
        now: Instant,
        host: &mut dyn Host,
        (client, owner): (Option<SocketAddr>, Owner),
        server: SocketAddr,
    ) -> io::Result<(Socket, bool)> {
        if let Some(client) = client.filter(|client| client.is_ipv4() == server.is_ipv4()) {
            match self.attempt(now, host, LocalAddress::Client(client), server) {
                Ok(socket) => return Ok((socket, false)),
                Err(error) => {
                    tracing::debug!(%client, %server, %error, "connecting from the client's address failed");
                }
            }
        }
        let mut own: Vec<LocalAddress> = self
            .addresses
            .iter()
            .filter(|address| address.is_ipv4() == server.is_ipv4())
            .map(|&address| LocalAddress::Own(address))
            .collect();
        if own.is_empty() {
            own.push(LocalAddress::Any);
        }
        // An IPv6 owner is a network, whose lower half is zero.
        let first = ((owner.0 >> 64) as u64 ^ owner.0 as u64) % own.len() as u64;
        own.rotate_left(first as usize);
        let mut failure = io::Error::from_raw_os_error(libc::ENETUNREACH);
        for local in own {
            match self.attempt(now, host, local, server) {
                Ok(socket) => return Ok((socket, true)),
                Err(error) if is_out_of_ports(&error) => failure = error,
                // The host does not have this address; it may have the others.
                Err(error) if error.raw_os_error() == Some(libc::ENETUNREACH) => {}
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Begins to connect from `local`, unless it had no free port just now.
    fn attempt(
        &mut self,
        now: Instant,
        host: &mut dyn Host,
        local: LocalAddress,
        server: SocketAddr,
    ) -> io::Result<Socket> {
        let key = (local.ip(), server);
        if self.pauses.get(&key).is_some_and(|until| now < *until) {
            return Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL));
        }
        let result = host.connect(local, server);
        if !result.as_ref().is_err_and(is_out_of_ports) {
            return result;
        }
        // The error of an address that the host does not have is the same.
        let is_missing = match local {
            LocalAddress::Any => host.source_for(server).is_none(),
            LocalAddress::Own(address) => {
                host.has_address(SocketAddr::new(address, 0)) == Some(false)
            }
            LocalAddress::Client(_) => false,
        };
        if is_missing {
            return Err(io::Error::from_raw_os_error(libc::ENETUNREACH));
        }
        if self.pauses.len() >= MAX_PAUSES {
            self.pauses.retain(|_, until| now < *until);
        }
        if self.pauses.len() < MAX_PAUSES {
            self.pauses.insert(key, now + PAUSE);
        }
        result
    }
}

/// Returns whether connecting failed because no local port is free.
pub(crate) fn is_out_of_ports(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EADDRNOTAVAIL)
}
