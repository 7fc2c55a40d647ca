//! Streams in the hands of a peer and an owner that a script commands.

use super::Streams;
use super::buffering::beyond_minimum;
use crate::fair::Shares;
use crate::families::Families;
use crate::frame::{Frame, Open, StreamHead, Writer};
use crate::stream::Stream;
use crate::{Priority, RelayConfig, ResetReason, StreamId, Target};
use units::{Instant, Span};

/// Packets that the session may have out at a time.
const MAX_PACKETS: usize = 64;

/// Plays `script` to the streams of a hub: its owner's calls, its session's, and whatever frames
/// a peer may send.
///
/// # Panics
/// When the accounts disagree with what they are accounts of, or leave their bounds.
pub fn streams(script: &[u8]) {
    let config = RelayConfig {
        max_streams: 8,
        stream_minimum: 4 << 10,
        shared_credit: 64 << 10,
        receive_pool: 256 << 10,
        send_pool: 256 << 10,
        unsent_limit: 32 << 10,
        compress: script.len() % 2 == 1,
        ..RelayConfig::new("fuzz")
    };
    let now = Instant::ZERO + Span::from_secs(1);
    let mut streams = Streams::new(&config, true, now);
    streams.set_peer(config.limits(), false);
    let mut bench = Bench { config, streams, now, packets: Vec::new() };
    let mut rest = script;
    while let Some((&[kind, a, b, c], after)) = rest.split_first_chunk::<4>() {
        rest = after;
        if kind % 16 < 3 {
            let (raw, after) = rest.split_at(usize::from(a % 64).min(rest.len()));
            rest = after;
            if kind % 16 == 0 { bench.streams.noted(raw) } else { bench.streams.deliver(raw) }
        } else {
            bench.step(kind % 16, a, b, c);
        }
        audit(&bench.streams, &bench.config);
    }
    while bench.streams.poll_event().is_some() {}
}

struct Bench {
    config: RelayConfig,
    streams: Streams,
    now: Instant,
    packets: Vec<u64>,
}

impl Bench {
    fn step(&mut self, kind: u8, a: u8, b: u8, c: u8) {
        let id = StreamId::new(u32::from(a >> 4), a & 1 != 0);
        let large = u64::from(b) << (c % 16);
        let known = self.streams.streams.keys().nth(usize::from(a)).copied();
        match kind {
            3..6 => self.deliver_data(id, u64::from(b) * 16, usize::from(c) * 8, a),
            6 => self.deliver(&match a & 6 {
                0 => Frame::Reset { id, final_offset: large, charged: u64::from(c), code: b },
                2 => Frame::Credit { id, limit: large * 1024 },
                4 if a & 8 == 0 => Frame::Shared { returned: large * 1024 },
                4 if a & 16 == 0 => Frame::Grant { number: u64::from(c), kbps: large },
                4 if a & 32 == 0 => Frame::Need { number: u64::from(c), units: large },
                4 => {
                    let families = Families::from_bits(u64::from(b));
                    Frame::Families { number: u64::from(c), families }
                }
                _ => Frame::Accept { id },
            }),
            7 => {
                let target = Target::name("server", u16::from(b));
                let _ = self.streams.open(self.now, target, Priority::Normal);
            }
            8 if (0xe0..0xf0).contains(&c) => self.streams.send_report(&vec![c; usize::from(b)]),
            8 if c >= 0xf0 => {
                self.streams.announce_families(Families::from_bits(u64::from(b)));
            }
            8 => {
                let _ = self.streams.accept(id);
            }
            9..11 => {
                let Some(known) = known else { return };
                let data = vec![c; usize::from(b) * 16];
                let taken = self.streams.write(self.now, known, &data).unwrap_or(0);
                assert!(taken <= data.len());
            }
            11 => {
                let Some(known) = known else { return };
                let len = self.streams.peek(known).len().min(usize::from(b) * 32);
                let _ = self.streams.consume(self.now, known, len);
            }
            12 => {
                let Some(known) = known else { return };
                let _ = match b % 8 {
                    0 => self.streams.reset(known, ResetReason::Local),
                    _ => self.streams.end(known),
                };
            }
            13 => self.send(usize::from(b) * 6),
            14 => self.settle(usize::from(a), usize::from(b) * 6, c),
            _ => self.wait(large),
        }
    }

    fn deliver_data(&mut self, id: StreamId, offset: u64, len: usize, flags: u8) {
        let opening = Open { priority: Priority::Normal, target: Target::name("server", 80) };
        let open = (offset == 0).then_some(&opening);
        let (end, charged) = (flags & 2 != 0, flags & 4 != 0);
        let head = StreamHead { id, offset, open, end, charged, coded: flags & 8 != 0 };
        let mut room = vec![0; len + 64];
        let mut writer = Writer::new(&mut room);
        let written = writer.stream(head, len, 0, true, |out| out.fill(7));
        assert_eq!(written, Some(len));
        let len = writer.written();
        self.streams.deliver(&room[..len]);
    }

    fn deliver(&mut self, frame: &Frame<'_>) {
        let mut room = [0; 40];
        let mut writer = Writer::new(&mut room);
        if writer.control(frame) {
            let len = writer.written();
            self.streams.deliver(&room[..len]);
        }
    }

    fn send(&mut self, room: usize) {
        let mut room = vec![0; room];
        if self.packets.len() < MAX_PACKETS
            && let Some((len, handle)) = self.streams.fresh(&mut room)
        {
            assert!(len > 0 && len <= room.len());
            self.packets.push(handle);
        }
    }

    /// A packet is sent again, or has arrived.
    fn settle(&mut self, at: usize, room: usize, again: u8) {
        if self.packets.is_empty() {
            return;
        }
        let at = at % self.packets.len();
        if again & 1 == 0 {
            self.streams.released(self.packets.swap_remove(at));
        } else {
            let mut room = vec![0; room];
            assert!(self.streams.again(self.packets[at], &mut room) <= room.len());
        }
    }

    fn wait(&mut self, millis: u64) {
        self.now += Span::from_millis(millis % 4096);
        self.streams.set_time(self.now, None, None);
        self.streams.handle_timeout();
        let mut room = [0; 100];
        assert!(self.streams.note(&mut room) <= room.len());
        while self.streams.poll_event().is_some() {}
    }
}

/// The accounts agree with what they are accounts of, and keep their bounds.
pub(super) fn audit(streams: &Streams, config: &RelayConfig) {
    let all = streams.streams.values();
    assert_eq!(streams.open_local, all.clone().filter(|s| s.is_local()).count());
    assert_eq!(streams.open_remote, all.clone().filter(|s| !s.is_local()).count());
    audit_owners(streams);
    assert!(streams.pool.used() <= streams.pool.size, "{:?}", streams.pool);
    let out = streams.pool.shared_received - streams.pool.shared_returned;
    assert!(out <= streams.pool.shared, "{:?}", streams.pool);
    assert!(out <= streams.pool.shared_span, "{:?}", streams.pool);
    assert!(streams.pool.shared_span <= streams.pool.shared, "{:?}", streams.pool);
    let unfinished = |s: &&Stream| !s.is_local() && s.is_readable() && !s.is_done();
    assert_eq!(streams.unfinished_remote, all.clone().filter(unfinished).count());
    assert!(streams.streams.len() <= 3 * streams.max_streams + 64 + streams.open_local);
    let chunks = streams.streams.len() as u64 * 2 * (16 << 10);
    assert!(streams.receive_allocated() as u64 <= config.receive_bound() + chunks);
    assert_eq!(streams.scheduler.len(), all.filter(|s| s.scheduled).count());
}

/// What each owner holds of the pools is what its streams hold.
fn audit_owners(streams: &Streams) {
    let all = || streams.streams.values();
    let agree = |shares: &Shares, holds: fn(&Stream) -> u64| {
        assert_eq!(shares.total(), all().map(holds).sum::<u64>());
        for owner in all().map(|stream| stream.owner) {
            let of = |stream: &&Stream| stream.owner == owner;
            assert_eq!(shares.of(owner), all().filter(of).map(holds).sum::<u64>());
        }
    };
    agree(&streams.send_pool.held, |stream| beyond_minimum(stream.send.held()));
    let buffered = streams.streams.values().map(|stream| stream.send.held()).sum::<u64>();
    assert_eq!(streams.send_pool.buffered, buffered);
    agree(&streams.send_pool.unsent, |stream| stream.send.unsent());
    agree(&streams.pool.granted, |stream| stream.receive.reserved());
}
