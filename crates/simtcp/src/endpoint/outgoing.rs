//! Segments to be sent.

use super::incoming::DEFAULT_SEGMENT;
use super::{Endpoint, State};
use crate::segment::{Ecn, Flags, Options, Payload, Probe, Segment};
use crate::sender::Outgoing;
use units::Instant;

impl Endpoint {
    /// The next segment that may be sent at `now`; `None` if there is none.
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
            | State::TimeWait
                if self.syn_due =>
            {
                return self.syn(now);
            }
            State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => {}
        }
        if let Some(probe) = self.probe_answer.take().or_else(|| self.sender.take_probe(now)) {
            return Some(self.acknowledgement(now, Some(probe)));
        }
        // SACK blocks have room only in segments without data.
        let alone = core::mem::take(&mut self.alone);
        if self.receiver.is_due() && (alone || self.receiver.has_gaps()) {
            return Some(self.acknowledgement(now, None));
        }
        let next = if self.state == State::TimeWait { None } else { self.sender.next(now) };
        if let Some(outgoing) = next {
            let mut segment = self.bare(now);
            segment.sequence = outgoing.sequence;
            segment.flags.fin = outgoing.fin;
            segment.payload = self.payload(&outgoing);
            // Retransmissions are not ECN-capable (RFC 3168, section 6.1.5).
            if self.ecn && !outgoing.again && outgoing.len > 0 {
                let scalable = self.marks.is_some() && self.sender.window().is_scalable();
                segment.ecn = if scalable { Ecn::Scalable } else { Ecn::Capable };
                if self.marks.is_none() {
                    segment.flags.cwr = self.sender.take_reduced();
                }
            }
            self.receiver.acknowledged();
            if outgoing.len > 0 {
                self.receiver.answered(now);
            }
            return Some(segment);
        }
        self.receiver.is_due().then(|| self.acknowledgement(now, None))
    }

    fn acknowledgement(&mut self, now: Instant, probe: Option<Probe>) -> Segment {
        let mut segment = self.bare(now);
        segment.options.probe = probe;
        if self.sack {
            segment.options.sack = self.receiver.blocks(segment.options.room_for_blocks());
        }
        self.receiver.acknowledged();
        self.sender.counters.acknowledgements += 1;
        segment
    }

    fn syn(&mut self, now: Instant) -> Option<Segment> {
        if !core::mem::take(&mut self.syn_due) {
            return None;
        }
        self.alone = false;
        let answers = self.state != State::SynSent;
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
        // RFC 3168, section 6.1.1; RFC 9768, section 3.1.1, table 2.
        let accurate = self.marks.is_some();
        segment.flags.ece = if answers { self.ecn && !accurate } else { config.ecn };
        segment.flags.cwr = if answers { accurate } else { config.ecn };
        segment.flags.ae = !answers && config.ecn && config.accurate_ecn;
        if config.probing.is_some() && (!answers || self.sender.probes()) {
            segment.options.probe = Some(Probe { cycle: 0, second: false, answer: false });
        }
        let carries = if answers {
            self.handshake.answer(&mut segment.options) && self.state != State::SynReceived
        } else {
            self.handshake.ask(now, self.ports.to, &mut segment.options)
        };
        if self.sender.flow().end == 0 && !answers {
            self.opened = now;
        }
        self.sender.syn_sent(now);
        if carries {
            let options = segment.options.len() as u64;
            let data = self.sender.data_with_syn(self.early_segment().saturating_sub(options));
            segment.flags.fin = data.fin;
            segment.payload = self.payload(&data);
        }
        if answers {
            self.receiver.acknowledged();
        }
        Some(segment)
    }

    /// Octets of a segment with SYN, options included.
    fn early_segment(&self) -> u64 {
        let known = self.handshake.memory().max_segment.unwrap_or(DEFAULT_SEGMENT);
        u64::from(known.min(self.config.max_segment))
    }

    fn payload(&self, outgoing: &Outgoing) -> Payload {
        Payload {
            content: self.content,
            offset: outgoing.sequence - 1,
            len: u32::try_from(outgoing.len).expect("a segment's length"),
        }
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
            flags: match self.marks {
                Some(marks) => Flags::with_ace(marks),
                None => Flags { ece: self.marked, ..Flags::default() },
            },
            options: Options { timestamps, count: self.handshake.count(), ..Options::default() },
            ecn: Ecn::NotCapable,
            payload: Payload::default(),
        }
    }
}
