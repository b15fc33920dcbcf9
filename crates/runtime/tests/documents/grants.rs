//! A document reaches the world by grants, and each is decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gesta_run::{CallStatus, Decision, GrantSpec, Outcome, ToolEffect};
use gesta_runtime::{Agent, AgentError, CallAsked, Grant};
use libtest_mimic::Trial;
use serde_json::json;

use crate::desk::{self, Till, adds, builder, call, text};
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_grant_runs_for_its_conversation_under_a_key_of_its_own", scoped),
        trial("what_a_grant_throws_reaches_the_model", thrown),
        trial("a_tool_that_the_agent_wrote_cannot_go_round_a_policy", policy),
        trial("a_decision_replaces_the_arguments_of_a_grant", replaced),
        trial("a_hook_that_fails_on_a_grant_ends_the_run_and_nothing_runs", hook_fails),
        trial("a_grant_that_stages_is_an_authors_mistake", staged),
        trial("a_grant_that_panics_is_an_error_inside_the_document", panics),
        trial("sixty_four_conversations_at_once_never_see_each_other", many),
    ]
}

const REFUNDS: &str = "model: calls c1 refund {\"order\":\"o_1\",\"amount\":40}\nmodel: Done.\n";

async fn scoped() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sees = seen.clone();
    let grant = Grant::new("App", "who", &[], move |_: desk::Nothing, scope: gesta_runtime::Scope| {
        let key = (scope.idempotency_key(), scope.conversation.map(|it| it.to_string()));
        sees.lock().unwrap().push(key);
        async { Ok::<_, String>("you") }
    });
    let source = "#[tool('Says who asks')]\nfn who() -> list { [await App.who(), await App.who()] }";
    let script = format!("{}model: calls c2 who {{}}\nmodel: You.\n", adds("c1", source));
    let agent = builder(&script, &Till::default()).grant(grant).build().unwrap();
    let result = agent.run(desk::in_conversation("Who am I?", "k7")).await.unwrap();
    assert_eq!(call(&result, "c2").result, json!(["you", "you"]), "{:?}", result.tool_calls);
    let run = result.report.run_id;
    let whose = Some("k7".to_owned());
    assert_eq!(*seen.lock().unwrap(), [(format!("{run}/c2/0"), whose.clone()), (format!("{run}/c2/1"), whose)]);
}

async fn thrown() {
    let script = "model: calls c1 refund {\"order\":\"o_2\",\"amount\":250}\nmodel: A person has to see that.\n";
    let till = Till::default();
    let result = builder(script, &till).build().unwrap().run("Refund it").await.unwrap();
    assert_eq!(call(&result, "c1").status, CallStatus::Failed);
    assert!(text(&call(&result, "c1").result).contains("refunds over 100 need a person"));
    assert_eq!(till.times(), 0);
}

async fn policy() {
    let till = Till::default();
    let source = "#[tool('Refunds')]\nfn mine(order: str) -> str { await App.refund(order, 99.0) }";
    let script = format!("{}model: calls c2 mine {{\"order\":\"o_1\"}}\nmodel: I may not.\n", adds("c1", source));
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sees = asked.clone();
    let decide = move |call: CallAsked| {
        sees.lock().unwrap().push(call.name.clone());
        async move {
            if call.name == "App.refund" && call.arguments["amount"].as_f64() > Some(50.0) {
                return Decision::deny("over 50 is for a person");
            }
            Decision::run()
        }
    };
    let result = builder(&script, &till).on_tool_call(decide).build().unwrap().run("Refund it").await.unwrap();
    assert_eq!(*asked.lock().unwrap(), ["add_tool", "mine", "App.refund"]);
    assert!(text(&call(&result, "c2").result).contains("over 50 is for a person"));
    assert_eq!(call(&result, "c2").grants[0].status, CallStatus::Denied);
    assert_eq!(till.times(), 0);
}

async fn replaced() {
    let till = Till::default();
    let decide = |call: CallAsked| async move {
        let mut arguments = call.arguments.clone();
        arguments.insert("amount".to_owned(), json!(10.5));
        if call.name == "App.refund" { Decision::run_with(arguments) } else { Decision::run() }
    };
    let result = builder(REFUNDS, &till).on_tool_call(decide).build().unwrap().run("Refund it").await.unwrap();
    assert_eq!(call(&result, "c1").result, json!("refunded 10.5 on o_1"));
    assert_eq!(call(&result, "c1").grants[0].arguments, json!({"order": "o_1", "amount": 10.5}));
    assert_eq!(till.times(), 1);
}

async fn hook_fails() {
    let till = Till::default();
    let decide = |call: CallAsked| async move {
        if call.name == "App.refund" { Err("no connection".to_owned()) } else { Ok(Decision::run()) }
    };
    let result = builder(REFUNDS, &till).on_tool_call(decide).build().unwrap().run("Refund it").await.unwrap();
    assert_eq!(result.outcome, Some(Outcome::HookFailed));
    assert_eq!(call(&result, "c1").status, CallStatus::Failed);
    assert_eq!(till.times(), 0);
}

async fn staged() {
    let spec = GrantSpec { effect: ToolEffect::Staged, ..GrantSpec::new("App", "send", ["text"]) };
    let body = |_: gesta_run::json::Object, _: gesta_runtime::Scope| -> gesta_runtime::AnswerFuture {
        Box::pin(std::future::ready(gesta_run::Answer::Unknown))
    };
    let built: Result<Agent, AgentError> =
        builder(REFUNDS, &Till::default()).grant(Grant::with_body(spec, body)).build();
    let why = built.unwrap_err().to_string();
    assert!(why.contains("App.send") && why.contains("customer channel"), "{why}");
}

async fn panics() {
    let bad = Grant::new("App", "bad", &[], |_: desk::Nothing, _: gesta_runtime::Scope| async {
        if std::hint::black_box(true) {
            panic!("inside");
        }
        Ok::<_, String>(())
    });
    let source = "#[tool('Tries')]\nfn tries() -> str { try { await App.bad(); } catch (e) { return 'caught: ' + str(e); } 'fine' }";
    let script = format!("{}model: calls c2 tries {{}}\nmodel: Done.\n", adds("c1", source));
    let result = builder(&script, &Till::default()).grant(bad).build().unwrap().run("Try").await.unwrap();
    let told = text(&call(&result, "c2").result);
    assert!(told.starts_with("caught: ") && told.contains("panicked"), "{told}");
}

async fn many() {
    let asked = Arc::new(AtomicU32::new(0));
    let counts = asked.clone();
    let mine = Grant::new("App", "mine", &[], move |_: desk::Nothing, scope: gesta_runtime::Scope| {
        counts.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, String>(scope.conversation.map(|it| it.to_string())) }
    });
    let source = "#[tool('Whose')]\nfn whose() -> list { let all = []; for (const i in 5) all.push_back(await App.mine()); all }";
    let script = format!("{}model: calls c2 whose {{}}\nmodel: Yours.\n", adds("c1", source));
    let mut settings = desk::settings(2_000);
    settings.pool.wait_max_ms = 60_000;
    let agent = builder(&script, &Till::default()).document_settings(settings).grant(mine).build().unwrap();
    let turns = (0..64).map(|n| {
        let agent = agent.clone();
        async move {
            let whose = format!("canary-{n}");
            let result = agent.run(desk::in_conversation("Whose?", &whose)).await.unwrap();
            assert_eq!(
                call(&result, "c2").result,
                json!([whose, whose, whose, whose, whose]),
                "{:?}",
                result.tool_calls
            );
        }
    });
    futures_util::future::join_all(turns).await;
    assert_eq!(asked.load(Ordering::SeqCst), 320);
}
