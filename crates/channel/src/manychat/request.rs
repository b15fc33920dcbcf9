//! What is sent for each call: method, path, query, headers and body, to the byte.

use gesta_run::ContactId;
use serde_json::{Value, json};

/// What is asked of ManyChat. The contact is the turn's own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Call {
    SendFlow {
        contact: ContactId,
        flow_ns: String,
    },
    AddTag {
        contact: ContactId,
        tag: String,
    },
    RemoveTag {
        contact: ContactId,
        tag: String,
    },
    SetField {
        contact: ContactId,
        field: String,
        value: String,
    },
    GetContact {
        contact: ContactId,
    },
    /// For `gesta config check`, as are the three that follow.
    GetPage,
    GetTags,
    GetFields,
    GetFlows,
}

/// The endpoint, whatever its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Operation {
    SendFlow,
    AddTag,
    RemoveTag,
    SetField,
    GetContact,
    GetPage,
    GetTags,
    GetFields,
    GetFlows,
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Post,
}

/// A request without its host.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The endpoint.
    pub operation: Operation,
    /// GET or POST.
    pub method: Method,
    /// Path and query, percent-encoded.
    pub target: String,
    /// Names in lower case. The key is in here: never log them.
    pub headers: Vec<(&'static str, String)>,
    /// The body; none for GET.
    pub body: Option<Value>,
}

impl Operation {
    /// The path.
    pub fn path(self) -> &'static str {
        match self {
            Self::SendFlow => "/fb/sending/sendFlow",
            Self::AddTag => "/fb/subscriber/addTagByName",
            Self::RemoveTag => "/fb/subscriber/removeTagByName",
            Self::SetField => "/fb/subscriber/setCustomFieldByName",
            Self::GetContact => "/fb/subscriber/getInfo",
            Self::GetPage => "/fb/page/getInfo",
            Self::GetTags => "/fb/page/getTags",
            Self::GetFields => "/fb/page/getCustomFields",
            Self::GetFlows => "/fb/page/getFlows",
        }
    }

    /// ManyChat's documented limit in a second.
    pub fn per_second_max(self) -> usize {
        match self {
            Self::SendFlow => 20,
            Self::AddTag | Self::RemoveTag | Self::SetField | Self::GetContact | Self::GetFlows => 10,
            Self::GetPage | Self::GetTags | Self::GetFields => 100,
        }
    }
}

impl Call {
    /// Its endpoint.
    pub fn operation(&self) -> Operation {
        match self {
            Self::SendFlow { .. } => Operation::SendFlow,
            Self::AddTag { .. } => Operation::AddTag,
            Self::RemoveTag { .. } => Operation::RemoveTag,
            Self::SetField { .. } => Operation::SetField,
            Self::GetContact { .. } => Operation::GetContact,
            Self::GetPage => Operation::GetPage,
            Self::GetTags => Operation::GetTags,
            Self::GetFields => Operation::GetFields,
            Self::GetFlows => Operation::GetFlows,
        }
    }

    /// The two calls that together deliver one message of a late reply (`spec/channel.md`, 18): the field, then the flow.
    pub fn delivery(contact: &ContactId, reply_field: &str, reply_flow: &str, text: &str) -> [Self; 2] {
        [
            Self::SetField { contact: contact.clone(), field: reply_field.to_owned(), value: text.to_owned() },
            Self::SendFlow { contact: contact.clone(), flow_ns: reply_flow.to_owned() },
        ]
    }

    /// The request, with this key.
    pub fn request(&self, key: &str) -> Request {
        let operation = self.operation();
        let body = match self {
            Self::SendFlow { contact, flow_ns } => Some(json!({"subscriber_id": id(contact), "flow_ns": flow_ns})),
            Self::AddTag { contact, tag } | Self::RemoveTag { contact, tag } => {
                Some(json!({"subscriber_id": id(contact), "tag_name": tag}))
            }
            Self::SetField { contact, field, value } => {
                Some(json!({"subscriber_id": id(contact), "field_name": field, "field_value": value}))
            }
            Self::GetContact { .. } | Self::GetPage | Self::GetTags | Self::GetFields | Self::GetFlows => None,
        };
        let target = match self {
            Self::GetContact { contact } => format!("{}?subscriber_id={}", operation.path(), encode(contact.as_str())),
            Self::SendFlow { .. }
            | Self::AddTag { .. }
            | Self::RemoveTag { .. }
            | Self::SetField { .. }
            | Self::GetPage
            | Self::GetTags
            | Self::GetFields
            | Self::GetFlows => operation.path().to_owned(),
        };
        let headers = vec![
            ("accept", "application/json".to_owned()),
            ("authorization", format!("Bearer {key}")),
            ("content-type", "application/json".to_owned()),
        ];
        let method = if body.is_some() { Method::Post } else { Method::Get };
        Request { operation, method, target, headers, body }
    }
}

/// ManyChat takes contact ids as numbers and as texts. Digits that every reader of JSON keeps exactly go out as a number.
fn id(contact: &ContactId) -> Value {
    let text = contact.as_str();
    match text.parse::<u64>() {
        Ok(number) if number < 1 << 53 && number.to_string() == text => number.into(),
        Ok(_) | Err(_) => text.into(),
    }
}

fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
