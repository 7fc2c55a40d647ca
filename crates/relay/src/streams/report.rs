//! A terminal's report: sent by the terminal, stored by the hub (RLY-11).

use super::Streams;
use super::sending::{Control, Packet};
use crate::frame::Writer;

/// The report of this side, or the newest one that was received.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Reports made so far in this session, and the newest.
    number: u64,
    content: Vec<u8>,
    /// The newest report is not in a packet yet.
    pub(super) due: bool,
    /// Number and content of the newest report received.
    received: Option<(u64, Vec<u8>)>,
}

impl Report {
    /// Writes the frame of the newest report if it fits.
    pub(super) fn write(&self, writer: &mut Writer<'_>) -> bool {
        writer.report(self.number, &self.content)
    }

    /// Stores a report of the peer, unless a newer one has been received.
    pub(super) fn receive(&mut self, number: u64, content: &[u8]) {
        if self.received.as_ref().is_none_or(|(newest, _)| number > *newest) {
            self.received = Some((number, content.to_vec()));
        }
    }
}

impl Streams {
    /// Sends `content` to the hub, unless it has that.
    pub(crate) fn send_report(&mut self, content: &[u8]) {
        if self.report.content != content {
            self.report.number += 1;
            self.report.content = content.to_vec();
            self.report.due = true;
        }
    }

    /// The newest report that the terminal has sent in this session.
    pub(crate) fn report(&self) -> Option<&[u8]> {
        self.report.received.as_ref().map(|(_, content)| content.as_slice())
    }

    /// Fills `room` with the report if one is due; returns the bytes used and the packet's handle.
    pub(super) fn report_packet(&mut self, room: &mut [u8]) -> Option<(usize, u64)> {
        if !self.report.due {
            return None;
        }
        let mut writer = Writer::new(room);
        if !self.report.write(&mut writer) {
            return None;
        }
        self.report.due = false;
        self.controls_out += 1;
        let packet = Packet::of_control(Control::Report, writer.written(), self.paths.current());
        Some((writer.written(), self.packets.insert(packet) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RelayConfig;
    use units::Instant;

    /// RLY-11.1, RLY-11.3
    #[test]
    fn the_newest_report_holds_in_whatever_order_they_arrive() {
        let config = RelayConfig::new("x");
        let mut terminal = Streams::new(&config, false, Instant::ZERO);
        let mut hub = Streams::new(&config, true, Instant::ZERO);
        let packet = |streams: &mut Streams| {
            let mut room = [0; 500];
            let (len, handle) = streams.fresh(&mut room).expect("a packet");
            (room[..len].to_vec(), handle)
        };
        terminal.send_report(b"one");
        let (first, handle) = packet(&mut terminal);
        assert_eq!(first, [0x12, 4, 1, b'o', b'n', b'e']);
        terminal.send_report(b"two");
        let (second, _) = packet(&mut terminal);
        hub.deliver(&second);
        hub.deliver(&first);
        assert_eq!(hub.report(), Some(b"two".as_slice()));
        // A retransmission carries the newest report, and a repetition is not sent.
        let mut room = [0; 500];
        let len = terminal.again(handle, &mut room);
        assert_eq!(room[..len], second);
        terminal.send_report(b"two");
        assert!(!terminal.has_fresh());
        // A hub sends none.
        terminal.deliver(&second);
        assert_eq!((terminal.report(), terminal.statistics().unknown_frames), (None, 1));
    }
}
