//! The daemon: interception, explicit proxies, and splicing sockets to relay streams.
//!
//! ```text
//!   clients ─TCP─▶ terminal ─────── XSTP in UDP, over the satellite ───────▶ hub ─TCP─▶ servers
//!                  intercept, SOCKS5,                                   name look-up,
//!                  CONNECT                                              client's own address
//!                      └──────────── engine: one readiness loop each ────────┘
//! ```
//!
//! [`Config`] says what a gateway is told, [`run`] does it until [`Stop`] says otherwise, and the
//! [`Report`] tells what it did.
//!
//! ```no_run
//! let file = "terminal.toml".as_ref();
//! let config = gateway::Config::load(file)?;
//! let report = gateway::run(&config, Some(file), &gateway::Stop::on_signals()?)?;
//! println!("{}", serde_json::to_string(&report)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod client_protocol;
mod config;
mod confirming;
mod driver;
mod engine;
mod forward;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gateway;
mod host;
pub mod intercept;
mod kernel;
mod keys;
mod life;
mod logging;
mod memory;
pub mod observe;
mod privileges;
pub mod proxy;
mod reach;
mod reload;
mod report;
mod route;
mod service;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod single;
mod state;
mod stop;

pub use check::{Warning, check};
pub use client_protocol::ClientProtocol;
pub(crate) use config::Terms;
pub use config::{
    AcceptMode, AcceptRule, AcceptRules, ClassSection, Config, ConfigError, ConfirmSection,
    ControlSocket, FailSection, ForwardSection, HealthSection, HubSection, InterceptSection,
    KeySource, Limits, LinkSection, LogFormat, LogLevel, LogSection, Marking, Mistake,
    NoiseSection, PathSection, PeerKey, PlanSection, Promised, ResolverSection, Role,
    SecuritySection, ShareLimits, SingleSection, SourceMode, TerminalEntry, TerminalSection,
    WhenFail, WhenFull,
};
pub use forward::ForwardError;
pub use gateway::{Addresses, Error, Gateway, run};
pub use keys::{KeyError, SystemEntropy, generate_key, generate_preshared_key, public_key};
pub use logging::{Log, start_logging};
pub use privileges::{PrivilegeError, capabilities, give_up_privileges};
pub use reach::{Destinations, Rule};
pub use relay::{PresharedKey, PrivateKey, PublicKey};
pub use report::{Counters, PeerReport, Report, SingleReport, Traffic, UdpCounters};
pub use single::SingleGateway;
pub use stop::Stop;
