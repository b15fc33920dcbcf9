//! The tools of a conversation's document: who wrote each, its source, and switching one off.

use axum::response::{IntoResponse, Redirect, Response};
use gesta_document::{AddedTool, Author, SWITCHED_OFF};
use gesta_run::RunId;
use gesta_store::Deed;
use maud::{Markup, html};

use super::failed::Failed;
use super::page::{Page, Tab, empty};
use super::parts::{badge, conversation_address, moment, run_address, short, token, visible};
use super::who::{Posted, Visitor};
use super::{Console, now};
use crate::documents::Kept;
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::Problem;

/// The page of a document's tools.
pub(super) async fn page(console: Console, visitor: Visitor, Named(name): Named<String>) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Read])?;
    let kept = Kept::read(&console.app, &name).await?;
    visitor.may(&[Scope::Read], &kept.agent)?;
    let body = html! {
        header.top {
            p.crumb { a href=(conversation_address(&name)) { (visible(&name)) } }
            h1 { "Tools of the document" }
            p.about { "Those that were added since the agent's file, which is version " (kept.version) " here. A tool reaches the "
                "world by grants alone, and each grant is decided like a call." }
        }
        section.tools-list aria-label="Added tools" {
            @for tool in &kept.record.added { (one(tool, &name, kept.version, &visitor)) }
            @if kept.record.added.is_empty() {
                (empty("Nothing was added", &html! { p { "When the agent writes a tool in this conversation, its source stands here, "
                    "and it can be switched off or taken out." } }))
            }
        }
        details.card { summary { "The agent's own file" } pre tabindex="0" { (visible(&kept.record.base)) } }
    };
    Ok(Page { title: "Tools of the document", tab: Tab::Conversations, live: None, body }
        .answer(&console, &visitor)
        .await?)
}

fn one(tool: &AddedTool, name: &str, version: u64, visitor: &Visitor) -> Markup {
    let to = format!("{}/tools", conversation_address(name));
    let form = |act: &str, word: &str, look: &str| {
        html! {
            form method="post" action=(to) {
                (token(&visitor.token))
                input type="hidden" name="tool" value=(tool.name);
                input type="hidden" name="version" value=(version);
                input type="hidden" name="do" value=(act);
                button class=(look) { (word) span.hidden { " " (tool.name) } }
            }
        }
    };
    html! {
        article.card aria-label=(tool.name) {
            header {
                h2 { code { (visible(&tool.name)) } }
                @if tool.set_aside.is_some() { (badge("not offered", "off")) } @else { (badge("offered", "good")) }
                p.when {
                    @match &tool.author {
                        Some(Author::Agent { run }) => {
                            "by the agent, in " a href=(run_address(&RunId::new(run.clone()))) { "run " (short(&RunId::new(run.clone()))) }
                        },
                        Some(Author::Person { name }) => { "by " (visible(name)) },
                        None => "by nobody known",
                    }
                    @if let Some(at) = tool.at { ", " (moment(at, now())) }
                }
            }
            @if let Some(why) = &tool.set_aside { p.note { "Not offered: " (visible(why)) } }
            pre tabindex="0" { (visible(tool.source.trim())) }
            div.choices {
                @if tool.set_aside.is_some() { (form("enable", "Offer again", "")) } @else { (form("disable", "Switch off", "")) }
                details.choice { summary.button { "Take out…" } (form("remove", "Take it out for good", "danger")) }
            }
        }
    }
}

/// Changes one tool.
pub(super) async fn change(
    console: Console,
    visitor: Visitor,
    Named(name): Named<String>,
    posted: Posted,
) -> Result<Response, Failed> {
    visitor.asker()?.may(&[Scope::Admin])?;
    let mut kept = Kept::read(&console.app, &name).await?;
    visitor.may(&[Scope::Admin], &kept.agent)?;
    let again = || Problem::conflict("document_conflict", "the document has changed meanwhile", "load the page again");
    if posted.need("version")? != kept.version.to_string() {
        return Err(Failed(again()));
    }
    let tool = posted.need("tool")?;
    let at = kept.record.added.iter().rposition(|it| it.name == tool).ok_or_else(again)?;
    match posted.need("do")? {
        "disable" => kept.record.added[at].set_aside = Some(SWITCHED_OFF.to_owned()),
        "enable" => kept.record.added[at].set_aside = None,
        "remove" => drop(kept.record.added.remove(at)),
        _ => {
            return Err(Failed(Problem::bad(
                "form_invalid",
                "this is nothing to do with a tool",
                "load the page again",
            )));
        }
    }
    let what = format!("document_tool_{}", posted.need("do")?);
    // Names of conversations may be names of people: what stays for good has their hash.
    let subject = gesta_run::json::sha256_hex(name.as_bytes());
    let deed = console.app.deed(visitor.asker()?, &what, &subject, Some(&kept.agent));
    console.app.front.note(vec![Deed { tool: Some(tool.to_owned()), ..deed }]).await?;
    kept.keep(&console.app).await?;
    Ok(Redirect::to(&format!("{}/tools", conversation_address(&name))).into_response())
}
