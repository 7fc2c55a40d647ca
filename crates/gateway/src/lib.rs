//! The daemon: interception, explicit proxies, and splicing sockets to relay streams.

mod config;
pub mod intercept;
pub mod proxy;

pub use config::{
    AcceptMode, Config, ConfigError, HubSection, InterceptSection, Limits, LinkSection, Marking,
    Mistake, Network, Role, SourceMode, TerminalSection,
};
