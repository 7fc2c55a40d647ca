//! Two gateways on one machine's loopback, and clients and servers around them.

mod counts;
mod drain;
mod ends;
mod failing;
mod families;
mod forwarder;
mod harness;
mod hub_names;
mod interfaces;
mod limits;
mod line;
mod losing;
mod names;
mod observe;
mod outages;
mod passing;
mod paths;
mod places;
mod ports;
mod refusals;
mod reload;
mod security;
mod shards;
mod shares;
mod slots;
mod transfers;
