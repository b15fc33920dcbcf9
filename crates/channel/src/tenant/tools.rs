//! `tools.json`: what the agent may do, and every check of it (`spec/channel.md`, 8).

use super::Reserved;
use super::entry::{self, Entry, unique};
use super::fault::Fault;
use crate::numbers::{NOTE_CHARS_MAX, NUDGE_MINUTES_MAX, SETTLE_SECONDS_MAX};

const FILE: &str = "tools.json";

/// What the agent may do. Empty lists offer no tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools {
    /// Flows it may send.
    pub flows: Vec<Flow>,
    /// Tags it may add and remove.
    pub tags: Vec<Tag>,
    /// Fields it may set.
    pub fields: Vec<Field>,
    /// Tags that reads see beside those.
    pub readable_tags: Vec<Tag>,
    /// Fields that reads see beside those.
    pub readable_fields: Vec<Field>,
    /// Notes it may write.
    pub notes: Vec<Note>,
    /// Delays of a nudge.
    pub delays: Vec<Delay>,
}

/// A flow of the tenant's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// What the model calls it.
    pub id: String,
    /// What ManyChat calls it.
    pub flow_ns: String,
    /// When to send it, in the tenant's words.
    pub description: String,
    /// It may go out again within `history_days`.
    pub repeatable: bool,
    /// How long it plays.
    pub settle_seconds: u64,
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// What the model calls it.
    pub id: String,
    /// What ManyChat calls it.
    pub tag: String,
    /// What it means.
    pub description: String,
}

/// A field with the values it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// What the model calls it.
    pub id: String,
    /// What ManyChat calls it.
    pub field: String,
    /// At least one.
    pub values: Vec<String>,
    /// What it means.
    pub description: String,
    /// It says whether the contact is a prospect.
    pub intent: bool,
}

/// A field for staff that no flow renders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What the model calls it.
    pub id: String,
    /// What ManyChat calls it.
    pub field: String,
    /// In characters, at most 500.
    pub max_length: u64,
    /// What belongs into it.
    pub description: String,
    /// It survives an escalation of the model's.
    pub on_escalation: bool,
}

/// A delay that a nudge may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    /// What the model calls it.
    pub id: String,
    /// At most 1380.
    pub minutes: u64,
}

/// The values of a field that is marked `intent`, in order (`spec/channel.md`, 8).
pub const INTENT_VALUES: [&str; 2] = ["not_prospect", "prospect"];

/// An id, with what is said where it was there before.
type Named = (String, Fault);

pub(super) fn read(text: &str, reserved: &Reserved, faults: &mut Vec<Fault>) -> Tools {
    let value = entry::file(FILE, text, faults);
    let mut top = Entry::new(FILE, String::new(), &value, faults);
    let (mut flow_ids, mut tag_ids, mut field_ids, mut note_ids) = (vec![], vec![], vec![], vec![]);
    let flows = top.list("flows", faults).into_iter().map(|it| flow(it, reserved, &mut flow_ids, faults)).collect();
    let tags = top.list("tags", faults).into_iter().map(|it| tag(it, &mut tag_ids, faults)).collect();
    let writable = top.list("fields", faults).into_iter();
    let fields: Vec<Field> = writable.map(|it| field(it, true, reserved, &mut field_ids, faults)).collect();
    let marked = fields.iter().enumerate().filter(|(_, it)| it.intent).map(|(n, _)| n);
    for n in marked.skip(1) {
        let at = format!("{}/{n}/intent", top.at("fields"));
        faults.push(Fault::new(FILE, at, "marks a second field", "keep the marker at one field"));
    }
    let (mut readable_tags, mut readable_fields) = (Vec::new(), Vec::new());
    if let Some(mut readable) = top.inner("readable", faults) {
        let list = readable.list("tags", faults);
        readable_tags = list.into_iter().map(|it| tag(it, &mut tag_ids, faults)).collect();
        let list = readable.list("fields", faults);
        readable_fields = list.into_iter().map(|it| field(it, false, reserved, &mut field_ids, faults)).collect();
        readable.close(faults);
    }
    let taken = fields.iter().chain(&readable_fields).map(|it| it.field.clone()).collect::<Vec<_>>();
    let notes = notes(top.list("notes", faults), taken, reserved, &mut note_ids, faults);
    let delays = match top.inner("nudge", faults) {
        Some(it) => nudge(it, faults),
        None => Vec::new(),
    };
    top.later("events", "conversion events, which need a funnel", faults);
    for ids in [&flow_ids, &tag_ids, &field_ids, &note_ids] {
        unique(ids, faults);
    }
    top.close(faults);
    Tools { flows, tags, fields, readable_tags, readable_fields, notes, delays }
}

fn id(it: &mut Entry<'_>, ids: &mut Vec<Named>, faults: &mut Vec<Fault>) -> String {
    let id = it.id(faults);
    let fault = it.fault("id", format!("`{id}` is there twice"), "give it an id of its own");
    ids.push((id.clone(), fault));
    id
}

fn flow(mut it: Entry<'_>, reserved: &Reserved, ids: &mut Vec<Named>, faults: &mut Vec<Fault>) -> Flow {
    let id = id(&mut it, ids, faults);
    let (flow_ns, description) = (it.text("flow_ns", faults), it.text("description", faults));
    if !flow_ns.is_empty() && flow_ns == reserved.reply_flow {
        let what = "is the reply flow (MANYCHAT_REPLY_FLOW_NS): sent as a tool it would repeat an old reply";
        faults.push(it.fault("flow_ns", what, "name another flow"));
    }
    it.later("role", "payment links and opening flows", faults);
    it.later("on_stage", "flows tied to a stage of the funnel", faults);
    it.later("offering", "flows of one offering", faults);
    let repeatable = it.flag("repeatable", faults);
    let settle_seconds = it.whole("settle_seconds", (0, SETTLE_SECONDS_MAX), faults).unwrap_or(0);
    it.close(faults);
    Flow { id, flow_ns, description, repeatable, settle_seconds }
}

fn tag(mut it: Entry<'_>, ids: &mut Vec<Named>, faults: &mut Vec<Fault>) -> Tag {
    let id = id(&mut it, ids, faults);
    let tag = Tag { id, tag: it.text("tag", faults), description: it.text("description", faults) };
    it.close(faults);
    tag
}

fn field(
    mut it: Entry<'_>,
    writable: bool,
    reserved: &Reserved,
    ids: &mut Vec<Named>,
    faults: &mut Vec<Fault>,
) -> Field {
    let id = id(&mut it, ids, faults);
    let name = it.text("field", faults);
    guard_field(&it, &name, reserved, faults);
    let values = it.texts("values", faults);
    if it.is_there() && values.is_empty() {
        faults.push(it.fault("values", "has no entry", "name at least one value"));
    }
    let description = it.text("description", faults);
    let mut intent = false;
    if writable {
        it.later("funnel", "a field that holds the stage of the funnel", faults);
        it.later("offering", "a field that holds the offering", faults);
        intent = it.flag("intent", faults);
        if intent && values != INTENT_VALUES {
            let what = "are not those of an intent field";
            faults.push(it.fault("values", what, "write exactly `not_prospect`, `prospect`, in this order"));
        }
    }
    it.close(faults);
    Field { id, field: name, values, description, intent }
}

/// No tool may write what replies and tokens travel in, and no read may see it.
fn guard_field(it: &Entry<'_>, name: &str, reserved: &Reserved, faults: &mut Vec<Fault>) {
    let what = if name.is_empty() {
        return;
    } else if name == reserved.reply_field {
        "is the reply field (MANYCHAT_REPLY_FIELD): written by a tool it would spoil a reply on its way"
    } else if name == reserved.token_field {
        "is the token field (MANYCHAT_TOKEN_FIELD): written by a tool it would lock the contact out"
    } else {
        return;
    };
    faults.push(it.fault("field", what, "name another field"));
}

fn notes(
    list: Vec<Entry<'_>>,
    mut taken: Vec<String>,
    reserved: &Reserved,
    ids: &mut Vec<Named>,
    faults: &mut Vec<Fault>,
) -> Vec<Note> {
    let mut notes = Vec::new();
    for mut it in list {
        let id = id(&mut it, ids, faults);
        let field = it.text("field", faults);
        guard_field(&it, &field, reserved, faults);
        if !field.is_empty() && taken.contains(&field) {
            let what = format!("`{field}` is used by another field or note");
            faults.push(it.fault("field", what, "give the note a field of its own"));
        }
        taken.push(field.clone());
        let max_length = it.whole("max_length", (1, NOTE_CHARS_MAX), faults);
        if max_length.is_none() && it.is_there() && it.get("max_length").is_none() {
            faults.push(it.fault("max_length", "is missing", "add it, at most 500"));
        }
        if it.is_there() && it.get("never_rendered").and_then(serde_json::Value::as_bool) != Some(true) {
            let way_out = "write `true` once no flow of the tenant shows this field to a contact";
            faults.push(it.fault("never_rendered", "is not true", way_out));
        }
        let description = it.text("description", faults);
        let on_escalation = it.flag("on_escalation", faults);
        it.close(faults);
        notes.push(Note { id, field, max_length: max_length.unwrap_or(0), description, on_escalation });
    }
    notes
}

fn nudge(mut it: Entry<'_>, faults: &mut Vec<Fault>) -> Vec<Delay> {
    let mut ids = Vec::new();
    let mut delays = Vec::new();
    for mut delay in it.list("delays", faults) {
        let id = id(&mut delay, &mut ids, faults);
        let minutes = delay.whole("minutes", (1, NUDGE_MINUTES_MAX), faults);
        if minutes.is_none() && delay.is_there() && delay.get("minutes").is_none() {
            faults.push(delay.fault("minutes", "is missing", "add it, at most 1380"));
        }
        delay.close(faults);
        delays.push(Delay { id, minutes: minutes.unwrap_or(0) });
    }
    unique(&ids, faults);
    it.close(faults);
    delays
}
