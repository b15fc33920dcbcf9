//! What goes to the log: which run it is and how it goes, and no word that anybody said.

#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use gesta_model::{Model, ScriptedModel};
use gesta_runtime::{Agent, Scope, Tool};
use gesta_scene::Script;
use tracing_subscriber::fmt::format::FmtSpan;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    #[allow(dead_code)]
    text: String,
}

async fn logged() -> String {
    let text =
        "model: Canary-offer, shall I?\nmodel: calls c1 keep {\"text\":\"canary-argument\"}\nmodel: Canary-reply.\n";
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(Arc::new(Script::parse(text).unwrap())));
    let keep = Tool::new("keep", "", |_: Note, _: Scope| async { Ok::<_, String>("canary-result") });
    let act = serde_json::json!({"intents": ["keep"], "required_tools": ["keep"], "hint": "canary-hint"});
    let builder = Agent::builder().name("noter").model(model, "s").tool(keep);
    let agent = builder.act_when_asked(serde_json::from_value(act).unwrap()).build().unwrap();
    let sink = Sink::default();
    let written = sink.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || sink.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    agent.run("Keep my canary-input").await.unwrap();
    drop(guard);
    let bytes = written.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn nothing_that_was_said_is_in_the_log() {
    let log = logged().await;
    assert!(!log.to_lowercase().contains("canary"), "{log}");
    let ended = "outcome=\"completed\" trips=3 calls=1 ms=";
    for said in ["run{run=\"", "agent=\"noter\"", "run opened", "prompt sent", "call ended", "run ended", ended] {
        assert!(log.contains(said), "{said} is missing in\n{log}");
    }
}
