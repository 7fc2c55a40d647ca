//! One side's search over a path that drops what is too large, and more.

use super::*;
use units::RngStream;

const OVERHEAD: usize = 52;

enum Back {
    /// A ProbeAck: number and size.
    Answer(u32, usize),
    /// The size of a packet of data that was acknowledged.
    Data(usize),
}

/// A path, a prober before it and a peer behind it.
struct Bench {
    now: Instant,
    prober: PathMtu,
    way: Conditions,
    /// What passes now.
    takes: usize,
    /// What this host's own link takes.
    link: usize,
    loss: f64,
    dark: bool,
    /// Full packets are sent all the time.
    busy: bool,
    /// What is on its way back, and when it arrives.
    back: VecDeque<(Instant, Back)>,
    rng: RngStream,
    /// IP bytes of probes sent.
    probed: u64,
    probes: u64,
    smallest: usize,
}

impl Bench {
    fn new(most: usize, takes: usize) -> Self {
        let way = Conditions {
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
            way,
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
                    let mut word = [0; word::ANSWER];
                    word::write_answer(number, size, &mut word);
                    assert!(self.prober.handle(self.now, Sealed::ProbeAck, &word, 32));
                }
                Back::Data(size) => self.prober.data_acknowledged(size),
            }
        }
        while let Some(outgoing) = self.prober.poll_transmit(self.now, &self.way) {
            let Outgoing::Probe { number, size } = outgoing else { panic!("nobody probes here") };
            assert_eq!(PathMtu::room(outgoing, OVERHEAD) + OVERHEAD, size);
            if size > self.link {
                self.prober.refused(size);
                continue;
            }
            self.probed += size as u64;
            self.probes += 1;
            if self.passes(size) && self.passes(60) {
                self.back.push_back((self.now + self.way.round_trip, Back::Answer(number, size)));
            }
        }
        let due = self.prober.poll_timeout();
        assert!(due.is_none_or(|due| due > self.now), "due at once again: {due:?}");
        if self.busy {
            let size = self.prober.current();
            self.prober.data_sent(self.now, size);
            // A STAT is one of many: it is as good as never lost.
            if self.passes(size) {
                self.back.push_back((self.now + self.way.round_trip, Back::Data(size)));
            }
        }
        self.smallest = self.smallest.min(self.prober.current());
    }
}

/// RLY-5.2, RLY-5.3
#[test]
fn a_path_that_takes_all_is_found_out_by_one_probe() {
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
            assert!(found <= there && there - found < CLOSE, "{found} of {there}");
            if COMMON.contains(&there) {
                assert_eq!(found, there, "a common size is found exactly");
            }
        }
    }
}

/// RLY-5.6
#[test]
fn what_the_kernel_says_is_tried_first_and_not_believed() {
    let mut bench = Bench::new(1500, 1400);
    bench.prober.set_hint(1400);
    bench.run(Span::from_millis(650));
    assert_eq!(bench.prober.current(), 1400);
    // A lie, above or below, changes nothing in the end.
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

/// RLY-5.6: what a router says about a path that did shrink is acted upon within a few round trips.
#[test]
fn a_router_that_speaks_makes_it_quick() {
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
fn a_path_that_shrinks_without_a_word_is_noticed_by_its_silence() {
    let mut bench = Bench::new(1500, 1500);
    bench.busy = true;
    bench.run(Span::from_secs(5));
    bench.takes = 1400;
    bench.run(Span::from_secs(9));
    assert!(bench.prober.current() <= 1400, "{}", bench.prober.current());
    bench.run(Span::from_secs(60));
    assert_eq!(bench.prober.current(), 1400);
    // And below what nearly every path takes.
    bench.takes = 700;
    bench.run(Span::from_secs(20));
    assert!(bench.prober.current() <= 700);
    bench.run(Span::from_secs(60));
    assert!((693..=700).contains(&bench.prober.current()), "{}", bench.prober.current());
}

/// RLY-5.7
#[test]
fn a_path_that_grows_is_found_after_ten_minutes() {
    let mut bench = Bench::new(1500, 1400);
    bench.run(Span::from_secs(120));
    bench.takes = 1500;
    bench.run(AGAIN - Span::from_secs(120));
    assert_eq!(bench.prober.current(), 1400);
    bench.run(Span::from_secs(121));
    assert_eq!(bench.prober.current(), 1500);
}

/// RLY-5.4: neither random loss nor an outage is taken for a path that shrank.
#[test]
fn loss_and_outages_do_not_shrink_it() {
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

/// RLY-5.4: with a fifth of all packets lost each way it still finds what there is.
#[test]
fn loss_does_not_hide_what_the_path_takes() {
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

/// RLY-5.4: in an outage probes become rare.
#[test]
fn an_outage_is_not_filled_with_probes() {
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
fn probes_take_a_twentieth_of_a_narrow_way() {
    let mut bench = Bench::new(1500, 1300);
    bench.way.rate = Some(BitRate::from_kbps(16));
    bench.way.back = None;
    bench.run(Span::from_secs(100));
    // A twentieth of 200,000 bytes, and what was under way at the end.
    assert!(bench.probed <= 10_000 + 2_100, "{}", bench.probed);
    // Where a packet would take more than a second it is not worth having.
    let mut bench = Bench::new(1500, 1300);
    bench.way.rate = Some(BitRate::from_kbps(1));
    bench.run(Span::from_secs(600));
    assert_eq!(bench.probes, 0);
    // A narrow way back: answers take a twentieth of it.
    let mut bench = Bench::new(1500, 1300);
    bench.way.back = Some(BitRate::from_kbps(1));
    bench.run(Span::from_secs(600));
    let answers = bench.probes * (word::ANSWER + OVERHEAD) as u64;
    assert!(answers <= 600 * 125 / PART + 120, "{answers}");
    // Without a rate there is no knowing.
    let mut bench = Bench::new(1500, 1500);
    bench.way.rate = None;
    bench.busy = true;
    bench.run(Span::from_secs(60));
    assert_eq!(bench.probes, 0);
    bench.way.rate = Some(BitRate::from_kbps(8));
    bench.run(Span::from_secs(60));
    assert_eq!(bench.probes, 0);
    bench.way.rate = Some(BitRate::from_kbps(12));
    bench.run(Span::from_secs(20));
    assert_eq!(bench.prober.current(), 1500, "once there is one it begins");
}

/// RLY-5.6: the host's own link is certain, and costs no round trip.
#[test]
fn what_the_own_link_refuses_is_not_asked_again() {
    let mut bench = Bench::new(9000, 9000);
    bench.prober.set_hint(1500);
    bench.link = 1500;
    bench.run(Span::from_secs(2));
    assert_eq!(bench.prober.current(), 1500);
    // The link shrinks under it: no packet is tried at a size that cannot leave.
    bench.prober.refused(1500);
    assert_eq!(bench.prober.current(), 1200);
}

/// RLY-5.6
#[test]
fn a_peer_that_moved_is_probed_again() {
    let mut bench = Bench::new(1500, 1500);
    bench.run(Span::from_secs(5));
    bench.takes = 1280;
    bench.prober.moved();
    bench.run(Span::from_secs(30));
    assert_eq!(bench.prober.current(), 1280);
}

/// RLY-5.1
#[test]
fn answers_are_few_and_say_what_arrived() {
    let mut path = PathMtu::new(1500);
    for number in 0..100u32 {
        assert!(path.handle(Instant::ZERO, Sealed::Probe, &number.to_be_bytes(), 1472));
    }
    let way = Bench::new(1500, 1500).way;
    let mut answers = Vec::new();
    while let Some(answer) = path.poll_transmit(Instant::ZERO, &way) {
        answers.push(answer);
    }
    assert_eq!(answers.len(), MAX_ANSWERS);
    assert_eq!(answers[0], Outgoing::Answer { number: 0, size: 1472 });
    let mut payload = [0; word::ANSWER];
    assert_eq!(PathMtu::write(answers[0], &mut payload), Sealed::ProbeAck);
    assert!(!path.handle(Instant::ZERO, Sealed::Probe, &[1, 2], 26));
    assert!(!path.handle(Instant::ZERO, Sealed::ProbeAck, &[0; 7], 31));
}

/// RLY-5.6: a refusal of a packet smaller than the smallest is survived, whoever says so.
#[test]
fn nothing_is_smaller_than_the_smallest() {
    for size in [0, 1, MIN_MTU - 1, MIN_MTU] {
        let mut bench = Bench::new(1500, 1500);
        bench.run(Span::from_secs(10));
        bench.prober.refused(size);
        bench.run(Span::from_secs(10));
        assert!(bench.prober.current() >= MIN_MTU, "{size}");
        // What it has refused is looked for again after ten minutes.
        bench.run(Span::from_secs(700));
        assert_eq!(bench.prober.current(), 1500, "{size}");
    }
}
