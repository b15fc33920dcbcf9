//! Small pieces of pages: times, badges, values, links.

use gesta_run::json::Object;
use gesta_run::{Outcome, RunId, Status, Timestamp};
use maud::{Markup, PreEscaped, html};
use serde_json::Value;

/// A name as one step of a path.
pub(super) fn step(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') || (byte == b'.' && name.len() > 2) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The address of a run's page.
pub(super) fn run_address(run: &RunId) -> String {
    format!("/console/runs/{}", step(run.as_str()))
}

/// The address of a conversation's page.
pub(super) fn conversation_address(name: &str) -> String {
    format!("/console/conversations/{}", step(name))
}

/// The address of an agent's page.
pub(super) fn agent_address(name: &str) -> String {
    format!("/console/agents/{}", step(name))
}

/// The end of a run's id, which tells runs apart.
pub(super) fn short(run: &RunId) -> &str {
    let id = run.as_str();
    let from = id.len().saturating_sub(8);
    id.get(from..).unwrap_or(id)
}

/// A moment: how long ago or ahead it is, and exactly when.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> Markup {
    let exact = exact(at);
    html! { time datetime=(iso(at)) title=(exact) data-at=(at.0) { (relative(at, now)) } }
}

fn stamp(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

fn iso(at: Timestamp) -> String {
    stamp(at).to_string()
}

/// The moment in UTC.
pub(super) fn exact(at: Timestamp) -> String {
    stamp(at).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The day in UTC, as `2026-11-30`.
pub(super) fn day(at: Timestamp) -> String {
    stamp(at).strftime("%Y-%m-%d").to_string()
}

fn relative(at: Timestamp, now: Timestamp) -> String {
    let (gap, ahead) = if at > now { (at.0 - now.0, true) } else { (now.0 - at.0, false) };
    if gap < 10_000 {
        return if ahead { "in a moment".to_owned() } else { "just now".to_owned() };
    }
    let text = length_of(gap);
    if ahead { format!("in {text}") } else { format!("{text} ago") }
}

fn length_of(ms: i64) -> String {
    let rounded = |unit: i64| (ms + unit / 2) / unit;
    match ms / 1000 {
        0..60 => format!("{} s", ms / 1000),
        60..3_570 => format!("{} min", rounded(60_000)),
        3_570..172_800 => format!("{} h", rounded(3_600_000)),
        _ => format!("{} d", rounded(86_400_000)),
    }
}

/// How long something took.
pub(super) fn length(ms: i64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => length_of(ms),
    }
}

/// A number with its thousands apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Money, where there is a price.
pub(super) fn money(cost_usd: Option<f64>) -> String {
    match cost_usd {
        Some(cost) if cost > 0.0 && cost < 0.01 => format!("${cost:.4}"),
        Some(cost) => format!("${cost:.2}"),
        None => "no price".to_owned(),
    }
}

/// How a run stands, as a word and a tone.
pub(super) fn standing(status: Status, outcome: Option<Outcome>) -> (&'static str, &'static str) {
    match (status, outcome) {
        (Status::Open, _) => ("running", "info"),
        (Status::Parked, _) => ("waiting", "wait"),
        (Status::Ended, Some(outcome)) => (word(outcome), tone(outcome)),
        (Status::Ended, None) => ("ended", "off"),
    }
}

/// An outcome in words.
pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::LengthLimit => "cut for length",
        Outcome::StoppedByHook => "waiting",
        Outcome::MaxTrips => "out of trips",
        Outcome::HookFailed => "decision failed",
        Outcome::BudgetExceeded => "budget spent",
        Outcome::Blocked => "blocked",
        Outcome::OutputInvalid => "invalid output",
        Outcome::ModelFailed => "model failed",
        Outcome::StoreFailed => "store failed",
        Outcome::Cancelled => "cancelled",
        Outcome::Superseded => "superseded",
        Outcome::Expired => "expired",
        Outcome::DeferUnsupported => "defer unsupported",
    }
}

/// Whether an outcome is fine, nobody's fault, or a failure.
pub(super) fn tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "good",
        Outcome::StoppedByHook => "wait",
        Outcome::Cancelled | Outcome::Superseded | Outcome::Expired => "off",
        _ => "bad",
    }
}

/// A badge.
pub(super) fn badge(word: &str, tone: &str) -> Markup {
    html! { span class=(format!("badge {tone}")) { (word) } }
}

/// Text of others, whole: characters that are not seen, or that turn the order of the others round, are named.
pub(super) fn visible(text: &str) -> Markup {
    let mut out = String::with_capacity(text.len() + 16);
    let mut plain = String::new();
    let flush = |plain: &mut String, out: &mut String| {
        out.push_str(&html! { (plain.as_str()) }.into_string());
        plain.clear();
    };
    for c in text.chars() {
        if is_hidden(c) {
            flush(&mut plain, &mut out);
            let name = format!("U+{:04X}", u32::from(c));
            out.push_str(&html! { span.unseen title="a character that is not seen" { (name) } }.into_string());
        } else {
            plain.push(c);
        }
    }
    flush(&mut plain, &mut out);
    PreEscaped(out)
}

fn is_hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// JSON on several lines.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Arguments by name, whole, and the same as JSON.
pub(super) fn arguments(object: &Object) -> Markup {
    html! {
        @if object.is_empty() {
            p.faint { "No arguments." }
        } @else {
            dl.args {
                @for (name, value) in object {
                    div { dt { (visible(name)) } dd { (value_of(value)) } }
                }
            }
            details.json { summary { "JSON" } pre tabindex="0" { (visible(&pretty(&Value::Object(object.clone())))) } }
        }
    }
}

/// One value: a text as it is, the rest as JSON.
pub(super) fn value_of(value: &Value) -> Markup {
    match value {
        Value::String(text) if text.is_empty() => html! { span.faint { "empty text" } },
        Value::String(text) => html! { span.text { (visible(text)) } },
        Value::Null | Value::Bool(_) | Value::Number(_) => html! { code { (value.to_string()) } },
        Value::Array(_) | Value::Object(_) => html! { pre tabindex="0" { (visible(&pretty(value))) } },
    }
}

/// A value on its own: an object by its names, a text as it is.
pub(super) fn whole(value: &Value) -> Markup {
    match value {
        Value::Object(object) if !object.is_empty() => arguments(object),
        other => html! { div.value { (value_of(other)) } },
    }
}

/// A field that every form carries.
pub(super) fn token(token: &str) -> Markup {
    html! { input type="hidden" name="token" value=(token); }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_others_wrote_is_escaped_and_hides_nothing() {
        let hostile = json!({ "<script>alert(1)</script>": "a\u{202e}b\u{0}<img src=x onerror=1>" });
        let html = arguments(hostile.as_object().unwrap()).into_string();
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert!(html.contains("U+202E") && html.contains("U+0000"), "{html}");
    }

    #[test]
    fn a_name_is_one_step_of_a_path() {
        for (name, path) in [("chat/desk", "chat%2Fdesk"), ("a b?#", "a%20b%3F%23"), ("ü", "%C3%BC"), ("..", "%2E%2E")]
        {
            assert_eq!(step(name), path);
        }
    }

    #[test]
    fn times_are_told_as_people_do() {
        let now = Timestamp(10_000_000_000);
        for (ms, told) in [(0, "just now"), (-59_000, "59 s ago"), (7_200_000, "in 2 h"), (-86_400_000 * 3, "3 d ago")]
        {
            assert_eq!(relative(Timestamp(now.0 + ms), now), told);
        }
        assert_eq!((length(12), length(1_250), length(90_000)), ("12 ms".into(), "1.2 s".into(), "2 min".into()));
        assert_eq!(thousands(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
