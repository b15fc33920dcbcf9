//! Every answer that a test gets is checked against the OpenAPI document: what it describes is what is answered.

use std::sync::OnceLock;

use http::{Method, header};
use serde_json::{Value, json};

use super::Answer;

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&gesta_server::document()).unwrap())
}

/// Paths that are not described: they do not exist, and nothing but a problem is answered.
pub(crate) fn check(method: &Method, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let fits = |template: &str| {
        let (ours, theirs): (Vec<_>, Vec<_>) = (path.split('/').collect(), template.split('/').collect());
        ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(our, their)| their.starts_with('{') || our == their)
    };
    let paths = document()["paths"].as_object().unwrap();
    let operation =
        paths.iter().find(|(template, _)| fits(template)).and_then(|(_, it)| it.get(method.as_str().to_lowercase()));
    let Some(operation) = operation else {
        assert!(answer.status.is_client_error(), "{method} {path} is not described: {answer:?}");
        return;
    };
    let responses = &operation["responses"];
    let response = responses.get(answer.status.as_str()).or(responses.get("default"));
    let response = response.unwrap_or_else(|| panic!("{method} {path}: {} is not described", answer.status));
    let Some(kind) = answer.headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()) else {
        assert!(answer.body.is_empty() && response.get("content").is_none(), "{method} {path}: {answer:?}");
        return;
    };
    let kind = kind.split(';').next().unwrap();
    let content = response["content"].get(kind);
    let content = content.unwrap_or_else(|| panic!("{method} {path}: {} as {kind} is not described", answer.status));
    if kind.ends_with("json") {
        let schema = json!({ "allOf": [content["schema"]], "components": document()["components"] });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let body = answer.json();
        let issues: Vec<String> =
            validator.iter_errors(&body).map(|it| format!("{}: {it}", it.instance_path())).collect();
        assert!(issues.is_empty(), "{method} {path}: {issues:#?}\n{body:#}");
    }
}
