//! Link descriptions in the syntax of tc-netem(8), with extensions.
//!
//! A description of a direction is a sequence of these keywords in any order; later ones override
//! earlier ones.
//!
//! | words | meaning |
//! |---|---|
//! | `delay TIME [JITTER] [distribution uniform\|normal] [unordered]` | propagation; jitter never reorders unless `unordered` |
//! | `rate RATE [OVERHEAD [CELLSIZE [CELLOVERHEAD]]]` | bits per second on the line; netem's framing |
//! | `framing plain\|ethernet\|hdlc\|aal5\|aal5-vc\|mpe\|ax25` | what the link layer adds |
//! | `limit N[p\|b\|k\|m\|bdp]` | the queue: packets, bytes, or bandwidth-delay products |
//! | `queue droptail` | first in, first out |
//! | `queue red LOWER UPPER SHARE [ecn] [steep]` | random early detection, thresholds as `limit`'s; `steep`: all goes above the upper one |
//! | `queue fair [QUANTUM]` | deficit round robin over flows |
//! | `queue codel [TARGET [INTERVAL]] [ecn]` | controlled delay (RFC 8289) |
//! | `queue fq-codel [TARGET [INTERVAL]] [ecn]` | one such queue per flow (RFC 8290) |
//! | `queue dualpi2 [TARGET [MAX_RTT]]` | coupled queues for L4S and other traffic (RFC 9332) |
//! | `loss [random] SHARE` | of the packets |
//! | `loss gemodel P [R [1-H [1-K]]]`, `gemodel ...` | Gilbert-Elliott |
//! | `ber RATIO` | of the bits, as in `1e-6` |
//! | `duplicate SHARE` | |
//! | `reorder SHARE [gap N]` | these packets skip the delay |
//!
//! A link ([`parse_link`], [`parse_file`]) is a run of direction words, which mean both
//! directions until `forward` or `return` says otherwise (and `both` takes it back), and:
//!
//! | words | meaning |
//! |---|---|
//! | `profile NAME` | start from a profile; what follows changes it |
//! | `outage [forward\|return] at TIME for TIME [every TIME]` | nothing gets through |
//! | `fade TIME SHARE TIME SHARE [delays TIME TIME]` | the shared two-state process: mean stay and drop rate, good and bad; one of two delays drawn for each stay |
//!
//! `TIME` is `300ms`, `1.5s`, `20us`; a bare number is microseconds, as netem has it. `RATE` is
//! `10mbit`, `64kbit`, `1.5gbit`; `kbps` and `mbps` are *bytes*, as tc has it; a bare number is
//! bits per second. `SHARE` is `1%`; a bare number is percent too. Sizes in `k` and `m` are
//! powers of 1,024, as tc has it. Correlations are not modelled: they are an error, not ignored.
//!
//! ```
//! use satlink::words;
//!
//! let link = words::parse_link("delay 300ms rate 10mbit limit 1bdp return rate 1mbit loss 0.1%")?;
//! assert_eq!(link.forward.delay, link.return_.delay);
//! assert!(link.return_.loss > 0.0 && link.forward.loss == 0.0);
//!
//! let error = words::parse_link("delay 300sm").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "column 7: delay: found \"300sm\", expected a time, such as 300ms"
//! );
//! # Ok::<(), words::WordError>(())
//! ```

mod scan;
mod star;
mod values;

pub use scan::WordError;
pub use star::parse_star;

use crate::errors::{GilbertElliott, MarkovState, Outage, TwoStateMarkov};
use crate::{
    CoDel, Direction, DirectionConfig, Discipline, DualPi2, Framing, Jitter, Limit, LinkConfig,
    Red, Reorder, profiles,
};
use core::fmt;
use scan::Words;
use units::Span;

/// Parses one direction.
pub fn parse_direction(text: &str) -> Result<DirectionConfig, WordError> {
    let mut config = DirectionConfig::default();
    apply_direction(&mut config, text)?;
    Ok(config)
}

/// Applies keywords to a direction.
pub fn apply_direction(config: &mut DirectionConfig, text: &str) -> Result<(), WordError> {
    direction_words(&mut Words::new(text), config)
}

fn direction_words(words: &mut Words<'_>, config: &mut DirectionConfig) -> Result<(), WordError> {
    while let Some(word) = words.next_word() {
        if !direction_word(word, words, config)? {
            return Err(words.unknown(word, "a word such as delay, rate, loss, limit, queue"));
        }
    }
    Ok(())
}

/// Parses a link.
pub fn parse_link(text: &str) -> Result<LinkConfig, WordError> {
    let mut config = LinkConfig::default();
    apply_link(&mut config, text)?;
    Ok(config)
}

/// Applies keywords to `config`; those of a direction apply to both until `forward` or `return`.
pub fn apply_link(config: &mut LinkConfig, text: &str) -> Result<(), WordError> {
    let mut words = Words::new(text);
    let mut scope = [true, true];
    while let Some(word) = words.next_word() {
        match word {
            "forward" => scope = [true, false],
            "return" => scope = [false, true],
            "both" => scope = [true, true],
            "profile" => {
                *config = words.value("the name of a profile", profiles::by_name)?;
            }
            "outage" => config.outages.push(outage(&mut words)?),
            "fade" => config.shared = Some(fade(&mut words)?),
            _ => link_direction_word(word, &mut words, config, scope)?,
        }
    }
    Ok(())
}

/// Parses a link from a file, line by line. Each line applies to both directions initially; `#`
/// starts a comment.
pub fn parse_file(text: &str) -> Result<LinkConfig, FileError> {
    let mut config = LinkConfig::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        apply_link(&mut config, line).map_err(|error| FileError { line: index + 1, error })?;
    }
    Ok(config)
}

/// An error in a link file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// Line number, from 1.
    pub line: usize,
    /// The error.
    pub error: WordError,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.line, self.error)
    }
}

impl core::error::Error for FileError {}

fn link_direction_word(
    word: &str,
    words: &mut Words<'_>,
    config: &mut LinkConfig,
    scope: [bool; 2],
) -> Result<(), WordError> {
    let mark = words.clone();
    let mut known = false;
    for (direction, wanted) in Direction::BOTH.into_iter().zip(scope) {
        if wanted {
            *words = mark.clone();
            known = direction_word(word, words, config.direction_mut(direction))?;
        }
    }
    if known {
        return Ok(());
    }
    Err(words.unknown(
        word,
        "a word such as delay, rate, loss, limit, queue, forward, return, outage, fade, profile",
    ))
}

/// Parses the values of `word`; false if it is not a keyword of a direction.
fn direction_word(
    word: &str,
    words: &mut Words<'_>,
    config: &mut DirectionConfig,
) -> Result<bool, WordError> {
    match word {
        "delay" => delay(words, config)?,
        "rate" => rate(words, config)?,
        "framing" => {
            config.framing = words.value(
                "plain, ethernet, hdlc, aal5, aal5-vc, mpe or ax25",
                |text| match text {
                    "plain" => Some(Framing::Plain),
                    "ethernet" => Some(Framing::Ethernet),
                    "hdlc" => Some(Framing::Hdlc),
                    "aal5" => Some(Framing::Aal5),
                    "aal5-vc" => Some(Framing::Aal5VirtualCircuit),
                    "mpe" => Some(Framing::MpeTransportStream),
                    "ax25" => Some(Framing::Ax25),
                    _ => None,
                },
            )?;
        }
        "limit" => config.queue.limit = words.value(LIMIT, values::limit)?,
        "queue" => config.queue.discipline = discipline(words)?,
        "loss" => {
            if words.take("gemodel") {
                config.gilbert = Some(gilbert(words)?);
            } else {
                words.take("random");
                config.loss = words.value(SHARE, values::share)?;
                words.refuse_correlation()?;
            }
        }
        "gemodel" => config.gilbert = Some(gilbert(words)?),
        "ber" => {
            config.bit_error_ratio =
                words.value("a ratio from 0 to 1, such as 1e-6", values::ratio)?;
        }
        "duplicate" => {
            config.duplicate = words.value(SHARE, values::share)?;
            words.refuse_correlation()?;
        }
        "reorder" => {
            let probability = words.value(SHARE, values::share)?;
            words.refuse_correlation()?;
            let gap = if words.take("gap") {
                words.value("a number of packets, at least 1", values::whole)?
            } else {
                1
            };
            config.reorder = Some(Reorder { probability, gap });
        }
        _ => return Ok(false),
    }
    Ok(true)
}

const TIME: &str = "a time, such as 300ms";
const SHARE: &str = "a share, such as 0.1%";
const LIMIT: &str = "a size, such as 1000 (packets), 64000b or 1bdp";

fn delay(words: &mut Words<'_>, config: &mut DirectionConfig) -> Result<(), WordError> {
    config.delay = words.value(TIME, values::time)?;
    config.keep_order = true;
    let width = words.optional(TIME, values::time)?.filter(|width| !width.is_zero());
    words.refuse_correlation()?;
    config.jitter = width.map_or(Jitter::None, Jitter::Uniform);
    if words.take("distribution") {
        let normal = words.value("uniform or normal", |text| match text {
            "uniform" => Some(false),
            "normal" => Some(true),
            _ => None,
        })?;
        config.jitter = match width {
            Some(width) if normal => Jitter::Normal(width),
            Some(width) => Jitter::Uniform(width),
            None => Jitter::None,
        };
    }
    if words.take("unordered") {
        config.keep_order = false;
    }
    Ok(())
}

fn rate(words: &mut Words<'_>, config: &mut DirectionConfig) -> Result<(), WordError> {
    config.rate = Some(words.value("a rate above 0, such as 10mbit", values::rate)?);
    const BYTES: &str = "a number of bytes";
    if let Some(overhead) = words.optional(BYTES, values::number)? {
        let cell_size = words.optional(BYTES, values::number)?;
        let cell_overhead = match cell_size {
            Some(_) => words.optional(BYTES, values::number)?,
            None => None,
        };
        config.framing = Framing::Cells {
            overhead,
            cell_size: cell_size.unwrap_or(0),
            cell_overhead: cell_overhead.unwrap_or(0),
        };
    }
    Ok(())
}

fn discipline(words: &mut Words<'_>) -> Result<Discipline, WordError> {
    enum Kind {
        DropTail,
        Red,
        Fair,
        CoDel,
        FairCoDel,
        DualPi2,
    }
    let kind =
        words.value("droptail, red, fair, codel, fq-codel or dualpi2", |text| match text {
            "droptail" => Some(Kind::DropTail),
            "red" => Some(Kind::Red),
            "fair" => Some(Kind::Fair),
            "codel" => Some(Kind::CoDel),
            "fq-codel" => Some(Kind::FairCoDel),
            "dualpi2" => Some(Kind::DualPi2),
            _ => None,
        })?;
    Ok(match kind {
        Kind::DropTail => Discipline::DropTail,
        Kind::Red => {
            let lower: Limit = words.value(LIMIT, values::limit)?;
            let upper = words.value(LIMIT, values::limit)?;
            let largest_probability = words.value(SHARE, values::share)?;
            let mark = words.take("ecn");
            let gentle = !words.take("steep");
            let weight = 0.002;
            Discipline::Red(Red { lower, upper, largest_probability, weight, mark, gentle })
        }
        Kind::Fair => Discipline::Fair {
            quantum: words
                .optional("a number of bytes, at least 64", values::number)?
                .unwrap_or(QUANTUM),
        },
        Kind::CoDel => Discipline::CoDel(codel(words)?),
        Kind::FairCoDel => Discipline::FairCoDel { quantum: QUANTUM, codel: codel(words)? },
        Kind::DualPi2 => Discipline::DualPi2(dual_pi2(words)?),
    })
}

/// A full packet with Ethernet's header.
const QUANTUM: u32 = 1_514;

/// RFC 8289's defaults: 5 ms and 100 ms.
fn codel(words: &mut Words<'_>) -> Result<CoDel, WordError> {
    let target = words.optional(TIME, values::time)?;
    let interval = if target.is_some() { words.optional(TIME, values::time)? } else { None };
    Ok(CoDel {
        target: target.unwrap_or(Span::from_millis(5)),
        interval: interval.unwrap_or(Span::from_millis(100)),
        mark: words.take("ecn"),
    })
}

/// RFC 9332's defaults: 15 ms and 100 ms.
fn dual_pi2(words: &mut Words<'_>) -> Result<DualPi2, WordError> {
    let usual = DualPi2::default();
    let target = words.optional(TIME, values::time)?;
    let longest = if target.is_some() { words.optional(TIME, values::time)? } else { None };
    Ok(DualPi2 {
        target: target.unwrap_or(usual.target),
        max_round_trip: longest.unwrap_or(usual.max_round_trip),
    })
}

/// netem's defaults: `r = 1 - p`, a loss of 1 in the bad state and of 0 in the good one.
fn gilbert(words: &mut Words<'_>) -> Result<GilbertElliott, WordError> {
    let to_bad = words.value(SHARE, values::share)?;
    let to_good = words.optional(SHARE, values::share)?;
    let loss_in_bad = words.optional(SHARE, values::share)?;
    let loss_in_good = words.optional(SHARE, values::share)?;
    Ok(GilbertElliott {
        to_bad,
        to_good: to_good.unwrap_or(1.0 - to_bad),
        loss_in_bad: loss_in_bad.unwrap_or(1.0),
        loss_in_good: loss_in_good.unwrap_or(0.0),
    })
}

fn outage(words: &mut Words<'_>) -> Result<Outage, WordError> {
    let direction = if words.take("forward") {
        Some(Direction::Forward)
    } else if words.take("return") {
        Some(Direction::Return)
    } else {
        None
    };
    words.expect("at")?;
    let at = words.value(TIME, values::time)?;
    words.expect("for")?;
    let length = words.value(TIME, values::time)?;
    let every = if words.take("every") { Some(words.value(TIME, values::time)?) } else { None };
    Ok(Outage { at, length, every, direction })
}

fn fade(words: &mut Words<'_>) -> Result<TwoStateMarkov, WordError> {
    let mut state = || {
        let mean_stay = words.value(TIME, values::time)?;
        let drop = words.value(SHARE, values::share)?;
        Ok(MarkovState { mean_stay, drop, delays: [Span::ZERO; 2], second_delay: 0.5 })
    };
    let mut states = [state()?, state()?];
    if words.take("delays") {
        let delays = [words.value(TIME, values::time)?, words.value(TIME, values::time)?];
        for state in &mut states {
            state.delays = delays;
        }
    }
    Ok(TwoStateMarkov { states })
}

#[cfg(test)]
mod tests;
