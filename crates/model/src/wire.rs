//! The exact bytes of an exchange, for whoever wants to look at them.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

/// One exchange with a provider. Headers are left out, so no key is in it.
#[derive(Debug, Clone, Default)]
pub struct WireRecord {
    /// Where it went, without the query.
    pub url: String,
    /// Which attempt, counted from 0.
    pub attempt: u32,
    /// The body of the request.
    pub request: Bytes,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    /// The body of the response, as far as it was read.
    pub response: Vec<u8>,
    /// Why the exchange failed, if it did.
    pub failure: Option<String>,
}

/// Takes each exchange when it is over, also one that was cancelled. It must not block.
#[derive(Clone)]
pub struct Wire(Arc<dyn Fn(&WireRecord) + Send + Sync>);

impl Wire {
    /// Calls `hook` with each exchange.
    pub fn new(hook: impl Fn(&WireRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wire")
    }
}

/// An exchange that is going on. It is handed over when it is dropped.
#[derive(Debug)]
pub(crate) struct Capture {
    wire: Wire,
    pub(crate) record: WireRecord,
}

impl Capture {
    pub(crate) fn begin(wire: &Wire, record: WireRecord) -> Self {
        Self { wire: wire.clone(), record }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        (self.wire.0)(&self.record);
    }
}
