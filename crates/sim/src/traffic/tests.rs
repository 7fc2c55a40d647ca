//! Clients and servers connected by streams without delay.

use super::*;
use std::collections::BTreeMap;
use units::Span;

/// One side of streams whose data is moved to the other's buffers; small, so that writes are
/// partial.
#[derive(Default)]
struct Half {
    incoming: BTreeMap<u32, Vec<u8>>,
    outgoing: BTreeMap<u32, Vec<u8>>,
    opened: Vec<u32>,
    ended: Vec<u32>,
}

const ROOM: usize = 1_000;

impl Streams for Half {
    type Id = u32;
    fn open(&mut self, _: Instant) -> u32 {
        let id = self.outgoing.len() as u32;
        self.outgoing.insert(id, Vec::new());
        self.opened.push(id);
        id
    }
    fn write(&mut self, _: Instant, stream: u32, bytes: &[u8]) -> usize {
        let buffer = self.outgoing.entry(stream).or_default();
        let count = bytes.len().min(ROOM - buffer.len());
        buffer.extend_from_slice(&bytes[..count]);
        count
    }
    fn end(&mut self, _: Instant, stream: u32) {
        self.ended.push(stream);
    }
    fn peek(&self, stream: u32) -> &[u8] {
        self.incoming.get(&stream).map_or(&[], Vec::as_slice)
    }
    fn consume(&mut self, _: Instant, stream: u32, count: usize) {
        self.incoming.entry(stream).or_default().drain(..count);
    }
}

fn carry(from: &mut Half, to: &mut Half) -> Vec<u32> {
    let mut moved = Vec::new();
    for (&stream, buffer) in &mut from.outgoing {
        if !buffer.is_empty() {
            to.incoming.entry(stream).or_default().append(buffer);
            moved.push(stream);
        }
    }
    moved
}

/// Runs `plans`, 1 ms per iteration; returns the clients and the number of iterations.
fn run(plans: Vec<ConnectionPlan>) -> (Client<u32>, u64) {
    let (mut client, mut server) = (Client::new(plans), Server::new());
    let (mut left, mut right) = (Half::default(), Half::default());
    for round in 0..100_000 {
        let now = Instant::from_nanos(round * 1_000_000);
        client.handle_timeout(now, &mut left);
        left.opened.drain(..).for_each(|stream| server.opened(stream));
        for stream in carry(&mut left, &mut right) {
            client.writable(now, stream, &mut left);
            server.readable(now, stream, &mut right);
        }
        for stream in left.ended.drain(..) {
            server.ended(now, stream, &mut right);
        }
        for stream in carry(&mut right, &mut left) {
            server.writable(now, stream, &mut right);
            client.readable(now, stream, &mut left);
        }
        if client.is_done() {
            assert_eq!(client.lost() + server.lost(), 0);
            return (client, round);
        }
    }
    panic!("the plans do not finish");
}

#[test]
fn download_and_upload_are_verified() {
    let start = Instant::ZERO;
    let (client, _) =
        run(vec![ConnectionPlan::download(start, 100_000), ConnectionPlan::upload(start, 50_000)]);
    assert!(client.exchanged().iter().all(|one| one.done.is_some()));
    let all = client.received().between(start, Instant::from_nanos(u64::MAX / 2)).bytes;
    assert_eq!(all, 100_100);
}

#[test]
fn six_connections_fetch_one_object_at_a_time_each() {
    // Objects of 7,074 octets in pieces of 1,000: eight iterations each; 1 + 5 consecutive objects.
    let (client, rounds) = run(ConnectionPlan::page(Instant::ZERO, 30, 212_207, 6));
    assert_eq!(client.exchanged().len(), 30);
    assert!((46..=50).contains(&rounds), "{rounds}");
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn one_connection_fetches_a_page_in_two_rounds() {
    let (client, _) = run(ConnectionPlan::page(Instant::ZERO, 30, 212_207, 1));
    let first_done = client.exchanged()[0].done;
    assert!(client.exchanged()[1..].iter().all(|one| Some(one.asked) == first_done));
}

#[test]
#[should_panic(expected = "the server's bytes")]
fn wrong_octet_is_detected() {
    let mut client = Client::new(vec![ConnectionPlan::download(Instant::ZERO, 100)]);
    let mut left = Half::default();
    client.handle_timeout(Instant::ZERO, &mut left);
    left.incoming.insert(0, vec![1, 2, 3]);
    client.readable(Instant::ZERO, 0, &mut left);
}

#[test]
fn http_1_0_server_ends_a_connection_after_the_response() {
    for closes in [false, true] {
        let mut client = Client::new(vec![ConnectionPlan::download(Instant::ZERO, 500)]);
        let mut server = if closes { Server::new().closing() } else { Server::new() };
        let (mut left, mut right) = (Half::default(), Half::default());
        client.handle_timeout(Instant::ZERO, &mut left);
        server.opened(left.opened[0]);
        carry(&mut left, &mut right);
        server.readable(Instant::ZERO, 0, &mut right);
        assert_eq!(right.ended, if closes { vec![0] } else { vec![] });
        assert_eq!(right.outgoing[&0].len(), 500);
    }
}

#[test]
fn server_has_a_processing_delay_before_response_and_end() {
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let mut client = Client::new(vec![ConnectionPlan::download(at(0), 500)]);
    let mut server = Server::new().closing().pausing(Span::from_millis(5));
    let (mut left, mut right) = (Half::default(), Half::default());
    client.handle_timeout(at(0), &mut left);
    server.opened(left.opened[0]);
    carry(&mut left, &mut right);
    server.readable(at(0), 0, &mut right);
    assert_eq!((server.poll_timeout(), right.outgoing.len()), (Some(at(5)), 0));
    server.handle_timeout(at(4), &mut right);
    assert_eq!(right.outgoing.len(), 0, "not yet");
    server.handle_timeout(at(5), &mut right);
    assert_eq!((right.outgoing[&0].len(), right.ended.len()), (500, 0));
    assert_eq!(server.poll_timeout(), Some(at(10)));
    server.handle_timeout(at(10), &mut right);
    assert_eq!((right.ended.as_slice(), server.poll_timeout()), ([0].as_slice(), None));
}

/// Runs a browser against a server, 1 ms per iteration.
fn browse(mut browser: Browser<u32>, rounds: u64) -> Browser<u32> {
    use crate::host::StreamEvent;
    let mut server = Server::new();
    let (mut left, mut right) = (Half::default(), Half::default());
    for round in 0..rounds {
        let now = Instant::from_nanos(round * 1_000_000);
        Application::handle_timeout(&mut browser, now, &mut left);
        left.opened.drain(..).for_each(|stream| server.opened(stream));
        for stream in carry(&mut left, &mut right) {
            server.readable(now, stream, &mut right);
            browser.handle_event(now, StreamEvent::Writable(stream), &mut left);
        }
        left.ended.drain(..).for_each(|stream| server.ended(now, stream, &mut right));
        for stream in carry(&mut right, &mut left) {
            browser.handle_event(now, StreamEvent::Readable(stream), &mut left);
            server.writable(now, stream, &mut right);
        }
    }
    browser
}

#[test]
fn user_reads_pages_with_think_times() {
    let rng = |name| units::RngStream::new(1, 0, name);
    let end = Instant::from_nanos(20_000_000_000);
    let even =
        BrowsingModel::Even { files: 5, bytes: 3_000, request: 300, think: Span::from_millis(200) };
    let start = Instant::from_nanos(1_000_000_000);
    let browser = browse(Browser::new(even, 2, rng("even"), start, end), 22_000);
    let pages = browser.pages();
    assert_eq!((pages[0].asked, browser.lost()), (start, 0));
    assert!((60..130).contains(&pages.len()) && browser.is_done(), "{}", pages.len());
    assert!(pages.iter().all(|page| (page.files, page.bytes) == (5, 15_000)));
    let pauses = pages.windows(2).map(|pair| pair[1].asked.since(pair[0].done).as_secs_f64());
    let mean = pauses.sum::<f64>() / (pages.len() - 1) as f64;
    assert!((0.14..0.26).contains(&mean), "{mean}");
    // The first file alone, then two each on two connections: three rounds of three iterations.
    assert!(pages.iter().all(|page| page.done.since(page.asked) >= Span::from_millis(8)));
    let browser = browse(Browser::new(BrowsingModel::Mah, 4, rng("mah"), start, end), 300_000);
    assert!(!browser.pages().is_empty());
}

#[test]
fn file_transfer_has_a_control_connection() {
    let (client, _) = run(ConnectionPlan::file(Instant::ZERO, 100_000));
    let [ask, file, bye] = client.exchanged() else { panic!("{:?}", client.exchanged()) };
    assert_eq!([ask.connection, file.connection, bye.connection], [0, 1, 0]);
    assert_eq!(Some(file.asked), ask.done);
    assert!(file.done.is_some() && Some(bye.asked) >= file.done && bye.done.is_some());
    assert_eq!(client.received().total().bytes, 100_160);
}

#[test]
fn delayed_requests_do_not_delay_other_connections() {
    let exchange = Exchange { request: 300, response: 500 };
    let held = |held| ConnectionPlan {
        held,
        ..ConnectionPlan::new(Start::At(Instant::ZERO), Order::OneByOne, vec![exchange; 4])
    };
    let [(_, prompt), (client, late)] =
        [Span::ZERO, Span::from_millis(30)].map(|span| run(vec![held(span)]));
    assert_eq!((prompt, late), (3, 5 * 30), "each of the four, and the end");
    assert_eq!(client.poll_timeout(), None);
    let (client, _) = run(vec![held(Span::from_secs(1)), held(Span::ZERO)]);
    let first = client.exchanged().iter().find(|one| one.connection == 1).expect("it asked");
    let soon = Instant::from_nanos(100_000_000);
    assert!(first.done.is_some_and(|done| done < soon), "{first:?}");
}
