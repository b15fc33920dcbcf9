//! What pages load: one style sheet, one script, one icon. All of it is in the program.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use std::sync::LazyLock;

/// A file in the program.
pub(super) struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
    tag: LazyLock<String>,
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: $kind,
            text: include_str!(concat!("../../assets/", $name)),
            tag: LazyLock::new(|| tag_of(include_str!(concat!("../../assets/", $name)))),
        }
    };
}

static ASSETS: [Asset; 3] = [
    asset!("console.css", "text/css; charset=utf-8"),
    asset!("console.js", "text/javascript; charset=utf-8"),
    asset!("icon.svg", "image/svg+xml"),
];

fn tag_of(text: &str) -> String {
    gesta_run::json::sha256_hex(text.as_bytes())[..16].to_owned()
}

/// The address of a file, which changes with its content: browsers may keep it for good.
pub(super) fn address(name: &str) -> String {
    let tag = ASSETS.iter().find(|asset| asset.name == name).map_or("", |asset| asset.tag.as_str());
    format!("/console/assets/{name}?{tag}")
}

/// Gives a file.
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let tag = format!("\"{}\"", *asset.tag);
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|it| it.as_bytes() == tag.as_bytes());
    let kept = [
        (header::ETAG, tag),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable".to_owned()),
        (header::CONTENT_TYPE, asset.kind.to_owned()),
    ];
    if known { (StatusCode::NOT_MODIFIED, kept).into_response() } else { (kept, asset.text).into_response() }
}
