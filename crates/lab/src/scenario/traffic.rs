//! Hosts of a scenario's traffic, and what is measured at them.

use super::file::{Http, Kind, Traffic};
use super::measures::{Found, bulk_measures, bulk_run, latencies, page_measures, pages};
use crate::LabError;
use crate::document::Document;
use sim::Network;
use sim::host::{BulkReceiver, BulkSender, EndToEnd, EndToEndId, Host};
use sim::network::{Address, NodeId};
use sim::traffic::{
    self, Browser, BrowsingModel, Client, ConnectionPlan, ConstantRate, ConstantSink,
    ConstantSource, Exchange, Server, WebLoad,
};
use std::rc::Rc;
use units::{Instant, Span};

type Read<T> = Rc<dyn Fn(&Network) -> T>;

/// The hosts of one traffic.
pub(super) struct Flow {
    /// The hosts with the names of their sites.
    pub(super) hosts: Vec<(NodeId, String)>,
    /// The measures that have a value at the end of the run.
    pub(super) measured: Read<Found>,
    /// Octets received so far.
    pub(super) received: Read<f64>,
    /// Senders of unlimited or single transfers.
    pub(super) senders: Vec<NodeId>,
}

/// Port of all servers.
const PORT: u16 = 80;
/// Pattern of bulk data.
const TAG: u64 = 7;
/// Octets of a request for an element of a page.
const PAGE_REQUEST: u64 = 300;
/// Octets of a request, a response and a datagram by default.
const REQUEST: u64 = 300;
const RESPONSE: u64 = 10_000;
const PACKET: u64 = 1_000;

pub(super) type Sender = Host<EndToEnd, BulkSender<EndToEndId>>;
pub(super) type Receiver = Host<EndToEnd, BulkReceiver<EndToEndId>>;
type Fetcher = Host<EndToEnd, Client<EndToEndId>>;
type Answerer = Host<EndToEnd, Server<EndToEndId>>;
type Reader = Host<EndToEnd, Browser<EndToEndId>>;

impl Traffic {
    /// Checks keys that depend on the kind.
    pub(super) fn check(&self, document: &Document<'_>, name: &str) -> Result<(), LabError> {
        use Kind::{Background, Bulk, Constant, Page, Request, Web};
        let given: [(&str, bool, &[Kind]); 11] = [
            ("bytes", self.bytes.is_some(), &[Bulk]),
            ("flows", self.flows != 1, &[Bulk, Web]),
            ("request", self.request.is_some(), &[Request]),
            ("response", self.response.is_some(), &[Request]),
            ("interval", self.interval.is_some(), &[Request, Page]),
            ("elements", self.elements.is_some(), &[Page]),
            ("page_bytes", self.page_bytes.is_some(), &[Page]),
            ("connections", self.connections.is_some(), &[Page, Web]),
            ("rate", self.rate.is_some(), &[Background, Constant]),
            ("packet", self.packet.is_some(), &[Constant]),
            ("stop", self.stop.is_some(), &[Request, Page, Web, Background, Constant]),
        ];
        for (key, is_given, kinds) in given {
            if is_given && !kinds.contains(&self.kind) {
                let found = format!("it with kind {:?}", self.kind);
                let expected = format!("it with {kinds:?} only");
                return Err(document.wrong(&format!("traffic.{name}.{key}"), &found, &expected));
            }
        }
        let at_least = |key: &str, value: u64, least: u64| match value < least {
            true => Err(document.wrong(
                &format!("traffic.{name}.{key}"),
                &value.to_string(),
                &format!("at least {least}"),
            )),
            false => Ok(()),
        };
        at_least("flows", u64::from(self.flows), 1)?;
        at_least("elements", self.elements.unwrap_or(1), 1)?;
        at_least("connections", u64::from(self.connections.unwrap_or(1)), 1)?;
        at_least("packet", self.packet.map_or(PACKET, |size| size.0), 44)?;
        let interval = self.interval.map_or(1, |time| time.0.as_nanos());
        at_least("interval", interval, 1)?;
        if self.rate.is_none() && matches!(self.kind, Background | Constant) {
            let path = format!("traffic.{name}.rate");
            return Err(document.wrong(&path, "nothing", "a rate, such as \"1mbit\""));
        }
        Ok(())
    }

    /// Adds the hosts to `net`. `name` is that of the traffic.
    pub(super) fn build(&self, net: &mut Network, name: &str, duration: Span) -> Flow {
        let mut rng = net.rng(&format!("scenario/{name}"));
        let within = self.random_start.0.as_secs_f64() * rng.uniform();
        let start = Instant::ZERO + self.start.0 + Span::from_secs_f64(within);
        let until = Instant::ZERO + self.stop.map_or(duration, |stop| stop.0);
        match self.kind {
            Kind::Bulk => self.bulk(net, start),
            Kind::Request => {
                let exchange = Exchange {
                    request: self.request.map_or(REQUEST, |size| size.0),
                    response: self.response.map_or(RESPONSE, |size| size.0),
                };
                let at = self.starts(start, until);
                let plans = at.map(|at| ConnectionPlan::single(at, exchange)).collect();
                self.clients(net, vec![plans], latencies)
            }
            Kind::Page => {
                let plans = self.starts(start, until).map(|at| self.page(at)).collect();
                self.clients(net, plans, pages)
            }
            Kind::Background => {
                let rate = self.rate.expect("it was checked").0;
                let load = WebLoad { rate, largest: Some(LARGEST) };
                self.clients(net, vec![load.plans(&mut rng, start, until)], latencies)
            }
            Kind::Web => self.web(net, name, start, until),
            Kind::Constant => self.constant(net, start, until),
        }
    }

    /// The starts at each interval; without an interval there is one.
    fn starts(&self, start: Instant, until: Instant) -> impl Iterator<Item = Instant> + use<> {
        let interval = self.interval.map(|time| time.0);
        let next = move |at: &Instant| Some(*at + interval?);
        std::iter::successors(Some(start), next).take_while(move |at| *at < until)
    }

    fn page(&self, at: Instant) -> Vec<ConnectionPlan> {
        let elements = self.elements.unwrap_or(30);
        let bytes = self.page_bytes.map_or(212_207, |size| size.0).max(elements);
        let size = |index: u64| bytes / elements + u64::from(index < bytes % elements);
        let sizes: Vec<u64> = (0..elements).map(size).collect();
        let connections = self.connections.unwrap_or(6) as usize;
        let http = match self.http {
            Http::PerElement => traffic::Http::PerElement { at_once: connections },
            Http::KeepAlive => traffic::Http::KeepAlive { connections },
            Http::Serial => traffic::Http::Serial,
            Http::Pipelined => traffic::Http::Pipelined,
        };
        http.plans(at, &sizes, PAGE_REQUEST)
    }

    fn bulk(&self, net: &mut Network, start: Instant) -> Flow {
        let transport = &self.tcp.0;
        let bytes = self.bytes.map_or(u64::MAX, |size| size.0);
        let mut flows = Vec::new();
        for number in 0..u64::from(self.flows) {
            let begin = start + self.stagger.0 * number;
            let sink = net.host_with(|node| {
                Host::new(EndToEnd::server(node, transport, PORT), BulkReceiver::new(TAG))
            });
            let source = net.host_with(|node| {
                let transport = EndToEnd::client(node, transport, Address::new(sink, PORT));
                Host::new(transport, BulkSender::new(begin, bytes, TAG))
            });
            flows.push((source, sink, begin));
        }
        let hosts = flows
            .iter()
            .flat_map(|(source, sink, _)| [(*source, self.from.clone()), (*sink, self.to.clone())]);
        let (settle, all) = (self.settle.0, flows.clone());
        Flow {
            hosts: hosts.collect(),
            senders: flows.iter().map(|flow| flow.0).collect(),
            received: Rc::new(move |net| {
                let of = |flow: &(NodeId, NodeId, Instant)| net.node::<Receiver>(flow.1);
                all.iter().map(|flow| of(flow).application.received() as f64).sum()
            }),
            measured: Rc::new(move |net| {
                let run = |flow: &(NodeId, NodeId, Instant)| bulk_run(net, *flow, bytes, settle);
                bulk_measures(&flows.iter().map(run).collect::<Vec<_>>())
            }),
        }
    }

    /// Clients, one host for each list of plans, and their server.
    fn clients(
        &self,
        net: &mut Network,
        plans: Vec<Vec<ConnectionPlan>>,
        measure: fn(&[&Client<EndToEndId>]) -> Found,
    ) -> Flow {
        let transport = &self.tcp.0;
        let server = net.host_with(|node| -> Answerer {
            Host::new(EndToEnd::server(node, transport, PORT), Server::new())
        });
        let mut clients = Vec::new();
        for plans in plans {
            clients.push(net.host_with(|node| -> Fetcher {
                let transport = EndToEnd::client(node, transport, Address::new(server, PORT));
                Host::new(transport, Client::new(plans))
            }));
        }
        let mut hosts = vec![(server, self.to.clone())];
        hosts.extend(clients.iter().map(|client| (*client, self.from.clone())));
        let all = clients.clone();
        Flow {
            hosts,
            senders: Vec::new(),
            received: Rc::new(move |net| {
                let bytes = |id: &NodeId| fetcher(net, *id).received().total().bytes as f64;
                all.iter().map(bytes).sum()
            }),
            measured: Rc::new(move |net| {
                let clients: Vec<_> = clients.iter().map(|id| fetcher(net, *id)).collect();
                measure(&clients)
            }),
        }
    }

    fn web(&self, net: &mut Network, name: &str, start: Instant, until: Instant) -> Flow {
        let transport = &self.tcp.0;
        let connections = self.connections.unwrap_or(4) as usize;
        let server = net.host_with(|node| -> Answerer {
            Host::new(EndToEnd::server(node, transport, PORT), Server::new())
        });
        let mut hosts = vec![(server, self.to.clone())];
        let mut readers = Vec::new();
        for number in 0..self.flows {
            let rng = net.rng(&format!("scenario/{name}/{number}"));
            let reader = net.host_with(|node| -> Reader {
                let transport = EndToEnd::client(node, transport, Address::new(server, PORT));
                let model = BrowsingModel::Mah;
                Host::new(transport, Browser::new(model, connections, rng, start, until))
            });
            hosts.push((reader, self.from.clone()));
            readers.push(reader);
        }
        let all = readers.clone();
        Flow {
            hosts,
            senders: Vec::new(),
            received: Rc::new(move |net| {
                let pages = all.iter().flat_map(|id| reader(net, *id).pages());
                pages.map(|page| page.bytes as f64).sum()
            }),
            measured: Rc::new(move |net| {
                let pages = readers.iter().flat_map(|id| reader(net, *id).pages());
                let times = pages.map(|page| page.done.since(page.asked).as_secs_f64());
                let times: Vec<f64> = times.collect();
                page_measures(&times, readers.iter().map(|id| reader(net, *id).lost()).sum())
            }),
        }
    }

    fn constant(&self, net: &mut Network, from: Instant, until: Instant) -> Flow {
        let rate = self.rate.expect("it was checked").0;
        let packet = self.packet.map_or(PACKET, |size| size.0) as usize;
        let sink = net.host(ConstantSink::new());
        let plan = ConstantRate { rate, packet, from, until };
        let source = net.host(ConstantSource::new(plan, PORT, Address::new(sink, PORT)));
        Flow {
            hosts: vec![(source, self.from.clone()), (sink, self.to.clone())],
            senders: Vec::new(),
            received: Rc::new(move |net| net.node::<ConstantSink>(sink).bytes() as f64),
            measured: Rc::new(move |net| {
                let seen = net.node::<ConstantSink>(sink);
                let sent = net.node::<ConstantSource>(source).sent();
                let seconds = until.min(net.now()).since(from).as_secs_f64();
                if sent == 0 || seconds <= 0.0 {
                    return Vec::new();
                }
                // Datagrams in the network at the end count as lost.
                let lost = 1.0 - seen.received() as f64 / sent as f64;
                let mut all = vec![
                    ("loss", lost * 100.0),
                    ("goodput", seen.bytes() as f64 * 8.0 / seconds / 1e6),
                ];
                if let Some(least) = seen.delays().least {
                    all.push(("delay_min", least.as_secs_f64()));
                    all.push(("delay_max", seen.delays().most.as_secs_f64()));
                    all.push(("jitter", seen.delays().jitter.as_secs_f64()));
                }
                all
            }),
        }
    }
}

/// Largest file of background traffic in octets; a larger one is drawn again, because a few of them
/// would make most of the load.
const LARGEST: u64 = 1_000_000;

fn fetcher(net: &Network, id: NodeId) -> &Client<EndToEndId> {
    &net.node::<Fetcher>(id).application
}

fn reader(net: &Network, id: NodeId) -> &Browser<EndToEndId> {
    &net.node::<Reader>(id).application
}
