//! What a base holds, found out in a worker of its own: its values are computed and its first functions run.

use std::borrow::Cow;
use std::sync::Arc;

use gesta_document::{Record, Report, Terms};

use crate::pool::{Opened, Pool};
use crate::protocol::{Answer, Ask, answer_bytes_max};
use crate::talk::hard_limit;
use crate::{Cause, Failure};

impl Pool {
    /// Says what a base holds and what is doubtful in it. The worker ends with it.
    ///
    /// # Errors
    /// It does not open, with the place and a caret; as [`Cause`] says.
    pub async fn check(&self, base: &str, terms: &Terms) -> Result<Report, Failure> {
        let failed = |cause: Cause, log: String| Failure { cause, grants: Vec::new(), log };
        // No conversation has this name, so that no open document is found for it.
        let nobody = Opened {
            conversation: "\0check".into(),
            record: Arc::new(Record::default()),
            terms: Arc::new(Terms::default()),
        };
        let mut leased = self.lease(&nobody).await.map_err(|cause| failed(cause, String::new()))?;
        let Some(mut worker) = leased.take() else {
            return Err(failed(Cause::Crash { how: "there was none".to_owned() }, String::new()));
        };
        worker.answer_bytes_max = answer_bytes_max(&terms.limits);
        let ask = Ask::Check { base: Cow::Borrowed(base), terms: Cow::Borrowed(terms) };
        match worker.ask(&ask, hard_limit(terms)).await {
            Ok(Answer::Checked { report }) => Ok(*report),
            Ok(Answer::NotOpened { error }) => {
                Err(failed(error.into(), worker.take_output(terms.limits.log_bytes_max)))
            }
            Ok(_) => Err(failed(Cause::Crash { how: "it answers something else".to_owned() }, String::new())),
            Err(broken) => {
                let limits = &terms.limits;
                let (cause, log) = worker.end(broken, limits.call_time_max_ms, limits.log_bytes_max).await;
                Err(failed(cause, log))
            }
        }
    }
}
