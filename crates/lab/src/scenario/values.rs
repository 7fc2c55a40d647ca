//! Values of a scenario file: times, sizes, rates, TCPs and links.

use satlink::{Direction, LinkConfig, Trace, words};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor, value};
use simtcp::{InitialWindow, TcpConfig};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use units::{BitRate, Span};

/// A number or a text.
enum Scalar {
    Number(f64),
    Text(String),
}

/// Reads a number or a text by `parse`; `expected` describes what it accepts.
fn scalar<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    parse: impl FnOnce(&Scalar) -> Option<T>,
) -> Result<T, D::Error> {
    struct Read(&'static str);
    impl Visitor<'_> for Read {
        type Value = Scalar;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
            Ok(Scalar::Number(number as f64))
        }
        fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
            Ok(Scalar::Number(number))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
            Ok(Scalar::Text(text.to_owned()))
        }
    }
    let found = deserializer.deserialize_any(Read(expected))?;
    parse(&found).ok_or_else(|| {
        let found = match found {
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => format!("\"{text}\""),
        };
        D::Error::custom(format!("found {found}, expected {expected}"))
    })
}

/// A time: a number of seconds, or a text with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time(pub(super) Span);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a number of seconds, or a time with its unit, such as \"300ms\"";
        scalar(deserializer, expected, |found| match found {
            Scalar::Number(number) => (*number >= 0.0).then(|| Self(Span::from_secs_f64(*number))),
            Scalar::Text(text) => word("delay", text, false).map(|one| Self(one.forward.delay)),
        })
    }
}

/// A rate: a number of bit/s, or a text with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate(pub(super) BitRate);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a number of bit/s, or a rate with its unit, such as \"10mbit\"";
        scalar(deserializer, expected, |found| match found {
            Scalar::Number(number) => BitRate::new(*number as u64).map(Self),
            Scalar::Text(text) => word("rate", text, false)?.forward.rate.map(Self),
        })
    }
}

/// Octets: a number, or a text with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const UNITS: [(&str, f64); 7] = [
            ("KiB", 1024.0),
            ("MiB", 1_048_576.0),
            ("GiB", 1_073_741_824.0),
            ("kB", 1e3),
            ("MB", 1e6),
            ("GB", 1e9),
            ("B", 1.0),
        ];
        let expected = "a number of bytes above 0, or a text with kB, MB, GB, KiB, MiB or GiB";
        scalar(deserializer, expected, |found| {
            let bytes = match found {
                Scalar::Number(number) => *number,
                Scalar::Text(text) => {
                    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
                    text.strip_suffix(unit.0)?.trim().parse::<f64>().ok()? * unit.1
                }
            };
            (1.0..1e18).contains(&bytes).then_some(Self(bytes as u64))
        })
    }
}

/// The link with one word and its value, which is one token unless `several`.
fn word(name: &str, text: &str, several: bool) -> Option<LinkConfig> {
    let has_unit = text.ends_with(|letter: char| letter.is_ascii_alphabetic());
    let fits = several || has_unit && !text.contains(char::is_whitespace);
    fits.then(|| words::parse_link(&format!("{name} {text}")).ok()).flatten()
}

/// A TCP by name, with changes.
#[derive(Clone, Debug)]
pub(super) struct Tcp(pub(super) TcpConfig);

type Preset = fn() -> TcpConfig;

/// The TCPs by name.
const TCPS: [(&str, Preset); 14] = [
    ("linux-cubic", TcpConfig::linux_cubic),
    ("linux-reno", TcpConfig::linux_reno),
    ("bbr", TcpConfig::bbr),
    ("bbr3", TcpConfig::bbr3),
    ("prague", TcpConfig::prague),
    ("cubic", TcpConfig::cubic),
    ("cubic-hystart", TcpConfig::linux),
    ("sack", TcpConfig::sack),
    ("newreno", TcpConfig::new_reno),
    ("reno", TcpConfig::reno),
    ("sack-newreno", TcpConfig::sack_new_reno),
    ("sack-reno", TcpConfig::sack_reno),
    ("vegas", TcpConfig::vegas),
    ("probing", TcpConfig::probing),
];

impl Default for Tcp {
    fn default() -> Self {
        Self(TcpConfig::linux_cubic())
    }
}

/// A TCP as a table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TcpTable {
    name: Option<TcpName>,
    #[serde(default)]
    of_1999: bool,
    max_segment: Option<u16>,
    initial_window: Option<u32>,
    send_buffer: Option<Size>,
    receive_buffer: Option<Size>,
    acknowledge_every: Option<u32>,
    sack: Option<bool>,
    ecn: Option<bool>,
    pacing: Option<bool>,
}

#[derive(Clone, Copy)]
struct TcpName(Preset);

impl<'de> Deserialize<'de> for TcpName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = TCPS.iter().find(|(known, _)| *known == name);
        found.map(|(_, build)| Self(*build)).ok_or_else(|| {
            let known = TCPS.map(|(known, _)| known).join(", ");
            D::Error::custom(format!("found \"{name}\", expected one of {known}"))
        })
    }
}

impl TcpTable {
    fn config(self) -> TcpConfig {
        let mut tcp = self.name.unwrap_or(TcpName(TcpConfig::linux_cubic)).0();
        if self.of_1999 {
            tcp = tcp.of_1999();
        }
        tcp.max_segment = self.max_segment.unwrap_or(tcp.max_segment);
        if let Some(count) = self.initial_window {
            tcp.initial_window = InitialWindow::Segments(count);
        }
        tcp.send_buffer = self.send_buffer.map_or(tcp.send_buffer, |size| size.0);
        tcp.receive_buffer = self.receive_buffer.map_or(tcp.receive_buffer, |size| size.0);
        tcp.delayed_ack.every = self.acknowledge_every.unwrap_or(tcp.delayed_ack.every);
        tcp.sack = self.sack.unwrap_or(tcp.sack);
        tcp.ecn = self.ecn.unwrap_or(tcp.ecn);
        tcp.pacing = self.pacing.unwrap_or(tcp.pacing);
        tcp
    }
}

impl<'de> Deserialize<'de> for Tcp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = TcpConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a TCP, or a table with its name")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<TcpConfig, E> {
                TcpName::deserialize(value::StrDeserializer::new(name)).map(|name| name.0())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TcpConfig, A::Error> {
                TcpTable::deserialize(value::MapAccessDeserializer::new(map)).map(TcpTable::config)
            }
        }
        let tcp = deserializer.deserialize_any(Read)?;
        // Also accepts a table whose name comes after another one by a sweep: `words`.
        tcp.validate().map_err(|error| D::Error::custom(format!("found {error}")))?;
        Ok(Self(tcp))
    }
}

/// A link: the emulator's words, or a table of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    pub(super) config: LinkConfig,
    /// Files of traces with their keys, which [`Link::load`] reads.
    traces: Vec<(&'static str, String)>,
}

/// The keys of a link's table: words in the order in which they apply, then files.
const KEYS: [&str; 19] = [
    "profile",
    "words",
    "delay",
    "rate",
    "framing",
    "limit",
    "queue",
    "loss",
    "gemodel",
    "ber",
    "duplicate",
    "reorder",
    "outage",
    "fade",
    "forward",
    "return",
    "trace",
    "trace_forward",
    "trace_return",
];

impl Link {
    /// The description of a key: `words` are a description as they are.
    fn description(key: &str, text: &str) -> String {
        if key == "words" { text.to_owned() } else { format!("both {key} {text}") }
    }

    /// Reads the traces of both directions or of one, below `folder`; returns their texts.
    ///
    /// # Errors
    /// The key of a file that cannot be read or is no trace, what was found, and what was expected.
    pub(super) fn load(&mut self, folder: &Path) -> Result<String, [String; 3]> {
        let mut texts = String::new();
        for (key, file) in &self.traces {
            let wrong = |found: &str, expected: &str| {
                let found = format!("\"{file}\", {found}");
                Err([(*key).to_owned(), found, expected.to_owned()])
            };
            let text = match std::fs::read_to_string(folder.join(file)) {
                Ok(text) => text,
                Err(error) => return wrong(&error.to_string(), "the file of a trace"),
            };
            let trace = match Trace::parse(file, &text) {
                Ok(trace) => Arc::new(trace),
                Err(error) => return wrong(&format!("line {}", error.line), error.expected),
            };
            for direction in Direction::BOTH {
                if *key == "trace" || *key == format!("trace_{direction}") {
                    self.config.direction_mut(direction).trace = Some(Arc::clone(&trace));
                }
            }
            texts += &text;
        }
        Ok(texts)
    }

    /// The files of traces.
    pub(super) fn trace_files(&self) -> impl Iterator<Item = &String> {
        self.traces.iter().map(|(_, file)| file)
    }

    fn apply<E: Error>(config: &mut LinkConfig, key: &str, text: &str) -> Result<(), E> {
        if key.starts_with("trace") {
            return Ok(());
        }
        let description = Self::description(key, text);
        words::apply_link(config, &description).map_err(|error| {
            let found = error.found.map_or("the end".to_owned(), |found| format!("\"{found}\""));
            E::custom(format!("found {found} in \"{text}\", expected {}", error.expected))
        })
    }
}

/// A key of [`KEYS`].
struct LinkKey;

impl<'de> DeserializeSeed<'de> for LinkKey {
    type Value = usize;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        let name = String::deserialize(deserializer)?;
        let place = KEYS.iter().position(|known| *known == name);
        place.ok_or_else(|| D::Error::unknown_field(&name, &KEYS))
    }
}

/// The value of a key, which is checked by itself so that its position is that of the error.
struct LinkWords(&'static str);

impl<'de> DeserializeSeed<'de> for LinkWords {
    type Value = String;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        Link::apply::<D::Error>(&mut LinkConfig::default(), self.0, &text)?;
        Ok(text)
    }
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Link;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("words of a link, such as \"profile geo loss 1%\", or a table of them")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Link, E> {
                let mut link = Link::default();
                Link::apply(&mut link.config, "words", text)?;
                Ok(link)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Link, A::Error> {
                let mut parts = Vec::new();
                while let Some(place) = map.next_key_seed(LinkKey)? {
                    parts.push((place, map.next_value_seed(LinkWords(KEYS[place]))?));
                }
                parts.sort();
                let mut link = Link::default();
                for (place, text) in parts {
                    Link::apply(&mut link.config, KEYS[place], &text)?;
                    if KEYS[place].starts_with("trace") {
                        link.traces.push((KEYS[place], text));
                    }
                }
                Ok(link)
            }
        }
        let link = deserializer.deserialize_any(Read)?;
        let reason = |error: satlink::ConfigError| Error::custom(error.to_string());
        link.config.validate().map_err(reason)?;
        Ok(link)
    }
}
