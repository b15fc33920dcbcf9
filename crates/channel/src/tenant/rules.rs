//! `rules.json`: the tenant's copy and limits (`spec/channel.md`, 22). There is no copy without a tenant's.

use super::entry::{self, Entry};
use super::fault::Fault;

/// What stands in the rules, defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// The holding line.
    pub acknowledgement: String,
    /// The whole reply of every handoff.
    pub escalation: String,
    /// The answer to a link to media; without it such a turn is a handoff.
    pub media_fallback: Option<String>,
    /// In place of a reply that was given before.
    pub closer: Option<String>,
    /// 0 to 1; below it a reply is a handoff.
    pub confidence_threshold: f64,
    /// Bound turns since the last idle gap.
    pub max_turns_per_conversation: u64,
    /// The gap after which counts begin anew and a person's hold on the conversation ends.
    pub idle_reset_hours: u64,
    /// How far the history reaches back.
    pub history_days: u64,
    /// Words that ask for a person.
    pub escalation_keywords: Vec<String>,
    /// Messages that a script answers.
    pub opening_trigger: Option<OpeningTrigger>,
    /// Tokens of a UTC day.
    pub daily_token_cap: u64,
    /// Dollars of a UTC day.
    pub daily_cost_cap_usd: f64,
    /// Turns of a contact that reach the model, in 60 minutes.
    pub turns_per_contact_per_hour: u64,
    /// An escalated conversation gets silent responses.
    pub silent_while_escalated: bool,
    /// A tag that says that a person has the conversation.
    pub human_active_tag: Option<String>,
}

/// A scripted opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpeningTrigger {
    /// Whole messages, without case.
    pub keywords: Vec<String>,
    /// What is answered.
    pub message: String,
}

const WHOLE: (u64, u64) = (1, u64::MAX);

pub(super) fn read(text: &str, faults: &mut Vec<Fault>) -> Rules {
    let value = entry::file("rules.json", text, faults);
    let mut top = Entry::new("rules.json", String::new(), &value, faults);
    let messages = messages(&mut top, faults);
    let threshold = top.number("confidence_threshold", |it| (0.0..=1.0).contains(&it), "from 0 to 1", faults);
    let turns = top.whole("max_turns_per_conversation", WHOLE, faults);
    let idle = top.whole("idle_reset_hours", WHOLE, faults);
    let days = top.whole("history_days", WHOLE, faults);
    let escalation_keywords = top.texts("escalation_keywords", faults);
    let opening_trigger = top.inner("opening_trigger", faults).map(|it| opening(it, faults));
    let (mut tokens, mut cost, mut hourly) = (None, None, None);
    if let Some(mut budget) = top.inner("budget", faults) {
        tokens = budget.whole("daily_token_cap", WHOLE, faults);
        cost = budget.number("daily_cost_cap_usd", |it| it > 0.0, "above 0", faults);
        budget.close(faults);
    }
    if let Some(mut rate) = top.inner("rate_limit", faults) {
        hourly = rate.whole("turns_per_contact_per_hour", WHOLE, faults);
        rate.close(faults);
    }
    let (silent_while_escalated, human_active_tag) = handoff(&mut top, faults);
    top.close(faults);
    let [acknowledgement, escalation] = messages.0;
    let [media_fallback, closer] = messages.1;
    Rules {
        acknowledgement,
        escalation,
        media_fallback,
        closer,
        confidence_threshold: threshold.unwrap_or(0.6),
        max_turns_per_conversation: turns.unwrap_or(25),
        idle_reset_hours: idle.unwrap_or(24),
        history_days: days.unwrap_or(30),
        escalation_keywords,
        opening_trigger,
        daily_token_cap: tokens.unwrap_or(1_000_000),
        daily_cost_cap_usd: cost.unwrap_or(5.0),
        turns_per_contact_per_hour: hourly.unwrap_or(60),
        silent_while_escalated,
        human_active_tag,
    }
}

fn messages(top: &mut Entry<'_>, faults: &mut Vec<Fault>) -> ([String; 2], [Option<String>; 2]) {
    let Some(mut it) = top.inner("messages", faults) else {
        if top.is_there() {
            let way_out = "add it with `acknowledgement` and `escalation`";
            faults.push(top.fault("messages", "is missing", way_out));
        }
        return Default::default();
    };
    let required = [it.text("acknowledgement", faults), it.text("escalation", faults)];
    let optional = [it.optional_text("media_fallback", faults), it.optional_text("closer", faults)];
    it.close(faults);
    (required, optional)
}

fn opening(mut it: Entry<'_>, faults: &mut Vec<Fault>) -> OpeningTrigger {
    let keywords = it.texts("keywords", faults);
    if it.is_there() && keywords.is_empty() {
        faults.push(it.fault("keywords", "has no entry", "name at least one message"));
    }
    let message = it.text("message", faults);
    it.close(faults);
    OpeningTrigger { keywords, message }
}

fn handoff(top: &mut Entry<'_>, faults: &mut Vec<Fault>) -> (bool, Option<String>) {
    let Some(mut it) = top.inner("handoff", faults) else { return (true, None) };
    let silent = match it.get("while_escalated").map(|value| value.as_str()) {
        None | Some(Some("silent")) => true,
        Some(Some("answer")) => false,
        Some(_) => {
            faults.push(it.fault("while_escalated", "is unknown", "write `silent` or `answer`"));
            true
        }
    };
    let tag = it.optional_text("human_active_tag", faults);
    it.close(faults);
    (silent, tag)
}
