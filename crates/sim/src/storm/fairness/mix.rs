//! What a seed means: the link, the gateways, and the clients with their manners.

use relay::{Control, RelayConfig};
use units::{BitRate, Instant, RngStream, Span};

/// Longest time over which hostile clients begin.
const ATTACK: Span = Span::from_secs(5);
/// Octets that a link holds in flight beside its own bandwidth-delay product: the buffer of every
/// client, honest or not, has to be this many times that before the link is what bounds it.
const BUFFER_ROUND_TRIPS: u64 = 8;

/// The least memory that can be told, octets (`limits.memory`).
const LEAST_MEMORY: u64 = 1 << 20;

/// The direction of a client's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the terminal to the hub.
    Up,
    /// From the hub to the terminal.
    Down,
}

/// What a client does all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Writes and reads as much as it can, on so many streams.
    Bulk { streams: u32 },
    /// Opens streams whose readers stop after so many octets.
    Stall { streams: u32, after: u64 },
    /// Opens streams whose readers read so many octets each time.
    Drip { streams: u32, octets: u64, every: Span },
    /// Opens streams that the server never accepts and never reads, and writes to them.
    HalfOpen { streams: u32 },
    /// Opens a stream of so many octets each time, and resets it after a while if told to.
    Churn { octets: u64, every: Span, reset: Option<Span> },
    /// Writes one octet to each of its streams each time.
    Trickle { streams: u32, every: Span },
    /// Sends packets of so many octets, of so many flows, with this DSCP.
    Flood { flows: u16, dscp: u8, octets: usize, every: Span },
}

/// One client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) terminal: usize,
    pub(super) direction: Direction,
    pub(super) manner: Manner,
    pub(super) honest: bool,
    /// When it begins, after all terminals are connected.
    pub(super) at: Span,
}

/// One direction of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSetup {
    pub(super) rate: BitRate,
    pub(super) delay: Span,
    pub(super) loss: f64,
}

/// A storm before it begins.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    pub(super) seed: u64,
    /// From the terminals, from the hub.
    pub(super) lines: [LineSetup; 2],
    pub(super) terminals: usize,
    /// Whether the gateways are told the link's rates.
    pub(super) told: bool,
    pub(super) control: Control,
    pub(super) memory: Option<u64>,
    pub(super) clients: Vec<Client>,
}

impl Mix {
    /// The storm of `seed`.
    pub(super) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "sim/storm/fairness");
        let rng = &mut rng;
        let terminals = if rng.chance(0.6) { 1 } else { 2 + rng.below(3) as usize };
        let forward = log_uniform(rng, 500_000, 16_000_000);
        let back = (forward >> rng.below(4)).max(500_000);
        let delay = Span::from_micros(log_uniform(rng, 5_000, 350_000));
        let lossy = rng.chance(0.5);
        let lines = [back, forward].map(|rate| LineSetup {
            rate: BitRate::from_bps(rate),
            delay,
            loss: if lossy { 0.02 * rng.uniform() } else { 0.0 },
        });
        // Terminals that share a link whose rate nobody knows find their shares by themselves: that
        // is a matter of congestion control. So is what `steady` finds of a low rate over a short
        // round trip, which is between a half and all of it, by chance, with honest clients alone.
        let is_hard = back < 1_500_000 && delay < Span::from_millis(25);
        let told = rng.chance(0.7) || terminals > 1 || is_hard;
        let steady = rng.chance(0.5) && !is_hard;
        let control = if steady { Control::Steady } else { Control::Fixed };
        let mut mix =
            Self { seed, lines, terminals, told, control, memory: None, clients: Vec::new() };
        mix.draw_clients(rng);
        if rng.chance(0.5) {
            mix.memory = Some(mix.least_memory() << rng.below(4));
            if rng.chance(0.25) {
                mix.memory = Some(LEAST_MEMORY << rng.below(3));
            }
        }
        mix
    }

    /// The same without hostile clients.
    pub(super) fn without_hostile(&self) -> Self {
        let clients = self.clients.iter().copied().filter(|client| client.honest).collect();
        Self { clients, ..self.clone() }
    }

    fn draw_clients(&mut self, rng: &mut RngStream) {
        let honest = 1 + rng.below(3);
        let hostile = 1 + rng.below(4);
        for number in 0..honest + hostile {
            let honest = number < honest;
            let direction = if rng.chance(0.5) { Direction::Down } else { Direction::Up };
            let rate = self.lines[direction.line()].rate;
            let manner = if honest {
                Manner::Bulk { streams: 1 + rng.below(4) as u32 }
            } else {
                draw_hostile(rng, rate)
            };
            // An honest client is there before the hostile ones, or comes after them.
            let at = if honest {
                if rng.chance(0.5) { Span::ZERO } else { ATTACK }
            } else {
                Span::from_nanos(rng.below(ATTACK.as_nanos()))
            };
            let terminal = rng.below(self.terminals as u64) as usize;
            self.clients.push(Client { terminal, direction, manner, honest, at });
        }
    }

    /// The time between a packet and what it causes, without queues.
    pub(super) fn round_trip(&self) -> Span {
        self.lines[0].delay + self.lines[1].delay
    }

    /// Memory for buffers with which the link, and not the memory, bounds each client.
    fn least_memory(&self) -> u64 {
        let fastest = self.lines[0].rate.max(self.lines[1].rate);
        let in_flight = fastest.bytes_in(self.round_trip().max(Span::from_millis(50)));
        (in_flight * BUFFER_ROUND_TRIPS * (self.clients.len() as u64 + 1)).max(LEAST_MEMORY)
    }

    /// What each client gets at least where memory is what bounds it, bits per second: the same
    /// part of the link as the memory is of that with which the link would.
    pub(super) fn bound_by_memory(&self) -> Option<f64> {
        let (least, memory) = (self.least_memory(), self.memory?);
        let fastest = self.lines[0].rate.max(self.lines[1].rate).as_bps() as f64;
        let clients = self.clients.len() as f64 + 1.0;
        (memory < least).then(|| fastest / clients * memory as f64 / least as f64)
    }

    /// When all clients are there.
    pub(super) fn attack_ends(&self) -> Span {
        ATTACK
    }

    /// The terminals' configurations, and the hub's last.
    pub(super) fn configs(&self) -> Vec<RelayConfig> {
        let [back, forward] = self.lines.map(|line| self.told.then_some(line.rate));
        let names = (0..self.terminals).map(|number| (format!("terminal-{number}"), back, forward));
        names
            .chain([("hub".to_owned(), forward, back)])
            .map(|(name, send, receive)| {
                let mut config = RelayConfig::new(&name).with_rates(send, receive);
                config.control = self.control;
                match self.memory {
                    Some(memory) => config.with_memory(memory),
                    None => config,
                }
            })
            .collect()
    }

    /// The storm in a few words, for people.
    pub(super) fn describe(&self) -> String {
        let [back, forward] = self.lines;
        let clients: Vec<String> = self.clients.iter().map(ToString::to_string).collect();
        format!(
            "{} terminals, {}{}, forward {}, back {}, {} one way, loss {:.3} and {:.3}, memory {:?}; {}",
            self.terminals,
            self.control,
            if self.told { "" } else { " without rates" },
            forward.rate,
            back.rate,
            forward.delay,
            forward.loss,
            back.loss,
            self.memory,
            clients.join("; ")
        )
    }
}

impl Direction {
    /// The number of the line that carries the payload, and of the end that writes it.
    pub(super) fn line(self) -> usize {
        match self {
            Self::Up => 0,
            Self::Down => 1,
        }
    }
}

impl Client {
    /// Whether the promise is for it, on this line.
    pub(super) fn is_measured(&self, line: usize) -> bool {
        self.honest && self.direction.line() == line
    }
}

impl core::fmt::Display for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let honest = if self.honest { "honest " } else { "" };
        let Self { terminal, direction, manner, at, .. } = self;
        write!(f, "{honest}{manner:?} {direction:?} at terminal {terminal} from {at}")
    }
}

fn draw_hostile(rng: &mut RngStream, rate: BitRate) -> Manner {
    let streams = log_uniform(rng, 1, 400) as u32;
    let every = Span::from_millis(log_uniform(rng, 20, 1_000));
    match rng.below(8) {
        0 => Manner::Bulk { streams },
        1 | 2 => Manner::Stall { streams, after: log_uniform(rng, 1, 2_000_000) - 1 },
        3 => Manner::Drip { streams, octets: log_uniform(rng, 1, 4_096), every },
        4 => Manner::HalfOpen { streams },
        5 => Manner::Churn {
            octets: log_uniform(rng, 1, 200_000),
            every: Span::from_millis(log_uniform(rng, 5, 200)),
            reset: rng.chance(0.5).then(|| Span::from_millis(log_uniform(rng, 1, 3_000))),
        },
        6 => Manner::Trickle { streams, every },
        _ => {
            let octets = log_uniform(rng, 60, 1_500) as usize;
            // From half of the link's rate to twice as much.
            let sent = rate.mul_ratio(log_uniform(rng, 50, 200), 100);
            Manner::Flood {
                flows: log_uniform(rng, 1, 400) as u16,
                dscp: [0, 0, 46, 8][rng.below(4) as usize],
                octets,
                every: sent.time_for(octets as u64),
            }
        }
    }
}

/// A number from `least` to `most`, small and large ones alike.
fn log_uniform(rng: &mut RngStream, least: u64, most: u64) -> u64 {
    let (least, most) = (least as f64, most as f64);
    (least * (most / least).powf(rng.uniform())).round() as u64
}

/// When a storm's clock starts.
pub(super) const BEGIN: Instant = Instant::from_nanos(1_000_000_000);
