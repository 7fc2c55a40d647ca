//! The discrete-event engine: the same code as the gateway, under virtual time.
#![forbid(unsafe_code)]
