//! What the tests of documents share: a host that answers from a table, and ways to open and call.

use gesta_document::{CallError, Called, Document, GrantName, GrantSpec, Host, Limits, Record, Terms, open};
use gesta_run::json::Object;
use serde_json::Value;

/// A host whose grants answer from a function, and which remembers what it was asked.
#[derive(Default)]
pub struct Desk {
    pub asked: Vec<(String, Object)>,
    pub orders: Vec<Value>,
}

impl Host for Desk {
    fn grant(&mut self, grant: &GrantName, arguments: Object) -> Result<Value, String> {
        self.asked.push((grant.to_string(), arguments.clone()));
        match grant.name.as_str() {
            "orders" => Ok(Value::from(self.orders.clone())),
            "refund" if arguments.get("amount").and_then(Value::as_f64).unwrap_or(0.0) > 100.0 => {
                Err("refunds over $100 need a person to approve them".to_owned())
            }
            "refund" => Ok(Value::from("refunded")),
            _ => Ok(Value::Object(arguments)),
        }
    }
}

pub fn desk() -> Desk {
    let order = |id: &str, total: f64| serde_json::json!({"id": id, "total": total});
    Desk { orders: vec![order("o_1", 40.0), order("o_2", 250.0)], ..Desk::default() }
}

pub fn grant(name: &str, params: &[&str]) -> GrantSpec {
    GrantSpec {
        name: GrantName { library: "App".to_owned(), name: name.to_owned() },
        params: params.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Terms with the grants of the order desk, and a clock that suits a test.
pub fn terms() -> Terms {
    Terms {
        grants: vec![grant("orders", &["limit"]), grant("refund", &["order_id", "amount"])],
        limits: Limits { call_time_max_ms: 300, ..Limits::default() },
        ..Terms::default()
    }
}

pub fn record(base: &str) -> Record {
    Record { base: base.to_owned(), ..Record::default() }
}

pub fn document(base: &str, terms: &Terms) -> Box<dyn Document> {
    open(&record(base), terms).unwrap()
}

pub fn arguments(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

pub fn call(document: &mut dyn Document, tool: &str, given: Value) -> Result<Called, CallError> {
    document.call(tool, &arguments(given), &mut desk())
}
