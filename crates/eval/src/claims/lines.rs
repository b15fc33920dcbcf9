//! Recorded replies as JSON lines, and the verdict on each.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::backing::{Deed, is_handoff};
use super::{Backed, Calls, Claims, Kind};

/// One recorded reply. Keys beyond these are passed over.
#[derive(Debug, Clone, Deserialize)]
pub struct Line<'a> {
    /// Whose reply it is; quoted in the verdict.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// The whole text.
    #[serde(borrow, default)]
    pub reply: Option<Cow<'a, str>>,
    /// The calls since the user's last message.
    #[serde(default)]
    pub turn_calls: Option<Vec<CallLine>>,
    /// The calls that changed something before that.
    #[serde(default)]
    pub earlier_writes: Option<Vec<CallLine>>,
}

/// One call of a recorded reply.
#[derive(Debug, Clone, Deserialize)]
pub struct CallLine {
    /// The tool.
    #[serde(default)]
    pub name: String,
    /// Whether it succeeded; without it, whether no `error` is named.
    #[serde(default)]
    pub ok: Option<bool>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<serde_json::Value>,
    /// Whether the tool changes something. Where it is given it decides; without it, a call counts.
    #[serde(default)]
    pub write: Option<bool>,
    /// It was only written down (`spec/channel.md`, 7).
    #[serde(default)]
    pub staged: bool,
}

/// A line that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LineError {
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// What the check says of one reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The line's.
    pub id: String,
    /// `change`, `handoff`, `staged`, or `none`.
    pub claim: String,
    /// When a suitable call succeeded; null without a claim.
    pub backed: Option<Backed>,
    /// The language of the pattern; null without a claim, like all that follows.
    pub language: Option<String>,
    /// Its family.
    pub family: Option<String>,
    /// Its name.
    pub pattern: Option<String>,
    /// The clause that claims.
    pub clause: Option<String>,
}

/// Reads line `number`, counted from 1. A blank one is nothing.
///
/// # Errors
/// It is no JSON object with an `id`, or a key has the wrong type.
pub fn read_line(text: &str, number: u64) -> Result<Option<Line<'_>>, LineError> {
    let text = text.trim_start_matches('\u{FEFF}').trim();
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|why| LineError { line: number, reason: why.to_string() })
}

impl CallLine {
    fn deed(&self) -> Option<Deed> {
        let failed = self.error.as_ref().is_some_and(|it| !it.is_null() && *it != false);
        let ok = self.ok.unwrap_or(!failed);
        let change = self.write.unwrap_or(true);
        ok.then(|| Deed { change, handoff: is_handoff(&self.name), staged: self.staged })
    }
}

impl Line<'_> {
    /// Its calls.
    pub fn calls(&self) -> Calls {
        let deeds = |list: &Option<Vec<CallLine>>| list.iter().flatten().filter_map(CallLine::deed).collect();
        Calls { this_turn: deeds(&self.turn_calls), earlier: deeds(&self.earlier_writes) }
    }
}

impl Claims {
    /// The verdict on a recorded reply.
    pub fn judge(&self, line: &Line<'_>) -> Verdict {
        let found = self.first(line.reply.as_deref().unwrap_or_default());
        let Some(found) = found else {
            return Verdict {
                id: line.id.to_string(),
                claim: "none".to_owned(),
                backed: None,
                language: None,
                family: None,
                pattern: None,
                clause: None,
            };
        };
        let claim = match found.kind {
            Kind::Change => "change",
            Kind::Handoff => "handoff",
            Kind::Staged => "staged",
        };
        Verdict {
            id: line.id.to_string(),
            claim: claim.to_owned(),
            backed: Some(line.calls().back(found.kind)),
            language: Some(found.language),
            family: Some(found.family),
            pattern: Some(found.pattern),
            clause: Some(found.clause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_claim_is_backed_by_a_suitable_call() {
        let claims = Claims::english();
        let table = [
            (json!({"turn_calls": []}), Backed::No),
            (json!({"turn_calls": [{"name": "a", "write": true, "ok": true}]}), Backed::ThisTurn),
            (json!({"turn_calls": [{"name": "a", "write": true, "ok": false}]}), Backed::No),
            (json!({"turn_calls": [{"name": "a", "write": false, "ok": true}]}), Backed::No),
            (json!({"turn_calls": [{"name": "a"}]}), Backed::ThisTurn),
            (json!({"turn_calls": [{"name": "a", "error": "Error: no"}]}), Backed::No),
            (json!({"turn_calls": [{"name": "a", "write": true, "ok": true, "staged": true}]}), Backed::No),
            (json!({"earlier_writes": [{"name": "a", "ok": true}], "turn_calls": null}), Backed::Earlier),
        ];
        for (mut line, expected) in table {
            line["id"] = json!("x");
            line["reply"] = json!("I've moved it.");
            let text = line.to_string();
            let verdict = claims.judge(&read_line(&text, 1).unwrap().unwrap());
            assert_eq!((verdict.claim.as_str(), verdict.backed), ("change", Some(expected)), "{text}");
        }
    }

    #[test]
    fn what_is_staged_may_be_announced_and_not_reported_as_done() {
        let claims = Claims::english();
        let judged = |reply: &str| {
            let calls = json!([{"name": "send_flow", "write": true, "ok": true, "staged": true}]);
            let text = json!({"id": "x", "reply": reply, "turn_calls": calls}).to_string();
            let verdict = claims.judge(&read_line(&text, 1).unwrap().unwrap());
            (verdict.claim, verdict.backed)
        };
        assert_eq!(judged("I'm sending it now."), ("staged".to_owned(), Some(Backed::ThisTurn)));
        assert_eq!(judged("I've sent it."), ("change".to_owned(), Some(Backed::No)));
    }

    #[test]
    fn a_bad_line_is_told_by_its_number() {
        assert_eq!(read_line("  ", 1).unwrap().map(|it| it.id), None);
        for bad in ["{", "[]", "{\"id\": 3}", "{\"reply\": \"x\"}", "{\"id\": \"x\", \"turn_calls\": {}}"] {
            let why = read_line(bad, 7).unwrap_err().to_string();
            assert!(why.starts_with("line 7: "), "{why}");
        }
    }
}
