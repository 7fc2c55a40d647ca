//! Requests of proxy clients, and the proxies' replies.

use super::{ClientKind, Stage, Task, is_later};
use crate::simulation::net::Net;
use std::net::IpAddr;

impl Task {
    fn request(&self) -> Vec<u8> {
        let port = self.server.port().to_be_bytes();
        let mut request = vec![5, 1, 0, 5, 1, 0];
        match (&self.kind, self.server.ip()) {
            (ClientKind::Socks(Some(name)), _) => {
                request.extend([3, name.len() as u8]);
                request.extend(name.as_bytes());
            }
            (ClientKind::Socks(None), IpAddr::V4(v4)) => {
                request.push(1);
                request.extend(v4.octets());
            }
            (ClientKind::Socks(None), IpAddr::V6(v6)) => {
                request.push(4);
                request.extend(v6.octets());
            }
            (ClientKind::Connect, _) => {
                let server = self.server;
                return format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").into();
            }
            (ClientKind::Malformed, _) => return b"GET / HTTP/1.0\r\n\r\n".to_vec(),
            (ClientKind::Silent | ClientKind::HalfOpen | ClientKind::Intercepted, _) => {
                return Vec::new();
            }
        }
        request.extend(port);
        request
    }

    /// Exchanges requests and replies with the proxy; `sides[0].sent` counts the octets of the
    /// request.
    pub(super) fn ask(&mut self, net: &mut Net) {
        let Some(id) = self.sides[0].id else { return };
        let request = self.request();
        while let Some(rest @ [_, ..]) = request.get(self.sides[0].sent as usize..) {
            match net.write(id, rest) {
                Ok(count) => self.sides[0].sent += count as u64,
                Err(error) if is_later(&error) => break,
                Err(error) => return self.sides[0].fail(net, &error),
            }
        }
        let Stage::Asking(mut heard) = self.stage.clone() else { return };
        let mut octet = [0];
        loop {
            match net.read(id, &mut octet, true) {
                Ok(0) => {
                    self.sides[0].end_seen = true;
                    return self.sides[0].close(net, false);
                }
                Ok(_) => heard.push(octet[0]),
                Err(error) if is_later(&error) => break,
                Err(error) => return self.sides[0].fail(net, &error),
            }
            let code = match self.kind {
                ClientKind::Connect => status(&heard),
                _ => (heard.len() == 12).then(|| u16::from(heard[3])),
            };
            if let Some(code) = code {
                self.sides[0].sent = 0;
                self.stage = if code == 0 { Stage::Open } else { Stage::Refused(code) };
                return;
            }
        }
        self.stage = Stage::Asking(heard);
    }
}

/// Returns the code of a complete reply to CONNECT; zero for success.
fn status(heard: &[u8]) -> Option<u16> {
    if !heard.ends_with(b"\r\n\r\n") {
        return None;
    }
    let code = std::str::from_utf8(heard.get(9..12)?).ok()?.parse().ok()?;
    Some(if code == 200 { 0 } else { code })
}
