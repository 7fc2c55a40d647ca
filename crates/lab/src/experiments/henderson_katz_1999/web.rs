//! Sequential web requests and replies: the measured column of table I, table II, and the text's
//! claims about low-rate return channels.

use super::super::network::direction;
use super::super::{Draw, Values};
use satlink::{Direction, LinkConfig};
use sim::Network;
use sim::host::{Host, Tcp, TcpId, Xstp, XstpStream};
use sim::network::{Address, LinkId, Node, NodeId};
use sim::traffic::{Client, ClientClose, ConnectionPlan, Exchange, Server, mah};
use simtcp::{InitialWindow, Opening, TcpConfig};
use units::{BitRate, Instant, Span};
use xstp::session::SessionConfig;

/// The transport of the transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// TCP, T/TCP or either with 4KSS.
    Tcp(super::latency::Way),
    Stp,
}

/// Parameters of a series of transfers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Web {
    pub(super) way: Way,
    pub(super) round_trip: f64,
    /// Octets of a segment, including 40 of headers.
    pub(super) segment: u64,
    /// Bit/s of the return channel.
    pub(super) back_bps: u64,
    /// Whether replies over 100 segments are excluded.
    pub(super) culled: bool,
    /// Whether the sizes of requests are drawn from the traces; otherwise each has [`SMALL`] octets.
    pub(super) drawn_requests: bool,
}

/// Octets of the "small request" of section V.B, which fits into the smallest segment: the median of
/// the traces.
const SMALL: u64 = 238;

/// Transfers per replication; twenty replications make the paper's 1,000.
const TRANSFERS: u64 = 50;
/// Interval between transfers: the longest reply takes 50 s plus its random start.
const APART: Span = Span::from_secs(200);
/// Initial transfers, which establish the hosts' path state and do not count.
const WARM: u64 = 1;

impl Web {
    pub(super) fn key(&self) -> String {
        let way = match self.way {
            Way::Tcp(way) => way.name(),
            Way::Stp => "STP",
        };
        let culled = if self.culled { "culled" } else { "all" };
        let drawn = if self.drawn_requests { "/drawn requests" } else { "" };
        let Self { round_trip, segment, back_bps, .. } = self;
        format!("{way}/{round_trip} s/{segment}/{back_bps} bit/s/{culled}{drawn}")
    }

    fn plans(&self, draw: &Draw) -> Vec<ConnectionPlan> {
        let mut rng = units::RngStream::new(draw.seed, draw.run, "henderson-katz/web");
        let most = if self.culled { 100 * (self.segment - 40) } else { u64::MAX };
        let mut plans = Vec::new();
        while (plans.len() as u64) < TRANSFERS + WARM {
            let drawn = mah::draw(mah::Size::PrimaryRequest, &mut rng);
            let request = if self.drawn_requests { drawn } else { SMALL };
            let response = mah::draw(mah::Size::PrimaryReply, &mut rng);
            if response > most {
                continue;
            }
            // A random phase relative to timers of 200 and 500 ms.
            let start = APART * plans.len() as u64 + Span::from_secs_f64(rng.uniform());
            let exchange = Exchange { request, response };
            plans.push(ConnectionPlan::single(Instant::ZERO + start, exchange));
        }
        plans
    }

    /// Returns mean latency and packets per transfer.
    pub(super) fn run(&self, draw: &Draw) -> Result<Values, String> {
        let mut net = Network::new(draw.seed, draw.run);
        match self.way {
            Way::Tcp(way) => {
                let config = self.tcp(way);
                let server = net.host_with(|node| {
                    let server = Server::<TcpId>::new().closing();
                    Host::new(Tcp::server(node, &config, PORT), server)
                });
                let client = net.host_with(|node| {
                    let to = Address::new(server, PORT);
                    let ends = if way.transactions {
                        ClientClose::WithRequests
                    } else {
                        ClientClose::AfterResponses
                    };
                    let client = Client::<TcpId>::new(self.plans(draw)).ending(ends);
                    Host::new(Tcp::client(node, &config, to), client)
                });
                self.measure::<Host<Tcp, Client<TcpId>>, TcpId>(net, [server, client], |host| {
                    &host.application
                })
            }
            Way::Stp => {
                let config = self.stp();
                let server = net.host_with(|node| {
                    let server = Server::<XstpStream>::new().closing();
                    Host::new(Xstp::server(node, &config, PORT), server)
                });
                let client = net.host_with(|node| {
                    let to = Address::new(server, PORT);
                    // One END releases both directions, as in SSCOP.
                    let client =
                        Client::<XstpStream>::new(self.plans(draw)).ending(ClientClose::Never);
                    Host::new(Xstp::client(node, &config, to), client)
                });
                self.measure::<Host<Xstp, Client<XstpStream>>, XstpStream>(
                    net,
                    [server, client],
                    |host| &host.application,
                )
            }
        }
    }

    fn measure<H: Node, I: Copy + Ord>(
        &self,
        mut net: Network,
        [server, client]: [NodeId; 2],
        seen: fn(&H) -> &Client<I>,
    ) -> Result<Values, String> {
        let link = net.link(server, client, &self.link());
        net.run_until(Instant::ZERO + APART * WARM);
        let before = packets(&net, link);
        net.run_until(Instant::ZERO + APART * (TRANSFERS + WARM));
        let all = seen(net.node::<H>(client)).exchanged();
        let counted: Vec<_> = all.iter().skip(WARM as usize).collect();
        if counted.len() as u64 != TRANSFERS {
            return Err(format!("{} of {TRANSFERS} transfers began", counted.len()));
        }
        let latency = |exchanged: &&sim::traffic::Exchanged| {
            exchanged.done.map_or(APART, |done| done.since(exchanged.asked)).as_secs_f64()
        };
        let mut latencies: Vec<f64> = counted.iter().map(latency).collect();
        let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
        latencies.sort_by(f64::total_cmp);
        let packets = (packets(&net, link) - before) as f64 / TRANSFERS as f64;
        Ok(Values::new()
            .with("latency_s", mean)
            .with("median_s", latencies[latencies.len() / 2])
            .with("packets", packets))
    }

    /// Returns the TCP of these transfers.
    pub(super) fn tcp(&self, way: super::latency::Way) -> TcpConfig {
        let base = TcpConfig::sack_new_reno().of_1999();
        TcpConfig {
            max_segment: (self.segment - 40) as u16,
            opening: if way.transactions { Opening::Transaction } else { base.opening },
            initial_window: match way.large_start {
                true => InitialWindow::Rfc3390,
                false => InitialWindow::Segments(1),
            },
            // The kernel acknowledges before the browser or server runs.
            answers_first: true,
            ..base
        }
    }

    fn stp(&self) -> SessionConfig {
        let mut config = SessionConfig::stp_1999();
        let payload = (self.segment - 40) as usize;
        config.max_segment = payload + (config.max_segment - config.payload_size());
        // The open sessions send no keep-alive until the last transfer is over.
        config.keep_alive = APART * (TRANSFERS + WARM + 1);
        config.no_response = None;
        config
    }

    fn link(&self) -> LinkConfig {
        let delay = Span::from_secs_f64(self.round_trip / 2.0);
        let way = |bps| direction(BitRate::from_bps(bps), delay);
        LinkConfig { return_: way(self.back_bps), ..LinkConfig::symmetric(way(RATE)) }
    }
}

const PORT: u16 = 80;
const RATE: u64 = 1_300_000;

fn packets(net: &Network, link: LinkId) -> u64 {
    let sent = |way| net.line(link).counters(way).sent.packets;
    Direction::BOTH.map(sent).iter().sum()
}

/// Returns table I's transfers, without exclusions.
pub(super) fn table_1(way: super::latency::Way, round_trip: f64, segment: u64) -> Web {
    let (way, back_bps) = (Way::Tcp(way), RATE);
    Web { way, round_trip, segment, back_bps, culled: false, drawn_requests: false }
}

/// Returns the same without replies over 100 segments.
pub(super) fn table_1_culled(way: super::latency::Way, round_trip: f64, segment: u64) -> Web {
    Web { culled: true, ..table_1(way, round_trip, segment) }
}

/// Returns the same with requests of the traces' sizes.
pub(super) fn table_1_drawn(way: super::latency::Way, round_trip: f64, segment: u64) -> Web {
    Web { drawn_requests: true, ..table_1(way, round_trip, segment) }
}

/// Returns table II's transfers: 600 ms, without replies over 100 segments.
pub(super) fn table_2(way: Way) -> Web {
    let (round_trip, segment, back_bps) = (0.6, 1_500, RATE);
    Web { way, round_trip, segment, back_bps, culled: true, drawn_requests: false }
}

/// Returns the transfers over a return channel of 1 kbit/s.
pub(super) fn narrow(way: Way) -> Web {
    Web { back_bps: 1_000, ..table_2(way) }
}

pub(super) fn all() -> Vec<Web> {
    use super::latency::{ORBITS, SEGMENTS, Way as Reckoned};
    let mut all = Vec::new();
    for (_, round_trip) in ORBITS {
        for segment in SEGMENTS {
            all.extend(Reckoned::ALL.map(|way| table_1(way, round_trip, segment)));
            all.extend(Reckoned::ALL.map(|way| table_1_culled(way, round_trip, segment)));
            all.extend(Reckoned::ALL.map(|way| table_1_drawn(way, round_trip, segment)));
        }
    }
    let [tcp, transactions, ..] = Reckoned::ALL.map(Way::Tcp);
    // TCP and T/TCP of table II are among the culled ones.
    debug_assert!(all.contains(&table_2(tcp)) && all.contains(&table_2(transactions)));
    all.push(table_2(Way::Stp));
    all.extend([tcp, Way::Stp].map(narrow));
    all
}
