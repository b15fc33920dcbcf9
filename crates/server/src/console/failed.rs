//! A page in place of one that cannot be shown: what was wrong, and the way out.

use axum::response::{IntoResponse, Response};
use maud::html;

use super::page::{Tab, shell};
use crate::problem::Problem;

/// Why a page cannot be shown.
pub(super) struct Failed(pub(super) Problem);

impl<E: Into<Problem>> From<E> for Failed {
    fn from(why: E) -> Self {
        Self(why.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = self.0.status();
        let title = match status.as_u16() {
            404 => "Not there",
            403 => "Not accepted",
            400..500 => "Cannot be done",
            _ => "Something failed here",
        };
        let body = html! {
            header.top { h1 { (title) } }
            div.empty {
                p.problem data-problem { (sentence(self.0.detail())) }
                p { a.button href="/console" { "To the inbox" } }
            }
        };
        (status, shell(title, Tab::None, None, None, &body)).into_response()
    }
}

/// With a capital letter and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}
