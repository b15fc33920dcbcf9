//! The door: where the server has keys, whoever shows one comes in, for some hours.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderValue, Method, StatusCode, header};
use maud::html;
use serde::Deserialize;
use url::form_urlencoded;

use super::Console;
use super::failed::{Failed, sentence};
use super::page::{Tab, shell};
use super::parts::token;
use super::who::{Posted, Visitor, is_by_script, session_header};
use crate::apps::Apps;
use crate::ask::Asker;
use crate::extract::Asked;
use crate::keys::{self, LINK_PATH};
use crate::problem::Problem;

const ADDRESS: &str = "/console/sign-in";

/// What strangers are shown: the door, and what it looks like.
pub(super) fn is_open(path: &str) -> bool {
    let of_link = path.strip_prefix(LINK_PATH).is_some_and(|rest| rest.starts_with('/'));
    path == "/" || path == ADDRESS || of_link || path.starts_with("/console/assets/")
}

/// What a stranger gets for anything else.
pub(super) fn closed(request: &Request) -> Response {
    if *request.method() != Method::GET || is_by_script(request.headers()) {
        let detail = "you are not signed in any more; load the page again";
        return Failed(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail, "sign in")).into_response();
    }
    let to = request.uri().path_and_query().map_or("/console", |it| it.as_str());
    let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
    Redirect::to(&format!("{ADDRESS}?to={to}")).into_response()
}

/// Where somebody wanted to go: a page of the console, and nothing else.
fn place(to: Option<&str>) -> &str {
    let usable = |to: &&str| {
        (*to == "/console" || to.starts_with("/console/") || to.starts_with("/console?")) && !to.contains('\\')
    };
    to.filter(usable).unwrap_or("/console")
}

#[derive(Debug, Deserialize)]
pub(super) struct DoorAsked {
    to: Option<String>,
}

/// The page.
pub(super) async fn page(visitor: Visitor, Asked(asked): Asked<DoorAsked>) -> Response {
    if visitor.asker().is_ok() {
        return Redirect::to(place(asked.to.as_deref())).into_response();
    }
    door(&visitor, place(asked.to.as_deref()), None)
}

fn door(visitor: &Visitor, to: &str, wrong: Option<&str>) -> Response {
    let body = html! {
        header.top {
            h1 { "Sign in" }
            p.about { "This console opens with an API key. " code { "gesta keys new NAME --scope answer --scope read" } " makes one, and "
                code { "gesta keys link" } " makes a link that lets you in without typing it." }
        }
        form.card.door method="post" action=(ADDRESS) {
            (token(&visitor.token))
            input type="hidden" name="to" value=(to);
            div.field {
                label for="key" { "Key" }
                input id="key" name="key" type="password" required autocomplete="current-password" spellcheck="false"
                    aria-describedby=[wrong.map(|_| "wrong")] aria-invalid=[wrong.map(|_| "true")];
            }
            @if let Some(wrong) = wrong { p.problem id="wrong" role="alert" data-problem { (wrong) } }
            div.send { button.primary { "Sign in" } span.faint { "for twelve hours, in this browser" } }
        }
    };
    shell("Sign in", Tab::None, None, None, &body)
}

/// Takes a key.
pub(super) async fn enter(State(apps): State<Arc<Apps>>, visitor: Visitor, posted: Posted) -> Result<Response, Failed> {
    apps.rates.check_sign_in(&visitor.arrived.from)?;
    let to = place(posted.get("to")).to_owned();
    let from = visitor.arrived.from.clone();
    let asker = match keys::of_key(&apps.first, posted.need("key")?.trim(), from).await {
        Ok(asker) => asker,
        Err(why) if why.status() == StatusCode::UNAUTHORIZED => {
            return Ok((StatusCode::UNAUTHORIZED, door(&visitor, &to, Some(&sentence(why.detail())))).into_response());
        }
        Err(why) => return Err(Failed(why)),
    };
    let_in(&apps, &asker, "sign_in", &to, posted.is_safe).await
}

/// Begins somebody's session, and notes it in their tenant's audit.
pub(super) async fn let_in(apps: &Apps, asker: &Asker, how: &str, to: &str, is_safe: bool) -> Result<Response, Failed> {
    let app = apps.of(&asker.tenant).await?;
    app.note(asker, how, "console", None).await?;
    let session = session_header(&app, Some(asker), is_safe).await?;
    let to = if to == "/console" { Visitor::home(asker) } else { to };
    Ok(with(session, Redirect::to(to)))
}

/// Ends a session.
pub(super) async fn leave(console: Console, posted: Posted) -> Result<Response, Failed> {
    let session = session_header(&console.app, None, posted.is_safe).await?;
    Ok(with(session, Redirect::to(ADDRESS)))
}

fn with(session: HeaderValue, to: Redirect) -> Response {
    let mut response = to.into_response();
    response.headers_mut().append(header::SET_COOKIE, session);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for (to, place_of) in [
            ("/console/runs?agent=desk", "/console/runs?agent=desk"),
            ("/console?after=x", "/console?after=x"),
            ("//evil.test/console", "/console"),
            ("https://evil.test", "/console"),
            ("/consolex", "/console"),
            ("/console/\\evil.test", "/console"),
        ] {
            assert_eq!(place(Some(to)), place_of, "{to}");
        }
    }
}
