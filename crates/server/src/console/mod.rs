//! The console: pages for people, made here and sent whole. They work without scripts; `assets/console.js` keeps them
//! fresh. Everything that an agent, a model or a contact wrote is escaped by the templates.

mod assets;
mod door;
mod failed;
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
use axum::response::Redirect;
use axum::routing::{get, post};
use gesta_run::Timestamp;

use crate::app::App;

pub(crate) use who::{is_path, session};

/// What every page works with.
struct Console {
    app: Arc<App>,
    facts: facts::Known,
}

/// All paths of the console.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    let console = Arc::new(Console { app: app.clone(), facts: facts::Known::default() });
    Router::new()
        .route("/", get(|| async { Redirect::to("/console") }))
        .route("/console", get(inbox::page))
        .route("/console/sign-in", get(door::page).post(door::enter))
        .route("/console/sign-out", post(door::leave))
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
        .with_state(console)
}

/// Now, by the server's clock.
fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Timestamp(i64::try_from(now).unwrap_or(i64::MAX))
}
