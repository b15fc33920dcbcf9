//! What a read of the contact shows the model: a whitelist, by the ids of the configuration (`spec/channel.md`, 16).

use serde_json::{Map, Value, json};

use crate::fence::Fence;
use crate::manychat::Contact;
use crate::tenant::Tools;

/// The answer to a third read, and to one that failed or timed out.
pub fn unavailable() -> Value {
    json!({"available": false})
}

/// What the model sees of a contact. A value outside a field's list becomes `other`; notes stand inside the fence.
pub fn shown(tools: &Tools, contact: &Contact, fence: &Fence) -> Value {
    let tags = tools.tags.iter().chain(&tools.readable_tags);
    let tags: Vec<&str> = tags.filter(|it| contact.tags.contains(&it.tag)).map(|it| it.id.as_str()).collect();
    let mut fields = Map::new();
    for field in tools.fields.iter().chain(&tools.readable_fields) {
        if let Some(value) = contact.fields.get(&field.field) {
            let known = field.values.iter().any(|it| it == value);
            fields.insert(field.id.clone(), if known { value.as_str() } else { "other" }.into());
        }
    }
    let mut notes = Map::new();
    for note in &tools.notes {
        if let Some(text) = contact.fields.get(&note.field) {
            notes.insert(note.id.clone(), fence.around(text).into());
        }
    }
    json!({"available": true, "tags": tags, "fields": fields, "notes": notes})
}
