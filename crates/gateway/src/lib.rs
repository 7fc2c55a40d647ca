//! The daemon: interception, explicit proxies, and splicing sockets to relay streams.

mod config;
#[allow(dead_code)]
mod engine;
#[allow(dead_code)]
mod gateway;
pub mod intercept;
pub mod proxy;
mod report;
mod stop;

pub use config::{
    AcceptMode, Config, ConfigError, HubSection, InterceptSection, Limits, LinkSection, Marking,
    Mistake, Role, SourceMode, TerminalSection,
};
pub use gateway::{Addresses, Error};
pub use report::{Counters, Report, UdpCounters};
pub use stop::Stop;
