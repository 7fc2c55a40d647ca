//! The streams of a session by their names.

use crate::stream::Stream;
use crate::target::StreamId;
use slab::Slab;
use std::collections::BTreeMap;

/// Streams in the order of their names.
///
/// A frame takes about ten calls for one stream, so the place of the stream that was last changed is
/// kept.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    /// Where each stream is in `streams`.
    places: BTreeMap<StreamId, usize>,
    streams: Slab<Box<Stream>>,
    last: Option<(StreamId, usize)>,
}

impl StreamTable {
    fn place(&self, id: StreamId) -> Option<usize> {
        match self.last {
            Some((last, place)) if last == id => Some(place),
            Some(_) | None => self.places.get(&id).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(super) fn contains_key(&self, id: &StreamId) -> bool {
        self.place(*id).is_some()
    }

    pub(super) fn get(&self, id: &StreamId) -> Option<&Stream> {
        self.streams.get(self.place(*id)?).map(|stream| &**stream)
    }

    pub(super) fn get_mut(&mut self, id: &StreamId) -> Option<&mut Stream> {
        let place = self.place(*id)?;
        self.last = Some((*id, place));
        self.streams.get_mut(place).map(|stream| &mut **stream)
    }

    /// Inserts a stream whose name is not in the table.
    pub(super) fn insert(&mut self, id: StreamId, stream: Stream) {
        let place = self.streams.insert(Box::new(stream));
        let before = self.places.insert(id, place);
        debug_assert_eq!(before, None, "a name is given once");
    }

    pub(super) fn remove(&mut self, id: &StreamId) -> Option<Box<Stream>> {
        let place = self.places.remove(id)?;
        self.last = None;
        self.streams.try_remove(place)
    }

    /// The names, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &StreamId> {
        self.places.keys()
    }

    /// The streams, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Stream> + Clone {
        self.streams.iter().map(|(_, stream)| &**stream)
    }

    /// The streams, in no particular order.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.streams.iter_mut().map(|(_, stream)| &mut **stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Priority;
    use crate::stream::Opening;

    #[test]
    fn a_name_stands_for_its_own_stream_also_where_another_had_the_place() {
        let mut table = StreamTable::default();
        let [one, two, three] = [1, 2, 3].map(|number| StreamId::new(number, false));
        for (id, minimum) in [(two, 2), (one, 1)] {
            table.insert(id, Stream::new(Opening::Known, Priority::Normal, minimum, 0));
        }
        let minimum = |table: &StreamTable, id| table.get(&id).map(|stream| stream.send.credit(0));
        assert_eq!((minimum(&table, one), minimum(&table, two)), (Some(1), Some(2)));
        assert!(table.keys().eq(&[one, two]));
        assert!(table.remove(&two).is_some() && table.remove(&two).is_none());
        table.insert(three, Stream::new(Opening::Known, Priority::Normal, 3, 0));
        assert_eq!((minimum(&table, two), minimum(&table, three)), (None, Some(3)));
        assert_eq!((table.len(), table.values().count()), (2, 2));
    }
}
