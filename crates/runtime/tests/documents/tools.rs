//! Tools of a document are tools of the run.

use std::sync::{Arc, Mutex};

use gesta_document::AddedTools;
use gesta_model::{Answer, Model, Request, ScriptedModel};
use gesta_run::{CallStatus, InterventionOutcome, OnToolRefusal, Outcome};
use gesta_runtime::{DocumentSettings, Scope, Tool};
use gesta_scene::Script;
use libtest_mimic::Trial;
use serde_json::json;

use crate::desk::{self, Till, adds, builder, call, text};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("tools_of_a_document_are_offered_and_called", called),
        trial("a_tool_that_the_agent_adds_is_offered_on_the_next_trip_of_the_same_turn", added),
        trial("a_source_that_is_refused_comes_back_as_a_message_and_changes_nothing", refused_source),
        trial("a_documents_refusal_is_seen_by_the_contract", refusal),
        trial("a_tool_that_never_ends_costs_one_call_and_says_which_limit", endless),
        trial("a_tool_that_is_written_again_replaces_itself_however_often", replaced),
        trial("a_tool_of_the_host_and_one_of_the_document_of_one_name_end_the_run_and_say_so", name_taken),
        trial("a_document_that_describes_tools_no_model_could_call_ends_the_run_and_says_so", no_name),
        trial("calls_into_one_document_run_in_the_models_order", in_order),
        trial("what_a_tool_may_be_is_in_the_prompt_while_tools_can_be_added", guidance),
    ]
}

async fn called() {
    let script = "model: calls c1 orders {}\nmodel: calls c2 remember {\"text\":\"likes tea\"}\nmodel: Done.\n";
    let result = builder(script, &Till::default()).build().unwrap().run("Look").await.unwrap();
    assert_eq!(result.outcome, Some(Outcome::Completed), "{:?}", result.error);
    assert_eq!(call(&result, "c1").result, json!([{"id": "o_1", "total": 40}, {"id": "o_2", "total": 250}]));
    assert_eq!(call(&result, "c1").grants[0].name, "App.orders");
    assert_eq!(call(&result, "c2").result, json!(1));
}

async fn added() {
    let script = format!("{}model: calls c2 total_spent {{}}\nmodel: You spent 290.\n", adds("c1", desk::TOTAL));
    let result = builder(&script, &Till::default()).build().unwrap().run("What did I spend?").await.unwrap();
    assert_eq!(result.outcome, Some(Outcome::Completed), "{:?}", result.error);
    assert!(text(&call(&result, "c1").result).contains("total_spent"));
    assert_eq!(call(&result, "c2").status, CallStatus::Completed);
    assert_eq!(call(&result, "c2").result.as_f64(), Some(290.0));
}

async fn refused_source() {
    let script =
        format!("{}model: calls c2 broken {{}}\nmodel: I could not.\n", adds("c1", "#[tool('x')]\nfn broken( {"));
    let result = builder(&script, &Till::default()).build().unwrap().run("Try").await.unwrap();
    let told = call(&result, "c1").result.to_string();
    assert!(told.contains("line"), "{told}");
    assert_eq!(call(&result, "c2").status, CallStatus::UnknownTool);
}

async fn refusal() {
    let script = "model: calls c1 refuse {}\nmodel: I give up.\nmodel: It is closed.\n";
    let agent = builder(script, &Till::default()).on_tool_refusal(OnToolRefusal::default()).build().unwrap();
    let result = agent.run("Try").await.unwrap();
    assert_eq!(call(&result, "c1").status, CallStatus::Refused);
    assert_eq!(result.contract.refusals[0].reason, "the shop is closed");
    let sent = result.contract.interventions.iter().filter(|it| it.outcome == InterventionOutcome::Sent);
    assert_eq!(sent.count(), 1, "it was given one more try");
}

async fn endless() {
    let till = Till::default();
    let script = "model: calls c1 refund_and_spin {\"order\":\"o_1\"}\nmodel: calls c2 orders {}\nmodel: Done.\n";
    let agent = builder(script, &till).document_settings(desk::settings(300)).build().unwrap();
    let result = agent.run("Refund it").await.unwrap();
    let ended = call(&result, "c1");
    assert_eq!(ended.status, CallStatus::TimedOut, "{ended:?}");
    let told = text(&ended.result);
    assert!(told.contains("300 ms") && told.contains("App.refund"), "{told}");
    assert_eq!(till.times(), 1);
    assert_eq!(call(&result, "c2").status, CallStatus::Completed, "the next call goes on in a fresh worker");
}

async fn replaced() {
    let script: String = (0..40)
        .map(|n| adds(&format!("c{n}"), &format!("#[tool('Says which it is')]\nfn which() -> int {{ {n} }}")))
        .chain(["model: calls last which {}\n".to_owned(), "model: Done.\n".to_owned()])
        .collect();
    let limits = gesta_run::Limits { trips_max: 50, ..gesta_run::Limits::default() };
    let agent = builder(&script, &Till::default()).limits(limits).build().unwrap();
    let result = agent.run("Write it again and again").await.unwrap();
    let failed: Vec<_> = result.tool_calls.iter().filter(|call| call.status != CallStatus::Completed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(call(&result, "last").result, json!(39));
}

async fn name_taken() {
    let orders = Tool::new("orders", "The host's own", |_: desk::Nothing, _: Scope| async { Ok::<_, String>(1) });
    let result = builder("model: Hello.\n", &Till::default()).tool(orders).build().unwrap().run("Hello").await.unwrap();
    assert_eq!(result.outcome, Some(Outcome::ModelFailed));
    let why = result.error.unwrap().message;
    assert!(why.contains("`orders` is there twice"), "{why}");
}

async fn no_name() {
    let base = r#"fn tool_specs() -> str { '{"tools":[{"name":"no name","description":"","input_schema":{"type":"object"}}]}' }"#;
    let agent = builder("model: Hello.\n", &Till::default()).document(base).build().unwrap();
    let result = agent.run("Hello").await.unwrap();
    assert_eq!(result.outcome, Some(Outcome::ModelFailed));
    let why = result.error.unwrap().message;
    assert!(why.contains("no name"), "{why}");
}

async fn in_order() {
    let script = "model: calls c1 remember {\"text\":\"a\"}\nand: calls c2 remember {\"text\":\"b\"}\nand: calls c3 remember {\"text\":\"c\"}\nmodel: Done.\n";
    let result = builder(script, &Till::default()).build().unwrap().run("Note").await.unwrap();
    let counted: Vec<_> = ["c1", "c2", "c3"].map(|id| call(&result, id).result.clone()).to_vec();
    assert_eq!(counted, [json!(1), json!(2), json!(3)]);
}

async fn guidance() {
    for (added_tools, told) in [(AddedTools::On, true), (AddedTools::Off, false)] {
        let listens = Arc::new(Listens::default());
        let settings = DocumentSettings { added_tools, ..desk::settings(2_000) };
        let builder = builder("model: Hello.\n", &Till::default()).instructions("You keep a desk.");
        let agent = builder.model(listens.clone(), "s").document_settings(settings).build().unwrap();
        agent.run("Hello").await.unwrap();
        let system = listens.0.lock().unwrap().clone();
        assert!(system.starts_with("You keep a desk."));
        assert_eq!(system.contains(gesta_document::ADD_TOOL_GUIDANCE), told, "{system}");
    }
}

/// A model that remembers what it was told.
#[derive(Default)]
struct Listens(Mutex<String>);

impl Model for Listens {
    fn ask(&self, request: &Request<'_>) -> Answer {
        request.system.clone_into(&mut self.0.lock().unwrap());
        let script = Arc::new(Script::parse("model: Hello.\n").unwrap());
        ScriptedModel::new(script).ask(request)
    }

    fn protocol(&self) -> &'static str {
        "listens"
    }
}
