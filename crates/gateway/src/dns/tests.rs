//! Tests of the forwarder; messages are compared with those of an independent library.

use super::fuzzing::{forwarder, messages, question};
use super::samples::{answer, query};
use super::*;
use hickory_resolver::proto::op::{Edns, Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::{SOA, TXT};
use hickory_resolver::proto::rr::{Name, RData, Record};
use std::net::Ipv4Addr;
use units::RngStream;

const LIMITS: CacheLimits =
    CacheLimits { bytes: 1 << 20, stale: Span::from_secs(3_600), prefetch: true };

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn client(last: u8) -> Client {
    let reply_to = ReplyTo::Datagram(0);
    Client { address: ([10, 0, 0, last], 5300).into(), network: [10, 0, 0, last].into(), reply_to }
}

/// A forwarder whose actions are sorted.
struct Site {
    it: Forwarder,
    names: AddressNames,
    replies: Vec<Message>,
    asked: Vec<(u64, Vec<u8>)>,
}

impl Site {
    fn new(limits: CacheLimits, pool: Option<&str>) -> Self {
        let names = AddressNames::new(pool.map(|pool| pool.parse().unwrap()), false);
        Self { it: Forwarder::new(limits), names, replies: Vec::new(), asked: Vec::new() }
    }

    fn sort(&mut self) {
        while let Some(action) = self.it.poll_action() {
            match action {
                Action::Ask { lookup, message, .. } => self.asked.push((lookup, message)),
                Action::Abandon { lookup } => self.asked.retain(|(other, _)| *other != lookup),
                Action::Reply { message, .. } => {
                    self.replies.push(Message::from_vec(&message).unwrap());
                }
            }
        }
    }

    fn query(&mut self, now: Instant, who: u8, message: &[u8]) {
        self.it.handle_query(now, client(who), message, &mut self.names);
        self.sort();
    }

    /// The name servers respond to the oldest look-up.
    fn respond(&mut self, now: Instant, b: u8, ttl: u8) {
        let (lookup, message) = self.asked.remove(0);
        self.it.handle_response(now, lookup, &answer(message, b, ttl), &mut self.names);
        self.sort();
    }

    fn timeout(&mut self, now: Instant) {
        self.it.handle_timeout(now);
        self.sort();
    }

    /// Returns the code, the number of answers and the TTL of the only reply.
    fn reply(&mut self) -> (ResponseCode, usize, u32) {
        assert_eq!(self.replies.len(), 1);
        let reply = self.replies.remove(0);
        let ttl = reply.answers.first().map_or(0, |record| record.ttl);
        (reply.metadata.response_code, reply.answers.len(), ttl)
    }
}

#[test]
fn a_response_is_stored_for_its_ttl_and_counts_down() {
    let mut site = Site::new(CacheLimits { prefetch: false, ..LIMITS }, None);
    site.query(at(0), 1, &query(1, 0));
    assert!(site.replies.is_empty() && site.asked.len() == 1);
    site.respond(at(600), 1, 60);
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 60));
    site.query(at(20_600), 2, &query(1, 0));
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 40));
    assert!(site.asked.is_empty());
    site.query(at(60_600), 2, &query(1, 0));
    assert!(site.replies.is_empty() && site.asked.len() == 1, "it has expired");
    let status = site.it.status();
    assert_eq!((status.queries, status.hits, status.lookups, status.cached), (3, 1, 2, 1));
}

#[test]
fn queries_for_one_name_share_a_look_up_and_keep_their_ids_and_letters() {
    let mut site = Site::new(LIMITS, None);
    let mut other = query(1, 0);
    other[0] = 99;
    other[13] = b'N';
    for (who, message) in [(1, query(1, 0)), (1, query(1, 0)), (2, other)] {
        site.query(at(0), who, &message);
    }
    assert_eq!(site.asked.len(), 1);
    site.respond(at(600), 1, 60);
    let ids: Vec<u16> = site.replies.iter().map(|reply| reply.metadata.id).collect();
    assert_eq!(ids, [1 << 8, 99 << 8], "a repeated query has one reply");
    let name = |at: usize| site.replies[at].queries[0].name().to_string();
    assert_eq!((name(0), name(1)), ("n01.site.net.".into(), "N01.site.net.".into()));
}

#[test]
fn a_response_in_use_is_renewed_before_it_expires() {
    let mut site = Site::new(LIMITS, None);
    for name in [1, 2] {
        site.query(at(0), 1, &query(name, 0));
        site.respond(at(0), 1, 100);
    }
    site.replies.clear();
    site.query(at(50_000), 1, &query(1, 0));
    assert_eq!(site.it.poll_timeout(), Some(at(90_000)));
    site.timeout(at(90_000));
    assert_eq!(site.asked.len(), 1, "the other was not used since");
    site.respond(at(90_600), 1, 100);
    site.replies.clear();
    site.query(at(150_000), 1, &query(1, 0));
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 41));
    // One that is used again shortly before its end is renewed then.
    site.query(at(95_000), 1, &query(2, 0));
    assert_eq!((site.replies.len(), site.asked.len()), (1, 1));
    assert_eq!(site.it.status().prefetches, 2);
}

#[test]
fn an_expired_response_is_used_while_there_is_no_other() {
    let mut site = Site::new(CacheLimits { prefetch: false, ..LIMITS }, None);
    site.query(at(0), 1, &query(1, 0));
    site.respond(at(0), 1, 10);
    site.replies.clear();
    site.query(at(20_000), 1, &query(1, 0));
    assert!(site.replies.is_empty());
    site.timeout(at(21_799));
    assert!(site.replies.is_empty());
    site.timeout(at(21_800));
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 30));
    // The look-up goes on, and fails: the next one has its turn after a while.
    site.query(at(22_000), 2, &query(1, 0));
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 30));
    site.timeout(at(30_000));
    assert!(site.asked.is_empty());
    site.query(at(31_000), 1, &query(1, 0));
    assert!(site.asked.is_empty() && site.reply().1 == 1);
    site.query(at(35_000), 1, &query(1, 0));
    assert!(site.replies.is_empty() && site.asked.len() == 1);
    // A name server's failure does not replace it.
    site.respond(at(35_600), 8, 10);
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 30));
    // Without a hub it is used at once, until it is too old.
    site.it.set_up(false);
    site.query(at(3_609_000), 1, &query(1, 0));
    assert_eq!(site.reply(), (ResponseCode::NoError, 1, 30));
    site.query(at(3_610_000), 1, &query(1, 0));
    assert_eq!(site.reply().0, ResponseCode::ServFail);
    assert!(site.asked.is_empty());
    assert_eq!(site.it.status().stale, 5);
}

#[test]
fn wrong_responses_are_counted_and_change_nothing() {
    let mut site = Site::new(LIMITS, None);
    let wrong: [fn(&mut Vec<u8>); 5] = [
        |message| message[1] ^= 1,
        |message| message[13] = b'x',
        |message| message[2] = 1,
        |message| message.truncate(message.len() - 1),
        |message| message[5] = 2,
    ];
    for (count, spoil) in (1..).zip(wrong) {
        site.query(at(count * 10_000), 1, &query(1, 0));
        let (lookup, message) = site.asked.remove(0);
        let mut message = answer(message, 1, 60);
        spoil(&mut message);
        site.it.handle_response(at(count * 10_000), lookup, &message, &mut site.names);
        site.sort();
        assert_eq!(site.reply().0, ResponseCode::ServFail, "{count}");
        assert_eq!(site.it.status().bad_responses, count);
        site.query(at(count * 10_000 + 1), 1, &query(1, 0));
        assert_eq!(site.reply().0, ResponseCode::ServFail, "a failure is stored for 5 s");
    }
    // What was not asked is not taken.
    site.it.handle_response(at(0), 77, &answer(query(1, 0), 1, 60), &mut site.names);
    assert!(site.it.poll_action().is_none());
}

#[test]
fn malformed_queries_are_refused_or_ignored() {
    let mut site = Site::new(LIMITS, None);
    for (change, code) in [
        ((2, 0x81), None),
        ((2, 0x28), Some(ResponseCode::NotImp)),
        ((5, 2), Some(ResponseCode::FormErr)),
        ((7, 1), Some(ResponseCode::FormErr)),
        ((11, 1), Some(ResponseCode::FormErr)),
        ((12, 64), Some(ResponseCode::FormErr)),
        ((27, 252), Some(ResponseCode::Refused)),
        ((29, 3), Some(ResponseCode::Refused)),
    ] {
        let mut message = query(1, 0);
        message[change.0] = change.1;
        site.query(at(0), 1, &message);
        let found = site.replies.pop().map(|reply| reply.metadata.response_code);
        assert_eq!(found, code, "{change:?}");
    }
    site.query(at(0), 1, &[0; 11]);
    assert!(site.asked.is_empty() && site.replies.is_empty());
    assert_eq!(site.it.status().bad_queries, 9);
}

#[test]
fn one_client_leaves_look_ups_to_others() {
    let mut site = Site::new(LIMITS, None);
    for who in 1..=9 {
        for name in 0..50 {
            site.query(at(0), who, &query(who * 25 + name / 2, name));
        }
    }
    let refused = site.replies.len();
    assert!(refused > 0 && site.asked.len() <= MAX_LOOKUPS);
    site.replies.clear();
    site.query(at(1), 77, &query(255, 0));
    let newest = site.asked.last().unwrap();
    assert_eq!(newest.1[12..16], query(255, 0)[12..16], "it is looked up");
    assert_eq!(site.it.status().in_flight as usize, site.asked.len());
}

#[test]
fn a_client_with_many_names_replaces_its_own_responses() {
    let mut cache = Cache::new(CacheLimits { bytes: 20_000, ..LIMITS });
    let stored =
        |cache: &mut Cache, name: u8, kind| cache.get(at(1_000), &question(name, kind)).is_some();
    let insert = |cache: &mut Cache, owner: u8, name, kind| {
        let question = question(name, kind);
        let message = answer(question.query(3), 1, 200);
        let mut response = Response::parse(&message, &question, 3).unwrap();
        response.ttl = Span::from_secs(200);
        cache.insert(at(0), [10, 0, 0, owner].into(), &question, response);
    };
    for name in 0..10 {
        insert(&mut cache, 1, name, 0);
    }
    for name in 0..=255 {
        insert(&mut cache, 2, name, 1);
    }
    assert!((0..10).all(|name| stored(&mut cache, name, 0)));
    assert!(stored(&mut cache, 255, 1) && !stored(&mut cache, 0, 1));
    assert!(cache.bytes() <= 20_000 && cache.len() > 30);
}

#[test]
fn a_name_that_is_not_stored_has_a_placeholder_at_once() {
    let mut site = Site::new(LIMITS, Some("198.18.0.0/15"));
    site.query(at(0), 1, &query(1, 0));
    let reply = site.replies.remove(0);
    let RData::A(address) = &reply.answers[0].data else { panic!("{reply:?}") };
    assert_eq!(address.0, Ipv4Addr::new(198, 18, 0, 1));
    site.query(at(0), 1, &query(1, 1));
    assert_eq!(site.reply(), (ResponseCode::NoError, 0, 0), "no IPv6 address meanwhile");
    assert_eq!(site.asked.len(), 2, "both are looked up nevertheless");
    let opened = site.names.destination(at(1), (address.0, 443).into()).unwrap();
    assert_eq!(opened.to_string(), "n01.site.net:443");
    site.respond(at(600), 1, 60);
    assert!(site.replies.is_empty());
    site.query(at(700), 1, &query(1, 0));
    let reply = site.replies.remove(0);
    let RData::A(address) = &reply.answers[0].data else { panic!("{reply:?}") };
    assert_eq!(address.0, Ipv4Addr::new(192, 0, 2, 1), "the name server's");
    // Other types, special names and clients that validate have to wait.
    let named = |name: &[u8]| {
        let mut message = query(1, 0)[..12].to_vec();
        message.extend(name);
        message.extend([0, 1, 0, 1]);
        message
    };
    let mut text = query(1, 0);
    text[27] = 16;
    let mut validating = query(2, 0);
    validating[3] = 0x10;
    let before = site.asked.len();
    for message in [text, validating, named(b"\x04host\x05local\0"), named(b"\x03com\0")] {
        site.query(at(0), 1, &message);
    }
    assert!(site.replies.is_empty() && site.asked.len() == before + 4);
}

/// A response of the library to `question`, with `more` done to it.
fn library(question: &Question, more: impl FnOnce(&mut Message, Name)) -> Response {
    let mut message = Message::from_vec(&question.query(5)).unwrap();
    message.metadata.message_type = MessageType::Response;
    message.metadata.recursion_available = true;
    let name = message.queries[0].name().clone();
    more(&mut message, name);
    Response::parse(&message.to_vec().unwrap(), question, 5).unwrap()
}

#[test]
fn negative_answers_are_stored_by_their_soa() {
    let question = question(1, 0);
    let zone = Name::from_ascii("site.net.").unwrap();
    let soa = |minimum| SOA::new(zone.clone(), zone.clone(), 1, 1, 1, 1, minimum);
    for (code, ttl, minimum, stored) in [
        (ResponseCode::NXDomain, 60, 600, 60),
        (ResponseCode::NXDomain, 600, 60, 60),
        (ResponseCode::NoError, 900, 900, 900),
    ] {
        let response = library(&question, |message, _| {
            message.metadata.response_code = code;
            let data = RData::SOA(soa(minimum));
            message.add_authority(Record::from_rdata(zone.clone(), ttl, data));
        });
        assert_eq!((response.ttl, response.is_negative), (Span::from_secs(stored), true));
        assert!(!response.is_failure);
    }
    let bare = library(&question, |message, _| {
        message.metadata.response_code = ResponseCode::NXDomain;
    });
    assert_eq!(bare.ttl, Span::ZERO, "RFC 2308, section 5");
    let mut cache = Cache::new(LIMITS);
    cache.insert(at(0), [10, 0, 0, 1].into(), &question, bare);
    assert_eq!(cache.len(), 0);
}

#[test]
fn a_large_response_is_truncated_for_udp_and_whole_for_tcp() {
    let mut message = query(1, 0);
    message[27] = 16;
    let plain = Query::parse(&message).unwrap();
    let response = library(&plain.question, |message, name| {
        for number in 0..30 {
            let text = TXT::new(vec![format!("{number:0100}")]);
            message.add_answer(Record::from_rdata(name.clone(), 60, RData::TXT(text)));
        }
    });
    let mut edns = Message::from_vec(&message).unwrap();
    edns.edns = Some(Edns::new().set_max_payload(4096).clone());
    let edns = Query::parse(&edns.to_vec().unwrap()).unwrap();
    for (query, limit, count) in [(&plain, plain.udp_size(), 0), (&edns, edns.udp_size(), 0)] {
        let cut = query.with_response(&response, Span::ZERO, None, limit);
        assert!(cut.len() <= limit);
        let cut = Message::from_vec(&cut).unwrap();
        assert!(cut.metadata.truncation && cut.answers.len() == count);
    }
    assert_eq!((plain.udp_size(), edns.udp_size()), (512, 1232));
    let whole = edns.with_response(&response, Span::ZERO, None, usize::from(u16::MAX));
    let whole = Message::from_vec(&whole).unwrap();
    assert!(!whole.metadata.truncation && whole.answers.len() == 30 && whole.edns.is_some());
    assert!(whole.metadata.recursion_available);
    let whole = plain.with_response(&response, Span::ZERO, None, usize::from(u16::MAX));
    assert!(Message::from_vec(&whole).unwrap().edns.is_none(), "the client does not know it");
}

#[test]
fn random_messages_and_scripts_keep_the_invariants() {
    let mut rng = RngStream::new(1, 0, "dns");
    for round in 0..20_000u64 {
        let mut octets = query(round as u8, (round >> 8) as u8);
        let mut random: Vec<u8> =
            (0..rng.next_u64() % 20).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
        // Half of the messages have records that can be read.
        if round % 2 == 0 {
            let length = random.len() as u8;
            random.splice(0..0, [0, 41, 16, 0, 0, 0, 0, 0, 0, length]);
            octets[11] = 1;
            octets.push(0);
            octets.extend([3, 1, 1, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4]);
        }
        octets.extend(random);
        messages(&octets);
        let at = rng.next_u64() as usize % octets.len();
        octets[at] = rng.next_u64() as u8;
        messages(&octets);
    }
    for _ in 0..300 {
        let script: Vec<u8> = (0..400).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
        forwarder(&script);
    }
}
