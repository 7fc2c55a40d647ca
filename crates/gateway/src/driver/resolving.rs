//! Tests of the resolver and its thread with a name server on loopback.

use super::worker::Worker;
use crate::ResolverSection;
use crate::engine::resolver::holdings::owner;
use crate::engine::resolver::{BOUNDS, Failure, Outcome, Progress, Resolution, Resolver};
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, SOA};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use mio::{Events, Poll, Token, Waker};
use rt::Clock;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::Span;

/// A name server that has addresses for `*.good.test`, `one.loop.test` and `two.loop.test`, returns
/// NXDOMAIN for `*.none.test`, and does not respond to other queries. It runs until the process
/// ends.
pub(crate) struct NameServer {
    address: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
}

impl NameServer {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let socket = UdpSocket::bind(address).unwrap();
        let address = socket.local_addr().unwrap();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&queries);
        std::thread::spawn(move || {
            let mut packet = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let query = Message::from_vec(&packet[..length]).unwrap();
                log.lock().unwrap().push(query.queries[0].name().to_ascii());
                if let Some(answer) = answer(&query) {
                    socket.send_to(&answer.to_vec().unwrap(), from).unwrap();
                }
            }
        });
        Self { address, queries }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of queries for a name, in both families.
    pub(crate) fn queries_for(&self, name: &str) -> usize {
        self.queries.lock().unwrap().iter().filter(|queries| *queries == name).count()
    }
}

fn answer(query: &Message) -> Option<Message> {
    let question = &query.queries[0];
    let name = question.name().clone();
    let mut answer = query.clone();
    answer.metadata.message_type = MessageType::Response;
    answer.metadata.recursion_available = true;
    let text = name.to_ascii();
    if text.ends_with("good.test.") {
        let data = match question.query_type() {
            RecordType::A => RData::A(A::new(192, 0, 2, 7)),
            _ => RData::AAAA(AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
        };
        answer.add_answer(Record::from_rdata(name, 60, data));
    } else if text.ends_with(".loop.test.") {
        // For `two`, 127.0.0.9 comes first. There are no IPv6 addresses.
        let addresses = if text.starts_with("two") { &[9, 1][..] } else { &[1] };
        for &last in addresses.iter().filter(|_| question.query_type() == RecordType::A) {
            let data = RData::A(A::new(127, 0, 0, last));
            answer.add_answer(Record::from_rdata(name.clone(), 60, data));
        }
    } else if text.ends_with("none.test.") {
        answer.metadata.response_code = ResponseCode::NXDomain;
        let zone = Name::from_ascii("test.").unwrap();
        let soa = SOA::new(zone.clone(), zone.clone(), 1, 1, 1, 1, 60);
        answer.add_authority(Record::from_rdata(zone, 60, RData::SOA(soa)));
    } else {
        return None;
    }
    Some(answer)
}

/// A loop that only resolves names.
struct Loop {
    poll: Poll,
    clock: Clock,
    resolver: Resolver,
}

impl Loop {
    fn new(nameserver: SocketAddr) -> Self {
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), Token(1)).unwrap();
        let mut resolver = Resolver::new(Box::new(Worker::new(waker)));
        resolver.configure(&ResolverSection {
            nameservers: vec![nameserver],
            timeout: Some(Span::from_secs(20)),
            ..ResolverSection::default()
        });
        Self { poll, clock: Clock::new(), resolver }
    }

    fn ask(&mut self, client: u8, name: &str, token: usize) -> Resolution {
        self.resolver.resolve(self.clock.now(), &owner("boat", client), name, token)
    }

    /// Waits for the next complete result.
    fn complete(&mut self) -> (usize, Outcome) {
        let mut events = Events::with_capacity(4);
        loop {
            while let Some(answer) = self.resolver.poll_answer() {
                if let Progress::Complete(outcome) = answer.result {
                    return (answer.token, outcome);
                }
            }
            self.poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(!events.is_empty(), "no answer");
            self.resolver.handle_updates(self.clock.now());
        }
    }
}

fn addresses(outcome: &Outcome) -> Vec<String> {
    let mut all: Vec<String> =
        outcome.iter().flat_map(|all| all.iter()).map(ToString::to_string).collect();
    all.sort_unstable();
    all
}

#[test]
fn names_have_the_addresses_of_both_families_and_are_cached() {
    let server = NameServer::start();
    let mut it = Loop::new(server.address);
    assert!(matches!(it.ask(1, "www.Good.test", 7), Resolution::Pending(_)));
    let (token, outcome) = it.complete();
    assert_eq!((token, addresses(&outcome)), (7, vec!["192.0.2.7".into(), "2001:db8::7".into()]));
    assert_eq!(it.ask(2, "WWW.good.test", 8), Resolution::Answered(outcome));
    assert_eq!(server.queries_for("www.good.test."), 2, "once for each family");
    assert!(matches!(it.ask(1, "www.none.test", 9), Resolution::Pending(_)));
    assert_eq!(it.complete(), (9, Err(Failure::NotFound)));
    assert_eq!(it.ask(1, "www.none.test", 9), Resolution::Answered(Err(Failure::NotFound)));
    assert!(matches!(it.ask(1, "192.0.2.1", 10), Resolution::Answered(Ok(_))));
    let status = it.resolver.status();
    assert_eq!((status.queries, status.cache_hits, status.lookups), (5, 2, 2));
    assert_eq!((status.not_found, status.cached, status.latency.total()), (1, 2, 2));
}

#[test]
fn slow_lookups_of_one_client_do_not_delay_another() {
    let server = NameServer::start();
    let mut it = Loop::new(server.address);
    for number in 0..1_000 {
        it.ask(1, &format!("host{number}.dead.test"), number);
    }
    assert_eq!(it.resolver.status().in_flight, BOUNDS.of_client as u64);
    assert!(matches!(it.ask(2, "a.good.test", 5_000), Resolution::Pending(_)));
    // The failing lookups take 20 s, so this is the first result.
    let (token, outcome) = it.complete();
    assert_eq!((token, outcome.is_ok()), (5_000, true));
}

#[test]
fn a_cancelled_lookup_has_no_result_and_frees_its_slot() {
    let server = NameServer::start();
    let mut it = Loop::new(server.address);
    let mut ids = Vec::new();
    for number in 0..100 {
        match it.ask(1, &format!("host{number}.dead.test"), number) {
            Resolution::Pending(id) => ids.push(id),
            Resolution::Answered(_) => panic!("nothing is known of it"),
        }
    }
    // Last in the queue of the same client.
    it.ask(1, "b.good.test", 5_000);
    assert_eq!(it.resolver.status().queued, 85);
    for id in ids {
        it.resolver.cancel(id);
    }
    let (token, outcome) = it.complete();
    assert_eq!((token, outcome.is_ok()), (5_000, true));
    let status = it.resolver.status();
    assert_eq!((status.in_flight, status.queued, status.cancelled), (0, 0, 100));
}

#[test]
fn queries_for_one_name_share_its_lookup() {
    let server = NameServer::start();
    let mut it = Loop::new(server.address);
    for token in 0..50 {
        it.ask(token as u8, "shared.good.test", token);
    }
    let mut tokens: Vec<usize> = (0..50).map(|_| it.complete().0).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..50).collect::<Vec<_>>());
    assert_eq!(server.queries_for("shared.good.test."), 2);
}

#[test]
fn an_invalid_name_is_not_found() {
    let server = NameServer::start();
    let mut it = Loop::new(server.address);
    it.ask(1, &"x".repeat(64), 1);
    assert_eq!(it.complete(), (1, Err(Failure::NotFound)));
}

#[test]
fn changed_name_servers_apply_to_the_next_lookup() {
    let (one, other) = (NameServer::start(), NameServer::start());
    let mut it = Loop::new(one.address);
    it.ask(1, "a.good.test", 1);
    assert!(it.complete().1.is_ok());
    let section =
        ResolverSection { nameservers: vec![other.address], ..ResolverSection::default() };
    it.resolver.configure(&section);
    it.ask(1, "a.good.test", 2);
    assert!(it.complete().1.is_ok(), "what the old servers said is forgotten");
    assert_eq!((one.queries_for("a.good.test."), other.queries_for("a.good.test.")), (2, 2));
}
