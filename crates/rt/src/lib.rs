//! The real clock, sockets and packet interfaces that drive what is sans-IO.

pub mod netlink;
