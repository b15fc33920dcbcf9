//! The same run by Gesta: with the whole contract, with and without a store.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures_util::StreamExt;
use gesta_model::{Protocol, ProviderSpec, Providers, Transport, TransportSpec};
use gesta_run::{ActWhenAsked, Decision, Delta, OnToolRefusal, Outcome, PatternSpec, Require, RunResult};
use gesta_runtime::{Agent, AgentBuilder, Progress, Scope, Tool};
use gesta_store::{Sqlite, StoreOptions};
use serde::{Deserialize, Serialize};

use crate::words;

/// What every tool takes.
#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Arguments {
    /// The day of the week.
    day: String,
    /// The exercise.
    exercise: String,
    /// How many sets.
    count: u32,
}

/// What every tool gives back.
#[derive(Serialize)]
pub(crate) struct Acted {
    day: String,
    sets: u32,
    ok: bool,
}

/// The work of every tool.
pub(crate) fn act(arguments: &Arguments) -> Acted {
    Acted { day: arguments.day.clone(), sets: arguments.count, ok: !arguments.exercise.is_empty() }
}

/// The tools, as [`words::TOOLS`] has them.
const NAMES: [(&str, &str); 3] = [
    ("look_at_plan", "Shows what a day of the plan holds."),
    ("look_at_exercise", "Shows an exercise and what it is good for."),
    ("swap_exercise", "Puts another exercise in the place of one. Call it only when the person asked for it."),
];

fn model(base: &str) -> Arc<dyn gesta_model::Model> {
    let spec = ProviderSpec { base_url: Some(base.to_owned()), ..ProviderSpec::new(Protocol::OpenAi) };
    let mut providers = Providers::new(Arc::new(|_| None), Transport::new(TransportSpec::default()));
    providers.specs = BTreeMap::from([("local".to_owned(), spec)]);
    providers.resolve("local:measured").expect("the provider is whole").model
}

/// Everything of the contract that such an agent would have.
fn contract(builder: AgentBuilder) -> AgentBuilder {
    let act_when_asked = ActWhenAsked {
        intents: ["swap", "replace", "exchange"].map(|word| PatternSpec::Substring(word.to_owned())).to_vec(),
        required_tools: vec!["swap_exercise".to_owned()],
        require: Require::Any,
        hint: None,
        max_reprompts: 1,
    };
    let builder = builder
        .name("measured")
        .instructions(words::INSTRUCTIONS)
        .act_when_asked(act_when_asked)
        .on_tool_refusal(OnToolRefusal::default())
        .on_tool_call(|_| async { Decision::run() });
    NAMES.iter().fold(builder, |builder, (name, description)| {
        let body = |arguments: Arguments, _: Scope| async move { Ok::<_, String>(act(&arguments)) };
        builder.tool(Tool::new(name, description, body))
    })
}

/// An agent that does the run.
#[derive(Clone)]
pub(crate) struct Measured {
    pub(crate) agent: Agent,
    stream: bool,
}

impl Measured {
    /// An agent for the server at `base`, with a store in `folder`.
    pub(crate) fn new(base: &str, stream: bool, folder: Option<&Path>) -> Self {
        let mut builder = contract(Agent::builder().model(model(base), "measured"));
        if !stream {
            builder = builder.plain();
        }
        if let Some(folder) = folder {
            let store = Sqlite::open_blocking(folder, StoreOptions::default()).expect("the folder can be written");
            builder = builder.store(Arc::new(store));
        }
        Self { agent: builder.build().expect("the agent is whole"), stream }
    }

    /// Does one run, and says how long the text was that came out.
    pub(crate) async fn run(&self) -> usize {
        if !self.stream {
            let result = self.agent.run(words::INPUT).await.expect("the run begins");
            return checked(&result);
        }
        let mut shown = 0;
        let mut turn = self.agent.stream(words::INPUT);
        while let Some(progress) = turn.next().await {
            match progress.expect("the run begins") {
                Progress::Delta { delta: Delta::Text { text, .. }, .. } => shown += text.len(),
                Progress::Finished(result) => assert_eq!(checked(&result), shown),
                _ => {}
            }
        }
        shown
    }
}

/// A run that went another way than the one to be measured would only look cheap.
fn checked(result: &RunResult) -> usize {
    assert_eq!((result.outcome, result.trips, result.tool_calls.len()), (Some(Outcome::Completed), 3, 4));
    assert!(result.contract.asked && result.contract.acted);
    result.text.len()
}
