//! The cached objects.

use std::collections::BTreeMap;
use std::rc::Rc;

/// Identifies an object: its pattern and its length.
pub(super) type Key = (u64, u64);

/// Objects up to a total size; the least recently used is discarded first.
#[derive(Debug)]
pub(super) struct Store {
    capacity: u64,
    bytes: u64,
    objects: BTreeMap<Key, (Rc<[u8]>, u64)>,
    by_use: BTreeMap<u64, Key>,
    uses: u64,
}

impl Store {
    pub(super) fn new(capacity: u64) -> Self {
        let (objects, by_use) = (BTreeMap::new(), BTreeMap::new());
        Self { capacity, bytes: 0, objects, by_use, uses: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether an object of this size can be cached.
    pub(super) fn keeps(&self, bytes: u64) -> bool {
        bytes <= self.capacity
    }

    pub(super) fn get(&mut self, key: Key) -> Option<Rc<[u8]>> {
        let (object, used) = self.objects.get_mut(&key)?;
        self.by_use.remove(used);
        self.uses += 1;
        *used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(Rc::clone(object))
    }

    pub(super) fn put(&mut self, key: Key, object: Vec<u8>) {
        let len = object.len() as u64;
        if !self.keeps(len) || self.get(key).is_some() {
            return;
        }
        while self.bytes + len > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            let gone = self.objects.remove(&oldest);
            self.bytes -= gone.map_or(0, |(object, _)| object.len() as u64);
        }
        self.bytes += len;
        self.uses += 1;
        self.objects.insert(key, (object.into(), self.uses));
        self.by_use.insert(self.uses, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_object_is_discarded_first() {
        let mut store = Store::new(10);
        for tag in 1..=2 {
            store.put((tag, 4), vec![tag as u8; 4]);
        }
        assert_eq!(store.get((1, 4)).as_deref(), Some(&[1; 4][..]));
        store.put((3, 6), vec![3; 6]);
        assert_eq!((store.get((2, 4)), store.bytes()), (None, 10));
        assert!(store.get((1, 4)).is_some() && store.get((3, 6)).is_some());
        store.put((4, 11), vec![4; 11]);
        assert_eq!((store.get((4, 11)), store.bytes()), (None, 10), "too large");
    }
}
