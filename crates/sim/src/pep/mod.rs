//! Performance-enhancing proxies as nodes on a path, as listed by ITU-R S.1711 (Annex 2, sections 3
//! and 4, and Annex 3) and RFC 3135.
//!
//! | what | here | from |
//! |---|---|---|
//! | splitting in two or three segments | [`Split`] | S.1711 Annex 2, 3.1 and 3.2; RFC 3135, 2.4 |
//! | spoofing: early acknowledgements, local retransmission | [`Spoofer`] | S.1711 Annex 2, 4.1; RFC 3135, 3.1.2 and 3.1.3 |
//! | acknowledgements filtered | [`Shaper::filtering_acks`] | RFC 3135, 3.1.4 |
//! | acknowledgements regenerated | [`AckRebuilder`] | S.1711 Annex 2, 4.2; RFC 3135, 3.1.4 |
//! | acknowledgements spaced | [`AckSpacer`] | S.1711 Annex 2, 4.2; RFC 3135, 3.1.1 |
//! | shaping by a token bucket | [`Shaper`] | S.1711 Annex 3, 3.3.2 |
//! | header compression | [`HeaderCompressor`], [`HeaderDecompressor`] | S.1711 Annex 2, table 3; RFC 3135, 3.3 |
//! | a web cache | [`WebCache`] | RFC 3135, 2.1.2; Henderson and Katz 1999, 6.1 |
//!
//! [`Split`] and [`WebCache`] are nodes. All others are [`Element`]s: [`Inline`] makes a node of
//! one, or of nested pairs of them.

mod acks;
mod buffer_usage;
mod cache;
mod compress;
mod element;
mod shaper;
mod split;
mod spoof;

pub use acks::{AckRebuilder, AckSpacer};
pub use buffer_usage::BufferUsage;
pub use cache::{CacheCounts, WebCache};
pub use compress::{Compressed, HeaderCompressor, HeaderDecompressor};
pub use element::{Element, Inline, Output, Toward};
pub use shaper::{Shaped, Shaper, TokenBucket};
pub use split::Split;
pub use spoof::{SpoofConfig, Spoofed, Spoofer};
