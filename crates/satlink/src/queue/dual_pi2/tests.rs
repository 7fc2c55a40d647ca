use super::*;
use std::vec::Vec;

#[derive(Clone, Debug)]
struct Packet {
    ecn: u8,
}

impl Frame for Packet {
    fn len(&self) -> usize {
        1_000
    }
    fn mark(&mut self) -> bool {
        let capable = self.ecn != 0;
        self.ecn |= if capable { 3 } else { 0 };
        capable
    }
    fn is_l4s(&self) -> bool {
        self.ecn & 1 == 1
    }
}

fn at(micros: u64) -> Instant {
    Instant::ZERO + Span::from_micros(micros)
}

fn waiting(micros: u64, ecn: u8) -> Waiting<Packet> {
    Waiting { frame: Packet { ecn }, offered_at: at(micros), on_air: 1_000 }
}

/// `count` frames of `ecn` that arrived at 0.
fn queue(counts: [(u8, usize); 2]) -> DualQueue<Packet> {
    let mut queue = DualQueue::new(DualPi2::default());
    for (ecn, count) in counts {
        (0..count).for_each(|_| queue.push(waiting(0, ecn)));
    }
    queue
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Whole(u8),
    Marked(u8),
    Dropped(u8),
}

fn fate(exit: &Exit<Packet>) -> Fate {
    match exit {
        Exit::Goes { waiting, marked: false } => Fate::Whole(waiting.frame.ecn),
        Exit::Goes { waiting, marked: true } => Fate::Marked(waiting.frame.ecn),
        Exit::Shed(waiting) => Fate::Dropped(waiting.frame.ecn),
    }
}

fn fates(queue: &mut DualQueue<Packet>, micros: u64, count: usize) -> Vec<Fate> {
    (0..count).map(|_| fate(&queue.pop(at(micros)).expect("a frame"))).collect()
}

fn count(fates: &[Fate], wanted: Fate) -> usize {
    fates.iter().filter(|&&fate| fate == wanted).count()
}

#[test]
fn base_probability_follows_the_pi_controller() {
    // alpha = 0.1 * 0.015 / 0.1² = 0.15, beta = 0.3 / 0.1 = 3. The head has waited 15, 30 and 45 ms:
    // 0.15 * 0 + 3 * 0.015 = 0.045; + 0.15 * 0.015 + 0.045 = 0.09225; + 0.15 * 0.03 + 0.045.
    let mut queue = queue([(0, 1), (0, 0)]);
    let mut seen = Vec::new();
    for micros in [14_999, 15_000, 30_000, 45_000] {
        queue.advance(at(micros));
        seen.push((queue.base * 1e6).round() as u64);
    }
    assert_eq!(seen, [0, 45_000, 92_250, 141_750]);
    // The same by one event after the last update.
    let mut late = DualQueue::new(DualPi2::default());
    late.push(waiting(0, 0));
    late.advance(at(59_000));
    assert!((late.base - queue.base).abs() < 1e-12);
}

#[test]
fn l_queue_is_marked_by_its_ramp_and_by_the_coupling() {
    // 1 ms is half of the ramp from 0.8 to 1.2 ms: every second frame; the last one leaves no queue.
    let mut native = queue([(1, 101), (0, 0)]);
    let fates_native = fates(&mut native, 1_000, 101);
    assert!((49..=50).contains(&count(&fates_native, Fate::Marked(3))), "{fates_native:?}");
    assert_eq!(fates_native[100], Fate::Whole(1));
    assert_eq!([ramp(Span::from_micros(800)), ramp(Span::from_micros(1_300))], [0.0, 1.0]);
    // p' of 0.1 marks a fifth of L and drops a hundredth of C.
    let mut coupled = queue([(1, 500), (0, 500)]);
    coupled.base = 0.1;
    let all = fates(&mut coupled, 100, 1_000);
    assert!((98..=101).contains(&count(&all, Fate::Marked(3))), "{}", count(&all, Fate::Marked(3)));
    assert!((4..=5).contains(&count(&all, Fate::Dropped(0))), "{}", count(&all, Fate::Dropped(0)));
}

#[test]
fn classic_ecn_is_marked_until_overload() {
    let mut queue = queue([(2, 400), (0, 0)]);
    queue.base = 0.4;
    let marked = count(&fates(&mut queue, 100, 200), Fate::Marked(3));
    assert!((31..=32).contains(&marked), "0.16 of 200: {marked}");
    queue.base = 0.5;
    let all = fates(&mut queue, 100, 200);
    assert_eq!(count(&all, Fate::Marked(3)), 0, "p'² has reached p_Cmax");
    assert!((49..=50).contains(&count(&all, Fate::Dropped(2))));
}

#[test]
fn overloaded_l_queue_drops_as_the_c_queue() {
    let mut queue = queue([(1, 200), (0, 0)]);
    queue.base = 0.6;
    let all = fates(&mut queue, 100, 200);
    let (dropped, whole) = (count(&all, Fate::Dropped(1)), count(&all, Fate::Whole(1)));
    assert!((71..=72).contains(&dropped), "0.36 of 200: {dropped}");
    assert!(whole <= 1, "all others are marked: {whole}");
}

#[test]
fn c_queue_keeps_a_tenth_of_the_rate() {
    let mut queue = queue([(1, 900), (0, 900)]);
    let all = fates(&mut queue, 0, 900);
    let classic = count(&all, Fate::Whole(0));
    assert!((80..=90).contains(&classic), "{classic}");
    // The L queue alone leaves nothing unserved, and nothing is served out of an empty queue.
    let mut alone = self::queue([(1, 3), (0, 0)]);
    assert_eq!(fates(&mut alone, 0, 3), [Fate::Whole(1); 3]);
    assert!(alone.pop(at(0)).is_none());
}

#[test]
fn idle_time_lets_the_probability_decay_to_zero_without_a_loop() {
    let mut queue = queue([(0, 1), (0, 0)]);
    queue.advance(at(300_000));
    assert!(queue.base > 0.5);
    while queue.pop(at(300_000)).is_some() {}
    queue.advance(at(60_000_000));
    assert_eq!(queue.base, 0.0);
    let far = Instant::ZERO + Span::from_secs(1_000_000_000);
    queue.advance(far);
    assert!(
        queue.next_update.is_some_and(|next| next > far && next <= far + Span::from_millis(15))
    );
}
