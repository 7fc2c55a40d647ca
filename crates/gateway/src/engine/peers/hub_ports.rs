//! Which of the hub's UDP ports a path uses.
//!
//! ```text
//!   port 0 ──silence, or the time of `hop`──▶ port 1 ──▶ ... ──▶ port 0
//! ```
//!
//! The hub answers from the port to which a terminal sends, so the association stays, and what is
//! under way from another port arrives as well.

use crate::{HubAddress, LinkSection};
use units::{Instant, Span};

/// Time for a response at the first port. A handshake over a geostationary satellite takes 1.2 s.
const FIRST: Span = Span::from_millis(2_500);
/// Time for a response at each further port: the longest interval between two Hellos (5 s,
/// `association::Config`) and a part of a round trip.
const NEXT: Span = Span::from_millis(5_500);
/// Minimum time for a response in a session, which is asked for one at once.
const MIN_RESPONSE: Span = Span::from_secs(2);

/// What is known of the hub's responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The hub responds.
    pub(crate) now: bool,
    /// There is a session.
    pub(crate) is_connected: bool,
    pub(crate) round_trip: Option<Span>,
}

/// The ports of a hub.
#[derive(Debug)]
pub(crate) struct HubPorts {
    all: Vec<u16>,
    current: usize,
    /// Time for which a port is used that works.
    hop: Option<Span>,
    /// When the present port was chosen, or the hub began to answer at it.
    since: Option<Instant>,
    is_silent: bool,
    /// Whether another port was tried without an answer since the last one.
    has_tried: bool,
    due: Option<Instant>,
}

impl HubPorts {
    /// The ports of `hub`, if there are several.
    pub(crate) fn new(hub: &HubAddress, link: &LinkSection) -> Option<Self> {
        let mut all = vec![hub.port()];
        for &port in &link.ports {
            if !all.contains(&port) {
                all.push(port);
            }
        }
        let (hop, since, due) = (link.hop, None, None);
        let (is_silent, has_tried) = (true, false);
        (all.len() > 1).then_some(Self { all, current: 0, hop, since, is_silent, has_tried, due })
    }

    /// Moves to the next port, and returns it.
    pub(crate) fn next(&mut self, now: Instant) -> u16 {
        self.current = (self.current + 1) % self.all.len();
        self.since = Some(now);
        self.all[self.current]
    }

    /// Returns the next port if it is to be used now.
    pub(crate) fn review(&mut self, now: Instant, answer: Answer) -> Option<u16> {
        let mut since = *self.since.get_or_insert(now);
        let has_changed = std::mem::replace(&mut self.is_silent, !answer.now) == answer.now;
        if answer.now {
            self.has_tried = false;
            if has_changed {
                since = now;
                self.since = Some(now);
            }
        }
        // The silence of a session was detected after two round trips.
        let is_lost = has_changed && !answer.now;
        self.due = if is_lost { Some(now) } else { self.time(answer).map(|time| since + time) };
        self.due.filter(|&due| due <= now)?;
        self.has_tried |= !answer.now;
        self.due = self.time(answer).map(|time| now + time);
        Some(self.next(now))
    }

    /// Returns for how long a port is used.
    fn time(&self, answer: Answer) -> Option<Span> {
        match answer {
            Answer { now: true, .. } => self.hop,
            Answer { is_connected: true, round_trip, .. } => {
                Some(round_trip.map_or(NEXT, |round_trip| MIN_RESPONSE.max(round_trip * 3)))
            }
            Answer { .. } => Some(if self.has_tried { NEXT } else { FIRST }),
        }
    }

    /// UDP is not used now.
    pub(crate) fn pause(&mut self, now: Instant) {
        (self.since, self.due, self.is_silent) = (Some(now), None, true);
    }

    /// Returns when to call [`HubPorts::review`].
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: Answer = Answer { now: false, is_connected: false, round_trip: None };
    const LOST: Answer =
        Answer { now: false, is_connected: true, round_trip: Some(Span::from_millis(600)) };
    const ANSWERS: Answer = Answer { now: true, ..LOST };

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Span::from_millis(millis)
    }

    fn ports(hop: Option<Span>) -> HubPorts {
        let hub = "hub.example:7000".parse().unwrap();
        let link = LinkSection { ports: vec![4500, 7000, 443], hop, ..LinkSection::default() };
        HubPorts::new(&hub, &link).unwrap()
    }

    #[test]
    fn a_hub_with_one_port_has_no_choice() {
        let hub = "192.0.2.1:7000".parse().unwrap();
        assert!(HubPorts::new(&hub, &LinkSection::default()).is_none());
    }

    /// TLS-5.2
    #[test]
    fn ports_are_tried_in_turn_until_the_hub_answers() {
        let mut ports = ports(None);
        assert_eq!(ports.review(at(0), SILENT), None);
        assert_eq!(ports.poll_timeout(), Some(at(2_500)));
        assert_eq!(ports.review(at(2_499), SILENT), None);
        assert_eq!(ports.review(at(2_500), SILENT), Some(4500));
        assert_eq!(ports.poll_timeout(), Some(at(8_000)));
        assert_eq!(ports.review(at(8_000), SILENT), Some(443));
        assert_eq!(ports.review(at(13_500), SILENT), Some(7000));
        assert_eq!((ports.review(at(14_000), ANSWERS), ports.poll_timeout()), (None, None));
    }

    /// TLS-5.2
    #[test]
    fn a_silent_port_is_left_at_once() {
        let mut ports = ports(None);
        ports.review(at(0), ANSWERS);
        assert_eq!(ports.review(at(9_000), LOST), Some(4500));
        assert_eq!(ports.review(at(9_100), LOST), None);
        assert_eq!(ports.poll_timeout(), Some(at(11_000)));
        assert_eq!(ports.review(at(11_000), LOST), Some(443));
        assert_eq!((ports.review(at(11_600), ANSWERS), ports.poll_timeout()), (None, None));
    }

    /// TLS-5.3
    #[test]
    fn ports_hop_while_the_hub_answers() {
        let mut ports = ports(Some(Span::from_secs(30)));
        assert_eq!(ports.review(at(0), SILENT), None);
        assert_eq!(ports.review(at(1_200), ANSWERS), None);
        assert_eq!(ports.poll_timeout(), Some(at(31_200)));
        assert_eq!(ports.review(at(31_200), ANSWERS), Some(4500));
        assert_eq!(ports.poll_timeout(), Some(at(61_200)));
        assert_eq!(ports.review(at(31_201), ANSWERS), None);
        assert_eq!(ports.review(at(61_200), ANSWERS), Some(443));
    }
}
