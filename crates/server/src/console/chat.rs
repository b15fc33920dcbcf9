//! A box to try an agent in: what it says and does is shown as it happens.

use axum::response::{IntoResponse, Redirect, Response};
use gesta_run::{ContactId, ConversationId, Part};
use gesta_runtime::Ask;
use maud::html;
use serde::Deserialize;

use super::failed::Failed;
use super::page::{Page, Tab};
use super::parts::{agent_address, conversation_address, step, token, visible};
use super::who::{Posted, Visitor};
use super::{Console, now};
use crate::extract::{Asked, Named};
use crate::follow::{self, Until};
use crate::keys::Scope;
use crate::problem::Problem;
use crate::work;

/// How long the name of a conversation may be, in bytes.
const NAME_BYTES_MAX: usize = 200;

#[derive(Debug, Deserialize)]
pub(super) struct TryAsked {
    conversation: Option<String>,
}

/// The page.
pub(super) async fn page(
    console: Console,
    visitor: Visitor,
    Named(name): Named<String>,
    Asked(asked): Asked<TryAsked>,
) -> Result<Response, Failed> {
    visitor.may(&[Scope::Run], &name)?;
    console.app.agent(&name)?;
    let conversation = asked.conversation.unwrap_or_else(|| format!("try/{name}/{}", now().0));
    let body = html! {
        header.top {
            p.crumb { a href=(agent_address(&name)) { (visible(&name)) } }
            h1 { "Try " (visible(&name)) }
            p.about { "This is the agent itself: its tools do what they do. The talk is kept as "
                a href=(conversation_address(&conversation)) data-conversation { (visible(&conversation)) } "." }
        }
        section.chat aria-label="Talk" {
            div.log role="log" aria-label="Talk" { ol.talk #chat {} }
            p.empty #chat-none { "Say something, and see what it says, calls and waits for." }
            form method="post" action=(format!("{}/try", agent_address(&name))) data-chat="chat" {
                (token(&visitor.token))
                input type="hidden" name="conversation" value=(conversation);
                label for="say" { "Message" }
                textarea id="say" name="say" rows="2" required {}
                div.send { button.primary { "Send" } p.problem role="alert" data-problem hidden {} }
            }
        }
    };
    Ok(Page {
        title: &format!("Try {name}"),
        tab: Tab::Agents,
        live: visitor.sees(&name).then(|| "of=inbox".to_owned()),
        body,
    }
    .answer(&console, &visitor)
    .await?)
}

/// Says something to the agent. The page's script is told what happens, event by event; others see the conversation.
pub(super) async fn say(
    console: Console,
    visitor: Visitor,
    Named(name): Named<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    visitor.may(&[Scope::Run], &name)?;
    let agent = console.app.agent(&name)?.agent.agent().clone();
    let conversation = posted.need("conversation")?;
    if conversation.is_empty() || conversation.len() > NAME_BYTES_MAX || conversation.chars().any(char::is_control) {
        let detail = "the conversation's name cannot be used";
        return Err(Failed(Problem::bad("name_invalid", detail, "load the page again")));
    }
    let ask = Ask {
        input: vec![Part::text(posted.need("say")?.replace("\r\n", "\n"))],
        conversation: Some(ConversationId::new(conversation)),
        contact: Some(ContactId::new("console")),
        ..Ask::default()
    };
    let begun = work::start(&console.app, &agent, ask).await?;
    if posted.by_script {
        return Ok(follow::stream(&console.app, visitor.asker()?, begun.run, None, Until::Ended));
    }
    begun.end().await?;
    let to = match visitor.has(Scope::Read) {
        true => conversation_address(conversation),
        false => format!("{}/try?conversation={}", agent_address(&name), step(conversation)),
    };
    Ok(Redirect::to(&to).into_response())
}
