//! Reference models of networks with satellite links: ITU-R S.1711 Annex 1, section 2.
//!
//! ```text
//!   point to point   user ── station ≈≈≈ station ── user                              figure 1
//!   several hops     user ── station ≈≈≈ station ── station ≈≈≈ station ── user       its note 1
//!   star             server ── hub ≈≈≈ satellite ≈≈≈ remote ── user, user, ...        figure 2
//!   mesh             each station ≈≈≈ every other, each with a user                   figure 3
//! ```
//!
//! A [`Plan`] contains only the topology and the links. The simulator and the testbed build
//! networks from it.
//!
//! ```
//! use satlink::reference::Plan;
//! let lan = satlink::words::parse_link("both rate 100mbit").unwrap();
//! let space = satlink::profiles::by_name("geo").unwrap();
//! let plan = Plan::several_hops(&lan, &space, 2);
//! assert_eq!(plan.sites.len(), 6);
//! assert_eq!(plan.way(0, 5).len(), 5);
//! ```

use crate::{DirectionConfig, LinkConfig};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// The role of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An end user, or a server in the terrestrial network.
    User,
    /// An earth station: a possible location of a gateway.
    Station,
    /// A satellite that forwards packets.
    Satellite,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name, unique in its plan: letters, digits and "-".
    pub name: String,
    /// Its role.
    pub role: Role,
}

/// The medium between two sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The terrestrial network.
    Terrestrial,
    /// A satellite link, or a part of one.
    Space,
}

/// A connection of two sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// The indices of the sites. The forward direction is from the first.
    pub ends: [usize; 2],
    /// Its medium.
    pub medium: Medium,
    /// Its link.
    pub config: LinkConfig,
}

/// A network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Its sites.
    pub sites: Vec<Site>,
    /// Its connections.
    pub wires: Vec<Wire>,
}

impl Plan {
    /// Two users, and between them two earth stations (figure 1). The satellite link's forward
    /// direction is from the station of user 1 to that of user 2.
    pub fn point_to_point(terrestrial: &LinkConfig, space: &LinkConfig) -> Self {
        Self::several_hops(terrestrial, space, 1)
    }

    /// Two users, and between them several satellite hops, each with two earth stations of its
    /// own (note 1 to figure 1).
    ///
    /// # Panics
    /// If `hops` is zero.
    pub fn several_hops(terrestrial: &LinkConfig, space: &LinkConfig, hops: usize) -> Self {
        assert!(hops > 0, "at least one hop");
        let mut plan = Self::default();
        let mut last = plan.site("user-1", Role::User);
        for hop in 1..=hops {
            let near = plan.site(&format!("station-{}", 2 * hop - 1), Role::Station);
            let far = plan.site(&format!("station-{}", 2 * hop), Role::Station);
            plan.wire([last, near], Medium::Terrestrial, terrestrial);
            plan.wire([near, far], Medium::Space, space);
            last = far;
        }
        let user = plan.site("user-2", Role::User);
        plan.wire([last, user], Medium::Terrestrial, terrestrial);
        plan
    }

    /// A server and a hub, and users at remote stations (figure 2). The hub's traffic takes
    /// `space`'s forward direction, one channel for all remotes; each remote has a return channel
    /// of its own. A process that both directions of `space` share runs independently on each of
    /// these; outages are the same on all.
    ///
    /// # Panics
    /// If `remotes` is zero.
    pub fn star(terrestrial: &LinkConfig, space: &LinkConfig, remotes: usize) -> Self {
        assert!(remotes > 0, "at least one remote station");
        let mut plan = Self::default();
        let server = plan.site("server", Role::User);
        let hub = plan.site("hub", Role::Station);
        let satellite = plan.site("satellite", Role::Satellite);
        let free = DirectionConfig::default;
        let outbound = LinkConfig { return_: free(), ..space.clone() };
        let inbound = LinkConfig { forward: free(), ..space.clone() };
        plan.wire([server, hub], Medium::Terrestrial, terrestrial);
        plan.wire([hub, satellite], Medium::Space, &outbound);
        for remote in 1..=remotes {
            let station = plan.site(&format!("remote-{remote}"), Role::Station);
            let user = plan.site(&format!("user-{remote}"), Role::User);
            plan.wire([satellite, station], Medium::Space, &inbound);
            plan.wire([station, user], Medium::Terrestrial, terrestrial);
        }
        plan
    }

    /// Earth stations of which any two are connected by a satellite link, each with a user (figure
    /// 3).
    ///
    /// # Panics
    /// With fewer than two stations.
    pub fn mesh(terrestrial: &LinkConfig, space: &LinkConfig, stations: usize) -> Self {
        assert!(stations > 1, "at least two stations");
        let mut plan = Self::default();
        let all: Vec<usize> = (1..=stations)
            .map(|number| {
                let station = plan.site(&format!("station-{number}"), Role::Station);
                let user = plan.site(&format!("user-{number}"), Role::User);
                plan.wire([station, user], Medium::Terrestrial, terrestrial);
                station
            })
            .collect();
        for (index, &one) in all.iter().enumerate() {
            for &other in &all[index + 1..] {
                plan.wire([one, other], Medium::Space, space);
            }
        }
        plan
    }

    fn site(&mut self, name: &str, role: Role) -> usize {
        self.sites.push(Site { name: name.to_string(), role });
        self.sites.len() - 1
    }

    fn wire(&mut self, ends: [usize; 2], medium: Medium, config: &LinkConfig) {
        self.wires.push(Wire { ends, medium, config: config.clone() });
    }

    /// The index of the site of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|site| site.name == name)
    }

    /// The indices of the sites with this role, in order.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = usize> {
        let all = self.sites.iter().enumerate();
        all.filter(move |(_, site)| site.role == role).map(|(place, _)| place)
    }

    /// The wires of a shortest path; of equal ones that with the first wire in the plan. Paths do
    /// not lead through users. Empty if there is no path or `from` equals `to`.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let mut came: Vec<Option<usize>> = vec![None; self.sites.len()];
        let mut reached = VecDeque::from([from]);
        while let Some(site) = reached.pop_front() {
            if site != from && self.sites[site].role == Role::User {
                continue;
            }
            for (place, wire) in self.wires.iter().enumerate() {
                if let Some(next) = wire.other(site)
                    && next != from
                    && came[next].is_none()
                {
                    came[next] = Some(place);
                    reached.push_back(next);
                }
            }
        }
        let (mut way, mut site) = (Vec::new(), to);
        while let Some(place) = came[site] {
            way.push(place);
            site = self.wires[place].other(site).unwrap_or(from);
        }
        way.reverse();
        way
    }

    /// The sites to which ways from `station` begin in the terrestrial network.
    pub fn ashore(&self, station: usize) -> Vec<usize> {
        let begins = |&site: &usize| {
            let first = self.way(station, site).first().copied();
            first.is_some_and(|wire| self.wires[wire].medium == Medium::Terrestrial)
        };
        (0..self.sites.len()).filter(begins).collect()
    }
}

impl Wire {
    /// The other end, seen from `site`.
    pub fn other(&self, site: usize) -> Option<usize> {
        let [one, other] = self.ends;
        match site {
            _ if site == one => Some(other),
            _ if site == other => Some(one),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> [LinkConfig; 2] {
        ["both rate 100mbit", "profile geo"].map(|words| crate::words::parse_link(words).unwrap())
    }

    fn hops(plan: &Plan, from: &str, to: &str) -> (usize, usize) {
        let way = plan.way(plan.find(from).unwrap(), plan.find(to).unwrap());
        let space = way.iter().filter(|&&wire| plan.wires[wire].medium == Medium::Space).count();
        (way.len(), space)
    }

    #[test]
    fn each_model_has_the_ways_of_its_figure() {
        let [lan, space] = links();
        let plan = Plan::point_to_point(&lan, &space);
        assert_eq!((plan.sites.len(), hops(&plan, "user-1", "user-2")), (4, (3, 1)));
        let plan = Plan::several_hops(&lan, &space, 3);
        assert_eq!((plan.sites.len(), hops(&plan, "user-2", "user-1")), (8, (7, 3)));
        let plan = Plan::star(&lan, &space, 5);
        assert_eq!((plan.sites.len(), plan.wires.len()), (13, 12));
        assert_eq!(hops(&plan, "server", "user-5"), (4, 2));
        assert_eq!(hops(&plan, "user-1", "user-2"), (4, 2), "by the satellite");
        let plan = Plan::mesh(&lan, &space, 4);
        assert_eq!((plan.sites.len(), plan.wires.len()), (8, 4 + 6));
        for (one, other) in [("user-1", "user-4"), ("user-3", "user-2")] {
            assert_eq!(hops(&plan, one, other), (3, 1), "any two directly");
        }
        assert_eq!(plan.way(0, 0), []);
    }

    #[test]
    fn a_star_s_outbound_is_one_channel_and_its_inbounds_are_many() {
        let [lan, space] = links();
        let plan = Plan::star(&lan, &space, 2);
        let through = |from: &str, to: &str, forward: bool| {
            let way = plan.way(plan.find(from).unwrap(), plan.find(to).unwrap());
            let space = way.into_iter().filter(|&wire| plan.wires[wire].medium == Medium::Space);
            let of = |wire: usize| {
                let config = &plan.wires[wire].config;
                (wire, if forward { config.forward.clone() } else { config.return_.clone() })
            };
            space.map(of).filter(|(_, config)| config.rate.is_some()).collect::<Vec<_>>()
        };
        let (down, up) = (through("server", "user-1", true), through("user-1", "server", false));
        assert_eq!((down.len(), &down[0].1), (1, &space.forward));
        assert_eq!((up.len(), &up[0].1), (1, &space.return_));
        assert_eq!(down[0].0, through("server", "user-2", true)[0].0);
        assert_ne!(up[0].0, through("user-2", "server", false)[0].0);
    }

    #[test]
    fn sites_ashore_of_a_station() {
        let [lan, space] = links();
        let plan = Plan::several_hops(&lan, &space, 2);
        let names = |station: &str| -> Vec<&str> {
            let sites = plan.ashore(plan.find(station).unwrap());
            sites.into_iter().map(|site| plan.sites[site].name.as_str()).collect()
        };
        assert_eq!(names("station-1"), ["user-1"]);
        assert_eq!(names("station-2"), ["station-3", "station-4", "user-2"]);
        assert_eq!(names("station-3"), ["user-1", "station-1", "station-2"]);
        let plan = Plan::mesh(&lan, &space, 3);
        assert_eq!(plan.ashore(plan.find("station-2").unwrap()), [plan.find("user-2").unwrap()]);
    }
}
