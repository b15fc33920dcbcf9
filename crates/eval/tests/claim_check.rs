//! The backstop in an agent: prompted once, the model acts or takes its claim back.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gesta_eval::ClaimCheck;
use gesta_eval::claims::Claims;
use gesta_model::ScriptedModel;
use gesta_runtime::{Agent, Scope, Tool};
use gesta_scene::Script;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What the agent says in the end, how often it was prompted, and with what first.
async fn said(script: &str, check: bool) -> (String, usize, String) {
    let tool = |name: &str| Tool::new(name, "Does it.", |_: Nothing, _: Scope| async { Ok::<_, String>("ok") });
    let model = Arc::new(ScriptedModel::new(Arc::new(Script::parse(script).unwrap())));
    let mut agent = Agent::builder().model(model, "script").tool(tool("move_visit")).tool(tool("look"));
    if check {
        agent = ClaimCheck::new(Claims::english(), Some(vec!["move_visit".to_owned()])).add_to(agent);
    }
    let result = agent.build().unwrap().run("Move my visit to Friday").await.unwrap();
    let prompts: Vec<_> = result.contract.interventions.iter().filter_map(|it| it.prompt.clone()).collect();
    (result.text, prompts.len(), prompts.into_iter().next().unwrap_or_default())
}

#[tokio::test]
async fn a_claim_without_its_call_is_prompted_once() {
    let acts = "model: calls c0 look {}\nmodel: I've moved your visit.\nmodel: calls c1 move_visit {}\nmodel: Your visit is on Friday.\n";
    let (text, prompts, prompt) = said(acts, true).await;
    assert_eq!((text.as_str(), prompts), ("Your visit is on Friday.", 1));
    assert!(prompt.starts_with("Your reply says \"I've moved your visit\""), "{prompt}");

    let stubborn = "model: I've moved your visit.\nmodel: I've moved your visit.\n";
    assert_eq!(said(stubborn, true).await.1, 1);

    let takes_back = "model: I've moved your visit.\nmodel: I could not move it.\n";
    assert_eq!(said(takes_back, true).await.0, "I could not move it.");
}

#[tokio::test]
async fn without_the_check_or_with_its_call_the_claim_stands() {
    let claims = "model: I've moved your visit.\n";
    assert_eq!(said(claims, false).await, ("I've moved your visit.".to_owned(), 0, String::new()));
    let acts = "model: calls c1 move_visit {}\nmodel: I've moved your visit.\n";
    assert_eq!(said(acts, true).await.1, 0);
}
