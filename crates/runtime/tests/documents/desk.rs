//! The order desk that these tests talk to.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gesta_document::AddedTools;
use gesta_model::{Model, ScriptedModel};
use gesta_run::{CallRecord, RunResult, ToolEffect};
use gesta_runtime::{Agent, AgentBuilder, Ask, DocumentSettings, Grant, Scope};
use gesta_scene::Script;
use gesta_store::{Secrets, Sqlite, Store, StoreOptions};
use serde_json::{Value, json};

/// A document with a tool that reads, one that pays, one that remembers, and one that runs for ever after it has paid.
pub(crate) const DESK: &str = r#"
notes: []

tools: {
    #[tool('The orders of the customer')]
    fn orders() -> list { await App.orders() }

    #[tool('Pays an order back')]
    fn refund(order: str, amount: float) -> str { await App.refund(order, amount) }

    #[tool('Writes a note down')]
    fn remember(text: str) -> int {
        root.notes.push_back(text);
        root.notes.len()
    }

    #[tool('Pays an order back and never ends')]
    fn refund_and_spin(order: str) -> str {
        await App.refund(order, 1.0);
        while (true) {}
        'never'
    }

    #[tool('Says no')]
    fn refuse() -> map { {'ok': false, 'reason': 'the shop is closed'} }
}
"#;

/// A tool that the agent writes.
pub(crate) const TOTAL: &str = r#"#[tool('What the customer has spent')]
fn total_spent() -> float {
    let total = 0;
    for (const order in await App.orders()) total += order.get('total');
    total
}"#;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Refund {
    pub(crate) order: String,
    pub(crate) amount: f64,
}

/// What was paid, over all agents of a test.
#[derive(Clone, Default)]
pub(crate) struct Till(pub(crate) Arc<AtomicU32>);

impl Till {
    pub(crate) fn times(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    fn grant(&self) -> Grant {
        let till = self.clone();
        Grant::new("App", "refund", &["order", "amount"], move |it: Refund, _: Scope| {
            let till = till.clone();
            async move {
                if it.amount > 100.0 {
                    return Err("refunds over 100 need a person".to_owned());
                }
                till.0.fetch_add(1, Ordering::SeqCst);
                Ok(format!("refunded {} on {}", it.amount, it.order))
            }
        })
    }
}

pub(crate) fn store(dir: &Path) -> Arc<dyn Store> {
    Arc::new(Sqlite::open_blocking(dir, StoreOptions::default()).unwrap())
}

pub(crate) fn secrets() -> Secrets {
    Secrets::from_list("a key that is long enough for a test of documents").unwrap()
}

/// An agent of the desk whose model speaks this script.
pub(crate) fn builder(script: &str, till: &Till) -> AgentBuilder {
    let model: Arc<dyn Model> = Arc::new(ScriptedModel::new(Arc::new(Script::parse(script).unwrap())));
    let orders = Grant::new("App", "orders", &[], |_: Nothing, _: Scope| async {
        Ok::<_, String>(json!([{"id": "o_1", "total": 40}, {"id": "o_2", "total": 250}]))
    });
    Agent::builder()
        .name("desk")
        .model(model, "s")
        .document(DESK)
        .document_settings(settings(2_000))
        .grant(orders.effect(ToolEffect::ReadsOnly))
        .grant(till.grant())
}

pub(crate) fn settings(call_time_max_ms: u64) -> DocumentSettings {
    let limits = gesta_document::Limits { call_time_max_ms, ..gesta_document::Limits::default() };
    DocumentSettings { limits, added_tools: AddedTools::On, ..DocumentSettings::default() }
}

pub(crate) fn in_conversation(text: &str, conversation: &str) -> Ask {
    Ask { conversation: Some(conversation.into()), ..Ask::from(text) }
}

pub(crate) fn call<'a>(result: &'a RunResult, id: &str) -> &'a CallRecord {
    result.tool_calls.iter().find(|call| call.id.as_str() == id).unwrap_or_else(|| panic!("no call {id}: {result:?}"))
}

/// The script's line that adds a tool.
pub(crate) fn adds(id: &str, source: &str) -> String {
    format!("model: calls {id} add_tool {}\n", json!({ "source": source }))
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
