//! A flood of datagrams from unauthenticated sources, and a terminal during it.

use super::*;
use units::BitRate;

/// Datagrams of a flood that arrive together.
const TOGETHER: u64 = 50;

/// Source address of the n-th datagram.
pub type Sources = fn(u64) -> SocketAddr;

/// A new address each time.
pub fn made_up(number: u64) -> SocketAddr {
    let [a, b, c, d, ..] = RngStream::new(number, 0, "address").next_u64().to_be_bytes();
    SocketAddr::from(([a, b, c, d], 4500))
}

/// A new IPv6 network each time.
pub fn made_up_networks(number: u64) -> SocketAddr {
    let [a, b, ..] = RngStream::new(number, 0, "network").next_u64().to_be_bytes();
    let word = (number % 0x1_0000) as u16;
    SocketAddr::from(([0x2001, 0xdb8, u16::from_be_bytes([a, b]), word, 0, 0, 0, 1], 4500))
}

/// Always the same address.
pub fn one_address(number: u64) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 7], (number % 50_000) as u16))
}

/// A rotation of so many addresses.
fn one_of<const MANY: u64>(number: u64) -> SocketAddr {
    let [.., a, b] = (number % MANY).to_be_bytes();
    SocketAddr::from(([198, 18, a, b], 4500))
}

/// A hundred addresses in rotation.
pub fn a_hundred(number: u64) -> SocketAddr {
    one_of::<100>(number)
}

/// A thousand.
pub fn a_thousand(number: u64) -> SocketAddr {
    one_of::<1_000>(number)
}

/// Ten thousand.
pub fn ten_thousand(number: u64) -> SocketAddr {
    one_of::<10_000>(number)
}

pub struct Flood {
    pub hub: Hub,
    pub terminal: Option<Terminal>,
    sources: Sources,
    /// Datagrams per second.
    rate: u64,
    /// The datagrams, in rotation.
    datagrams: Vec<Vec<u8>>,
    pub now: Instant,
    sent: u64,
    /// Bits of IP packets that were sent to the sources.
    pub answered: u64,
}

/// Returns Hellos of 20 unknown terminals that know the hub's public key.
pub fn hellos() -> Vec<Vec<u8>> {
    let hello = |number| {
        let config = terminal_config(Suite::Noise, "forger");
        let mut forger = Terminal::new(config, at(0), RngStream::new(number, 0, "forger"));
        hello_of(&mut forger, at(0)).expect("hello")
    };
    (0..20).map(hello).collect()
}

/// Returns a hub with the response limit `rate`.
pub fn hub_with(rate: BitRate, seed: u64) -> Hub {
    let config = Config { answer_rate: rate, ..hub_config(Suite::Noise, &["boat"]) };
    Hub::new(config, RngStream::new(seed, 0, "hub"))
}

impl Flood {
    pub fn new(hub: Hub, sources: Sources, rate: u64, datagrams: Vec<Vec<u8>>) -> Self {
        let now = at(1_000);
        Self { hub, terminal: None, sources, rate, datagrams, now, sent: 0, answered: 0 }
    }

    /// Runs until `end`, or until the terminal has an association.
    pub fn until(&mut self, end: Instant) -> bool {
        while self.now < end {
            self.now += Span::from_nanos(1_000_000_000 * TOGETHER / self.rate);
            for _ in 0..TOGETHER {
                let which = self.sent as usize % self.datagrams.len();
                let mut datagram = self.datagrams[which].clone();
                let _ =
                    self.hub.handle_datagram(self.now, (self.sources)(self.sent), &mut datagram);
                self.sent += 1;
            }
            if let Some(terminal) = &mut self.terminal
                && let Some(mut hello) = hello_of(terminal, self.now)
            {
                let _ = self.hub.handle_datagram(self.now, home(), &mut hello);
            }
            if self.answers() {
                return true;
            }
        }
        false
    }

    /// Delivers the hub's responses.
    fn answers(&mut self) -> bool {
        while let Some((to, mut answer)) = answer_of(&mut self.hub) {
            let headers = if to.is_ipv4() { 28 } else { 48 };
            let Some(terminal) = self.terminal.as_mut().filter(|_| to == home()) else {
                self.answered += (answer.len() as u64 + headers) * 8;
                continue;
            };
            if terminal.handle_datagram(self.now, &mut answer) == Ok(TerminalReceived::Established)
            {
                take(&mut self.hub, self.now, home(), up_at(terminal, self.now, b"x"));
                return true;
            }
        }
        false
    }

    /// Returns how long a new terminal needs to connect.
    pub fn comes(&mut self, patience: Span) -> Option<Span> {
        let from = self.now;
        self.terminal = Some(terminal(Suite::Noise, 1, from));
        self.until(from + patience).then(|| self.now.since(from))
    }
}
