//! `bentpipe connect`.

use crate::Outcome;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Time for the proxy's replies; the server has its own timeout at the hub.
const TIME: Duration = Duration::from_secs(90);

/// Connect standard input and output to HOST PORT through a gateway, as ssh's ProxyCommand
///
/// ssh -o ProxyCommand='bentpipe connect %h %p' user@host
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Example: bentpipe connect --proxy 127.0.0.1:1080 server.example 22"
)]
pub struct Arguments {
    /// Name or address of the server; the hub resolves names
    host: String,
    /// Port of the server
    port: u16,
    /// The SOCKS5 proxy of the terminal gateway
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1080")]
    proxy: SocketAddr,
}

/// Copies in both directions until both have ended.
///
/// # Errors
/// If the proxy cannot be reached, or refuses the connection.
pub fn run(arguments: &Arguments) -> Outcome {
    let Arguments { host, port, proxy } = arguments;
    let failed = |error: io::Error| format!("{proxy}: {error}");
    let mut server = TcpStream::connect(proxy).map_err(failed)?;
    server.set_nodelay(true).map_err(failed)?;
    server.set_read_timeout(Some(TIME)).map_err(failed)?;
    open(&mut server, host, *port).map_err(|error| format!("{host}:{port}: {error}"))?;
    server.set_read_timeout(None).map_err(failed)?;
    let mut upstream = server.try_clone().map_err(failed)?;
    // It may block in reading standard input after the server has ended, and ends with the process.
    thread::Builder::new()
        .spawn(move || {
            let _ = io::copy(&mut io::stdin().lock(), &mut upstream);
            let _ = upstream.shutdown(Shutdown::Write);
        })
        .map_err(|error| error.to_string())?;
    let mut output = io::stdout().lock();
    copy_flushing(&mut server, &mut output).map_err(|error| error.to_string())
}

/// Copies, and flushes after each read: standard output is buffered by lines.
fn copy_flushing(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => {
                to.write_all(&buffer[..len])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Performs the handshake of SOCKS5 (RFC 1928).
fn open(proxy: &mut (impl Read + Write), host: &str, port: u16) -> io::Result<()> {
    let name = host.as_bytes();
    let len = u8::try_from(name.len()).ok().filter(|&len| len > 0);
    let len = len.ok_or_else(|| io::Error::other("the name has not 1 to 255 octets"))?;
    proxy.write_all(&[5, 1, 0])?;
    let mut method = [0; 2];
    proxy.read_exact(&mut method)?;
    if method != [5, 0] {
        return Err(io::Error::other("this is no SOCKS5 proxy of a gateway"));
    }
    let mut request = vec![5, 1, 0, 3, len];
    request.extend(name);
    request.extend(port.to_be_bytes());
    proxy.write_all(&request)?;
    let mut reply = [0; 4];
    proxy.read_exact(&mut reply)?;
    let rest = match reply[3] {
        1 => 4 + 2,
        4 => 16 + 2,
        _ => return Err(io::Error::other("malformed reply of the proxy")),
    };
    proxy.read_exact(&mut [0; 18][..rest])?;
    let reason = match reply[1] {
        0 => return Ok(()),
        2 => "the gateway's configuration does not allow it",
        3 => "the network is unreachable",
        4 => "the host is unreachable",
        5 => "the server refused the connection",
        6 => "the server did not respond in time",
        _ => "the gateway could not connect",
    };
    Err(io::Error::other(reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A proxy that answers with `reply`, and then echoes; returns what it received.
    fn proxy(reply: &'static [u8]) -> (TcpStream, thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = vec![0; 3];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(&[5, 0]).unwrap();
            let mut request = vec![0; 5 + 4 + 2];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(reply).unwrap();
            received.extend(request);
            received
        });
        (client, served)
    }

    #[test]
    fn the_name_is_resolved_by_the_hub() {
        let (mut client, served) = proxy(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        open(&mut client, "host", 22).unwrap();
        let expected = [&[5, 1, 0, 5, 1, 0, 3, 4][..], b"host", &[0, 22]].concat();
        assert_eq!(served.join().unwrap(), expected);
    }

    #[test]
    fn the_reason_of_a_refusal_is_reported() {
        let (mut client, served) = proxy(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
        let error = open(&mut client, "host", 22).unwrap_err();
        assert_eq!(error.to_string(), "the server refused the connection");
        served.join().unwrap();
        let (mut client, _served) = proxy(&[]);
        assert!(open(&mut client, "", 22).is_err());
        assert!(open(&mut client, &"a".repeat(256), 22).is_err());
    }
}
