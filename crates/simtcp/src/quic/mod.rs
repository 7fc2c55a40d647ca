//! A QUIC-like connection, for comparison: loss detection and congestion control by RFC 9002.
//!
//! ```text
//!   write ──▶ stream ──▶ connection ─┬─ loss          sections 6 and 7.6
//!                                    ├─ round_trip    section 5
//!                                    └─ congestion    sections 7.1 to 7.8   ──▶ datagram
//!    read ◀── stream ◀───────────────── acks          RFC 9000, section 13.2 ◀── datagram
//! ```
//!
//! Each packet has a new number, so an acknowledgement is never ambiguous, and what a lost packet
//! carried is sent in later ones. Datagrams have the lengths of QUIC version 1 (RFC 9000), without
//! encryption. A connection has one stream. Not modelled: certificates (the handshake is one
//! datagram each way, padded to 1,200 octets), address validation, 0-RTT, separate packet number
//! spaces, keys, ECN, migration, and path MTU discovery.

mod acks;
mod congestion;
mod connection;
mod loss;
mod round_trip;
mod stream;
mod wire;

pub use connection::Connection;
pub use wire::Malformed;

use units::Span;

/// Parameters of a QUIC-like connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicConfig {
    /// Maximum UDP payload in octets: 1,200 to 16,000 (RFC 9000, section 14).
    pub max_datagram: usize,
    /// Maximum delay of an acknowledgement (RFC 9000, section 18.2).
    pub max_ack_delay: Span,
    /// The unit of the field "ACK Delay" is 2 to this power µs, at most 20 (RFC 9000, section 18.2).
    pub ack_delay_exponent: u64,
    /// Send buffer in octets.
    pub send_buffer: u64,
    /// Receive buffer in octets: the window of flow control.
    pub receive_buffer: u64,
    /// The connection is broken after this time without a packet of the peer while packets are in
    /// flight.
    pub give_up: Span,
}

impl Default for QuicConfig {
    /// The defaults of RFC 9000, packets of 1,480 octets of IPv4, and the buffers of
    /// [`TcpConfig`](crate::TcpConfig).
    fn default() -> Self {
        Self {
            max_datagram: 1_452,
            max_ack_delay: Span::from_millis(25),
            ack_delay_exponent: 3,
            send_buffer: 16 << 20,
            receive_buffer: 16 << 20,
            give_up: Span::from_secs(120),
        }
    }
}

#[cfg(test)]
mod tests;
