//! Random clients with their servers, and hostile clients.

use super::site::{client_address, server_address};
use crate::simulation::net::{Answer, Record};
use crate::simulation::task::{ClientKind, Ending, Plan, Reading, Task};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use units::{Instant, RngStream, Span};

/// Clients share a server that never accepts, so that the failure of one connection is stored when
/// the next client connects.
const SHARED: u8 = 200;
/// First of the additional addresses of a server's name.
const OTHERS: u8 = 240;
/// Maximum number of additional addresses. All are tried within `limits.connect`, although each
/// attempt without a response delays the next one.
const MAX_OTHERS: u64 = 4;
/// Probability that a client, a server or a link uses IPv6.
pub(super) const IPV6: f64 = 0.3;

/// Generator of clients.
pub(super) struct Clients<'a> {
    pub(super) rng: &'a mut RngStream,
    /// Selects addresses and their families.
    pub(super) addresses: RngStream,
    /// Number of gateways with clients.
    pub(super) terminals: usize,
    /// Whether all connections are intercepted.
    pub(super) intercepted: bool,
    /// Mean number of octets of a connection in each direction.
    pub(super) mean_octets: u64,
    pub(super) names: BTreeMap<String, Record>,
    /// Addresses of names at which no server accepts, with the behaviour of the host there.
    pub(super) dead: BTreeMap<SocketAddr, Answer>,
    pub(super) tasks: Vec<(Task, Answer)>,
}

impl Clients<'_> {
    /// Adds a client that starts at `start`.
    pub(super) fn add(&mut self, start: Instant) {
        let number = self.tasks.len();
        let answer = self.answer();
        let server = self.server(number, answer);
        let node = self.rng.below(self.terminals as u64) as usize;
        let mut kind = self.kind(number, server);
        let [mut client, mut service] = [(); 2].map(|()| self.plan());
        // At mean_octets one side waits for the other; if both did, neither would send.
        match self.rng.below(4) {
            0 => client.answers = true,
            1 | 2 => service.answers = true,
            _ => {}
        }
        let hostile = self.rng.chance(0.12);
        if hostile {
            self.make_hostile(&mut kind, &mut client, &mut service);
        }
        let host = 1 + self.rng.below(5) as u8;
        let from = self.from(&kind, server, (node, host), number);
        let ends = (node, from, server);
        let task = Task::new((number, start), kind, ends, [client, service]);
        self.tasks.push((Task { hostile, ..task }, answer));
    }

    /// Adds `count` connections of one hostile client, which start one after the other from `start`
    /// on.
    pub(super) fn add_crowd(&mut self, start: Instant, attack: Attack, count: usize) {
        let node = self.rng.below(self.terminals as u64) as usize;
        // With addresses of both families it would count as two clients.
        let ipv6 = self.addresses.chance(IPV6);
        for place in 0..count {
            let number = self.tasks.len();
            let start = start + Span::from_millis(10) * place as u64;
            let (mut kind, answer, plans) = attack.connection(number);
            if self.intercepted {
                kind = match kind {
                    ClientKind::HalfOpen => ClientKind::HalfOpen,
                    _ => ClientKind::Intercepted,
                };
            }
            if let ClientKind::Socks(Some(name)) = &kind {
                // A name server that never responds.
                let record = Record { addresses: Vec::new(), after: Span::from_secs(3600) };
                self.names.insert(name.clone(), record);
            }
            let server = server_address(ipv6, 100, 2000 + number as u16);
            let host = 66 + (place % attack.addresses()) as u8;
            let from = client_address(ipv6, (node, host), 30_000 + number as u16);
            let task = Task::new((number, start), kind, (node, from, server), plans);
            self.tasks.push((Task { hostile: true, ..task }, answer));
        }
    }

    fn answer(&mut self) -> Answer {
        match self.rng.below(20) {
            0 | 1 => Answer::Refuse,
            2 => Answer::Discard,
            3 => Answer::Unreachable,
            _ => Answer::Accept,
        }
    }

    fn server(&mut self, number: usize, answer: Answer) -> SocketAddr {
        let ipv6 = self.addresses.chance(IPV6);
        if answer != Answer::Accept && self.rng.chance(0.5) {
            return server_address(ipv6, SHARED, 1 + answer as u16);
        }
        let host = 1 + self.rng.below(9) as u8;
        server_address(ipv6, host, 2000 + number as u16)
    }

    /// Returns the address of the client with this number, whose server is `server`.
    pub(super) fn from(
        &mut self,
        kind: &ClientKind,
        server: SocketAddr,
        host: (usize, u8),
        number: usize,
    ) -> SocketAddr {
        let ipv6 = match kind {
            ClientKind::Intercepted | ClientKind::HalfOpen => server.is_ipv6(),
            // A proxy's client may request a server of the other address family.
            ClientKind::Socks(_)
            | ClientKind::Connect
            | ClientKind::Silent
            | ClientKind::Malformed => self.addresses.chance(IPV6),
        };
        client_address(ipv6, host, 30_000 + number as u16)
    }

    /// Returns the addresses of a name whose server is at `server`: at some of them connections
    /// time out, are refused, or have no route.
    fn with_others(&mut self, server: SocketAddr) -> Vec<IpAddr> {
        let mut all = vec![server.ip()];
        if self.addresses.chance(0.5) {
            return all;
        }
        for place in 0..1 + self.addresses.below(MAX_OTHERS) as u8 {
            let answer = match self.addresses.below(3) {
                0 => Answer::Refuse,
                1 => Answer::Unreachable,
                _ => Answer::Discard,
            };
            let ipv6 = self.addresses.chance(0.5);
            let other = server_address(ipv6, OTHERS + place, server.port());
            self.dead.insert(other, answer);
            all.insert(self.addresses.below(all.len() as u64 + 1) as usize, other.ip());
        }
        all
    }

    fn kind(&mut self, number: usize, server: SocketAddr) -> ClientKind {
        match self.rng.below(10) {
            0..=2 => return ClientKind::Intercepted,
            _ if self.intercepted => return ClientKind::Intercepted,
            3 | 4 => return ClientKind::Connect,
            _ => {}
        }
        if !self.rng.chance(0.4) {
            return ClientKind::Socks(None);
        }
        let name = format!("s{number}.test");
        let has_address = self.rng.chance(0.85);
        let addresses = if has_address { self.with_others(server) } else { Vec::new() };
        // The lookup is given up long before a name server that takes this time responds.
        let never = addresses.is_empty() && self.rng.chance(0.5);
        let millis = if never { 3_600_000 } else { 1 << self.rng.below(12) };
        self.names.insert(name.clone(), Record { addresses, after: Span::from_millis(millis) });
        ClientKind::Socks(Some(name))
    }

    fn plan(&mut self) -> Plan {
        let bytes = match self.rng.below(6) {
            0 => 0,
            1 => 1 + self.rng.below(20),
            _ => self.rng.below(self.mean_octets.max(1) * 2),
        };
        let ending = match self.rng.below(12) {
            0 => Ending::Reset,
            1 => Ending::Close,
            _ => Ending::Fin,
        };
        let reading = match self.rng.below(10) {
            0 => Reading::Slowly(500 << self.rng.below(6)),
            _ => Reading::All,
        };
        Plan { bytes, ending, reading, answers: false }
    }

    fn make_hostile(&mut self, kind: &mut ClientKind, client: &mut Plan, service: &mut Plan) {
        match self.rng.below(6) {
            0 if !self.intercepted => *kind = ClientKind::Silent,
            1 if !self.intercepted => *kind = ClientKind::Malformed,
            2 => *kind = ClientKind::HalfOpen,
            3 => {
                client.reading = Reading::Never;
                service.bytes = 300_000;
                client.ending = Ending::Reset;
                client.answers = false;
            }
            4 => client.ending = Ending::Vanish,
            _ => service.ending = Ending::Vanish,
        }
    }
}

/// The behaviour of all connections of a hostile client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Attack {
    /// Downloads that it does not read.
    StalledReaders,
    /// Uploads to servers that do not read.
    TarpitServers,
    /// Names whose name servers do not respond.
    DeadNames,
    /// Servers behind a filter that discards SYNs.
    DeadServers,
    /// Connections that stay idle.
    Hoarding,
    /// Connections that are closed immediately after they open.
    Churn,
    /// SYNs without a completed handshake.
    HalfOpen,
    /// Proxy clients that send no request.
    Silence,
    /// Downloads at full speed.
    Greed,
}

pub(in crate::simulation) const ATTACKS: [Attack; 9] = [
    Attack::StalledReaders,
    Attack::TarpitServers,
    Attack::DeadNames,
    Attack::DeadServers,
    Attack::Hoarding,
    Attack::Churn,
    Attack::HalfOpen,
    Attack::Silence,
    Attack::Greed,
];

impl Attack {
    /// Returns the number of its addresses: one address cannot fill a table of connections.
    const fn addresses(self) -> usize {
        match self {
            Self::Hoarding => 32,
            _ => 1,
        }
    }

    /// Returns the kind, server and plans of connection `number`.
    fn connection(self, number: usize) -> (ClientKind, Answer, [Plan; 2]) {
        let plan = |bytes, ending, reading| Plan { bytes, ending, reading, answers: false };
        let idle = plan(0, Ending::Never, Reading::All);
        let socks = ClientKind::Socks(None);
        let named = ClientKind::Socks(Some(format!("s{number}.dead")));
        match self {
            Self::StalledReaders => {
                let plans = [plan(0, Ending::Never, Reading::Never), bulk()];
                (socks, Answer::Accept, plans)
            }
            Self::TarpitServers => {
                let plans = [bulk(), plan(0, Ending::Never, Reading::Never)];
                (socks, Answer::Accept, plans)
            }
            Self::Greed => (socks, Answer::Accept, [idle, bulk()]),
            Self::DeadNames => (named, Answer::Accept, [idle; 2]),
            Self::DeadServers => (socks, Answer::Discard, [idle; 2]),
            Self::Hoarding => (socks, Answer::Accept, [idle; 2]),
            Self::Churn => {
                let brief = plan(0, Ending::Fin, Reading::All);
                (ClientKind::Intercepted, Answer::Accept, [brief; 2])
            }
            Self::HalfOpen => (ClientKind::HalfOpen, Answer::Accept, [idle; 2]),
            Self::Silence => (ClientKind::Silent, Answer::Accept, [idle; 2]),
        }
    }
}

/// More than a link can transfer for one connection of many. A direct connection transfers it in
/// negligible time.
fn bulk() -> Plan {
    Plan { bytes: 1 << 23, ending: Ending::Never, reading: Reading::All, answers: false }
}
