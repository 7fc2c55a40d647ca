//! The file transfer of the simulated packet radio, between two hosts.

use endpoint::published::{Host, Listener, Station};
use rt::Clock;
use sim::Pattern;
use sim::radio::file_transfer::{Client, Message, Server};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;
use units::Span;

/// Port of the server: that of the simulated stations.
const PORT: u16 = 21;
const NAME: &[u8] = b"file.dat";

/// Retrieves a file of `size` octets of `pattern` from the host `server`, which is `station`;
/// returns the time from the request until the last octet.
///
/// # Errors
/// If the connection fails, lasts for more than `limit`, or another file arrives.
pub(super) fn fetch(
    client: &Host,
    (server, station): (&Host, Station),
    pattern: Pattern,
    size: u64,
    limit: Duration,
) -> io::Result<Span> {
    let listener = server.listen(PORT)?;
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, Server::new(NAME, pattern, size), limit));
        let clock = Clock::new();
        let begin = clock.now();
        let mut request = Vec::new();
        Message::Request(NAME.to_vec()).encode(&mut request);
        let mut stream = client.connect_with(station, PORT, &request)?;
        let mut file = Client::new(pattern);
        let mut buffer = [0; 1024];
        while !file.is_done() {
            let len = stream.read(&mut buffer)?;
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.take(&buffer[..len]).map_err(io::Error::other)?;
        }
        let time = clock.now().since(begin);
        drop(stream);
        crate::threads::joined(served.join())?;
        Ok(time)
    })
}

/// Serves one request; returns when the client has everything.
fn serve(listener: &Listener, mut server: Server, limit: Duration) -> io::Result<()> {
    let mut stream = listener.accept_for(limit)?.stream;
    let mut buffer = [0; 256];
    while !server.has_message() {
        let len = stream.read(&mut buffer)?;
        server.take(&buffer[..len]).map_err(io::Error::other)?;
    }
    while let Some(message) = server.next_message() {
        stream.write_all(&message)?;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.wait_acknowledged(limit)
}
