//! The console: pages for people, made here and sent whole. They work without scripts; `assets/console.js` keeps them
//! fresh. Everything that an agent, a model or a contact wrote is escaped by the templates.

mod assets;
mod door;
mod failed;
mod link;
mod page;
mod parts;
mod who;

mod answer;
mod fields;
mod hold;
mod inbox;
mod rules;

mod conversations;
mod document;
mod run;
mod spans;
mod talk;
mod turn;

mod chart;
mod facts;
mod runs;

mod agent;
mod agents;
mod chat;

mod news;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::FromRequestParts;
use axum::response::Redirect;
use axum::routing::{get, post};
use gesta_run::Timestamp;
use http::request::Parts;

use crate::app::App;
use crate::apps::{Apps, Mine};
use failed::Failed;

pub(crate) use facts::Known;
pub(crate) use who::{is_path, session, session_of};

/// What every page works with: the tenant of whoever looks.
#[derive(Clone)]
struct Console {
    app: Arc<App>,
}

impl<S: Send + Sync> FromRequestParts<S> for Console {
    type Rejection = Failed;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failed> {
        let Mine(app) = Mine::from_request_parts(parts, state).await.map_err(Failed)?;
        Ok(Self { app })
    }
}

/// All paths of the console.
pub(crate) fn routes() -> Router<Arc<Apps>> {
    Router::new()
        .route("/", get(|| async { Redirect::to("/console") }))
        .route("/console", get(inbox::page))
        .route("/console/sign-in", get(door::page).post(door::enter))
        .route("/console/sign-out", post(door::leave))
        .route("/console/link/{link}", get(link::page).post(link::enter))
        .route("/console/news", get(news::listen))
        .route("/console/holds/{run}/{call}", get(hold::page).post(answer::give))
        .route("/console/holds/{run}/{call}/check", post(answer::check))
        .route("/console/runs", get(runs::page))
        .route("/console/runs/{run}", get(run::page))
        .route("/console/runs/{run}/scene", get(run::scene))
        .route("/console/runs/{run}/cancel", post(run::cancel))
        .route("/console/conversations", get(conversations::list))
        .route("/console/conversations/{name}", get(conversations::page))
        .route("/console/conversations/{name}/tools", get(document::page).post(document::change))
        .route("/console/agents", get(agents::page))
        .route("/console/agents/{agent}", get(agent::page))
        .route("/console/agents/{agent}/try", get(chat::page).post(chat::say))
        .route("/console/assets/{file}", get(assets::file))
        .layer(axum::middleware::from_fn(who::guard))
}

/// Now, by the server's clock.
fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp(i64::try_from(now).unwrap_or(i64::MAX))
}
