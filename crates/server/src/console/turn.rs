//! One turn as an article: what was said and done, where its time went, what it cost, and what it staged.

use gesta_run::{ActionRecord, ActionStatus, Run, RunResult};
use gesta_store::StoredRun;
use maud::{Markup, html};

use super::parts::{arguments, badge, length, moment, money, run_address, short, standing, step, thousands, visible};
use super::{now, spans, talk};

/// A turn. `level` is that of its heading: 1 where it is the page.
pub(super) fn article(stored: &StoredRun, run: &Run, alone: bool) -> Markup {
    let head = &stored.head;
    let result = run.result();
    let lines = talk::lines(&run.plan().spec, &stored.events);
    let (word, tone) = standing(head.status, head.outcome);
    let id = format!("turn-{}", short(&head.run));
    html! {
        article.card.turn id=(id) data-version=(head.events) aria-label=(format!("Turn {}", short(&head.run))) {
            @if !alone {
                header {
                    h2 { a href=(run_address(&head.run)) { "Run " (short(&head.run)) } }
                    (badge(word, tone))
                    p.when { (moment(head.started_at, now())) }
                }
            }
            (talk::list(&lines, head.started_at))
            (actions(&result.actions))
            (spans::waterfall(&stored.events, now()))
            (figures(&result))
            (scene(stored, run, &id))
        }
    }
}

fn figures(result: &RunResult) -> Markup {
    let usage = result.usage;
    html! {
        dl.figures {
            div { dt { "Trips" } dd { (result.trips) } }
            div { dt { "Worked" } dd { (length(i64::try_from(result.report.duration_ms).unwrap_or(i64::MAX))) } }
            div { dt { "Tokens in" } dd { (thousands(usage.input)) @if usage.cached > 0 { span.faint { " · " (thousands(usage.cached)) " cached" } } } }
            div { dt { "Tokens out" } dd { (thousands(usage.output)) } }
            div { dt { "Cost" } dd { (money(result.cost_usd)) } }
            div { dt { "Interventions" } dd { (result.contract.interventions.iter().filter(|it| it.prompt.is_some()).count()) } }
        }
        @for refusal in &result.contract.refusals {
            p.note { code { (visible(&refusal.tool)) } " refused, and no later call made it good: " (visible(&refusal.reason)) }
        }
        @for unmet in &result.contract.unmet { p.note { "Not met: " code { (unmet) } } }
    }
}

/// What was staged, and its fate.
fn actions(actions: &[ActionRecord]) -> Markup {
    if actions.is_empty() {
        return html! {};
    }
    html! {
        section.actions {
            h3 { "Staged actions" }
            ul {
                @for action in actions {
                    @let (word, tone) = match action.status {
                        ActionStatus::Staged => ("staged", "wait"),
                        ActionStatus::Performed => ("performed", "good"),
                        ActionStatus::Failed => ("failed", "bad"),
                        ActionStatus::Discarded => ("discarded", "off"),
                    };
                    li {
                        p { code { (visible(&action.name)) } " " (badge(word, tone)) }
                        @if let Some(why) = &action.reason { p.why { (visible(why)) } }
                        (arguments(&action.arguments))
                    }
                }
            }
        }
    }
}

fn scene(stored: &StoredRun, run: &Run, id: &str) -> Markup {
    let address = format!("/console/runs/{}/scene", step(stored.head.run.as_str()));
    html! {
        div.tools {
            button type="button" data-copy=(address) hidden aria-describedby=(format!("{id}-scene")) { "Copy as scene" }
            a.button href=(address) { "Open as scene" }
            span.faint id=(format!("{id}-scene")) { "A scene plays again as a test. Its plan is " code { (&run.plan().hash()[..8]) } "." }
        }
    }
}
