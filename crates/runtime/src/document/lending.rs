//! Grants on their way from a running document to the run, which decides on them, and back.

use gesta_document::GrantName;
use gesta_run::CallId;
use gesta_run::json::Object;
use gesta_sandbox::{GrantFuture, Grants};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// A grant that a running call asks for.
pub(crate) struct Asked {
    /// The call.
    pub(crate) call: CallId,
    /// Which grant of that call, from 0.
    pub(crate) n: u32,
    /// Its full name.
    pub(crate) grant: String,
    /// The arguments, by name.
    pub(crate) arguments: Object,
    /// Who waits for the answer.
    pub(crate) answer: oneshot::Sender<Result<Value, String>>,
}

/// What one call is lent: it asks the driver, and the driver the run.
pub(super) struct Lending {
    pub(super) call: CallId,
    /// How many grants the call had asked for before, in a process that died.
    pub(super) before: u32,
    pub(super) asks: mpsc::UnboundedSender<Asked>,
}

impl Grants for Lending {
    fn call(&self, n: u32, grant: GrantName, arguments: Object) -> GrantFuture<'_> {
        let (answer, answered) = oneshot::channel();
        let n = self.before.saturating_add(n).saturating_sub(1);
        let asked = Asked { call: self.call.clone(), n, grant: grant.to_string(), arguments, answer };
        let gone = || "the run that lends it has stopped".to_owned();
        let sent = self.asks.send(asked);
        Box::pin(async move {
            sent.map_err(|_| gone())?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }
}
