//! The tools a turn offers, with parameters made from the tenant's files: nothing outside them can be named, and no tool
//! takes a contact (`spec/channel.md`, 9).

use gesta_run::{ToolEffect, ToolSpec};
use serde_json::{Value, json};

use crate::tenant::Tools;

/// What decides which tools a turn offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// A nudge's turn: flows are staged, no read, no further nudge.
    pub nudge: bool,
    /// The turn may read history.
    pub reads: bool,
    /// Ids of flows that were performed within `history_days`.
    pub flows_sent: Vec<String>,
}

/// The tools of a turn, in a fixed order. One whose list is empty is left out.
pub fn tools(tools: &Tools, terms: &Terms) -> Vec<ToolSpec> {
    let flows = tools.flows.iter().filter(|it| it.repeatable || !terms.flows_sent.contains(&it.id));
    let flows = choice(flows.map(|it| (it.id.as_str(), it.description.as_str())));
    let tags = choice(tools.tags.iter().map(|it| (it.id.as_str(), it.description.as_str())));
    let notes = choice(tools.notes.iter().map(|it| (it.id.as_str(), it.description.as_str())));
    let delays = tools.delays.iter().map(|it| (it.id.as_str(), it.minutes.to_string() + " minutes"));
    let delays: Vec<(&str, String)> = delays.collect();
    let delays = choice(delays.iter().map(|(id, text)| (*id, text.as_str()))).filter(|_| !terms.nudge);
    let flow = if terms.nudge { ToolEffect::Staged } else { ToolEffect::Once };
    let asked = json!({"type": "boolean", "description": "The contact asked for exactly this in the current message."});
    let staged = ToolEffect::Staged;
    let mut out = Vec::new();
    let mut add = |name: &str, effect, what: &str, properties: Option<Value>, required: &[&str]| {
        let Some(properties) = properties else { return };
        let parameters = json!({
            "type": "object", "additionalProperties": false, "properties": properties, "required": required,
        });
        out.push(ToolSpec { effect, ..ToolSpec::new(name, what, parameters) });
    };
    let about = |id: Option<Value>| id.map(|id| json!({ "id": id }));
    add(
        "send_flow",
        flow,
        "Sends the contact a prepared flow.",
        flows.map(|id| json!({"id": id, "contact_asked": asked})),
        &["id"],
    );
    add("add_tag", staged, "Adds a tag to the contact once the reply is out.", about(tags.clone()), &["id"]);
    add("remove_tag", staged, "Removes a tag from the contact once the reply is out.", about(tags), &["id"]);
    add("set_field", staged, "Sets a field of the contact once the reply is out.", fields(tools), &["id", "value"]);
    let note = notes.map(|id| json!({"id": id, "text": {"type": "string"}}));
    add("write_note", staged, "Writes a note for staff once the reply is out.", note, &["id", "text"]);
    add(
        "schedule_nudge",
        staged,
        "Writes to the contact again after this time if they stay silent.",
        about(delays),
        &["id"],
    );
    if terms.reads && !terms.nudge {
        let what = "Reads the contact's tags, fields and notes.";
        add("get_contact", ToolEffect::ReadsOnly, what, Some(json!({})), &[]);
    }
    out
}

fn fields(tools: &Tools) -> Option<Value> {
    let told = tools.fields.iter().map(|it| (it.id.clone(), format!("{} ({})", it.description, it.values.join(", "))));
    let told: Vec<(String, String)> = told.collect();
    let id = choice(told.iter().map(|(id, text)| (id.as_str(), text.as_str())))?;
    let mut values: Vec<&str> = Vec::new();
    for value in tools.fields.iter().flat_map(|it| &it.values) {
        if !values.contains(&value.as_str()) {
            values.push(value);
        }
    }
    Some(
        json!({"id": id, "value": {"type": "string", "enum": values, "description": "One of the field's own values."}}),
    )
}

fn choice<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Option<Value> {
    let entries: Vec<(&str, &str)> = entries.collect();
    let ids: Vec<&str> = entries.iter().map(|(id, _)| *id).collect();
    let told: Vec<String> = entries.iter().map(|(id, text)| format!("{id}: {text}")).collect();
    (!ids.is_empty()).then(|| json!({"type": "string", "enum": ids, "description": told.join("\n")}))
}
