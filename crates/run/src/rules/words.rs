//! The sentences that the machine itself says to a model.

use std::fmt::Write as _;

use crate::call::CallStatus;
use crate::json;
use crate::state::Refusal;

/// Longest reason quoted in a refusal prompt, in characters (`spec/contract.md`, 3.3).
const REASON_CHARS_MAX: usize = 500;

/// What the model reads about a call that got no result of its own.
pub(crate) fn synthetic(status: CallStatus) -> &'static str {
    match status {
        CallStatus::NotRun => "This call was not run: the turn was stopped before it began.",
        CallStatus::Cancelled => "This call was cancelled before it began.",
        CallStatus::Superseded => "This call was waiting for approval and was closed, because a new message came.",
        CallStatus::Expired => "This call was waiting for approval, and the time for that ran out. It was not run.",
        CallStatus::OutcomeUnknown => {
            "This call was begun and its outcome is unknown: it may or may not have taken effect. Do not repeat it, \
             and do not claim that it happened."
        }
        CallStatus::TimedOut => {
            "No answer came within the time limit. Whether the call took effect is unknown; do not claim that it did."
        }
        CallStatus::Completed
        | CallStatus::Refused
        | CallStatus::Failed
        | CallStatus::InvalidArguments
        | CallStatus::UnknownTool
        | CallStatus::Denied => "This call did not complete.",
    }
}

/// The reason of a call or grant that is denied because its hook failed.
pub(crate) const POLICY_UNDECIDED: &str = "the policy could not decide on this call";

pub(crate) fn too_many_calls(max: u32) -> String {
    format!("This call was not run: one answer may hold at most {max} calls.")
}

pub(crate) fn unknown_tool(name: &str, offered: &[&str]) -> String {
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    format!("There is no tool `{}`. Tools offered: {offered}.", json::cut(name, 100))
}

pub(crate) fn malformed_arguments(why: &str, written: &str) -> String {
    let quoted: String = written.chars().take(500).collect();
    format!("The arguments are not a JSON object ({why}). They were: {quoted}")
}

pub(crate) fn broken_schema(issues: &str) -> String {
    format!("The arguments do not fit the tool's schema: {issues}")
}

pub(crate) fn deep_result() -> String {
    let max = json::DEPTH_MAX;
    format!("The call was made, but its result is nested more than {max} levels deep and was not kept.")
}

/// What is said of anything else from outside that is too deep to be kept.
pub(crate) fn too_deep(what: &str) -> String {
    format!("{what} nested more than {} levels deep", json::DEPTH_MAX)
}

pub(crate) fn hook_edit_broke_schema(issues: &str) -> String {
    format!("The policy replaced the arguments of this call, and they do not fit the tool's schema: {issues}")
}

/// A grant was deferred, in the middle of a function that nothing can resume.
pub(crate) fn grant_needs_approval(grant: &str) -> String {
    format!("{grant} needs approval, which a tool of the document cannot wait for; it was not run")
}

/// The default hint of `act_when_asked`: what to do, what was asked, what is missing, and the way out.
pub(crate) fn act_hint(missing: &[String], all: bool) -> String {
    let tools = missing.join(if all { " and " } else { " or " });
    format!(
        "Call {tools} now.\n\nThe user asked for a change. Your reply speaks of it, but no call of {tools} has \
         succeeded, so nothing has been changed. Make the call with what the user gave you, without asking for \
         permission again. If it truly cannot be done, or a detail is missing, say so plainly and do not claim that \
         it happened."
    )
}

/// The default prompt about refused calls: one for all that are outstanding.
pub(crate) fn refusal_prompt(refusals: &[Refusal]) -> String {
    let mut out = String::new();
    for Refusal { tool, reason } in refusals {
        let _ = writeln!(out, "{tool} did not accept your call: <reason>{}</reason>", clean(reason));
    }
    out.push_str(
        "\nChoose a valid option and call the tool again. If no option fits, tell the user plainly what was refused \
         and why, and do not claim that it was done.",
    );
    out
}

/// A tool's reason made fit for a user message: no control characters, no closing delimiter, at most 500 characters.
pub(crate) fn clean(reason: &str) -> String {
    let plain: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.replace("</reason>", " ").trim().chars().take(REASON_CHARS_MAX).collect()
}
