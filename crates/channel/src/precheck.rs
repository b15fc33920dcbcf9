//! The guards ahead of the model, in order (`spec/channel.md`, 6).

use crate::outcome::Handoff;
use crate::tenant::Rules;
use crate::text::{fold, has_keyword};

/// What is known when the guards look.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts<'a> {
    /// What the contact wrote.
    pub text: &'a str,
    /// It is one link to media.
    pub is_media: bool,
    /// The conversation is escalated, not released, and the idle gap has not passed.
    pub is_escalated: bool,
    /// The contact carries the tenant's tag of an active person; false where the read failed.
    pub human_active: bool,
    /// Bound turns since the last idle gap, this one included.
    pub turns: u64,
    /// Turns of the contact that reached the model in the last 60 minutes, before this one.
    pub turns_of_hour: u64,
    /// Tokens of the UTC day, running turns' reservations included.
    pub tokens_of_day: u64,
    /// Cost of the UTC day in dollars, as above.
    pub cost_usd_of_day: f64,
}

/// What becomes of the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// A person has it: a silent response.
    WithPerson,
    /// The fallback text for media, or a handoff where the tenant set none.
    Media(Option<&'a str>),
    /// The tenant's script.
    Scripted(&'a str),
    /// The escalation text.
    Refused(Handoff),
    /// The model is asked.
    Ask,
}

/// Puts a turn to the guards.
pub fn check<'a>(rules: &'a Rules, facts: &Facts<'_>) -> Verdict<'a> {
    if (facts.is_escalated && rules.silent_while_escalated) || facts.human_active {
        return Verdict::WithPerson;
    }
    if facts.is_media {
        return match caps(rules, facts) {
            Some(handoff) => Verdict::Refused(handoff),
            None => Verdict::Media(rules.media_fallback.as_deref()),
        };
    }
    if let Some(opening) = &rules.opening_trigger {
        let text = fold(facts.text.trim());
        if opening.keywords.iter().any(|keyword| fold(keyword.trim()) == text) {
            return Verdict::Scripted(&opening.message);
        }
    }
    if rules.escalation_keywords.iter().any(|keyword| has_keyword(facts.text, keyword)) {
        return Verdict::Refused(Handoff::Keyword);
    }
    caps(rules, facts).map_or(Verdict::Ask, Verdict::Refused)
}

fn caps(rules: &Rules, facts: &Facts<'_>) -> Option<Handoff> {
    if facts.turns > rules.max_turns_per_conversation {
        Some(Handoff::TurnCap)
    } else if facts.turns_of_hour >= rules.turns_per_contact_per_hour {
        Some(Handoff::Rate)
    } else if facts.tokens_of_day >= rules.daily_token_cap || facts.cost_usd_of_day >= rules.daily_cost_cap_usd {
        Some(Handoff::Budget)
    } else {
        None
    }
}
