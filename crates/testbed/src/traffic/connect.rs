//! How a client reaches its server.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// The way from a client to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The client connects to the server, as far as it knows.
    Direct,
    /// The client asks a SOCKS5 proxy at this address.
    Socks5(SocketAddr),
}

/// Opens a TCP connection to `server`.
///
/// # Errors
/// What the kernel or the proxy refused.
pub fn connect(way: Way, server: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let first = match way {
        Way::Direct => server,
        Way::Socks5(proxy) => proxy,
    };
    let mut stream = TcpStream::connect_timeout(&first, patience)?;
    stream.set_nodelay(true)?;
    if let Way::Socks5(_) = way {
        stream.set_read_timeout(Some(patience))?;
        ask_proxy(&mut stream, server)?;
        stream.set_read_timeout(None)?;
    }
    Ok(stream)
}

/// RFC 1928, without authentication.
fn ask_proxy(stream: &mut TcpStream, server: SocketAddr) -> io::Result<()> {
    let refused = |what: String| io::Error::new(io::ErrorKind::ConnectionRefused, what);
    stream.write_all(&[5, 1, 0])?;
    let mut choice = [0; 2];
    stream.read_exact(&mut choice)?;
    if choice != [5, 0] {
        return Err(refused(format!(
            "the proxy chose method {} of version {}",
            choice[1], choice[0]
        )));
    }
    let mut request = vec![5, 1, 0];
    match server.ip() {
        IpAddr::V4(v4) => {
            request.push(1);
            request.extend(v4.octets());
        }
        IpAddr::V6(v6) => {
            request.push(4);
            request.extend(v6.octets());
        }
    }
    request.extend(server.port().to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 4];
    stream.read_exact(&mut reply)?;
    if reply[1] != 0 {
        return Err(refused(format!("the proxy answered with code {}", reply[1])));
    }
    let bound = match reply[3] {
        1 => 6,
        4 => 18,
        kind => return Err(refused(format!("the proxy bound an address of type {kind}"))),
    };
    stream.read_exact(&mut [0; 18][..bound])
}
