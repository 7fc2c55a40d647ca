//! Reference models in namespaces: the sites of a [`Plan`] as hosts, connected as in the simulator.

use crate::topology::{give_address, hardware, lay_wire, tune};
use crate::{Host, SatelliteConfig, TestbedError};
use rt::emulator::{Emulator, EmulatorConfig, Handle, Ports};
use rt::netlink::{Route, sysctl};
use satlink::LinkConfig;
use satlink::reference::{Plan, Role};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;

/// A plan's sites as hosts, by IPv4.
///
/// The wire *n* of the plan, from 0, is the network `10.64.n.0/24`: its first end has the address 1
/// at the interface `wna`, its second 2 at `wnb`. All sites but users forward packets. A wire with
/// delay, loss or a rate passes through a host of its own, on which [`Reference::emulate`] runs an
/// emulator; before that nothing passes.
#[derive(Debug)]
pub struct Reference {
    plan: Plan,
    hosts: Vec<Host>,
    /// The hosts of emulators, with their wires.
    spaces: Vec<(usize, Host)>,
}

/// Maximum number of wires, given by the addresses.
const WIRES: usize = 250;

impl Reference {
    /// Builds the hosts and their wires.
    ///
    /// The kernel's error, and the host.
    /// What the kernel refused, and on which host.
    ///
    /// # Panics
    /// If the plan has more than 250 wires.
    pub fn new(plan: &Plan, config: &SatelliteConfig) -> Result<Self, TestbedError> {
        assert!(plan.wires.len() <= WIRES, "at most {WIRES} wires");
        let host = |name: &str| {
            let host = Host::new(name)?;
            host.configure(|_| tune(config)).map(|()| host)
        };
        let hosts: Result<Vec<Host>, TestbedError> =
            plan.sites.iter().map(|site| host(&site.name)).collect();
        let mut net = Self { plan: plan.clone(), hosts: hosts?, spaces: Vec::new() };
        for (place, wire) in plan.wires.iter().enumerate() {
            let names = [0, 1].map(|end| interface(place, end));
            let [one, other] = [0, 1].map(|end| (&net.hosts[wire.ends[end]], names[end].as_str()));
            if wire.config == LinkConfig::default() {
                lay_wire(one, other, config.mtu, config.offloads)?;
            } else {
                let space = host(&format!("space-{place}"))?;
                space.configure(|_| sysctl("net.ipv6.conf.default.disable_ipv6", "1"))?;
                lay_wire(one, (&space, "a"), config.mtu, config.offloads)?;
                lay_wire(other, (&space, "b"), config.mtu, config.offloads)?;
                net.spaces.push((place, space));
            }
            net.address(place)?;
        }
        (0..plan.sites.len()).try_for_each(|site| net.route(site))?;
        Ok(net)
    }

    /// The host at a site.
    ///
    /// # Panics
    /// If the plan has no such site.
    pub fn host(&self, site: usize) -> &Host {
        &self.hosts[site]
    }

    /// The address of a site; if it has several, that on its first wire.
    ///
    /// # Panics
    /// If no wire leads to it.
    pub fn address_of(&self, site: usize) -> Ipv4Addr {
        let mut wires = self.plan.wires.iter().enumerate();
        let own = wires.find_map(|(place, wire)| {
            let end = wire.ends.iter().position(|&end| end == site)?;
            Some(address(place, end))
        });
        own.expect("a wire leads to each site")
    }

    /// Runs an emulator on each such wire, with random numbers derived from `seed` and the wire's
    /// index. They stop when the result is dropped.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn emulate(&self, seed: u64) -> io::Result<Emulators> {
        let mut all = Emulators { running: Vec::new() };
        for (place, space) in &self.spaces {
            let ports = Ports::Interfaces { a: "a".to_owned(), b: "b".to_owned() };
            let link = self.plan.wires[*place].config.clone();
            let seed = seed.wrapping_mul(WIRES as u64).wrapping_add(*place as u64);
            let config = EmulatorConfig { seed, ..EmulatorConfig::new(link, ports) };
            let (ready, readiness) = mpsc::channel();
            let thread = space.spawn("emulator", move || {
                let opened = Emulator::open(config).map_err(io::Error::other);
                match opened {
                    Ok(emulator) => {
                        // If the receiver is gone the caller has stopped waiting.
                        let _ = ready.send(Ok(emulator.handle()));
                        let _ = emulator.run(&AtomicBool::new(false));
                    }
                    Err(error) => {
                        let _ = ready.send(Err(error));
                    }
                }
            });
            let gone = |_| io::Error::other("an emulator ended before it began");
            let handle = readiness.recv().map_err(gone)??;
            all.running.push((handle, Some(thread)));
        }
        Ok(all)
    }

    /// Gives both ends of a wire their addresses.
    fn address(&self, place: usize) -> Result<(), TestbedError> {
        let ends = self.plan.wires[place].ends;
        for (end, site) in ends.into_iter().enumerate() {
            let name = interface(place, end);
            let hardware = hardware((&self.hosts[ends[1 - end]], &interface(place, 1 - end)));
            self.hosts[site].configure(|net| {
                give_address(net, &name, address(place, end).into())?;
                net.add_neighbour(&name, address(place, 1 - end).into(), hardware)
            })?;
        }
        Ok(())
    }

    /// Adds the routes of a site to all wires that it is not connected to.
    fn route(&self, site: usize) -> Result<(), TestbedError> {
        for (place, wire) in self.plan.wires.iter().enumerate() {
            if wire.other(site).is_some() {
                continue;
            }
            let ways = wire.ends.map(|end| self.plan.way(site, end));
            let way = ways.into_iter().filter(|way| !way.is_empty()).min_by_key(Vec::len);
            let Some(&first) = way.as_ref().and_then(|way| way.first()) else { continue };
            let ends = self.plan.wires[first].ends;
            let next = address(first, usize::from(ends[0] == site));
            let network: IpAddr = Ipv4Addr::new(10, 64, place as u8, 0).into();
            let route = Route::to(network, 24).via(next.into());
            self.hosts[site].configure(|net| net.add_route(&route))?;
        }
        if self.plan.sites[site].role != Role::User {
            self.hosts[site].configure(|_| sysctl("net.ipv4.ip_forward", "1"))?;
        }
        Ok(())
    }
}

/// The emulators of a [`Reference`].
#[derive(Debug)]
pub struct Emulators {
    running: Vec<(Handle, Option<JoinHandle<()>>)>,
}

impl Emulators {
    /// Those that run, in the order of the plan's wires.
    pub fn handles(&self) -> impl Iterator<Item = &Handle> {
        self.running.iter().map(|(handle, _)| handle)
    }
}

impl Drop for Emulators {
    fn drop(&mut self) {
        self.running.iter().for_each(|(handle, _)| handle.stop());
        for thread in self.running.iter_mut().filter_map(|(_, thread)| thread.take()) {
            let _ = thread.join(); // The result of the run is not needed.
        }
    }
}

fn interface(wire: usize, end: usize) -> String {
    format!("w{wire}{}", if end == 0 { "a" } else { "b" })
}

fn address(wire: usize, end: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 64, wire as u8, 1 + end as u8)
}
