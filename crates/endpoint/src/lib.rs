//! Listener and streams over XSTP for programs: one end of a path, with a UDP socket and a thread.
//!
//! ```text
//!   program's threads and tasks          thread of the endpoint
//!   Stream::read, write, …  ──▶ State ◀── timers, datagrams ◀──▶ UDP
//!                               (relay, one mutex)
//! ```
//!
//! An [`Endpoint`] is the client or the server of an association: [`Endpoint::client`] keeps a
//! session with one server and starts the next one when it is lost; [`Endpoint::server`] has one
//! session with each client. A client opens [`Stream`]s, which the server accepts. They implement
//! [`io::Read`] and [`io::Write`], and with the feature `tokio` its `AsyncRead` and `AsyncWrite`. A
//! hub gateway can be the server: the stream's [`Target`] is then the host that it connects to.
//!
//! Keys and rates are those of [`RelayConfig`]; [`config`] returns the usual one.
//!
//! ```
//! use endpoint::{Endpoint, PrivateKey, SystemEntropy, Target, config};
//! use std::io::{Read, Write};
//! use std::time::Duration;
//!
//! let [a, b] = [(); 2].map(|()| PrivateKey::generate(&mut SystemEntropy));
//! let server = Endpoint::server(&config(&b, &[a.public()])?, "127.0.0.1:0".parse()?)?;
//! let client = Endpoint::client(&config(&a, &[b.public()])?, server.local_address())?;
//!
//! let mut stream = client.open(Target::name("echo", 1))?;
//! stream.write_all(b"hello")?;
//! let mut accepted = server.accept()?;
//! let mut received = [0; 5];
//! accepted.stream.read_exact(&mut received)?;
//! assert_eq!(&received, b"hello");
//! # drop((stream, accepted));
//! client.close(Duration::from_secs(10))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`io::Read`]: std::io::Read
//! [`io::Write`]: std::io::Write
#![forbid(unsafe_code)]

mod endpoint;
pub mod published;
mod shared;
mod state;
mod stream;
#[cfg(feature = "tokio")]
mod tokio;
mod udp;
mod wait;

pub use endpoint::{Accepted, Endpoint};
pub use relay::{
    Control, Destination, KeyTextError, Keys, KeysError, Known, PathReport, PresharedKey,
    PrivateKey, PublicKey, RelayConfig, Security, Target,
};
pub use stream::Stream;

use std::sync::Arc;

/// The operating system's random number generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl relay::Entropy for SystemEntropy {
    /// # Panics
    /// If the system provides no random numbers.
    fn fill(&mut self, out: &mut [u8]) {
        getrandom::fill(out).expect("the system provides random numbers");
    }
}

/// Returns the configuration of an end with the key `private` and peers with the keys `peers`: one
/// server at a client, the clients at a server. The rate is estimated, and the path MTU probed. A
/// peer's name is the text of its public key.
///
/// # Errors
/// If a key occurs twice or is invalid.
pub fn config(private: &PrivateKey, peers: &[PublicKey]) -> Result<RelayConfig, KeysError> {
    let known = |public: &PublicKey| Known {
        name: public.to_string(),
        public: *public,
        preshared: PresharedKey::NONE,
    };
    let keys = Keys::new(private.clone(), peers.iter().map(known).collect())?;
    Ok(RelayConfig {
        security: Security::Noise(Arc::new(keys)),
        capabilities: relay::Capabilities::of_this_machine(),
        probe_mtu: true,
        wall_clock_ns: rt::Clock::new().epoch_unix_ns(),
        ..RelayConfig::new("endpoint")
    })
}
