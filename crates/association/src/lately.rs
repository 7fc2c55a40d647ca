//! Who was heard lately, and who ever was: by numbers that stand for addresses, in memory of fixed
//! size.

use units::{Instant, Span};

/// Those who are remembered were heard at most twice this time ago, and those who were heard within
/// it are remembered: longer than a terminal waits between two Hellos.
const REMEMBERED: Span = Span::from_secs(6);
/// Bits for each such time.
const BITS: u64 = 1 << 23;
/// Bits that stand for one sender. With 50,000 a second that nobody has heard before, one in 400
/// is taken for another at most.
const EACH: u64 = 3;

/// Who was heard lately. It may be wrong about some who were not, and never about who was.
#[derive(Debug, Default)]
pub(crate) struct Lately {
    /// This time's and the last one's, empty while nobody was heard.
    bits: [Vec<u64>; 2],
    since: Instant,
}

impl Lately {
    pub(crate) fn has(&mut self, now: Instant, sender: u64) -> bool {
        self.turn(now);
        let has = |bits: &Vec<u64>| {
            !bits.is_empty() && places(sender).all(|(word, bit)| bits[word] & bit != 0)
        };
        self.bits.iter().any(has)
    }

    pub(crate) fn put(&mut self, now: Instant, sender: u64) {
        self.turn(now);
        if self.bits[0].is_empty() {
            self.bits[0] = vec![0; (BITS / 64) as usize];
        }
        places(sender).for_each(|(word, bit)| self.bits[0][word] |= bit);
    }

    fn turn(&mut self, now: Instant) {
        let past = now.since(self.since);
        if past < REMEMBERED {
            return;
        }
        let [this, last] = &mut self.bits;
        *last = if past < REMEMBERED * 2 { std::mem::take(this) } else { Vec::new() };
        *this = Vec::new();
        self.since = now;
    }
}

/// Where the bits of a sender are.
fn places(sender: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, step) = (sender, (sender >> 32) | 1);
    (0..EACH).map(move |number| {
        let bit = first.wrapping_add(number.wrapping_mul(step)) % BITS;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

/// Places for those who were ever known.
const PLACES: usize = 4096;

/// Senders that proved at some time who they are. Each has two places; a newcomer whose places are
/// both taken drives one out.
#[derive(Debug)]
pub(crate) struct Acquainted(Box<[u64]>);

impl Acquainted {
    pub(crate) fn new() -> Self {
        Self(vec![0; PLACES].into())
    }

    pub(crate) fn has(&self, sender: u64) -> bool {
        Self::of(sender).into_iter().any(|place| self.0[place] == sender)
    }

    pub(crate) fn put(&mut self, sender: u64) {
        if !self.has(sender) {
            let [first, second] = Self::of(sender);
            let free = self.0[first] != 0 && self.0[second] == 0;
            self.0[if free { second } else { first }] = sender;
        }
    }

    fn of(sender: u64) -> [usize; 2] {
        [sender, sender >> 32].map(|part| (part % PLACES as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn who_was_heard_is_remembered_for_six_to_twelve_seconds() {
        let mut lately = Lately::default();
        for heard in [0, 17_999, 60_000, 77_999, 100_000] {
            assert!(!lately.has(at(heard), 7), "not before {heard}");
            lately.put(at(heard), 7);
            assert!(lately.has(at(heard + 5_999), 7), "{heard}");
            assert!(!lately.has(at(heard + 12_000), 7), "{heard}");
            assert!(!lately.has(at(heard + 5_999), 8));
        }
    }

    #[test]
    fn few_are_taken_for_others_in_a_flood() {
        let mut rng = RngStream::new(1, 0, "senders");
        let mut lately = Lately::default();
        let mut wrong = 0;
        for number in 0..600_000 {
            let (now, sender) = (at(number / 50), rng.next_u64());
            wrong += u32::from(lately.has(now, sender));
            lately.put(now, sender);
        }
        assert!(wrong > 0, "the memory has a bound");
        assert!(wrong < 600_000 / 400, "{wrong}");
    }

    #[test]
    fn who_is_acquainted_stays_so_among_some_hundreds() {
        let mut rng = RngStream::new(1, 0, "senders");
        let mut acquainted = Acquainted::new();
        let senders: Vec<u64> = (0..500).map(|_| rng.next_u64()).collect();
        senders.iter().for_each(|&sender| acquainted.put(sender));
        let known = senders.iter().filter(|&&sender| acquainted.has(sender)).count();
        assert!(known >= 490, "{known}");
        assert!(!(0..10_000).any(|_| acquainted.has(rng.next_u64())));
    }
}
