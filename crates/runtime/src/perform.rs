//! What performing each kind of want means. One future a want; whatever happens in it becomes one answer.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use gesta_run::json::Object;
use gesta_run::{
    Answer, Arguments, Attempt, CallId, CallState, Delta, Effect, Fault, FaultKind, HookError, Message, Met, Phase,
    Ruling, Run, ToolEffect, Usage, Want, WantId,
};
use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::agent::Parts;
use crate::document::Working;
use crate::hook::{CallAsked, Hook, TurnSeen};
use crate::model_call;
use crate::progress::Listener;
use crate::tool::Scope;

/// How long a hook may take, and how long in a live session (`spec/contract.md`, 7.1).
const HOOK_LIMIT: Duration = Duration::from_secs(10);
const HOOK_LIMIT_LIVE: Duration = Duration::from_secs(2);

/// A want being performed.
pub(crate) type Performing = Pin<Box<dyn Future<Output = Done> + Send>>;

/// A want that was begun.
// It lives for a moment, and a box for each answer is what it is there to save.
#[allow(clippy::large_enum_variant)]
pub(crate) enum Begun {
    /// It was answered at once, as hooks and tools do that have nothing to wait for.
    Done(Done),
    /// It goes on.
    Going(Performing),
}

/// What came of a want.
pub(crate) struct Done {
    pub(crate) want: WantId,
    pub(crate) met: Met,
    /// Text that was not shown, because it looked like a call written as text.
    pub(crate) held_back: Option<Delta>,
}

/// What a want is performed with.
pub(crate) struct Stage<'a> {
    pub(crate) parts: &'a Arc<Parts>,
    pub(crate) run: &'a Run,
    pub(crate) history: &'a [Message],
    pub(crate) working: Option<&'a Working>,
    pub(crate) listener: Option<&'a Listener>,
    pub(crate) resumed: bool,
    /// A model call failed because the history was too long.
    pub(crate) shortened: bool,
}

impl Stage<'_> {
    /// Begins a want, as part of the task that drives the run.
    pub(crate) fn begin(&self, want: &Want, cx: &mut Context<'_>) -> Begun {
        let id = want.id.clone();
        match &want.effect {
            Effect::CallModel => Begun::Going(model_call::ask(self, id)),
            Effect::Offer => self.offer(id),
            Effect::Decide(call) => self.decide(id, call, cx),
            Effect::RunTool(call) => self.run_tool(id, call, cx),
            Effect::DecideGrant(call, n) => self.decide_grant(id, call, *n, cx),
            Effect::RunGrant(call, n) => self.run_grant(id, call, *n, cx),
            Effect::Detect(backstop) => self.detect(id, *backstop, cx),
            Effect::RunBackstop(backstop) => self.run_backstop(id, *backstop, cx),
            // Whoever asked takes the result directly: that is the delivery.
            Effect::Deliver => ready(id, Met::Delivered { path: "inline".to_owned() }),
            Effect::Perform(call) => self.perform_action(id, call, cx),
            Effect::Hold(_) => Begun::Going(Box::pin(std::future::pending())),
        }
    }

    fn scope(&self, call: &CallId) -> Scope {
        let opening = self.run.opening();
        Scope {
            run: opening.map_or_else(|| "".into(), |it| it.run.clone()),
            call: call.clone(),
            conversation: opening.and_then(|it| it.conversation.clone()),
            contact: opening.and_then(|it| it.contact.clone()),
        }
    }

    /// The tools of the document are those of the run, read anew on each trip.
    fn offer(&self, id: WantId) -> Begun {
        let Some(working) = self.working else { return ready(id, Met::Offered { added: Vec::new() }) };
        let specs = working.specs();
        going(id, async move {
            match specs.await {
                Ok(added) => Met::Offered { added },
                Err(failure) => Met::Failed(no_tools(&failure)),
            }
        })
    }

    fn decide(&self, id: WantId, call: &CallId, cx: &mut Context<'_>) -> Begun {
        let (Some(hook), Some(call)) = (self.parts.hook.clone(), self.run.call(call)) else {
            return ready(id, Met::Decided(Ok(gesta_run::Decision::run())));
        };
        let scope = self.scope(&call.id);
        let asked = self.asked(scope, call, &call.name, call.model_arguments.clone(), call.raw_arguments.clone());
        self.put_to_hook(id, hook, asked, cx)
    }

    /// A grant is put to the same hook as `Library.function`, with its arguments by name.
    fn decide_grant(&self, id: WantId, call: &CallId, n: u32, cx: &mut Context<'_>) -> Begun {
        let (Some(hook), Some(state), Some(grant)) =
            (self.parts.hook.clone(), self.run.call(call), self.run.grant(call, n))
        else {
            return ready(id, Met::Decided(Ok(gesta_run::Decision::run())));
        };
        let raw = Value::Object(grant.asked.clone()).to_string();
        let asked =
            self.asked(self.scope_of_grant(call, n), state, &grant.name, grant.asked.clone().into(), raw.into());
        self.put_to_hook(id, hook, asked, cx)
    }

    fn asked(
        &self,
        scope: Scope,
        call: &CallState,
        name: &str,
        arguments: Arguments,
        raw_arguments: Arc<str>,
    ) -> CallAsked {
        CallAsked {
            id: scope.call,
            name: name.to_owned(),
            arguments,
            raw_arguments,
            trip: call.trip,
            index: call.index,
            batch_size: self.run.batch_size(),
            run_id: scope.run,
            conversation: scope.conversation,
            contact: scope.contact,
            resumed: self.resumed,
        }
    }

    fn put_to_hook(&self, id: WantId, hook: Arc<dyn Hook>, asked: CallAsked, cx: &mut Context<'_>) -> Begun {
        let limit = if self.run.plan().spec.live { HOOK_LIMIT_LIVE } else { HOOK_LIMIT };
        let met = |answer: Result<Ruling, Broken>| {
            Met::Decided(match answer {
                Ok(ruling) => ruling,
                Err(why) => Err(HookError(format!("the hook {why}"))),
            })
        };
        limited(id, limit, move || hook.decide(asked), met, cx)
    }

    /// Of a grant: its tool's call and which of that call.
    fn scope_of_grant(&self, call: &CallId, n: u32) -> Scope {
        Scope { call: CallId::new(format!("{call}/{n}")), ..self.scope(call) }
    }

    fn run_grant(&self, id: WantId, call: &CallId, n: u32, cx: &mut Context<'_>) -> Begun {
        let Some(grant) = self.run.grant(call, n) else { return ready(id, Met::Answered(Answer::Unknown)) };
        let limit_ms =
            self.run.plan().grant(&grant.name).map_or(gesta_run::grant::TIME_LIMIT_MS, |it| it.time_limit_ms);
        let Some(body) = self.parts.grants.get(&grant.name).cloned() else {
            let text = format!("grant {} is not available", grant.name);
            return ready(id, Met::Answered(Answer::Error(text)));
        };
        let name = grant.name.clone();
        let (arguments, scope) = (grant.arguments.clone().into(), self.scope_of_grant(call, n));
        let met = move |answer| {
            Met::Answered(answered(answer).unwrap_or_else(|| {
                tracing::error!(grant = %name, "a grant panicked");
                Answer::Error("the grant failed inside (it panicked)".to_owned())
            }))
        };
        limited(id, Duration::from_millis(limit_ms), move || body.call_shared(arguments, scope), met, cx)
    }

    fn run_tool(&self, id: WantId, call: &CallId, cx: &mut Context<'_>) -> Begun {
        let Some(state) = self.run.call(call) else { return ready(id, Met::Answered(Answer::Unknown)) };
        if self.run.arguments_to_run(call).is_none() {
            let text = "the arguments are not those that were approved; the call was not run";
            return ready(id, Met::Answered(Answer::Error(text.to_owned())));
        }
        let arguments = state.arguments.clone();
        if let (true, Some(working)) = (state.tool.as_ref().is_some_and(|it| it.spec.document), self.working) {
            let running = working.call(state, arguments.into_object(), self.parts.clock.now());
            return going(id, async move { Met::Answered(running.await) });
        }
        let limit_ms = state.tool.as_ref().map_or(gesta_run::tool::TIME_LIMIT_MS, |tool| tool.spec.time_limit_ms);
        let Some(body) = self.parts.tools.get(&state.name).cloned() else {
            let text = format!("tool `{}` has no body here", state.name);
            return ready(id, Met::Answered(Answer::Error(text)));
        };
        let name = state.name.clone();
        let scope = self.scope(call);
        let met = move |answer| {
            Met::Answered(answered(answer).unwrap_or_else(|| {
                tracing::error!(tool = %name, "a tool panicked");
                Answer::Error("the tool failed inside (it panicked)".to_owned())
            }))
        };
        limited(id, Duration::from_millis(limit_ms), move || body.call_shared(arguments, scope), met, cx)
    }

    fn perform_action(&self, id: WantId, call: &CallId, cx: &mut Context<'_>) -> Begun {
        let failed = |error: &str| Met::Performed(Attempt::Failed { error: error.to_owned() });
        let Some((tool, arguments)) = self.run.action(call) else { return ready(id, failed("gone")) };
        let plan = self.run.plan();
        let spec = plan.tools().get(tool).filter(|tool| tool.spec.effect == ToolEffect::Staged);
        let (Some(body), Some(spec)) = (self.parts.tools.get(tool).cloned(), spec) else {
            return ready(id, failed("config_removed"));
        };
        let (arguments, scope) = (Object::clone(arguments).into(), self.scope(call));
        let met = |answer| {
            let failed = |error: String| Attempt::Failed { error };
            Met::Performed(match answered(answer) {
                Some(Answer::Ok(_)) => Attempt::Performed,
                Some(Answer::Error(text)) => failed(text),
                Some(Answer::TimedOut | Answer::TimedOutWith(_)) => failed("timeout".to_owned()),
                Some(Answer::Unknown) => failed("outcome_unknown".to_owned()),
                None => failed("panicked".to_owned()),
            })
        };
        let limit = Duration::from_millis(spec.spec.time_limit_ms);
        limited(id, limit, move || body.call_shared(arguments, scope), met, cx)
    }

    fn seen(&self, backstop: usize) -> TurnSeen {
        let opening = self.run.opening();
        let at_gate = self.run.at_gate();
        let result = self.run.result();
        let specs = &self.run.plan().spec.contract.backstops;
        TurnSeen {
            phase: specs.get(backstop).map_or(Phase::Before, |spec| spec.phase),
            run_id: result.report.run_id,
            conversation: opening.and_then(|it| it.conversation.clone()),
            contact: opening.and_then(|it| it.contact.clone()),
            input: opening.map(|it| gesta_run::message::text_of(&it.input)).unwrap_or_default(),
            reply: at_gate.map(|(_, text)| text.to_owned()),
            trip_index: at_gate.map_or(0, |(trip, _)| trip),
            tool_calls: result.tool_calls,
            messages: self.history.iter().chain(self.run.transcript()).cloned().collect(),
            state: self.run.shared_state().cloned().unwrap_or_else(|| serde_json::json!({})),
        }
    }

    fn backstop_limit(&self, backstop: usize) -> Duration {
        let spec = self.run.plan().spec.contract.backstops.get(backstop);
        Duration::from_millis(spec.map_or(gesta_run::tool::TIME_LIMIT_MS, |spec| spec.time_limit_ms))
    }

    fn detect(&self, id: WantId, backstop: usize, cx: &mut Context<'_>) -> Begun {
        let Some(body) = self.parts.backstops.get(backstop).cloned() else {
            return ready(id, Met::Detected(Err("it has no body here".to_owned())));
        };
        let seen = self.seen(backstop);
        let met = |answer: Result<_, Broken>| Met::Detected(answer.unwrap_or_else(|why| Err(format!("detect {why}"))));
        limited(id, self.backstop_limit(backstop), move || body.detect(seen), met, cx)
    }

    fn run_backstop(&self, id: WantId, backstop: usize, cx: &mut Context<'_>) -> Begun {
        let Some(body) = self.parts.backstops.get(backstop).cloned() else {
            return ready(id, Met::Ran(Err("it has no body here".to_owned())));
        };
        let seen = self.seen(backstop);
        let met = |answer: Result<_, Broken>| Met::Ran(answer.unwrap_or_else(|why| Err(format!("run {why}"))));
        limited(id, self.backstop_limit(backstop), move || body.run(seen), met, cx)
    }
}

/// Nobody can say which tools the document offers, or they cannot be offered.
pub(crate) fn no_tools(why: &dyn std::fmt::Display) -> Fault {
    Fault {
        kind: FaultKind::Config,
        message: format!("the tools of the document cannot be offered: {why}"),
        retryable: false,
        status: None,
        retry_after_ms: None,
        usage: Usage::default(),
    }
}

fn ready(want: WantId, met: Met) -> Begun {
    Begun::Done(Done { want, met, held_back: None })
}

fn going(want: WantId, answer: impl Future<Output = Met> + Send + 'static) -> Begun {
    Begun::Going(Box::pin(async move { Done { want, met: answer.await, held_back: None } }))
}

/// What a body gave back; none where it panicked.
fn answered(answer: Result<Answer, Broken>) -> Option<Answer> {
    match answer {
        Ok(answer) => Some(answer),
        Err(Broken::TooLate) => Some(Answer::TimedOut),
        Err(Broken::Panicked) => None,
    }
}

/// Someone else's code, some time later.
type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Begins someone else's code under a time limit; one that panics hurts nobody else. Where several threads work it is in
/// a task of its own from the start, because it may block its thread; on a single one it comes to that only if it has
/// to wait. Dropped, it is stopped.
fn limited<T: Send + 'static>(
    id: WantId,
    limit: Duration,
    work: impl FnOnce() -> Work<T> + Send + 'static,
    met: impl FnOnce(Result<T, Broken>) -> Met + Send + 'static,
    cx: &mut Context<'_>,
) -> Begun {
    let task = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::CurrentThread) => {
            let first = catch_unwind(AssertUnwindSafe(|| {
                let mut work = work();
                match work.as_mut().poll(cx) {
                    Poll::Ready(value) => Ok(value),
                    Poll::Pending => Err(work),
                }
            }));
            match first {
                Ok(Ok(value)) => return ready(id, met(Ok(value))),
                Ok(Err(work)) => tokio::spawn(work.in_current_span()),
                Err(_) => return ready(id, met(Err(Broken::Panicked))),
            }
        }
        _ => tokio::spawn(async move { work().await }.in_current_span()),
    };
    let mut task = Task(task);
    going(id, async move {
        met(match tokio::time::timeout(limit, &mut task.0).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err(Broken::Panicked),
            Err(_) => Err(Broken::TooLate),
        })
    })
}

/// A task that is stopped when nobody waits for it any more.
struct Task<T>(JoinHandle<T>);

/// Why someone else's code gave no answer.
enum Broken {
    TooLate,
    Panicked,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLate => "took too long",
            Self::Panicked => "panicked",
        })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
