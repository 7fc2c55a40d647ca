//! Which way the connection of a task has taken so far.

use super::tcp::{Conn, Owner};
use super::{Net, conn_of};
use crate::simulation::task::{ClientKind, Task};

/// A connection's way to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Way {
    /// Its client's SYN is not answered: a gateway holds it, or has not received it.
    Held,
    /// A gateway has accepted it, or will, and no gateway has reached its server.
    Begun,
    /// This gateway has connected to its server.
    Through(usize),
    /// It goes past all gateways.
    Past,
}

impl Net {
    /// The way of a running task.
    pub(in crate::simulation) fn way_of(&self, task: &Task) -> Way {
        let Some(client) = self.client_of(task) else { return Way::Begun };
        if let Owner::Task(_) = client.ends[1].owner {
            return Way::Past;
        }
        // A connection may be on its way to the server, or have just arrived.
        let reaches = |conn: &&Conn| conn.ends[1].owner == Owner::Task(task.number);
        match self.conns.iter().rfind(reaches).map(|conn| conn.ends[0].owner) {
            Some(Owner::Node(gateway)) => Way::Through(gateway),
            Some(Owner::Task(_)) => Way::Past,
            None if self.is_held(task) => Way::Held,
            None => Way::Begun,
        }
    }

    /// Whether the SYN of an intercepted client is not answered.
    pub(in crate::simulation) fn is_held(&self, task: &Task) -> bool {
        let awaits = self.client_of(task).is_some_and(Conn::awaits_answer);
        task.kind == ClientKind::Intercepted && awaits
    }

    /// Whether the client of a task is connected to a gateway.
    pub(in crate::simulation) fn has_come_in(&self, task: &Task) -> bool {
        self.client_of(task).is_some_and(|client| client.has_arrived(self.now))
    }

    fn client_of(&self, task: &Task) -> Option<&Conn> {
        task.sides[0].id.map(|id| &self.conns[conn_of(id).0])
    }
}
