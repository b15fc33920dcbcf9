//! A call waits for a person while no process runs. `cargo run -p gesta --example 3_park_and_resume`
//!
//! Started without words it asks, parks and ends its part; then it starts itself once more, as another process, to
//! approve what waits.

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gesta::{Agent, Decision, HoldAnswer, HoldReply, Resume, Scope, Script, ScriptedModel, Sqlite, StoreOptions, Tool};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    order: String,
    amount: f64,
}

const MODEL: &str = r#"
model: calls c1 refund {"order":"7","amount":250}
model: A colleague has decided on your refund.
"#;

async fn desk(data: &Path) -> Result<Agent, Box<dyn std::error::Error>> {
    let refund = Tool::new("refund", "Pays money back.", |refund: Refund, scope: Scope| async move {
        // Whoever pays recognises a repetition by this key.
        println!("paying {} for order {}, key {}", refund.amount, refund.order, scope.idempotency_key());
        Ok::<_, String>(json!({ "paid": refund.amount }))
    });
    Ok(Agent::builder()
        .model(Arc::new(ScriptedModel::new(Arc::new(Script::parse(MODEL)?))), "script")
        .tool(refund)
        .on_tool_call(|_| async { Decision::defer() })
        .store(Arc::new(Sqlite::open(data, StoreOptions::default()).await?))
        .build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().collect::<Vec<_>>().as_slice() {
        [_, data, run] => approve(Path::new(data), run).await,
        _ => ask().await,
    }
}

async fn ask() -> Result<(), Box<dyn std::error::Error>> {
    let data = tempfile::tempdir()?;
    let run = {
        let parked = desk(data.path()).await?.run("Refund order 7, 250 dollars").await?;
        println!("{:?}: {} waits", parked.status, parked.deferred[0].name);
        parked.report.run_id
    };
    let other = Command::new(std::env::current_exe()?).arg(data.path()).arg(run.as_str()).status()?;
    if other.success() { Ok(()) } else { Err("the other process failed".into()) }
}

async fn approve(data: &Path, run: &str) -> Result<(), Box<dyn std::error::Error>> {
    let agent = desk(data).await?;
    let hold = agent.look(&run.into()).await?.deferred.remove(0);
    let less = json!({ "order": "7", "amount": 200 }).as_object().cloned();
    let answer = HoldAnswer { binding: hold.binding, answer: HoldReply::Approve { arguments: less } };
    let resume = || Resume { answers: vec![answer.clone()], ..Resume::default() };
    println!("{}", agent.resume(&run.into(), resume()).await?.result.text);
    let again = agent.resume(&run.into(), resume()).await?;
    println!("answered before: {:?}", again.already_answered);
    Ok(())
}
