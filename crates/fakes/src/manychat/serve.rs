//! The server: the API, the phone, and what tests in other processes ask for.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value, json};

use super::api::{Answer, Asked};
use super::caller::InboundError;
use super::faults::{Fault, Switch};
use super::ledger::{ENTRIES_MAX, Entry};
use super::page;
use super::setup::{Setup, Webhook};
use super::state::{Seen, State};
use crate::body::Steps;
use crate::server::{Answers, LOOPBACK, Listening, plain};

/// The longest body that is read, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A fake that runs until this is dropped.
#[derive(Debug)]
pub struct FakeManychat {
    listening: Listening,
    page: Arc<Page>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Page {
    state: Mutex<State>,
    webhook: Mutex<Option<Webhook>>,
}

impl FakeManychat {
    /// Binds a free port of this machine, or the given one.
    ///
    /// # Errors
    /// No port can be bound.
    pub async fn start(setup: Setup, bind: Option<SocketAddr>) -> io::Result<Self> {
        let state = Mutex::new(State::new(&setup));
        let page = Arc::new(Page { state, webhook: Mutex::new(setup.webhook) });
        let listening = Listening::start(bind.unwrap_or(LOOPBACK), Arc::new(Shared(Arc::clone(&page)))).await?;
        Ok(Self { listening, page })
    }

    /// Where it listens: the host of the API and of the phone.
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Where a contact's messages go from now on.
    pub fn set_webhook(&self, webhook: Webhook) {
        *self.page.webhook.lock().unwrap_or_else(PoisonError::into_inner) = Some(webhook);
    }

    /// A contact writes; the response, as it was shown.
    ///
    /// # Errors
    /// Why there is none that can be shown. The timeline says so too.
    pub async fn inbound(&self, contact: &str, text: &str) -> Result<Value, InboundError> {
        self.page.inbound(contact, text).await
    }

    /// What a contact's phone has shown, and what happened at the contact, in order. Blank for one there is not.
    pub fn timeline(&self, contact: &str) -> Vec<Seen> {
        self.page.timeline(contact)
    }

    /// Every request of the API, oldest first.
    pub fn ledger(&self) -> Vec<Entry> {
        self.page.state().ledger.iter().cloned().collect()
    }

    /// Switches a fault on; the first that strikes a call counts.
    pub fn switch(&self, switch: Switch) {
        self.page.state().switches.push(switch);
    }

    /// Switches all faults off.
    pub fn clear(&self) {
        self.page.state().switches.clear();
    }

    /// Moves the clock ahead: windows, hours and play times pass.
    pub fn advance(&self, ms: i64) {
        self.page.advance(ms);
    }

    /// Stops, and waits until the last answer is sent.
    pub async fn shut_down(self) {
        self.listening.shut_down().await;
    }
}

impl Page {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn webhook(&self) -> Option<Webhook> {
        self.webhook.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn now(&self) -> i64 {
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(real.as_millis()).unwrap_or(i64::MAX).saturating_add(self.state().ahead_ms)
    }

    pub(crate) fn advance(&self, ms: i64) {
        let mut state = self.state();
        state.ahead_ms = state.ahead_ms.saturating_add(ms);
    }

    pub(crate) fn timeline(&self, contact: &str) -> Vec<Seen> {
        let now = self.now();
        let mut state = self.state();
        state.play(now);
        state.contacts.get(contact).map(|it| it.timeline.clone()).unwrap_or_default()
    }

    /// One request of the API: judged, struck by a fault perhaps, performed perhaps, written down in any case.
    fn call(&self, asked: &Asked<'_>, target: &str, key: Option<&str>, body: Value) -> (Answer, Option<Fault>) {
        let now = self.now();
        let mut state = self.state();
        let fault = match state.check(asked, key, now) {
            Ok(()) => Ok(state.fault_at(asked.path)),
            Err(answer) => Err(answer),
        };
        let (answer, fault, performed) = match fault {
            Err(answer) => (answer, None, false),
            Ok(Some(fault)) if !fault.performs() && fault != Fault::NotDelivered => {
                let (status, body) = fault.answer().unwrap_or_default();
                (Answer { status, body, why: "a fault".to_owned() }, Some(fault), false)
            }
            Ok(fault) => {
                let answer = state.perform(asked, now, fault == Some(Fault::NotDelivered));
                let performed = answer.is_success();
                (answer, fault, performed)
            }
        };
        state.count += 1;
        let silent = matches!(fault, Some(Fault::Hang | Fault::PerformedAndHung | Fault::PerformedAndCut));
        let entry = Entry {
            number: state.count,
            at_ms: now,
            method: asked.method.to_owned(),
            target: target.to_owned(),
            body,
            performed,
            status: (!silent).then_some(answer.status),
            why: answer.why.clone(),
            fault,
        };
        state.ledger.push_back(entry);
        while state.ledger.len() > ENTRIES_MAX {
            state.ledger.pop_front();
        }
        (answer, fault)
    }
}

/// The page as the server's connections have it.
#[derive(Debug)]
struct Shared(Arc<Page>);

impl Answers for Shared {
    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    async fn answer(&self, request: Request<Option<Bytes>>) -> Option<Response<Steps>> {
        let (head, body) = request.into_parts();
        let body = body.unwrap_or_default();
        let path = head.uri.path().to_owned();
        let query = head.uri.query().unwrap_or_default().to_owned();
        if !path.starts_with("/fb/") {
            return Some(control(&self.0, head.method.as_str(), &path, &query, &body).await);
        }
        let key = head.headers.get(http::header::AUTHORIZATION).and_then(|it| it.to_str().ok());
        let parsed: Value = serde_json::from_slice(&body).unwrap_or_default();
        let given = match &parsed {
            Value::Object(object) if head.method == http::Method::POST => object.clone(),
            _ => pairs(&query),
        };
        let asked = Asked { method: head.method.as_str(), path: &path, given };
        let target = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let (answer, fault) = self.0.call(&asked, &target, key, parsed);
        match fault {
            Some(Fault::Hang | Fault::PerformedAndHung) => pending().await,
            Some(Fault::PerformedAndCut) => None,
            Some(Fault::NotJson) => Some(plain(200, "text/html", "<html>Bad gateway</html>")),
            Some(Fault::RetryAfter(seconds)) => {
                let mut response = json_answer(answer.status, &answer.body);
                response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
                Some(response)
            }
            Some(Fault::DelayMs(ms)) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Some(json_answer(answer.status, &answer.body))
            }
            _ => Some(json_answer(answer.status, &answer.body)),
        }
    }
}

fn json_answer(status: u16, body: &Value) -> Response<Steps> {
    plain(status, "application/json", body.to_string())
}

/// The pairs of a query or of a form, as texts.
fn pairs(text: &str) -> Map<String, Value> {
    let pairs = url::form_urlencoded::parse(text.as_bytes());
    pairs.map(|(key, value)| (key.into_owned(), Value::from(value.into_owned()))).collect()
}

async fn control(page: &Arc<Page>, method: &str, path: &str, query: &str, body: &[u8]) -> Response<Steps> {
    let query = pairs(query);
    let contact = query.get("contact").and_then(Value::as_str).unwrap_or_default();
    let given: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = |key: &str| given[key].as_str().unwrap_or_default();
    match (method, path) {
        ("POST", "/__fake/inbound") => match page.inbound(said("contact"), said("text")).await {
            Ok(response) => json_answer(200, &response),
            Err(why) => json_answer(502, &json!({"error": why.to_string()})),
        },
        ("GET", "/__fake/timeline") => json_answer(200, &json!(page.timeline(contact))),
        ("GET", "/__fake/ledger") => json_answer(200, &json!(page.state().ledger)),
        ("POST", "/__fake/faults") => match serde_json::from_value::<Vec<Switch>>(given) {
            Ok(switches) => {
                page.state().switches = switches;
                json_answer(200, &json!({}))
            }
            Err(why) => json_answer(400, &json!({"error": why.to_string()})),
        },
        ("POST", "/__fake/clock") => {
            page.advance(given["advance_ms"].as_i64().unwrap_or(0));
            json_answer(200, &json!({"now_ms": page.now()}))
        }
        _ => page::answer(page, method, path, &query, &pairs(&String::from_utf8_lossy(body))),
    }
}
