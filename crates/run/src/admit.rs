//! An input and the phase give at most one event, or the input is out of turn.

use serde_json::Value;

use crate::answers;
use crate::call::{Answer, CallEnd, CallStatus};
use crate::decision::{Decision, Ruling};
use crate::event::{Event, EventKind};
use crate::hold::{AnswerError, HoldAnswer, HoldKind, HoldReply};
use crate::id::{CallId, WantId};
use crate::input::{Input, InputKind, Met, Opening, Ran};
use crate::json;
use crate::message::Part;
use crate::outcome::Outcome;
use crate::plan::{OnMessageWhileParked, Plan};
use crate::reply::Reply;
use crate::rules::{classify, grants, leaked, resolve, words};
use crate::run::Run;
use crate::state::{Phase, Stage, State};
use crate::time::Timestamp;
use crate::want::Effect;

/// Why an input was not admitted. Nothing changed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// A second, late or misplaced input. A correct driver may meet it after a crash and drops the input.
    #[error("out of turn: {0}")]
    OutOfTurn(String),
    /// The opening cannot be used.
    #[error("the input has {bytes} bytes, the limit is {max}")]
    InputTooLong {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The opening holds nothing.
    #[error("the input is empty")]
    InputEmpty,
    /// An offered tool cannot be used.
    #[error(transparent)]
    Tool(#[from] crate::tool::ToolError),
    /// Answers to holds were refused, all of them.
    #[error(transparent)]
    Answers(#[from] AnswerError),
    /// The agent refuses messages while calls wait.
    #[error("the conversation waits for answers to: {}", .open.iter().map(CallId::as_str).collect::<Vec<_>>().join(", "))]
    Waiting {
        /// The open holds.
        open: Vec<CallId>,
    },
    /// Going on needs more trips than it was given.
    #[error("trips_max must be more than the {used} trips used")]
    TripsMax {
        /// Trips used.
        used: u32,
    },
}

type Failures = Vec<(String, String)>;
type Admitted = Result<Vec<EventKind>, FeedError>;

/// Admits an input: the events it gives by itself, before anything follows.
pub(crate) fn admit(run: &Run, input: Input, failures: &mut Failures) -> Admitted {
    let (plan, state, at) = (run.plan(), run.state(), input.at);
    match input.kind {
        InputKind::Opened(opening) => open(plan, state, opening, failures),
        InputKind::Met { want, met } => meet(run, &want, met, at, failures),
        InputKind::Answers { answers, missing_tools, now } => {
            answer_holds(run, &answers, &missing_tools, now, at, failures)
        }
        InputKind::Resumed { trips_max, now } => resume(state, trips_max, now),
        InputKind::Superseded => supersede(run),
        InputKind::Recovered if state.opening.is_some() => Ok(vec![EventKind::Recovered]),
        InputKind::Recovered => Err(out("nothing has begun")),
        InputKind::Tick => Ok(tick(state, at)),
        InputKind::Cancelled if state.opening.is_none() || state.ended.is_some() => Err(out("nothing is going on")),
        InputKind::Cancelled if state.stop.is_some() => Ok(Vec::new()),
        InputKind::Cancelled => Ok(vec![stopped(Outcome::Cancelled, "cancelled")]),
    }
}

fn out(why: impl Into<String>) -> FeedError {
    FeedError::OutOfTurn(why.into())
}

fn stopped(outcome: Outcome, message: &str) -> EventKind {
    EventKind::Stopped { outcome, message: message.to_owned() }
}

fn open(plan: &Plan, state: &State, opening: Opening, failures: &mut Failures) -> Admitted {
    if state.opening.is_some() {
        return Err(out("the run has begun already"));
    }
    let max = plan.spec.limits.input_bytes_max;
    let bytes: usize = opening.input.iter().map(|part| content_of(part).len()).sum();
    if bytes > max {
        return Err(FeedError::InputTooLong { bytes, max });
    }
    if opening.input.iter().all(|part| content_of(part).trim().is_empty()) {
        return Err(FeedError::InputEmpty);
    }
    let intent = plan.matched_intent(&opening.input, failures);
    Ok(vec![EventKind::Opened { opening, intent }])
}

fn content_of(part: &Part) -> &str {
    match part {
        Part::Text { text } => text,
        Part::Image { source, .. } | Part::File { source, .. } => match source {
            crate::message::Source::Base64(data) | crate::message::Source::Url(data) => data,
        },
    }
}

fn meet(run: &Run, want: &WantId, met: Met, at: Timestamp, failures: &mut Failures) -> Admitted {
    let (plan, state) = (run.plan(), run.state());
    let Some(wanted) = run.want(want) else {
        return Err(out(format!("nothing named {want} is wanted")));
    };
    Ok(vec![match (wanted.effect, met) {
        (Effect::Offer, Met::Offered { added }) => offer(plan, state, added)?,
        (Effect::CallModel, Met::Replied(reply)) => replied(plan, state, reply, failures),
        // Without its tools the model is not asked: it would answer as if it had none.
        (Effect::CallModel | Effect::Offer, Met::Failed(fault)) => EventKind::ModelFailed { trip: state.trips, fault },
        (Effect::Decide(call), Met::Decided(ruling)) => return Ok(decided(plan, state, call, ruling)),
        (Effect::RunTool(call), Met::Asked { n, grant, arguments }) => {
            return grants::asked(plan, state, call, n, grant, arguments);
        }
        (Effect::DecideGrant(call, n), Met::Decided(ruling)) => {
            return Ok(grants::decided(plan, state, call, n, ruling));
        }
        (Effect::RunGrant(call, n), Met::Answered(answer)) => grants::answered(plan, state, call, n, answer, at),
        (Effect::RunTool(call), Met::Answered(answer)) => answered(plan, state, call, answer, at, failures)?,
        (Effect::Detect(backstop), Met::Detected(answer)) => EventKind::Detected {
            backstop,
            wanted: answer == Ok(true),
            error: answer.err(),
            duration_ms: watch_ms(state, at),
        },
        (Effect::RunBackstop(backstop), Met::Ran(answer)) => {
            note_blank_prompt(plan, backstop, &answer, failures);
            ran(backstop, answer, watch_ms(state, at))
        }
        (Effect::Deliver, Met::Delivered { path }) => EventKind::Delivered { path },
        (Effect::Perform(call), Met::Performed(attempt)) => EventKind::Performed { call, attempt },
        (effect, _) => return Err(out(format!("{want} wants {effect:?}, and was given something else"))),
    }])
}

fn offer(plan: &Plan, state: &State, added: Vec<crate::tool::ToolSpec>) -> Result<EventKind, FeedError> {
    let list = state.tools.with(&plan.tools, &added)?;
    let hash = list.as_ref().unwrap_or(&state.tools).hash().to_owned();
    Ok(EventKind::Offered { trip: state.trips, hash, added })
}

fn replied(plan: &Plan, state: &State, mut reply: Reply, failures: &mut Failures) -> EventKind {
    if state.offers_tools(plan) {
        leaked::recover(&mut reply, &state.tools);
    }
    let cut = reply.finish == crate::reply::Finish::Length;
    let calls = if cut { Vec::new() } else { resolve::resolve(plan, state, &reply, failures) };
    EventKind::Replied { trip: state.trips, reply, calls }
}

fn decided(plan: &Plan, state: &State, call: CallId, ruling: Ruling) -> Vec<EventKind> {
    let blank = |reason: &str| reason.trim().is_empty();
    let ruling = match ruling {
        Ok(Decision::Deny { reason }) if blank(&reason) => Err("a denial needs a reason".to_owned()),
        Ok(Decision::Run { arguments: Some(arguments), .. }) if json::are_deep(&arguments) => {
            json::discard(Value::Object(arguments));
            Err(words::too_deep("the replaced arguments are"))
        }
        Ok(decision) => Ok(decision),
        Err(why) => Err(why.0),
    };
    let mut events = vec![EventKind::Decided { call: call.clone(), ruling: ruling.clone() }];
    if let Ok(Decision::Run { arguments: Some(arguments), .. }) = ruling {
        let tool = state.call(&call).and_then(|it| it.tool.clone());
        if let Some(Err(issues)) = tool.map(|tool| tool.check(&arguments)) {
            let end = CallEnd {
                status: CallStatus::InvalidArguments,
                result: json::cut(&words::hook_edit_broke_schema(&issues), plan.spec.limits.error_bytes_max).into(),
                is_error: true,
                refusal: None,
                by_hook_edit: true,
            };
            events.push(EventKind::Answered { call, end, duration_ms: 0 });
        }
    }
    events
}

fn answered(
    plan: &Plan,
    state: &State,
    call: CallId,
    answer: Answer,
    at: Timestamp,
    failures: &mut Failures,
) -> Result<EventKind, FeedError> {
    let found = state.call(&call).ok_or_else(|| out(format!("no call {call}")))?;
    let end = match grants::cut_short(found) {
        Some(end) => end,
        None => classify::end_of(plan, found, answer, failures),
    };
    Ok(EventKind::Answered { duration_ms: at.since_ms(found.since), call, end })
}

fn watch_ms(state: &State, at: Timestamp) -> u64 {
    match &state.phase {
        Phase::Before(watch) => at.since_ms(watch.since),
        Phase::Gate(gate) => at.since_ms(gate.watch.since),
        Phase::New | Phase::Ready | Phase::Batch(_) | Phase::Final(..) | Phase::Ended => 0,
    }
}

/// A prompt that is none is left out, and the log says so: it is not the same as no prompt.
fn note_blank_prompt(plan: &Plan, backstop: usize, answer: &Result<Ran, String>, failures: &mut Failures) {
    let blank = |ran: &Ran| ran.prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty());
    let spec = plan.spec.contract.backstops.get(backstop);
    if let (Ok(ran), Some(spec)) = (answer, spec)
        && blank(ran)
    {
        failures
            .push((format!("backstop {}", spec.name), "its prompt is blank or no text, and is not sent".to_owned()));
    }
}

fn ran(backstop: usize, answer: Result<Ran, String>, duration_ms: u64) -> EventKind {
    let (ran, error) = match answer {
        Ok(Ran { state: Some(state), .. }) if json::is_deeper(&state, json::DEPTH_MAX) => {
            json::discard(state);
            (Ran::default(), Some(words::too_deep("its state is")))
        }
        Ok(ran) => (ran, None),
        Err(why) => (Ran::default(), Some(why)),
    };
    EventKind::BackstopRan { backstop, prompt: ran.prompt, state: ran.state, error, duration_ms }
}

fn answer_holds(
    run: &Run,
    given: &[HoldAnswer],
    missing_tools: &[String],
    now: String,
    at: Timestamp,
    failures: &mut Failures,
) -> Admitted {
    let fresh = answers::check(run, given, missing_tools, at)?;
    let mut events = Vec::new();
    for HoldAnswer { binding, answer } in fresh {
        let call = binding.call_id;
        events.push(EventKind::HoldAnswered { call: call.clone(), answer: answer.clone(), now: now.clone() });
        let handed_in = match answer {
            HoldReply::Result { value } => Answer::Ok(value),
            HoldReply::Error { text } => Answer::Error(text),
            HoldReply::Approve { .. } | HoldReply::Deny { .. } | HoldReply::OutcomeUnknown => continue,
        };
        if let Some(found) = run.state().call(&call) {
            let end = classify::end_of(run.plan(), found, handed_in, failures);
            events.push(EventKind::Answered { call, end, duration_ms: 0 });
        }
    }
    Ok(events)
}

fn resume(state: &State, trips_max: Option<u32>, now: String) -> Admitted {
    let Some(ended) = state.ended.as_ref().filter(|it| it.outcome.can_go_on() && !state.settled) else {
        return Err(out(match (&state.ended, state.settled) {
            (Some(_), true) => "a new turn has begun since; the run can no longer go on".to_owned(),
            (Some(ended), false) => format!("a run that ended {} cannot go on", ended.outcome.as_str()),
            (None, _) => "the run has not ended".to_owned(),
        }));
    };
    if trips_max.is_some_and(|max| max <= state.trips) {
        return Err(FeedError::TripsMax { used: state.trips });
    }
    let trips_max = trips_max.unwrap_or(0).max(state.trips_max);
    if ended.outcome == Outcome::MaxTrips && trips_max <= state.trips {
        return Err(FeedError::TripsMax { used: state.trips });
    }
    Ok(vec![EventKind::Resumed { trips_max: trips_max.max(state.trips + 1), now }])
}

fn supersede(run: &Run) -> Admitted {
    let state = run.state();
    if let Some(ended) = &state.ended {
        let fresh = ended.outcome.can_go_on() && !state.settled;
        return Ok(if fresh { vec![EventKind::Settled] } else { Vec::new() });
    }
    if state.stop.is_some() {
        return Ok(Vec::new());
    }
    if !state.parked() {
        return Err(out("the run is still going on"));
    }
    if run.plan().spec.on_message_while_parked == OnMessageWhileParked::Refuse {
        let holds = run.holds().into_iter().filter(|hold| hold.kind == HoldKind::Call);
        return Err(FeedError::Waiting { open: holds.map(|hold| hold.id).collect() });
    }
    Ok(vec![stopped(Outcome::Superseded, "a new message came while calls were waiting")])
}

fn tick(state: &State, at: Timestamp) -> Vec<EventKind> {
    let due = |until: Option<Timestamp>| until.is_some_and(|until| until <= at);
    let expired = state
        .batch()
        .is_some_and(|batch| batch.calls.iter().any(|call| call.stage == Stage::Held && due(call.expires_at)));
    if expired && state.stop.is_none() && state.ended.is_none() {
        return vec![stopped(Outcome::Expired, "nobody answered the hold in time")];
    }
    Vec::new()
}

/// Wraps what was admitted with its time.
pub(crate) fn event(at: Timestamp, what: EventKind) -> Event {
    Event { at, what }
}
