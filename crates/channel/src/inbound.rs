//! A contact's message as ManyChat sends it: read strictly, brought into one form (`spec/channel.md`, 2).

use serde_json::Value;

use crate::numbers::{BODY_BYTES_MAX, KEY_CHARS_MAX, TEXT_CHARS_MAX};
use crate::text;
use gesta_run::ContactId;
use gesta_run::json::{Object, read_strict};

/// One inbound message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// Who wrote.
    pub contact: ContactId,
    /// What they wrote; may be blank.
    pub text: String,
    /// The contact's names and language, as far as ManyChat told them.
    pub first_name: Option<String>,
    /// As above.
    pub last_name: Option<String>,
    /// As above.
    pub locale: Option<String>,
    /// The messenger's name, as the tenant's block says it.
    pub channel: Option<String>,
    /// Accepted and unused until contact tokens are built.
    pub ai_token: Option<String>,
    /// Accepted and unused until offerings are built.
    pub offering: Option<String>,
    /// Makes a repetition the same turn.
    pub message_id: Option<String>,
}

/// Why a body is a 400. Its text names keys and never what stood in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboundError {
    /// Longer than 64 KiB.
    #[error("the body has more than {BODY_BYTES_MAX} bytes")]
    TooLong,
    /// No JSON object.
    #[error("the body is no JSON object")]
    NoObject,
    /// A key that does not belong there.
    #[error("unknown key; known keys: {KEYS}")]
    UnknownKey,
    /// A key that must be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A value of the wrong type.
    #[error("`{0}` must be {1}")]
    Kind(&'static str, &'static str),
    /// A value that is too long.
    #[error("`{0}` has more than {1} characters")]
    Chars(&'static str, usize),
}

const KEYS: &str =
    "subscriber_id, text, first_name, last_name, locale, channel, ai_token, offering, course, message_id";

impl Inbound {
    /// Reads a body.
    ///
    /// # Errors
    /// What is wrong with it: the answer is 400, for authenticated callers alone.
    pub fn read(body: &[u8]) -> Result<Self, InboundError> {
        if body.len() > BODY_BYTES_MAX {
            return Err(InboundError::TooLong);
        }
        let text = std::str::from_utf8(body).map_err(|_| InboundError::NoObject)?;
        let Ok(Value::Object(body)) = read_strict(text) else { return Err(InboundError::NoObject) };
        if body.keys().any(|key| !KEYS.split(", ").any(|known| known == key)) {
            return Err(InboundError::UnknownKey);
        }
        let text = match body.get("text") {
            None => return Err(InboundError::Missing("text")),
            Some(Value::String(text)) => storable(text),
            Some(_) => return Err(InboundError::Kind("text", "a string")),
        };
        limit("text", &text, TEXT_CHARS_MAX)?;
        let named = |key| optional(&body, key).map(|it| it.filter(|it| !is_unrendered(it)));
        let (offering, course) = (named("offering")?, named("course")?);
        Ok(Self {
            contact: contact(&body)?,
            text,
            first_name: named("first_name")?,
            last_name: named("last_name")?,
            locale: named("locale")?,
            channel: named("channel")?,
            ai_token: named("ai_token")?,
            offering: if body.contains_key("offering") { offering } else { course },
            message_id: named("message_id")?,
        })
    }

    /// Whether the whole text is one link to a file of ManyChat (`spec/channel.md`, 2). `host` is
    /// `MANYCHAT_MEDIA_HOST`; without it, any host counts where the path ends like a medium.
    pub fn is_media(&self, host: Option<&str>) -> bool {
        let text = self.text.trim();
        let Some(rest) = text.get(..8).filter(|it| it.eq_ignore_ascii_case("https://")).map(|_| &text[8..]) else {
            return false;
        };
        if rest.contains(char::is_whitespace) {
            return false;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // Whoever writes a name ahead of the host writes for readers, not for us.
        let named = if authority.contains('@') { "" } else { authority.split(':').next().unwrap_or_default() };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        match host {
            _ if named.is_empty() || path.len() < 2 => false,
            Some(host) => named.eq_ignore_ascii_case(host),
            None => {
                let path = path.to_ascii_lowercase();
                [".ogg", ".jpeg", ".jpg", ".png", ".mp4", ".3gp"].iter().any(|ending| path.ends_with(ending))
            }
        }
    }
}

/// What a history shows for a link to media; the link itself is stored nowhere (`spec/channel.md`, 2).
pub const MEDIA: &str = "[media]";

fn contact(body: &Object) -> Result<ContactId, InboundError> {
    const KEY: &str = "subscriber_id";
    let text = match body.get(KEY) {
        None => return Err(InboundError::Missing(KEY)),
        Some(Value::String(text)) => text.trim().to_owned(),
        Some(Value::Number(number)) if number.is_u64() => number.to_string(),
        Some(_) => return Err(InboundError::Kind(KEY, "a string or a whole number")),
    };
    if text.is_empty() || is_unrendered(&text) || text.contains(char::is_control) {
        return Err(InboundError::Kind(KEY, "the contact's id, rendered"));
    }
    limit(KEY, &text, KEY_CHARS_MAX)?;
    Ok(text.as_str().into())
}

fn optional(body: &Object, key: &'static str) -> Result<Option<String>, InboundError> {
    match body.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            limit(key, text, KEY_CHARS_MAX)?;
            Ok(Some(storable(text).trim().to_owned()).filter(|it| !it.is_empty()))
        }
        Some(_) => Err(InboundError::Kind(key, "a string or null")),
    }
}

/// A variable that ManyChat did not fill in (`spec/channel.md`, 19).
fn is_unrendered(text: &str) -> bool {
    text.contains("{{")
}

/// No store keeps a zero character in a text.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

fn limit(key: &'static str, value: &str, chars_max: usize) -> Result<(), InboundError> {
    if text::chars(value) > chars_max { Err(InboundError::Chars(key, chars_max)) } else { Ok(()) }
}
