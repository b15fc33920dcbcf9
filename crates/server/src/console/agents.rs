//! The agents that are served here.

use axum::response::Response;
use maud::html;

use super::Console;
use super::failed::Failed;
use super::page::{Page, Tab};
use super::parts::{agent_address, visible};
use super::who::Visitor;
use crate::keys::Scope;

/// The list.
pub(super) async fn page(console: Console, visitor: Visitor) -> Result<Response, Failed> {
    visitor.asker()?;
    let body = html! {
        header.top { h1 { "Agents" } p.about { "What is served here, and what each may do." } }
        ul.cards {
            @for (name, live) in console.app.agents.iter().filter(|(name, _)| visitor.knows(name)) {
                @let spec = &live.agent.agent().plan().spec;
                @let rules = live.served.folder.settings.decisions.len();
                li.card {
                    h2 { a href=(agent_address(name)) { (visible(name)) } }
                    p.when { "model " code { (visible(&spec.model)) } }
                    p {
                        (spec.tools.len()) @if spec.tools.len() == 1 { " tool" } @else { " tools" }
                        @if spec.document.is_some() { " and a document of tools" }
                        ", " (rules) @if rules == 1 { " decision rule" } @else { " decision rules" }
                    }
                    div.choices {
                        @if visitor.has(Scope::Run) {
                            a.button.primary href=(format!("{}/try", agent_address(name))) { "Try it" span.hidden { ": " (name) } }
                        }
                        @if visitor.has(Scope::Read) {
                            a.button href=(agent_address(name)) { "What it may do" span.hidden { ": " (name) } }
                        }
                    }
                }
            }
        }
    };
    Ok(Page { title: "Agents", tab: Tab::Agents, live: None, body }.answer(&console, &visitor).await?)
}
