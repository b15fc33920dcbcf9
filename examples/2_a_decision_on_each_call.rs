//! A function decides on each call before it may run. `cargo run -p gesta --example 2_a_decision_on_each_call`

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use gesta::{Agent, Decision, Scope, Script, ScriptedModel, Tool};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Refund {
    order: String,
    amount: f64,
}

/// Stands for a real model: three refunds in one answer.
const MODEL: &str = r#"
model: calls c1 refund {"order":"7","amount":20}
and: calls c2 refund {"order":"8","amount":80}
and: calls c3 refund {"order":"1","amount":10}
model: Order 7 got 20 dollars, order 8 got 50. Order 1 is too old.
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder()
        .model(Arc::new(ScriptedModel::new(Arc::new(Script::parse(MODEL)?))), "script")
        .tool(Tool::new("refund", "Pays money back.", |refund: Refund, _: Scope| async move {
            Ok::<_, String>(json!({ "order": refund.order, "paid": refund.amount }))
        }))
        .on_tool_call(|call| async move {
            let amount = call.arguments["amount"].as_f64().ok_or("there is no amount")?;
            let mut arguments = call.arguments;
            if arguments["order"] == "1" {
                // The model reads the reason. It is not asked to try again: a denial is final.
                return Ok(Decision::deny("orders of last year are not paid back"));
            }
            if amount > 50.0 {
                // The tool gets other arguments; the transcript keeps the model's own.
                arguments.insert("amount".to_owned(), json!(50));
                return Ok(Decision::run_with(arguments));
            }
            // An error here would stop the run, and nothing of the answer would run.
            Ok::<_, &str>(Decision::run())
        })
        .build()?;

    let result = agent.run("Pay back orders 7, 8 and 1").await?;
    for call in &result.tool_calls {
        println!("{} {} -> {:?}: {}", call.id, call.arguments, call.status, call.result);
    }
    println!("{}", result.text);
    Ok(())
}
