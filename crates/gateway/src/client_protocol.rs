//! How clients reach a gateway.

use std::fmt;

/// How a client reaches a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientProtocol {
    /// By SOCKS5.
    Socks5,
    /// By HTTP CONNECT.
    Connect,
    /// By an intercepted connection.
    Intercepted,
}

impl fmt::Display for ClientProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = PROTOCOLS.iter().find(|(_, protocol)| protocol == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// Each by the name that the configuration has for it.
pub(crate) const PROTOCOLS: [(&str, ClientProtocol); 3] = [
    ("socks5", ClientProtocol::Socks5),
    ("connect", ClientProtocol::Connect),
    ("intercepted", ClientProtocol::Intercepted),
];
