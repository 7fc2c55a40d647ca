//! DNS of clients: their queries to a terminal, and the name server of the hubs.

use super::{Net, id_of};
use crate::dns::samples::{answer, query};
use crate::engine::{SocketId, Source};
use std::net::SocketAddr;

/// Counters of clients' queries, of their replies, and of the name server's responses.
#[derive(Debug, Default)]
pub(in crate::simulation) struct NameService {
    pub(in crate::simulation) queries: u64,
    pub(in crate::simulation) replies: u64,
    pub(in crate::simulation) responses: u64,
}

impl Net {
    /// A client sends a query to the DNS forwarder at `node`, if there is one.
    pub(in crate::simulation) fn query_name(&mut self, node: usize, client: u8, name: u8) {
        let its = |source| matches!(source, Some(Source::NameQueries(_)));
        let sockets = self.sockets.iter();
        let mut open = sockets.enumerate().filter(|(_, socket)| socket.node == node && socket.open);
        let Some((socket, _)) = open.find(|(_, socket)| its(socket.source)) else { return };
        self.name_service.queries += 1;
        let mut message = query(name, self.rng.below(4) as u8);
        if self.rng.chance(0.05) {
            let at = self.rng.below(message.len() as u64) as usize;
            message[at] ^= 1 << self.rng.below(8);
        }
        let from = SocketAddr::from(([10, 1, node as u8, client], 5300 + u16::from(name)));
        self.on_datagram(socket, from, message);
    }

    /// Handles what has arrived at the name server: a query has a response, which may be malformed,
    /// or none.
    pub(super) fn on_name_server(&mut self, conn: usize) {
        let id: SocketId = id_of(conn, 1);
        if !self.conns[conn].is_open(1) {
            return;
        }
        let mut octets = [0; 2_048];
        // The whole query is waited for, and the end of the connection.
        match self.read(id, &mut octets, false) {
            Ok(count @ 2..) => {
                let length = 2 + usize::from(u16::from_be_bytes([octets[0], octets[1]]));
                if count < length {
                    return;
                }
                let mut rest = length;
                while rest > 0 {
                    let Ok(taken @ 1..) = self.read(id, &mut octets[length - rest..length], true)
                    else {
                        return;
                    };
                    rest -= taken;
                }
                if self.rng.chance(0.1) {
                    return;
                }
                self.name_service.responses += 1;
                let (code, ttl) = (self.rng.below(256) as u8, self.rng.below(20) as u8);
                let answer = answer(octets[2..length].to_vec(), code, ttl);
                let framed = [&(answer.len() as u16).to_be_bytes(), &answer[..]].concat();
                // What does not fit into the buffer is lost, and the look-up with it.
                let _ = self.write(id, &framed);
            }
            Ok(1) => {}
            Ok(_) => drop(self.close(id, false)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => drop(self.close(id, true)),
        }
    }
}
