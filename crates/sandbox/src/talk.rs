//! A conversation with a worker: one thing asked of its document, and the grants that the document asks for meanwhile.

use std::time::Duration;

use gesta_document::{GrantName, Terms};
use gesta_run::json::Object;
use serde_json::Value;
use tokio::time::{Instant, timeout};

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

/// When a document that begins to run now is ended from outside.
pub(crate) fn hard_limit(terms: &Terms) -> Instant {
    Instant::now() + Duration::from_millis(terms.limits.call_time_max_ms.saturating_add(HARD_LIMIT_AFTER_MS))
}

/// Asks a worker and answers its grant calls until it has the answer. Its clock stands still while a grant runs, and for
/// nothing else: who asks on and on for what is refused gains no time by it.
pub(crate) async fn ask(worker: &mut Worker, ask: &Ask<'_>, mut lent: Lending<'_>) -> Result<Answer, Broken> {
    let mut deadline = hard_limit(lent.terms);
    worker.asked = worker.asked.saturating_add(1);
    let mut answer = worker.ask(ask, deadline).await?;
    let mut asked = 0_u32;
    while let Answer::Grant { n, grant, arguments } = answer {
        asked = asked.saturating_add(1);
        if n != asked {
            return Err(Broken::Garbled(format!("grant call {n} in place of {asked}")));
        }
        let result = match lent.refusal(n, &grant, worker.heard_bytes()) {
            None => {
                let began = Instant::now();
                let result = lent.grant(n, grant, arguments).await;
                deadline += began.elapsed();
                result
            }
            Some(why) => Err(why),
        };
        let bytes_max = lent.terms.limits.grant_result_bytes_max;
        let too_long = Err(format!("its result is longer than {bytes_max} bytes"));
        let (granted, instead) = (Ask::Granted { n, result }, Ask::Granted { n, result: too_long });
        let bytes_max = bytes_max.saturating_add(ENVELOPE_BYTES);
        answer = worker.ask_bounded(&granted, bytes_max, &instead, deadline).await.map_err(Broken::in_a_call)?;
    }
    Ok(answer)
}

impl Lending<'_> {
    /// Why a grant call is not made. The worker, which keeps the same limits, is not trusted to.
    fn refusal(&self, n: u32, grant: &GrantName, bytes: usize) -> Option<String> {
        let limits = &self.terms.limits;
        if !self.terms.grants.iter().any(|spec| spec.name == *grant) {
            return Some(format!("grant {grant} is not available"));
        }
        if n > limits.grants_max {
            return Some(format!("one call of a tool may call {} functions of the host, and did", limits.grants_max));
        }
        let bytes_max = limits.grant_arguments_bytes_max;
        let long = bytes > bytes_max.saturating_add(ENVELOPE_BYTES);
        long.then(|| format!("{grant}: its arguments are longer than {bytes_max} bytes"))
    }

    async fn grant(&mut self, n: u32, grant: GrantName, arguments: Object) -> Result<Value, String> {
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
