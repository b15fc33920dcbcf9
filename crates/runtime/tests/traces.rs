//! What goes to logs and traces: no word that anybody said, unless capture is on and the redactor has seen it.

#![allow(clippy::unwrap_used)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use gesta_model::{Model, ScriptedModel};
use gesta_runtime::{Agent, AgentBuilder, Scope, Tool};
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

async fn logged(build: impl FnOnce(AgentBuilder) -> AgentBuilder) -> String {
    let text =
        "model: Canary-offer, shall I?\nmodel: calls c1 keep {\"text\":\"canary-argument\"}\nmodel: Canary-reply.\n";
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(Arc::new(Script::parse(text).unwrap())));
    let keep = Tool::new("keep", "", |_: Note, _: Scope| async { Ok::<_, String>("canary-result") });
    let act = serde_json::json!({"intents": ["keep"], "required_tools": ["keep"], "hint": "canary-hint"});
    let builder = Agent::builder().name("noter").model(model, "s").tool(keep);
    let agent = build(builder.act_when_asked(serde_json::from_value(act).unwrap())).build().unwrap();
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
async fn nothing_that_was_said_is_in_a_log_or_a_span() {
    let log = logged(|builder| builder).await;
    assert!(!log.to_lowercase().contains("canary"), "{log}");
    for name in ["invoke_agent", "chat", "execute_tool", "gen_ai.tool.name=\"keep\"", "prompt sent", "run ended"] {
        assert!(log.contains(name), "{name} is missing in\n{log}");
    }
}

#[tokio::test]
async fn with_capture_on_every_text_passes_the_redactor() {
    let log = logged(|builder| builder.capture_content(|text| text.to_lowercase().replace("canary", "****"))).await;
    assert!(!log.to_lowercase().contains("canary"), "{log}");
    for said in ["****-input", "****-offer", "****-argument", "****-result", "****-reply", "****-hint"] {
        assert!(log.contains(said), "{said} is missing in\n{log}");
    }
}
