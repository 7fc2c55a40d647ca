//! What goes out next.

use super::{Endpoint, State};
use crate::segment::{Flags, Options, Payload, Segment};
use units::Instant;

impl Endpoint {
    /// The next segment that may leave at `now`; None when nothing may.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        match self.state {
            State::Listen | State::Closed => return self.reset(now),
            State::SynSent | State::SynReceived => return self.syn(now),
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
        // SACK blocks have room only where there is no data.
        if self.receiver.is_due() && self.receiver.has_gaps() {
            return Some(self.acknowledgement(now));
        }
        let next = if self.state == State::TimeWait { None } else { self.sender.next(now) };
        if let Some(outgoing) = next {
            let mut segment = self.bare(now);
            segment.sequence = outgoing.sequence;
            segment.flags.fin = outgoing.fin;
            segment.payload = Payload {
                content: self.content,
                offset: outgoing.sequence - 1,
                len: u32::try_from(outgoing.len).expect("a segment's length"),
            };
            self.receiver.acknowledged();
            return Some(segment);
        }
        self.receiver.is_due().then(|| self.acknowledgement(now))
    }

    fn acknowledgement(&mut self, now: Instant) -> Segment {
        let mut segment = self.bare(now);
        if self.sack {
            // Four fit into 40 bytes of options, three beside timestamps (RFC 2018, section 3).
            segment.options.sack = self.receiver.blocks(if self.timestamps { 3 } else { 4 });
        }
        self.receiver.acknowledged();
        self.sender.counters.acknowledgements += 1;
        segment
    }

    fn syn(&mut self, now: Instant) -> Option<Segment> {
        if !core::mem::take(&mut self.syn_due) {
            return None;
        }
        let answers = self.state == State::SynReceived;
        let mut segment = self.bare(now);
        segment.sequence = 0;
        segment.flags.syn = true;
        segment.window = self.receiver.window(true);
        if !answers {
            segment.acknowledgement = None;
        }
        let config = &self.config;
        let shift = self.receiver.wanted_shift();
        segment.options = Options {
            max_segment: Some(config.max_segment),
            window_scale: (config.window_scale && (!answers || self.scale)).then_some(shift),
            sack_permitted: config.sack && (!answers || self.sack),
            timestamps: (config.timestamps.is_some() && (!answers || self.timestamps))
                .then(|| (self.ticks(now), self.receiver.echo())),
            ..Options::default()
        };
        // Whatever an opening may put beside SYN, three-way puts nothing.
        debug_assert_eq!(config.opening.data_with_syn(), 0);
        self.sender.syn_sent(now);
        Some(segment)
    }

    fn reset(&mut self, now: Instant) -> Option<Segment> {
        if !core::mem::take(&mut self.reset_due) {
            return None;
        }
        let mut segment = self.bare(now);
        segment.flags.reset = true;
        Some(segment)
    }

    /// A segment without data.
    fn bare(&self, now: Instant) -> Segment {
        let timestamps = self.timestamps.then(|| (self.ticks(now), self.receiver.echo()));
        Segment {
            ports: self.ports,
            sequence: self.sender.flow().end,
            acknowledgement: Some(self.receiver.next()),
            window: self.receiver.window(false),
            flags: Flags::default(),
            options: Options { timestamps, ..Options::default() },
            payload: Payload::default(),
        }
    }
}
