//! ManyChat's API: what each endpoint wants, what it does, what it answers (`spec/channel.md`, 19).

use std::collections::BTreeMap;

use gesta_channel::numbers::{FLOWS_PER_HOUR_MAX, HOUR_MS};
use serde_json::{Map, Value, json};

use super::faults::details;
use super::state::{SeenBy, State};

/// An answer: its status and body, and what was wrong.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) why: String,
}

/// A request of the API, its parameters in one place: a query's are texts.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) given: Map<String, Value>,
}

/// Method, path, parameters that must be there, those that may, and the documented limit in a second.
type Endpoint = (&'static str, &'static str, &'static [&'static str], &'static [&'static str], usize);

const ENDPOINTS: [Endpoint; 13] = [
    ("POST", "/fb/sending/sendFlow", &["subscriber_id", "flow_ns"], &[], 20),
    ("POST", "/fb/sending/sendContent", &["subscriber_id", "data"], &["message_tag", "otn_topic_name"], 25),
    ("GET", "/fb/subscriber/getInfo", &["subscriber_id"], &[], 10),
    ("POST", "/fb/subscriber/addTagByName", &["subscriber_id", "tag_name"], &[], 10),
    ("POST", "/fb/subscriber/removeTagByName", &["subscriber_id", "tag_name"], &[], 10),
    ("POST", "/fb/subscriber/setCustomFieldByName", &["subscriber_id", "field_name", "field_value"], &[], 10),
    ("POST", "/fb/subscriber/setCustomFields", &["subscriber_id", "fields"], &[], 10),
    ("GET", "/fb/page/getInfo", &[], &[], 100),
    ("GET", "/fb/page/getTags", &[], &[], 100),
    ("GET", "/fb/page/getCustomFields", &[], &[], 100),
    ("GET", "/fb/page/getFlows", &[], &[], 10),
    ("GET", "/fb/subscriber/findBySystemField", &[], &["email", "phone"], 50),
    ("POST", "/fb/page/setBotFieldByName", &["field_name", "field_value"], &[], 10),
];

fn fail(status: u16, body: Value, why: impl Into<String>) -> Answer {
    Answer { status, body, why: why.into() }
}

fn invalid(why: &str) -> Answer {
    fail(400, details("Validation error", why), why)
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        self.body["status"] == "success"
    }
}

impl State {
    /// Checks a request before anything is done: key, endpoint, parameters, limits.
    pub(crate) fn check(&mut self, asked: &Asked<'_>, key: Option<&str>, now: i64) -> Result<(), Answer> {
        let Some((method, _, required, optional, max)) = ENDPOINTS.iter().find(|it| it.1 == asked.path) else {
            return Err(fail(404, json!({"error": "not found"}), "there is no such endpoint"));
        };
        if key.and_then(|it| it.strip_prefix("Bearer ")) != Some(self.key.as_str()) {
            return Err(fail(401, json!({"error": "unauthorized"}), "the key is wrong"));
        }
        if *method != asked.method {
            return Err(fail(405, json!({"error": "method not allowed"}), "the method is wrong"));
        }
        let recent = self.recent.entry(asked.path.to_owned()).or_default();
        while recent.front().is_some_and(|at| now - at >= 1000) {
            recent.pop_front();
        }
        if recent.len() >= *max {
            return Err(fail(429, json!({"error": "too many requests"}), "more than the endpoint's limit in a second"));
        }
        recent.push_back(now);
        if let Some(key) = required.iter().find(|key| !asked.given.contains_key(**key)) {
            return Err(invalid(&format!("{key} is missing")));
        }
        let known = |key: &&String| required.contains(&key.as_str()) || optional.contains(&key.as_str());
        match asked.given.keys().find(|key| !known(key)) {
            Some(key) => Err(invalid(&format!("{key} is unknown"))),
            None => Ok(()),
        }
    }

    /// Does what is asked; `lost` says that a flow is accepted and shows nothing.
    pub(crate) fn perform(&mut self, asked: &Asked<'_>, now: i64, lost: bool) -> Answer {
        self.play(now);
        let done = match asked.path {
            "/fb/sending/sendFlow" => self.send_flow(asked, now, lost),
            "/fb/sending/sendContent" => Err(invalid("message_tag and free sending are refused here")),
            "/fb/subscriber/getInfo" => self.info(asked),
            "/fb/subscriber/addTagByName" => self.tag(asked, now, true),
            "/fb/subscriber/removeTagByName" => self.tag(asked, now, false),
            "/fb/subscriber/setCustomFieldByName" => self.set_field(asked, now),
            "/fb/subscriber/setCustomFields" => self.set_fields(asked, now),
            "/fb/page/getTags" => Ok(named(&self.tags)),
            "/fb/page/getCustomFields" => Ok(named(&self.fields)),
            "/fb/page/getFlows" => {
                let flows = self.flows.keys().map(|ns| json!({"ns": ns, "name": ns})).collect::<Vec<_>>();
                Ok(json!({"flows": flows, "folders": []}))
            }
            "/fb/page/getInfo" => Ok(json!({"id": 1, "name": "A page"})),
            "/fb/subscriber/findBySystemField" => Ok(json!([])),
            _ => Ok(Value::Null),
        };
        match done {
            Ok(data) => Answer { status: 200, body: json!({"status": "success", "data": data}), why: String::new() },
            Err(answer) => answer,
        }
    }

    fn id(&self, asked: &Asked<'_>) -> Result<String, Answer> {
        let id = match asked.given.get("subscriber_id") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(invalid("subscriber_id is neither a number nor a string")),
        };
        if self.contacts.contains_key(&id) { Ok(id) } else { Err(invalid("subscriber does not exist")) }
    }

    fn send_flow(&mut self, asked: &Asked<'_>, now: i64, lost: bool) -> Result<Value, Answer> {
        let (id, flow) = (self.id(asked)?, text(asked, "flow_ns")?);
        if !self.flows.contains_key(&flow) {
            return Err(invalid("flow does not exist"));
        }
        let hour = i64::try_from(HOUR_MS).unwrap_or(i64::MAX);
        let sent = self.contacts.entry(id.clone()).or_default();
        while sent.flows_sent_at.front().is_some_and(|at| now - at >= hour) {
            sent.flows_sent_at.pop_front();
        }
        if sent.flows_sent_at.len() >= FLOWS_PER_HOUR_MAX {
            let why = "more than 100 flows for this contact in an hour";
            return Err(fail(429, json!({"error": "too many requests"}), why));
        }
        self.start(&id, &flow, now, lost);
        Ok(Value::Null)
    }

    fn tag(&mut self, asked: &Asked<'_>, now: i64, set: bool) -> Result<Value, Answer> {
        let (id, tag) = (self.id(asked)?, text(asked, "tag_name")?);
        if !self.tags.contains(&tag) {
            return Err(invalid("tag does not exist"));
        }
        let contact = self.contacts.entry(id).or_default();
        contact.say(now, SeenBy::Silent, &format!("tag {tag} {}", if set { "added" } else { "removed" }));
        if set {
            contact.tags.insert(tag);
        } else {
            contact.tags.remove(&tag);
        }
        Ok(Value::Null)
    }

    fn set_field(&mut self, asked: &Asked<'_>, now: i64) -> Result<Value, Answer> {
        let (id, field, value) = (self.id(asked)?, text(asked, "field_name")?, text(asked, "field_value")?);
        self.write(&id, BTreeMap::from([(field, value)]), now)
    }

    fn set_fields(&mut self, asked: &Asked<'_>, now: i64) -> Result<Value, Answer> {
        let id = self.id(asked)?;
        let fields = asked.given.get("fields").and_then(Value::as_array).filter(|it| it.len() <= 20);
        let fields = fields.ok_or_else(|| invalid("fields is no list of at most 20"))?;
        let read = |it: &Value| Some((it["field_name"].as_str()?.to_owned(), it["field_value"].as_str()?.to_owned()));
        let written: Option<BTreeMap<String, String>> = fields.iter().map(read).collect();
        self.write(&id, written.ok_or_else(|| invalid("a field has no field_name or field_value"))?, now)
    }

    fn write(&mut self, id: &str, fields: BTreeMap<String, String>, now: i64) -> Result<Value, Answer> {
        if fields.keys().any(|field| !self.fields.contains(field)) {
            return Err(invalid("field does not exist"));
        }
        let contact = self.contacts.entry(id.to_owned()).or_default();
        for (field, value) in fields {
            contact.say(now, SeenBy::Silent, &format!("field {field} set"));
            contact.fields.insert(field, value);
        }
        Ok(Value::Null)
    }

    fn info(&self, asked: &Asked<'_>) -> Result<Value, Answer> {
        let id = self.id(asked)?;
        let Some(contact) = self.contacts.get(&id) else { return Err(invalid("subscriber does not exist")) };
        let number = |at: usize| at + 1;
        let fields: Vec<Value> = self.fields.iter().enumerate().map(|(at, name)| {
            json!({"id": number(at), "name": name, "type": "text", "description": "", "value": contact.fields.get(name)})
        }).collect();
        let tags: Vec<Value> =
            contact.tags.iter().enumerate().map(|(at, name)| json!({"id": number(at), "name": name})).collect();
        Ok(json!({
            "id": id, "page_id": "1", "user_refs": [], "first_name": contact.first_name, "last_name": null,
            "name": contact.first_name, "gender": null, "profile_pic": null, "locale": null, "language": null,
            "timezone": null, "live_chat_url": null, "last_input_text": contact.last_input, "phone": null,
            "email": null, "subscribed": null, "last_interaction": contact.last_interaction_ms, "last_seen": null,
            "is_followup_enabled": true, "ig_username": null, "ig_id": null, "whatsapp_phone": null,
            "optin_whatsapp": true, "custom_fields": fields, "tags": tags,
        }))
    }
}

fn text(asked: &Asked<'_>, key: &str) -> Result<String, Answer> {
    match asked.given.get(key).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(invalid(&format!("{key} is no text, or blank"))),
    }
}

fn named(names: &std::collections::BTreeSet<String>) -> Value {
    names.iter().enumerate().map(|(at, name)| json!({"id": at + 1, "name": name, "type": "text"})).collect()
}
