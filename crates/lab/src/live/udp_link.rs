//! An emulated link on the loopback interface, which needs no privileges.

use crate::LabError;
use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports, Summary};
use satlink::{Direction, LinkConfig};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

/// The emulator as a UDP relay in a thread.
pub(crate) struct UdpLink {
    address: SocketAddr,
    handle: Handle,
    thread: Option<JoinHandle<Result<Summary, String>>>,
}

impl UdpLink {
    /// Starts a link from any number of terminals to the hub that listens at `hub`.
    pub(crate) fn start(link: &LinkConfig, seed: u64, hub: SocketAddr) -> Result<Self, LabError> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let ports = Ports::UdpRelay { listen, target: hub };
        let config = EmulatorConfig { seed, ..EmulatorConfig::new(link.clone(), ports) };
        let failed = |reason: String| LabError::Emulator(reason);
        let emulator = Emulator::open(config).map_err(|error| failed(error.to_string()))?;
        let address =
            emulator.relay_address().ok_or_else(|| failed("it has no address".to_owned()))?;
        let handle = emulator.handle();
        let thread = thread::spawn(move || {
            emulator.run(&AtomicBool::new(false)).map_err(|error| error.to_string())
        });
        Ok(Self { address, handle, thread: Some(thread) })
    }

    /// Returns the address that terminals send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the octets that entered the return direction, with IP and UDP headers.
    pub(crate) fn returned(&self) -> u64 {
        self.handle.counters(Direction::Return).offered.bytes
    }

    /// Returns the octets that the forward direction delivered.
    pub(crate) fn forwarded(&self) -> u64 {
        self.handle.counters(Direction::Forward).delivered.bytes
    }

    pub(crate) fn stop(mut self) -> Result<Summary, LabError> {
        self.handle.stop();
        let thread = self.thread.take().expect("a link is stopped once");
        let gone = |_| LabError::Emulator("its thread panicked".to_owned());
        thread.join().map_err(gone)?.map_err(LabError::Emulator)
    }
}

impl Drop for UdpLink {
    fn drop(&mut self) {
        self.handle.stop();
    }
}
