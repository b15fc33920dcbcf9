//! The link that lets somebody in once. Looking at it uses nothing up, so that programs which visit the links of a mail do
//! not; only the button behind it does.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use maud::html;

use super::door;
use super::failed::Failed;
use super::page::{Tab, shell};
use super::parts::{step, token};
use super::who::{Posted, Visitor};
use crate::apps::Apps;
use crate::extract::Named;
use crate::keys::{self, LINK_PATH, Link};

/// The page with the button, or why there is none.
pub(super) async fn page(
    State(apps): State<Arc<Apps>>,
    visitor: Visitor,
    Named(link): Named<String>,
) -> Result<Response, Failed> {
    Ok(match keys::of_link(&apps.first, &link).await? {
        Link::Good { .. } => button(&visitor, &link),
        other => refused(&other),
    })
}

fn button(visitor: &Visitor, link: &str) -> Response {
    let body = html! {
        header.top {
            h1 { "Sign in" }
            p.about { "This link lets you in once. It was made for you: go on only if you asked for it." }
        }
        form.card.door method="post" action=(format!("{LINK_PATH}/{}", step(link))) {
            (token(&visitor.token))
            div.send { button.primary { "Sign in" } span.faint { "for twelve hours, in this browser" } }
        }
    };
    shell("Sign in", Tab::None, None, None, &body)
}

fn refused(link: &Link) -> Response {
    let (status, why) = match link {
        Link::Used => (StatusCode::GONE, "This link was used already. It lets in once."),
        Link::Expired => (StatusCode::GONE, "This link has expired. It was good for ten minutes."),
        Link::Good { .. } | Link::Unknown => (StatusCode::NOT_FOUND, "This link lets nobody in: it is not known here."),
    };
    let body = html! {
        header.top { h1 { "No way in" } }
        div.empty {
            p.problem data-problem { (why) }
            p { code { "gesta keys link" } " makes another one. If it was not you who used it, take its key back with "
                code { "gesta keys revoke" } "." }
            p { a.button href="/console/sign-in" { "Sign in with a key" } }
        }
    };
    (status, shell("No way in", Tab::None, None, None, &body)).into_response()
}

/// Uses the link up.
pub(super) async fn enter(
    State(apps): State<Arc<Apps>>,
    visitor: Visitor,
    Named(link): Named<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    let from = &visitor.arrived.from;
    apps.rates.check_sign_in(from)?;
    let app = &apps.first;
    let (id, to) = match keys::of_link(app, &link).await? {
        Link::Good { id, to } => (id, to),
        other => {
            tracing::warn!(%from, security = true, "a link that lets nobody in was used");
            return Ok(refused(&other));
        }
    };
    // Of those who come at once, one is let in.
    if !app.ring.revoke_key(&id, app.now()).await? {
        return Ok(refused(&Link::Used));
    }
    match keys::of_id(app, &to, from).await? {
        Some(asker) => door::let_in(&apps, &asker, "sign_in_by_link", "/console", posted.is_safe).await,
        None => Ok(refused(&Link::Unknown)),
    }
}
