//! What a terminal may send, told by the hub, and what waits at it, told by the terminal.
//!
//! Both are one number that the newest word says: a word that is lost is said again with what is
//! true by then.

use super::Streams;
use super::sending::Control;
use crate::frame::CREDIT_UNIT;
use units::{BitRate, Instant, Span};

/// A terminal tells no more often than this what waits.
const NEED_INTERVAL: Span = Span::from_millis(250);
/// A terminal heeds no lower grant, and a hub gives none, bits per second: a full packet would
/// keep the terminal silent for so long that it would not find out that its hub is gone, or
/// another.
pub(crate) const LEAST_GRANT: u64 = 8_000;

/// The word that this side says, and the one that it has heard.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// How many words were said, and the last of them.
    number: u64,
    value: u64,
    /// When it was last looked at whether there is another to say.
    looked_at: Option<Instant>,
    /// The newest word heard.
    heard: Option<(u64, u64)>,
    news: bool,
}

impl Grants {
    /// The newest word.
    pub(super) fn told(&self) -> (u64, u64) {
        (self.number, self.value)
    }

    /// A word of the peer's. One that an earlier packet carried says nothing any more.
    pub(super) fn receive(&mut self, number: u64, value: u64) {
        if self.heard.is_none_or(|(newest, _)| number > newest) {
            self.heard = Some((number, value));
            self.news = true;
        }
    }
}

impl Streams {
    /// Tells a terminal what it may send.
    pub(crate) fn grant(&mut self, rate: BitRate) {
        let value = (rate.as_bps() / 1_000).max(1);
        let told = self.paths.grants();
        if told.number == 0 || told.value != value {
            self.say(value);
        }
    }

    fn say(&mut self, value: u64) {
        let told = self.paths.grants_mut();
        told.number += 1;
        told.value = value;
        // Those that wait to be written will say this one.
        let word = Control::Rate { path: self.paths.current() };
        if !self.controls.contains(&word) {
            self.controls.push_back(word);
        }
    }

    /// What the hub has granted to this terminal, once for each new word.
    pub(crate) fn take_granted(&mut self) -> Option<BitRate> {
        // A hub's news are for `take_need`.
        let news = !self.is_hub && std::mem::take(&mut self.paths.grants_mut().news);
        self.granted().filter(|_| news)
    }

    /// What the hub has granted to this terminal.
    pub(crate) fn granted(&self) -> Option<BitRate> {
        self.granted_on(self.paths.current())
    }

    /// As [`granted`](Self::granted), for the path with this number.
    pub(crate) fn granted_on(&self, path: usize) -> Option<BitRate> {
        let (_, kbps) = self.paths.grants_of(path)?.heard.filter(|_| !self.is_hub)?;
        BitRate::new(kbps.saturating_mul(1_000).max(LEAST_GRANT))
    }

    /// What a terminal has newly said that waits at it, bytes.
    pub(crate) fn take_need(&mut self) -> Option<u64> {
        let news = self.is_hub && std::mem::take(&mut self.paths.grants_mut().news);
        let (_, units) = self.paths.grants().heard.filter(|_| news)?;
        Some(units.saturating_mul(CREDIT_UNIT))
    }

    /// Unsent bytes that credit allows to be sent now.
    fn sendable(&self) -> u64 {
        let (mut own, mut on_shared) = (0, 0);
        for send in self.streams.values().map(|stream| &stream.send) {
            let covered = send.unsent().min(send.credit(0));
            own += covered;
            if send.credit(1) > send.credit(0) {
                on_shared += send.unsent() - covered;
            }
        }
        own + on_shared.min(self.shared.left())
    }

    /// A terminal that was granted a rate tells now and then what waits, with what it sends.
    pub(super) fn tell_need(&mut self) {
        let waits = |at: Instant| self.now.since(at) < NEED_INTERVAL;
        if self.granted().is_none() || self.paths.grants().looked_at.is_some_and(waits) {
            return;
        }
        self.paths.grants_mut().looked_at = Some(self.now);
        let value = (self.sendable() + self.datagrams.waiting()) / CREDIT_UNIT;
        // The hub counts off what comes, and is told again that as much waits as before.
        if value > 0 || self.paths.grants().value > 0 {
            self.say(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Priority, RelayConfig, Target};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn pair() -> (Streams, Streams) {
        let config = RelayConfig::new("x");
        (Streams::new(&config, false, at(0)), Streams::new(&config, true, at(0)))
    }

    /// Fills a packet; its bytes and its handle.
    fn packet(streams: &mut Streams) -> (Vec<u8>, u64) {
        let mut room = [0; 1_400];
        let (len, handle) = streams.fresh(&mut room).expect("something to say");
        (room[..len].to_vec(), handle)
    }

    /// RLY-7.1, RLY-7.3
    #[test]
    fn the_newest_grant_holds_in_whatever_order_they_come() {
        let (mut terminal, mut hub) = pair();
        hub.grant(BitRate::from_kbps(512));
        let (first, handle) = packet(&mut hub);
        assert_eq!(first, [0x07, 1, 0x80, 0x04]);
        hub.grant(BitRate::from_kbps(64));
        let (second, _) = packet(&mut hub);
        terminal.deliver(&second);
        assert_eq!(terminal.take_granted(), Some(BitRate::from_kbps(64)));
        terminal.deliver(&first);
        assert_eq!(terminal.take_granted(), None, "it is older");
        assert_eq!(terminal.granted(), Some(BitRate::from_kbps(64)));
        // Lost and sent again it says what holds by now.
        let mut room = [0; 100];
        let len = hub.again(handle, &mut room);
        assert_eq!(room[..len], second);
        hub.grant(BitRate::from_kbps(64));
        assert!(!hub.has_fresh(), "nothing new");
        hub.deliver(&second);
        terminal.deliver(&[0x08, 1, 1]);
        assert_eq!((hub.statistics().bad_frames, terminal.statistics().bad_frames), (1, 1));
        assert_eq!(hub.granted(), None);
        terminal.deliver(&[0x07, 3, 0]);
        assert_eq!(terminal.take_granted(), Some(BitRate::from_kbps(8)), "enough to be heard");
    }

    /// RLY-7.2
    #[test]
    fn a_terminal_that_was_granted_a_rate_tells_now_and_then_what_waits() {
        let (mut terminal, mut hub) = pair();
        let stream = terminal.open(at(0), Target::name("x", 1), Priority::Normal).expect("opened");
        terminal.write(at(0), stream, &[0; 9_000]).expect("taken");
        hub.deliver(&packet(&mut terminal).0);
        assert_eq!(hub.take_need(), None, "it was granted nothing");
        terminal.deliver(&[0x07, 1, 0x80, 0x04]);
        hub.deliver(&packet(&mut terminal).0);
        let need = hub.take_need().expect("told with the data");
        assert!((6_000..9_000).contains(&need), "{need}");
        terminal.set_time(at(249), None, None);
        hub.deliver(&packet(&mut terminal).0);
        assert_eq!(hub.take_need(), None);
        terminal.set_time(at(250), None, None);
        hub.deliver(&packet(&mut terminal).0);
        assert!(hub.take_need().is_some_and(|less| less < need));
        // As much as before is said again, and that nothing waits once.
        let mut told = Vec::new();
        for round in 2..8 {
            terminal.set_time(at(round * 250), None, None);
            let more = if round < 5 { 1_300 } else { 500 };
            terminal.write(at(round * 250), stream, &vec![0; more]).expect("taken");
            while terminal.has_fresh() {
                hub.deliver(&packet(&mut terminal).0);
                told.extend(hub.take_need());
            }
        }
        assert_eq!(told, [4_096, 1_024, 1_024, 0]);
    }
}
