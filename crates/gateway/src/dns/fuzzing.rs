//! Properties of the forwarder that hold for any messages of clients and name servers.

use super::message::{Query, Question, Response};
use super::samples::{answer, query};
use super::{Action, AddressNames, CacheLimits, Client, Forwarder, MAX_LOOKUPS, ReplyTo};
#[cfg(test)]
use std::sync::Arc;
use units::{Instant, Span};

/// Memory of the forwarder's cache.
const CACHE: usize = 64 * 1024;

/// Reads `octets` as a query, and as a response to a query in front of them.
///
/// # Panics
/// Panics if a reply is no message that answers the query, or exceeds its limit.
pub(crate) fn messages(octets: &[u8]) {
    let Ok(query) = Query::parse(octets) else { return };
    let sent = query.question.query(7);
    let own = Query::parse(&sent).expect("a query of our own");
    assert_eq!(own.question, query.question);
    check(&query, &query.without_records(2), query.udp_size());
    let Some(rest) = octets.get(sent.len()..) else { return };
    // The rest of the octets are the records of a response.
    let mut message = sent[..sent.len() - 11].to_vec();
    message[2..4].copy_from_slice(&[0x81, 0x80]);
    let counts = rest.first_chunk::<3>().copied().unwrap_or_default();
    for (at, count) in counts.iter().enumerate() {
        message[6 + 2 * at..8 + 2 * at].copy_from_slice(&[0, count % 5]);
    }
    message.extend(rest.get(3..).unwrap_or_default());
    response(&query, &message);
}

fn response(query: &Query, message: &[u8]) {
    let Ok(response) = Response::parse(message, &query.question, 7) else { return };
    assert!(response.size() <= 9 * message.len(), "of {} octets", message.len());
    for (age, stale) in [(0, None), (100, None), (9, Some(Span::from_secs(30)))] {
        let age = Span::from_secs(age);
        let reply = query.with_response(&response, age, stale, query.udp_size());
        check(query, &reply, query.udp_size());
        let whole = query.with_response(&response, age, stale, usize::MAX);
        let again = whole_again(&whole, &query.question);
        assert_eq!(again.addresses, response.addresses);
        assert!(stale.is_some() || again.ttl <= response.ttl);
    }
}

/// Reads a reply as a response with the id of the query in it.
fn whole_again(reply: &[u8], question: &Question) -> Response {
    let id = u16::from_be_bytes([reply[0], reply[1]]);
    Response::parse(reply, question, id).expect("a reply of our own")
}

fn check(query: &Query, reply: &[u8], limit: usize) {
    assert!(reply.len() <= limit.max(512), "{} octets", reply.len());
    assert_eq!(reply[..2], query.id.to_be_bytes());
    assert!(reply[2] & 0x80 != 0 && reply[4..6] == [0, 1]);
}

/// Plays a script: each step of four octets is a query of some client, a response, a loss, or time.
///
/// # Panics
/// Panics if a limit is exceeded, or a query has more than one reply.
pub(crate) fn forwarder(script: &[u8]) {
    let limits = CacheLimits { bytes: CACHE, stale: Span::from_secs(600), prefetch: true };
    let mut it = Forwarder::new(limits);
    let pool = script.first().is_some_and(|first| first % 2 == 0);
    let pool = pool.then(|| "198.18.0.0/24".parse().expect("a network"));
    let mut names = AddressNames::new(pool, true);
    let (mut now, mut asked, mut owed) = (Instant::ZERO, Vec::new(), 0i64);
    for step in script.chunks_exact(4) {
        let &[what, a, b, c] = step else { return };
        match what % 6 {
            0..=2 => {
                let client = Client {
                    address: ([10, 0, 0, b % 5], 1000 + u16::from(c)).into(),
                    network: [10, 0, 0, b % 5].into(),
                    reply_to: ReplyTo::Connection(usize::from(b), u64::from(c)),
                };
                it.handle_query(now, client, &query(a, c), &mut names);
                owed += 1;
            }
            3 if !asked.is_empty() => {
                let (lookup, message): (u64, Vec<u8>) =
                    asked.swap_remove(usize::from(a) % asked.len());
                it.handle_response(now, lookup, &answer(message, b, c), &mut names);
            }
            4 if !asked.is_empty() => {
                let (lookup, _) = asked.swap_remove(usize::from(a) % asked.len());
                it.handle_failure(now, lookup);
            }
            _ => {
                it.set_up(b % 8 > 0);
                now += Span::from_millis(u64::from(a) * u64::from(c) + 1);
                it.handle_timeout(now);
            }
        }
        while let Some(action) = it.poll_action() {
            match action {
                Action::Ask { lookup, message, .. } => asked.push((lookup, message)),
                Action::Abandon { lookup } => asked.retain(|(other, _)| *other != lookup),
                Action::Reply { .. } => owed -= 1,
            }
        }
        let status = it.status();
        assert!(owed >= 0, "more replies than queries");
        assert!(status.in_flight as usize <= MAX_LOOKUPS && status.cache_bytes as usize <= CACHE);
        assert_eq!(status.in_flight as usize, asked.len());
        assert!(
            it.poll_timeout().is_none_or(|due| due > now || status.in_flight > 0 || what % 6 < 5)
        );
    }
}

/// The question of [`query`].
#[cfg(test)]
pub(crate) fn question(name: u8, kind: u8) -> Arc<Question> {
    Arc::new(Query::parse(&query(name, kind)).expect("a query").question)
}
