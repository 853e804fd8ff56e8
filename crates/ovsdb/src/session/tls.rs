//! TLS with a certificate of our own, and the server's checked against an authority.
//!
//! In: files. Out: an encrypted stream. The files are read at every connect, so that renewed certificates count.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_cert_signed_by_trust_anchor;
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::SessionError;

/// Files for TLS, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of the authorities that the server's is checked against.
    pub authority: PathBuf,
    /// Our certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// What the server's certificate must name.
    pub name: NameCheck,
}

/// What the server's certificate must name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NameCheck {
    /// The host we connect to.
    #[default]
    Host,
    /// This.
    Name(String),
    /// Anything, as long as the authority signed it. It is what OVN's own programs do, and all that certificates
    /// without alternative names, such as those of `ovs-pki`, allow.
    None,
}

/// Makes a stream an encrypted one.
pub(super) async fn wrap(
    tls: &Tls,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, SessionError> {
    let config = tls.config()?;
    let name = match &tls.name {
        NameCheck::Name(name) => name.as_str(),
        NameCheck::Host | NameCheck::None => host,
    };
    let name = ServerName::try_from(name.to_owned()).map_err(|_| SessionError::Tls {
        what: format!("{name:?} is not a name a certificate can have"),
        source: None,
    })?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(|error| SessionError::Tls {
        what: "agreeing with the server".to_owned(),
        source: Some(error.into()),
    })
}

impl Tls {
    fn config(&self) -> Result<ClientConfig, SessionError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authority)? {
            roots.add(certificate).map_err(|error| failed(&self.authority, error))?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| SessionError::Tls {
                what: "choosing versions".to_owned(),
                source: Some(error.into()),
            })?;
        let builder = match self.name {
            NameCheck::Host | NameCheck::Name(_) => builder.with_root_certificates(roots),
            NameCheck::None => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(ChainOnly::new(roots, &provider))),
        };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| failed(&self.key, error))?;
        builder
            .with_client_auth_cert(certificates(&self.certificate)?, key)
            .map_err(|error| failed(&self.certificate, error))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, SessionError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(SessionError::Tls { what: format!("no certificate in {}", file.display()), source: None })
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(failed(file, error)),
    }
}

fn failed(file: &Path, error: impl std::error::Error + Send + Sync + 'static) -> SessionError {
    SessionError::Tls { what: file.display().to_string(), source: Some(Box::new(error)) }
}

/// Checks who signed a certificate, not whom it names.
#[derive(Debug)]
struct ChainOnly {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ChainOnly {
    fn new(roots: RootCertStore, provider: &CryptoProvider) -> Self {
        Self { roots, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for ChainOnly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, algorithms)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
