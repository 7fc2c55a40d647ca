//! Tests of one side's discovery on simulated paths.

use super::*;
use units::RngStream;

const OVERHEAD: usize = 52;

enum Back {
    /// A ProbeAck: number and size.
    Answer(u32, usize),
    /// The size of a packet of data that was acknowledged.
    Data(usize),
}

/// A path with a prober and its peer.
struct Bench {
    now: Instant,
    prober: PathMtu,
    conditions: Conditions,
    /// Current path MTU.
    takes: usize,
    /// MTU of the host's own link.
    link: usize,
    loss: f64,
    dark: bool,
    /// Full packets are sent continuously.
    busy: bool,
    /// Messages on the reverse path, with their arrival times.
    back: VecDeque<(Instant, Back)>,
    rng: RngStream,
    /// IP octets of the Probes sent.
    probed: u64,
    probes: u64,
    smallest: usize,
}

impl Bench {
    fn new(most: usize, takes: usize) -> Self {
        let conditions = Conditions {
            round_trip: Span::from_millis(600),
            rate: Some(BitRate::from_mbps(10)),
            back: Some(BitRate::from_mbps(1)),
            overhead: OVERHEAD,
        };
        let mut prober = PathMtu::new(most);
        prober.begin(most);
        let now = Instant::ZERO + Span::from_secs(1);
        let rng = RngStream::new(7, 0, "path");
        let (back, smallest) = (VecDeque::new(), prober.current());
        Self {
            now,
            prober,
            conditions,
            takes,
            link: usize::MAX,
            loss: 0.0,
            dark: false,
            busy: false,
            back,
            rng,
            probed: 0,
            probes: 0,
            smallest,
        }
    }

    fn passes(&mut self, size: usize) -> bool {
        let lost = self.dark || self.rng.chance(self.loss);
        size <= self.takes && !lost
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.step();
            self.now += Span::from_millis(10);
        }
    }

    fn step(&mut self) {
        while self.back.front().is_some_and(|(at, _)| *at <= self.now) {
            match self.back.pop_front().expect("there is one").1 {
                Back::Answer(number, size) => {
                    let mut message = [0; message::ANSWER];
                    message::write_answer(number, size, &mut message);
                    assert!(self.prober.handle(self.now, Sealed::ProbeAck, &message, 32));
                }
                Back::Data(size) => self.prober.data_acknowledged(size),
            }
        }
        while let Some(outgoing) = self.prober.poll_transmit(self.now, &self.conditions) {
            let Outgoing::Probe { number, size } = outgoing else { panic!("nobody probes here") };
            assert_eq!(PathMtu::room(outgoing, OVERHEAD) + OVERHEAD, size);
            if size > self.link {
                self.prober.on_emsgsize(size);
                continue;
            }
            self.probed += size as u64;
            self.probes += 1;
            if self.passes(size) && self.passes(60) {
                self.back
                    .push_back((self.now + self.conditions.round_trip, Back::Answer(number, size)));
            }
        }
        let due = self.prober.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "due at once again: {due:?}");
        if self.busy {
            let size = self.prober.current();
            self.prober.data_sent(self.now, size);
            // STATs are frequent, so a single loss has no effect.
            if self.passes(size) {
                self.back.push_back((self.now + self.conditions.round_trip, Back::Data(size)));
            }
        }
        self.smallest = self.smallest.min(self.prober.current());
    }
}

/// RLY-5.2, RLY-5.3
#[test]
fn the_maximum_size_is_found_by_one_probe() {
    let mut bench = Bench::new(1500, 1500);
    bench.step();
    assert_eq!(bench.prober.current(), 1200, "until something larger was answered");
    bench.run(Span::from_millis(650));
    assert_eq!((bench.prober.current(), bench.probes), (1500, 1));
    bench.run(Span::from_secs(3600));
    assert_eq!(bench.probes, 1, "nothing is left to find");
}

/// RLY-5.3
#[test]
fn any_size_is_found_to_within_eight_bytes() {
    for takes in [576, 900, 1200, 1278, 1280, 1400, 1411, 1452, 1492, 1499, 4352, 8999, 9000] {
        for most in [1500, 9000] {
            let mut bench = Bench::new(most, takes);
            bench.busy = true;
            bench.run(Span::from_secs(120));
            let (found, there) = (bench.prober.current(), takes.min(most));
            assert!(found <= there && there - found < MIN_STEP, "{found} of {there}");
            if COMMON.contains(&there) {
                assert_eq!(found, there, "a common size is found exactly");
            }
        }
    }
}

/// RLY-5.6
#[test]
fn kernel_hints_are_probed_first() {
    let mut bench = Bench::new(1500, 1400);
    bench.prober.set_hint(1400);
    bench.run(Span::from_millis(650));
    assert_eq!(bench.prober.current(), 1400);
    // A wrong value, above or below, has no effect on the result.
    for lie in [700, 1490] {
        let mut bench = Bench::new(1500, 1400);
        bench.prober.set_hint(lie);
        bench.run(Span::from_secs(60));
        assert_eq!(bench.prober.current(), 1400, "{lie}");
        bench.prober.set_hint(600);
        bench.run(Span::from_secs(10));
        assert_eq!(bench.prober.current(), 1400);
        assert!(bench.smallest >= 1200);
    }
}

/// RLY-5.6: an ICMP message for a path whose MTU has decreased takes effect within a few RTTs.
#[test]
fn an_icmp_message_speeds_up_the_detection() {
    let mut bench = Bench::new(1500, 1500);
    bench.busy = true;
    bench.run(Span::from_secs(5));
    bench.takes = 1300;
    bench.prober.set_hint(1300);
    bench.run(Span::from_secs(4));
    assert_eq!(bench.prober.current(), 1300);
}

/// RLY-5.5
#[test]
fn an_mtu_black_hole_is_detected_without_icmp() {
    let mut bench = Bench::new(1500, 1500);
    bench.busy = true;
    bench.run(Span::from_secs(5));
    bench.takes = 1400;
    bench.run(Span::from_secs(9));
    assert!(bench.prober.current() <= 1400, "{}", bench.prober.current());
    bench.run(Span::from_secs(60));
    assert_eq!(bench.prober.current(), 1400);
    // Also below the base PLPMTU.
    bench.takes = 700;
    bench.run(Span::from_secs(20));
    assert!(bench.prober.current() <= 700);
    bench.run(Span::from_secs(60));
    assert!((693..=700).contains(&bench.prober.current()), "{}", bench.prober.current());
}

/// RLY-5.7
#[test]
fn a_larger_path_mtu_is_found_after_ten_minutes() {
    let mut bench = Bench::new(1500, 1400);
    bench.run(Span::from_secs(120));
    bench.takes = 1500;
    bench.run(RAISE_INTERVAL - Span::from_secs(120));
    assert_eq!(bench.prober.current(), 1400);
    bench.run(Span::from_secs(121));
    assert_eq!(bench.prober.current(), 1500);
}

/// RLY-5.4: neither random loss nor an outage counts as a decrease.
#[test]
fn loss_and_outages_do_not_reduce_the_size() {
    for seed in 0..40 {
        let mut bench = Bench::new(1500, 1500);
        bench.rng = RngStream::new(seed, 0, "path");
        bench.busy = true;
        bench.loss = 0.2;
        bench.run(Span::from_secs(60));
        assert_eq!(bench.prober.current(), 1500, "seed {seed}");
        bench.smallest = 1500;
        bench.dark = true;
        bench.run(Span::from_secs(90));
        bench.dark = false;
        bench.run(Span::from_secs(60));
        assert_eq!(bench.smallest, 1500, "seed {seed}");
    }
}

/// RLY-5.4: the path MTU is found at 20 % loss in each direction.
#[test]
fn the_path_mtu_is_found_despite_loss() {
    let mut right = 0;
    for seed in 0..40 {
        let mut bench = Bench::new(1500, 1400);
        bench.rng = RngStream::new(seed, 0, "path");
        bench.loss = 0.2;
        bench.run(Span::from_secs(300));
        assert!(bench.prober.current() <= 1400);
        right += u32::from(bench.prober.current() == 1400);
    }
    assert!(right >= 36, "{right} of 40");
}

/// RLY-5.4: in an outage probes are rare.
#[test]
fn probes_are_rare_in_an_outage() {
    let mut bench = Bench::new(1500, 1500);
    bench.dark = true;
    bench.run(Span::from_secs(600));
    assert!(bench.probes < 70, "{}", bench.probes);
    bench.dark = false;
    bench.run(Span::from_secs(35));
    assert_eq!(bench.prober.current(), 1500);
}

/// RLY-5.8
#[test]
fn probes_take_a_twentieth_of_a_low_rate_path() {
    let mut bench = Bench::new(1500, 1300);
    bench.conditions.rate = Some(BitRate::from_kbps(16));
    bench.conditions.back = None;
    bench.run(Span::from_secs(100));
    // A twentieth of 200,000 bytes, and packets in flight at the end.
    assert!(bench.probed <= 10_000 + 2_100, "{}", bench.probed);
    // A size whose serialization takes more than a second is not used.
    let mut bench = Bench::new(1500, 1300);
    bench.conditions.rate = Some(BitRate::from_kbps(1));
    bench.run(Span::from_secs(600));
    assert_eq!(bench.probes, 0);
    // On a low-rate reverse path, ProbeAcks take a twentieth of the rate.
    let mut bench = Bench::new(1500, 1300);
    bench.conditions.back = Some(BitRate::from_kbps(1));
    bench.run(Span::from_secs(600));
    let answers = bench.probes * (message::ANSWER + OVERHEAD) as u64;
    assert!(answers <= 600 * 125 / PROBE_DIVISOR + 120, "{answers}");
    // Without a rate nothing is probed.
    let mut bench = Bench::new(1500, 1500);
    bench.conditions.rate = None;
    bench.busy = true;
    bench.run(Span::from_secs(60));
    assert_eq!(bench.probes, 0);
    bench.conditions.rate = Some(BitRate::from_kbps(8));
    bench.run(Span::from_secs(60));
    assert_eq!(bench.probes, 0);
    bench.conditions.rate = Some(BitRate::from_kbps(12));
    bench.run(Span::from_secs(20));
    assert_eq!(bench.prober.current(), 1500, "once there is one it begins");
}

/// RLY-5.6: the error of the host's own link is reliable, and costs no RTT.
#[test]
fn sizes_above_the_mtu_of_the_own_link_are_not_probed() {
    let mut bench = Bench::new(9000, 9000);
    bench.prober.set_hint(1500);
    bench.link = 1500;
    bench.run(Span::from_secs(2));
    assert_eq!(bench.prober.current(), 1500);
    // The link's MTU decreases: no packet is sent at a size that cannot leave.
    bench.prober.on_emsgsize(1500);
    assert_eq!(bench.prober.current(), 1200);
}

/// RLY-5.6
#[test]
fn a_path_change_starts_probing() {
    let mut bench = Bench::new(1500, 1500);
    bench.run(Span::from_secs(5));
    bench.takes = 1280;
    bench.prober.on_path_change();
    bench.run(Span::from_secs(30));
    assert_eq!(bench.prober.current(), 1280);
}

/// RLY-5.1
#[test]
fn probe_acks_are_bounded_and_contain_the_received_size() {
    let mut path = PathMtu::new(1500);
    for number in 0..100u32 {
        assert!(path.handle(Instant::ZERO, Sealed::Probe, &number.to_be_bytes(), 1472));
    }
    let conditions = Bench::new(1500, 1500).conditions;
    let mut answers = Vec::new();
    while let Some(answer) = path.poll_transmit(Instant::ZERO, &conditions) {
        answers.push(answer);
    }
    assert_eq!(answers.len(), MAX_ANSWERS);
    assert_eq!(answers[0], Outgoing::Answer { number: 0, size: 1472 });
    let mut payload = [0; message::ANSWER];
    assert_eq!(PathMtu::write(answers[0], &mut payload), Sealed::ProbeAck);
    assert!(!path.handle(Instant::ZERO, Sealed::Probe, &[1, 2], 26));
    assert!(!path.handle(Instant::ZERO, Sealed::ProbeAck, &[0; 7], 31));
}

/// RLY-5.6: a refusal of a packet below the minimum has no effect, from any source.
#[test]
fn the_size_stays_above_the_minimum() {
    for size in [0, 1, MIN_MTU - 1, MIN_MTU] {
        let mut bench = Bench::new(1500, 1500);
        bench.run(Span::from_secs(10));
        bench.prober.on_emsgsize(size);
        bench.run(Span::from_secs(10));
        assert!(bench.prober.current() >= MIN_MTU, "{size}");
        // The on_emsgsize size is probed again after ten minutes.
        bench.run(Span::from_secs(700));
        assert_eq!(bench.prober.current(), 1500, "{size}");
    }
}
