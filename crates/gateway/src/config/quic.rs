//! `intercept.quic`: treatment of QUIC from intercepted interfaces.
//!
//! QUIC (UDP port 443) carries HTTP past interception, because it cannot be split. Browsers that
//! receive an ICMP error use TCP instead, which is intercepted.

use super::ForwardSection;
use super::reader::{Reader, Section};

/// Protocol number of UDP.
const UDP: u8 = 17;
/// The port of HTTP/3.
const PORT: u16 = 443;

/// Treatment of UDP to port 443 from intercepted interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicMode {
    /// It is refused with ICMP "port unreachable", where TCP to this port is intercepted.
    Refuse,
    /// The gateways forward it by the rules of `[forward]`.
    Forward,
    /// The kernel forwards it, and it bypasses the gateways.
    Bypass,
}

const WORDS: [(&str, QuicMode); 3] =
    [("refuse", QuicMode::Refuse), ("forward", QuicMode::Forward), ("bypass", QuicMode::Bypass)];

impl QuicMode {
    /// Returns the value as it is written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Forward => "forward",
            Self::Bypass => "bypass",
        }
    }
}

/// Reads the key. By default, QUIC that `[forward]` selects is not refused.
pub(super) fn read(
    reader: &mut Reader<'_>,
    intercept: &mut Section<'_>,
    forward: Option<&ForwardSection>,
) -> Option<QuicMode> {
    let carried = forward.is_some_and(carries);
    let usual = if carried { QuicMode::Forward } else { QuicMode::Refuse };
    intercept.or(reader, "quic", usual, |reader, item| {
        let mode = item.as_str().and_then(|text| WORDS.iter().find(|(word, _)| *word == text));
        match mode.map(|(_, mode)| mode) {
            Some(QuicMode::Forward) if !carried => {
                reader.wrong(&item, "a [forward] that carries UDP to port 443")
            }
            Some(QuicMode::Bypass) if carried => {
                reader.wrong(&item, "forward.exclude_ports = [443] as well")
            }
            _ => item.word(reader, &WORDS),
        }
    })
}

fn carries(section: &ForwardSection) -> bool {
    let ForwardSection { protocols, include_ports, exclude_ports, refuse, .. } = section;
    (protocols.is_empty() || protocols.contains(&UDP))
        && (include_ports.is_empty() || include_ports.iter().any(|ports| ports.contains(PORT)))
        && !exclude_ports.iter().any(|ports| ports.contains(PORT))
        && !refuse.iter().any(|(protocol, ports)| *protocol == UDP && ports.contains(PORT))
}
