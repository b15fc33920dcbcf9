//! The audit: who answered what, in a chain that shows every change.

use axum::response::Response;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{json, runs::page_of};
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::AuditBody;
use crate::extract::Asked;
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::wire::Page;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditAsked {
    /// How many at most: 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only those behind this place: `next` of the page before.
    after: Option<u64>,
}

/// Read the audit, the oldest first.
///
/// Each record names the hash of the one before: `hash` is SHA-256 over the canonical JSON (keys sorted, no white space)
/// of `{"deed": …, "previous": …, "seq": …}`, where the deed is the rest of the record. A key for some agents is shown what
/// is about them alone, which is no whole chain.
#[utoipa::path(
    get, path = "/v1/audit", operation_id = "read_audit", tag = "server", params(AuditAsked),
    responses(
        (status = 200, description = "A page", body = Page<AuditBody>),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(Mine(app): Mine, asker: Asker, Asked(asked): Asked<AuditAsked>) -> Result<Response, Problem> {
    asker.may(&[Scope::Admin])?;
    let limit = page_of(asked.limit)?;
    let mut items = app.front.audit(asked.after.unwrap_or_default(), limit).await?;
    let full = items.len() == limit as usize;
    let next = items.last().filter(|_| full).map(|last| last.seq.to_string());
    items.retain(|record| match &record.deed.agent {
        Some(agent) => asker.knows(agent),
        None => asker.knows_all(None),
    });
    Ok(json(&Page { items, next }))
}
