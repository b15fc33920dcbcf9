//! A run goes on: answered, given more trips, or taken up after a crash (`spec/contract.md`, 7.5).

use std::sync::Arc;
use std::time::Duration;

use gesta_run::{
    AnswerError, CallId, Effect, Event, FeedError, Functions, HoldAnswer, HoldKind, HoldReply, Input, InputKind, Plan,
    PlanSpec, Run, RunId,
};
use gesta_store::{Lease, RunHead, StoreError};
use gesta_telemetry::{Recorder, Traces};
use serde_json::Value;

use crate::agent::{Parts, Resume, Resumed};
use crate::clock;
use crate::driver::Driver;
use crate::error::AgentError;
use crate::history::History;
use crate::journal::Journal;

/// How often a run that another answer is being carried out on is asked for again, and how long it is waited for.
const CLAIM_EVERY: Duration = Duration::from_millis(20);
const CLAIM_TRIES_MAX: u32 = 1_500;

pub(crate) async fn resume(parts: &Arc<Parts>, id: &RunId, resume: Resume) -> Result<Resumed, AgentError> {
    let lease = claim(parts, id).await?;
    let (run, head, events) = load_leased(parts, id, &lease).await?;
    let working = match crate::turn::working(parts, id, head.conversation.as_ref(), true).await {
        Ok(working) => working,
        Err(why) => {
            parts.store.release(&lease).await?;
            return Err(why);
        }
    };
    let driver = taken_up(parts, (run, events), &head, lease, &resume).await?;
    let mut driver = recovered(driver.with_document(working));
    let already_answered = already_answered(driver.run(), &resume.answers);
    if let Err(why) = go_on(parts, &mut driver, &resume) {
        let expired = matches!(&why, FeedError::Answers(AnswerError::Expired { .. }));
        if expired {
            driver.tick();
            driver.drive().await?;
        } else {
            driver.abandon().await;
        }
        return Err(refused(id, why));
    }
    Ok(Resumed { result: driver.drive().await.map(Arc::unwrap_or_clone)?, already_answered })
}

/// Closes a parked run, or one that could have gone on, because a new turn begins.
pub(crate) async fn supersede(parts: &Arc<Parts>, id: &RunId, traces: Option<Traces>) -> Result<(), AgentError> {
    let lease = claim(parts, id).await?;
    let (run, head, events) = load_leased(parts, id, &lease).await?;
    // What the turn made of the document is dropped, so that it need not be readable.
    let resume = Resume { traces, ..Resume::default() };
    let mut driver = recovered(taken_up(parts, (run, events), &head, lease, &resume).await?);
    if let Err(why) = driver.feed(InputKind::Superseded) {
        driver.abandon().await;
        return Err(AgentError::Input(why));
    }
    driver.drive().await.map(drop)
}

/// Ends a run that was left when its process died, under another configuration than the present one: its tools and its
/// model are not here, and what goes by their names is something else. What had begun has an unknown outcome.
pub(crate) async fn close_left(parts: &Arc<Parts>, id: &RunId, resume: Resume) -> Result<(), AgentError> {
    let lease = claim(parts, id).await?;
    let (run, head, events) = load_leased(parts, id, &lease).await?;
    let mut driver = recovered(taken_up(parts, (run, events), &head, lease, &resume).await?);
    // A call that only reads would be made again: not with another's tools.
    if let Err(why) = driver.feed(InputKind::Cancelled) {
        driver.abandon().await;
        return Err(AgentError::Input(why));
    }
    driver.drive().await.map(drop)
}

async fn claim(parts: &Arc<Parts>, id: &RunId) -> Result<Lease, AgentError> {
    let mut tries = 0;
    loop {
        match parts.store.claim(id).await {
            Err(StoreError::Leased { .. }) if tries < CLAIM_TRIES_MAX => tries += 1,
            Ok(lease) => return Ok(lease),
            Err(why) => return Err(why.into()),
        }
        tokio::time::sleep(CLAIM_EVERY).await;
    }
}

/// As [`load`]; a run that cannot be read is given back.
async fn load_leased(parts: &Arc<Parts>, id: &RunId, lease: &Lease) -> Result<Loaded, AgentError> {
    let loaded = load(parts, id).await;
    if loaded.is_err() {
        parts.store.release(lease).await?;
    }
    loaded
}

/// A run, its head and its log.
type Loaded = (Run, RunHead, Vec<Event>);

/// Reads a run from the store and replays it under the plan it was begun with.
pub(crate) async fn load(parts: &Arc<Parts>, id: &RunId) -> Result<Loaded, AgentError> {
    let stored = parts.store.load(id).await?;
    let plan = pinned_plan(parts, id, &stored.head.config).await?;
    Ok((Run::replay(plan, &stored.events), stored.head, stored.events))
}

pub(crate) async fn pinned_plan(parts: &Arc<Parts>, id: &RunId, config: &str) -> Result<Arc<Plan>, AgentError> {
    if config == parts.plan.hash() {
        return Ok(parts.plan.clone());
    }
    let changed = || AgentError::ConfigChanged { run: id.clone(), config: config.to_owned() };
    let stored = parts.store.config(config).await?.ok_or_else(changed)?;
    let snapshot: Value = gesta_run::json::read_stored(stored.as_bytes()).map_err(|_| changed())?;
    let spec = snapshot.get("plan").cloned().and_then(|plan| serde_json::from_value::<PlanSpec>(plan).ok());
    if let Some(plan) = spec.and_then(|spec| Plan::new(spec, Functions::clone(&parts.plan.functions)).ok()) {
        return Ok(plan);
    }
    let same = snapshot.get("signature").and_then(Value::as_str) == Some(&parts.plan.signature());
    if same { Ok(parts.plan.clone()) } else { Err(changed()) }
}

async fn taken_up(
    parts: &Arc<Parts>,
    (run, events): (Run, Vec<Event>),
    head: &RunHead,
    lease: Lease,
    resume: &Resume,
) -> Result<Box<Driver>, AgentError> {
    let history = match &head.conversation {
        Some(conversation) => {
            History::new(parts.store.history(conversation, parts.history.turns_max).await?, parts.history)
        }
        None => History::default(),
    };
    let mut journal = Journal::taken_up(parts.store.clone(), lease, &run, head.events);
    if parts.documents.is_some() {
        journal.has_document(0);
    }
    let (cancel, listener) = (resume.cancel.clone(), resume.listener.clone());
    let recorder = resume
        .traces
        .clone()
        .map(|traces| Recorder::new(traces, run.plan().clone(), resume.trace).after(events, is_left(&run)));
    Ok(Driver::new(parts.clone(), run, journal, history, cancel, listener, true).with_recorder(recorder))
}

/// Whoever worked on it is gone, where it was left: what had begun and is not answered has an unknown outcome.
fn recovered(mut driver: Box<Driver>) -> Box<Driver> {
    if is_left(driver.run()) {
        let _ = driver.feed(InputKind::Recovered);
    }
    driver
}

/// Whether it wants something that nobody outside has to say.
fn is_left(run: &Run) -> bool {
    run.wants().iter().any(|want| !matches!(want.effect, Effect::Hold(_)))
}

fn go_on(parts: &Arc<Parts>, driver: &mut Driver, resume: &Resume) -> Result<(), FeedError> {
    let at = parts.clock.now();
    let now = clock::notice(at, &parts.zone, &parts.plan.spec.timezone);
    if !resume.answers.is_empty() {
        let missing_tools = missing_tools(parts, driver.run());
        let answers = forced(resume, &missing_tools);
        let kind = InputKind::Answers { answers, missing_tools, now };
        return driver.feed_at(Input { at, kind });
    }
    if driver.run().can_go_on() || resume.trips_max.is_some() {
        let kind = InputKind::Resumed { trips_max: resume.trips_max, now };
        return driver.feed_at(Input { at, kind });
    }
    Ok(())
}

/// Held tools that this process has no body for.
fn missing_tools(parts: &Parts, run: &Run) -> Vec<String> {
    let holds = run.holds().into_iter().filter(|hold| hold.kind == HoldKind::Call);
    let in_document = |call: &CallId| {
        let tool = run.call(call).and_then(|call| call.tool.as_ref());
        parts.documents.is_some() && tool.is_some_and(|tool| tool.spec.document)
    };
    let gone = holds.filter(|hold| !parts.tools.contains_key(&hold.name) && !in_document(&hold.id));
    gone.map(|hold| hold.name).collect()
}

/// With `force`, approving a call whose tool is gone tells the model so.
fn forced(resume: &Resume, missing: &[String]) -> Vec<HoldAnswer> {
    let gone = |answer: &HoldAnswer| {
        resume.force && matches!(answer.answer, HoldReply::Approve { .. }) && missing.contains(&answer.binding.tool)
    };
    let with = |answer: &HoldAnswer| {
        let mut answer = answer.clone();
        if gone(&answer) {
            answer.answer = HoldReply::Error { text: "this tool is not available any more".to_owned() };
        }
        answer
    };
    resume.answers.iter().map(with).collect()
}

fn already_answered(run: &Run, answers: &[HoldAnswer]) -> Vec<gesta_run::CallId> {
    let given = |answer: &&HoldAnswer| run.hold_answers(&answer.binding.call_id).contains(&answer.answer);
    answers.iter().filter(given).map(|answer| answer.binding.call_id.clone()).collect()
}

fn refused(id: &RunId, why: FeedError) -> AgentError {
    match why {
        FeedError::Answers(why) => {
            if matches!(why, AnswerError::Binding { .. }) {
                tracing::warn!(run = %id, security = true, "an answer to a hold was bound to something else");
            }
            AgentError::Answers(why)
        }
        FeedError::OutOfTurn(reason) => AgentError::CannotGoOn { run: id.clone(), reason },
        other => AgentError::CannotGoOn { run: id.clone(), reason: other.to_string() },
    }
}
