//! `intercept.quic`: what becomes of QUIC from intercepted interfaces.
//!
//! QUIC (UDP port 443) carries HTTP past interception, since it cannot be split. Browsers that
//! meet an ICMP error use TCP instead, which is intercepted.

use super::ForwardSection;
use super::reader::{Reader, Section};

/// Protocol number of UDP.
const UDP: u8 = 17;
/// The port of HTTP/3.
const PORT: u16 = 443;

/// What becomes of UDP to port 443 from intercepted interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicMode {
    /// It is refused with ICMP "port unreachable", where TCP to this port is intercepted.
    Refuse,
    /// The gateways carry it as `[forward]` has it.
    Forward,
    /// The kernel forwards it, past the gateways.
    Bypass,
}

const WORDS: [(&str, QuicMode); 3] =
    [("refuse", QuicMode::Refuse), ("forward", QuicMode::Forward), ("bypass", QuicMode::Bypass)];

impl QuicMode {
    /// The word in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Forward => "forward",
            Self::Bypass => "bypass",
        }
    }
}

/// Reads it. What `[forward]` carries is not refused unless the file has it so.
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
                reader.wrong(&item, "a [forward] beside it that carries UDP to port 443")
            }
            Some(QuicMode::Bypass) if carried => {
                reader.wrong(&item, "forward.exclude_ports = [443] beside it")
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
