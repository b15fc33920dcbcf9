//! The transport by itself: bodies and their limits, guards, proxies.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gesta_model::transport::{Guard, Limit, Outgoing, TransportError};
use gesta_model::{Timeouts, Transport, TransportSpec};
use http::{HeaderMap, HeaderValue, Method};
use support::server::{Server, Step, Then, answer, chunked};

fn outgoing(url: &str) -> Outgoing {
    let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer k"))]);
    Outgoing { method: Method::POST, uri: url.parse().unwrap(), headers, body: Bytes::from_static(b"{}") }
}

struct OnlyPort(u16);

impl Guard for OnlyPort {
    fn address(&self, _: &str, address: SocketAddr) -> Result<(), String> {
        if address.port() == self.0 { Ok(()) } else { Err(format!("{} is not permitted", address.ip())) }
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_and_no_redirect_is_followed() {
    let redirect = answer(307, "location: /elsewhere\r\n", b"there");
    let steps = vec![
        Step(vec![redirect], Then::Keep),
        Step(chunked(&[b"12345", b"6789"]), Then::Keep),
        Step(chunked(&[b"12345", b"6789x"]), Then::Keep),
    ];
    let server = Server::start(steps).await;
    let transport = Transport::new(TransportSpec::default());
    let request = outgoing(&format!("{}/tool?x=1", server.url()));
    let received = transport.send(&request, Timeouts::default(), 9).await.unwrap();
    assert_eq!((received.status.as_u16(), &received.body[..]), (307, &b"there"[..]));
    let received = transport.send(&request, Timeouts::default(), 9).await.unwrap();
    assert_eq!(&received.body[..], b"123456789");
    let error = transport.send(&request, Timeouts::default(), 9).await.unwrap_err();
    assert!(matches!(error, TransportError::TooLong { bytes_max: 9 }) && error.may_have_arrived());
    let seen = server.seen.lock().unwrap();
    assert_eq!((seen.requests.len(), seen.connections), (3, 1));
    assert!(seen.requests[0].0.starts_with("POST /tool?x=1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_guard_sees_every_address_before_anything_is_sent() {
    let server = Server::start(vec![Step(vec![answer(200, "", b"ok")], Then::Close)]).await;
    let port: u16 = server.address.rsplit(':').next().unwrap().parse().unwrap();
    let guarded = |port| {
        let guard: Arc<dyn Guard> = Arc::new(OnlyPort(port));
        Transport::new(TransportSpec { guard: Some(guard), ..TransportSpec::default() })
    };
    let request = outgoing(&format!("http://localhost:{port}/"));
    let error = guarded(1).send(&request, Timeouts::default(), 9).await.unwrap_err();
    assert!(matches!(&error, TransportError::Forbidden { host, .. } if host == "localhost"), "{error}");
    assert!(!error.may_have_arrived());
    assert_eq!(server.requests(), 0);
    assert_eq!(&guarded(port).send(&request, Timeouts::default(), 9).await.unwrap().body[..], b"ok");
}

#[tokio::test]
async fn nothing_is_sent_past_a_proxy_that_cannot_be_read() {
    let server = Server::start(vec![]).await;
    let lookup = |name: &str| (name == "http_proxy").then(|| "::bad".to_owned());
    let transport = Transport::new(TransportSpec { lookup: Some(&lookup), ..TransportSpec::default() });
    let error = transport.send(&outgoing(&server.url()), Timeouts::default(), 99).await.unwrap_err();
    assert!(matches!(&error, TransportError::Proxy { proxy, .. } if proxy == "HTTP_PROXY"), "{error}");
    assert!(!error.to_string().contains("bad"), "an address may hold a password");
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_and_no_proxy_is_heeded() {
    let refusal = b"HTTP/1.1 407 No\r\n\r\n".to_vec();
    let steps = vec![
        Step(vec![answer(200, "", b"by proxy")], Then::Keep),
        Step(vec![refusal], Then::Close),
        Step(vec![answer(200, "", b"direct")], Then::Keep),
    ];
    let server = Server::start(steps).await;
    let address = server.address.clone();
    let lookup = move |name: &str| match name {
        "http_proxy" | "HTTPS_PROXY" => Some(format!("http://me:pw@{address}")),
        "no_proxy" => Some("127.0.0.1".to_owned()),
        _ => None,
    };
    let transport = Transport::new(TransportSpec { lookup: Some(&lookup), ..TransportSpec::default() });
    let send = async |url: &str| transport.send(&outgoing(url), Timeouts::default(), 99).await;
    assert_eq!(&send("http://model.invalid/v1?x=2").await.unwrap().body[..], b"by proxy");
    let error = send("https://model.invalid/v1").await.unwrap_err();
    assert!(error.to_string().ends_with("it wants a name and a password in its address"), "{error}");
    assert_eq!(&send(&server.url()).await.unwrap().body[..], b"direct");
    let seen = server.seen.lock().unwrap();
    let heads: Vec<&str> = seen.requests.iter().map(|(head, _)| head.as_str()).collect();
    assert!(heads[0].starts_with("POST http://model.invalid/v1?x=2 HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[0].to_lowercase().contains("proxy-authorization: basic bwu6chc=\r\n"), "{}", heads[0]);
    assert!(heads[1].starts_with("CONNECT model.invalid:443 HTTP/1.1\r\n"), "{}", heads[1]);
    assert!(!heads[1].contains("Bearer"), "the key is for the model, not for the proxy");
}

#[tokio::test]
async fn an_address_without_http_is_refused() {
    let transport = Transport::new(TransportSpec::default());
    for url in ["ftp://example.com/", "/only/a/path"] {
        let error = transport.send(&outgoing(url), Timeouts::default(), 9).await.unwrap_err();
        assert!(matches!(error, TransportError::Address(_)) && !error.may_have_arrived());
    }
}

#[tokio::test]
async fn a_server_without_tls_behind_https_is_no_secure_connection() {
    let server = Server::start(vec![Step(vec![], Then::Close)]).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::task::spawn_blocking(move || {
        use std::io::Write as _;
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 plain\r\n\r\n").unwrap();
    });
    let transport = Transport::new(TransportSpec::default());
    let error = transport.send(&outgoing(&format!("https://{address}")), Timeouts::default(), 9).await.unwrap_err();
    assert!(matches!(error, TransportError::Tls { .. }) && !error.may_have_arrived(), "{error}");
    answering.await.unwrap();
    drop(server);
}

#[tokio::test]
async fn a_certificate_file_that_cannot_be_read_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root_files = vec!["no/such/roots.pem".into()];
    let transport = Transport::new(TransportSpec { root_files, ..TransportSpec::default() });
    let url = format!("https://{}", listener.local_addr().unwrap());
    let error = transport.send(&outgoing(&url), Timeouts::default(), 9).await.unwrap_err();
    assert!(error.to_string().contains("no/such/roots.pem"), "{error}");
}

#[tokio::test]
async fn a_connection_that_never_opens_runs_into_its_limit() {
    // Nothing ever answers the handshake of TLS here.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let timeouts = Timeouts { connect_ms: 50, ..Timeouts::default() };
    let transport = Transport::new(TransportSpec::default());
    let error = transport.send(&outgoing(&url), timeouts, 9).await.unwrap_err();
    assert!(matches!(error, TransportError::Timeout(Limit::Connect)) && !error.may_have_arrived(), "{error}");
}

fn pem(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// Answers each request over TLS, with a certificate that only `fixtures/tls/ca.pem` vouches for.
async fn tls_server() -> SocketAddr {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let certificate = CertificateDer::from_pem_file(pem("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(pem("localhost.key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut bytes = [0; 4096];
            if stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {
                let _ = stream.write_all(&answer(200, "", b"secret")).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    address
}

#[tokio::test]
async fn a_root_from_a_file_is_trusted_and_nobody_unknown_is() {
    let address = tls_server().await;
    let url = format!("https://localhost:{}/", address.port());
    let stranger = Transport::new(TransportSpec::default());
    let error = stranger.send(&outgoing(&url), Timeouts::default(), 99).await.unwrap_err();
    assert!(matches!(error, TransportError::Tls { .. }), "{error}");
    let configured = TransportSpec { root_files: vec![pem("ca.pem")], ..TransportSpec::default() };
    let named = pem("ca.pem").display().to_string();
    let lookup = move |name: &str| (name == "SSL_CERT_FILE").then(|| named.clone());
    let from_environment = TransportSpec { lookup: Some(&lookup), ..TransportSpec::default() };
    for spec in [configured, from_environment] {
        let received = Transport::new(spec).send(&outgoing(&url), Timeouts::default(), 99).await.unwrap();
        assert_eq!(&received.body[..], b"secret");
    }
    let by_number = outgoing(&format!("https://{address}/"));
    let trusting = TransportSpec { root_files: vec![pem("ca.pem")], ..TransportSpec::default() };
    let received = Transport::new(trusting).send(&by_number, Timeouts::default(), 99).await.unwrap();
    assert_eq!(&received.body[..], b"secret");
}
