//! Clients and servers joined by streams that take no time.

use super::*;
use std::collections::BTreeMap;

/// One side's view of streams that end in the other's buffers; small, so that writes stop short.
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

/// Runs `plans` to their end, 1 ms to a round; the clients and the rounds that it took.
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
    panic!("the plans never come to their end");
}

#[test]
fn a_download_and_an_upload_are_checked_to_the_last_byte() {
    let start = Instant::ZERO;
    let (client, _) =
        run(vec![ConnectionPlan::download(start, 100_000), ConnectionPlan::upload(start, 50_000)]);
    assert!(client.exchanged().iter().all(|one| one.done.is_some()));
    let all = client.received().between(start, Instant::from_nanos(u64::MAX / 2)).bytes;
    assert_eq!(all, 100_100);
}

#[test]
fn six_connections_take_a_page_one_object_at_a_time() {
    // Objects of 7,074 bytes in pieces of 1,000: eight rounds each; 1 + 5 objects in a row.
    let (client, rounds) = run(ConnectionPlan::page(Instant::ZERO, 30, 212_207, 6));
    assert_eq!(client.exchanged().len(), 30);
    assert!((46..=50).contains(&rounds), "{rounds}");
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn one_connection_takes_a_page_in_two_turns() {
    let (client, _) = run(ConnectionPlan::page(Instant::ZERO, 30, 212_207, 1));
    let first_done = client.exchanged()[0].done;
    assert!(client.exchanged()[1..].iter().all(|one| Some(one.asked) == first_done));
}

#[test]
#[should_panic(expected = "the server's bytes")]
fn a_wrong_byte_is_found() {
    let mut client = Client::new(vec![ConnectionPlan::download(Instant::ZERO, 100)]);
    let mut left = Half::default();
    client.handle_timeout(Instant::ZERO, &mut left);
    left.incoming.insert(0, vec![1, 2, 3]);
    client.readable(Instant::ZERO, 0, &mut left);
}
