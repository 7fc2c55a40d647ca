//! Properties of all segments.

use super::bad::seal_checksum;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Contents of a segment; `kinds` selects those that are used.
#[derive(Debug, Clone)]
struct Source {
    kinds: Kinds,
    number: Seq24,
    timestamp: u32,
    poll_seq: u32,
    ahead: u32,
    begin: Begin,
    window: u32,
    arrival: Option<Arrival>,
    skip: u32,
    lengths: Vec<u32>,
    note: Vec<u8>,
    payload: Vec<u8>,
}

impl Source {
    /// The contents that the published profile can encode.
    fn published(mut self) -> Self {
        self.begin.incarnation &= 0xff;
        self.begin.delivery = Delivery::InOrder;
        self.begin.window &= 0xffff;
        self.window = self.begin.window;
        self.timestamp = self.poll_seq;
        self.arrival = None;
        self.note.clear();
        self
    }

    fn segment(&self) -> Segment<'_> {
        let has = |kinds| self.kinds.contains(kinds);
        let end = End { incarnation: self.begin.incarnation };
        let mut segment = Segment::empty(self.number);
        segment.control = match self.kinds.bits() & 0xf0 {
            0x10 => Some(Control::Begin(self.begin)),
            0x50 => Some(Control::BeginAck(BeginAck { begin: self.begin, echo: !self.timestamp })),
            0x20 => Some(Control::End(end)),
            0x60 => Some(Control::EndAck(end)),
            0x80 => Some(Control::Reset(end)),
            _ => None,
        };
        if self.kinds.bits() & 0xf0 == 0x10 {
            segment.timestamp = self.timestamp;
        }
        let runs = RunList::new(self.skip, &self.lengths).unwrap();
        if has(Kinds::SD) {
            segment = segment.and_data(self.number, &self.payload);
        }
        if has(Kinds::POLL) {
            let next = self.number.next().add(self.ahead);
            segment = segment.and_poll(self.timestamp, Poll { seq: self.poll_seq, next });
        }
        if has(Kinds::STAT) {
            let echo = Echo { seq: self.poll_seq, timestamp: self.timestamp };
            let (window, arrival) = (self.window, self.arrival);
            let received_below = self.number;
            segment = segment.and_stat(Stat { echo, received_below, window, arrival, runs });
        }
        if has(Kinds::USTAT) {
            let odd = (self.lengths.len() - 1) | 1;
            let gaps = RunList::new(self.skip, &self.lengths[..odd]).unwrap();
            segment = segment.and_ustat(Ustat::new(self.number, gaps).unwrap());
        }
        if has(Kinds::POLL) || has(Kinds::STAT) {
            segment = segment.and_note(&self.note);
        }
        segment
    }
}

fn kinds() -> impl Strategy<Value = Kinds> {
    // REPAIR is combined with nothing, and has a test of its own.
    let legal = (0..=255).filter_map(Kinds::from_bits).filter(|&kinds| kinds != Kinds::REPAIR);
    let legal: Vec<Kinds> = legal.collect();
    proptest::sample::select(legal)
}

fn begin() -> impl Strategy<Value = Begin> {
    let delivery = prop_oneof![Just(Delivery::InOrder), Just(Delivery::Immediate)];
    (any::<u32>(), 0..=Seq24::HALF, any::<u16>(), delivery).prop_map(
        |(incarnation, window, max_segment, delivery)| Begin {
            incarnation,
            window,
            max_segment,
            delivery,
        },
    )
}

fn source() -> impl Strategy<Value = Source> {
    let numbers = (any::<u32>().prop_map(Seq24::new), any::<u32>(), any::<u32>());
    let lists = (0..1u32 << 22, vec(1..1u32 << 14, 2..200));
    let arrival = proptest::option::of((any::<u32>(), any::<u32>()));
    let octets = (vec(any::<u8>(), 0..40), vec(any::<u8>(), 0..200));
    (kinds(), numbers, 0..Seq24::HALF, begin(), 0..=Seq24::HALF, arrival, lists, octets).prop_map(
        |(kinds, (number, timestamp, poll_seq), ahead, begin, window, arrival, list, octets)| {
            Source {
                kinds,
                number,
                timestamp,
                poll_seq,
                ahead,
                begin,
                window,
                arrival: arrival.map(|(at, octets)| Arrival { at, octets }),
                skip: list.0,
                lengths: list.1,
                note: octets.0,
                payload: octets.1,
            }
        },
    )
}

/// Asserts that octets which can be decoded are the encoding of the result.
fn assert_canonical(profile: &Profile, answer: &Profile, octets: &[u8]) {
    if let Ok(segment) = Segment::decode(profile, octets) {
        let mut out = std::vec![0; octets.len()];
        assert_eq!(segment.encode(answer, &mut out), Ok(octets.len()));
        assert_eq!(out, octets);
    }
}

proptest! {
    #[test]
    fn sealed_segments_survive_encoding(source in source()) {
        let segment = source.segment();
        let mut out = [0; 4096];
        let len = segment.encode(&SEALED, &mut out).unwrap();
        prop_assert_eq!(Segment::decode(&SEALED, &out[..len]), Ok(segment));
    }

    #[test]
    fn published_segments_survive_encoding(source in source()) {
        let source = source.published();
        let segment = source.segment();
        let mut out = [0; 4096];
        let len = segment.encode(&sender(), &mut out).unwrap();
        prop_assert_eq!(Segment::decode(&receiver(), &out[..len]), Ok(segment));
    }

    // A truncated segment is invalid, or has a shorter payload.
    #[test]
    fn cut_segments_do_not_panic(source in source(), published: bool) {
        let (from, to) = if published { (sender(), receiver()) } else { (SEALED, SEALED) };
        let source = if published { source.published() } else { source };
        let segment = source.segment();
        let mut out = [0; 4096];
        let len = segment.encode(&from, &mut out).unwrap();
        for cut in 0..len {
            let mut octets = out[..cut].to_vec();
            if cut >= 16 {
                seal_checksum(&to, &mut octets);
            }
            match Segment::decode(&to, &octets) {
                Ok(shorter) => {
                    let payload = segment.payload().unwrap();
                    let kept = shorter.payload().unwrap();
                    prop_assert!(payload.starts_with(kept) && kept.len() < payload.len());
                }
                Err(DecodeError::Truncated { expected, found, .. }) => {
                    prop_assert!(found < expected);
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }

    #[test]
    fn random_octets_are_canonical_or_rejected(
        octets in vec(any::<u8>(), 0..80),
        kinds in kinds(),
    ) {
        assert_canonical(&SEALED, &SEALED, &octets);
        let mut legal = octets;
        if let Some(first) = legal.first_mut() {
            *first = kinds.bits();
        }
        assert_canonical(&SEALED, &SEALED, &legal);
    }

    #[test]
    fn a_run_budget_is_sufficient(
        source in source(),
        room in 40..400usize,
        published: bool,
    ) {
        let profile = if published { sender() } else { SEALED };
        let mut budget = RunBudget::stat(&profile, room);
        let count = source.lengths.chunks(2).take_while(|pair| budget.take(pair)).count();
        let lengths = &source.lengths[..(2 * count).min(source.lengths.len())];
        let runs = RunList::new(source.skip, lengths).unwrap();
        let kinds = Kinds::STAT;
        let source = Source { kinds, note: Vec::new(), ..source.clone() };
        let mut stat = source.segment().stat_part().unwrap();
        stat.runs = runs;
        let head = if published { 16 } else { 4 + 1 };
        prop_assert!(Segment::stat(source.number, stat).overhead(&profile) <= head + room);
    }
}
