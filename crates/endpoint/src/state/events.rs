//! Events of the relays.

use super::{Entry, Incoming, Key, Side, State};
use relay::{DisconnectReason, Event, PeerId, RefuseReason};
use std::io::ErrorKind;
use std::task;

impl State {
    /// Processes the events of the relays; returns whether there were any.
    pub(super) fn handle_events(&mut self) -> bool {
        let mut had = false;
        loop {
            let next = match &mut self.side {
                Side::Client(relay, _) => relay.poll_event().map(|event| (None, event)),
                Side::Server(hub) => hub.poll_event().map(|(peer, event)| (Some(peer), event)),
            };
            let Some((peer, event)) = next else { return had };
            had = true;
            self.handle_event(peer, event);
        }
    }

    fn handle_event(&mut self, peer: Option<PeerId>, event: Event) {
        match event {
            Event::Connected => {}
            Event::Disconnected { reason } => self.lose(peer, reason),
            Event::Opened { stream, target } => {
                let number = self.insert((peer, stream));
                let peer = match (&self.side, peer) {
                    (Side::Server(hub), Some(peer)) => hub.name(peer).unwrap_or_default(),
                    (Side::Server(_) | Side::Client(..), _) => "",
                };
                let peer = peer.to_owned();
                self.incoming.push_back(Incoming { number, target, peer });
                self.accepting.drain(..).for_each(task::Waker::wake);
            }
            Event::Readable { stream } | Event::Ending { stream, .. } => {
                let number = self.numbers.get(&(peer, stream)).copied();
                let dropped =
                    |number: &u64| self.entries.get(number).is_some_and(|entry| entry.is_dropped);
                match number.filter(dropped) {
                    Some(number) => self.reset_dropped(number),
                    None => self.wake((peer, stream)),
                }
            }
            Event::Accepted { stream } | Event::Writable { stream } => self.wake((peer, stream)),
            Event::Ended { stream } => {
                if let Some(entry) = self.entry((peer, stream)) {
                    entry.has_ended = true;
                }
                self.wake((peer, stream));
            }
            Event::Refused { stream, reason } => {
                let kind = match reason {
                    RefuseReason::ConnectionRefused => ErrorKind::ConnectionRefused,
                    RefuseReason::TimedOut => ErrorKind::TimedOut,
                    RefuseReason::Policy => ErrorKind::PermissionDenied,
                    RefuseReason::NameNotFound => ErrorKind::NotFound,
                    RefuseReason::HostUnreachable => ErrorKind::HostUnreachable,
                    RefuseReason::NetworkUnreachable => ErrorKind::NetworkUnreachable,
                    RefuseReason::Limit | RefuseReason::Other => ErrorKind::Other,
                };
                self.close((peer, stream), Some((kind, reason.words())));
            }
            Event::Reset { stream, .. } => {
                let error = (ErrorKind::ConnectionReset, "the peer has reset the stream");
                self.close((peer, stream), Some(error));
            }
            Event::Released { stream } => self.close((peer, stream), None),
        }
    }

    fn entry(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(self.numbers.get(&key)?)
    }

    fn wake(&mut self, key: Key) {
        if let Some(entry) = self.entry(key) {
            entry.wakers.drain(..).for_each(task::Waker::wake);
        }
    }

    /// Handles that the relay has closed the stream.
    fn close(&mut self, key: Key, error: Option<(ErrorKind, &'static str)>) {
        self.wake(key);
        let Some(number) = self.numbers.remove(&key) else { return };
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.key = None;
        entry.error = error;
        if entry.is_dropped {
            self.entries.remove(&number);
        }
    }

    fn lose(&mut self, peer: Option<PeerId>, reason: DisconnectReason) {
        let text = match reason {
            DisconnectReason::PeerRestarted => "the peer has restarted",
            DisconnectReason::NoResponse => "the peer does not respond",
            DisconnectReason::Closed => "the peer has closed the session",
            DisconnectReason::Unreadable { .. } => "the peer sent a malformed frame",
            DisconnectReason::Rejected { .. } => "the peer rejected a frame",
        };
        let keys = self.numbers.keys().filter(|key| key.0 == peer).copied();
        for key in keys.collect::<Vec<Key>>() {
            self.close(key, Some((ErrorKind::ConnectionAborted, text)));
        }
    }

    /// Closes all streams.
    pub(super) fn close_all(&mut self) {
        for key in self.numbers.keys().copied().collect::<Vec<Key>>() {
            self.close(key, Some((ErrorKind::NotConnected, "the endpoint is closed")));
        }
        self.accepting.drain(..).for_each(task::Waker::wake);
    }
}
