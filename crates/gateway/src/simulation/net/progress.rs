//! Progress of a task's connection towards its server.

use super::tcp::{Conn, Owner};
use super::{Net, conn_of};
use crate::simulation::task::{ClientKind, Task};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::simulation) enum Progress {
    /// Its client's SYN has no response: a gateway holds it, or has not received it.
    Held,
    /// A gateway accepts it, and no gateway has connected to its server.
    Accepted,
    /// This gateway has connected to its server.
    Connected(usize),
    /// It bypasses all gateways.
    Bypassing,
}

impl Net {
    /// Returns the progress of a running task.
    pub(in crate::simulation) fn progress_of(&self, task: &Task) -> Progress {
        let Some(client) = self.client_of(task) else { return Progress::Accepted };
        if let Owner::Task(_) = client.ends[1].owner {
            return Progress::Bypassing;
        }
        // The handshake with the server may be in progress or just complete.
        let reaches = |conn: &&Conn| conn.ends[1].owner == Owner::Task(task.number);
        match self.conns.iter().rfind(reaches).map(|conn| conn.ends[0].owner) {
            Some(Owner::Node(gateway)) => Progress::Connected(gateway),
            Some(Owner::Task(_)) => Progress::Bypassing,
            None if self.is_held(task) => Progress::Held,
            None => Progress::Accepted,
        }
    }

    /// Returns whether the SYN of an intercepted client has no response.
    pub(in crate::simulation) fn is_held(&self, task: &Task) -> bool {
        let awaits = self.client_of(task).is_some_and(Conn::awaits_answer);
        task.kind == ClientKind::Intercepted && awaits
    }

    /// Returns whether the client of a task is connected to a gateway.
    pub(in crate::simulation) fn is_accepted(&self, task: &Task) -> bool {
        self.client_of(task).is_some_and(|client| client.has_arrived(self.now))
    }

    fn client_of(&self, task: &Task) -> Option<&Conn> {
        task.sides[0].id.map(|id| &self.conns[conn_of(id).0])
    }
}
