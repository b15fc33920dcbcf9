//! `claim_check`: an after-backstop that prompts the model once when its reply claims a change that no call made.

use std::sync::Arc;

use gesta_run::contract::BackstopSpec;
use gesta_run::input::Ran;
use gesta_run::intervention::Phase;
use gesta_run::message::Message;
use gesta_run::tool::TIME_LIMIT_MS;
use gesta_runtime::{AgentBuilder, Backstop, DetectFuture, RanFuture, TurnSeen};

use crate::claims::{Backed, Calls, Claims, Finding, Kind};

/// The name under which its interventions are recorded.
pub const CLAIM_CHECK: &str = "claim_check";

/// The backstop; an agent has it only where its author adds it (`spec/contract.md`, 4 and 3.4).
#[derive(Debug, Clone)]
pub struct ClaimCheck {
    claims: Arc<Claims>,
    tools: Option<Arc<[String]>>,
}

impl ClaimCheck {
    /// A check with these claims. With `tools` only their calls back one, which is recommended; without, any call that
    /// completed does, also one that only reads.
    pub fn new(claims: Claims, tools: Option<Vec<String>>) -> Self {
        Self { claims: Arc::new(claims), tools: tools.map(Arc::from) }
    }

    /// Adds it to an agent, under the name [`CLAIM_CHECK`].
    #[must_use]
    pub fn add_to(self, agent: AgentBuilder) -> AgentBuilder {
        let name = CLAIM_CHECK.to_owned();
        agent.backstop_with(BackstopSpec { name, phase: Phase::After, time_limit_ms: TIME_LIMIT_MS }, self)
    }

    /// The claim that nothing backs: no call of this run, and none of the conversation so far, so that a reply may
    /// still speak of what was done before.
    fn unbacked(&self, turn: &TurnSeen) -> Option<Finding> {
        let earlier = turn.messages.iter().flat_map(|message| match message {
            Message::Tools { results } => results.as_slice(),
            Message::User { .. } | Message::Notice { .. } | Message::Assistant { .. } => &[],
        });
        let run: Vec<_> = turn.tool_calls.iter().map(|call| &call.id).collect();
        let earlier = earlier.filter(|it| !it.is_error && !run.contains(&&it.call_id)).map(|it| it.name.as_str());
        let calls = Calls::of(&turn.tool_calls, self.tools.as_deref()).with_earlier(earlier, self.tools.as_deref());
        if calls.back(Kind::Change) != Backed::No {
            return None;
        }
        self.claims.unbacked(turn.reply.as_deref()?, &calls)
    }
}

impl Backstop for ClaimCheck {
    fn detect(&self, turn: TurnSeen) -> DetectFuture {
        Box::pin(std::future::ready(Ok(self.unbacked(&turn).is_some())))
    }

    fn run(&self, turn: TurnSeen) -> RanFuture {
        let prompt = self.unbacked(&turn).map(|found| {
            format!(
                "Your reply says \"{}\", but no call that does it has succeeded. Make the call now with what the user gave. \
                 If you cannot, say plainly that it has not been done, and do not claim that it has.",
                found.clause
            )
        });
        Box::pin(std::future::ready(Ok(Ran { prompt, state: None })))
    }
}
