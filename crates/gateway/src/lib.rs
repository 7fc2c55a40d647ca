//! The daemon: interception, explicit proxies, and splicing sockets to relay streams.

pub mod intercept;
pub mod proxy;
