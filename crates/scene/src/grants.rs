//! Grants in a scene: the clause that lends one, the lines that ask and answer, and what the run says of them.

use gesta_run::call::{Answer, CallEnd};
use gesta_run::grant::{GrantSpec, TIME_LIMIT_MS};
use gesta_run::id::CallId;
use gesta_run::json::{Object, canonical};
use gesta_run::tool::{Effect, no_parameters};
use gesta_run::{Run, WantKind};
use serde_json::Value;

use crate::error::ReadError;
use crate::plan_read;
use crate::text::{Cursor, write_word};
use crate::world_print::duration;
use crate::world_read::duration_ms;

type Read<T> = Result<T, ReadError>;

/// Takes the clause behind `plan: grant`: `App.refund(order_id, amount) {"amount":"number"}, reads only, within 5 s`.
pub(crate) fn read(line: &mut Cursor<'_>) -> Read<GrantSpec> {
    let end = line.rest.find(['(', ' ', ',', '{']).unwrap_or(line.rest.len());
    let Some((library, name)) = line.rest[..end].split_once('.') else { return Err(line.expected("`Library.name`")) };
    let mut grant = GrantSpec::new(library, name, Vec::<String>::new());
    line.rest = line.rest[end..].trim_start();
    if let Some(rest) = line.rest.strip_prefix('(') {
        let Some((params, rest)) = rest.split_once(')') else { return Err(line.expected("`)`")) };
        grant.params = params.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
        line.rest = rest.trim_start();
    }
    if line.rest.starts_with('{') {
        grant.parameters = plan_read::schema(line)?;
    }
    while line.eat(",") {
        if line.eat("reads only") {
            grant.effect = Effect::ReadsOnly;
        } else if line.eat("once") {
            grant.effect = Effect::Once;
        } else if line.eat("staged") {
            grant.effect = Effect::Staged;
        } else if line.eat("within") {
            grant.time_limit_ms = duration_ms(line)?;
        } else {
            let known = ["reads only", "once", "staged", "within"];
            return Err(ReadError::unknown(line.line, "option of a grant", line.rest, known));
        }
    }
    Ok(grant)
}

/// The clause of a grant.
pub(crate) fn print(grant: &GrantSpec) -> String {
    let mut out = format!("grant {}({})", grant.full_name(), grant.params.join(", "));
    if grant.parameters != no_parameters() {
        out.push_str(&format!(" {}", canonical(&grant.parameters)));
    }
    match grant.effect {
        Effect::ReadsOnly => out.push_str(", reads only"),
        Effect::Staged => out.push_str(", staged"),
        Effect::Once => {}
    }
    if grant.time_limit_ms != TIME_LIMIT_MS {
        out.push_str(&format!(", within {}", duration(grant.time_limit_ms)));
    }
    out
}

/// Takes what stands behind `document: ID`: `asks App.refund {"amount":7}`.
pub(crate) fn asked(line: &mut Cursor<'_>) -> Read<(String, Object)> {
    if !line.eat("asks") {
        return Err(ReadError::unknown(line.line, "word of a document", line.rest, ["asks"]));
    }
    let grant = line.word("the name of a grant")?;
    let before = line.rest;
    let arguments = if line.is_done() { Value::Object(Object::new()) } else { line.json()? };
    match arguments {
        Value::Object(arguments) => Ok((grant, arguments)),
        _ => Err(ReadError::expected(line.line, "a JSON object", before)),
    }
}

/// The line on which a document asks for a grant.
pub(crate) fn print_asked(call: &str, grant: &str, arguments: &Object) -> String {
    let head = format!("document: {} asks {}", write_word(call), write_word(grant));
    if arguments.is_empty() { head } else { format!("{head} {}", canonical(&Value::Object(arguments.clone()))) }
}

/// The id of a grant call: its tool's call and which of that call.
pub(crate) fn id(call: &CallId, n: u32) -> String {
    format!("{call}/{n}")
}

/// The call and the number that the id of a grant call names.
pub(crate) fn parse_id(id: &str) -> Option<(&str, u32)> {
    let (call, n) = id.rsplit_once('/')?;
    Some((call, n.parse().ok()?))
}

/// Whether this names a grant itself, `App.orders`, and no call of one.
pub(crate) fn is_name(id: &str) -> bool {
    parse_id(id).is_none() && id.contains('.')
}

/// A grant call with its name and the arguments it runs with.
pub(crate) fn named(run: &Run, call: &CallId, n: u32) -> String {
    let head = write_word(&id(call, n));
    run.grant(call, n).map_or(head.clone(), |it| {
        format!("{head} {} {}", write_word(&it.name), canonical(&Value::Object(it.arguments.clone())))
    })
}

/// What a grant may have said for it to end like this.
pub(crate) fn answers_of(end: &CallEnd) -> Vec<Answer> {
    use gesta_run::call::CallStatus::{OutcomeUnknown, TimedOut};
    let text = || end.result.as_str().map_or_else(|| end.result.to_string(), str::to_owned);
    match end.status {
        TimedOut => vec![Answer::TimedOut, Answer::TimedOutWith(text())],
        OutcomeUnknown => vec![Answer::Unknown],
        _ if end.is_error => vec![Answer::Error(text())],
        _ => vec![Answer::Ok(end.result.clone())],
    }
}

/// What a line about this id is about: a call, or a grant of one.
pub(crate) fn kind_of(
    wanted: impl Fn(WantKind, &str) -> bool,
    id: &str,
    of_call: WantKind,
    of_grant: WantKind,
) -> WantKind {
    let is_grant = !wanted(of_call, id) && parse_id(id).is_some_and(|(call, _)| wanted(of_grant, call));
    if is_grant { of_grant } else { of_call }
}
