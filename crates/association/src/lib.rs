//! Sealed datagram channel between a terminal and a hub, without I/O and without a clock.
//!
//! ```text
//!   Terminal                                    Hub
//!     │ ── Hello (name, limits) ────────────────▶ │
//!     │ ◀──────────────── Welcome (index, limits) │  a repeated Hello gets the same Welcome
//!     │ ══ Data, sealed, counter 0, 1, 2 … ═════▶ │  the first one confirms the keys
//!     │ ◀════════════════════════ Data, sealed ══ │
//!     │ ── Hello (continues) ───────────────────▶ │  rekeying after two minutes; the previous
//!     │ ◀─────────────────────────────── Welcome  │  keys still decrypt for a while
//!     │ ── Data ─────────────────────────────────▶│  (the hub has restarted)
//!     │ ◀──────────────────────────────── Unknown │  the terminal sends a new Hello
//! ```
//!
//! A datagram has 8 octets of header, the payload, and a tag of 16 octets. There are two suites
//! ([`Security`]). *Noise* authenticates both sides by their static keys, encrypts, and rejects
//! replays (Noise protocol framework, revision 34). The *null* suite has the same framing, and a
//! checksum for a tag: it detects corruption, and does not protect against an attacker.
//! `docs/spec/association.md` specifies the layouts and the security properties.
//!
//! A [`Terminal`] initiates and maintains one association; a [`Hub`] accepts those of all
//! terminals. Time, addresses and randomness are arguments:
//!
//! ```
//! use association::{Config, Hub, HubReceived, Keys, Known, OVERHEAD, PresharedKey, PrivateKey,
//!     PublicKey, Sealed, Security, Terminal, TerminalReceived, TransmitBatch};
//! use units::{Instant, RngStream};
//!
//! let now = Instant::ZERO;
//! let from = "192.0.2.1:4500".parse().unwrap();
//! // Outside simulations randomness comes from the operating system.
//! let mut random = RngStream::new(1, 0, "keys");
//! let (boat, shore) = (PrivateKey::generate(&mut random), PrivateKey::generate(&mut random));
//! let config = |name: &str, own: PrivateKey, other: &str, public: PublicKey| {
//!     let known = Known { name: other.into(), public, preshared: PresharedKey::NONE };
//!     let keys = Keys::new(own, vec![known]).unwrap();
//!     Config { security: Security::Noise(keys.into()), ..Config::new(name) }
//! };
//! let terminal = config("boat", boat.clone(), "hub", shore.public());
//! let hub = config("hub", shore, "boat", boat.public());
//! let mut terminal = Terminal::new(terminal, now, RngStream::new(1, 0, "boat"));
//! let mut hub = Hub::new(hub, RngStream::new(1, 0, "hub"));
//!
//! let mut buffer = [0u8; 1500];
//! let mut batch = TransmitBatch::new(&mut buffer, 1);
//! assert!(terminal.poll_transmit(now, &mut batch));
//! let mut hello = batch.datagrams().next().unwrap().to_vec();
//! assert!(matches!(hub.handle_datagram(now, from, &mut hello), Ok(HubReceived::Nothing)));
//!
//! batch.clear();
//! assert_eq!(hub.poll_transmit(&mut batch), Some(from));
//! let mut welcome = batch.datagrams().next().unwrap().to_vec();
//! let received = terminal.handle_datagram(now, &mut welcome);
//! assert!(matches!(received, Ok(TerminalReceived::Established)));
//!
//! let mut datagram = vec![0u8; OVERHEAD + 5];
//! datagram[8..13].copy_from_slice(b"bytes");
//! assert!(terminal.seal(now, Sealed::Data, &mut datagram));
//! match hub.handle_datagram(now, from, &mut datagram) {
//!     Ok(HubReceived::Payload { payload, first: true, .. }) => assert_eq!(payload, b"bytes"),
//!     other => panic!("{other:?}"),
//! }
//! ```
#![forbid(unsafe_code)]

mod admission;
mod batch;
mod capabilities;
mod channel;
mod checksum;
mod config;
mod cookie;
mod entropy;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handshake;
mod hub;
mod keys;
mod noise;
mod null;
mod part;
pub mod reachability;
mod recent_senders;
mod replay;
mod response_limit;
mod source_limits;
mod terminal;
mod version;
mod wire;

pub use batch::{Transmit, TransmitBatch};
pub use capabilities::Capabilities;
pub use channel::SendOrder;
pub use config::{Config, Limits};
pub use entropy::Entropy;
pub use error::{Counters, OpenError};
pub use handshake::MAX_NAME;
pub use hub::{Hub, HubReceived, PeerId, Registration};
pub use keys::{
    KeyTextError, Keys, KeysError, Known, PresharedKey, PrivateKey, PublicKey, Security,
};
pub use part::{Part, SEALED, part_of};
pub use replay::REPLAY_WINDOW;
pub use terminal::{Terminal, TerminalReceived};
pub use wire::{HEADER_LEN, OVERHEAD, Sealed, TAG_LEN};
