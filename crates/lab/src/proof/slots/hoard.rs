//! Clients that open as many connections as possible, and their servers.

use super::super::failed;
use crate::LabError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::Host;

/// Maximum number of connections per thread.
const MOST: usize = 2_500;
/// Number of threads.
const THREADS: usize = 2;

/// Route of a client to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// An intercepted connection.
    Intercepted,
    /// The SOCKS5 proxy at this address.
    Socks(SocketAddr),
}

impl Route {
    /// Connects from `client`; returns the connection and the octets of the proxy request for
    /// `server`.
    pub(super) fn open(
        self,
        client: IpAddr,
        server: SocketAddr,
        patience: Duration,
    ) -> std::io::Result<TcpStream> {
        let to = match self {
            Self::Intercepted => server,
            Self::Socks(proxy) => proxy,
        };
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.bind(&SocketAddr::new(client, 0).into())?;
        socket.set_linger(Some(Duration::ZERO))?;
        socket.connect_timeout(&to.into(), patience)?;
        let mut stream = TcpStream::from(socket);
        if let (Self::Socks(_), SocketAddr::V4(server)) = (self, server) {
            let mut request = vec![5, 1, 0, 5, 1, 0, 1];
            request.extend(server.ip().octets());
            request.extend(server.port().to_be_bytes());
            stream.write_all(&request)?;
        }
        Ok(stream)
    }

    /// Octets of the proxy's reply before the data of the server.
    pub(super) const fn answer_len(self) -> usize {
        match self {
            Self::Intercepted => 0,
            Self::Socks(_) => 12,
        }
    }
}

/// Running hostile clients.
pub(super) struct Hoard {
    stop: Arc<AtomicBool>,
    attempts: Arc<AtomicU64>,
    threads: Vec<JoinHandle<usize>>,
}

impl Hoard {
    /// Starts clients on `host` at these addresses.
    pub(super) fn start(host: &Host, clients: &[IpAddr], route: Route, server: SocketAddr) -> Self {
        let (stop, attempts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (0..THREADS).map(|_| {
            let (stop, attempts) = (Arc::clone(&stop), Arc::clone(&attempts));
            let clients = clients.to_vec();
            host.spawn("hoard", move || hoard(&clients, route, server, &stop, &attempts))
        });
        let threads = threads.collect();
        Self { stop, attempts, threads }
    }

    /// Stops them; returns the number of connections that they held and requested.
    pub(super) fn finish(self) -> Result<(usize, u64), LabError> {
        self.stop.store(true, Ordering::Relaxed);
        let mut held = 0;
        for thread in self.threads {
            held += thread.join().map_err(|_| LabError::Proof("a hoarder panicked".into()))?;
        }
        Ok((held, self.attempts.load(Ordering::Relaxed)))
    }
}

fn hoard(
    clients: &[IpAddr],
    route: Route,
    server: SocketAddr,
    stop: &AtomicBool,
    attempts: &AtomicU64,
) -> usize {
    let mut held: Vec<TcpStream> = Vec::new();
    let mut look = 0;
    while !stop.load(Ordering::Relaxed) {
        for client in clients {
            attempts.fetch_add(1, Ordering::Relaxed);
            let opened = route.open(*client, server, Duration::from_millis(300));
            if let Ok(stream) = opened
                && stream.set_nonblocking(true).is_ok()
            {
                held.push(stream);
            }
        }
        // Some of the refused or reset connections are tried again in each round.
        for _ in 0..4 * clients.len().max(MOST.saturating_sub(held.len()) / 100) {
            look = if look + 1 < held.len() { look + 1 } else { 0 };
            if held.get_mut(look).is_some_and(is_over) {
                held.swap_remove(look);
            }
        }
        while held.len() > MOST {
            held.swap_remove(0);
        }
    }
    held.retain_mut(|stream| !is_over(stream));
    held.len()
}

fn is_over(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A server that accepts connections and sends nothing.
pub(super) fn silent_server(host: &Host, port: u16) -> Result<(), LabError> {
    let listener = listen(host, port)?;
    listener.set_nonblocking(true).map_err(failed("the silent server"))?;
    host.spawn("silent server", move || {
        let mut held: Vec<TcpStream> = Vec::new();
        loop {
            while let Ok((stream, _)) = listener.accept() {
                if stream.set_nonblocking(true).is_ok() {
                    held.push(stream);
                }
            }
            held.retain_mut(|stream| !is_over(stream));
            super::super::sleep_ms(20);
        }
    });
    Ok(())
}

/// An echo server.
pub(super) fn echo_server(host: &Host, port: u16) -> Result<(), LabError> {
    let listener = listen(host, port)?;
    host.spawn("echo server", move || {
        while let Ok((mut stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut octets = [0; 64];
                while let Ok(count @ 1..) = stream.read(&mut octets) {
                    if stream.write_all(&octets[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(())
}

/// Listens on both IPv4 and IPv6.
fn listen(host: &Host, port: u16) -> Result<TcpListener, LabError> {
    let listener = host.run(|| {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_only_v6(false)?;
        socket.bind(&SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port).into())?;
        socket.listen(4_096)?;
        Ok(TcpListener::from(socket))
    });
    listener.map_err(failed("a server"))
}
