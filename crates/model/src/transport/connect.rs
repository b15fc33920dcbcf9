//! From an address to an open connection: resolve, check, connect, through a proxy and into TLS where that is due.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use http::Uri;
use hyper_util::client::proxy::matcher::Intercept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Inner;
use super::error::TransportError;
use super::proxy;

/// How long an address may stay silent before the next is tried beside it.
const NEXT_ADDRESS_MS: u64 = 250;

/// Says which addresses may be reached. A host's name is resolved once, every address is asked for, and the connection
/// goes to one that was permitted.
pub trait Guard: Send + Sync {
    /// Whether a connection to this address may be made.
    ///
    /// # Errors
    /// The reason, for the author of the configuration.
    fn address(&self, host: &str, address: SocketAddr) -> Result<(), String>;

    /// Whether a proxy may be asked for this host. The proxy resolves the name, so its address cannot be checked.
    ///
    /// # Errors
    /// The reason, for the author of the configuration. By default always.
    fn by_proxy(&self, host: &str, port: u16) -> Result<(), String> {
        let _ = (host, port);
        Err("a proxy resolves names by itself, so that their addresses cannot be checked".to_owned())
    }
}

/// An open connection.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Tls(_) => "Tls",
        })
    }
}

/// A connection, and whether requests on it must name the whole address because a proxy reads them.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) socket: Socket,
    pub(crate) absolute: bool,
    pub(crate) proxy_auth: Option<String>,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) secure: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Target {
    pub(crate) fn of(uri: &Uri) -> Result<Self, TransportError> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(TransportError::Address(uri.host().unwrap_or_default().to_owned())),
        };
        match uri.host() {
            Some(host) if !host.is_empty() => {
                let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
                Ok(Self { secure, host: host.to_owned(), port })
            }
            _ => Err(TransportError::Address(String::new())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

pub(crate) async fn open(inner: &Inner, uri: &Uri, target: &Target) -> Result<Opened, TransportError> {
    let wrong = |name: &'static str| TransportError::Proxy {
        proxy: name.to_owned(),
        reason: "it holds no address of one; write http://HOST:PORT, or unset it".to_owned(),
    };
    if let Some(proxy) = inner.proxies.of(uri).map_err(wrong)? {
        return open_by_proxy(inner, &proxy, target).await;
    }
    let tcp = dial(&target.host, target.port, inner.guard.as_deref()).await?;
    let socket = match target.secure {
        true => Socket::Tls(Box::new(inner.tls.wrap(tcp, &target.host).await?)),
        false => Socket::Plain(tcp),
    };
    Ok(Opened { socket, absolute: false, proxy_auth: None })
}

async fn open_by_proxy(inner: &Inner, proxy: &Intercept, target: &Target) -> Result<Opened, TransportError> {
    if let Some(guard) = &inner.guard {
        let forbidden = |reason| TransportError::Forbidden { host: target.to_string(), reason };
        guard.by_proxy(&target.host, target.port).map_err(forbidden)?;
    }
    let uri = proxy.uri();
    let host = uri.host().unwrap_or_default();
    let name = format!("{host}:{}", uri.port_u16().unwrap_or(80));
    let failed = |reason: String| TransportError::Proxy { proxy: name.clone(), reason };
    if uri.scheme_str() != Some("http") {
        return Err(failed("only proxies that begin with http:// are supported".to_owned()));
    }
    let mut tcp = dial(host, uri.port_u16().unwrap_or(80), None).await.map_err(|why| failed(why.to_string()))?;
    let auth = proxy::auth_of(proxy);
    if !target.secure {
        return Ok(Opened { socket: Socket::Plain(tcp), absolute: true, proxy_auth: auth });
    }
    proxy::connect(&mut tcp, &target.to_string(), auth.as_deref()).await.map_err(failed)?;
    let tls = inner.tls.wrap(tcp, &target.host).await?;
    Ok(Opened { socket: Socket::Tls(Box::new(tls)), absolute: false, proxy_auth: None })
}

/// Resolves, asks the guard for every address, and connects to the first that answers.
async fn dial(host: &str, port: u16, guard: Option<&dyn Guard>) -> Result<TcpStream, TransportError> {
    let failed = |reason: String| TransportError::Connect { host: format!("{host}:{port}"), reason };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => {
            let found = tokio::net::lookup_host((bare, port)).await;
            found.map_err(|why| failed(format!("its name cannot be resolved: {why}")))?.collect()
        }
    };
    if let Some(guard) = guard {
        for address in &addresses {
            let forbidden = |reason| TransportError::Forbidden { host: host.to_owned(), reason };
            guard.address(host, *address).map_err(forbidden)?;
        }
    }
    let stream = race(alternate(addresses)).await.map_err(|why| failed(why.to_string()))?;
    // Without it small requests would wait for an acknowledgement; where it cannot be set, they do.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Orders addresses so that the two families alternate, beginning with the resolver's first.
fn alternate(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut other): (Vec<_>, Vec<_>) = addresses.into_iter().partition(|it| it.is_ipv6() == first_is_v6);
    one.reverse();
    other.reverse();
    let mut out = Vec::with_capacity(one.len() + other.len());
    while let Some(next) = one.pop() {
        out.push(next);
        out.extend(other.pop());
    }
    other.reverse();
    out.extend(other);
    out
}

/// Connects to one after another without waiting long for any.
async fn race(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut waiting = addresses.into_iter();
    let mut trying = FuturesUnordered::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    loop {
        match waiting.next() {
            Some(address) => trying.push(TcpStream::connect(address)),
            None if trying.is_empty() => return Err(last),
            None => {}
        }
        let more = waiting.len() > 0;
        let pause = tokio::time::sleep(Duration::from_millis(NEXT_ADDRESS_MS));
        tokio::select! {
            Some(result) = trying.next() => match result {
                Ok(stream) => return Ok(stream),
                Err(why) => last = why,
            },
            () = pause, if more => {}
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
