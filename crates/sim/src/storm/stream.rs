//! A connection with in-order delivery and a source and a sink of octets.

use super::host::Instance;
use crate::{Pattern, StreamCheck};
use units::Instant;
use xstp::Connection;
use xstp::session::{Event, Session, SessionConfig};

/// Octets per read or write.
const PIECE: usize = 8_192;

/// A connection with its application.
pub(crate) struct StreamInstance {
    connection: Connection,
    pattern: Pattern,
    size: u64,
    written: u64,
    ended: bool,
    check: Option<StreamCheck>,
    error: Option<String>,
}

impl StreamInstance {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            pattern: Pattern(0),
            size: 0,
            written: 0,
            ended: false,
            check: None,
            error: None,
        }
    }

    fn write(&mut self, now: Instant) {
        let mut piece = [0; PIECE];
        while self.written < self.size {
            let len = (self.size - self.written).min(PIECE as u64);
            let len = (len as usize).min(self.connection.room());
            if len == 0 {
                return;
            }
            self.pattern.fill(self.written, &mut piece[..len]);
            // A closed connection accepts nothing; its event follows.
            let Ok(taken) = self.connection.write(&piece[..len]) else { return };
            self.written += taken as u64;
        }
        if !self.ended {
            self.ended = true;
            self.connection.end(now);
        }
    }

    fn read(&mut self) {
        let Some(check) = &mut self.check else { return };
        let mut piece = [0; PIECE];
        loop {
            let len = self.connection.read(&mut piece);
            if len == 0 {
                return;
            }
            if let Err(broken) = check.take(&piece[..len]) {
                self.error.get_or_insert(broken.to_string());
            }
        }
    }
}

impl Instance for StreamInstance {
    fn connect(config: &SessionConfig, now: Instant, incarnation: u32) -> Self {
        Self::new(Connection::connect(config, now, incarnation))
    }

    fn listen(config: &SessionConfig, last: Option<u32>) -> Self {
        Self::new(match last {
            Some(last) => Connection::listen_after(config, last),
            None => Connection::listen(config),
        })
    }

    fn session(&self) -> &Session {
        self.connection.session()
    }

    fn set_task(&mut self, size: u64, tag: u64, expected_tag: u64) {
        self.size = size;
        self.pattern = Pattern(tag << 32);
        self.check = Some(StreamCheck::new(Pattern(expected_tag << 32)));
    }

    fn receive(&mut self, now: Instant, bytes: &[u8]) {
        // The session counts rejected segments.
        let _ = self.connection.handle_segment(now, bytes);
    }

    fn transmit(&mut self, now: Instant, out: &mut [u8]) -> Option<usize> {
        self.connection.poll_transmit(now, out)
    }

    fn timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }

    fn event(&mut self) -> Option<Event> {
        self.connection.poll_event()
    }

    fn abort(&mut self, now: Instant) {
        self.connection.abort(now);
    }

    fn set_max_segment(&mut self, bytes: usize) {
        self.connection.set_max_segment(bytes);
    }

    fn set_window(&mut self, _: u32) {
        // With in-order delivery the window follows the reader.
    }

    fn work(&mut self, now: Instant, reading: bool) {
        self.write(now);
        if reading {
            self.read();
        }
    }

    fn delivered(&self) -> u64 {
        self.check.map_or(0, |check| check.received())
    }

    fn unsent(&self) -> u64 {
        self.size - self.written
    }

    fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    fn held(&self) -> usize {
        self.connection.stored_bytes()
    }
}
