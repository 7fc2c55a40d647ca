//! A stand-in for the relay: one datagram for each thing to say, over a loopback that loses
//! nothing, with a window for each stream.

use super::super::carrier::*;
use crate::proxy::{Destination, Refusal};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use units::Instant;

const WINDOW: usize = 32 * 1024;
const PIECE: usize = 1400;

#[derive(Debug, Default)]
struct Half {
    incoming: VecDeque<u8>,
    credit: usize,
    /// Bytes consumed that the other side was not told of.
    owed: usize,
    full: bool,
    ended: (bool, bool),
}

#[derive(Debug)]
pub(super) struct Wire {
    hub: Option<SocketAddr>,
    peers: Vec<SocketAddr>,
    streams: BTreeMap<StreamKey, Half>,
    last: u64,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
}

impl Wire {
    pub(super) fn new(hub: Option<SocketAddr>) -> Self {
        Self {
            hub,
            peers: hub.into_iter().collect(),
            streams: BTreeMap::new(),
            last: 0,
            out: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn say(&mut self, key: StreamKey, kind: u8, rest: &[u8]) {
        let mut datagram = vec![kind];
        datagram.extend(key.stream.to_be_bytes());
        datagram.extend(rest);
        self.out.push_back((self.peers[key.peer as usize], datagram));
    }

    fn release(&mut self, key: StreamKey) {
        if self
            .streams
            .get(&key)
            .is_some_and(|half| half.ended == (true, true) && half.incoming.is_empty())
        {
            self.events.push_back(Event::Released { key });
        }
    }
}

fn half() -> Half {
    Half { credit: WINDOW, ..Half::default() }
}

impl Carrier for Wire {
    fn open(&mut self, _: Instant, target: Target) -> Result<StreamKey, Refusal> {
        self.last += 1;
        let key = StreamKey { peer: 0, stream: self.last };
        self.streams.insert(key, half());
        let text = match target.destination {
            Destination::Address(address) => format!("{address}"),
            Destination::Name(name, port) => format!("={name}:{port}"),
        };
        self.say(key, b'O', text.as_bytes());
        Ok(key)
    }
    fn accept(&mut self, _: Instant, key: StreamKey) {
        self.say(key, b'A', &[]);
    }
    fn refuse(&mut self, _: Instant, key: StreamKey, reason: Refusal) {
        self.streams.remove(&key);
        self.say(key, b'F', &[reason as u8]);
    }
    fn write(&mut self, _: Instant, key: StreamKey, bytes: &[u8]) -> usize {
        let Some(half) = self.streams.get_mut(&key) else { return 0 };
        let count = bytes.len().min(half.credit);
        half.credit -= count;
        half.full = count < bytes.len();
        for piece in bytes[..count].chunks(PIECE) {
            self.say(key, b'D', piece);
        }
        count
    }
    fn end(&mut self, _: Instant, key: StreamKey) {
        if let Some(half) = self.streams.get_mut(&key) {
            half.ended.0 = true;
            self.say(key, b'E', &[]);
            self.release(key);
        }
    }
    fn reset(&mut self, _: Instant, key: StreamKey) {
        self.streams.remove(&key);
        self.say(key, b'R', &[]);
    }
    fn peek(&mut self, key: StreamKey) -> &[u8] {
        self.streams.get_mut(&key).map_or(&[], |half| half.incoming.make_contiguous())
    }
    fn consume(&mut self, _: Instant, key: StreamKey, count: usize) {
        let Some(half) = self.streams.get_mut(&key) else { return };
        half.incoming.drain(..count);
        half.owed += count;
        self.release(key);
        let Some(half) = self.streams.get_mut(&key) else { return };
        if half.owed > WINDOW / 4 {
            let owed = (std::mem::take(&mut half.owed) as u64).to_be_bytes();
            self.say(key, b'C', &owed);
        }
    }
    fn handle_datagram(&mut self, _: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let known = self.peers.iter().position(|&peer| peer == from);
        let peer = known.unwrap_or_else(|| {
            self.peers.push(from);
            self.peers.len() - 1
        }) as u64;
        let (head, rest) = datagram.split_at(9);
        let stream = u64::from_be_bytes(head[1..].try_into().unwrap());
        let key = StreamKey { peer, stream };
        if head[0] == b'O' {
            let text = std::str::from_utf8(rest).unwrap();
            let destination = match text.strip_prefix('=').and_then(|t| t.rsplit_once(':')) {
                Some((name, port)) => Destination::Name(name.into(), port.parse().unwrap()),
                None => Destination::Address(text.parse().unwrap()),
            };
            self.streams.insert(key, half());
            self.events
                .push_back(Event::Opened { key, target: Target { destination, source: None } });
            return;
        }
        let Some(half) = self.streams.get_mut(&key) else { return };
        match head[0] {
            b'A' => self.events.push_back(Event::Accepted { key }),
            b'F' => {
                self.streams.remove(&key);
                let reason = match rest[0] {
                    0 => Refusal::ConnectionRefused,
                    3 => Refusal::TimedOut,
                    4 => Refusal::Policy,
                    5 => Refusal::NameNotFound,
                    _ => Refusal::Other,
                };
                self.events.push_back(Event::Refused { key, reason });
            }
            b'D' => {
                half.incoming.extend(rest.iter());
                self.events.push_back(Event::Readable { key });
            }
            b'C' => {
                half.credit += u64::from_be_bytes(rest[..8].try_into().unwrap()) as usize;
                if std::mem::take(&mut half.full) {
                    self.events.push_back(Event::Writable { key });
                }
            }
            b'E' => {
                half.ended.1 = true;
                self.events.push_back(Event::Ended { key });
                self.release(key);
            }
            b'R' => {
                self.streams.remove(&key);
                self.events.push_back(Event::Reset { key });
            }
            other => panic!("{other}"),
        }
    }
    fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8], _: usize) -> Option<Outgoing> {
        let (destination, datagram) = self.out.pop_front()?;
        buffer[..datagram.len()].copy_from_slice(&datagram);
        Some(Outgoing { destination, len: datagram.len(), segment_size: datagram.len() })
    }
    fn too_big(&mut self, _: Instant, _: SocketAddr, len: usize) {
        panic!("{len} bytes");
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (!self.out.is_empty()).then_some(Instant::ZERO)
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
    fn close(&mut self, _: Instant) {}
    fn statistics(&self) -> serde_json::Value {
        let _ = self.hub;
        serde_json::Value::Null
    }
}
