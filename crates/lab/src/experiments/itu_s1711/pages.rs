//! Annex 3, section 5: five web pages by three ways of HTTP over 155 Mbit/s and 540 ms.

use super::super::{Draw, Values};
use satlink::{Direction, DirectionConfig, LinkConfig};
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::Address;
use sim::traffic::{Client, Http, S1711_PAGES, Server, WebPage};
use simtcp::{InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

/// The ways, with what fetched pages that way.
pub(super) const WAYS: [(&str, Http); 4] = [
    ("HTTP/1.0", Http::PerElement { at_once: 4 }),
    ("serial", Http::Serial),
    ("pipelined", Http::Pipelined),
    ("keep-alive", Http::KeepAlive { connections: 4 }),
];

/// Sizes of a page's elements, which are not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// All alike.
    Even,
    /// As in the traces of 1995.
    Drawn,
}

impl Sizes {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Drawn => "drawn",
        }
    }
}

/// A page, fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) page: WebPage,
    pub(super) way: (&'static str, Http),
    pub(super) sizes: Sizes,
    /// What a server takes for each answer, ms: as long as half of it is further away.
    pub(super) extra_ms: u64,
}

/// Bytes of a request.
const REQUEST: u64 = 300;
const PORT: u16 = 80;

impl Fetch {
    /// The name of a point.
    pub(super) fn key(&self) -> String {
        let Self { page, way, sizes, extra_ms } = self;
        format!("{}/{}/{}/{extra_ms}", page.name, way.0, sizes.name())
    }

    fn tcp() -> TcpConfig {
        TcpConfig {
            initial_window: InitialWindow::Segments(2),
            send_buffer: 10 << 20,
            receive_buffer: 10 << 20,
            ..TcpConfig::sack()
        }
    }

    /// Fetches it: seconds until the last byte, packets both ways, connections.
    pub(super) fn run(&self, draw: &Draw) -> Result<Values, String> {
        let mut rng = units::RngStream::new(draw.seed, draw.run, "itu-s1711/pages");
        let sizes = match self.sizes {
            Sizes::Even => self.page.even(),
            Sizes::Drawn => self.page.drawn(&mut rng),
        };
        let plans = self.way.1.plans(Instant::ZERO, &sizes, REQUEST);
        let connections = plans.len();
        let (config, mut net) = (Self::tcp(), Network::new(draw.seed, draw.run));
        let server = net
            .host_with(|node| Host::new(Tcp::server(node, &config, PORT), Server::<TcpId>::new()));
        let client = net.host_with(|node| {
            let to = Address::new(server, PORT);
            Host::new(Tcp::client(node, &config, to), Client::<TcpId>::new(plans))
        });
        let link = net.link(server, client, &self.link());
        net.run_until(Instant::ZERO + PATIENCE);
        let seen = net.node::<Host<Tcp, Client<TcpId>>>(client).application.exchanged();
        if seen.len() as u64 != self.page.elements {
            return Err(format!("{} of {} elements", seen.len(), self.page.elements));
        }
        let last = seen.iter().map(|one| one.done.unwrap_or(Instant::FAR_FUTURE)).max();
        let seconds = last.map_or(PATIENCE, |last| last.since(Instant::ZERO));
        let sent = |way| net.line(link).counters(way).sent.packets;
        Ok(Values::new()
            .with("seconds", seconds.min(PATIENCE).as_secs_f64())
            .with("packets", Direction::BOTH.map(sent).iter().sum::<u64>() as f64)
            .with("connections", connections as f64))
    }

    fn link(&self) -> LinkConfig {
        LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_mbps(155)),
            delay: Span::from_millis(540 + self.extra_ms) / 2,
            ..DirectionConfig::default()
        })
    }
}

const PATIENCE: Span = Span::from_secs(120);

/// Time of servers and browsers that is tried, ms for each round trip.
pub(super) const EXTRA: u64 = 80;

/// All of them.
pub(super) fn all() -> Vec<Fetch> {
    let mut all = Vec::new();
    for page in S1711_PAGES {
        for way in WAYS {
            for (sizes, extra_ms) in [(Sizes::Even, 0), (Sizes::Drawn, 0), (Sizes::Even, EXTRA)] {
                all.push(Fetch { page, way, sizes, extra_ms });
            }
        }
    }
    all
}
