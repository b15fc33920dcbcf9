//! Agents in Rust: what the builder, the driver and the resumption promise, with a scripted model.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use gesta_model::{Model, ScriptedModel};
use gesta_run::{
    ActWhenAsked, CallStatus, Decision, HoldAnswer, HoldReply, Limits, Outcome, Phase, Ran, Require, RunResult, Status,
};
use gesta_runtime::{Agent, AgentBuilder, AgentError, Ask, Cancel, Progress, Resume, Scope, Tool};
use gesta_scene::Script;
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Move {
    day: String,
}

fn script(text: &str) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::new(Arc::new(Script::parse(text).unwrap())))
}

/// An agent with one tool that counts how often it ran.
fn mover(text: &str) -> (AgentBuilder, Arc<AtomicU32>) {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = ran.clone();
    let tool = Tool::new("move_visit", "Moves the visit.", move |it: Move, _: Scope| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(json!({ "moved": it.day })) }
    });
    (Agent::builder().name("mover").model(script(text), "script").tool(tool), ran)
}

fn must_act() -> ActWhenAsked {
    ActWhenAsked {
        intents: vec![gesta_run::PatternSpec::Substring("move".to_owned())],
        required_tools: vec!["move_visit".to_owned()],
        require: Require::Any,
        hint: None,
        max_reprompts: 1,
    }
}

const OFFERS_THEN_ACTS: &str = "model: Shall I move it to Friday?
model: calls c1 move_visit {\"day\":\"fri\"}
model: Your visit is on Friday now.
";

#[tokio::test]
async fn an_agent_that_offers_is_prompted_once_and_acts() {
    let (builder, ran) = mover(OFFERS_THEN_ACTS);
    let agent = builder.act_when_asked(must_act()).build().unwrap();
    let result = agent.run("Move my visit to Friday").await.unwrap();
    assert_eq!(result.text, "Your visit is on Friday now.");
    assert_eq!(result.outcome, Some(Outcome::Completed));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(result.contract.interventions.len(), 1);
    assert!(result.contract.acted && result.contract.unmet.is_empty());
}

#[tokio::test]
async fn without_the_option_the_offer_stands() {
    let (builder, ran) = mover(OFFERS_THEN_ACTS);
    let result = builder.build().unwrap().run("Move my visit to Friday").await.unwrap();
    assert_eq!(result.text, "Shall I move it to Friday?");
    assert_eq!((result.trips, ran.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_stream_tells_the_pieces_in_order_and_the_result_last() {
    let (builder, _) = mover(OFFERS_THEN_ACTS);
    let agent = builder.act_when_asked(must_act()).build().unwrap();
    let told: Vec<Progress> = agent.stream("Move my visit to Friday").map(Result::unwrap).collect().await;
    let mut text = String::new();
    for progress in &told {
        if let Progress::Delta { delta: gesta_run::Delta::Text { text: more, .. }, .. } = progress {
            text.push_str(more);
        }
    }
    assert_eq!(text, "Shall I move it to Friday?Your visit is on Friday now.");
    assert!(matches!(told.last(), Some(Progress::Finished(result)) if result.trips == 3));
}

#[tokio::test]
async fn the_log_of_a_streamed_run_equals_that_of_a_plain_one() {
    let log = |plain: bool| async move {
        let (builder, _) = mover(OFFERS_THEN_ACTS);
        let clock = gesta_runtime::Clock::new(|| gesta_run::Timestamp(1_000));
        let builder = builder.act_when_asked(must_act()).clock(clock);
        let agent = if plain { builder.plain() } else { builder }.build().unwrap();
        let ask = Ask { run: Some("r1".into()), ..Ask::from("Move my visit to Friday") };
        let told: Vec<Progress> = agent.stream(ask).map(Result::unwrap).collect().await;
        let events = told.into_iter().filter_map(|it| match it {
            Progress::Happened(event) => Some(Arc::unwrap_or_clone(event)),
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    assert_eq!(log(true).await, log(false).await);
}

async fn deferred(text: &str) -> (Agent, RunResult, Arc<AtomicU32>) {
    let (builder, ran) = mover(text);
    let agent = builder.on_tool_call(|_| async { Decision::defer() }).build().unwrap();
    let result = agent.run("Move my visit to Friday").await.unwrap();
    (agent, result, ran)
}

fn answer(result: &RunResult, answer: HoldReply) -> Resume {
    let binding = result.deferred[0].binding.clone();
    Resume { answers: vec![HoldAnswer { binding, answer }], ..Resume::default() }
}

const ACTS: &str = "model: calls c1 move_visit {\"day\":\"fri\"}
model: Done as you wished.
";

#[tokio::test]
async fn a_deferred_call_parks_the_run_and_runs_once_when_it_is_approved() {
    let (agent, parked, ran) = deferred(ACTS).await;
    assert_eq!((parked.status, parked.outcome), (Status::Parked, Some(Outcome::StoppedByHook)));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let run = parked.report.run_id.clone();
    let arguments = json!({"day": "sat"}).as_object().cloned();
    let resume = answer(&parked, HoldReply::Approve { arguments });
    let done = agent.resume(&run, resume.clone()).await.unwrap();
    assert_eq!(done.result.outcome, Some(Outcome::Completed));
    assert_eq!(done.result.tool_calls[0].result, json!({"moved": "sat"}));
    let again = agent.resume(&run, resume).await.unwrap();
    assert_eq!(again.already_answered.len(), 1);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    let other = agent.resume(&run, answer(&parked, HoldReply::Deny { reason: "no".to_owned() })).await;
    assert!(matches!(other, Err(AgentError::Answers(gesta_run::AnswerError::Conflict { .. }))), "{other:?}");
}

#[tokio::test]
async fn twenty_equal_approvals_at_once_run_the_tool_once() {
    let (agent, parked, ran) = deferred(ACTS).await;
    let run = parked.report.run_id.clone();
    let resume = answer(&parked, HoldReply::Approve { arguments: None });
    let all = (0..20).map(|_| agent.resume(&run, resume.clone()));
    let results = futures_util::future::join_all(all).await;
    let again = results.iter().filter(|it| !it.as_ref().unwrap().already_answered.is_empty()).count();
    assert_eq!((ran.load(Ordering::SeqCst), again), (1, 19));
}

#[tokio::test]
async fn an_approval_bound_to_other_arguments_is_refused() {
    let (agent, parked, ran) = deferred(ACTS).await;
    let mut resume = answer(&parked, HoldReply::Approve { arguments: None });
    resume.answers[0].binding.fingerprint = "0".repeat(64);
    let refused = agent.resume(&parked.report.run_id, resume).await;
    assert!(matches!(refused, Err(AgentError::Answers(gesta_run::AnswerError::Binding { .. }))), "{refused:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_new_message_supersedes_a_parked_run_and_the_history_stays_whole() {
    let (builder, ran) = mover("model: calls c1 move_visit {\"day\":\"fri\"}\nmodel: Good.\n");
    let agent = builder
        .on_tool_call(|call| async move { if call.trip == 0 { Decision::defer() } else { Decision::run() } })
        .build()
        .unwrap();
    let ask = |text: &str| Ask { conversation: Some("c".into()), ..Ask::from(text) };
    let first = agent.run(ask("Move my visit")).await.unwrap();
    assert_eq!(first.status, Status::Parked);
    let second = agent.run(ask("Never mind")).await.unwrap();
    assert_eq!(second.status, Status::Parked);
    let closed = agent.look(&first.report.run_id).await.unwrap();
    assert_eq!(closed.outcome, Some(Outcome::Superseded));
    assert_eq!(closed.tool_calls[0].status, CallStatus::Superseded);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let refused = agent.resume(&first.report.run_id, answer(&first, HoldReply::Approve { arguments: None })).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn tools_that_panic_hang_or_flood_cost_one_call() {
    let text = "model: calls c1 panics {}
and: calls c2 hangs {}
and: calls c3 floods {}
model: I looked.
";
    let panics = Tool::new("panics", "", |_: Nothing, _: Scope| async { panic!("inside") as Result<(), String> });
    let hangs = Tool::new("hangs", "", |_: Nothing, _: Scope| std::future::pending::<Result<(), String>>())
        .time_limit(Duration::from_millis(20));
    let floods = Tool::new("floods", "", |_: Nothing, _: Scope| async { Ok::<_, String>("é".repeat(50_000_000)) });
    let agent = Agent::builder().model(script(text), "s").tool(panics).tool(hangs).tool(floods).build().unwrap();
    let result = agent.run("Look").await.unwrap();
    let statuses: Vec<CallStatus> = result.tool_calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Failed, CallStatus::TimedOut, CallStatus::Completed]);
    assert!(result.tool_calls[2].result.as_str().unwrap().len() < 300_000);
    assert_eq!(result.outcome, Some(Outcome::Completed));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_cancelled_turn_ends_without_a_model_call() {
    let (builder, _) = mover(ACTS);
    let cancel = Cancel::new();
    cancel.cancel();
    let ask = Ask { cancel, ..Ask::from("Move my visit") };
    let result = builder.build().unwrap().run(ask).await.unwrap();
    assert_eq!((result.outcome, result.trips), (Some(Outcome::Cancelled), 0));
}

#[tokio::test]
async fn a_hook_that_panics_stops_the_run_and_nothing_runs() {
    let (builder, ran) = mover(ACTS);
    let agent = builder.on_tool_call(|_| async { panic!("hook") as Decision }).build().unwrap();
    let result = agent.run("Move my visit").await.unwrap();
    assert_eq!((result.outcome, ran.load(Ordering::SeqCst)), (Some(Outcome::HookFailed), 0));
}

#[tokio::test]
async fn backstops_share_one_state_within_a_run_and_none_between_runs() {
    let (builder, _) = mover("model: Noted.\nmodel: Noted again.\n");
    let agent = builder
        .backstop(
            "writes",
            Phase::Before,
            |_| true,
            |turn| async move {
                assert_eq!(turn.state, json!({}));
                Ok(Ran { prompt: None, state: Some(json!({"x": 1})) })
            },
        )
        .backstop(
            "reads",
            Phase::After,
            |_| true,
            |turn| async move { Ok(Ran { prompt: Some(format!("state {}", turn.state)), state: None }) },
        )
        .build()
        .unwrap();
    for _ in 0..2 {
        let result = agent.run("My knee hurts").await.unwrap();
        let prompts: Vec<_> = result.contract.interventions.iter().filter_map(|it| it.prompt.as_deref()).collect();
        assert_eq!(prompts, ["state {\"x\":1}"]);
    }
}

#[tokio::test]
async fn a_run_that_met_its_limit_of_trips_goes_on_with_more() {
    let (builder, ran) = mover(ACTS);
    let agent = builder.limits(Limits { trips_max: 1, ..Limits::default() }).build().unwrap();
    let result = agent.run("Move my visit").await.unwrap();
    assert_eq!((result.outcome, ran.load(Ordering::SeqCst)), (Some(Outcome::MaxTrips), 1));
    let more = Resume { trips_max: Some(3), ..Resume::default() };
    let done = agent.resume(&result.report.run_id, more).await.unwrap().result;
    assert_eq!((done.outcome, done.text.as_str()), (Some(Outcome::Completed), "Done as you wished."));
}

#[tokio::test]
async fn an_author_hears_of_mistakes_before_anything_runs() {
    let (builder, _) = mover(ACTS);
    let twice = Tool::new("move_visit", "", |_: Nothing, _: Scope| async { Ok::<_, String>(()) });
    assert!(matches!(builder.tool(twice).build(), Err(AgentError::Plan(_))));
    let (builder, _) = mover(ACTS);
    let absent = ActWhenAsked { required_tools: vec!["absent".to_owned()], ..must_act() };
    assert!(builder.act_when_asked(absent).build().unwrap_err().to_string().contains("`absent` is not registered"));
    assert!(matches!(Agent::builder().build(), Err(AgentError::Incomplete(_))));
}
