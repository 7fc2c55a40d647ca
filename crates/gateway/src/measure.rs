//! Path of a terminal to its hub, as a measurement beside the gateway uses it.

use crate::config::LinkSection;
use crate::enrolment::EnrolError;
use crate::enrolment::register::addresses;
use crate::relay_settings::relay_config;
use crate::{Config, ConfigError, HubAddress, KeyError, PathSection, Role};
use relay::{Control, RelayConfig};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// A path that can be measured.
#[derive(Clone, Debug)]
pub struct MeasuredPath {
    /// Its name; empty if there is only one.
    pub name: String,
    /// The hub.
    pub hub: HubAddress,
    /// Addresses of the hub, at least one.
    pub addresses: Vec<SocketAddr>,
    /// The address from which datagrams are sent, if it is configured.
    pub local: Option<IpAddr>,
    /// The interface of the path, if it is configured.
    pub interface: Option<String>,
    /// The relay: without configured rates, and beside a running gateway's association.
    pub relay: RelayConfig,
    /// The configured `[link]`.
    pub link: LinkSection,
}

/// Why a path cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The configuration is not that of a terminal.
    #[error("{}: it is not a terminal's; run this at the site", .0.display())]
    Role(PathBuf),
    /// Which path is to be measured is unclear.
    #[error("name one of the paths by --path: {}", .0.join(", "))]
    Name(Vec<String>),
    /// A key cannot be read.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// The hub has no address.
    #[error("{0}")]
    Hub(#[from] EnrolError),
    /// Forwarded packets would take the association of the measurement.
    #[error(
        "a gateway runs with [forward], whose packets would be lost meanwhile; \
         stop it, and run this command again"
    )]
    Forward,
}

/// Returns the path called `name` of the terminal that is configured in `file`; without a name its
/// only one.
///
/// # Errors
/// If the file is not the valid configuration of a terminal with such a path, a key cannot be read,
/// the hub has no address, or a gateway runs that forwards packets.
pub fn measured_path(file: &Path, name: Option<&str>) -> Result<MeasuredPath, MeasureError> {
    let config = Config::load(file)?;
    let Role::Terminal(_) = &config.role else { return Err(MeasureError::Role(file.into())) };
    if config.forward.is_some() && crate::doctor::is_running(&config) {
        return Err(MeasureError::Forward);
    }
    let paths = config.effective_paths();
    let names = || paths.iter().map(|path| path.name.clone()).collect();
    let found = match (name, &paths[..]) {
        (None, [only]) => Some(only),
        (None, _) => None,
        (Some(name), _) => paths.iter().find(|path| path.name == name),
    };
    let path = found.ok_or_else(|| MeasureError::Name(names()))?;
    let PathSection { name, link, interface, .. } = path.clone();
    let hub = link.peer.clone().ok_or_else(|| MeasureError::Role(file.into()))?;
    let unlimited = LinkSection { rate_up: None, rate_down: None, ..link.clone() };
    let mut relay = relay_config(&config, &unlimited);
    relay.security = path.security()?;
    relay.control = Control::Steady;
    relay.repair_percent = None;
    relay.is_beside = true;
    // Data that is queued when the measurement ends is lost, and would delay reports.
    relay.unsent_limit = 256 << 10;
    let addresses = addresses(&hub)?;
    let local = Some(link.listen.ip()).filter(|address| !address.is_unspecified());
    Ok(MeasuredPath { name, hub, addresses, local, interface, relay, link })
}
