//! What is said in a run: the messages of its transcript, in the words of no provider.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::CallId;

/// One piece of what a person sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// For instance `image/png`.
        media_type: String,
        /// Where its bytes are.
        source: Source,
    },
    /// A document of another kind, for instance a PDF.
    File {
        /// For instance `application/pdf`.
        media_type: String,
        /// The name a person gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Where its bytes are.
        source: Source,
    },
}

/// Where the bytes of a picture or a file are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Here, in base64.
    Base64(String),
    /// At an address that the provider fetches.
    Url(String),
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The text parts of an input, joined by line ends: what intents are matched against.
pub fn text_of(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        if let Part::Text { text: more } = part {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(more);
        }
    }
    text
}

/// A provider's own form of a block, kept so that it can be sent back verbatim to the provider it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// Which protocol it belongs to: `openai`, `anthropic`.
    pub origin: String,
    /// The item as the provider sent it.
    pub item: Value,
}

/// One piece of what the model answered, in the provider's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// The provider's own form, where ours does not hold everything. Sent back to the same provider, dropped for another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Raw>,
}

/// What a block of an answer is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Text for the person.
    Text(String),
    /// The model's thinking. Never part of the reply.
    Thinking(String),
    /// A tool call.
    Call(CallBlock),
    /// Something this version does not know: only its raw form counts.
    Other,
}

/// A tool call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallBlock {
    /// In a reply the model's own id (blank where it gave none); in a transcript the run's.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them; in a transcript always a JSON object.
    pub arguments: String,
    /// The call was found in text, not among the provider's calls (`spec/contract.md`, 2.2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        BlockKind::Text(text.into()).into()
    }

    /// A call block.
    pub fn call(id: &str, name: &str, arguments: impl Into<String>) -> Self {
        BlockKind::Call(CallBlock {
            id: id.into(),
            name: name.to_owned(),
            arguments: arguments.into(),
            recovered: false,
        })
        .into()
    }
}

impl From<BlockKind> for Block {
    fn from(kind: BlockKind) -> Self {
        Self { kind, raw: None }
    }
}

/// One message of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What a person said, or what the runtime says in a person's place.
    User {
        /// Its pieces.
        parts: Vec<Part>,
        /// The runtime's own words (a hint, a refusal prompt, a backstop's prompt), not the person's.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prompted: bool,
    },
    /// A fact that the runtime adds for the model, such as `NOW: …`. Only the current turn's are sent.
    Notice {
        /// The whole line.
        text: String,
    },
    /// What the model answered.
    Assistant {
        /// Its pieces, in the provider's order.
        blocks: Vec<Block>,
    },
    /// The results of one answer's calls: one for each, in the model's order.
    Tools {
        /// The results.
        results: Vec<ToolResult>,
    },
}

/// What the model reads about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call it belongs to.
    pub call_id: CallId,
    /// The tool's name, for providers that want it.
    pub name: String,
    /// The JSON of the result, or `{"error": "…"}`.
    pub content: String,
    /// The call did not complete.
    pub is_error: bool,
}
