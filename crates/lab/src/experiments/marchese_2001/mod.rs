//! Marchese 2001: TCP's initial window and buffers over a satellite.
//!
//! ```text
//!   bench   the hosts and the link, and alternatives where the paper leaves them open
//!   judge   evaluation of the paper's claims
//!   live    the tests with the kernel's TCP over the emulator
//! ```

mod bench;
mod judge;
mod live;
mod plan;
#[cfg(test)]
mod tests;

use super::Entry;
use plan::*;

pub(super) static ENTRY: Entry = Entry {
    id: "marchese-2001",
    title: "TCP modifications and tuning over satellite links",
    source: "M. Marchese: Study and Performance Evaluation of TCP Modifications and Tuning over \
             Satellite Links, 2001",
    about: "A file over 2,048 kbit/s and a geostationary satellite, by Linux's TCP of 1999, with \
            larger initial windows and larger buffers.",
    replications: 5,
    live: Some(&live::LIVE),
    parameters: &[],
    plan,
    judge: judge::judge,
};
