//! What can go wrong between us and a server.

use std::path::PathBuf;

/// Which time limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Resolving, connecting and the TLS handshake.
    Connect,
    /// From the request to the first byte of the response's body.
    FirstByte,
    /// Between two pieces of the body.
    Idle,
    /// The whole exchange.
    Whole,
}

impl Limit {
    fn words(self) -> &'static str {
        match self {
            Self::Connect => "no connection in time",
            Self::FirstByte => "no answer came in time",
            Self::Idle => "the answer stalled",
            Self::Whole => "the answer took too long as a whole",
        }
    }
}

/// Why an exchange failed. No variant holds a header, a body or a query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The address cannot be used.
    #[error("the address `{0}` cannot be used; it must begin with http:// or https://")]
    Address(String),
    /// A certificate file cannot be read.
    #[error("the certificates in `{}` cannot be read: {reason}", path.display())]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The policy of permitted addresses refuses it. Nothing was sent.
    #[error("`{host}` may not be reached: {reason}")]
    Forbidden {
        /// The host.
        host: String,
        /// Why not.
        reason: String,
    },
    /// No connection. Nothing was sent.
    #[error("no connection to `{host}`: {reason}")]
    Connect {
        /// Host and port.
        host: String,
        /// Why not.
        reason: String,
    },
    /// The TLS handshake failed. Nothing was sent.
    #[error("no secure connection to `{host}`: {reason}")]
    Tls {
        /// Host and port.
        host: String,
        /// Why not.
        reason: String,
    },
    /// The proxy did not open a way. Nothing was sent.
    #[error("the proxy `{proxy}` did not open a way: {reason}")]
    Proxy {
        /// The proxy's host and port.
        proxy: String,
        /// Why not.
        reason: String,
    },
    /// A time limit passed.
    #[error("{}", .0.words())]
    Timeout(Limit),
    /// The connection broke after the request, or a part of it, had been sent.
    #[error("the connection to `{host}` broke: {reason}")]
    Broken {
        /// Host and port.
        host: String,
        /// Why.
        reason: String,
    },
    /// The body is longer than allowed.
    #[error("the answer is longer than {bytes_max} bytes")]
    TooLong {
        /// The limit.
        bytes_max: usize,
    },
}

impl TransportError {
    /// Whether the server may have seen the request, so that its effect is unknown.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Timeout(limit) => *limit != Limit::Connect,
            Self::Broken { .. } | Self::TooLong { .. } => true,
            Self::Address(_)
            | Self::Roots { .. }
            | Self::Forbidden { .. }
            | Self::Connect { .. }
            | Self::Tls { .. }
            | Self::Proxy { .. } => false,
        }
    }
}
