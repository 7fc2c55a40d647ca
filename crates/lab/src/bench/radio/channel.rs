//! Two TNCs at TCP ports and the half-duplex channel between them, in real time.
//!
//! ```text
//!   KISS over TCP ── TNC 0 ──┐ mac::csma, with the queues of both ┌── TNC 1 ── KISS over TCP
//!                            └────────────────────────────────────┘
//! ```
//!
//! The channel is that of the simulator; the parameters of channel access are those of its
//! configuration, and what stations set by KISS is ignored.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use rt::Clock;
use satlink::Frame;
use satlink::mac::csma::{Csma, CsmaConfig, CsmaCounters};
use satlink::tnc::ax25::UI_HEADER;
use satlink::tnc::kiss::{self, Command, Decoder};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use units::Span;

/// Maximum length of an AX.25 frame.
const MAX_FRAME: usize = 2048 + 72;
/// Maximum number of octets that wait for a program that does not read.
const MAX_UNWRITTEN: usize = 1 << 20;
/// Time between looks at the order to stop.
const STOP_INTERVAL: Span = Span::from_millis(100);

/// An AX.25 frame of one port of a TNC. Its length is that of the information, because the channel
/// adds the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OnAir {
    port: u8,
    content: Vec<u8>,
}

impl Frame for OnAir {
    fn len(&self) -> usize {
        self.content.len().saturating_sub(UI_HEADER)
    }
}

/// A TNC, with the program at its port.
struct Station {
    listener: TcpListener,
    line: Option<TcpStream>,
    decoder: Decoder,
    unwritten: Vec<u8>,
}

/// Two TNCs and their channel.
pub struct Channel {
    stations: [Station; 2],
    csma: Csma<OnAir>,
    clock: Clock,
}

impl Channel {
    /// Creates the TNCs; a program connects to each of `listeners`.
    ///
    /// # Errors
    /// If a setting of the channel is invalid, or a listener cannot be used.
    pub fn new(config: &CsmaConfig, listeners: [TcpListener; 2], seed: u64) -> io::Result<Self> {
        let csma = Csma::new(config, 2, seed, 0)
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let stations = listeners.map(|listener| Station {
            listener,
            line: None,
            decoder: Decoder::new(MAX_FRAME),
            unwritten: Vec::new(),
        });
        // The channel's time begins at zero.
        Ok(Self { stations, csma, clock: Clock::from_here() })
    }

    /// Runs until `stop` is set; returns the counters of the channel.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn run(mut self, stop: &AtomicBool) -> io::Result<CsmaCounters> {
        while !stop.load(Ordering::Relaxed) {
            for index in 0..self.stations.len() {
                self.receive(index);
            }
            while let Some(heard) = self.csma.poll_delivery(self.clock.now()) {
                let unwritten = &mut self.stations[heard.to].unwritten;
                if unwritten.len() < MAX_UNWRITTEN {
                    kiss::encode(heard.frame.port, Command::Data, &heard.frame.content, unwritten);
                }
            }
            self.stations.iter_mut().for_each(Station::write);
            self.wait()?;
        }
        Ok(*self.csma.counters())
    }

    /// Offers the frames of a program to the channel.
    fn receive(&mut self, index: usize) {
        let now = self.clock.now();
        let station = &mut self.stations[index];
        station.accept();
        let mut buffer = [0; 4096];
        while let Some(len) = station.read(&mut buffer) {
            let mut rest = &buffer[..len];
            while let Some(frame) = station.decoder.next(&mut rest) {
                if frame.command == Ok(Command::Data) && !frame.content.is_empty() {
                    let frame = OnAir { port: frame.port, content: frame.content.to_vec() };
                    // A frame that is dropped is counted.
                    let _ = self.csma.offer(now, index, 1 - index, frame);
                }
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut fds = Vec::new();
        for station in &self.stations {
            let flags = match station.unwritten.is_empty() {
                true => PollFlags::POLLIN,
                false => PollFlags::POLLIN | PollFlags::POLLOUT,
            };
            fds.push(match &station.line {
                Some(line) => PollFd::new(line.as_fd(), flags),
                None => PollFd::new(station.listener.as_fd(), PollFlags::POLLIN),
            });
        }
        let due = self.csma.poll_timeout().map(|due| due.since(self.clock.now()));
        let time = due.map_or(STOP_INTERVAL, |due| due.min(STOP_INTERVAL));
        let time = TimeSpec::from(Duration::from_nanos(time.as_nanos()));
        match ppoll(&mut fds, Some(time), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Station {
    /// Accepts a program if there is none. An error is that of one connection.
    fn accept(&mut self) {
        if self.line.is_some() {
            return;
        }
        if let Ok((line, _)) = self.listener.accept()
            && line.set_nonblocking(true).is_ok()
            && line.set_nodelay(true).is_ok()
        {
            self.decoder = Decoder::new(MAX_FRAME);
            self.unwritten.clear();
            self.line = Some(line);
        }
    }

    /// Reads what has arrived; after a program has gone, another can connect.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        match self.line.as_mut()?.read(buffer) {
            Ok(len) if len > 0 => Some(len),
            Err(error) if is_temporary(&error) => None,
            Ok(_) | Err(_) => {
                self.line = None;
                None
            }
        }
    }

    fn write(&mut self) {
        let Some(line) = &mut self.line else { return };
        if self.unwritten.is_empty() {
            return;
        }
        match line.write(&self.unwritten) {
            Ok(len) => drop(self.unwritten.drain(..len)),
            Err(error) if is_temporary(&error) => {}
            Err(_) => self.line = None,
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
