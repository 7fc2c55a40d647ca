//! `[tls]`: TLS in place of UDP, where a network blocks UDP.

use super::reader::{Item, Reader, Section};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The usual port.
const PORT: u16 = 443;

/// TLS to the hubs of a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSection {
    /// The TCP port of the hubs.
    pub port: u16,
    /// The name that is sent in the clear (SNI); `None`: the hub's name, if it is configured by name.
    pub server_name: Option<String>,
    /// Whether UDP is never used.
    pub always: bool,
    /// The congestion control of TCP.
    pub congestion: TlsCongestion,
}

/// TLS from the terminals of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsListen {
    /// The address on which TLS connections are accepted.
    pub listen: SocketAddr,
    /// The certificate; `None`: the hub signs one at each start.
    pub certificate: Option<TlsCertificate>,
    /// The congestion control of TCP.
    pub congestion: TlsCongestion,
}

/// The kernel's congestion control of TCP below TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsCongestion {
    /// BBR, where the kernel has it, otherwise its default: random loss does not reduce the rate of BBR.
    #[default]
    Bbr,
    /// CUBIC.
    Cubic,
}

impl TlsCongestion {
    /// Returns the kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bbr => "bbr",
            Self::Cubic => "cubic",
        }
    }
}

/// A certificate and its key, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsCertificate {
    /// The certificate, and those of its issuers.
    pub certificate_file: PathBuf,
    /// The private key.
    pub private_key_file: PathBuf,
}

/// Reads a terminal's `[tls]`.
pub(super) fn read_terminal(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Option<TlsSection>> {
    const USES: [(&str, bool); 2] = [("fallback", false), ("always", true)];
    let Some(mut section) = top.section(reader, "tls") else { return Some(None) };
    let port = section.or(reader, "port", PORT.into(), |r, i| i.integer(r, 1..=65_535));
    let server_name = section.or(reader, "server_name", None, |reader, item| {
        let expected = "a host name, such as \"www.example.com\"";
        item.parsed(reader, expected, |text| is_host_name(text).then(|| text.to_owned())).map(Some)
    });
    let always = section.or(reader, "use", false, |r, i| i.word(r, &USES));
    let congestion = read_congestion(reader, &mut section);
    section.finish(reader);
    Some(Some(TlsSection {
        port: port? as u16,
        server_name: server_name?,
        always: always?,
        congestion: congestion?,
    }))
}

/// Reads a hub's `[tls]`; `link` is the address of its datagrams.
pub(super) fn read_hub(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    link: Option<SocketAddr>,
) -> Option<Option<TlsListen>> {
    let Some(mut section) = top.section(reader, "tls") else { return Some(None) };
    let usual = link.map(|link| SocketAddr::new(link.ip(), PORT));
    let listen = section.or(reader, "listen", usual, |r, i| i.address(r).map(Some));
    let line = section.line();
    let certificate_file =
        section.or(reader, "certificate_file", None, |r, i| file(r, i).map(Some));
    let private_key_file =
        section.or(reader, "private_key_file", None, |r, i| file(r, i).map(Some));
    let congestion = read_congestion(reader, &mut section);
    section.finish(reader);
    let certificate = match (certificate_file?, private_key_file?) {
        (Some(certificate_file), Some(private_key_file)) => {
            Some(TlsCertificate { certificate_file, private_key_file })
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let expected = "tls.certificate_file and tls.private_key_file, or none of them";
            reader.mistake(line, "tls", "one of two files", expected);
            return None;
        }
    };
    Some(Some(TlsListen { listen: listen??, certificate, congestion: congestion? }))
}

impl fmt::Display for TlsSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, server_name, always, congestion } = self;
        write!(
            f,
            "TCP port {port}, {}",
            if *always { "always" } else { "where UDP does not work" }
        )?;
        server_name.iter().try_for_each(|name| write!(f, ", as {name}"))?;
        write_congestion(f, *congestion)
    }
}

impl fmt::Display for TlsListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on {}, ", self.listen)?;
        match &self.certificate {
            Some(files) => write!(f, "certificate in {}", files.certificate_file.display()),
            None => write!(f, "certificate made at the start"),
        }?;
        write_congestion(f, self.congestion)
    }
}

/// Writes the congestion control unless it is the default.
fn write_congestion(f: &mut fmt::Formatter<'_>, congestion: TlsCongestion) -> fmt::Result {
    match congestion {
        TlsCongestion::Bbr => Ok(()),
        TlsCongestion::Cubic => write!(f, ", congestion control {}", congestion.name()),
    }
}

fn read_congestion(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<TlsCongestion> {
    const ALL: [(&str, TlsCongestion); 2] =
        [("bbr", TlsCongestion::Bbr), ("cubic", TlsCongestion::Cubic)];
    section.or(reader, "congestion", TlsCongestion::default(), |r, i| i.word(r, &ALL))
}

fn is_host_name(text: &str) -> bool {
    rustls::pki_types::DnsName::try_from(text).is_ok()
}

fn file(reader: &mut Reader<'_>, item: Item<'_>) -> Option<PathBuf> {
    item.parsed(reader, "the path of a file in PEM", |text| {
        (!text.is_empty()).then(|| PathBuf::from(text))
    })
}
