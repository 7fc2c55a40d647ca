//! The site's side of a registration: Hellos until the hub accepts the new key.

use super::exchange::{Response, exchange};
use crate::config::HubAddress;
use association::Config;
use relay::{Keys, KeysError, Known, PrivateKey, Security};
use rt::Clock;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use units::Span;

/// Time for the response to a registration, at one address.
const REGISTER: Span = Span::from_secs(5);
/// Time for the response to a Hello of the new key.
const CONNECT: Span = Span::from_secs(3);
/// First interval of Hellos: registrations are stored within that time, usually.
const HELLO: Span = Span::from_millis(300);
/// Time after which a registration fails.
const LIMIT: Span = Span::from_secs(60);

/// Errors of an enrolment or of the replacement of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolError {
    /// The hub's name has no address.
    #[error("{hub} has no address: {source}; check the name, and the DNS of this machine")]
    Lookup {
        /// The hub.
        hub: HubAddress,
        /// Error of the resolver.
        source: io::Error,
    },
    /// There is no response that proves the registration.
    #[error(
        "{hub} did not register the key within 60 s; check that the hub runs, has been reloaded \
         after `site add`, and is reachable by UDP, and that the token is unused and has not \
         expired (the hub's log says so); then run this command again"
    )]
    NoResponse {
        /// The hub.
        hub: HubAddress,
    },
    /// The hub refuses the key.
    #[error("{hub} refused the key: another site has it, or the hub is of an earlier release")]
    Refused {
        /// The hub.
        hub: HubAddress,
    },
    /// A socket failed.
    #[error("datagrams to {address}: {source}")]
    Socket {
        /// The hub's address.
        address: SocketAddr,
        /// Error of the kernel.
        source: io::Error,
    },
    /// A key file.
    #[error("{0}")]
    Key(#[from] crate::KeyError),
    /// Keys that do not match.
    #[error("{0}")]
    Keys(#[from] KeysError),
    /// The existing configuration cannot be read.
    #[error("{0}")]
    Config(#[from] crate::ConfigError),
    /// The configuration belongs to something else.
    #[error("{}: {found}; remove the file, or name another one by --config", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The key of this configuration cannot be replaced.
    #[error("{}: {found}", path.display())]
    NotReplaceable {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do.
        found: &'static str,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Registers the key `new` at `hub`, for the terminal with the key `own`. Returns when the hub has
/// accepted a handshake of `new`, which proves that it has stored the key.
///
/// # Errors
/// If the hub refuses the key, or has not accepted it within 60 s. It may accept it later: both
/// keys are to be kept.
pub(super) fn register(
    hub: &HubAddress,
    known: &Known,
    own: &PrivateKey,
    new: &PrivateKey,
) -> Result<(), EnrolError> {
    let clock = Clock::new();
    let keys = |own: &PrivateKey| Keys::new(own.clone(), vec![known.clone()]);
    let config = |own| -> Result<Config, KeysError> {
        let security = Security::Noise(keys(own)?.into());
        let wall_clock_ns = clock.epoch_unix_ns();
        Ok(Config { security, wall_clock_ns, hello_interval: HELLO, ..Config::new("") })
    };
    let registers = Config { registers: Some(new.public()), ..config(own)? };
    let connects = config(new)?;
    let until = clock.now() + LIMIT;
    let mut failed = None;
    while clock.now() < until {
        for address in addresses(hub)? {
            let hub = || hub.clone();
            let ask = |config: &Config, limit| exchange(clock, address, config, limit);
            let socket = |source| EnrolError::Socket { address, source };
            let answer = ask(&registers, REGISTER).and_then(|answer| match answer {
                Response::Registered { received: false } => Ok(answer),
                Response::Registered { received: true } => {
                    // A Hello before the hub has stored the key would only be logged there.
                    clock.sleep_until(clock.now() + HELLO);
                    ask(&connects, CONNECT)
                }
                // An earlier registration may have been stored.
                Response::Connected | Response::None => ask(&connects, CONNECT),
            });
            match answer {
                Ok(Response::Connected) => return Ok(()),
                Ok(Response::Registered { .. }) => return Err(EnrolError::Refused { hub: hub() }),
                Ok(Response::None) => {}
                // Another address may be reachable.
                Err(error) => failed = Some(socket(error)),
            }
        }
        clock.sleep_until(clock.now() + HELLO);
    }
    Err(failed.unwrap_or_else(|| EnrolError::NoResponse { hub: hub.clone() }))
}

/// Returns the addresses of a hub.
pub(crate) fn addresses(hub: &HubAddress) -> Result<Vec<SocketAddr>, EnrolError> {
    match hub {
        HubAddress::Address(address) => Ok(vec![*address]),
        HubAddress::Name(name, port) => (&**name, *port)
            .to_socket_addrs()
            .map(Iterator::collect)
            .map_err(|source| EnrolError::Lookup { hub: hub.clone(), source }),
    }
}
