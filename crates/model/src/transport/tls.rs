//! TLS, set up when the first https address is reached and not before.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::TransportError;

/// Whom we trust.
#[derive(Debug, Default)]
pub(crate) struct Tls {
    extra: Vec<PathBuf>,
    /// The system's own list was replaced by a file of the environment, so the public roots are added.
    replaced: bool,
    config: OnceCell<Arc<ClientConfig>>,
}

impl Tls {
    pub(crate) fn new(extra: Vec<PathBuf>, replaced: bool) -> Self {
        Self { extra, replaced, config: OnceCell::new() }
    }

    pub(crate) async fn wrap(&self, stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, TransportError> {
        let failed = |reason: String| TransportError::Tls { host: host.to_owned(), reason };
        let config = self.config.get_or_try_init(|| self.load()).await?.clone();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| failed("its name cannot be in a certificate".to_owned()))?;
        TlsConnector::from(config).connect(name, stream).await.map_err(|why| failed(why.to_string()))
    }

    /// Reading the system's certificates takes milliseconds and blocks, so it is done aside.
    async fn load(&self) -> Result<Arc<ClientConfig>, TransportError> {
        let (extra, replaced) = (self.extra.clone(), self.replaced);
        let task = tokio::task::spawn_blocking(move || load(&extra, replaced));
        let stopped =
            |_| TransportError::Roots { path: PathBuf::new(), reason: "the process is shutting down".to_owned() };
        task.await.map_err(stopped)?
    }
}

fn load(extra: &[PathBuf], replaced: bool) -> Result<Arc<ClientConfig>, TransportError> {
    let mut roots = RootCertStore::empty();
    // What the system's store holds that cannot be read is its own affair; the rest still counts.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() || replaced {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for path in extra {
        let unreadable = |reason: String| TransportError::Roots { path: path.clone(), reason };
        let mut found = 0;
        for certificate in CertificateDer::pem_file_iter(path).map_err(|why| unreadable(why.to_string()))? {
            let certificate = certificate.map_err(|why| unreadable(why.to_string()))?;
            roots.add(certificate).map_err(|why| unreadable(why.to_string()))?;
            found += 1;
        }
        if found == 0 {
            return Err(unreadable("there is no certificate in it".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring offers every protocol version that rustls calls safe")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
