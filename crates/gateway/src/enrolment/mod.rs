//! Enrolment of sites: one-time tokens, registration of keys, and their storage at the hub.
//!
//! ```text
//!   hub:  site add ──▶ hub.d/boat.toml (public enrolment key, expiry) ──reload──▶ running gateway
//!           └─▶ token (hub's public key, private enrolment key)                      │ stores
//!   site: enroll TOKEN ──▶ new key ──Hello that registers it (ASC-6.9)──────────────▶│ keys.toml
//!                             └─────Hello of the new key ◀──Welcome: it is stored────┘
//! ```
//!
//! `docs/decisions/enrolment.md` has the threat model.

pub(crate) mod exchange;
pub(crate) mod register;
pub(crate) mod registered;
mod registrations;
mod site;
mod sites;
mod token;

pub use register::EnrolError;
pub use site::{SiteOptions, enroll, rotate};
pub use sites::{
    NewSite, Site, SiteError, SiteState, add_site, list_sites, remove_site, renew_token, utc,
};
pub use token::{Token, TokenError};

pub(crate) use registrations::Registrations;
