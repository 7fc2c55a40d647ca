//! The address families that a hub reaches: announced by the hub, stored by the terminal.
//!
//! The announcement has a packet of its own: a receiver that does not know the frame stops
//! reading the packet there (RLY-1.8), and loses nothing else by that.

use super::Streams;
use super::sending::{Control, Packet};
use crate::Families;
use crate::frame::{Frame, Writer};

/// The announcement of this side, or the newest one that was received.
#[derive(Debug, Default)]
pub(super) struct Announcement {
    /// Announcements made so far in this session, and the newest.
    number: u64,
    families: Families,
    /// The newest announcement is not in a packet yet.
    pub(super) due: bool,
    /// Number and value of the newest announcement received.
    received: Option<(u64, Families)>,
}

impl Announcement {
    /// The frame that carries the newest announcement.
    pub(super) fn frame(&self) -> Frame<'static> {
        Frame::Families { number: self.number, families: self.families }
    }

    /// Stores an announcement of the peer, unless a newer one has been received.
    pub(super) fn receive(&mut self, number: u64, families: Families) {
        if self.received.is_none_or(|(newest, _)| number > newest) {
            self.received = Some((number, families));
        }
    }
}

impl Streams {
    /// Announces to the terminal the families that this hub reaches. Nothing is sent as long as
    /// that is what a terminal assumes by itself (RLY-9.2).
    pub(crate) fn announce_families(&mut self, families: Families) {
        if self.announcement.families != families {
            self.announcement.number += 1;
            self.announcement.families = families;
            self.announcement.due = true;
        }
    }

    /// The families that the hub has announced in this session.
    pub(crate) fn families(&self) -> Option<Families> {
        let (_, families) = self.announcement.received.filter(|_| !self.is_hub)?;
        Some(families)
    }

    /// Fills `room` with the announcement if one is due; returns the bytes used and the packet's
    /// handle.
    pub(super) fn announcement_packet(&mut self, room: &mut [u8]) -> Option<(usize, u64)> {
        if !self.announcement.due {
            return None;
        }
        let mut writer = Writer::new(room);
        if !writer.control(&self.announcement.frame()) {
            return None;
        }
        self.announcement.due = false;
        self.controls_out += 1;
        let path = self.paths.current();
        let packet = Packet::of_control(Control::Families, writer.written(), path);
        Some((writer.written(), self.packets.insert(packet) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FamilyReach, Priority, RelayConfig, Target};
    use units::{Instant, Span};

    const ONLY_IPV4: Families = Families { ipv4: FamilyReach::Global, ipv6: FamilyReach::None };

    fn pair() -> (Streams, Streams) {
        let (config, now) = (RelayConfig::new("x"), Instant::ZERO + Span::from_secs(1));
        (Streams::new(&config, false, now), Streams::new(&config, true, now))
    }

    fn packet(streams: &mut Streams) -> (Vec<u8>, u64) {
        let mut room = [0; 1_400];
        let (len, handle) = streams.fresh(&mut room).expect("a packet");
        (room[..len].to_vec(), handle)
    }

    /// RLY-9.1, RLY-9.3
    #[test]
    fn the_newest_announcement_holds_in_whatever_order_they_arrive() {
        let (mut terminal, mut hub) = pair();
        assert_eq!(terminal.families(), None);
        hub.announce_families(ONLY_IPV4);
        let (first, handle) = packet(&mut hub);
        assert_eq!(first, [0x09, 1, 0x02]);
        let partial = Families { ipv6: FamilyReach::Partial, ..ONLY_IPV4 };
        hub.announce_families(partial);
        let (second, _) = packet(&mut hub);
        assert_eq!(second, [0x09, 2, 0x06]);
        terminal.deliver(&second);
        terminal.deliver(&first);
        assert_eq!(terminal.families(), Some(partial), "the first one is older");
        // A retransmission carries the newest announcement.
        let mut room = [0; 100];
        let len = hub.again(handle, &mut room);
        assert_eq!(room[..len], second);
        // A terminal announces nothing.
        hub.deliver(&second);
        assert_eq!((hub.families(), hub.statistics().bad_frames), (None, 1));
        assert_eq!(terminal.statistics().bad_frames, 0);
    }

    /// RLY-9.2
    #[test]
    fn nothing_is_announced_as_long_as_everything_is_reached() {
        let (mut terminal, mut hub) = pair();
        hub.announce_families(Families::default());
        assert!(!hub.has_fresh());
        hub.announce_families(ONLY_IPV4);
        hub.announce_families(ONLY_IPV4);
        terminal.deliver(&packet(&mut hub).0);
        assert!(!hub.has_fresh(), "announced once");
        hub.announce_families(Families::default());
        terminal.deliver(&packet(&mut hub).0);
        assert_eq!(terminal.families(), Some(Families::default()));
    }

    /// RLY-9.2
    #[test]
    fn an_announcement_has_a_packet_of_its_own() {
        let (_, mut hub) = pair();
        let stream = hub.open(hub.now, Target::name("x", 1), Priority::Normal).expect("opened");
        hub.accept(stream).expect("it is open");
        hub.announce_families(ONLY_IPV4);
        let (alone, handle) = packet(&mut hub);
        assert_eq!(alone.len(), 3);
        assert!(packet(&mut hub).0.len() > 3, "the other frames follow");
        // A retransmission without room is put off, and goes alone as well.
        hub.accept(stream).expect("it is open");
        assert_eq!(hub.again(handle, &mut [0; 2]), 0);
        assert_eq!(packet(&mut hub).0, alone);
        assert!(hub.has_fresh());
    }
}
