//! End-to-end tests with third-party programs.
//!
//! ```text
//!   client ─── terminal gateway ═══ emulated link ═══ hub gateway ─── server
//!   curl        bentpipe gateway      rt::emulator     bentpipe gateway   nginx
//!   iperf3 -c                                                           iperf3 -s
//!   ssh, rsync                                                          sshd
//! ```
//!
//! There are five network namespaces with the kernel's TCP on both sides; connections are
//! intercepted or made by SOCKS5 and HTTP CONNECT. Where the machine allows no namespaces, or a
//! program is missing, a test reports this and is skipped.

mod auto;
mod carrier;
mod confirm;
mod crowd;
mod ends;
mod failover;
mod faults;
mod forwarded_tcp;
mod life;
mod measure;
mod network;
mod packets;
mod path;
mod programs;
mod single;
mod troubleshooting;
