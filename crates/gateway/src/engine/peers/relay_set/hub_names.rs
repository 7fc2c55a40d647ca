//! Addresses of a terminal's hubs, where these are configured by name.

use super::{RelaySet, Side};
use crate::engine::host::Host;
use crate::engine::peers::hub_ports::Answer;
use crate::engine::peers::paths::Path;
use relay::PathView;
use std::net::SocketAddr;
use std::sync::Arc;

impl RelaySet {
    fn path(&self, number: usize) -> Option<&Path> {
        match &self.side {
            Side::Terminal(paths) => paths.all.get(number),
            Side::Hub(_) => None,
        }
    }

    /// Returns the paths whose hubs have names, with name and port.
    pub(crate) fn named_hubs(&self) -> Vec<(usize, Arc<str>, u16)> {
        let Side::Terminal(paths) = &self.side else { return Vec::new() };
        let named = paths.all.iter().enumerate().filter_map(|(number, path)| {
            let name = path.hub_name.clone()?;
            Some((number, name, path.route.peer.port()))
        });
        named.collect()
    }

    /// Returns the names of hubs without a known address, for the status.
    pub(crate) fn unresolved(&self) -> Vec<String> {
        let Side::Terminal(paths) = &self.side else { return Vec::new() };
        let without = paths.all.iter().filter(|path| path.address().is_none());
        let key = |label: &str| if label.is_empty() { "link.peer" } else { "path.peer" };
        without.map(|path| format!("name {} ({})", path.known_as(), key(&path.label))).collect()
    }

    /// Whether there is an address to which datagrams are sent by the socket of this `number`.
    pub(crate) fn has_destination(&self, number: usize) -> bool {
        self.path(number).is_none_or(|path| path.address().is_some())
    }

    fn view(&self, number: usize) -> Option<PathView<'_>> {
        match &self.side {
            Side::Terminal(paths) => paths.view(number),
            Side::Hub(_) => None,
        }
    }

    /// Whether the hub of a path answers.
    pub(crate) fn is_path_answered(&self, number: usize) -> bool {
        self.view(number).is_some_and(|path| path.is_answered())
    }

    /// Whether there is a session with the hub of a path, which may be in an outage.
    pub(crate) fn is_path_connected(&self, number: usize) -> bool {
        self.view(number).is_some_and(|path| path.is_connected())
    }

    /// Returns the address of a path's hub, once one is known.
    pub(crate) fn path_address(&self, number: usize) -> Option<SocketAddr> {
        self.path(number).and_then(Path::address)
    }

    /// Returns where datagrams of a path are sent by UDP, once the hub's address is known.
    pub(crate) fn path_destination(&self, number: usize) -> Option<SocketAddr> {
        self.path(number).filter(|path| path.address().is_some()).map(Path::destination)
    }

    /// Sets the port of a path's hub.
    pub(crate) fn set_path_port(&mut self, number: usize, port: u16) {
        if let Side::Terminal(paths) = &mut self.side {
            paths.set_port(number, port);
        }
    }

    /// Returns whether the hub answers on a path, whether it has ever, and the RTT if it is known.
    pub(crate) fn path_answer(&self, number: usize) -> Answer {
        let view = self.view(number);
        Answer {
            now: view.as_ref().is_some_and(|path| path.is_answered()),
            is_connected: view.as_ref().is_some_and(|path| path.is_connected()),
            round_trip: view.and_then(|path| path.round_trip()),
        }
    }

    /// Sets the address of a path's hub.
    pub(crate) fn set_path_address(&mut self, number: usize, address: SocketAddr, host: &dyn Host) {
        if let Side::Terminal(paths) = &mut self.side {
            if let Some(path) = paths.all.get_mut(number) {
                path.route.peer = address;
            }
            paths.check(host);
        }
    }
}
