//! A conversation with a worker: one thing asked of its document, and the grants that the document asks for meanwhile.

use std::time::Duration;

use gesta_document::{GrantName, Terms};
use gesta_run::json::Object;
use serde_json::Value;
use tokio::time::timeout;

use crate::protocol::{Answer, Ask};
use crate::worker::{Broken, Worker};
use crate::{GrantCall, GrantOutcome, Grants};

/// How long after its own limit a document is ended from outside, in milliseconds (`spec/documents.md`, 3.2).
const HARD_LIMIT_AFTER_MS: u64 = 300;

/// Bytes of a line around what it carries.
const ENVELOPE_BYTES: usize = 512;

/// What a document may call, and what it has called.
pub(crate) struct Lending<'a> {
    pub(crate) grants: &'a dyn Grants,
    pub(crate) terms: &'a Terms,
    pub(crate) time_max_ms: u64,
    pub(crate) calls: &'a mut Vec<GrantCall>,
}

/// The time that a document may run, until it is ended from outside.
pub(crate) fn hard_limit(terms: &Terms) -> Duration {
    Duration::from_millis(terms.limits.call_time_max_ms.saturating_add(HARD_LIMIT_AFTER_MS))
}

/// Asks a worker and answers its grant calls until it has the answer. Its clock stands still during a grant.
pub(crate) async fn ask(worker: &mut Worker, ask: &Ask<'_>, mut lent: Lending<'_>) -> Result<Answer, Broken> {
    let mut left = hard_limit(lent.terms);
    worker.asked = worker.asked.saturating_add(1);
    let mut answer = worker.ask(ask, &mut left).await?;
    let mut asked = 0_u32;
    while let Answer::Grant { n, grant, arguments } = answer {
        asked = asked.saturating_add(1);
        if n != asked {
            return Err(Broken::Garbled(format!("grant call {n} in place of {asked}")));
        }
        let result = lent.grant(n, grant, arguments, worker.heard_bytes()).await;
        let bytes_max = lent.terms.limits.grant_result_bytes_max;
        let too_long = Err(format!("its result is longer than {bytes_max} bytes"));
        let (granted, instead) = (Ask::Granted { n, result }, Ask::Granted { n, result: too_long });
        answer = worker.ask_bounded(&granted, bytes_max.saturating_add(ENVELOPE_BYTES), &instead, &mut left).await?;
    }
    Ok(answer)
}

impl Lending<'_> {
    /// Runs one grant within its limits, which the worker is not trusted to keep.
    async fn grant(&mut self, n: u32, grant: GrantName, arguments: Object, bytes: usize) -> Result<Value, String> {
        let limits = &self.terms.limits;
        if !self.terms.grants.iter().any(|spec| spec.name == grant) {
            return Err(format!("grant {grant} is not available"));
        }
        if n > limits.grants_max {
            return Err(format!("one call of a tool may call {} functions of the host, and did", limits.grants_max));
        }
        if bytes > limits.grant_arguments_bytes_max.saturating_add(ENVELOPE_BYTES) {
            return Err(format!("{grant}: its arguments are longer than {} bytes", limits.grant_arguments_bytes_max));
        }
        // Noted before it begins, so that it is known to have begun also where nobody waits for its end.
        let at = self.calls.len();
        self.calls.push(GrantCall { n, grant: grant.clone(), outcome: GrantOutcome::Unknown });
        let time_max = Duration::from_millis(self.time_max_ms);
        let Ok(result) = timeout(time_max, self.grants.call(n, grant.clone(), arguments)).await else {
            return Err(format!("{grant} did not answer within {} ms; its outcome is unknown", self.time_max_ms));
        };
        if let Some(call) = self.calls.get_mut(at) {
            call.outcome = if result.is_ok() { GrantOutcome::Done } else { GrantOutcome::Failed };
        }
        result
    }
}
