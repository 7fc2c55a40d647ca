//! The whole, end to end, with programs that no one here wrote.
//!
//! ```text
//!   client ─── terminal gateway ═══ emulated link ═══ hub gateway ─── server
//!   curl        bentpipe gateway      rt::emulator     bentpipe gateway   nginx
//!   iperf3 -c                                                           iperf3 -s
//!   ssh, rsync                                                          sshd
//! ```
//!
//! Five network namespaces, the kernel's own TCP on both sides, connections intercepted on their
//! way or made by SOCKS5 and HTTP CONNECT. Where the machine allows no namespaces, or has not
//! got a program, a test says so and is passed over.

mod auto;
mod bed;
mod confirm;
mod crowd;
mod ends;
mod failover;
mod faults;
mod life;
mod packets;
mod path;
mod programs;
mod single;
