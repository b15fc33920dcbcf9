//! Conversations: list, read with their history, erase.

use axum::response::{IntoResponse, Response};
use gesta_run::{ConversationId, Message};
use gesta_store::ConversationHead;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{json, runs::page_of};
use crate::apps::Mine;
use crate::ask::Asker;
use crate::described::ConversationHeadBody;
use crate::extract::{Asked, Named};
use crate::keys::Scope;
use crate::problem::{Problem, ProblemBody};
use crate::wire::Page;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationsAsked {
    /// How many at most: 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// List conversations, those that changed last first.
#[utoipa::path(
    get, path = "/v1/conversations", operation_id = "list_conversations", tag = "conversations", params(ConversationsAsked),
    responses(
        (status = 200, description = "The list", body = Page<ConversationHeadBody>, links(
            ("the_last" = (
                operation_id = "read_conversation",
                parameters(("conversation" = "$response.body#/items/0/conversation"))
            )),
            ("erase_the_last" = (
                operation_id = "erase_conversation",
                parameters(("conversation" = "$response.body#/items/0/conversation"))
            )),
        )),
        (status = "default", description = "Not listed", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list(
    Mine(app): Mine,
    asker: Asker,
    Asked(asked): Asked<ConversationsAsked>,
) -> Result<Response, Problem> {
    asker.may(&[Scope::Read])?;
    let mut items = app.store.conversations(page_of(asked.limit)?).await?;
    items.retain(|head| asker.knows(&head.agent));
    Ok(json(&Page { items, next: None }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct HistoryAsked {
    /// How many of the last turns: 50 by default.
    #[param(minimum = 1, maximum = 1000)]
    turns: Option<u32>,
}

/// A conversation and its last turns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationPage {
    #[serde(flatten)]
    #[schema(value_type = ConversationHeadBody, inline)]
    head: ConversationHead,
    /// Its last turns, the oldest of them first: for each the messages in order.
    #[schema(value_type = Vec<Vec<Object>>)]
    history: Vec<Vec<Message>>,
}

/// Read a conversation.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}", operation_id = "read_conversation", tag = "conversations",
    params(("conversation" = String, Path, description = "Its name"), HistoryAsked),
    responses(
        (status = 200, description = "The conversation", body = ConversationPage),
        (status = "default", description = "Not read", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn read(
    Mine(app): Mine,
    asker: Asker,
    Named(name): Named<String>,
    Asked(asked): Asked<HistoryAsked>,
) -> Result<Response, Problem> {
    asker.may(&[Scope::Read])?;
    let turns = page_of(asked.turns)?;
    let conversation = ConversationId::new(name);
    let head = app.store.conversation(&conversation).await?.ok_or_else(|| none(&conversation))?;
    asker.may_with(&[Scope::Read], &head.agent)?;
    let history = app.store.history(&conversation, turns).await?;
    let history = history.into_iter().map(|turn| turn.messages).collect();
    Ok(json(&ConversationPage { head, history }))
}

/// Erase a conversation: its history, runs, events, holds and document.
///
/// A run that goes on there is cut off; what it does from then on is not kept.
#[utoipa::path(
    delete, path = "/v1/conversations/{conversation}", operation_id = "erase_conversation", tag = "conversations",
    params(("conversation" = String, Path, description = "Its name")),
    responses(
        (status = 204, description = "Nothing of it is left"),
        (status = "default", description = "Not erased", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn erase(Mine(app): Mine, asker: Asker, Named(name): Named<String>) -> Result<Response, Problem> {
    asker.may(&[Scope::Admin])?;
    let conversation = ConversationId::new(name);
    let head = app.store.conversation(&conversation).await?.ok_or_else(|| none(&conversation))?;
    asker.may_with(&[Scope::Admin], &head.agent)?;
    // The name may tell who it was: of what is erased only its hash stays.
    let subject = gesta_run::json::sha256_hex(conversation.as_str().as_bytes());
    app.note(&asker, "erase", &subject, Some(&head.agent)).await?;
    if app.store.erase(&conversation).await? {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(none(&conversation))
    }
}

fn none(conversation: &ConversationId) -> Problem {
    let detail = format!("there is no conversation `{conversation}`");
    Problem::missing("no_such_conversation", detail, "GET /v1/conversations lists those there are")
}
