//! Channels that several stations share, each with its rule of who may send.
//!
//! | channel | who may send |
//! |---|---|
//! | [`csma`] | who hears nobody: packet radio |
//! | [`mf_tdma`] | who was given slots by a hub: the return link of DVB-RCS |

pub mod ax25;
pub mod csma;
pub mod mf_tdma;
pub mod schedule;
pub mod slots;
