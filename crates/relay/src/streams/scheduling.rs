//! Classes in which streams and flows wait for their turns.

use super::Streams;
use crate::fair::Owner;
use crate::scheduler::{Class, Entry, Place, class};
use crate::target::StreamId;
use units::Instant;

impl Streams {
    /// Puts the stream into its queue if it has something to send.
    pub(super) fn schedule(&mut self, id: StreamId) {
        let shared = self.shared.left();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.scheduled {
            return;
        }
        if !stream.is_ready(shared) {
            if !stream.cut && stream.send.waits_for_shared() {
                self.wait_shared.insert(id);
            }
            return;
        }
        stream.scheduled = true;
        let owner = stream.owner;
        let Some(place) = self.place_of(self.now, id) else { return };
        self.scheduler.push(place, owner, Entry::Stream(id));
    }

    /// Where the stream waits for its turn: one that has sent little goes before the bulk of others
    /// only as long as its owner has sent little too.
    pub(super) fn place_of(&self, now: Instant, id: StreamId) -> Option<Place> {
        let stream = self.streams.get(&id)?;
        let little = stream.lately.is_little(now);
        let (place, owner) = (class(stream.priority, stream.service, little), stream.owner);
        Some(self.within_share(now, place, owner))
    }

    /// Returns the class in which data of the stream would be sent now.
    pub(crate) fn class_of(&self, now: Instant, id: StreamId) -> Option<Class> {
        self.place_of(now, id).map(|place| place.class)
    }

    /// `place`, or that of bulk when the owner's streams and flows have sent more than little and
    /// others wait.
    pub(super) fn within_share(&self, now: Instant, mut place: Place, owner: Owner) -> Place {
        if place.promoted
            && self.scheduler.has_others(owner)
            && !self.senders.is_little(now, self.rate, owner)
        {
            place.class = Class::Bulk;
        }
        place
    }
}
