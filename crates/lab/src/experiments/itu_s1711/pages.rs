//! Annex 3, section 5: five web pages by three ways of HTTP over 155 Mbit/s and 540 ms.

use super::super::{Draw, Values};
use satlink::{Direction, DirectionConfig, LinkConfig};
use sim::Network;
use sim::host::{Host, Tcp, TcpId};
use sim::network::Address;
use sim::traffic::{Client, ConnectionPlan, Exchanged, Http, Order, S1711_PAGES, Server, WebPage};
use simtcp::{DelayedAck, InitialWindow, TcpConfig};
use units::{BitRate, Instant, Span};

/// The ways, with what fetched pages that way.
pub(super) const WAYS: [(&str, Http); 4] = [
    ("HTTP/1.0", Http::PerElement { at_once: 4 }),
    ("serial", Http::Serial),
    ("pipelined", Http::Pipelined),
    ("keep-alive", Http::KeepAlive { connections: 4 }),
];

/// What is not given, and varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The parameters that cells are compared with.
    Taken,
    /// All elements of a page are of one size.
    Even,
    /// Both ends acknowledge by twos, after 16 segments.
    ByTwos,
    /// They acknowledge each segment.
    Each,
    /// Webbot holds no requests back.
    Prompt,
    /// Its requests are as large as a browser's.
    LargeRequests,
    /// Requests that are pipelined wait until all of the page's own file is there.
    AfterBase,
    /// Two segments at the start, as before Linux 2.4, and not three.
    SmallerStart,
    /// With HTTP/1.0 as many elements as table 21 has, and not as many as table 22 counts
    /// connections.
    AsListed,
    /// Programs take no time, so that acknowledgements ride on what they send.
    AtOnce,
    /// Server and browser take 80 ms more for each element.
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

/// A page, fetched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetch {
    pub(super) page: WebPage,
    pub(super) way: (&'static str, Http),
    pub(super) variant: Variant,
}

/// Connections that table 22 counts for HTTP/1.0, of the pages in their order.
const COUNTED: [u64; 5] = [41, 22, 34, 14, 8];
/// Bytes of a browser's request, of Webbot's (Nielsen and others, "Network performance effects of
/// HTTP/1.1, CSS1, and PNG", SIGCOMM 1997, measured its library's), and of the head before an
/// element's bytes.
const REQUEST: u64 = 300;
const WEBBOT: u64 = 190;
const HEAD: u64 = 280;
const PORT: u16 = 80;
/// How long Webbot's library gathers requests before it sends them (libwww, `HTHost.c`).
const GATHERS: Span = Span::from_millis(30);
/// What a program takes before it answers, asks or ends: enough for an acknowledgement to go first.
const PROGRAM: Span = Span::from_millis(1);
/// Draws of the elements' sizes.
pub(super) const DRAWS: u32 = 20;

/// Linux 2.4 acknowledges each segment as long as the window that it tells grows, by two segments
/// for each that comes, and 10 Mbytes take longer than any of these pages; but where it answers,
/// acknowledgements wait for the answer, or by twos for 40 ms, after which it is as before
/// (`tcp_grow_window`, `tcp_event_data_sent` and `tcp_delack_timer`).
const LINUX: DelayedAck = DelayedAck {
    after: Span::from_millis(40),
    at_once: u32::MAX,
    with_answers: true,
    ..DelayedAck::USUAL
};
/// The same if the window were full after 16 segments.
const BY_TWOS: DelayedAck = DelayedAck { at_once: 16, with_answers: false, ..LINUX };

impl Fetch {
    /// The name of a point.
    pub(super) fn key(&self) -> String {
        format!("{}/{}/{}", self.page.name, self.way.0, self.variant.name())
    }

    /// How often it is run at most.
    pub(super) fn often(&self) -> u32 {
        if self.variant == Variant::Even { 1 } else { DRAWS }
    }

    /// The TCP of both ends.
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

    /// Fetches it: seconds until the last byte, packets both ways, connections.
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
    LinkConfig::symmetric(DirectionConfig {
        rate: Some(BitRate::from_mbps(155)),
        delay: Span::from_millis(540) / 2,
        ..DirectionConfig::default()
    })
}

const PATIENCE: Span = Span::from_secs(120);

/// Time of servers and browsers that is tried, for each element.
const SLOWER: Span = Span::from_millis(80);

/// All of them.
pub(super) fn all() -> Vec<Fetch> {
    let mut all = Vec::new();
    for page in S1711_PAGES {
        for way in WAYS {
            all.extend(Variant::ALL.map(|variant| Fetch { page, way, variant }));
        }
    }
    all
}
