//! Channels that several stations share, each with its rule of who may send.

pub mod ax25;
pub mod csma;
