//! Channels shared by several stations, each with its access rule.
//!
//! | channel | access rule |
//! |---|---|
//! | [`csma`] | carrier sense: packet radio |
//! | [`mf_tdma`] | slots granted by a hub: the return link of DVB-RCS |
//! | [`aloha`] | random access with collisions |
//! | [`dama`] | a carrier assigned on demand |
//! | [`mixed`] | short packets as in [`aloha`], others as in [`mf_tdma`] |
//!
//! [`star`] describes a network whose return link is [`mf_tdma`]; [`weights`] stores the weights
//! that its hub announces for the terminals.

pub mod aloha;
mod arrivals;
pub mod csma;
pub mod dama;
pub mod mf_tdma;
pub mod mixed;
pub mod schedule;
pub mod slots;
pub mod star;
pub mod weights;
