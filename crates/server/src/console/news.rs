//! Tells open pages that there is something new; they fetch it themselves.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use gesta_run::{ConversationId, RunId};
use gesta_store::{HoldFilter, RunFilter};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::Console;
use super::failed::Failed;
use super::page::{COUNTED_MAX, count_text};
use super::who::Visitor;
use crate::extract::Asked;
use crate::keys::{self, Scope};
use crate::problem::Problem;

/// How often is looked without being told: another process may have changed something.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// What comes close together is told once.
const TOGETHER: Duration = Duration::from_millis(60);
/// How long is told at most: whoever comes back shows anew who they are.
const LISTENS_FOR: Duration = Duration::from_secs(3_600);
/// How many runs are looked at.
const LOOKED_AT: u32 = 50;

/// What a page shows.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Of {
    Inbox,
    Run,
    Runs,
    Conversation,
    Conversations,
}

#[derive(Debug, Deserialize)]
pub(super) struct NewsAsked {
    of: Of,
    #[serde(default)]
    name: String,
}

/// Tells whenever what a page shows has changed.
pub(super) async fn listen(
    console: Console,
    visitor: Visitor,
    Asked(asked): Asked<NewsAsked>,
) -> Result<Response, Failed> {
    may(&console, &visitor, &asked).await?;
    let (tell, told) = mpsc::channel(4);
    tokio::spawn(watch(console, visitor, asked, tell));
    let events = futures_util::stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new()).into_response();
    response.headers_mut().insert("x-accel-buffering", http::HeaderValue::from_static("no"));
    Ok(response)
}

/// They must be allowed to see what the page shows.
async fn may(console: &Console, visitor: &Visitor, asked: &NewsAsked) -> Result<(), Problem> {
    let reads = [Scope::Read];
    match asked.of {
        Of::Inbox => visitor.may_look(),
        Of::Runs | Of::Conversations => visitor.asker()?.may(&reads),
        Of::Run => {
            visitor.asker()?.may(&reads)?;
            visitor.may(&reads, &console.app.store.head(&RunId::new(asked.name.as_str())).await?.agent)
        }
        Of::Conversation => {
            visitor.asker()?.may(&reads)?;
            let head = console.app.store.conversation(&ConversationId::new(asked.name.as_str())).await?;
            head.map_or(Ok(()), |head| visitor.may(&reads, &head.agent))
        }
    }
}

type Told = Result<Event, std::convert::Infallible>;

async fn watch(console: Console, visitor: Visitor, asked: NewsAsked, tell: mpsc::Sender<Told>) {
    let mut any = console.app.hub.any();
    let mut last = None;
    let ends = tokio::time::Instant::now() + LISTENS_FOR;
    loop {
        any.mark_unchanged();
        match look(&console, &visitor, &asked).await {
            Ok(now) if last.as_ref() != Some(&now) => {
                let data = json!({ "version": format!("{:x}", now.0), "waiting": now.1, "count": count_text(now.1) });
                if tell.send(Ok(Event::default().event("changed").data(data.to_string()))).await.is_err() {
                    return;
                }
                last = Some(now);
            }
            Ok(_) => {}
            Err(why) => tracing::debug!(code = why.code(), "the console cannot look for news"),
        }
        tokio::select! {
            changed = tokio::time::timeout(LOOK_EVERY, any.changed()) => {
                if matches!(changed, Ok(Ok(()))) {
                    tokio::time::sleep(TOGETHER).await;
                }
            }
            () = tell.closed() => return,
            () = tokio::time::sleep_until(ends) => return,
            () = gone(&console, &visitor) => return,
            () = console.app.works.stopping() => return,
        }
    }
}

/// Ready when they may look no longer.
async fn gone(console: &Console, visitor: &Visitor) {
    if let Ok(asker) = visitor.asker() {
        keys::taken_back(&console.app, asker).await;
    }
}

/// What stands for what the page shows, and how many holds wait.
async fn look(console: &Console, visitor: &Visitor, asked: &NewsAsked) -> Result<(u64, usize), Problem> {
    let store = &console.app.store;
    let mut hasher = DefaultHasher::new();
    let filter = HoldFilter { agent: visitor.only_agent(), limit: COUNTED_MAX, ..HoldFilter::default() };
    let mut holds = store.holds(&filter).await?;
    holds.retain(|open| visitor.sees(&open.agent));
    match asked.of {
        Of::Inbox => {
            for open in &holds {
                (&open.hold.binding.run_id, &open.hold.id, format!("{:?}", open.hold.state)).hash(&mut hasher);
            }
        }
        Of::Run => store.head(&RunId::new(asked.name.as_str())).await?.events.hash(&mut hasher),
        Of::Runs | Of::Conversation => {
            let named = matches!(asked.of, Of::Conversation);
            let conversation = named.then(|| ConversationId::new(asked.name.as_str()));
            let filter = RunFilter { conversation, limit: LOOKED_AT, ..RunFilter::default() };
            for head in store.runs(&filter).await?.into_iter().filter(|head| visitor.knows(&head.agent)) {
                (head.run, head.events).hash(&mut hasher);
            }
        }
        Of::Conversations => {
            let all = store.conversations(LOOKED_AT).await?;
            for head in all.into_iter().filter(|head| visitor.knows(&head.agent)) {
                (head.conversation, head.updated_at.0, head.turns).hash(&mut hasher);
            }
        }
    }
    Ok((hasher.finish(), holds.len()))
}
