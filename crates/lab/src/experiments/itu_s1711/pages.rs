//! Annex 3, section 5: five web pages with three variants of HTTP over 155 Mbit/s and 540 ms.

use super::super::network::direction;
use super::super::{Draw, Values};
use satlink::{Direction, LinkConfig};
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::Address;
use sim::traffic::{Client, ConnectionPlan, Exchanged, Http, Order, S1711_PAGES, Server, WebPage};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

/// The variants of HTTP.
pub(super) const WAYS: [(&str, Http); 4] = [
    ("HTTP/1.0", Http::PerElement { at_once: 4 }),
    ("serial", Http::Serial),
    ("pipelined", Http::Pipelined),
    ("keep-alive", Http::KeepAlive { connections: 4 }),
];

/// Variations of unspecified parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The parameters of the cells.
    Taken,
    /// All elements of a page have the same size.
    Even,
    /// Both ends acknowledge every second segment after the first 16.
    ByTwos,
    /// Both ends acknowledge each segment.
    Each,
    /// Webbot does not delay requests.
    Prompt,
    /// Webbot's requests are as large as a browser's.
    LargeRequests,
    /// Pipelined requests wait until the page's own file is complete.
    AfterBase,
    /// The initial window is two segments, as before Linux 2.4, instead of three.
    SmallerStart,
    /// HTTP/1.0 fetches as many elements as table 21 lists, instead of as many connections as table
    /// 22 counts.
    AsListed,
    /// Programs respond immediately, so that acknowledgements are piggybacked on data.
    AtOnce,
    /// Server and browser need 80 ms more per element.
    Slower,
}

impl Variant {
    pub(super) const ALL: [Self; 11] = [
        Self::Taken,
        Self::Even,
        Self::ByTwos,
        Self::Each,
        Self::Prompt,
        Self::LargeRequests,
        Self::AfterBase,
        Self::SmallerStart,
        Self::AsListed,
        Self::AtOnce,
        Self::Slower,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Taken => "as taken",
            Self::Even => "even elements",
            Self::ByTwos => "acknowledged by twos",
            Self::Each => "each acknowledged",
            Self::Prompt => "no 30 ms",
            Self::LargeRequests => "requests of 300 bytes",
            Self::AfterBase => "requests after the page's file",
            Self::SmallerStart => "two segments at first",
            Self::AsListed => "elements of table 21",
            Self::AtOnce => "programs at once",
            Self::Slower => "80 ms for each element",
        }
    }
}

/// The retrieval of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) page: WebPage,
    pub(super) way: (&'static str, Http),
    pub(super) variant: Variant,
}

/// Connections of HTTP/1.0 in table 22, by page.
const COUNTED: [u64; 5] = [41, 22, 34, 14, 8];
/// Octets of a browser's request, of Webbot's (measured for its library by Nielsen and others,
/// "Network performance effects of HTTP/1.1, CSS1, and PNG", SIGCOMM 1997), and of the header of a
/// response.
const REQUEST: u64 = 300;
const WEBBOT: u64 = 190;
const HEAD: u64 = 280;
const PORT: u16 = 80;
/// Time for which Webbot's library collects requests before it sends them (libwww, `HTHost.c`).
const GATHERS: Span = Span::from_millis(30);
/// Reaction time of programs, long enough for a separate acknowledgement.
const PROGRAM: Span = Span::from_millis(1);
/// Replications, which draw the elements' sizes.
pub(super) const DRAWS: u32 = 20;

/// Linux 2.4 acknowledges each segment while the advertised window grows, by two segments per
/// received one; 10 Mbytes are more than any of these pages. Where the application responds,
/// acknowledgements wait for the response, or for 40 ms by twos, after which the first rule applies
/// again (`tcp_grow_window`, `tcp_event_data_sent` and `tcp_delack_timer`).
const LINUX: DelayedAck = DelayedAck {
    after: Span::from_millis(40),
    at_once: u32::MAX,
    with_answers: true,
    ..DelayedAck::USUAL
};
/// The same with a window that is full after 16 segments.
const BY_TWOS: DelayedAck = DelayedAck { at_once: 16, with_answers: false, ..LINUX };

impl Fetch {
    pub(super) fn key(&self) -> String {
        format!("{}/{}/{}", self.page.name, self.way.0, self.variant.name())
    }

    /// Returns the maximum number of replications.
    pub(super) fn often(&self) -> u32 {
        if self.variant == Variant::Even { 1 } else { DRAWS }
    }

    /// Returns the TCP of both ends.
    fn linux(&self) -> TcpConfig {
        let delayed_ack = match self.variant {
            Variant::ByTwos => BY_TWOS,
            Variant::Each => DelayedAck::OFF,
            Variant::Taken
            | Variant::Even
            | Variant::Prompt
            | Variant::LargeRequests
            | Variant::AfterBase
            | Variant::SmallerStart
            | Variant::AsListed
            | Variant::AtOnce
            | Variant::Slower => LINUX,
        };
        let segments = if self.variant == Variant::SmallerStart { 2 } else { 3 };
        TcpConfig {
            initial_window: InitialWindow::Segments(segments),
            delayed_ack,
            timestamps: Some(Span::from_millis(10)),
            send_buffer: 10 << 20,
            receive_buffer: 10 << 20,
            ..TcpConfig::sack()
        }
    }

    fn program(&self) -> Span {
        if self.variant == Variant::AtOnce { Span::ZERO } else { PROGRAM }
    }

    fn is_http_1_0(&self) -> bool {
        matches!(self.way.1, Http::PerElement { .. })
    }

    fn elements(&self) -> u64 {
        let place = S1711_PAGES.iter().position(|page| page.name == self.page.name);
        let counted = place.map_or(self.page.elements, |place| COUNTED[place]);
        let listed = self.variant == Variant::AsListed || !self.is_http_1_0();
        if listed { self.page.elements } else { counted }
    }

    fn plans(&self, draw: &Draw) -> Vec<ConnectionPlan> {
        let mut rng = units::RngStream::new(draw.seed, draw.run, "itu-s1711/pages");
        let page = WebPage { elements: self.elements(), ..self.page };
        let mut sizes =
            if self.variant == Variant::Even { page.even() } else { page.drawn(&mut rng) };
        sizes.iter_mut().for_each(|size| *size += HEAD);
        let webbot = matches!(self.way.1, Http::Serial | Http::Pipelined);
        let small = webbot && self.variant != Variant::LargeRequests;
        let request = if small { WEBBOT } else { REQUEST };
        let mut plans = self.way.1.plans(Instant::ZERO, &sizes, request);
        let gathers =
            if webbot && self.variant != Variant::Prompt { GATHERS } else { self.program() };
        let slower = if self.variant == Variant::Slower { SLOWER } else { Span::ZERO };
        for plan in &mut plans {
            plan.held = gathers + slower;
            if self.variant == Variant::AfterBase && plan.order == Order::PipelinedAsNamed {
                plan.order = Order::PipelinedAfterFirst;
            }
        }
        plans
    }

    /// Runs the retrieval: seconds until the last octet, packets in both directions, connections.
    pub(super) fn run(&self, draw: &Draw) -> Result<Values, String> {
        let plans = self.plans(draw);
        let connections = plans.len();
        let (config, mut net) = (self.linux(), Network::new(draw.seed, draw.run));
        let answers = Server::<TcpId>::new().pausing(self.program());
        let answers = if self.is_http_1_0() { answers.closing() } else { answers };
        let server = net.host_with(|node| Host::new(Tcp::server(node, &config, PORT), answers));
        let client = net.host_with(|node| {
            let to = Address::new(server, PORT);
            Host::new(Tcp::client(node, &config, to), Client::<TcpId>::new(plans))
        });
        let link = net.link(server, client, &link());
        net.run_until(Instant::ZERO + PATIENCE);
        let seen = net.node::<Host<Tcp, Client<TcpId>>>(client).application.exchanged();
        if seen.len() as u64 != self.elements() {
            return Err(format!("{} of {} elements", seen.len(), self.elements()));
        }
        let at = |time: Option<Instant>| {
            time.map_or(PATIENCE, |time| time.since(Instant::ZERO)).min(PATIENCE).as_secs_f64()
        };
        let times = |of: fn(&Exchanged) -> Option<Instant>| seen.iter().map(move |one| at(of(one)));
        let (begun, done) = (times(|one| one.first_byte), times(|one| one.done));
        let (begun, done): (Vec<f64>, Vec<f64>) = (begun.collect(), done.collect());
        let sent = |way| net.line(link).counters(way).sent.packets;
        Ok(Values::new()
            .with("seconds", done.iter().copied().fold(0.0, f64::max))
            .with("packets", Direction::BOTH.map(sent).iter().sum::<u64>() as f64)
            .with("connections", connections as f64)
            .with("first_s", done[0] - begun[0])
            .with_series("done_s", done))
    }
}

fn link() -> LinkConfig {
    LinkConfig::symmetric(direction(BitRate::from_mbps(155), Span::from_millis(270)))
}

const PATIENCE: Span = Span::from_secs(120);

/// Additional time of servers and browsers per element.
const SLOWER: Span = Span::from_millis(80);

pub(super) fn all() -> Vec<Fetch> {
    let mut all = Vec::new();
    for page in S1711_PAGES {
        for way in WAYS {
            all.extend(Variant::ALL.map(|variant| Fetch { page, way, variant }));
        }
    }
    all
}
