//! Gateway daemon: intercepts or proxies TCP connections and carries them as relay streams.
//!
//! ```text
//!   clients ─TCP─▶ terminal gateway ══ XSTP in UDP, satellite link ══▶ hub gateway ─TCP─▶ servers
//!                  │ interception,                                     │ name resolution,
//!                  │ SOCKS5, CONNECT                                   │ client's source address
//!                  └──────────────── engine: sans-IO, driven by one ───┘
//!                                    readiness loop per process
//! ```
//!
//! [`Config`] is the parsed configuration file. [`run`] runs a gateway until [`Stop`] is triggered
//! and returns a [`Report`] with its counters:
//!
//! ```no_run
//! let file = "terminal.toml".as_ref();
//! let config = gateway::Config::load(file)?;
//! let report = gateway::run(&config, Some(file), &gateway::Stop::on_signals()?)?;
//! println!("{}", gateway::to_json(&report)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Errors in a configuration are reported with line, key, value and expectation:
//!
//! ```
//! let text = "
//! role = 'terminal'
//! security = 'none'
//! [link]
//! peer = '192.0.2.1:7000'
//! rate_up = '1mbit'
//! rate_down = '10mbit'
//! [socks5]
//! listen = '127.0.0.1:1080'
//! ";
//! assert_eq!(gateway::Config::parse("terminal.toml", text)?.link.mtu, 1500);
//! let error = gateway::Config::parse("terminal.toml", &text.replace("1mbit", "fast")).unwrap_err();
//! assert!(error.to_string().starts_with("terminal.toml:6: link.rate_up: "));
//! # Ok::<(), gateway::ConfigError>(())
//! ```

mod check;
mod config;
mod dns;
pub mod doctor;
mod driver;
mod engine;
pub mod enrolment;
mod error;
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
pub mod measure;
mod memory;
pub mod observe;
mod privileges;
pub mod proxy;
mod reach;
mod relay_settings;
mod reload;
mod report;
mod service;
mod sharded;
mod shards;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod single;
mod state;
mod stop;
mod syn_gate;
mod tls;
mod upgrade;

pub use check::{Warning, check};
pub(crate) use config::Terms;
pub use config::{
    AcceptMode, AcceptRule, AcceptRules, ClassSection, Commitment, Config, ConfigError,
    ConfirmSection, ControlSocket, Deprecated, DnsSection, Enrolment, FailSection, ForwardSection,
    ForwardTcp, HealthSection, HubAddress, HubSection, InterceptSection, KeySource, Limits,
    LinkSection, LogFormat, LogLevel, LogSection, Marking, Mistake, NoiseSection, PathSection,
    PeerKey, PlanSection, QuicMode, ResolverSection, Role, SecuritySection, ShareLimits,
    SingleSection, SourceMode, TerminalEntry, TerminalSection, TlsCertificate, TlsCongestion,
    TlsListen, TlsSection, WhenFail, WhenFull,
};
pub use error::Error;
pub use forward::ForwardError;
pub use gateway::{Addresses, Gateway, run};
pub use keys::{KeyError, SystemEntropy, generate_key, generate_preshared_key};
pub use keys::{private_key, public_key};
pub use logging::{Log, start_logging};
pub use observe::to_json;
pub use privileges::{PrivilegeError, capabilities, give_up_privileges};
pub use proxy::ClientProtocol;
pub use reach::{Destinations, Rule};
pub use relay::{PresharedKey, PrivateKey, PublicKey};
pub use report::{Compression, Counters, PeerReport, Report, SingleReport, Traffic, UdpCounters};
pub use sharded::ShardedHub;
pub use single::SingleGateway;
pub use stop::Stop;
pub use upgrade::request_upgrade;
