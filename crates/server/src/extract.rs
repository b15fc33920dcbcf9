//! What a request says, read strictly: whatever cannot be used is told with its place, as a problem document.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts;
use http::{StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::apps::Apps;
use crate::problem::Problem;

/// A body of JSON. An empty one counts as `{}`.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<Apps>> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, apps: &Arc<Apps>) -> Result<Self, Problem> {
        let limits = &apps.first.limits;
        let kind = request.headers().get(header::CONTENT_TYPE).map(|it| it.to_str().unwrap_or_default().to_owned());
        let bytes = body_of(request.into_body(), limits.body_bytes_max).await?;
        if bytes.is_empty() {
            return read(b"{}", limits.depth_max).map(Self);
        }
        let is_json =
            |kind: &str| kind.split(';').next().is_some_and(|it| it.trim().eq_ignore_ascii_case("application/json"));
        if !kind.as_deref().is_some_and(is_json) {
            let help = "send JSON, with the header `content-type: application/json`";
            let detail = format!("the body is `{}`", kind.as_deref().unwrap_or("of no type"));
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail, help));
        }
        read(&bytes, limits.depth_max).map(Self)
    }
}

/// The whole body, where it is not too large.
pub(crate) async fn body_of(body: Body, bytes_max: usize) -> Result<bytes::Bytes, Problem> {
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(why) if why.downcast_ref::<LengthLimitError>().is_some() => {
            let detail = format!("the body has more than {bytes_max} bytes");
            let help = "send less; pictures and files can be named by `url`";
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail, help)
                .with("bytes_max", bytes_max))
        }
        Err(_) => Err(Problem::bad("body_broken", "the body ended before it was whole", "send it again")),
    }
}

/// Reads JSON without repeated keys, of limited depth.
fn read<T: DeserializeOwned>(bytes: &[u8], depth_max: usize) -> Result<T, Problem> {
    let help = "/openapi.json describes what is taken";
    let bad = |why: String| Problem::bad("json_invalid", format!("the body cannot be used: {why}"), help);
    if gesta_run::json::depth(bytes) > depth_max {
        return Err(Problem::bad(
            "too_deep",
            format!("the body is nested more than {depth_max} levels deep"),
            "make it flatter",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|why| bad(why.to_string()))?;
    let value = gesta_run::json::read_strict(text).map_err(|why| bad(why.to_string()))?;
    serde_json::from_value(value).map_err(|why| bad(why.to_string()))
}

/// The parameters behind the `?`.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let asked = Query::<T>::try_from_uri(&parts.uri);
        let help = "/openapi.json lists the parameters";
        asked.map(|Query(asked)| Self(asked)).map_err(|why| Problem::bad("query_invalid", why.body_text(), help))
    }
}

/// The named parts of the path.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = Path::<T>::from_request_parts(parts, state).await;
        let help = "write names percent-encoded, in UTF-8";
        named.map(|Path(named)| Self(named)).map_err(|why| Problem::bad("path_invalid", why.body_text(), help))
    }
}

/// Where a listing goes on, as clients are given it.
pub(crate) fn cursor_text(cursor: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor).unwrap_or_default())
}

/// The other way round.
pub(crate) fn cursor_of<T: DeserializeOwned>(text: Option<&str>) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let read = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let wrong =
        || Problem::bad("cursor_invalid", "`after` is none that this server gave", "use `next` of the page before");
    read.map(Some).ok_or_else(wrong)
}
