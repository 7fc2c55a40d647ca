//! The transport of a scenario's traffic: a TCP, or QUIC.

use super::values::Tcp;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor, value};
use sim::host::EndToEndConfig;
use simtcp::quic::QuicConfig;
use std::fmt;

/// The name of QUIC, beside those of the TCPs.
const QUIC: &str = "quic";

/// A transport by name, or a TCP with changes.
#[derive(Clone, Debug)]
pub(super) struct Transport(pub(super) EndToEndConfig);

impl Default for Transport {
    fn default() -> Self {
        Self(EndToEndConfig::Tcp(Tcp::default().0))
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Transport;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a TCP or \"quic\", or a table with a TCP's name")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Transport, E> {
                if name == QUIC {
                    return Ok(Transport(EndToEndConfig::Quic(QuicConfig::default())));
                }
                Tcp::deserialize(value::StrDeserializer::new(name))
                    .map(|tcp| Transport(EndToEndConfig::Tcp(tcp.0)))
                    .map_err(|error: E| {
                        E::custom(format!("{}, {QUIC}", error.to_string().trim_end()))
                    })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Transport, A::Error> {
                Tcp::deserialize(value::MapAccessDeserializer::new(map))
                    .map(|tcp| Transport(EndToEndConfig::Tcp(tcp.0)))
            }
        }
        deserializer.deserialize_any(Read)
    }
}
