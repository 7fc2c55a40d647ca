//! `[[plan]]` and `[[class]]` at a hub: who may have how much of the link, and what goes first.

use super::reader::{Item, Reader, Section};
use super::{HubSection, LinkSection, TerminalEntry, read, values};
use crate::intercept::{PortRange, Prefix};
use relay::plan::{COMMITTED_MOST, Plan, Rates};
use relay::{Level, Plans};
use std::collections::BTreeMap;
use units::BitRate;

/// Most plans of a hub.
const MOST_PLANS: usize = 64;
/// Most classes of a hub.
const MOST_CLASSES: usize = 16;
/// The plan of terminals that have no other.
const USUAL: &str = "default";

/// One `[[plan]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSection {
    /// What it says.
    pub plan: Plan,
    /// The names of terminals that have it, beside those whose `[[terminal]]` says so.
    pub terminals: Vec<String>,
}

/// One `[[class]]`: what goes before what on the way from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSection {
    /// What people call it.
    pub name: String,
    /// Of connections the server's port, of packets either; all when empty.
    pub ports: Vec<PortRange>,
    /// The server's network or the client's; all when empty.
    pub networks: Vec<Prefix>,
    /// Of packets that are carried as they are, their DSCP; all when empty.
    pub dscp: Vec<u8>,
    /// Before whom it goes.
    pub level: Level,
    /// Its part against other classes of that level.
    pub weight: u32,
}

/// What is promised on one way, of a link or of a plan's total, against what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// Which way: `up` or `down`.
    pub way: &'static str,
    /// The plan of which it is the total; `None`: the link.
    pub plan: Option<String>,
    /// What is committed to all terminals that are named, bits per second.
    pub committed_bps: u64,
    /// The link's rate, or the plan's total.
    pub rate: BitRate,
}

impl Commitment {
    /// Whether not all of it can be had at once.
    pub fn is_too_much(&self) -> bool {
        self.committed_bps > self.most().as_bps()
    }

    /// What commitments may take: all of a plan's total, but not all of a link.
    pub fn most(&self) -> BitRate {
        match self.plan {
            Some(_) => self.rate,
            None => self.rate.mul_ratio(COMMITTED_MOST, 100),
        }
    }

    /// In words, for people.
    pub fn words(&self) -> String {
        let sum = BitRate::new(self.committed_bps).map_or("nothing".into(), |sum| sum.to_string());
        let (way, most) = (self.way, self.most());
        let of = match &self.plan {
            Some(plan) => {
                format!("to the terminals of plan {plan:?}, and its total_{way} is {most}")
            }
            None => {
                format!("to terminals in all, and {COMMITTED_MOST} % of link.rate_{way} are {most}")
            }
        };
        format!("{sum} are committed {of}: when all are busy, each gets his part of that")
    }
}

/// The plans as the relay wants them: the usual one first.
pub(crate) fn for_relay(plans: &[PlanSection], terminals: &[TerminalEntry]) -> Plans {
    let mut all = Plans::default();
    let mut numbers = BTreeMap::new();
    for PlanSection { plan, .. } in plans {
        if plan.name == USUAL {
            all.plans[0] = plan.clone();
            numbers.insert(plan.name.as_str(), 0);
        } else {
            numbers.insert(plan.name.as_str(), all.plans.len());
            all.plans.push(plan.clone());
        }
    }
    for PlanSection { plan, terminals } in plans {
        let number = numbers.get(plan.name.as_str()).copied().unwrap_or(0);
        all.terminals.extend(terminals.iter().map(|name| (name.clone(), number)));
    }
    for entry in terminals {
        // A further path of a terminal has the terminal's plan.
        let own = |entry: &TerminalEntry| {
            let number = entry.plan.as_ref().and_then(|plan| numbers.get(plan.as_str()).copied());
            number.or_else(|| all.terminals.get(&entry.name).copied())
        };
        let first = super::terminal_of(&entry.name);
        let of_first = || terminals.iter().find(|other| other.name == first).and_then(own);
        if let Some(number) = own(entry).or_else(of_first) {
            all.terminals.insert(entry.name.clone(), number);
        }
    }
    all
}

/// What is committed to the terminals that are named: of the link, each way whose rate is known,
/// and of plans that have a total.
pub(crate) fn commitments(link: &LinkSection, section: &HubSection) -> Vec<Commitment> {
    let HubSection { plans, terminals, .. } = section;
    let all = for_relay(plans, terminals);
    let named = terminals.iter().map(|entry| entry.name.as_str());
    let listed = plans.iter().flat_map(|plan| plan.terminals.iter().map(String::as_str));
    let names: std::collections::BTreeSet<&str> = named.chain(listed).collect();
    let mut counts = vec![0u64; all.plans.len()];
    names.iter().for_each(|name| counts[all.of(name)] += 1);
    let mut found = Vec::new();
    for (way, rate, of) in [
        ("up", link.rate_up, (|plan| plan.up) as fn(&Plan) -> Rates),
        ("down", link.rate_down, |plan| plan.down),
    ] {
        let mut whole = 0u64;
        for (plan, &count) in all.plans.iter().zip(&counts) {
            let rates = of(plan);
            let sum = rates.committed.map_or(0, BitRate::as_bps).saturating_mul(count);
            whole = whole.saturating_add(sum.min(rates.total.map_or(u64::MAX, BitRate::as_bps)));
            if let Some(rate) = rates.total {
                let plan = Some(plan.name.clone());
                found.push(Commitment { way, plan, committed_bps: sum, rate });
            }
        }
        found.extend(rate.map(|rate| Commitment { way, plan: None, committed_bps: whole, rate }));
    }
    found
}

/// Terminals that a plan names and that the hub does not know, where it knows its terminals.
pub(crate) fn strangers(section: &HubSection) -> Vec<(&str, &str)> {
    let known = |name: &str| section.terminals.iter().any(|entry| entry.name == name);
    let named = section.plans.iter().flat_map(|plan| {
        plan.terminals.iter().map(|name| (plan.plan.name.as_str(), name.as_str()))
    });
    named.filter(|(_, name)| !known(name)).collect()
}

/// All `[[plan]]`, on a link with these rates.
pub(super) fn read_plans(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    link: Option<&LinkSection>,
) -> Option<Vec<PlanSection>> {
    let sections = top.sections(reader, "plan")?;
    too_many(reader, "plan", sections.len(), MOST_PLANS)?;
    let mut all: Option<Vec<PlanSection>> = Some(Vec::new());
    for mut section in sections {
        let line = section.line();
        let plan = read_plan(reader, &mut section, link);
        section.finish(reader);
        match (&mut all, plan) {
            (Some(list), Some(plan)) => {
                if list.iter().any(|other| other.plan.name == plan.plan.name) {
                    let found = format!("{:?} again", plan.plan.name);
                    reader.mistake(line, "plan.name", &found, "each plan once");
                }
                for name in &plan.terminals {
                    if let Some(other) = list.iter().find(|other| other.terminals.contains(name)) {
                        let found = format!("{name:?}, which has plan {:?}", other.plan.name);
                        reader.mistake(line, "plan.terminals", &found, "each terminal once");
                    }
                }
                list.push(plan);
            }
            (Some(_), None) | (None, _) => all = None,
        }
    }
    all
}

fn too_many(reader: &mut Reader<'_>, key: &str, found: usize, most: usize) -> Option<()> {
    if found <= most {
        return Some(());
    }
    reader.mistake(1, key, &format!("{found} of them"), &format!("at most {most}"));
    None
}

fn read_plan(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    link: Option<&LinkSection>,
) -> Option<PlanSection> {
    let name = section.required(reader, "name", "what the plan is called", read::name);
    let line = section.line();
    let (up, down) = (link.and_then(|l| l.rate_up), link.and_then(|l| l.rate_down));
    let up =
        read_rates(reader, section, ["committed_up", "peak_up", "total_up"]).inspect(|rates| {
            contradictions(reader, line, rates, ("up", up));
        });
    let down = read_rates(reader, section, ["committed_down", "peak_down", "total_down"])
        .inspect(|rates| contradictions(reader, line, rates, ("down", down)));
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=1_000));
    let together = section.or(reader, "shared_weight", false, |r, i| read::read_bool(r, &i));
    let terminals = section.or(reader, "terminals", Vec::new(), |r, i| i.list(r, read::name));
    let rates = |read: Read| Rates { committed: read[0].0, peak: read[1].0, total: read[2].0 };
    let plan = Plan {
        name: name?,
        up: rates(up?),
        down: rates(down?),
        weight: weight?,
        shared_weight: together?,
    };
    Some(PlanSection { plan, terminals: terminals? })
}

/// A committed rate, a peak and a total, and where they stand.
type Read = [(Option<BitRate>, usize); 3];

fn read_rates(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    keys: [&'static str; 3],
) -> Option<Read> {
    const RATE: &str = "a rate from \"1bit\" to \"10000gbit\", such as \"512kbit\"";
    let mut one = |key| {
        section.or(reader, key, (None, 0), |reader, item: Item<'_>| {
            let line = item.line();
            item.parsed(reader, RATE, values::rate).map(|rate| (Some(rate), line))
        })
    };
    let read = keys.map(&mut one);
    let [committed, peak, total] = read;
    Some([committed?, peak?, total?])
}

/// Each of the three is no more than the next, and none is more than the link has.
fn contradictions(
    reader: &mut Reader<'_>,
    line: usize,
    rates: &Read,
    (way, link): (&str, Option<BitRate>),
) {
    let names = ["committed", "peak", "total"].map(|name| format!("plan.{name}_{way}"));
    let link = (link, format!("link.rate_{way}"));
    for at in 0..3 {
        let (Some(rate), own) = rates[at] else { continue };
        let later = (at + 1..3).map(|next| (rates[next].0, names[next].clone()));
        let beyond = later.chain([link.clone()]).find(|(most, _)| most.is_some_and(|m| rate > m));
        if let Some((Some(most), key)) = beyond {
            let line = if own > 0 { own } else { line };
            reader.mistake(line, &names[at], &rate.to_string(), &format!("at most {key}, {most}"));
        }
    }
}

/// The `plan` of a `[[terminal]]`, one of `plans`.
pub(super) fn read_choice(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    plans: &[PlanSection],
) -> Option<Option<String>> {
    section.or(reader, "plan", None, |reader, item| {
        let known = |name: &str| plans.iter().any(|plan| plan.plan.name == name);
        match item.as_str() {
            Some(name) if known(name) || name == USUAL => Some(Some(name.to_owned())),
            Some(_) | None => {
                let names = plans.iter().map(|plan| format!("{:?}", plan.plan.name));
                let names: Vec<String> = names.collect();
                let expected = if names.is_empty() {
                    "the name of a [[plan]], of which there is none".to_owned()
                } else {
                    format!("the name of a [[plan]]: {}", names.join(" or "))
                };
                reader.wrong(&item, &expected)
            }
        }
    })
}

/// All `[[class]]`.
pub(super) fn read_classes(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Vec<ClassSection>> {
    let sections = top.sections(reader, "class")?;
    too_many(reader, "class", sections.len(), MOST_CLASSES)?;
    let mut all = Some(Vec::new());
    for mut section in sections {
        let class = read_class(reader, &mut section);
        section.finish(reader);
        match (&mut all, class) {
            (Some(list), Some(class)) => list.push(class),
            (Some(_), None) | (None, _) => all = None,
        }
    }
    all
}

fn read_class(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<ClassSection> {
    let line = section.line();
    let name = section.required(reader, "name", "what the class is called", read::name);
    let ports = section.or(reader, "ports", Vec::new(), |r, i| i.list(r, read::ports));
    let networks = section.or(reader, "networks", Vec::new(), |r, i| i.list(r, read::network));
    let dscp = section.or(reader, "dscp", Vec::new(), |r, i| {
        i.list(r, |r, i| i.integer(r, 0..=63).map(|value| value as u8))
    });
    let expected = "\"urgent\", \"interactive\", \"normal\" or \"background\"";
    let level = section.required(reader, "priority", expected, |r, i| i.word(r, &LEVELS));
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=100));
    let class = ClassSection {
        name: name?,
        ports: ports?,
        networks: networks?,
        dscp: dscp?,
        level: level?,
        weight: weight?,
    };
    if class.ports.is_empty() && class.networks.is_empty() && class.dscp.is_empty() {
        let expected = "at least one of ports, networks and dscp, or everything is in this class";
        reader.mistake(line, "class", "nothing that says what is in it", expected);
    }
    Some(class)
}

/// Levels and their words.
pub(super) const LEVELS: [(&str, Level); 4] = [
    ("urgent", Level::Urgent),
    ("interactive", Level::Interactive),
    ("normal", Level::Normal),
    ("background", Level::Background),
];
