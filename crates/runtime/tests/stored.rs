//! Runs in a store: parked and answered elsewhere, left in the middle and taken up, conversations with a history.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gesta_model::{Model, ScriptedModel};
use gesta_run::{
    Answer, CallStatus, Decision, HoldAnswer, HoldReply, HoldState, Message, Outcome, RunId, RunResult, Status,
    ToolEffect, ToolSpec,
};
use gesta_runtime::{Agent, AgentError, AnswerFuture, Ask, Progress, Resume, Scope, Tool};
use gesta_scene::Script;
use gesta_store::{HoldFilter, Sqlite, Store, StoreOptions};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A tool that counts its runs, tells when it has begun, and does not end before it is let.
#[derive(Clone, Default)]
struct Gate {
    ran: Arc<AtomicU32>,
    begun: Arc<Notify>,
    open: Arc<Notify>,
    waits: bool,
}

impl Gate {
    fn waiting() -> Self {
        Self { waits: true, ..Self::default() }
    }

    fn ran(&self) -> u32 {
        self.ran.load(Ordering::SeqCst)
    }

    fn tool(&self, effect: ToolEffect) -> Tool {
        let spec = ToolSpec { effect, ..ToolSpec::new("move_visit", "Moves the visit.", json!({"type": "object"})) };
        let gate = self.clone();
        Tool::with_body(spec, move |arguments: gesta_run::json::Object, _: Scope| -> AnswerFuture {
            let gate = gate.clone();
            Box::pin(async move {
                gate.ran.fetch_add(1, Ordering::SeqCst);
                gate.begun.notify_one();
                if gate.waits {
                    gate.open.notified().await;
                }
                Answer::Ok(arguments.into())
            })
        })
    }
}

fn store(dir: &Path) -> Arc<dyn Store> {
    Arc::new(Sqlite::open_blocking(dir, StoreOptions::default()).unwrap())
}

fn model(text: &str) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::new(Arc::new(Script::parse(text).unwrap())))
}

const ACTS: &str = "model: calls c1 move_visit {\"day\":\"fri\"}\nmodel: Said and done.\n";

fn agent(dir: &Path, gate: &Gate, effect: ToolEffect, defers: bool) -> Agent {
    let builder = Agent::builder().name("mover").model(model(ACTS), "s").tool(gate.tool(effect)).store(store(dir));
    let decide = move |_| async move { if defers { Decision::defer() } else { Decision::run() } };
    builder.on_tool_call(decide).build().unwrap()
}

fn ask(run: &str) -> Ask {
    Ask { run: Some(run.into()), ..Ask::from("Move my visit") }
}

fn approve(result: &RunResult) -> Resume {
    let binding = result.deferred[0].binding.clone();
    Resume {
        answers: vec![HoldAnswer { binding, answer: HoldReply::Approve { arguments: None } }],
        ..Resume::default()
    }
}

/// Runs a turn until its tool has begun, then drops everything, as a crash would.
async fn leave_in_the_middle(agent: &Agent, gate: &Gate, turn: impl Future<Output = bool>) {
    tokio::select! {
        _ = turn => panic!("the tool was to keep the turn"),
        () = gate.begun.notified() => {}
    }
    let _ = agent;
}

#[tokio::test]
async fn a_parked_run_is_answered_through_another_store_with_the_same_messages_and_counts() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let parked = agent(dir.path(), &gate, ToolEffect::Once, true).run(ask("r1")).await.unwrap();
    let other = agent(dir.path(), &gate, ToolEffect::Once, true);
    let seen = other.look(&"r1".into()).await.unwrap();
    assert_eq!(seen, parked);
    let holds = other.store().holds(&HoldFilter::default()).await.unwrap();
    assert_eq!(holds.len(), 1);
    let done = other.resume(&"r1".into(), approve(&parked)).await.unwrap().result;
    assert_eq!((done.outcome, done.trips, gate.ran()), (Some(Outcome::Completed), 2, 1));
    assert!(other.store().holds(&HoldFilter::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_call_with_effects_that_was_left_in_the_middle_is_of_unknown_outcome_and_not_repeated() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let first = agent(dir.path(), &gate, ToolEffect::Once, false);
    leave_in_the_middle(&first, &gate, async { first.run(ask("r1")).await.is_ok() }).await;
    let other = agent(dir.path(), &gate, ToolEffect::Once, false);
    let done = other.resume(&"r1".into(), Resume::default()).await.unwrap().result;
    assert_eq!((done.outcome, gate.ran()), (Some(Outcome::Completed), 1));
    assert_eq!(done.tool_calls[0].status, CallStatus::OutcomeUnknown);
    every_call_has_its_result(&done.transcript);
}

#[tokio::test]
async fn a_call_that_only_reads_is_run_again() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let first = agent(dir.path(), &gate, ToolEffect::ReadsOnly, false);
    leave_in_the_middle(&first, &gate, async { first.run(ask("r1")).await.is_ok() }).await;
    gate.open.notify_one();
    let other = agent(dir.path(), &gate, ToolEffect::ReadsOnly, false);
    let done = other.resume(&"r1".into(), Resume::default()).await.unwrap().result;
    assert_eq!((done.tool_calls[0].status, gate.ran()), (CallStatus::Completed, 2));
}

#[tokio::test]
async fn an_approved_call_that_was_left_in_the_middle_waits_for_someone_who_knows() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let first = agent(dir.path(), &gate, ToolEffect::Once, true);
    let parked = first.run(ask("r1")).await.unwrap();
    let id: RunId = "r1".into();
    leave_in_the_middle(&first, &gate, async { first.resume(&id, approve(&parked)).await.is_ok() }).await;
    let other = agent(dir.path(), &gate, ToolEffect::Once, true);
    let waits = other.resume(&id, Resume::default()).await.unwrap().result;
    assert_eq!((waits.status, waits.deferred[0].state), (Status::Parked, HoldState::Undecided));
    let again = other.resume(&id, approve(&parked)).await.unwrap();
    assert_eq!((again.result.status, gate.ran()), (Status::Parked, 1), "an approval is no answer to what happened");
    let binding = waits.deferred[0].binding.clone();
    let result = HoldReply::Result { value: json!({"moved": true}) };
    let told = Resume { answers: vec![HoldAnswer { binding, answer: result }], ..Resume::default() };
    let done = other.resume(&id, told).await.unwrap().result;
    assert_eq!((done.outcome, done.tool_calls[0].status), (Some(Outcome::Completed), CallStatus::Completed));
    assert_eq!(gate.ran(), 1);
}

#[tokio::test]
async fn a_conversation_has_one_run_at_a_time_and_remembers_the_last() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let agent = agent(dir.path(), &gate, ToolEffect::Once, false);
    let ask = |run: &str| Ask { conversation: Some("c".into()), ..ask(run) };
    let going = tokio::spawn({
        let (agent, ask) = (agent.clone(), ask("r1"));
        async move { agent.run(ask).await }
    });
    gate.begun.notified().await;
    let busy = agent.run(ask("r2")).await;
    assert!(matches!(&busy, Err(AgentError::Busy { run }) if run.as_str() == "r1"), "{busy:?}");
    let queued = tokio::spawn({
        let (agent, ask) = (agent.clone(), Ask { queue: true, ..ask("r4") });
        async move { agent.run(ask).await }
    });
    tokio::task::yield_now().await;
    gate.open.notify_one();
    let first = going.await.unwrap().unwrap();
    assert_eq!(first.outcome, Some(Outcome::Completed));
    let history = agent.store().history(&"c".into(), 10).await.unwrap();
    assert_eq!(history.len(), 1);
    every_call_has_its_result(&history[0].messages);
    gate.open.notify_one();
    assert_eq!(queued.await.unwrap().unwrap().outcome, Some(Outcome::Completed));
    assert_eq!(agent.store().history(&"c".into(), 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_new_message_takes_up_what_a_crash_left_before_its_own_turn() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let ask = |run: &str| Ask { conversation: Some("c".into()), ..ask(run) };
    let first = agent(dir.path(), &gate, ToolEffect::Once, false);
    leave_in_the_middle(&first, &gate, async { first.run(ask("r1")).await.is_ok() }).await;
    // The lease is given back beside the dropped turn.
    while first.store().head(&"r1".into()).await.unwrap().held_by.is_some() {
        tokio::task::yield_now().await;
    }
    gate.open.notify_one();
    let other = agent(dir.path(), &gate, ToolEffect::Once, false);
    other.run(ask("r2")).await.unwrap();
    let history = other.store().history(&"c".into(), 10).await.unwrap();
    assert_eq!((history.len(), gate.ran()), (2, 2));
    history.iter().for_each(|turn| every_call_has_its_result(&turn.messages));
}

#[tokio::test]
async fn a_failed_model_call_is_repeated_and_the_tool_is_not() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let build = |text: &str| {
        let builder = Agent::builder().name("mover").model(model(text), "s").tool(gate.tool(ToolEffect::Once));
        builder.store(store(dir.path())).build().unwrap()
    };
    let fails = build("model: calls c1 move_visit {\"day\":\"fri\"}\nmodel: fails overloaded\n");
    let failed = fails.run(ask("r1")).await.unwrap();
    assert_eq!((failed.outcome, gate.ran()), (Some(Outcome::ModelFailed), 1));
    let done = build(ACTS).resume(&"r1".into(), Resume::default()).await.unwrap().result;
    assert_eq!((done.outcome, done.text.as_str(), gate.ran()), (Some(Outcome::Completed), "Said and done.", 1));
}

#[tokio::test]
async fn a_signed_state_goes_on_elsewhere_and_a_changed_one_is_refused() {
    let gate = Gate::default();
    let key = || gesta_store::Secrets::from_list("a-key-that-is-long-enough-to-be-one").unwrap();
    let build = || {
        let builder = Agent::builder().model(model(ACTS), "s").tool(gate.tool(ToolEffect::Once)).secrets(key());
        builder.on_tool_call(|_| async { Decision::defer() }).build().unwrap()
    };
    let parked = build().run(ask("r1")).await;
    let first = build();
    let parked_there = first.run(ask("r1")).await.unwrap();
    assert_eq!(parked.unwrap().deferred[0].binding, parked_there.deferred[0].binding);
    let saved = first.save(&"r1".into()).await.unwrap();
    let other = build();
    for forged in [saved.replace("fri", "sat"), saved[1..].to_owned(), "{}".to_owned(), String::new()] {
        let refused = other.take_saved(&forged).await;
        assert!(matches!(refused, Err(AgentError::State(_))), "{refused:?}");
    }
    let run = other.take_saved(&saved).await.unwrap();
    let done = other.resume(&run, approve(&parked_there)).await.unwrap().result;
    assert_eq!((done.outcome, gate.ran()), (Some(Outcome::Completed), 1));
    let again = other.take_saved(&saved).await.unwrap();
    let told = other.resume(&again, approve(&parked_there)).await.unwrap();
    assert_eq!((told.already_answered.len(), gate.ran()), (1, 1), "a state is good for one answer here");
}

#[tokio::test]
async fn a_store_without_room_is_an_outcome_and_nothing_with_effects_has_run() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let options = StoreOptions { bytes_max: Some(256 * 1024), ..StoreOptions::default() };
    let small: Arc<dyn Store> = Arc::new(Sqlite::open_blocking(dir.path(), options).unwrap());
    let builder = Agent::builder().model(model(ACTS), "s").tool(gate.tool(ToolEffect::Once)).store(small);
    let agent = builder.build().unwrap();
    let result = agent.run("x".repeat(900_000)).await;
    let refused = match &result {
        Ok(result) => result.outcome == Some(Outcome::StoreFailed),
        Err(why) => matches!(why, AgentError::Store(_)),
    };
    assert!(refused, "{result:?}");
    assert_eq!(gate.ran(), 0);
    assert_eq!(agent.run("Move it").await.unwrap().outcome, Some(Outcome::Completed), "it works again");
}

/// Digs as deep as it is told, and is parked beside another call.
const DIGS: &str = "model: calls c1 dig {}\nand: calls c2 move_visit {}\nmodel: Dug.\n";

#[tokio::test]
async fn a_result_of_any_depth_leaves_a_run_that_is_loaded_again_from_the_store_and_from_a_state() {
    let key = || gesta_store::Secrets::from_list("a-key-that-is-long-enough-to-be-one").unwrap();
    for (levels, status) in [(127, CallStatus::Completed), (128, CallStatus::Failed), (5_000, CallStatus::Failed)] {
        let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
        let build = |dir: &Path| {
            let spec = ToolSpec::new("dig", "Digs.", json!({"type": "object"}));
            let dig = Tool::with_body(spec, move |_: gesta_run::json::Object, _: Scope| -> AnswerFuture {
                let deep = (0..levels).fold(json!(1), |inner, _| Value::from(vec![inner]));
                Box::pin(std::future::ready(Answer::Ok(deep)))
            });
            let tools = Agent::builder().model(model(DIGS), "s").tool(dig).tool(gate.tool(ToolEffect::Once));
            let decide = |call: gesta_runtime::CallAsked| async move {
                if call.name == "dig" { Decision::run() } else { Decision::defer() }
            };
            tools.on_tool_call(decide).store(store(dir)).secrets(key()).build().unwrap()
        };
        let parked = build(dir.path()).run(ask("r1")).await.unwrap();
        assert_eq!((parked.status, parked.tool_calls[0].status), (Status::Parked, status), "{levels}");
        let again = build(dir.path());
        let saved = again.save(&"r1".into()).await.unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let other = build(elsewhere.path());
        let taken = other.take_saved(&saved).await.unwrap();
        let done = other.resume(&taken, approve(&parked)).await.unwrap().result;
        assert_eq!((done.outcome, done.tool_calls[0].status), (Some(Outcome::Completed), status), "{levels}");
        let done = again.resume(&"r1".into(), approve(&parked)).await.unwrap().result;
        assert_eq!((done.outcome, done.text.as_str()), (Some(Outcome::Completed), "Dug."), "{levels}");
    }
}

fn every_call_has_its_result(messages: &[Message]) {
    for (at, message) in messages.iter().enumerate() {
        let Message::Assistant { blocks } = message else { continue };
        let calls = blocks.iter().filter(|block| matches!(block.kind, gesta_run::BlockKind::Call(_))).count();
        let results = match messages.get(at + 1) {
            Some(Message::Tools { results }) => results.len(),
            _ => 0,
        };
        assert_eq!(calls, results);
    }
}

#[tokio::test]
async fn a_run_that_was_left_is_not_gone_on_with_by_other_tools_of_the_same_names() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::waiting());
    let first = agent(dir.path(), &gate, ToolEffect::ReadsOnly, false);
    let talk = |run: &str| Ask { conversation: Some("k".into()), ..ask(run) };
    leave_in_the_middle(&first, &gate, async { first.run(talk("r1")).await.is_ok() }).await;
    drop(first);

    let other = Gate::default();
    let (told, listener) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let next = agent(dir.path(), &other, ToolEffect::Once, false);
    let ask = Ask { listener: Some(Arc::new(move |progress| drop(told.lock().unwrap().send(progress)))), ..talk("r2") };
    let result = next.run(ask).await.unwrap();
    assert_eq!((result.outcome, other.ran()), (Some(Outcome::Completed), 1), "its own call alone");
    let left = next.look(&"r1".into()).await.unwrap();
    assert_eq!((left.outcome, left.tool_calls[0].status), (Some(Outcome::Cancelled), CallStatus::OutcomeUnknown));
    every_call_has_its_result(&left.transcript);
    let first_told = listener.recv().unwrap();
    assert!(
        matches!(&first_told, Progress::TakenUp { run, events } if run.as_str() == "r1" && events.len() > 2),
        "{first_told:?}"
    );
}

#[tokio::test]
async fn a_conversation_is_one_agents() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let talk = |run: &str| Ask { conversation: Some("k".into()), ..ask(run) };
    agent(dir.path(), &gate, ToolEffect::Once, true).run(talk("r1")).await.unwrap();
    let other =
        Agent::builder().name("other").model(model("model: Hello"), "s").store(store(dir.path())).build().unwrap();
    let refused = other.run(talk("r2")).await.unwrap_err();
    assert!(matches!(&refused, AgentError::OfAnother { agent, .. } if agent == "mover"), "{refused}");
    assert_eq!(other.store().holds(&HoldFilter::default()).await.unwrap().len(), 1, "what waits still waits");
}
