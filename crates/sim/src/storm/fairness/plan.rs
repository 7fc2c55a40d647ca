//! Derives link, gateways and clients from a seed.

use relay::{Control, RelayConfig};
use units::{BitRate, Instant, RngStream, Span};

/// Hostile clients start within this time.
const ATTACK: Span = Span::from_secs(5);
/// Multiple of the bandwidth-delay product that the buffer of each client must hold for the link to
/// be the bottleneck.
const BUFFER_ROUND_TRIPS: u64 = 8;

/// Smallest value of `limits.memory`, in octets.
const MIN_MEMORY: u64 = 1 << 20;

/// The direction of a client's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the terminal to the hub.
    Up,
    /// From the hub to the terminal.
    Down,
}

/// Behaviour of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// Reads and writes without pause on each stream.
    Bulk { streams: u32 },
    /// Opens streams whose receivers stop reading after so many octets.
    Stall { streams: u32, after: u64 },
    /// Opens streams whose receivers read so many octets per interval.
    Drip { streams: u32, octets: u64, every: Span },
    /// Opens streams that the server neither accepts nor reads, and writes to them.
    HalfOpen { streams: u32 },
    /// Opens a stream of so many octets per interval, and optionally resets it after a delay.
    Churn { octets: u64, every: Span, reset: Option<Span> },
    /// Writes one octet per interval to each of its streams.
    Trickle { streams: u32, every: Span },
    /// Sends unsplit packets of so many octets in so many flows with this DSCP.
    Flood { flows: u16, dscp: u8, octets: usize, every: Span },
}

/// One client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) terminal: usize,
    pub(super) direction: Direction,
    pub(super) behaviour: Behaviour,
    pub(super) honest: bool,
    /// Its start, relative to the time at which all terminals are connected.
    pub(super) at: Span,
}

/// Parameters of one direction of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSetup {
    pub(super) rate: BitRate,
    pub(super) delay: Span,
    pub(super) loss: f64,
}

/// The parameters of a storm.
#[derive(Clone, Debug)]
pub(super) struct StormPlan {
    pub(super) seed: u64,
    /// Return link and forward link.
    pub(super) lines: [LineSetup; 2],
    pub(super) terminals: usize,
    /// Whether the gateways have the link's rates configured.
    pub(super) rates_configured: bool,
    pub(super) control: Control,
    pub(super) memory: Option<u64>,
    pub(super) clients: Vec<Client>,
}

impl StormPlan {
    /// Draws the storm of `seed`.
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
        // Excluded: terminals that share a link of unknown rate, where the shares depend on
        // congestion control; and `steady` on a low-rate path with a short round trip, where the
        // rate found varies between 0.5 and 1 of the link's even without hostile clients.
        let is_hard = back < 1_500_000 && delay < Span::from_millis(25);
        let rates_configured = rng.chance(0.7) || terminals > 1 || is_hard;
        let steady = rng.chance(0.5) && !is_hard;
        let control = if steady { Control::Steady } else { Control::Fixed };
        let mut plan = Self {
            seed,
            lines,
            terminals,
            rates_configured,
            control,
            memory: None,
            clients: Vec::new(),
        };
        plan.draw_clients(rng);
        if rng.chance(0.5) {
            plan.memory = Some(plan.min_memory() << rng.below(4));
            if rng.chance(0.25) {
                plan.memory = Some(MIN_MEMORY << rng.below(3));
            }
        }
        plan
    }

    /// The same storm without hostile clients.
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
            let behaviour = if honest {
                Behaviour::Bulk { streams: 1 + rng.below(4) as u32 }
            } else {
                draw_hostile(rng, rate)
            };
            // An honest client starts before all hostile ones or after them.
            let at = if honest {
                if rng.chance(0.5) { Span::ZERO } else { ATTACK }
            } else {
                Span::from_nanos(rng.below(ATTACK.as_nanos()))
            };
            let terminal = rng.below(self.terminals as u64) as usize;
            self.clients.push(Client { terminal, direction, behaviour, honest, at });
        }
    }

    /// The round-trip time without queuing delay.
    pub(super) fn round_trip(&self) -> Span {
        self.lines[0].delay + self.lines[1].delay
    }

    /// Memory at which the link, and not the buffers, limits each client.
    fn min_memory(&self) -> u64 {
        let fastest = self.lines[0].rate.max(self.lines[1].rate);
        let in_flight = fastest.bytes_in(self.round_trip().max(Span::from_millis(50)));
        (in_flight * BUFFER_ROUND_TRIPS * (self.clients.len() as u64 + 1)).max(MIN_MEMORY)
    }

    /// Guaranteed rate of each client in bit/s where memory is the limit: the link's rate, scaled
    /// by the configured memory over the memory that fills the link.
    pub(super) fn bound_by_memory(&self) -> Option<f64> {
        let (min, memory) = (self.min_memory(), self.memory?);
        let fastest = self.lines[0].rate.max(self.lines[1].rate).as_bps() as f64;
        let clients = self.clients.len() as f64 + 1.0;
        (memory < min).then(|| fastest / clients * memory as f64 / min as f64)
    }

    /// When all clients have started.
    pub(super) fn attack_ends(&self) -> Span {
        ATTACK
    }

    /// The configurations of the terminals; the hub's is last.
    pub(super) fn configs(&self) -> Vec<RelayConfig> {
        let [back, forward] = self.lines.map(|line| self.rates_configured.then_some(line.rate));
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

    /// Describes the storm.
    pub(super) fn describe(&self) -> String {
        let [back, forward] = self.lines;
        let clients: Vec<String> = self.clients.iter().map(ToString::to_string).collect();
        format!(
            "{} terminals, {}{}, forward {}, back {}, {} one way, loss {:.3} and {:.3}, memory {:?}; {}",
            self.terminals,
            self.control,
            if self.rates_configured { "" } else { " without rates" },
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
    /// Index of the link direction that carries the payload, and of the sending end.
    pub(super) fn line(self) -> usize {
        match self {
            Self::Up => 0,
            Self::Down => 1,
        }
    }
}

impl Client {
    /// Whether the guarantee applies to this client in this direction.
    pub(super) fn is_measured(&self, line: usize) -> bool {
        self.honest && self.direction.line() == line
    }
}

impl core::fmt::Display for Client {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let honest = if self.honest { "honest " } else { "" };
        let Self { terminal, direction, behaviour, at, .. } = self;
        write!(f, "{honest}{behaviour:?} {direction:?} at terminal {terminal} from {at}")
    }
}

fn draw_hostile(rng: &mut RngStream, rate: BitRate) -> Behaviour {
    let streams = log_uniform(rng, 1, 400) as u32;
    let every = Span::from_millis(log_uniform(rng, 20, 1_000));
    match rng.below(8) {
        0 => Behaviour::Bulk { streams },
        1 | 2 => Behaviour::Stall { streams, after: log_uniform(rng, 1, 2_000_000) - 1 },
        3 => Behaviour::Drip { streams, octets: log_uniform(rng, 1, 4_096), every },
        4 => Behaviour::HalfOpen { streams },
        5 => Behaviour::Churn {
            octets: log_uniform(rng, 1, 200_000),
            every: Span::from_millis(log_uniform(rng, 5, 200)),
            reset: rng.chance(0.5).then(|| Span::from_millis(log_uniform(rng, 1, 3_000))),
        },
        6 => Behaviour::Trickle { streams, every },
        _ => {
            let octets = log_uniform(rng, 60, 1_500) as usize;
            // From half of the link's rate to twice the rate.
            let sent = rate.mul_ratio(log_uniform(rng, 50, 200), 100);
            Behaviour::Flood {
                flows: log_uniform(rng, 1, 400) as u16,
                dscp: [0, 0, 46, 8][rng.below(4) as usize],
                octets,
                every: sent.time_for(octets as u64),
            }
        }
    }
}

/// Draws a number from `min` to `max`, uniform in its logarithm.
fn log_uniform(rng: &mut RngStream, min: u64, max: u64) -> u64 {
    let (min, max) = (min as f64, max as f64);
    (min * (max / min).powf(rng.uniform())).round() as u64
}

/// Initial time of a storm.
pub(super) const BEGIN: Instant = Instant::from_nanos(1_000_000_000);
