//! The description of a star, line by line; each line starts with its subject.
//!
//! | line | meaning |
//! |---|---|
//! | `forward WORDS` | a direction: the broadcast forward link |
//! | `return WORDS` | the shared return link |
//! | `terminals WORDS` | all terminals without a later line of their own |
//! | `terminal NAME WORDS` | one terminal |
//! | `connections keep TIME` | how long an announced number of connections is valid |
//!
//! The words of the return link, in any order:
//!
//! | words | meaning |
//! |---|---|
//! | `rate RATE`, `carriers N` | rate of one carrier; number of carriers |
//! | `slots atm\|mpeg`, `guard TIME`, `frame TIME` | slot format; guard time; frame duration |
//! | `placement spread\|contiguous` | position of a terminal's slots |
//! | `ask none\|absolute\|volume\|rate` | category of capacity requests |
//! | `free none\|equal\|weighted` | assignment of unrequested slots |
//! | `order arrival`, `order short-first BYTES` | service order in a terminal |
//! | `scheduler hub\|board`, `hub TIME`, `lead TIME` | its location; delay from the satellite to the hub; time to process a plan |
//! | `sync N\|off`, `silence N\|off` | interval of sync bursts in frames; frames of silence after which a terminal loses its slots |
//! | `limit N` | maximum packets queued in a terminal |
//! | `lose bursts\|requests\|plans SHARE` | loss probabilities |
//!
//! Those of a terminal: `weight N`, `constant N` and `most N` slots of a frame, `up TIME` to the
//! satellite, `late TIME`, and `off` for one that is not logged on at first.

use super::scan::{WordError, Words};
use super::{FileError, SHARE, TIME, direction_words, values};
use crate::mac::mf_tdma::{Demand, Order, Site, TerminalConfig};
use crate::mac::schedule::Free;
use crate::mac::slots::{Placement, SlotFormat};
use crate::mac::star::StarConfig;
use alloc::string::ToString;
use units::Span;

const COUNT: &str = "a whole number above 0";
const WHOLE: &str = "a whole number";

/// Parses a star from a file; settings that are not given are those of [`StarConfig::default`]. `#`
/// starts a comment.
///
/// ```
/// let star = satlink::words::parse_star(
///     "forward rate 20mbit delay 270ms limit 1bdp\n\
///      return rate 512kbit carriers 4 free weighted # and what terminals ask for first\n\
///      terminal boat weight 5 constant 1",
/// )?;
/// assert_eq!((star.mac.carriers, star.named[0].1.contract.weight), (4, 5));
///
/// let error = satlink::words::parse_star("return frame soon").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "line 1, column 14: frame: found \"soon\", expected a time, such as 300ms"
/// );
/// # Ok::<(), satlink::words::FileError>(())
/// ```
///
/// # Errors
/// The first invalid token, with its line and column, and what was expected.
pub fn parse_star(text: &str) -> Result<StarConfig, FileError> {
    let mut star = StarConfig::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        star_line(&mut star, line).map_err(|error| FileError { line: index + 1, error })?;
    }
    Ok(star)
}

fn star_line(star: &mut StarConfig, line: &str) -> Result<(), WordError> {
    let mut words = Words::new(line);
    let Some(first) = words.next_word() else { return Ok(()) };
    match first {
        "forward" => direction_words(&mut words, &mut star.forward)?,
        "return" => {
            while let Some(word) = words.next_word() {
                return_word(word, &mut words, star)?;
            }
        }
        "terminals" => terminal_words(&mut words, &mut star.usual)?,
        "terminal" => {
            let taken = |name: &str| star.named.iter().any(|(other, _)| other == name);
            let name = words.value("the name of a terminal that has no line yet", |name| {
                (!taken(name)).then(|| name.to_string())
            })?;
            let mut terminal = star.usual.clone();
            terminal_words(&mut words, &mut terminal)?;
            star.named.push((name, terminal));
        }
        "connections" => {
            words.expect("keep")?;
            star.keep = words.value("a time from 1s to 1h, such as 5s", kept)?;
            if let Some(word) = words.next_word() {
                return Err(words.unknown(word, "the end of the line"));
            }
        }
        _ => {
            return Err(words.unknown(first, "forward, return, terminals, terminal or connections"));
        }
    }
    Ok(())
}

fn kept(text: &str) -> Option<Span> {
    let range = Span::from_secs(1)..=Span::from_secs(3_600);
    values::time(text).filter(|time| range.contains(time))
}

fn return_word(word: &str, words: &mut Words<'_>, star: &mut StarConfig) -> Result<(), WordError> {
    let mac = &mut star.mac;
    match word {
        "rate" => mac.rate = words.value("a rate above 0, such as 512kbit", values::rate)?,
        "carriers" => mac.carriers = words.value(COUNT, values::whole)?,
        "slots" => {
            let formats = [("atm", SlotFormat::Atm), ("mpeg", SlotFormat::Mpeg)];
            mac.format = one_of(words, "atm or mpeg", formats)?;
        }
        "guard" => mac.guard = words.value(TIME, values::time)?,
        "frame" => mac.period = words.value(TIME, values::time)?,
        "placement" => {
            let all = [("spread", Placement::Spread), ("contiguous", Placement::Contiguous)];
            mac.placement = one_of(words, "spread or contiguous", all)?;
        }
        "ask" => {
            let ways = [
                ("none", Demand::None),
                ("absolute", Demand::Absolute),
                ("volume", Demand::Volume),
                ("rate", Demand::Rate),
            ];
            mac.demand = one_of(words, "none, absolute, volume or rate", ways)?;
        }
        "free" => {
            let ways = [("none", Free::None), ("equal", Free::Equal), ("weighted", Free::ByWeight)];
            mac.free = one_of(words, "none, equal or weighted", ways)?;
        }
        "order" => {
            let ways = [("arrival", Order::Arrival), ("short-first", Order::ControlFirst)];
            mac.order = one_of(words, "arrival or short-first", ways)?;
            star.short = match mac.order {
                Order::Arrival => 0,
                Order::ControlFirst => {
                    words.value("a number of IP bytes above 0", values::whole)? as usize
                }
            };
        }
        "scheduler" => {
            let sites = [("hub", Site::Hub), ("board", Site::OnBoard)];
            mac.site = one_of(words, "hub or board", sites)?;
        }
        "hub" => mac.hub_leg = words.value(WAY, way)?,
        "lead" => mac.lead = words.value(WAY, way)?,
        "sync" => mac.sync = words.value(OR_OFF, or_off)?,
        "log-on" => mac.log_on = words.value(SLOTS_OR_OFF, or_off)?,
        "silence" => mac.silence = words.value(OR_OFF, or_off)?,
        "limit" => mac.queue = words.value(COUNT, values::whole)? as usize,
        "lose" => {
            let what = words.value("bursts, requests or plans", |word| {
                ["bursts", "requests", "plans"].iter().position(|&known| known == word)
            })?;
            let share = [&mut mac.burst_loss, &mut mac.request_loss, &mut mac.plan_loss];
            *share[what] = words.value(SHARE, values::share)?;
        }
        _ => {
            return Err(words.unknown(
                word,
                "rate, carriers, slots, guard, frame, placement, ask, free, order, scheduler, \
                 hub, lead, sync, log-on, silence, limit or lose",
            ));
        }
    }
    Ok(())
}

fn terminal_words(words: &mut Words<'_>, terminal: &mut TerminalConfig) -> Result<(), WordError> {
    while let Some(word) = words.next_word() {
        let contract = &mut terminal.contract;
        match word {
            "weight" => contract.weight = words.value("a weight from 0 to 1000000", weight)?,
            "constant" => contract.constant = words.value(WHOLE, values::number)?,
            "most" => contract.most = words.value(COUNT, values::whole)?,
            "up" => terminal.up = words.value(WAY, way)?,
            "late" => terminal.late = words.value(TIME, values::time)?,
            "off" => terminal.logged_on = false,
            _ => return Err(words.unknown(word, "weight, constant, most, up, late or off")),
        }
    }
    Ok(())
}

const WAY: &str = "a time up to 10s, such as 135ms";
const OR_OFF: &str = "a number of frames above 0, or off";
const SLOTS_OR_OFF: &str = "a number of slots above 0, or off";

fn way(text: &str) -> Option<Span> {
    values::time(text).filter(|&time| time <= Span::from_secs(10))
}

fn weight(text: &str) -> Option<u32> {
    values::number(text).filter(|&weight| weight <= crate::mac::weights::MOST)
}

fn or_off(text: &str) -> Option<Option<u32>> {
    if text == "off" { Some(None) } else { values::whole(text).map(Some) }
}

fn one_of<T: Copy, const N: usize>(
    words: &mut Words<'_>,
    expected: &'static str,
    all: [(&str, T); N],
) -> Result<T, WordError> {
    words
        .value(expected, |word| all.iter().find(|(name, _)| *name == word).map(|&(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::mf_tdma::{MfTdma, MfTdmaConfig};
    use alloc::string::String;
    use alloc::vec::Vec;
    use std::format;
    use units::BitRate;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn an_empty_file_is_the_published_link() {
        let star = parse_star("# nothing\n\n").unwrap();
        let mac = star.with_terminals(&names(&["a", "b", "c"])).unwrap();
        assert_eq!(mac, MfTdmaConfig::mhatre_rosenberg(3));
        assert_eq!(star.forward.rate, Some(BitRate::from_mbps(50)));
        assert_eq!(star.forward.delay, Span::from_millis(270));
    }

    #[test]
    fn all_keywords_are_parsed() {
        let star = parse_star(
            "forward rate 20mbit loss 1%\nconnections keep 9s\n\
             return rate 512kbit carriers 4 slots mpeg guard 10us frame 100ms\n\
             return placement contiguous ask volume free weighted order short-first 90\n\
             return scheduler board hub 120ms lead 5ms sync 4 log-on 2 silence 20 limit 99\n\
             return lose bursts 1% lose requests 2% lose plans 3%\n\
             terminals up 130ms weight 2\n\
             terminal boat weight 5 constant 1 most 40 late 3us # far out\nterminal hut off",
        )
        .unwrap();
        let mac = star.with_terminals(&names(&["hut", "plane", "boat"])).unwrap();
        assert_eq!((mac.rate, mac.carriers), (BitRate::from_kbps(512), 4));
        assert_eq!((mac.format, mac.guard), (SlotFormat::Mpeg, Span::from_micros(10)));
        assert_eq!((mac.period, mac.placement), (Span::from_millis(100), Placement::Contiguous));
        assert_eq!((mac.demand, mac.free), (Demand::Volume, Free::ByWeight));
        assert_eq!((mac.order, mac.site), (Order::ControlFirst, Site::OnBoard));
        assert_eq!((mac.hub_leg, mac.lead), (Span::from_millis(120), Span::from_millis(5)));
        assert_eq!((mac.sync, mac.log_on), (Some(4), Some(2)));
        assert_eq!((mac.silence, mac.queue), (Some(20), 99));
        assert_eq!([mac.burst_loss, mac.request_loss, mac.plan_loss], [0.01, 0.02, 0.03]);
        let [hut, plane, boat] = &mac.terminals[..] else { panic!("three terminals") };
        assert!(!hut.logged_on && plane.logged_on);
        assert_eq!((plane.contract.weight, plane.up), (2, Span::from_millis(130)));
        assert_eq!((boat.contract.constant, boat.contract.most), (1, 40));
        assert_eq!((boat.contract.weight, boat.late), (5, Span::from_micros(3)));
        assert_eq!((star.short, star.keep), (90, Span::from_secs(9)));
        assert_eq!(star.class_of(90), crate::mac::mf_tdma::Class::Control);
        assert!(MfTdma::<Vec<u8>>::new(&mac, 1, 0).is_ok());
    }

    #[test]
    fn errors_have_position_and_expectation() {
        let error = |text: &str| parse_star(text).unwrap_err().to_string();
        assert_eq!(
            error("\nreturn carriers 0"),
            "line 2, column 17: carriers: found \"0\", expected a whole number above 0"
        );
        for (text, expected) in [
            ("backward rate 1mbit", "expected forward, return, terminals, terminal or conn"),
            ("forward weight 3", "found \"weight\", expected a word such as delay"),
            ("return delay 3ms", "found \"delay\", expected rate, carriers, slots"),
            ("return order short-first", "order: found the end, expected a number of IP bytes"),
            ("return sync 0", "expected a number of frames above 0, or off"),
            ("return log-on 0", "expected a number of slots above 0, or off"),
            ("return lose cells 1%", "expected bursts, requests or plans"),
            ("return hub 11s", "expected a time up to 10s"),
            ("terminal", "terminal: found the end, expected the name"),
            ("terminal a\nterminal a", "line 2, column 10: terminal: found \"a\""),
            ("terminals weight 1000001", "expected a weight from 0 to 1000000"),
            ("terminal a rate 3", "found \"rate\", expected weight, constant"),
            ("connections keep 0s", "expected a time from 1s to 1h"),
            ("connections keep 5s now", "found \"now\", expected the end of the line"),
        ] {
            let found = error(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn invalid_terminals_and_settings_are_rejected() {
        let error = |text: &str, there: &[&str]| {
            parse_star(text).unwrap().with_terminals(&names(there)).unwrap_err().to_string()
        };
        assert!(error("", &["a", "a"]).starts_with("terminal a: found twice"));
        assert!(error("terminal boat", &["a"]).starts_with("terminal boat is described"));
        assert!(error("", &[]).starts_with("return link: terminals: expected 1"));
        let found = error("return frame 1ms", &["a"]);
        assert_eq!(found, "return link: frame: expected at least one slot and at most 60 s");
        assert!(error("return silence 4", &["a"]).contains("silence"));
        assert!(format!("{:?}", parse_star("").unwrap()).contains("forward"));
    }
}
