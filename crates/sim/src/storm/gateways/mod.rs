//! Storms over two gateways: what a seed means, and what is to hold in the end.

mod accounts;
mod ends;
mod users;

pub(super) use accounts::{Account, Books};

use super::arena::{Act, Arena, Cast};
use super::clock::Clock;
use super::fault::{Fault, FaultSet};
use super::judge;
use super::mix::{draw_acts, draw_clock, draw_conditions, draw_faults, is_lethal};
use super::report::{Damage, Report, Subject};
use super::weather::{Conditions, Guard, Lane};
use association::{Keys, Known, PresharedKey, PrivateKey, Security};
use ends::{HubEnd, Setup, TerminalEnd};
use relay::{Control, PathMetrics, RelayConfig};
use units::{BitRate, Instant, RngStream, Span};
use users::Task;
use xstp::Seq24;

/// Nobody is told less: on less the clients' requests take longer than anyone waits.
const LEAST: BitRate = BitRate::from_kbps(4);
/// How long everything may take after the storm.
const PATIENCE: Span = Span::from_secs(1_800);

/// A storm over gateways before it begins.
#[derive(Debug)]
pub(crate) struct Mix {
    seed: u64,
    on: FaultSet,
    clocks: [Clock; 2],
    conditions: [Conditions; 2],
    /// The link's rates before and after the storm: return, forward.
    rates: [BitRate; 2],
    lag: Span,
    calm_at: Instant,
    acts: Vec<(Instant, Act)>,
    /// The terminal's, the hub's.
    configs: [RelayConfig; 2],
    told: &'static str,
    tasks: Vec<Task>,
}

impl Mix {
    /// The storm of `seed`.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "sim/storm/gateways");
        let rng = &mut rng;
        let on = draw_faults(rng);
        let forward = BitRate::from_kbps(200 << rng.below(7)).mul_ratio(100 + rng.below(100), 100);
        let narrow = rng.chance(0.3);
        let back = if narrow { BitRate::from_kbps(4 << rng.below(7)) } else { forward };
        let rates = [back, forward];
        let mut conditions = draw_conditions(rng, on, forward);
        if narrow {
            conditions[0].rate = Some(back);
            conditions[0].queue = conditions[0].queue.max(least_queue(back));
        }
        let calm_at = Instant::ZERO + Span::from_millis(3_000 + rng.below(9_000));
        let (mut configs, told) = draw_configs(rng, on, rates);
        if seed.count_ones().is_multiple_of(2) {
            secure(&mut configs, seed);
        }
        let clocks = [(); 2].map(|()| draw_clock(rng, on));
        let lag = if on.has(Fault::LateTimer) {
            let most = 1 << rng.below(16);
            Span::from_micros(100 + rng.below(most))
        } else {
            Span::ZERO
        };
        let tasks = draw_tasks(rng, rates, calm_at.since(Instant::ZERO));
        let acts = draw_acts(rng, Subject::Gateways, on, calm_at, forward);
        Self { seed, on, clocks, conditions, rates, lag, calm_at, acts, configs, told, tasks }
    }

    /// The storm in a few words, for people.
    pub(crate) fn describe(&self) -> String {
        let faults: Vec<String> = self.on.iter().map(|fault| fault.to_string()).collect();
        let [terminal, hub] = &self.configs;
        format!(
            "{} and {}, {}, {}, forward {}, back {}, {} clients; {}",
            terminal.control,
            hub.control,
            if matches!(hub.security, Security::None) { "no secrets" } else { "noise" },
            self.told,
            self.rates[1],
            self.rates[0],
            self.tasks.len(),
            faults.join(", ")
        )
    }

    fn lanes(&self) -> [Lane; 2] {
        [0, 1].map(|from: usize| {
            let name = ["sim/storm/terminal", "sim/storm/hub"][from];
            Lane::new(self.conditions[from], Guard::Above, RngStream::new(self.seed, 0, name))
        })
    }

    fn arena(&self) -> Arena {
        let [here, there] = self.clocks.each_ref().map(|clock| clock.at(Instant::ZERO));
        let setup = |end: usize, tasks: &[Task]| Setup {
            config: self.configs[end].clone(),
            seed: self.seed,
            lethal: is_lethal(self.on),
            tasks: tasks.to_vec(),
        };
        let mut arena = Arena::new(Cast {
            ends: [
                Box::new(TerminalEnd::new(setup(0, &self.tasks), here)),
                Box::new(HubEnd::new(setup(1, &[]), there)),
            ],
            clocks: self.clocks.clone(),
            lanes: self.lanes(),
            calm: self.rates.map(|rate| Conditions {
                rate: Some(rate),
                queue: least_queue(rate),
                ..Conditions::default()
            }),
            lag: self.lag,
            rng: RngStream::new(self.seed, 0, "sim/storm/lag"),
        });
        for &(at, act) in &self.acts {
            arena.plan(at, act);
        }
        arena
    }
}

/// Runs two gateways through the storm of `seed`.
pub(crate) fn run(seed: u64) -> Result<Report, Damage> {
    let mix = Mix::draw(seed);
    let mut arena = mix.arena();
    for fault in [Fault::Drift, Fault::TinyWindow, Fault::HugeWindow, Fault::TinySegment] {
        if mix.on.has(fault) {
            arena.strikes().count(fault);
        }
    }
    if mix.on.has(Fault::Impatience) {
        arena.strikes().count(Fault::Impatience);
    }
    arena.run(mix.calm_at, false)?;
    arena.calm();
    if !arena.run(mix.calm_at + PATIENCE, true)? {
        let ends = [0, 1].map(|end| arena.ends()[end].describe());
        return Err(Damage::new(format!("{PATIENCE} after the storm: {ends:?}")));
    }
    let [terminal, hub] = arena.ends().each_ref().map(|end| end.account());
    // Who starts anew when all is done has no session until somebody has something to say.
    if let (Some(terminal), Some(hub)) = (&terminal, &hub) {
        terminal.agrees(hub)?;
    }
    let first = mix.configs[0].first_number.value();
    for account in terminal.iter().chain(&hub) {
        if first > 0 && account.packets() > u64::from(Seq24::MODULUS - first) {
            arena.strikes().count(Fault::Wrap);
        }
    }
    Ok(judge::summary(&mut arena, mix.calm_at, "gateways"))
}

/// Gives both ends keys.
fn secure(configs: &mut [RelayConfig; 2], seed: u64) {
    let mut rng = RngStream::new(seed, 0, "sim/storm/keys");
    let private = [(); 2].map(|()| PrivateKey::generate(&mut rng));
    let preshared = PresharedKey::generate(&mut rng);
    for own in 0..2 {
        let other = 1 - own;
        let known = Known {
            name: ["terminal", "hub"][other].to_owned(),
            public: private[other].public(),
            preshared: preshared.clone(),
        };
        let keys = Keys::new(private[own].clone(), vec![known]).expect("one key that is known");
        configs[own].security = Security::Noise(keys.into());
    }
}

/// A queue in which whatever has to be sent to begin with finds room.
fn least_queue(rate: BitRate) -> Span {
    Span::from_secs(1).max(rate.time_for(30 * 1_500))
}

fn draw_configs(
    rng: &mut RngStream,
    on: FaultSet,
    rates: [BitRate; 2],
) -> ([RelayConfig; 2], &'static str) {
    let (told, percents) = match rng.below(10) {
        0..=3 => ("told no rate", [None; 2]),
        4..=6 => ("told the rates", [Some(100); 2]),
        _ => ("told wrong rates", [(); 2].map(|()| Some(100 * (1 << rng.below(8)) / 16))),
    };
    let [back, forward] = [0, 1].map(|lane: usize| {
        percents[lane].map(|percent: u64| rates[lane].mul_ratio(percent, 100).max(LEAST))
    });
    let first = if on.has(Fault::Wrap) {
        let most = 1 << rng.below(10);
        Seq24::new(Seq24::MODULUS - 1 - rng.below(most) as u32)
    } else {
        Seq24::ZERO
    };
    let patience = if on.has(Fault::Impatience) {
        Span::from_millis(4_000 + rng.below(8_000))
    } else {
        Span::from_secs(180)
    };
    let configs = [("terminal", back, forward), ("hub", forward, back)];
    let configs = configs.map(|(name, send, receive)| {
        let mut config = RelayConfig::new(name).with_rates(send, receive);
        config.control = match rng.below(10) {
            0..=5 => Control::Steady,
            6 | 7 => Control::Fixed,
            8 => Control::NewReno,
            _ => Control::Probing,
        };
        config.first_number = first;
        config.no_response = patience;
        if rng.chance(0.3) {
            // From a 64th of the rate to 64 times as much.
            let rate = rates[usize::from(name == "hub")].mul_ratio(1 << rng.below(13), 64);
            let round_trip = Span::from_millis(2 + rng.below(1_500));
            config.path_metrics = Some(PathMetrics { rate, min_rtt: round_trip });
        }
        if on.has(Fault::TinySegment) {
            config.mtu = 576 + rng.below(100) as usize;
        }
        if on.has(Fault::TinyWindow) {
            config = config.with_memory(1 << 20);
            config.stream_minimum = 1024 << rng.below(4);
            config.max_streams = 1 + rng.below(8) as usize;
        }
        if on.has(Fault::HugeWindow) {
            config = config.with_memory(1 << 30);
        }
        config
    });
    (configs, told)
}

/// What clients do: some large transfers, and many small ones, in all what takes seconds.
fn draw_tasks(rng: &mut RngStream, rates: [BitRate; 2], within: Span) -> Vec<Task> {
    const MOST: u64 = 3_000_000;
    let budget = rates.map(|rate| rate.bytes_in(Span::from_secs(15)).min(MOST));
    let clients = 2 + rng.below(24);
    let mut tasks = Vec::new();
    for client in 0..clients {
        let part = if client < 2 { 3 } else { clients };
        tasks.push(Task::draw(rng, budget.map(|bytes| bytes / part), client < 2, within));
    }
    tasks
}
