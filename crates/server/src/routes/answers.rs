//! Answers to holds, and going on with a run that can.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::response::Response;
use gesta_run::{Accepts, CallId, HoldAnswer, HoldReply, RunId};
use gesta_runtime::{Resume, Resumed};
use gesta_store::{Deed, HoldFilter, OpenHold, RunHead};
use http::HeaderMap;

use super::{head_of, json, wants_events};
use crate::app::App;
use crate::apps::{Apps, Mine};
use crate::ask::Asker;
use crate::described::{ResumedBody, StreamEventBody};
use crate::extract::{Json, Named};
use crate::follow::{self, Until};
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::requests;
use crate::told::Mark;
use crate::wire::AnswersBody;
use crate::work::{self, Begun};

/// Answer holds.
///
/// All answers of a request count, or none. The first answer to a hold counts: the same again runs nothing and is listed
/// in `already_answered`, another one is a conflict (409). The run goes on when its last held call is answered. Without
/// answers a run goes on that ended for want of trips or of its model, or that was left by a process that died.
#[utoipa::path(
    post, path = "/v1/runs/{run}/answers", operation_id = "answer_holds", tag = "runs",
    params(("run" = String, Path, description = "The run's id")),
    request_body = AnswersBody,
    responses(
        (status = 200, description = "The run as it stands, or its events from here on", content(
            (ResumedBody = "application/json"), (StreamEventBody = "text/event-stream")
        ), links(
            ("its_state" = (operation_id = "read_run", parameters(("run" = "$request.path.run")))),
            ("its_events" = (operation_id = "follow_run", parameters(("run" = "$request.path.run")))),
        )),
        (status = "default", description = "Nothing was recorded and nothing has run", body = ProblemBody,
            content_type = "application/problem+json"),
    )
)]
pub(crate) async fn answer(
    Mine(app): Mine,
    asker: Asker,
    Named(run): Named<String>,
    headers: HeaderMap,
    State(apps): State<Arc<Apps>>,
    request: Request,
) -> Result<Response, Problem> {
    let run = RunId::new(run);
    let head = head_of(&app, &asker, &[Scope::Answer, Scope::Run], &run).await?;
    let Json(body) = Json::<AnswersBody>::from_request(request, &apps).await?;
    let open = open_holds(&app, &run).await?;
    let ids: Vec<CallId> = open.iter().map(|open| open.hold.id.clone()).collect();
    let answers = body.answers.into_iter().enumerate().map(|(at, answer)| answer.answer(at, &run, &ids));
    let answers = answers.collect::<Result<Vec<_>, Problem>>()?;
    if !asker.has(&[Scope::Answer]) {
        only_own_tools(&asker, &answers, &open)?;
    }
    let resume = Resume { answers, trips_max: body.trips_max, force: body.force, ..Resume::default() };
    let begun = unbroken(admit(app.clone(), asker.clone(), head.clone(), resume)).await?;
    if body.stream || wants_events(&headers) {
        let seen = Mark { event: head.events.saturating_sub(1), part: Mark::LAST };
        return Ok(follow::stream(&app, &asker, begun.run, Some(seen), Until::Quiet));
    }
    Ok(json(&begun.end().await?))
}

/// Notes answers for the audit and gives them; and that they were refused, where they were.
async fn admit(app: Arc<App>, asker: Asker, head: RunHead, resume: Resume) -> Result<Begun<Resumed>, Problem> {
    let deeds = resume.answers.iter().map(|answer| deed(&app, &asker, answer, &head.agent)).collect::<Vec<_>>();
    app.front.note(deeds).await?;
    let begun = work::resume(&app, &head, resume).await;
    if let Err(why) = &begun {
        app.note(&asker, &format!("refused: {}", why.code()), head.run.as_str(), Some(&head.agent)).await?;
    }
    begun
}

/// Does to the end what was begun, also when whoever asked for it goes away meanwhile.
pub(crate) async fn unbroken<T: Send + 'static>(
    work: impl Future<Output = Result<T, Problem>> + Send + 'static,
) -> Result<T, Problem> {
    tokio::spawn(requests::within(work))
        .await
        .unwrap_or_else(|_| Err(Problem::internal("the server met a bug of its own")))
}

async fn open_holds(app: &App, run: &RunId) -> Result<Vec<OpenHold>, Problem> {
    let filter = HoldFilter { run: Some(run.clone()), ..HoldFilter::default() };
    Ok(app.store.holds(&filter).await?)
}

/// Who may only run agents hands in results of its own tools, and decides on nothing else.
fn only_own_tools(asker: &Asker, answers: &[HoldAnswer], open: &[OpenHold]) -> Result<(), Problem> {
    let own = |answer: &HoldAnswer| {
        let hold = open.iter().find(|open| open.hold.id == answer.binding.call_id);
        let decides = matches!(answer.answer, HoldReply::Approve { .. } | HoldReply::Deny { .. });
        !decides && hold.is_none_or(|open| open.hold.accepts == Accepts::External)
    };
    if answers.iter().all(own) { Ok(()) } else { asker.may(&[Scope::Answer]) }
}

/// What the audit keeps of an answer: everything but what it says.
pub(crate) fn deed(app: &App, asker: &Asker, answer: &HoldAnswer, agent: &str) -> Deed {
    let binding = &answer.binding;
    let (what, edited) = match &answer.answer {
        HoldReply::Approve { arguments: Some(arguments) } => ("approve_edited", Some(arguments)),
        HoldReply::Approve { arguments: None } => ("approve", None),
        HoldReply::Deny { .. } => ("deny", None),
        HoldReply::Result { .. } => ("result", None),
        HoldReply::Error { .. } => ("error", None),
        HoldReply::OutcomeUnknown => ("outcome_unknown", None),
    };
    let fingerprint = edited.map_or_else(
        || binding.fingerprint.clone(),
        |arguments| gesta_run::json::fingerprint(&binding.tool, arguments),
    );
    Deed {
        call: Some(binding.call_id.to_string()),
        tool: Some(binding.tool.clone()),
        fingerprint: Some(fingerprint),
        config: Some(binding.config_version.clone()),
        ..app.deed(asker, what, binding.run_id.as_str(), Some(agent))
    }
}
