//! QUIC by quinn: one stream from memory to memory, with AES-128-GCM.

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rt::Clock;
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivateKeyDer;
use socket2::{Domain, Socket, Type};
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use units::Span;

/// The name in the certificate.
const NAME: &str = "bench";
/// A self-signed certificate and its key. The key need not be secret: both ends are on this
/// machine, and the cipher is measured. Made by `openssl req -x509 -newkey ed25519 -nodes -days
/// 36500 -subj /CN=bench -addext subjectAltName=DNS:bench -addext
/// basicConstraints=critical,CA:FALSE`.
const CERTIFICATE: &[u8] = include_bytes!("quinn/certificate.der");
const KEY: &[u8] = include_bytes!("quinn/key.der");
/// Maximum outstanding octets on the stream, and in each socket's buffers.
const WINDOW: u32 = 16 << 20;
/// Octets of one write.
const BLOCK: usize = 256 << 10;

fn other(error: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}

/// Sends continuously to the first client. Prints a line when it accepts connections.
///
/// # Errors
/// If the address cannot be bound, or the connection ends.
pub fn quinn_serve(address: SocketAddr) -> io::Result<()> {
    let key = PrivateKeyDer::try_from(KEY).map_err(other)?;
    let tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(other)?
        .with_no_client_auth()
        .with_single_cert(vec![CERTIFICATE.into()], key)
        .map_err(other)?;
    let mut config =
        ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(other)?));
    config.transport_config(transport());
    runtime()?.block_on(async {
        let endpoint = endpoint(address, Some(config))?;
        println!("ready");
        let incoming = endpoint.accept().await.ok_or(io::ErrorKind::NotConnected)?;
        let connection = incoming.await.map_err(other)?;
        let (mut send, _receive) = connection.accept_bi().await.map_err(other)?;
        let block = vec![0x5a; BLOCK];
        loop {
            send.write_all(&block).await.map_err(other)?;
        }
    })
}

/// Receives from [`quinn_serve`] for `settling`, prints a line, and after `length` the number of
/// octets received meanwhile; then continues until the process ends.
///
/// # Errors
/// If the server cannot be reached, or the connection ends.
pub fn quinn_receive(server: SocketAddr, settling: Span, length: Span) -> io::Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFICATE.into()).map_err(other)?;
    let tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(other)?));
    config.transport_config(transport());
    runtime()?.block_on(async {
        let endpoint = endpoint((Ipv4Addr::UNSPECIFIED, 0).into(), None)?;
        let connecting = endpoint.connect_with(config, server, NAME).map_err(other)?;
        let connection = connecting.await.map_err(other)?;
        let (mut send, mut receive) = connection.open_bi().await.map_err(other)?;
        send.write_all(b"?").await.map_err(other)?;
        let clock = Clock::new();
        for (span, is_measured) in [(settling, false), (length, true)] {
            let (until, mut octets) = (clock.now() + span, 0);
            while clock.now() < until {
                let chunk = receive.read_chunk(BLOCK, true).await.map_err(other)?;
                octets += chunk.ok_or(io::ErrorKind::UnexpectedEof)?.bytes.len();
            }
            println!("{}", if is_measured { octets } else { 0 });
        }
        // The processor time of this process is read after the last line.
        loop {
            let chunk = receive.read_chunk(BLOCK, true).await.map_err(other)?;
            chunk.ok_or(io::ErrorKind::UnexpectedEof)?;
        }
    })
}

fn provider() -> Arc<CryptoProvider> {
    let suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(CryptoProvider { cipher_suites: suites, ..ring::default_provider() })
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.stream_receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(config)
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.set_recv_buffer_size(WINDOW as usize)?;
    socket.set_send_buffer_size(WINDOW as usize)?;
    socket.bind(&address.into())?;
    Endpoint::new(EndpointConfig::default(), server, socket.into(), Arc::new(TokioRuntime))
}
