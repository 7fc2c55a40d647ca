//! A terminal that sends POLLs continuously: the responses share the link with other terminals.

mod crowd;

use association::{Config, HEADER_LEN, OVERHEAD, Sealed, Terminal, TransmitBatch};
use crowd::Crowd;
use relay::Plans;
use units::{BitRate, RngStream, Span};
use xstp::Seq24;
use xstp::wire::{Begin, Delivery, Poll, Profile, Segment};

/// A terminal with an association and a session, whose segments the test builds.
struct Hostile {
    association: Terminal,
    polls: u32,
    next: u32,
}

/// Packets of which every other one is missing, so that their list fills several STATs.
const HOLES: u32 = 6_000;
/// A frame without effect: a NEED without a grant.
const NOTHING: [u8; 3] = [8, 1, 0];

impl Hostile {
    fn join(crowd: &mut Crowd) -> Self {
        let config = Config::new("hostile");
        let mut association = Terminal::new(config, crowd.now, RngStream::new(9, 0, "hostile"));
        let mut buffer = [0; 1500];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        assert!(association.poll_transmit(crowd.now, &mut batch));
        crowd.send_as_other(batch.datagrams().next().expect("a hello").to_vec());
        assert!(crowd.run(Span::from_secs(3), |crowd| !crowd.heard.is_empty()));
        for mut welcome in std::mem::take(&mut crowd.heard) {
            association.handle_datagram(crowd.now, &mut welcome).expect("a welcome");
        }
        let mut hostile = Self { association, polls: 0, next: 0 };
        let begin = Begin {
            incarnation: 1,
            window: 1 << 16,
            max_segment: 1_440,
            delivery: Delivery::Immediate,
        };
        hostile.send(crowd, Segment::begin(Seq24::ZERO, 0, begin));
        crowd.run(Span::from_secs(1), |_| false);
        assert!(!crowd.heard.is_empty(), "no session");
        hostile
    }

    fn send(&mut self, crowd: &mut Crowd, segment: Segment<'_>) {
        let mut datagram = vec![0; 1400];
        let len = segment.encode(&Profile::Sealed, &mut datagram[HEADER_LEN..]).expect("room");
        datagram.truncate(len + OVERHEAD);
        assert!(self.association.seal(crowd.now, Sealed::Data, &mut datagram));
        crowd.send_as_other(datagram);
    }

    /// Sends every other one of many packets, within its link rate.
    fn leave_holes(&mut self, crowd: &mut Crowd) {
        while self.next < HOLES {
            self.send(crowd, Segment::data(Seq24::new(self.next), &NOTHING));
            self.next += 2;
            crowd.run(Span::from_micros(500), |_| false);
        }
    }

    /// Sends a thousand POLLs per second for a time; returns the octets sent to it.
    fn ask(&mut self, crowd: &mut Crowd, millis: u64) -> u64 {
        let before = crowd.octets_to_other;
        for _ in 0..millis {
            self.polls += 1;
            let poll = Poll { seq: self.polls, next: Seq24::new(self.next) };
            self.send(crowd, Segment::poll(self.polls, poll));
            crowd.run(Span::from_millis(1), |_| false);
        }
        crowd.octets_to_other - before
    }
}

/// Returns the octets that all others have read within `millis`, with or without a hostile
/// terminal, and the rate of the data sent to that, in kbit/s.
fn honest(down: BitRate, holes: bool, asks: bool, millis: u64) -> (f64, f64) {
    let mut crowd = Crowd::new(20, down, BitRate::from_mbps(10), Plans::default());
    for boat in 0..20 {
        crowd.open(boat, "bulk");
    }
    let mut hostile = Hostile::join(&mut crowd);
    if holes {
        hostile.leave_holes(&mut crowd);
    }
    let all = |crowd: &Crowd| (0..20).map(|boat| crowd.total(boat)).sum::<u64>();
    let mut span = |crowd: &mut Crowd, millis: u64| {
        if asks {
            return hostile.ask(crowd, millis);
        }
        crowd.run(Span::from_millis(millis), |_| false);
        0
    };
    span(&mut crowd, 5_000);
    let before = all(&crowd);
    let octets = span(&mut crowd, millis);
    let kbps = |octets: u64| octets as f64 * 8.0 / millis as f64;
    (kbps(all(&crowd) - before), kbps(octets))
}

/// RLY-8.1
#[test]
fn continuous_polls_cost_others_no_more_than_one_share() {
    for down in [1, 20].map(BitRate::from_mbps) {
        for holes in [false, true] {
            let (alone, _) = honest(down, holes, false, 10_000);
            let (asked, taken) = honest(down, holes, true, 10_000);
            let kept = asked / alone;
            println!("{down}, holes {holes}: others keep {kept:.4}; it had {taken:.0} kbit/s");
            // It is one of twenty-one terminals, and the others lose at most its share.
            let share = down.as_bps() as f64 / 1e3 / 21.0;
            assert!(taken < share * 1.02, "{taken} of {share} kbit/s");
            assert!(kept > 20.0 / 21.0 - 0.01, "{kept}");
        }
    }
}
