//! An agent with one tool. `cargo run -p gesta --example 1_an_agent_with_a_tool`

#![allow(clippy::print_stdout)]

use std::sync::Arc;

use gesta::{ActWhenAsked, Agent, Scope, Script, ScriptedModel, Tool};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Swap {
    /// What is in the plan now.
    from: String,
    /// What comes in its place.
    to: String,
}

/// Stands for a real model: it offers before it acts. `Providers` gives you `openai:…` and `anthropic:…` instead.
const MODEL: &str = r#"
model: Shall I swap squats for lunges?
model: calls c1 update_plan {"from":"squats","to":"lunges"}
model: I have swapped squats for lunges.
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = Agent::builder()
        .name("coach")
        .model(Arc::new(ScriptedModel::new(Arc::new(Script::parse(MODEL)?))), "script")
        .instructions("You keep a training plan.")
        .tool(Tool::new("update_plan", "Swaps an exercise of the plan.", |swap: Swap, _: Scope| async move {
            // A refusal is an `Err`, or `{"ok": false, "reason": …}`: the model reads it.
            if swap.from == swap.to { Err("they are the same") } else { Ok(format!("{} is in", swap.to)) }
        }))
        // Where the user says "swap", an offer is not enough.
        .act_when_asked(ActWhenAsked::new(["swap"], ["update_plan"]))
        .build()?;

    let result = agent.run("Swap squats for lunges").await?;
    println!("{}", result.text);
    for call in &result.tool_calls {
        println!("  {} {} -> {}", call.name, call.arguments, call.result);
    }
    println!("  prompted {} time(s)", result.contract.interventions.len());
    Ok(())
}
