//! What the tests of this program share: pools, sessions, grants that are told what to answer.

use std::sync::Mutex;
use std::time::Duration;

use gesta_document::{Called, GrantName, GrantSpec, Record, Terms};
use gesta_run::json::Object;
use gesta_sandbox::{Call, Failure, GrantFuture, Grants, NoGrants, Pool, PoolSettings, Session};
use serde_json::{Value, json};

use crate::toy::TOY;

/// The running time of a document in most tests, in milliseconds.
pub(crate) const LIMIT_MS: u64 = 300;

/// How long after its start a call must be over that ran to its hard limit (`spec/documents.md`: + 300, + 200).
pub(crate) const ANSWERED_MS: u128 = LIMIT_MS as u128 + 300 + 200;

pub(crate) fn pool() -> Pool {
    Pool::new(PoolSettings::default())
}

pub(crate) fn terms() -> Terms {
    let grants = ["orders", "refund", "wait", "stuck", "large"]
        .map(|name| GrantSpec { name: app(name), params: vec!["id".to_owned()] });
    let mut terms = Terms { grants: grants.to_vec(), ..Terms::default() };
    terms.limits.call_time_max_ms = LIMIT_MS;
    terms
}

pub(crate) fn app(name: &str) -> GrantName {
    GrantName { library: "App".to_owned(), name: name.to_owned() }
}

pub(crate) fn toy(pool: &Pool, conversation: &str) -> Session {
    pool.session(conversation, Record { base: TOY.to_owned(), ..Record::default() }, terms())
}

pub(crate) async fn call(session: &mut Session, tool: &str, arguments: Value) -> Result<Called, Failure> {
    call_with(session, tool, arguments, &NoGrants).await
}

pub(crate) async fn call_with(
    session: &mut Session,
    tool: &str,
    arguments: Value,
    grants: &dyn Grants,
) -> Result<Called, Failure> {
    let arguments: Object = arguments.as_object().unwrap().clone();
    let call = Call { tool, arguments: &arguments, time_limit_ms: 30_000, author: None, at: None };
    sent(session.call(call, grants)).await
}

/// A call can be made from a runtime with many threads.
fn sent<T: Send>(call: T) -> T {
    call
}

/// Grants that answer at once, later, or never, and note what was asked.
#[derive(Default)]
pub(crate) struct Shop {
    pub(crate) asked: Mutex<Vec<(String, Object)>>,
}

impl Grants for Shop {
    fn call(&self, _n: u32, grant: GrantName, arguments: Object) -> GrantFuture<'_> {
        Box::pin(async move {
            self.asked.lock().unwrap().push((grant.name.clone(), arguments.clone()));
            match grant.name.as_str() {
                "orders" => Ok(json!([{"id": "o_1", "total": 40}, {"id": arguments.get("id"), "total": 250}])),
                "refund" => Err("refunds over 100 need a person".to_owned()),
                "wait" => {
                    tokio::time::sleep(Duration::from_millis(LIMIT_MS + 400)).await;
                    Ok(json!("late but fine"))
                }
                "large" => Ok(json!("x".repeat(300_000))),
                _ => std::future::pending().await,
            }
        })
    }
}

/// Memory of this process.
pub(crate) fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}
