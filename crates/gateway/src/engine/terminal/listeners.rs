//! The listeners of a terminal.

use super::{MAX_LISTENERS, Terminal};
use crate::engine::accept::confirm_queue::ConfirmQueue;
use crate::engine::accept::dns_service::DnsService;
use crate::engine::accept::listener::{Kind, Listener};
use crate::engine::host::Host;
use std::io;
use std::os::fd::BorrowedFd;

impl Terminal {
    /// Adds all of `new` to its listeners, or none of them. Returns their numbers.
    pub(crate) fn listen(
        &mut self,
        host: &mut dyn Host,
        new: Vec<Listener>,
    ) -> io::Result<Vec<usize>> {
        let mut numbers = Vec::new();
        if self.listeners.len() + new.len() > MAX_LISTENERS {
            let why =
                format!("more than {MAX_LISTENERS} listeners, those included that are to close");
            return Err(io::Error::other(why));
        }
        for listener in new {
            let place = self.listeners.vacant_entry();
            let number = place.key();
            // A slab uses its lowest free index first.
            debug_assert!(number < MAX_LISTENERS);
            if let Err(error) = listener.watch(host, number) {
                self.listen_no_more(&numbers);
                return Err(error);
            }
            place.insert(listener);
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Closes the listeners with these numbers.
    pub(crate) fn listen_no_more(&mut self, numbers: &[usize]) {
        for &number in numbers {
            self.listeners.try_remove(number);
        }
    }

    /// Returns its listeners.
    pub(crate) fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().map(|(_, listener)| listener)
    }

    /// Returns the descriptors of the sockets on which it accepts connections and queries.
    pub(crate) fn listening_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listeners = self.listeners().filter_map(Listener::descriptor);
        listeners.chain(self.dns.iter().flat_map(DnsService::descriptors))
    }

    /// Notes that clients are in the accept queue of a listener.
    pub(crate) fn is_ready(&mut self, listener: usize) {
        if let Some(listener) = self.listeners.get_mut(listener) {
            listener.is_ready();
        }
    }

    /// Returns the next listener with pending clients and advances the turn.
    pub(super) fn next_listener(&mut self, room: bool) -> Option<usize> {
        let found = self.ready_listener(room)?;
        self.turn = found + 1;
        Some(found)
    }

    /// Returns the next listener with pending clients. Without `room` it is one whose clients have
    /// slots already because their SYNs were reinjected.
    pub(super) fn ready_listener(&self, room: bool) -> Option<usize> {
        let expected = self.confirm_queue.as_ref().is_some_and(ConfirmQueue::is_expecting);
        let may = |listener: &Listener| {
            listener.may_accept() && (room || expected && listener.kind == Kind::Transparent)
        };
        let ready = |from| {
            let mut all = self.listeners.iter();
            all.find(|(key, listener)| *key >= from && may(listener)).map(|(key, _)| key)
        };
        ready(self.turn).or_else(|| ready(0))
    }
}
