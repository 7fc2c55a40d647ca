//! Servers and clients on the kernel's TCP, with blocking sockets.
//!
//! ```text
//!   FileServer  GET   download of a computable file, its checksum known for every prefix
//!               PUT   upload, answered with what arrived and its checksum
//!               ASK   one request, one response
//!   WebServer   HTTP/1.1: the 30 objects of ITU-R S.1711's page "China2008"
//!   ObjectServer  HTTP/1.1: one object, and users who request it repeatedly
//! ```
//!
//! Neither server nor client depends on the satellite: the same programs run over plain routing,
//! through the gateways, and through an explicit proxy.

mod client;
mod connect;
mod http;
mod objects;
mod server;
#[cfg(test)]
mod tests;
mod web;

pub use client::{Exchange, File, Limits, Progress, Sample, Transfer, ask, download, upload};
pub use connect::{ReceiveBuffer, Way, connect};
pub use objects::{Browsed, Browsing, ObjectServer, SHORTEST_REQUEST, browse};
pub use server::{FileServer, Served};
pub use web::{PAGE_BYTES, PAGE_OBJECTS, Page, WebServer, load_page, load_page_pipelined};

use std::io;
use std::mem::size_of;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Segments retransmitted by the kernel on this socket so far.
///
/// # Errors
/// The error of `getsockopt(TCP_INFO)`.
pub fn retransmissions(socket: &TcpStream) -> io::Result<u64> {
    // SAFETY: tcp_info is plain numbers, for which zero bytes are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointers are to a tcp_info and its length; the kernel writes no more than that.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if status == 0 {
        Ok(u64::from(info.tcpi_total_retrans))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Sets a socket's congestion control; `-` keeps the kernel's default.
fn set_congestion(socket: &TcpStream, name: &str) -> io::Result<()> {
    match name {
        "-" => Ok(()),
        name => socket2::SockRef::from(socket).set_tcp_congestion(name.as_bytes()),
    }
}
