//! Channels that several stations share, each with its rule of who may send.
//!
//! | channel | who may send |
//! |---|---|
//! | [`csma`] | who hears nobody: packet radio |
//! | [`mf_tdma`] | who was given slots by a hub, asked for or not: the return link of DVB-RCS |
//! | [`aloha`] | everybody, at the risk of collision |
//! | [`dama`] | who was given a carrier, until it is silent |
//! | [`mixed`] | short packets as in [`aloha`], the others as in [`mf_tdma`] |
//!
//! A network whose return link is [`mf_tdma`] is described by [`star`]; [`weights`] keeps what its
//! hub tells of the terminals.

pub mod aloha;
mod arrivals;
pub mod ax25;
pub mod csma;
pub mod dama;
pub mod mf_tdma;
pub mod mixed;
pub mod schedule;
pub mod slots;
pub mod star;
pub mod weights;
