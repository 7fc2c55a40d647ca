//! Two gateways on one machine's loopback, and clients and servers around them.

mod drain;
mod ends;
mod harness;
mod limits;
mod observe;
mod reload;
mod security;
mod shares;
mod transfers;
