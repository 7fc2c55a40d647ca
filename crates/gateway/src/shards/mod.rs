//! The shards of a hub: their threads, and all of them as an observer sees them.

mod sums;
mod threads;
mod view;

pub(crate) use sums::add_report;
pub(crate) use threads::{Shard, Threads};
pub(crate) use view::Shards;
