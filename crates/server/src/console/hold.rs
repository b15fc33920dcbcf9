//! One hold: all that somebody who decides on it should see, and the forms to decide with.

use std::sync::Arc;

use axum::response::Response;
use gesta_run::message::text_of;
use gesta_run::{
    Accepts, CallId, ContactId, ConversationId, EventKind, Hold, HoldKind, HoldReply, HoldState, Run, RunId, Timestamp,
    Tool,
};
use gesta_runtime::folder::agent_toml::DecisionToml;
use gesta_store::{HoldClosed, StoredRun};
use maud::{Markup, html};
use serde_json::Value;

use super::failed::Failed;
use super::page::{Page, Tab};
use super::parts::{
    agent_address, arguments, badge, conversation_address, moment, run_address, short, step, token, value_of, visible,
};
use super::who::Visitor;
use super::{Console, fields, now, rules};
use crate::app::App;
use crate::extract::Named;
use crate::keys::Scope;
use crate::problem::Problem;

/// A hold, and what led to it.
pub(super) struct Waiting {
    pub(super) hold: Hold,
    pub(super) tool: Option<Arc<Tool>>,
    agent: String,
    conversation: Option<ConversationId>,
    contact: Option<ContactId>,
    opened_at: Timestamp,
    said: String,
    beside: String,
    rule: Option<(usize, DecisionToml)>,
}

impl Waiting {
    /// All holds of a run.
    pub(super) fn of_run(app: &App, stored: &StoredRun, run: &Run) -> Vec<Self> {
        run.holds().into_iter().map(|hold| Self::of(app, stored, run, hold)).collect()
    }

    fn of(app: &App, stored: &StoredRun, run: &Run, hold: Hold) -> Self {
        let head = &stored.head;
        let beside = stored.events.iter().rev().find_map(|event| match &event.what {
            EventKind::Replied { trip, reply, .. } if *trip == hold.trip => Some(reply.joined_text()),
            _ => None,
        });
        let opened = stored.events.iter().rev().find(|event| match &event.what {
            EventKind::Held { call, .. } | EventKind::Staged { call, .. } => *call == hold.id,
            _ => false,
        });
        let tool = run.call(&hold.id).and_then(|call| call.tool.clone());
        let tool = tool.or_else(|| run.plan().tools().get(&hold.name).cloned());
        // The folder's rules are those of the run only where it began under them.
        let live = app.agents.get(&head.agent).filter(|it| it.agent.agent().plan().hash() == head.config);
        let rule = live.and_then(|live| {
            let at = live.served.folder.decisions.decide(&hold.name, &hold.arguments).rule?;
            Some((at, live.served.folder.settings.decisions.get(at)?.clone()))
        });
        Self {
            tool,
            agent: head.agent.clone(),
            conversation: head.conversation.clone(),
            contact: head.contact.clone(),
            opened_at: opened.map_or(head.updated_at, |event| event.at),
            said: run.opening().map(|opening| text_of(&opening.input)).unwrap_or_default(),
            beside: beside.unwrap_or_default(),
            rule,
            hold,
        }
    }

    fn run(&self) -> &RunId {
        &self.hold.binding.run_id
    }

    /// The schema of the tool's arguments.
    pub(super) fn schema(&self) -> Value {
        self.tool.as_ref().map_or(Value::Null, |tool| tool.spec.parameters.clone())
    }
}

/// The name of a hold's card in a page.
pub(super) fn card_id(run: &RunId, call: &CallId) -> String {
    let digest = gesta_run::json::sha256_hex(format!("{run}/{call}").as_bytes());
    format!("hold-{}", &digest[..12])
}

/// The address of a hold.
pub(super) fn address(run: &RunId, call: &CallId) -> String {
    format!("/console/holds/{}/{}", step(run.as_str()), step(call.as_str()))
}

/// A hold as something to decide on. `wrong` is what was not accepted of the last answer.
pub(super) fn card(it: &Waiting, visitor: &Visitor, wrong: Option<&str>) -> Markup {
    let id = card_id(it.run(), &it.hold.id);
    let version = format!("{:?}", it.hold.state);
    html! {
        article.card.hold id=(id) aria-labelledby=(format!("{id}-name")) data-version=(version) {
            header {
                h2 id=(format!("{id}-name")) {
                    (visible(&it.agent))
                    @match it.hold.kind { HoldKind::Call => " wants to call ", HoldKind::Action => " wants done, after its reply, " }
                    a href=(address(it.run(), &it.hold.id)) { code { (visible(&it.hold.name)) } }
                }
                @if it.hold.state == HoldState::Undecided { (badge("outcome unknown", "bad")) }
                p.when {
                    "opened " (moment(it.opened_at, now()))
                    @if let Some(expires) = it.hold.expires_at { " · expires " (moment(expires, now())) }
                }
            }
            section.wanted {
                (arguments(&it.hold.arguments))
                @if let Some(about) = it.tool.as_ref().map(|tool| &tool.spec.description).filter(|it| !it.is_empty()) {
                    p.hint { (visible(about)) }
                }
            }
            (why(it))
            (led_to_it(it))
            (acts(it, &id, visitor, wrong))
            (whose(it))
        }
    }
}

fn why(it: &Waiting) -> Markup {
    let undecided = it.hold.state == HoldState::Undecided;
    html! {
        section.why {
            h3 { "Why it waits" }
            @if undecided {
                p { "It was approved and had begun when its process ended. Nobody knows whether it happened: look, and say "
                    "what came of it. It is not run again." }
            }
            p { (visible(it.hold.reason.as_deref().unwrap_or("The decision gave no reason."))) }
            @if let Some((at, rule)) = &it.rule { p.hint { "Rule " (at + 1) ": " (rules::sentence(rule)) } }
        }
    }
}

fn led_to_it(it: &Waiting) -> Markup {
    html! {
        section.led {
            h3 { "What was said" }
            @if it.said.is_empty() { p.faint { "Nothing in words." } } @else {
                blockquote.said { p.voice { (visible(it.contact.as_ref().map_or("Contact", |it| it.as_str()))) } p.words { (visible(&it.said)) } }
            }
            @if !it.beside.trim().is_empty() {
                blockquote.said.model { p.voice { (visible(&it.agent)) } p.words { (visible(&it.beside)) } }
            }
        }
    }
}

fn whose(it: &Waiting) -> Markup {
    html! {
        footer {
            a href=(run_address(it.run())) { "Run " (short(it.run())) }
            a href=(agent_address(&it.agent)) { "Agent " (visible(&it.agent)) }
            @if let Some(name) = &it.conversation {
                a href=(conversation_address(name.as_str())) { "Conversation " (visible(name.as_str())) }
            }
        }
    }
}

/// Which answers a hold takes (`spec/contract.md`, 7.4).
struct Taken {
    approve: bool,
    deny: bool,
    result: bool,
    unknown: bool,
}

impl Taken {
    fn of(hold: &Hold) -> Self {
        let open = hold.state == HoldState::Open;
        Self {
            approve: open && hold.accepts != Accepts::External,
            deny: open,
            result: !open || hold.accepts != Accepts::ApprovalOnly,
            unknown: !open,
        }
    }
}

fn acts(it: &Waiting, id: &str, visitor: &Visitor, wrong: Option<&str>) -> Markup {
    let taken = Taken::of(&it.hold);
    html! {
        div.acts role="group" aria-label=(format!("Answer {}", it.hold.name)) {
            p.problem role="alert" hidden[wrong.is_none()] data-problem { (wrong.unwrap_or_default()) }
            @if !visitor.has(Scope::Answer) { p.hint { "Your key may look at this, and not answer it." } } @else {
            div.choices {
                @if taken.approve {
                    (form(it, visitor, "approve", &html! { button.primary { "Approve" } }))
                    @if !it.schema().is_null() { (edit(it, id, visitor)) }
                }
                @if taken.deny { (deny(it, id, visitor)) }
                @if taken.result { (result(it, id, visitor)) }
                (error(it, id, visitor))
                @if taken.unknown {
                    (form(it, visitor, "unknown", &html! { button { "Nobody knows" } }))
                }
            }
            }
        }
    }
}

fn form(it: &Waiting, visitor: &Visitor, act: &str, inside: &Markup) -> Markup {
    let to = address(it.run(), &it.hold.id);
    html! {
        form method="post" action=(to) data-answer {
            (token(&visitor.token))
            input type="hidden" name="do" value=(act);
            input type="hidden" name="binding" value=(serde_json::to_string(&it.hold.binding).unwrap_or_default());
            (inside)
        }
    }
}

fn edit(it: &Waiting, id: &str, visitor: &Visitor) -> Markup {
    let issues = format!("{id}-issues");
    let inside = html! {
        (fields::inputs(&format!("{id}-edit"), &it.schema(), &it.hold.arguments))
        p.check id=(issues) role="status" data-check=(format!("{}/check", address(it.run(), &it.hold.id))) {}
        button.primary aria-describedby=(issues) { "Approve with these" }
    };
    choice(id, "Edit and approve", &form(it, visitor, "edit", &inside))
}

fn deny(it: &Waiting, id: &str, visitor: &Visitor) -> Markup {
    let field = format!("{id}-reason");
    let inside = html! {
        div.field {
            label for=(field) { "Reason" }
            p.hint id=(format!("{field}-about")) { "The model reads it and tells the contact in its own words." }
            textarea id=(field) name="reason" rows="3" required aria-describedby=(format!("{field}-about")) {}
        }
        button.danger { "Deny" }
    };
    choice(id, "Deny…", &form(it, visitor, "deny", &inside))
}

fn result(it: &Waiting, id: &str, visitor: &Visitor) -> Markup {
    let field = format!("{id}-result");
    let inside = html! {
        div.field {
            label for=(field) { "Result" }
            p.hint id=(format!("{field}-about")) { "It was done elsewhere, and this came of it: a text, or JSON." }
            textarea.code id=(field) name="result" rows="4" required spellcheck="false"
                aria-describedby=(format!("{field}-about")) {}
        }
        button.primary { "Hand in the result" }
    };
    choice(id, "Answer with a result…", &form(it, visitor, "result", &inside))
}

fn error(it: &Waiting, id: &str, visitor: &Visitor) -> Markup {
    let field = format!("{id}-error");
    let inside = html! {
        div.field {
            label for=(field) { "Error" }
            p.hint id=(format!("{field}-about")) { "It was tried elsewhere and failed, or cannot be done. The model reads it." }
            textarea id=(field) name="error" rows="3" required aria-describedby=(format!("{field}-about")) {}
        }
        button.danger { "Hand in the error" }
    };
    choice(id, "Answer with an error…", &form(it, visitor, "error", &inside))
}

fn choice(id: &str, title: &str, inside: &Markup) -> Markup {
    html! { details.choice name=(format!("{id}-choice")) { summary.button { (title) } (inside) } }
}

/// A hold that no longer waits, with who came first where that was somebody else.
pub(super) fn closed_card(run: &RunId, call: &CallId, closed: &HoldClosed, mine: Option<bool>) -> Markup {
    let (word, tone) = said(closed.answer.as_ref());
    html! {
        article.card.settled id=(card_id(run, call)) tabindex="-1" data-settled {
            header { h2 { @if mine == Some(false) { "Somebody else was first" } @else { "Answered" } } (badge(word, tone)) }
            @if mine == Some(false) {
                p { "This hold had been answered already. Your answer was not used, and nothing ran because of it." }
            }
            (answer(closed.answer.as_ref()))
            p.when { (moment(closed.at, now())) }
            footer { a href=(run_address(run)) { "See what came of it" } a href="/console" { "To the inbox" } }
        }
    }
}

/// An answer as a badge.
pub(super) fn said(answer: Option<&HoldReply>) -> (&'static str, &'static str) {
    match answer {
        Some(HoldReply::Approve { arguments: None }) => ("approved", "good"),
        Some(HoldReply::Approve { arguments: Some(_) }) => ("approved, edited", "good"),
        Some(HoldReply::Deny { .. }) => ("denied", "bad"),
        Some(HoldReply::Result { .. }) => ("result handed in", "good"),
        Some(HoldReply::Error { .. }) => ("error handed in", "bad"),
        Some(HoldReply::OutcomeUnknown) => ("outcome unknown", "off"),
        None => ("closed without an answer", "off"),
    }
}

/// What an answer says.
pub(super) fn answer(answer: Option<&HoldReply>) -> Markup {
    match answer {
        Some(HoldReply::Approve { arguments: Some(edited) }) => arguments(edited),
        Some(HoldReply::Deny { reason }) => html! { p.words { (visible(reason)) } },
        Some(HoldReply::Result { value }) => html! { div.value { (value_of(value)) } },
        Some(HoldReply::Error { text }) => html! { p.words { (visible(text)) } },
        Some(HoldReply::Approve { arguments: None } | HoldReply::OutcomeUnknown) => html! {},
        None => html! { p { "A new message, the end of its time or a cancellation closed it." } },
    }
}

/// A hold as it stands: to be decided, or decided.
pub(super) enum Stands {
    Open(Box<Waiting>),
    Closed(HoldClosed),
}

/// Looks a hold up.
pub(super) async fn look(app: &App, run: &RunId, call: &CallId) -> Result<Stands, Problem> {
    let (stored, replayed) = app.read(run).await?;
    let open = Waiting::of_run(app, &stored, &replayed).into_iter().find(|it| it.hold.id == *call);
    if let Some(open) = open {
        return Ok(Stands::Open(Box::new(open)));
    }
    match app.store.hold_closed(run, call).await? {
        Some(closed) => Ok(Stands::Closed(closed)),
        None => {
            let detail = format!("run `{run}` has no hold `{call}`");
            Err(Problem::missing("no_such_hold", detail, "the inbox lists those that wait"))
        }
    }
}

/// The page of one hold.
pub(super) async fn page(
    console: Console,
    visitor: Visitor,
    Named((run, call)): Named<(String, String)>,
) -> Result<Response, Failed> {
    let (run, call) = (RunId::new(run), CallId::new(call));
    visitor.may_look()?;
    visitor.may_see(&console.app.store.head(&run).await?.agent)?;
    let stands = look(&console.app, &run, &call).await?;
    Ok(whole_page(&console, &visitor, &run, &call, &stands, None).await?)
}

/// The page of a hold, with what was not accepted of the last answer.
pub(super) async fn whole_page(
    console: &Console,
    visitor: &Visitor,
    run: &RunId,
    call: &CallId,
    stands: &Stands,
    wrong: Option<&str>,
) -> Result<Response, Problem> {
    let card = match stands {
        Stands::Open(open) => card(open, visitor, wrong),
        Stands::Closed(closed) => closed_card(run, call, closed, wrong.map(|_| false)),
    };
    let body = html! {
        header.top { p.crumb { a href="/console" { "Inbox" } } h1 { "One decision" } }
        section.holds data-region="holds" id="holds" { (card) }
    };
    Page { title: "One decision", tab: Tab::Inbox, live: Some("of=inbox".to_owned()), body }
        .answer(console, visitor)
        .await
}
