//! The scheduler of demand assignment: slots of a frame per terminal.
//!
//! ```text
//!   requests ──▶ state of each terminal ──▶ plan, once per frame:
//!                requested rate, volume        1. constant   (CRA)
//!                contract, weight              2. rate       (RBDC)  max-min
//!                                              3. volume     (VBDC, AVBDC)  max-min
//!                                              4. free       (FCA)  equal or by weight
//! ```
//!
//! The scheduler knows no time but frames, and may be located at the hub or on board. Requests are
//! served max-min, free slots by weight with fractions carried over to the next frame, and ties
//! rotate. No terminal gets more than its contract allows or one transmitter can use, and no more
//! slots are granted than exist; tests verify this. Requests are limited to
//! [`ScheduleConfig::most_request`]; a terminal that has sent nothing for
//! [`ScheduleConfig::silence`] frames loses its slots.
//!
//! ```
//! use satlink::mac::schedule::{Contract, Free, Request, ScheduleConfig, Scheduler};
//!
//! let config = ScheduleConfig { free: Free::ByWeight, ..ScheduleConfig::new(58) };
//! let mut hub = Scheduler::new(config)?;
//! let contract = Contract { weight: 5, ..Contract::default() };
//! let [busy, idle] = [contract, Contract::default()].map(|contract| hub.add(contract));
//! hub.log_on(busy);
//! hub.log_on(idle);
//! hub.handle_request(busy, Request::Absolute(10));
//! // Ten as asked for, and of the 48 others five in six.
//! let given: Vec<u32> = hub.plan().iter().map(|grant| grant.slots).collect();
//! assert_eq!(given, [50, 8]);
//! # Ok::<(), satlink::mac::schedule::ScheduleError>(())
//! ```
//!
//! Source: Mhatre and Rosenberg, sections V and VI; EN 301 790, clause 6.6.1 (capacity request
//! categories) for the names and for what overrides what.

mod config;
pub mod share;

pub use config::{Contract, Free, ScheduleConfig, ScheduleError};

use alloc::vec;
use alloc::vec::Vec;
use share::{ByWeight, max_min};

/// A capacity request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Slots per frame until replaced or expired: RBDC.
    Rate(u32),
    /// Slots in addition to those already requested: VBDC.
    Volume(u32),
    /// Slots that replace those requested before: AVBDC.
    Absolute(u32),
}

/// The slots of a terminal in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The terminal's number.
    pub terminal: usize,
    /// Slots in all; above zero.
    pub slots: u32,
}

/// Slots assigned so far, by category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Frames planned.
    pub frames: u64,
    /// Constant (CRA).
    pub constant: u64,
    /// Rate-based (RBDC).
    pub rate: u64,
    /// Volume-based (VBDC and AVBDC).
    pub volume: u64,
    /// Free (FCA).
    pub free: u64,
}

/// The scheduler's state of a terminal.
#[derive(Clone, Debug)]
struct Client {
    contract: Contract,
    logged_on: bool,
    /// Slots per frame, and the remaining frames of validity.
    rate: (u32, u32),
    /// Slots, and the remaining frames of validity.
    volume: (u32, u32),
    /// Slots that the hub expects it to request, and the remaining frames of validity.
    expected: (u32, u32),
    /// Frames planned since it last sent anything.
    silent: u32,
}

impl Client {
    fn forget(&mut self) {
        (self.rate, self.volume, self.expected) = ((0, 0), (0, 0), (0, 0));
        self.silent = 0;
    }
}

/// The hub's scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: ScheduleConfig,
    clients: Vec<Client>,
    free: ByWeight,
    turns: [usize; 3],
    given: Given,
    /// Terminals that lost their slots for silence.
    dropped: u64,
    /// Requests above the maximum.
    clamped: u64,
}

impl Scheduler {
    /// A scheduler without terminals.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(config: ScheduleConfig) -> Result<Self, ScheduleError> {
        config.validate()?;
        Ok(Self {
            config,
            clients: Vec::new(),
            free: ByWeight::default(),
            turns: [0; 3],
            given: Given::default(),
            dropped: 0,
            clamped: 0,
        })
    }

    /// Adds a terminal, not logged on; returns its number.
    pub fn add(&mut self, contract: Contract) -> usize {
        let none = (0, 0);
        let (rate, volume, expected) = (none, none, none);
        let client = Client { contract, logged_on: false, rate, volume, expected, silent: 0 };
        self.clients.push(client);
        self.free.grow(self.clients.len());
        self.clients.len() - 1
    }

    /// Logs a terminal on: it has slots from the next plan on.
    pub fn log_on(&mut self, terminal: usize) {
        let client = &mut self.clients[terminal];
        client.logged_on = true;
        client.forget();
    }

    /// Logs a terminal off: its slots are freed and its requests discarded.
    pub fn log_off(&mut self, terminal: usize) {
        let client = &mut self.clients[terminal];
        client.logged_on = false;
        client.forget();
        self.free.forget(terminal);
    }

    /// Whether a terminal is logged on at the hub.
    pub fn is_logged_on(&self, terminal: usize) -> bool {
        self.clients[terminal].logged_on
    }

    /// Sets the weight of a terminal, such as its number of connections.
    pub fn set_weight(&mut self, terminal: usize, weight: u32) {
        self.clients[terminal].contract.weight = weight;
    }

    /// Notes that a terminal has sent something.
    pub fn heard(&mut self, terminal: usize) {
        self.clients[terminal].silent = 0;
    }

    /// Handles a request. Requests of terminals that are not logged on are ignored.
    pub fn handle_request(&mut self, terminal: usize, request: Request) {
        let most = self.config.most_request;
        let client = &mut self.clients[terminal];
        client.silent = 0;
        if !client.logged_on {
            return;
        }
        let (Request::Rate(asked) | Request::Volume(asked) | Request::Absolute(asked)) = request;
        self.clamped += u64::from(asked > most);
        let asked = asked.min(most);
        match request {
            Request::Rate(_) => client.rate = (asked, self.config.rate_frames),
            Request::Volume(_) => {
                let before = client.volume.0;
                client.volume = ((before + asked).min(most), self.config.volume_frames);
            }
            Request::Absolute(_) => client.volume = (asked, self.config.volume_frames),
        }
    }

    /// Announces that a terminal will need `slots` for its response to data just sent. Counts as a
    /// requested volume; the larger of the two is served.
    pub fn expect(&mut self, terminal: usize, slots: u32) {
        let most = self.config.most_request;
        let client = &mut self.clients[terminal];
        if client.logged_on {
            let sum = client.expected.0.saturating_add(slots).min(most);
            client.expected = (sum, self.config.expected_frames);
        }
    }

    /// The requested volume that is not yet served.
    pub fn outstanding(&self, terminal: usize) -> u32 {
        self.clients[terminal].volume.0
    }

    /// Slots assigned so far.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Terminals that lost their slots for silence.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Requests above [`ScheduleConfig::most_request`].
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Plans the next frame: the slots of each terminal, in order of their numbers.
    pub fn plan(&mut self) -> Vec<Grant> {
        self.drop_silent();
        let mut left = self.config.slots;
        let mut shares = vec![0; self.clients.len()];
        let constant = self.wanted(&shares, |client| client.contract.constant);
        self.given.constant += self.serve(0, &constant, &mut left, &mut shares);
        let rate = self.wanted(&shares, |client| client.rate.0);
        self.given.rate += self.serve(1, &rate, &mut left, &mut shares);
        let volume = self.wanted(&shares, |client| client.volume.0.max(client.expected.0));
        let before = shares.clone();
        self.given.volume += self.serve(2, &volume, &mut left, &mut shares);
        self.given.free += self.spread(left, &mut shares);
        self.given.frames += 1;
        self.expire(&before, &shares, &volume);
        let numbered = shares.into_iter().enumerate();
        let grant = |(terminal, slots)| Grant { terminal, slots };
        numbered.filter(|&(_, slots)| slots > 0).map(grant).collect()
    }

    fn drop_silent(&mut self) {
        let Some(limit) = self.config.silence else { return };
        for terminal in 0..self.clients.len() {
            let client = &mut self.clients[terminal];
            if client.logged_on && client.silent >= limit {
                self.dropped += 1;
                self.log_off(terminal);
            } else {
                client.silent += 1;
            }
        }
    }

    /// The demand of each terminal in a category, as far as its limit allows.
    fn wanted(&self, shares: &[u32], wish: impl Fn(&Client) -> u32) -> Vec<u32> {
        let want = |(client, &has): (&Client, &u32)| match client.logged_on {
            true => wish(client).min(self.most(client).saturating_sub(has)),
            false => 0,
        };
        self.clients.iter().zip(shares).map(want).collect()
    }

    /// The maximum slots per frame of a terminal.
    fn most(&self, client: &Client) -> u32 {
        client.contract.most.min(self.config.most_each)
    }

    fn serve(&mut self, class: usize, wants: &[u32], left: &mut u32, shares: &mut [u32]) -> u64 {
        let served = max_min(*left, wants, &mut self.turns[class]);
        let sum: u32 = served.iter().sum();
        for (share, more) in shares.iter_mut().zip(served) {
            *share += more;
        }
        *left -= sum;
        u64::from(sum)
    }

    /// Assigns the free slots.
    fn spread(&mut self, left: u32, shares: &mut [u32]) -> u64 {
        let weight = |client: &Client| match self.config.free {
            Free::None => 0,
            Free::Equal => 1,
            Free::ByWeight => client.contract.weight,
        };
        let on = |client: &Client| if client.logged_on { weight(client) } else { 0 };
        let weights: Vec<u32> = self.clients.iter().map(on).collect();
        let room = |(client, &has): (&Client, &u32)| self.most(client).saturating_sub(has);
        let most: Vec<u32> = self.clients.iter().zip(shares.iter()).map(room).collect();
        let given = self.free.share(left, &weights, &most);
        for (share, more) in shares.iter_mut().zip(&given) {
            *share += more;
        }
        given.into_iter().map(u64::from).sum()
    }

    /// Subtracts the served slots and ages the requests. A part of `volume` cut by a limit stays
    /// requested.
    fn expire(&mut self, before: &[u32], after: &[u32], volume: &[u32]) {
        for (place, client) in self.clients.iter_mut().enumerate() {
            let served = (after[place] - before[place]).min(volume[place]);
            client.volume.0 = client.volume.0.saturating_sub(served);
            client.expected.0 = client.expected.0.saturating_sub(served);
            age(&mut client.volume);
            age(&mut client.expected);
            age(&mut client.rate);
        }
    }
}

/// Reduces the validity of a request by one frame.
fn age((slots, frames): &mut (u32, u32)) {
    *frames = frames.saturating_sub(1);
    if *frames == 0 {
        *slots = 0;
    }
}

#[cfg(test)]
mod tests;
