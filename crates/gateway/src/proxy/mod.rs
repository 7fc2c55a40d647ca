//! The explicit proxies, SOCKS5 and HTTP CONNECT, without I/O.
