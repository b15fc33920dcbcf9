//! What a scene cannot show of the rules: histories, hooks that change what they are given, two messages at once.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::{Arc, Mutex};

use gesta_model::{Answer as Answering, Lookup, Model, Request, ScriptedModel};
use gesta_run::json::Object;
use gesta_run::message::text_of;
use gesta_run::{
    ActWhenAsked, Answer, CallStatus, Decision, HoldAnswer, HoldReply, Message, OnMessageWhileParked, Outcome,
    PatternSpec, Require, RunResult, Status, ToolSpec,
};
use gesta_runtime::folder::Folder;
use gesta_runtime::{Agent, AgentBuilder, AgentError, AnswerFuture, Ask, FolderAgent, Resume, Scope, Tool};
use gesta_scene::Script;
use gesta_store::{Memory, Secrets, Store};
use serde_json::json;
use tokio::sync::Notify;

/// A scripted model that notes the users' texts of each request, those of the history too.
struct Listening {
    script: ScriptedModel,
    heard: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Model for Listening {
    fn ask(&self, request: &Request<'_>) -> Answering {
        let texts = request.all().filter_map(|message| match message {
            Message::User { parts, .. } => Some(text_of(parts)),
            _ => None,
        });
        self.heard.lock().unwrap().push(texts.collect());
        self.script.ask(request)
    }

    fn protocol(&self) -> &str {
        "script"
    }
}

fn script(text: &str) -> ScriptedModel {
    ScriptedModel::new(Arc::new(Script::parse(text).unwrap()))
}

/// An agent with a tool `swap` that returns its arguments.
fn swapper(text: &str) -> AgentBuilder {
    Agent::builder().name("swapper").model(Arc::new(script(text)), "s").tool(swap(None))
}

/// With a gate, its body tells that it has begun and waits until it is let.
fn swap(gate: Option<(Arc<Notify>, Arc<Notify>)>) -> Tool {
    let spec = ToolSpec::new("swap", "Swaps.", json!({"type": "object"}));
    Tool::with_body(spec, move |arguments: Object, _: Scope| -> AnswerFuture {
        let gate = gate.clone();
        Box::pin(async move {
            if let Some((begun, open)) = gate {
                begun.notify_one();
                open.notified().await;
            }
            Answer::Ok(arguments.into())
        })
    })
}

fn in_conversation(text: &str) -> Ask {
    Ask { conversation: Some("c".into()), ..Ask::from(text) }
}

#[tokio::test]
async fn an_earlier_turn_is_sent_to_the_model_and_no_intent_is_looked_for_in_it() {
    let heard = Arc::default();
    let model = Listening { script: script("model: Very well.\n"), heard: Arc::clone(&heard) };
    let act = ActWhenAsked {
        intents: vec![PatternSpec::Substring("swap".to_owned())],
        required_tools: vec!["swap".to_owned()],
        require: Require::Any,
        hint: None,
        max_reprompts: 1,
    };
    let builder = Agent::builder().model(Arc::new(model), "s").tool(swap(None)).act_when_asked(act);
    let agent = builder.build().unwrap();
    let first = agent.run(in_conversation("swap this")).await.unwrap();
    assert_eq!((first.contract.asked, first.contract.counts.act_when_asked.sent), (true, 1));
    assert_eq!((first.report.trips, first.report.usage), (first.trips, first.usage));
    let second = agent.run(in_conversation("thanks")).await.unwrap();
    assert_eq!((second.contract.asked, second.trips), (false, 1));
    let last: Vec<String> = heard.lock().unwrap().pop().unwrap();
    assert_eq!((last.first().unwrap().as_str(), last.last().unwrap().as_str()), ("swap this", "thanks"));
}

#[tokio::test]
async fn a_hook_that_changes_the_call_it_was_given_changes_nothing() {
    let text = "model: calls c1 swap {\"a\":1}\nmodel: Swapped.\n";
    let hook = |mut call: gesta_runtime::CallAsked| async move {
        call.arguments.insert("a".to_owned(), json!(2));
        Decision::run()
    };
    let result = swapper(text).on_tool_call(hook).build().unwrap().run("Swap it").await.unwrap();
    let call = &result.tool_calls[0];
    assert_eq!((call.name.as_str(), &call.arguments, &call.result), ("swap", &json!({"a": 1}), &json!({"a": 1})));
}

#[tokio::test]
async fn a_line_of_a_script_that_fails_is_used_up_like_any_other() {
    let text = "model: calls c1 swap {}\nmodel: fails overloaded\nmodel: fails timeout\nmodel: Swapped.\n";
    let agent = swapper(text).build().unwrap();
    let failed = agent.run("Swap it").await.unwrap();
    let run = failed.report.run_id;
    let again = agent.resume(&run, Resume::default()).await.unwrap().result;
    let done = agent.resume(&run, Resume::default()).await.unwrap().result;
    let outcomes = [failed.outcome, again.outcome, done.outcome].map(Option::unwrap);
    assert_eq!(outcomes, [Outcome::ModelFailed, Outcome::ModelFailed, Outcome::Completed]);
    assert_eq!((done.text.as_str(), done.tool_calls.len()), ("Swapped.", 1));
}

/// The agent of a folder, and what it makes of one message.
async fn of_folder(dir: &Path, option: &str) -> (String, serde_json::Value) {
    let toml = format!(
        "name = \"swapper\"\nmodel = \"script\"\n{option}\n[[tools]]\nname = \"swap\"\ndescription = \"Swaps.\"\n\
         parameters = {{ type = \"object\" }}\n[[tools.answers]]\nresult = {{ ok = false, reason = \"no id 9\" }}\n"
    );
    std::fs::write(dir.join("agent.toml"), toml).unwrap();
    std::fs::write(dir.join("model.script"), "model: calls c1 swap {}\nmodel: There is no 9.\n").unwrap();
    let folder = Folder::load(dir, &|_| None).unwrap();
    let env: Lookup = Arc::new(|_| None);
    let agent = FolderAgent::open(&folder, &env, None, &|| Secrets::from_list("")).unwrap().agent().clone();
    let ask = Ask { run: Some("r".into()), ..Ask::from("Swap it") };
    let mut result = serde_json::to_value(agent.run(ask).await.unwrap()).unwrap();
    for clock in ["started_at", "ended_at", "duration_ms"] {
        result["report"][clock].take();
    }
    let without_notices: Vec<_> =
        result["transcript"].as_array().unwrap().iter().filter(|it| it["role"] != "notice").cloned().collect();
    result["transcript"] = without_notices.into();
    (folder.plan.hash().to_owned(), result)
}

#[tokio::test]
async fn refusals_switched_off_are_the_same_as_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let left_out = of_folder(dir.path(), "").await;
    let off = of_folder(dir.path(), "on_tool_refusal = \"off\"").await;
    let on = of_folder(dir.path(), "on_tool_refusal = \"retry_once_with_hint\"").await;
    assert_eq!(left_out.1["tool_calls"][0]["status"], "refused");
    assert_eq!(off, left_out);
    assert_ne!(on, left_out);
}

/// A parked run of two calls, the first of which is approved and executes.
struct Approved {
    agent: Agent,
    parked: RunResult,
    begun: Arc<Notify>,
    open: Arc<Notify>,
}

impl Approved {
    async fn new(on_message_while_parked: OnMessageWhileParked) -> Self {
        let (begun, open) = <(Arc<Notify>, Arc<Notify>)>::default();
        let text = "user matches \"both\":\nmodel: calls c1 swap {}\nand: calls c2 swap {}\n\n\
                    otherwise:\nmodel: Never mind then.\n";
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let agent = Agent::builder()
            .on_message_while_parked(on_message_while_parked)
            .model(Arc::new(script(text)), "s")
            .tool(swap(Some((Arc::clone(&begun), Arc::clone(&open)))))
            .on_tool_call(|_| async { Decision::defer() })
            .store(store)
            .build()
            .unwrap();
        let parked = agent.run(in_conversation("Swap both")).await.unwrap();
        assert_eq!((parked.status, parked.deferred.len()), (Status::Parked, 2));
        Self { agent, parked, begun, open }
    }

    /// Approves the first call, and comes back when its body has begun.
    async fn approve(&self) -> tokio::task::JoinHandle<RunResult> {
        let binding = self.parked.deferred[0].binding.clone();
        let answer = HoldAnswer { binding, answer: HoldReply::Approve { arguments: None } };
        let (agent, run) = (self.agent.clone(), self.parked.report.run_id.clone());
        let resume = Resume { answers: vec![answer], ..Resume::default() };
        let going = tokio::spawn(async move { agent.resume(&run, resume).await.unwrap().result });
        self.begun.notified().await;
        going
    }
}

#[tokio::test]
async fn a_new_message_lets_an_executing_call_finish_and_then_closes_the_parked_run() {
    let it = Approved::new(OnMessageWhileParked::Supersede).await;
    let approved = it.approve().await;
    let message = tokio::spawn({
        let agent = it.agent.clone();
        async move { agent.run(in_conversation("Never mind")).await }
    });
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert!(!message.is_finished(), "it waits for the call");
    it.open.notify_one();
    assert_eq!(approved.await.unwrap().status, Status::Parked);
    assert_eq!(message.await.unwrap().unwrap().text, "Never mind then.");
    let closed = it.agent.look(&it.parked.report.run_id).await.unwrap();
    assert_eq!(closed.outcome, Some(Outcome::Superseded));
    let statuses: Vec<CallStatus> = closed.tool_calls.iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Completed, CallStatus::Superseded]);
    assert_eq!(it.agent.store().history(&"c".into(), 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_message_that_is_refused_is_refused_at_once_also_while_a_call_executes() {
    let it = Approved::new(OnMessageWhileParked::Refuse).await;
    let approved = it.approve().await;
    let refused = it.agent.run(in_conversation("Never mind")).await;
    assert!(matches!(&refused, Err(AgentError::Waiting { open, .. }) if open[..] == ["c2".into()]), "{refused:?}");
    it.open.notify_one();
    assert_eq!(approved.await.unwrap().deferred.len(), 1, "nothing changed");
}
