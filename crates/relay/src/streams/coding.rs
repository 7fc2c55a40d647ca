//! Compression of halves: what is written, and what is received (RLY-13).

use super::Streams;
use crate::RelayConfig;
use crate::coding::{
    Coder, CodingStatistics, Decoder, Encoder, MAX_CHUNK, MAX_DECODED, MAX_ENCODED, OVERHEAD,
    is_encrypted,
};
use crate::receive::Violation;
use crate::stream::{Encoding, Stream};
use crate::target::StreamId;
use association::Capabilities;

/// With room for fewer octets none are compressed.
const LEAST_CHUNK: usize = 1 << 10;

/// With less room for a stream nothing is compressed.
const LEAST_UNSENT: u64 = 4 << 10;

/// The session's share of compression.
#[derive(Debug)]
pub(super) struct Coding {
    coder: Coder,
    /// Configured, and what the peer has announced permits it.
    configured: bool,
    permitted: bool,
    /// Streams whose sent half is or was coded, and whose received half is.
    encoded: usize,
    decoded: usize,
    pub(super) statistics: CodingStatistics,
}

impl Coding {
    pub(super) fn new(config: &RelayConfig) -> Self {
        Self {
            coder: config.coder.clone(),
            // A stream can then always hold a chunk.
            configured: config.compress
                && config.capabilities.contains(Capabilities::COMPRESSION)
                && config.unsent_limit >= LEAST_UNSENT,
            permitted: false,
            encoded: 0,
            decoded: 0,
            statistics: CodingStatistics::default(),
        }
    }

    pub(super) fn set_peer(&mut self, capabilities: Capabilities) {
        self.permitted = capabilities.contains(Capabilities::COMPRESSION);
    }

    /// Notes that the stream's state is discarded.
    pub(super) fn forget(&mut self, stream: &Stream) {
        self.encoded -= usize::from(stream.is_coded);
        self.decoded -= usize::from(stream.receives_coded == Some(true));
    }

    /// Takes the flag of a frame with data; false if it contradicts earlier ones, or if too many
    /// halves are coded.
    pub(super) fn receive(&mut self, stream: &mut Stream, is_coded: bool) -> bool {
        match stream.receives_coded {
            Some(before) => before == is_coded,
            None if is_coded && self.decoded >= MAX_DECODED => false,
            None => {
                stream.receives_coded = Some(is_coded);
                if is_coded {
                    self.decoded += 1;
                    stream.decoder = Some(Box::new(Decoder::new(&self.coder)));
                }
                true
            }
        }
    }

    /// Decides about a half whose first octets are `data`.
    fn begin(&mut self, data: &[u8]) -> Encoding {
        if !self.configured || !self.permitted {
            return Encoding::Plain;
        }
        if is_encrypted(data) {
            self.statistics.left_alone += 1;
            return Encoding::Plain;
        }
        let has_room = self.encoded < MAX_ENCODED;
        match has_room.then(|| Encoder::new(&self.coder)).flatten() {
            Some(encoder) => Encoding::Coded(Box::new(encoder)),
            None => {
                self.statistics.refused += 1;
                Encoding::Plain
            }
        }
    }
}

/// Octets that may be written, before compression, where there is room for `room` after it.
pub(super) fn room_before(room: usize) -> usize {
    room.checked_sub(OVERHEAD).filter(|&room| room >= LEAST_CHUNK).unwrap_or(0)
}

impl Streams {
    /// Whether the next octets that are written will be compressed, or may be.
    pub(super) fn is_coded(&self, stream: &Stream) -> bool {
        match stream.encoding {
            Encoding::Undecided => self.coding.configured && self.coding.permitted,
            Encoding::Coded(_) => true,
            Encoding::Plain => false,
        }
    }

    /// Bytes of memory that received data takes.
    pub(crate) fn receive_allocated(&self) -> usize {
        let decoded = |stream: &Stream| stream.decoder.as_ref().map_or(0, |it| it.allocated());
        self.streams.values().map(|stream| stream.receive.allocated() + decoded(stream)).sum()
    }

    /// Takes as many bytes as there is room for, compressed unless their content speaks against it;
    /// returns their number.
    pub(super) fn write_coded(&mut self, id: StreamId, data: &[u8]) -> usize {
        let mut taken = 0;
        while taken < data.len() {
            let rest = &data[taken..];
            let Some(stream) = self.streams.get_mut(&id) else { break };
            if matches!(stream.encoding, Encoding::Undecided) {
                stream.encoding = self.coding.begin(rest);
            }
            if matches!(stream.encoding, Encoding::Plain) {
                taken += self.write_plain(id, rest);
                break;
            }
            let len = self.room(id).min(rest.len()).min(MAX_CHUNK);
            if len == 0 {
                break;
            }
            let Some(stream) = self.streams.get_mut(&id) else { break };
            let Encoding::Coded(encoder) = &mut stream.encoding else { break };
            let mut chunk = encoder.encode(&rest[..len]);
            let statistics = &mut self.coding.statistics;
            if encoder.is_in_vain() {
                statistics.left_alone += 1;
                stream.encoding = Encoding::Plain;
                if !stream.is_coded {
                    continue;
                }
                Encoder::end_coding(&mut chunk);
            }
            if !stream.is_coded {
                stream.is_coded = true;
                self.coding.encoded += 1;
                statistics.compressed += 1;
            }
            statistics.plain_sent += len as u64;
            statistics.coded_sent += chunk.len() as u64;
            self.append(id, &chunk);
            taken += len;
        }
        taken
    }

    /// Decompresses what has arrived, until there is something to read.
    pub(super) fn decode(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(decoder) = &mut stream.decoder else { return };
        let mut is_intact = true;
        while decoder.output().is_empty() && !decoder.is_over() && is_intact {
            let octets = stream.receive.peek();
            if octets.is_empty() {
                break;
            }
            match decoder.take(octets) {
                Ok(count) => {
                    stream.receive.consume(count as u64, &mut self.pool);
                    self.coding.statistics.coded_received += count as u64;
                    self.coding.statistics.plain_received += decoder.output().len() as u64;
                }
                Err(_) => is_intact = false,
            }
        }
        if !decoder.output().is_empty() {
            return;
        }
        let is_done = stream.receive.is_done();
        is_intact &= !is_done || decoder.is_between_chunks() || stream.last.is_some();
        if is_done || decoder.is_over() {
            stream.decoder = None;
        }
        if !is_intact && stream.last.is_some() {
            // The peer has reset it anyway.
            stream.decoder = None;
            let rest = stream.receive.readable();
            stream.receive.consume(rest, &mut self.pool);
            self.coding.statistics.damaged += 1;
        } else if !is_intact {
            self.violated(id, Violation::Coding);
        }
    }
}
