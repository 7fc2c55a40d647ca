//! Performance enhancing proxies, as nodes on a path: what ITU-R S.1711 (Annex 2, sections 3
//! and 4) and RFC 3135 list, each in a file of its own.
//!
//! | what | node | from |
//! |---|---|---|
//! | splitting in two or three segments | [`Split`] | S.1711 Annex 2, 3.1 and 3.2; RFC 3135, 2.4 |

mod need;
mod split;

pub use need::BufferNeed;
pub use split::Split;
