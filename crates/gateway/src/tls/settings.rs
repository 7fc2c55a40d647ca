//! What both ends of a TLS connection offer and accept.

use super::certificate;
use crate::TlsCertificate;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};
use std::io;
use std::sync::Arc;

/// Protocols that middleboxes expect on port 443. What they name is not used.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Signature algorithms that a terminal offers, so that a hub can have a certificate of any kind.
const OFFERED_SCHEMES: [SignatureScheme; 9] = [
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];

/// Returns the settings of a hub, with `certificate` or one that it signs itself.
///
/// # Errors
/// If the files cannot be read, or do not fit together.
pub(crate) fn of_hub(certificate: Option<&TlsCertificate>) -> io::Result<Arc<ServerConfig>> {
    let (chain, key) = match certificate {
        Some(files) => read(files)?,
        None => {
            let (own, key) = certificate::self_signed()
                .map_err(|_| io::Error::other("no random octets for a certificate"))?;
            (vec![own], key)
        }
    };
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(io::Error::other)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(io::Error::other)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    // No state of a client outlives its connection.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the settings of a terminal.
///
/// # Errors
/// If the cryptographic provider does not support TLS 1.3.
pub(super) fn of_terminal() -> io::Result<Arc<ClientConfig>> {
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]);
    let builder = builder.map_err(io::Error::other)?.dangerous();
    let any = Arc::new(AnyCertificate);
    let mut config = builder.with_custom_certificate_verifier(any).with_no_client_auth();
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Returns ring's ciphers and keys, without the algorithms that verify certificates: no side verifies one.
fn provider() -> Arc<CryptoProvider> {
    let none = WebPkiSupportedAlgorithms { all: &[], mapping: &[] };
    let ring = ring::default_provider();
    Arc::new(CryptoProvider { signature_verification_algorithms: none, ..ring })
}

fn read(
    files: &TlsCertificate,
) -> io::Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let at = |file: &std::path::Path, error: rustls::pki_types::pem::Error| {
        io::Error::other(format!("{}: {error}", file.display()))
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| at(&files.certificate_file, error))?;
    let key = PrivateKeyDer::from_pem_file(&files.private_key_file)
        .map_err(|error| at(&files.private_key_file, error))?;
    Ok((chain, key))
}

/// Accepts any certificate: the hub is authenticated by the association, not by TLS.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        OFFERED_SCHEMES.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{ClientConnection, ConnectionCommon, Error, HandshakeKind, ServerConnection};

    /// The extension `supported_versions` of a ClientHello that offers TLS 1.3 alone (RFC 8446,
    /// section 4.2.1).
    const ONLY_TLS13: [u8; 7] = [0, 43, 0, 3, 2, 3, 4];

    fn sent<Data>(from: &mut ConnectionCommon<Data>) -> Vec<u8> {
        let mut octets = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut octets).unwrap();
        }
        octets
    }

    fn receive<Data>(to: &mut ConnectionCommon<Data>, mut octets: &[u8]) -> Result<(), Error> {
        while !octets.is_empty() {
            to.read_tls(&mut octets).unwrap();
            to.process_new_packets()?;
        }
        Ok(())
    }

    /// A terminal's connection to a hub that it calls by this name.
    fn terminal(settings: &Arc<ClientConfig>) -> ClientConnection {
        let name = ServerName::try_from("hub.example").unwrap();
        ClientConnection::new(Arc::clone(settings), name).unwrap()
    }

    fn connect(client: &mut ClientConnection, server: &mut ServerConnection) {
        while client.is_handshaking() || server.is_handshaking() {
            receive(server, &sent(client)).unwrap();
            receive(client, &sent(server)).unwrap();
        }
    }

    /// TLS-2.1
    #[test]
    fn every_connection_has_a_full_handshake_of_tls_1_3() {
        let (hub, own) = (of_hub(None).unwrap(), of_terminal().unwrap());
        assert!(!own.enable_early_data && hub.max_early_data_size == 0);
        for _ in 0..2 {
            let mut client = terminal(&own);
            let mut server = ServerConnection::new(Arc::clone(&hub)).unwrap();
            connect(&mut client, &mut server);
            assert_eq!(client.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_3));
            assert_eq!(client.handshake_kind(), Some(HandshakeKind::Full));
            assert_eq!(client.tls13_tickets_received(), 0);
        }
    }

    /// TLS-2.1
    #[test]
    fn no_other_version_is_offered_or_accepted() {
        let mut hello = sent(&mut terminal(&of_terminal().unwrap()));
        let at = hello.windows(ONLY_TLS13.len()).position(|octets| octets == ONLY_TLS13).unwrap();
        let hub = of_hub(None).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&hub)).unwrap();
        receive(&mut server, &hello).unwrap();
        // TLS 1.2.
        hello[at + ONLY_TLS13.len() - 1] = 3;
        let mut server = ServerConnection::new(hub).unwrap();
        let error = receive(&mut server, &hello).unwrap_err();
        assert!(matches!(error, Error::PeerIncompatible(_)), "{error}");
    }

    /// TLS-2.2
    #[test]
    fn a_terminal_accepts_any_certificate() {
        let own = of_terminal().unwrap();
        // Each hub signs its own, for another name than that of the connection.
        for _ in 0..2 {
            let mut server = ServerConnection::new(of_hub(None).unwrap()).unwrap();
            let mut client = terminal(&own);
            connect(&mut client, &mut server);
            assert!(client.peer_certificates().is_some_and(|chain| chain.len() == 1));
        }
    }
}
