//! In what ways servers of one protocol differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::IdRule;

/// What an adapter must know about the server it writes for. Plain data: adapters do no I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// The provider's name. Raw forms of blocks that carry it are sent back verbatim, others are dropped.
    pub origin: String,
    /// Which call ids it takes.
    pub call_ids: IdRule,
    /// Neighbours of one role are joined. Anthropic's are always.
    pub alternate: bool,
    /// What `max_tokens` is called in a request. OpenAI's newer models want `max_completion_tokens`.
    pub max_tokens_key: String,
    /// The length limit where the options name none and the protocol insists on one (Anthropic), in tokens.
    pub max_tokens: u64,
    /// Asks for usage at the end of a stream (OpenAI).
    pub stream_usage: bool,
    /// It keeps to an output schema by itself.
    pub output_schema: bool,
    /// Asks the provider to cache system text, tools and history (Anthropic).
    pub cache: Option<CacheTime>,
}

/// How long a provider keeps what it caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheTime {
    /// Five minutes.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl Dialect {
    /// OpenAI's own.
    pub fn openai() -> Self {
        Self {
            origin: "openai".to_owned(),
            call_ids: IdRule::Any,
            alternate: false,
            max_tokens_key: "max_tokens".to_owned(),
            max_tokens: 8192,
            stream_usage: true,
            output_schema: true,
            cache: None,
        }
    }

    /// Anthropic's own.
    pub fn anthropic() -> Self {
        Self {
            origin: "anthropic".to_owned(),
            call_ids: IdRule::Word,
            alternate: true,
            output_schema: false,
            ..Self::openai()
        }
    }
}

/// A tool's name as every provider takes it: a model may have made one up that none takes back.
pub(crate) fn legal_name(name: &str) -> std::borrow::Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(legal) {
        return name.into();
    }
    let made: String = name.chars().take(64).map(|c| if legal(c) { c } else { '_' }).collect();
    if made.is_empty() { "unknown".into() } else { made.into() }
}
