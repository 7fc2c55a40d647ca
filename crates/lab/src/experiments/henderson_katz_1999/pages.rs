//! Whole pages by the ways of section V.B: a connection for each object, persistent connections,
//! and several at once.

use super::super::network::direction;
use super::super::{Draw, Values};
use super::latency;
use super::web;
use satlink::{Direction, LinkConfig};
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::Address;
use sim::traffic::{Client, ClientClose, ConnectionPlan, Exchanged, Http, Server, Start, mah};
use units::{BitRate, Instant, RngStream, Span};

/// A way to fetch a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pages {
    /// Index in [`WAYS`].
    pub(super) way: usize,
    /// Round trip in seconds.
    pub(super) round_trip: f64,
    /// Octets of a segment, including 40 of headers.
    pub(super) segment: u64,
}

/// Ways to fetch a page: name, HTTP, and T/TCP in place of TCP.
pub(super) const WAYS: [(&str, Http, bool); 5] = [
    ("TCP, four connections at a time, one for each object", FOUR, false),
    ("T/TCP, four connections at a time, one for each object", FOUR, true),
    ("P-HTTP, one connection, objects pipelined", Http::Pipelined, false),
    ("P-HTTP, one connection, object by object", Http::Serial, false),
    ("P-HTTP, four connections", Http::KeepAlive { connections: 4 }, false),
];
pub(super) const TCP: usize = 0;
pub(super) const TRANSACTIONS: usize = 1;
pub(super) const PIPELINED: usize = 2;
pub(super) const SERIAL: usize = 3;
pub(super) const STRIPED: usize = 4;
/// Four connections, as in many browsers of the time (section V.B).
const FOUR: Http = Http::PerElement { at_once: 4 };

/// Octets of a request, the median of the traces.
const REQUEST: u64 = 238;
/// Pages per replication.
const PAGES: usize = 20;
/// Interval between pages.
const APART: Span = Span::from_secs(300);
const PORT: u16 = 80;
const RATE: BitRate = BitRate::from_kbps(1_300);

impl Pages {
    pub(super) fn key(&self) -> String {
        format!("{}/{} s/{}", WAYS[self.way].0, self.round_trip, self.segment)
    }

    /// Whether cells stand on it, which needs more replications: pages of the traces have one file or
    /// dozens.
    pub(super) fn is_judged(&self) -> bool {
        (self.round_trip, self.segment) == (latency::ORBITS[0].1, latency::SEGMENTS[0])
    }

    /// Returns the connections, and the page of each; the first connection establishes the hosts'
    /// path state and belongs to no page.
    fn plans(&self, draw: &Draw) -> (Vec<ConnectionPlan>, Vec<Option<usize>>) {
        let mut rng = RngStream::new(draw.seed, draw.run, "henderson-katz/pages");
        let mut plans = vec![ConnectionPlan::download(Instant::ZERO, 1_000)];
        let mut pages = vec![None];
        for page in 0..PAGES {
            let files = mah::draw(mah::Size::Files, &mut rng).max(1);
            let kind = |file| match file {
                0 => mah::Size::PrimaryReply,
                _ => mah::Size::SecondaryReply,
            };
            let sizes: Vec<u64> = (0..files).map(|file| mah::draw(kind(file), &mut rng)).collect();
            let start = APART * (page as u64 + 1) + Span::from_secs_f64(rng.uniform());
            let first = plans.len();
            for plan in WAYS[self.way].1.plans(Instant::ZERO + start, &sizes, REQUEST) {
                let start = match plan.start {
                    Start::At(at) => Start::At(at),
                    Start::AfterFirstOf(after) => Start::AfterFirstOf(first + after),
                    Start::InTurn { after, at_once } => {
                        Start::InTurn { after: first + after, at_once }
                    }
                };
                plans.push(ConnectionPlan { start, ..plan });
                pages.push(Some(page));
            }
        }
        (plans, pages)
    }

    /// Returns the mean time until the last octet of a page, and packets per page.
    pub(super) fn run(&self, draw: &Draw) -> Result<Values, String> {
        let (_, http, transactions) = WAYS[self.way];
        let way = latency::Way { transactions, large_start: false };
        let config = web::table_1(way, self.round_trip, self.segment).tcp(way);
        let (plans, pages) = self.plans(draw);
        let mut net = Network::new(draw.seed, draw.run);
        let closes = matches!(http, Http::PerElement { .. });
        let server = net.host_with(|node| {
            let server = Server::<TcpId>::new();
            let server = if closes { server.closing() } else { server };
            Host::new(Tcp::server(node, &config, PORT), server)
        });
        let client = net.host_with(|node| {
            let ends =
                if transactions { ClientClose::WithRequests } else { ClientClose::AfterResponses };
            let client = Client::<TcpId>::new(plans).ending(ends);
            Host::new(Tcp::client(node, &config, Address::new(server, PORT)), client)
        });
        let delay = Span::from_secs_f64(self.round_trip / 2.0);
        let link = net.link(server, client, &LinkConfig::symmetric(direction(RATE, delay)));
        net.run_until(Instant::ZERO + APART * (PAGES as u64 + 1));
        let all = net.node::<Host<Tcp, Client<TcpId>>>(client).application.exchanged();
        let mut times = vec![(Instant::FAR_FUTURE, Instant::ZERO); PAGES];
        for Exchanged { connection, asked, done, .. } in all {
            let Some(page) = pages[*connection] else { continue };
            let done = done.ok_or_else(|| format!("page {page} is not complete"))?;
            times[page] = (times[page].0.min(*asked), times[page].1.max(done));
        }
        let seconds = times.iter().map(|(asked, done)| done.since(*asked).as_secs_f64());
        let sent = |way| net.line(link).counters(way).sent.packets;
        let packets: u64 = Direction::BOTH.map(sent).iter().sum();
        Ok(Values::new()
            .with("page_s", seconds.sum::<f64>() / PAGES as f64)
            .with("packets", packets as f64 / PAGES as f64))
    }
}

/// Returns all series of pages.
pub(super) fn all() -> impl Iterator<Item = Pages> {
    latency::ORBITS.into_iter().flat_map(|(_, round_trip)| {
        latency::SEGMENTS.into_iter().flat_map(move |segment| {
            (0..WAYS.len()).map(move |way| Pages { way, round_trip, segment })
        })
    })
}
