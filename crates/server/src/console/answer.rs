//! Answers to holds: the first one counts, and whoever comes second is told so.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{Html, IntoResponse, Redirect, Response};
use gesta_run::{Binding, CallId, HoldAnswer, HoldReply, RunId};
use gesta_runtime::Resume;
use gesta_store::HoldClosed;
use http::StatusCode;
use maud::html;
use serde_json::Value;

use super::failed::{Failed, sentence};
use super::hold::{Stands, Waiting, address, closed_card, look, whole_page};
use super::who::{Posted, Visitor};
use super::{Console, fields, now};
use crate::app::App;
use crate::ask::Asker;
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::Problem;
use crate::routes::{deed, unbroken};
use crate::work;

/// How often a hold is tried whose run somebody else works on just now, and how long is waited between.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(250);

/// What came of an answer.
enum Came {
    /// It counts.
    Won(HoldClosed),
    /// Another one was there first.
    Lost(HoldClosed),
    /// It was not accepted, and the hold waits on.
    Wrong(Box<Waiting>, StatusCode, &'static str, String),
}

impl Came {
    /// Why it was not taken, for the audit.
    fn refused(&self) -> Option<&'static str> {
        match self {
            Self::Won(_) => None,
            Self::Lost(_) => Some("conflict"),
            Self::Wrong(_, _, code, _) => Some(code),
        }
    }
}

/// Takes an answer.
pub(super) async fn give(
    console: Console,
    visitor: Visitor,
    Named((run, call)): Named<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let (run, call) = (RunId::new(run), CallId::new(call));
    visitor.asker()?.may(&[Scope::Answer])?;
    visitor.may(&[Scope::Answer], &console.app.store.head(&run).await?.agent)?;
    match came(&console.app, &visitor, &run, &call, &posted).await? {
        Came::Won(closed) if posted.by_script => {
            Ok(Html(closed_card(&run, &call, &closed, Some(true)).into_string()).into_response())
        }
        Came::Won(_) => Ok(Redirect::to(&address(&run, &call)).into_response()),
        Came::Lost(closed) if posted.by_script => {
            let card = closed_card(&run, &call, &closed, Some(false)).into_string();
            Ok((StatusCode::CONFLICT, Html(card)).into_response())
        }
        Came::Lost(closed) => {
            let stands = Stands::Closed(closed);
            let page = whole_page(&console, &visitor, &run, &call, &stands, Some("")).await?;
            Ok((StatusCode::CONFLICT, page).into_response())
        }
        Came::Wrong(_, status, _, why) if posted.by_script => {
            Ok((status, Html(html! { p data-problem { (why) } }.into_string())).into_response())
        }
        Came::Wrong(open, status, _, why) => {
            let stands = Stands::Open(open);
            Ok((status, whole_page(&console, &visitor, &run, &call, &stands, Some(&why)).await?).into_response())
        }
    }
}

async fn came(app: &Arc<App>, visitor: &Visitor, run: &RunId, call: &CallId, posted: &Posted) -> Result<Came, Problem> {
    let open = match look(app, run, call).await? {
        Stands::Open(open) => open,
        Stands::Closed(closed) => return Ok(Came::Lost(closed)),
    };
    let reply = match reply(posted, &open) {
        Ok(reply) => reply,
        Err(why) => return Ok(Came::Wrong(open, StatusCode::UNPROCESSABLE_ENTITY, "answer_invalid", why)),
    };
    // What was seen is what is answered: the page's own binding, not that of now.
    let binding: Binding = serde_json::from_str(posted.need("binding")?)
        .map_err(|_| Problem::bad("no_binding", "the form's binding cannot be read", "load the page again"))?;
    if binding.run_id != *run || binding.call_id != *call {
        return Err(Problem::conflict("binding_differs", "the form is bound to another hold", "load the page again"));
    }
    let answer = HoldAnswer { binding, answer: reply };
    unbroken(noted(app.clone(), visitor.asker()?.clone(), answer, open)).await
}

/// Notes an answer for the audit and gives it; and that it was refused, where it was.
async fn noted(app: Arc<App>, asker: Asker, answer: HoldAnswer, open: Box<Waiting>) -> Result<Came, Problem> {
    let Binding { run_id: run, call_id: call, .. } = &answer.binding;
    let agent = app.store.head(run).await?.agent;
    app.front.note(vec![deed(&app, &asker, &answer, &agent)]).await?;
    let came = tried(&app, run, call, &answer, open).await?;
    if let Some(code) = came.refused() {
        app.note(&asker, &format!("refused: {code}"), run.as_str(), Some(&agent)).await?;
    }
    Ok(came)
}

/// Answers, and again as long as somebody else works on the run just now.
async fn tried(
    app: &Arc<App>,
    run: &RunId,
    call: &CallId,
    answer: &HoldAnswer,
    open: Box<Waiting>,
) -> Result<Came, Problem> {
    for _ in 0..TRIES {
        match once(app, run, call, answer).await {
            Ok(true) => return won(app, run, call, &answer.answer).await,
            Ok(false) => return lost(app, run, call).await,
            Err(why) => match (why.code(), look(app, run, call).await?) {
                (_, Stands::Closed(closed)) => return Ok(Came::Lost(closed)),
                // Somebody answers another call of the run, or this one, just now.
                ("run_leased" | "run_fenced" | "run_conflict" | "hold_settled", Stands::Open(_)) => {
                    tokio::time::sleep(BETWEEN).await;
                }
                (code, Stands::Open(open)) => return Ok(Came::Wrong(open, why.status(), code, told(&why))),
            },
        }
    }
    let why = "The run is being worked on just now. Try again in a few seconds.".to_owned();
    Ok(Came::Wrong(open, StatusCode::CONFLICT, "run_leased", why))
}

/// Answers, and says whether this answer was the first, as soon as that is stored.
async fn once(app: &Arc<App>, run: &RunId, call: &CallId, answer: &HoldAnswer) -> Result<bool, Problem> {
    let head = app.store.head(run).await?;
    let mut any = app.hub.any();
    let resume = Resume { answers: vec![answer.clone()], ..Resume::default() };
    let mut begun = work::resume(app, &head, resume).await?;
    // An end that is here already may say that somebody had said the same before.
    if let Ok(ended) = begun.done.try_recv() {
        return Ok(!ended?.already_answered.contains(call));
    }
    // The answer is admitted, and the run goes on by itself: only the answer is waited for.
    while app.store.hold_closed(run, call).await?.is_none() {
        tokio::select! {
            ended = &mut begun.done => {
                let left = |_| Problem::busy("left", "the work was interrupted; what is stored is kept", 5);
                return Ok(!ended.map_err(left)??.already_answered.contains(call));
            }
            _ = any.changed() => {}
        }
    }
    Ok(true)
}

async fn won(app: &App, run: &RunId, call: &CallId, answer: &HoldReply) -> Result<Came, Problem> {
    let closed = app.store.hold_closed(run, call).await?;
    Ok(Came::Won(closed.unwrap_or_else(|| HoldClosed { call: call.clone(), answer: Some(answer.clone()), at: now() })))
}

async fn lost(app: &App, run: &RunId, call: &CallId) -> Result<Came, Problem> {
    let closed = app.store.hold_closed(run, call).await?;
    Ok(Came::Lost(closed.unwrap_or_else(|| HoldClosed { call: call.clone(), answer: None, at: now() })))
}

/// A problem in words, with what does not fit where there is such.
fn told(why: &Problem) -> String {
    match why.more("issues").and_then(Value::as_str) {
        Some(issues) => issues.to_owned(),
        None => sentence(why.detail()),
    }
}

/// What a form says.
fn reply(posted: &Posted, open: &Waiting) -> Result<HoldReply, String> {
    let words = |name: &str, what: &str| {
        let text = posted.get(name).unwrap_or_default().replace("\r\n", "\n");
        if text.trim().is_empty() { Err(format!("{what} is missing.")) } else { Ok(text) }
    };
    match posted.get("do").unwrap_or_default() {
        "approve" => Ok(HoldReply::Approve { arguments: None }),
        "edit" => {
            let edited = fields::read(posted, &open.schema(), &open.hold.arguments)?;
            issues(open, &edited)?;
            Ok(HoldReply::Approve { arguments: (edited != open.hold.arguments).then_some(edited) })
        }
        "deny" => Ok(HoldReply::Deny { reason: words("reason", "A reason")? }),
        "result" => {
            let text = words("result", "A result")?;
            let value = gesta_run::json::read_strict(&text).unwrap_or(Value::String(text));
            Ok(HoldReply::Result { value })
        }
        "error" => Ok(HoldReply::Error { text: words("error", "The error's text")? }),
        "unknown" => Ok(HoldReply::OutcomeUnknown),
        other => Err(format!("`{other}` is no answer.")),
    }
}

fn issues(open: &Waiting, edited: &gesta_run::json::Object) -> Result<(), String> {
    open.tool.as_ref().map_or(Ok(()), |tool| tool.check(edited))
}

/// Says what is wrong with arguments while they are typed.
pub(super) async fn check(
    console: Console,
    visitor: Visitor,
    Named((run, call)): Named<(String, String)>,
    posted: Posted,
) -> Result<Response, Failed> {
    let run = RunId::new(run);
    visitor.may_look()?;
    visitor.may_see(&console.app.store.head(&run).await?.agent)?;
    let checked = match look(&console.app, &run, &CallId::new(call)).await? {
        Stands::Closed(_) => Err("Somebody else has answered this meanwhile.".to_owned()),
        Stands::Open(open) => {
            let edited = fields::read(&posted, &open.schema(), &open.hold.arguments);
            edited.and_then(|edited| issues(&open, &edited).map(|()| edited != open.hold.arguments))
        }
    };
    let said = match &checked {
        Ok(true) => html! { span.fine { "Fits the tool's schema." } },
        Ok(false) => html! { span.fine { "As the agent wrote it." } },
        Err(why) => html! { span.wrong { (why) } },
    };
    Ok(Html(said.into_string()).into_response())
}
