//! `[control]` and `[metrics]`: the sockets for observers; `[mac]`: the socket of a MAC scheduler.

use super::reader::{Item, Reader, Section};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlSocket {
    /// Disabled by the configuration.
    Off,
    /// The default path; the gateway runs without the socket if it cannot be created there.
    Usual(PathBuf),
    /// The path that the configuration names.
    At(PathBuf),
}

impl ControlSocket {
    /// Returns the default path of the socket of gateway `id`: in the service manager's runtime
    /// directory, or in `/run/bentpipe`.
    pub(super) fn usual(id: &str) -> Self {
        let folder = std::env::var_os("RUNTIME_DIRECTORY").unwrap_or_default();
        // The variable may list several directories, separated by colons.
        let folder = std::env::split_paths(&folder).next().filter(|path| path.is_absolute());
        let folder = folder.unwrap_or_else(|| PathBuf::from("/run/bentpipe"));
        Self::Usual(folder.join(format!("{id}.sock")))
    }
}

/// Default address of the metrics, on loopback.
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9720);

pub(super) fn control(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Option<ControlSocket>> {
    let Some(mut section) = top.section(reader, "control") else { return Some(None) };
    let socket = section.or(reader, "socket", None, |r, i| socket(r, i).map(Some));
    section.finish(reader);
    socket
}

/// Reads `mac.socket`, the path of a MAC scheduler's socket.
pub(super) fn mac(reader: &mut Reader<'_>, top: &mut Section<'_>) -> Option<Option<PathBuf>> {
    let Some(mut section) = top.section(reader, "mac") else { return Some(None) };
    let expected = "an absolute path of at most 107 bytes, such as \"/run/bentpipe/mac.sock\"";
    let socket = section.required(reader, "socket", expected, |reader, item| {
        item.parsed(reader, expected, |text| {
            let path = PathBuf::from(text);
            let fits = path.is_absolute() && path.file_name().is_some() && text.len() <= 107;
            fits.then_some(path)
        })
    });
    section.finish(reader);
    socket.map(Some)
}

pub(super) fn metrics(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Option<SocketAddr>> {
    let Some(mut section) = top.section(reader, "metrics") else { return Some(None) };
    let listen = section.or(reader, "listen", METRICS, |r, i| i.address(r));
    section.finish(reader);
    listen.map(Some)
}

fn socket(reader: &mut Reader<'_>, item: Item<'_>) -> Option<ControlSocket> {
    let expected = "an absolute path of at most 90 bytes, such as \"/run/bentpipe/hub.sock\", \
                    or \"off\"";
    item.parsed(reader, expected, |text| {
        let path = PathBuf::from(text);
        if text == "off" {
            return Some(ControlSocket::Off);
        }
        // A socket's path has at most 107 bytes (`sun_path`), and the socket is created under a
        // temporary name in the same directory first.
        let fits = path.is_absolute() && path.file_name().is_some() && text.len() <= 90;
        fits.then_some(ControlSocket::At(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn parse(more: &str) -> Result<Config, crate::ConfigError> {
        Config::parse(
            "t",
            &format!(
                "role = \"hub\"\nsecurity = \"none\"\n[link]\nlisten = \"127.0.0.1:0\"\n{more}"
            ),
        )
    }

    #[test]
    fn a_hub_tells_the_scheduler_that_is_named() {
        let mac = |more: &str| match parse(more).unwrap().role {
            crate::Role::Hub(hub) => hub.mac,
            other => panic!("{other:?}"),
        };
        assert_eq!(mac(""), None);
        let path = Some(PathBuf::from("/run/mac.sock"));
        assert_eq!(mac("[mac]\nsocket = \"/run/mac.sock\""), path);
        assert_eq!(mac("[mac]\nsocket = \"/run/mac.sock\"\n[hub]\nid = \"x\""), path);
        for wrong in ["[mac]", "[mac]\nsocket = \"mac.sock\"", "[mac]\nsocket = 7"] {
            assert_eq!(parse(wrong).unwrap_err().mistakes[0].key, "mac.socket");
        }
        let terminal = "role = \"terminal\"\nsecurity = \"none\"\n[link]\npeer = \"192.0.2.1:1\"\n\
                        [socks5]\n[mac]\nsocket = \"/run/mac.sock\"\n";
        assert_eq!(Config::parse("t", terminal).unwrap_err().mistakes[0].key, "mac");
    }

    #[test]
    fn sockets_and_listeners_are_read() {
        let config = parse("").unwrap();
        assert_eq!((config.control, config.metrics), (None, None));
        let config = parse("[control]\nsocket = \"/run/x/y.sock\"\n[metrics]").unwrap();
        assert_eq!(config.control, Some(ControlSocket::At("/run/x/y.sock".into())));
        assert_eq!(config.metrics.unwrap().to_string(), "127.0.0.1:9720");
        let config = parse("[control]\nsocket = \"off\"\n[metrics]\nlisten = \"[::]:80\"").unwrap();
        assert_eq!(config.control, Some(ControlSocket::Off));
        assert_eq!(config.metrics.unwrap().to_string(), "[::]:80");
        for wrong in ["relative.sock", "/", &format!("/{}", "x".repeat(90))] {
            let error = parse(&format!("[control]\nsocket = \"{wrong}\"")).unwrap_err();
            assert_eq!(error.mistakes[0].key, "control.socket");
        }
        assert_eq!(parse("[metrics]\nlisten = 9720").unwrap_err().mistakes.len(), 1);
    }
}
